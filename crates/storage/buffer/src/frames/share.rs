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
    /// The position up to which the cleaner has looked for dirty pages, as `hand` counts. Written
    /// by the worker's own cleaner.
    looked: AtomicU32,
}

/// The cleaner looks at this share of the frames before the hand comes, at most [`RESERVE_MAX`].
const RESERVE_SHARE: u32 = 4;

/// The hand takes some milliseconds for so many, however fast pages come and go.
pub(crate) const RESERVE_MAX: u32 = 4096;

/// The reserve of a share of so many frames; at least one.
fn reserve_of(count: u32) -> u32 {
    (count / RESERVE_SHARE).clamp(1, RESERVE_MAX)
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
                // Nothing is dirty yet.
                looked: AtomicU32::new(reserve_of(end - first)),
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

    /// Frames before the hand that the cleaner has looked at.
    fn reserve(&self) -> u32 {
        // Relaxed: both are hints. The hand may have come past what was looked at.
        let hand = self.hand.load(Ordering::Relaxed);
        let ahead = self.looked.load(Ordering::Relaxed).wrapping_sub(hand);
        if ahead <= reserve_of(self.count) {
            ahead
        } else {
            0
        }
    }

    /// Whether the cleaner should look at more frames.
    pub(crate) fn is_reserve_short(&self) -> bool {
        self.reserve() < reserve_of(self.count).div_ceil(2)
    }

    /// Whether the hand has nearly come to where the cleaner has looked.
    pub(crate) fn is_reserve_used_up(&self) -> bool {
        self.reserve() < reserve_of(self.count) / 4
    }

    /// Frames that the hand has passed so far; wraps around.
    pub(crate) fn position(&self) -> u32 {
        self.hand.load(Ordering::Relaxed)
    }

    /// The next frame for the cleaner to look at; `None` if the reserve is full.
    pub(crate) fn look_ahead(&self) -> Option<FrameNo> {
        let (hand, ahead) = (self.hand.load(Ordering::Relaxed), self.reserve());
        if reserve_of(self.count) <= ahead {
            return None;
        }
        let at = hand.wrapping_add(ahead);
        self.looked.store(at.wrapping_add(1), Ordering::Relaxed);
        Some(FrameNo(self.first + at % self.count))
    }

    /// Counts what the clock has found.
    pub(crate) fn note(&self, found: Found) {
        if found == Found::Hot {
            self.hot_count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
