//! Free frames and eviction: a clock over each worker's share.
//!
//! Only clean pages are evicted here. Dirty ones wait for the cleaner, which this wakes.
//!
//! A page is *loaded* when it has come in, and *new* with its first use. The next pass of the clock
//! makes it *cold*, and the one after that evicts it. A use makes it *hot*, but only in a later
//! period than that of the first, because a scan uses each page many times at once and never again.
//! Hot pages stay while they are at most five eighths of a share. So a scan of any length evicts
//! only its own pages and other cold ones. If there are more hot pages, a pass makes them *warm*,
//! and the next one cold.
//!
//! The first use counts as the arrival, whenever the page came in. A page that is read ahead waits
//! for the others of its read, and for the scan to reach it. If that made it hot, a scan would push
//! out what is used again and again. A page without a use goes as a cold one (*unused*).
//!
//! A page that comes back soon is *returned*, and hot with its first use: it would have stayed if
//! hot pages had left it room. *Soon* means before as many pages came in as may be hot; the page
//! table keeps when a page left. So pages that are used in a circle longer than three eighths of
//! the pool become hot as well, and unused hot pages make room. A scan of more pages than the pool
//! has does not come back so soon.
//!
//! The transitions, by functions of [`Frame`](crate::frames::Frame); `set_loaded` makes each page
//! *loaded* or *returned*:
//!
//! | from | `touch` in the same period | `touch` later | `pass`, few hot | `pass`, many hot |
//! |---|---|---|---|---|
//! | loaded | new | new | unused | unused |
//! | returned | hot | hot | unused | unused |
//! | unused | new | new | taken | taken |
//! | new | new | hot | cold | cold |
//! | cold | cold | hot | taken | taken |
//! | warm | warm | hot | cold | cold |
//! | hot | hot | hot | hot | warm |
//!
//! A search that finds nothing cold in a pass over its own share passes over the others' shares
//! before its own again. Otherwise it would cool its own pages until one is evicted. If all but one
//! of the share's frames were dirty, a step that needs two pages would never have both. Each would
//! evict the other, and the cleaner would not be woken.
//!
//! All passes over a large pool take long, so a search is cut into turns. After [`LOOKS_PER_TURN`]
//! frames other tasks run, and the worker's next search for a frame continues it.

use std::cell::Cell;

use format::PageId;
use sync::atomic::Ordering;

use crate::frames::share::{RESERVE_MAX, Share};
use crate::frames::{Found, FrameNo};
use crate::pool::Pool;

/// Passes until a hot page is evicted at the latest. In the first, the share's hot pages are
/// counted to the end of a lap. In the second they are found too many. In the third the page may be
/// met for the first time since then. After the fourth it is cold.
const PASSES: u32 = 5;

/// Frames of a share that are checked while the cleaner is awaited: more would only repeat the work
/// of other searches.
const SHORT_SEARCH: u32 = 64;

const _: () = assert!(PASSES <= SHORT_SEARCH, "each pass checks a frame");

/// Frames that are checked before other tasks run, here and by the cleaner: some 200 us if their
/// headers are in no cache.
pub(crate) const LOOKS_PER_TURN: u32 = 4096;

const _: () = assert!(
    RESERVE_MAX <= LOOKS_PER_TURN,
    "a look at a reserve is short"
);

/// The progress of a worker's search for a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Search {
    /// Shares that were passed over; each pass counts all workers' shares.
    share_count: usize,
    /// Frames checked in the next share.
    looked_count: u32,
}

/// The result of one turn of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A frame without a page, for the caller alone.
    Frame(FrameNo),
    /// The search is not at its end.
    Later,
    /// Every page is dirty or in use.
    Nothing,
}

impl Pool {
    /// Searches for a frame; `search` is the worker's own.
    pub(crate) fn take_frame(&self, worker: usize, search: &Cell<Search>) -> Taken {
        let is_known_short = self.wants_frames.load(Ordering::SeqCst);
        let share_looks = if is_known_short {
            SHORT_SEARCH / PASSES
        } else {
            u32::MAX
        };
        // From the start, unless this turn is too short.
        let mut at = search.take();
        let mut rest = LOOKS_PER_TURN;
        while at.share_count < stdx::to_usize(PASSES) * self.shares.len() {
            let share = (worker + at.share_count) % self.shares.len();
            let share = self.shares.get(share).expect("an index below their count");
            let share_looks = share.count.min(share_looks);
            let looks = share_looks.saturating_sub(at.looked_count).min(rest);
            if let Some(frame) = self.pass(share, looks) {
                return Taken::Frame(frame);
            }
            rest -= looks;
            at.looked_count += looks;
            if at.looked_count < share_looks {
                search.set(at);
                return Taken::Later;
            }
            at = Search {
                share_count: at.share_count + 1,
                looked_count: 0,
            };
        }
        Taken::Nothing
    }

    /// Notes that a task waits for a frame of this worker: the cleaners hurry, searches are short,
    /// and nothing is read ahead. A search that is only a hint does not call it.
    pub(crate) fn note_shortage(&self, worker: usize) {
        self.wants_frames.store(true, Ordering::SeqCst);
        self.call_house(worker);
    }

    /// Returns a free frame of a share, or that of a cold page among the next `looks`.
    fn pass(&self, share: &Share, looks: u32) -> Option<FrameNo> {
        if let Some(no) = share.free.lock().pop() {
            assert!(self.frame(no).page().is_none(), "a free frame has no page");
            return Some(no);
        }
        (0..looks).find_map(|_| {
            let (no, hot_pages) = share.advance();
            let frame = self.frame(no);
            frame.page()?;
            // Dirty pages are passed as well: the cleaner looks for cold ones.
            let found = frame.pass(hot_pages);
            share.note(found);
            (found == Found::Cold && self.evict(no)).then_some(no)
        })
    }

    /// Evicts the page of a frame if it is clean.
    pub(crate) fn evict(&self, no: FrameNo) -> bool {
        let frame = self.frame(no);
        let is_busy = || !frame.is_clean();
        if frame.page().is_none() || is_busy() || !frame.latch.try_exclusive() {
            return false;
        }
        let page = frame.page().filter(|_| !is_busy());
        if let Some(id) = page {
            self.forget(id, no);
            frame.set_page(None);
        }
        frame.latch.unlock_exclusive();
        page.is_some()
    }

    /// Takes a page out of the table; `no` is the frame that it leaves.
    fn forget(&self, id: PageId, no: FrameNo) {
        // A dropped tablespace has no page table to update.
        if let Some(space) = self.spaces.get(id.space) {
            assert_eq!(
                space.table.frame_of(id.page),
                Some(no),
                "the table leads to the page's only frame"
            );
            space.table.set_left(id.page, self.periods.arrivals());
        }
    }

    /// Returns a frame without a page to the free list.
    pub(crate) fn free_frame(&self, worker: usize, frame: FrameNo) {
        assert!(self.frame(frame).page().is_none());
        assert!(
            self.frame(frame).is_clean(),
            "no change is lost with a frame (F3)"
        );
        let share = self
            .shares
            .get(worker)
            .expect("a worker's number is below their count");
        share.free.lock().push(frame);
        self.wake_frame_waiters();
    }
}
