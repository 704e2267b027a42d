//! [`Share`]: one worker's part of the frames, with its free ones and the hand of its clock.

use sync::atomic::{AtomicBool, AtomicU32, Ordering};
use sync::{CachePadded, Mutex};

use crate::frames::{Found, FrameNo, HOT_EIGHTHS, HotPages};

/// One worker's part of the frames. Other workers use it only if theirs has nothing cold.
#[derive(Debug)]
pub(crate) struct Share {
    first: u32,
    pub(crate) count: u32,
    pub(crate) free: Mutex<Vec<FrameNo>>,
    /// The clock's next position, relative to `first`.
    hand: AtomicU32,
    /// Hot pages met since the hand was at `first`. A hint, like the next one: two workers in one
    /// share may count a page twice or not at all.
    hot_count: AtomicU32,
    /// Whether hot pages were more than their part in the last lap.
    is_cooling: AtomicBool,
}

impl Share {
    /// Divides all frames, free, among the workers.
    pub(crate) fn split(frame_count: u32, worker_count: usize) -> Box<[CachePadded<Self>]> {
        let workers = stdx::to_u32(worker_count);
        assert!(0 < workers);
        assert!(
            workers <= frame_count,
            "each worker has a frame for its clock"
        );
        let bound = |worker: u32| {
            let at = u64::from(frame_count) * u64::from(worker) / u64::from(workers);
            stdx::low_u32(at)
        };
        let share = |worker: u32| {
            let (first, end) = (bound(worker), bound(worker + 1));
            let free = Mutex::new((first..end).rev().map(FrameNo).collect());
            CachePadded::new(Self {
                first,
                count: end - first,
                free,
                hand: AtomicU32::new(0),
                hot_count: AtomicU32::new(0),
                is_cooling: AtomicBool::new(false),
            })
        };
        (0..workers).map(share).collect()
    }

    /// Frames without a page.
    pub(crate) fn free_count(&self) -> u64 {
        stdx::to_u64(self.free.lock().len())
    }

    /// The next frame under the hand, and what a pass does to it if it is hot.
    pub(crate) fn advance(&self) -> (FrameNo, HotPages) {
        // Relaxed: two workers on one share may look at the same frame; the latch decides.
        let at = self.hand.fetch_add(1, Ordering::Relaxed) % self.count;
        if at == 0 {
            let hot_count = self.hot_count.swap(0, Ordering::Relaxed);
            let limit = u64::from(self.count) * u64::from(HOT_EIGHTHS);
            let is_cooling = limit < u64::from(hot_count) * 8;
            self.is_cooling.store(is_cooling, Ordering::Relaxed);
        }
        let hot_pages = if self.is_cooling.load(Ordering::Relaxed) {
            HotPages::Cool
        } else {
            HotPages::Stay
        };
        (FrameNo(self.first + at), hot_pages)
    }

    /// Counts what the clock has found.
    pub(crate) fn note(&self, found: Found) {
        if found == Found::Hot {
            self.hot_count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
