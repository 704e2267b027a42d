//! The frames: preallocated memory for pages, each with a header of one cache line.
//! [`page_table`] finds them, [`share`] divides them among the workers, and [`dirty`] lists those
//! to be cleaned.
//!
//! The memory is never freed or moved, so an optimistic reader may read any frame at any time. At
//! worst it reads bytes of another page, and validation shows it.
//!
//! (F1) The bytes of a frame are written only by the holder of its exclusive latch. A frame from a
//! free list that is not in a page table yet may also be written by its owner.
//! (F2) `page` changes only under the exclusive latch.
//! (F3) A frame that is dirty (`rec_lsn` not 0) or being written is not evicted.
//! (F4) `rec_lsn` becomes non-zero under the exclusive latch. A cleaner that has marked the frame
//! as being written makes it zero under the shared latch. So a copy and the cleaning belong
//! together.

pub(crate) mod dirty;
pub(crate) mod page_table;
pub(crate) mod share;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;

use format::{Lsn, PageId, PageSize};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use sync::{HybridLatch, ObservedBytes};

/// `page` of a frame without a page.
const NO_PAGE: u64 = u64::MAX;

/// Heat of a page that the next pass of the clock evicts.
const HEAT_COLD: u8 = 0;
/// Heat of a page that was hot one pass ago.
const HEAT_WARM: u8 = 1;
/// Heat of a page that was used again in a later period than that of its arrival.
const HEAT_HOT: u8 = 2;
/// Heat of a page that was used in the period of its arrival alone, and that no clock has passed.
const HEAT_NEW: u8 = 3;
/// Heat of a page that has come in and was not used yet. Its first use makes it new.
const HEAT_LOADED: u8 = 4;
/// Heat of a page that has come back soon and was not used yet. Its first use makes it hot.
const HEAT_RETURNED: u8 = 5;
/// Heat of a page that the clock has passed before its first use: cold, but a use makes it new.
const HEAT_UNUSED: u8 = 6;

/// Alignment of the frames' memory: a huge page, which is more than direct I/O needs.
const MEMORY_ALIGNMENT: usize = 2 << 20;

const _: () = assert!(
    MEMORY_ALIGNMENT.is_multiple_of(PageSize::KiB32.bytes()),
    "each frame is aligned to its size"
);

/// The number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FrameNo(pub(crate) u32);

/// The pool's state of the page in a frame.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Frame {
    /// Guards the bytes (F1).
    pub(crate) latch: HybridLatch,
    /// [`PageId::to_word`], or `NO_PAGE` (F2).
    page: AtomicU64,
    /// Start of the first mini-transaction that is not in the file yet; 0 when clean (F4).
    rec_lsn: AtomicU64,
    /// Use since the clock passed; a hint. The states and transitions are in `crate::evict`.
    heat: AtomicU8,
    /// The period of its page's arrival, which is the first use; a hint.
    arrival: AtomicU8,
    /// Whether a copy is on its way to the file. Set and cleared by one cleaner at a time.
    is_writing: AtomicBool,
}

impl Frame {
    fn new() -> Self {
        Self {
            latch: HybridLatch::new(),
            page: AtomicU64::new(NO_PAGE),
            rec_lsn: AtomicU64::new(0),
            heat: AtomicU8::new(HEAT_COLD),
            arrival: AtomicU8::new(0),
            is_writing: AtomicBool::new(false),
        }
    }

    /// Whether it holds this page. Certain only under a latch or after validation.
    #[inline]
    pub(crate) fn holds(&self, id: PageId) -> bool {
        self.page.load(Ordering::Relaxed) == id.to_word()
    }

    /// Its page. Certain only under a latch.
    pub(crate) fn page(&self) -> Option<PageId> {
        let word = self.page.load(Ordering::Relaxed);
        (word != NO_PAGE).then(|| PageId::from_word(word))
    }

    /// Gives a page to a frame that has none, or takes it away.
    pub(crate) fn set_page(&self, id: Option<PageId>) {
        let word = id.map_or(NO_PAGE, PageId::to_word);
        assert_eq!(id.is_none(), word == NO_PAGE, "no page is named as none is");
        assert_ne!(
            self.page().is_some(),
            id.is_some(),
            "a page leaves before another comes"
        );
        // The latch's release and acquire order this store.
        self.page.store(word, Ordering::Relaxed);
    }

    /// The start of the oldest change that is not in the file.
    pub(crate) fn rec_lsn(&self) -> Option<Lsn> {
        // Acquire: checkpoints and eviction read it without a latch.
        let lsn = self.rec_lsn.load(Ordering::Acquire);
        (lsn != 0).then_some(Lsn(lsn))
    }

    pub(crate) fn set_rec_lsn(&self, lsn: Option<Lsn>) {
        assert_ne!(lsn, Some(Lsn::ZERO), "0 is the mark of a clean page (F4)");
        // Release pairs with the acquire above.
        self.rec_lsn
            .store(lsn.map_or(0, |lsn| lsn.0), Ordering::Release);
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Acquire)
    }

    /// Whether nothing has to go to the file, and nothing is on its way there.
    pub(crate) fn is_clean(&self) -> bool {
        self.rec_lsn().is_none() && !self.is_writing()
    }

    /// Marks it as being written, unless it is already. The caller holds the shared latch.
    pub(crate) fn begin_writing(&self) -> bool {
        // Acquire pairs with the release below: the page's last write is done.
        let marked =
            self.is_writing
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed);
        marked.is_ok()
    }

    /// Its write is done, or was not begun.
    pub(crate) fn end_writing(&self) {
        // Release: a thread that sees it cleared may evict the page and read the file again.
        let was_writing = self.is_writing.swap(false, Ordering::Release);
        assert!(was_writing, "a page is written once at a time");
    }

    /// Notes a use; writes only if something changes.
    #[inline]
    pub(crate) fn touch(&self, periods: &Periods) {
        if self.heat.load(Ordering::Relaxed) != HEAT_HOT {
            self.touch_cooler(periods);
        }
    }

    /// The uses of a page in the period of its arrival belong to what brought it in, perhaps a
    /// scan. They do not predict later uses. A page arrives with its first use: until then it may
    /// have waited for other pages of one read, or for the reader's turn.
    #[inline(never)]
    fn touch_cooler(&self, periods: &Periods) {
        let present = periods.present();
        let heat = match self.heat.load(Ordering::Relaxed) {
            HEAT_LOADED | HEAT_UNUSED => HEAT_NEW,
            HEAT_RETURNED => HEAT_HOT,
            _ if self.arrival.load(Ordering::Relaxed) != present => HEAT_HOT,
            _ => return,
        };
        self.arrival.store(present, Ordering::Relaxed);
        self.heat.store(heat, Ordering::Relaxed);
    }

    /// A page has come in. It may have been here before and left at `left_at`.
    pub(crate) fn set_loaded(&self, periods: &Periods, left_at: Option<u32>) {
        let is_back_soon = left_at.is_some_and(|at| periods.is_soon_after(at));
        let heat = if is_back_soon {
            HEAT_RETURNED
        } else {
            HEAT_LOADED
        };
        periods.note_arrival();
        self.heat.store(heat, Ordering::Relaxed);
    }

    /// Whether a cleaner or the clock may take it next.
    pub(crate) fn is_cold(&self) -> bool {
        matches!(self.heat.load(Ordering::Relaxed), HEAT_COLD | HEAT_UNUSED)
    }

    /// The clock passes. Returns the heat that it found.
    pub(crate) fn pass(&self, hot_pages: HotPages) -> Found {
        let (cooler, found) = match (self.heat.load(Ordering::Relaxed), hot_pages) {
            (HEAT_COLD | HEAT_UNUSED, _) => return Found::Cold,
            (HEAT_HOT, HotPages::Stay) => return Found::Hot,
            (HEAT_HOT, HotPages::Cool) => (HEAT_WARM, Found::Hot),
            (HEAT_LOADED | HEAT_RETURNED, _) => (HEAT_UNUSED, Found::Cooling),
            // It was new or warm.
            _ => (HEAT_COLD, Found::Cooling),
        };
        self.heat.store(cooler, Ordering::Relaxed);
        found
    }
}

/// Whether a pass of the clock leaves hot pages hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HotPages {
    /// They are not too many.
    Stay,
    /// They take more than their part.
    Cool,
}

/// The heat that a pass of the clock finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It was used again since it came in.
    Hot,
    /// It will be cold in the next pass.
    Cooling,
    /// It may be evicted.
    Cold,
}

/// A period is as many arrivals as all frames divided by this.
const PERIOD_SHARE: u32 = 8;

/// Hot pages stay hot while they take at most this many eighths of the frames.
pub(crate) const HOT_EIGHTHS: u32 = 5;

const _: () = assert!(HOT_EIGHTHS < 8, "hot pages leave room for others");

/// Periods separate the uses of a page that belong together from a later use. A period ends when an
/// eighth of the frames have got another page, or about a second after it began while pages are
/// changed ([`crate::Pages::end_period`]).
#[derive(Debug)]
pub(crate) struct Periods {
    /// The present period; wraps around. A page that was first used exactly 256 periods ago looks
    /// new, which costs it one period.
    present: AtomicU8,
    /// Pages that have come in so far; wraps around.
    arrivals: AtomicU32,
    /// Arrivals in a period. Constant.
    length: u32,
}

impl Periods {
    pub(crate) fn new(frame_count: u32) -> Self {
        Self {
            present: AtomicU8::new(0),
            arrivals: AtomicU32::new(0),
            length: (frame_count / PERIOD_SHARE).max(1),
        }
    }

    fn present(&self) -> u8 {
        self.present.load(Ordering::Relaxed)
    }

    /// Pages that have come in so far; wraps around.
    pub(crate) fn arrivals(&self) -> u32 {
        self.arrivals.load(Ordering::Relaxed)
    }

    /// Whether a page left so recently that it would have stayed with the hot pages' room.
    /// `left_at` lacks its top bit.
    fn is_soon_after(&self, left_at: u32) -> bool {
        let since = self.arrivals().wrapping_sub(left_at) << 1 >> 1;
        since <= self.length.saturating_mul(HOT_EIGHTHS)
    }

    /// Counts a page that comes in.
    fn note_arrival(&self) {
        let before = self.arrivals.fetch_add(1, Ordering::Relaxed);
        if before % self.length == self.length - 1 {
            self.end();
        }
    }

    /// Begins another period.
    pub(crate) fn end(&self) {
        self.present.fetch_add(1, Ordering::Relaxed);
    }
}

/// Asks for huge pages. Otherwise a row that is read at random misses the TLB, which costs a tenth
/// of a short statement. A kernel without huge pages serves small ones.
fn advise_huge_pages(memory: NonNull<u8>, bytes: usize) {
    let advice = Advice::LinuxHugepage;
    // SAFETY: the caller allocated `bytes` from `memory` on; the advice changes no byte of them.
    let _: Result<(), Errno> = unsafe { madvise(memory.as_ptr().cast(), bytes, advice) };
}

/// All frames of a pool and their memory.
pub(crate) struct Frames {
    headers: Box<[Frame]>,
    /// Start of the aligned memory inside the allocation. Constant.
    memory: NonNull<u8>,
    /// The allocation; freed on drop. Constant.
    allocation: NonNull<u8>,
    layout: Layout,
    page_size: PageSize,
}

// SAFETY: the memory is owned by this value; access to it follows F1, which latches enforce.
unsafe impl Send for Frames {}
// SAFETY: as above; shared access to bytes goes through latches or atomic loads.
unsafe impl Sync for Frames {}

impl Frames {
    /// `count` empty frames.
    pub(crate) fn new(count: u32, page_size: PageSize) -> Self {
        assert!(0 < count);
        let count = stdx::to_usize(count);
        let bytes = count * page_size.bytes() + MEMORY_ALIGNMENT;
        // A small alignment lets the allocator hand out fresh zero pages untouched.
        let layout = Layout::from_size_align(bytes, 16).expect("a pool is smaller than isize::MAX");
        // SAFETY: the layout has a size above 0.
        let allocation = unsafe { alloc_zeroed(layout) };
        let Some(allocation) = NonNull::new(allocation) else {
            handle_alloc_error(layout)
        };
        let shift = allocation.addr().get().wrapping_neg() % MEMORY_ALIGNMENT;
        // SAFETY: `shift` is below MEMORY_ALIGNMENT, which was allocated in addition.
        let memory = unsafe { allocation.add(shift) };
        advise_huge_pages(memory, layout.size() - MEMORY_ALIGNMENT);
        let headers = (0..count).map(|_| Frame::new()).collect();
        Self {
            headers,
            memory,
            allocation,
            layout,
            page_size,
        }
    }

    pub(crate) fn count(&self) -> u32 {
        stdx::to_u32(self.headers.len())
    }

    #[inline]
    pub(crate) fn frame(&self, no: FrameNo) -> &Frame {
        self.headers
            .get(stdx::to_usize(no.0))
            .expect("frame numbers are below their count")
    }

    /// Address of a frame's bytes; `page_size` bytes may be accessed there, under F1.
    #[inline]
    pub(crate) fn address(&self, no: FrameNo) -> NonNull<u8> {
        let at = stdx::to_usize(no.0);
        assert!(at < self.headers.len());
        // SAFETY: the memory has `page_size` bytes for each header.
        unsafe { self.memory.add(at * self.page_size.bytes()) }
    }

    /// The bytes of a frame.
    ///
    /// # Safety
    /// The caller holds the frame's latch, shared or exclusive, as long as the slice lives, and no
    /// exclusive slice of it exists.
    pub(crate) unsafe fn bytes<'a>(&self, no: FrameNo) -> &'a [u8] {
        let start = self.address(no).as_ptr();
        // SAFETY: `page_size` initialised bytes that no thread writes, by the caller's promise; the
        // memory outlives the latch, which outlives the slice.
        unsafe { std::slice::from_raw_parts(start, self.page_size.bytes()) }
    }

    /// The bytes of a frame, for writing. Optimistic readers may load them at the same time.
    ///
    /// # Safety
    /// The caller holds the frame's exclusive latch, or took the frame from a free list, as long as
    /// the result lives. No slice of it, and no other result of this, exists meanwhile.
    pub(crate) unsafe fn bytes_mut<'a>(&self, no: FrameNo) -> ObservedBytes<'a> {
        // SAFETY: `page_size` initialised bytes that this caller alone writes (F1); the memory
        // outlives the latch. Others load words of them, as `Optimistic` does.
        unsafe { ObservedBytes::new(self.address(no), self.page_size.bytes()) }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once; guards borrow the pool.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames")
            .field("count", &self.headers.len())
            .finish_non_exhaustive()
    }
}

/// Tries for a latch before the caller gives up. A holder needs longer only if its thread was
/// preempted.
const LATCH_TRIES: usize = 100;

/// Tries for a latch, for a while.
pub(crate) fn spin<T>(attempt: impl Fn() -> Option<T>) -> Option<T> {
    for _ in 0..LATCH_TRIES {
        let done = attempt();
        if done.is_some() {
            return done;
        }
        std::hint::spin_loop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_aligned_and_apart() {
        let frames = Frames::new(3, PageSize::KiB4);
        assert_eq!(size_of::<Frame>(), 64);
        for no in 0..3 {
            let no = FrameNo(no);
            assert_eq!(frames.address(no).addr().get() % 4096, 0);
            assert!(frames.frame(no).latch.try_exclusive());
            // SAFETY: the latch is held and no slice exists.
            let mut page = unsafe { frames.bytes_mut(no) };
            assert!(page.bytes().iter().all(|&byte| byte == 0));
            page.put(0, &[9; 4096]).unwrap();
        }
    }

    #[test]
    fn only_a_use_in_a_later_period_heats_a_page() {
        let (frame, periods) = (Frame::new(), Periods::new(80));
        frame.set_loaded(&periods, None);
        frame.touch(&periods);
        assert_eq!(frame.pass(HotPages::Cool), Found::Cooling);
        frame.touch(&periods);
        assert_eq!(frame.pass(HotPages::Cool), Found::Cold);
        periods.end();
        frame.touch(&periods);
        assert_eq!(frame.pass(HotPages::Stay), Found::Hot);
        assert_eq!(frame.pass(HotPages::Cool), Found::Hot);
        assert_eq!(frame.pass(HotPages::Stay), Found::Cooling);
        assert!(frame.is_cold());
    }

    /// It may come in long before: what counts is what happens from the first use on.
    #[test]
    fn the_first_use_of_a_page_does_not_heat_it() {
        for passes in [0, 1] {
            let (frame, periods) = (Frame::new(), Periods::new(80));
            frame.set_loaded(&periods, None);
            for _ in 0..passes {
                assert_eq!(frame.pass(HotPages::Stay), Found::Cooling);
                assert!(frame.is_cold());
            }
            periods.end();
            for _ in 0..2 {
                frame.touch(&periods);
                assert!(!frame.is_cold(), "it came in with this use");
            }
            assert_eq!(frame.pass(HotPages::Stay), Found::Cooling);
            periods.end();
            frame.touch(&periods);
            assert_eq!(frame.pass(HotPages::Stay), Found::Hot);
        }
    }

    /// Neither does it stay if it comes back and is never used.
    #[test]
    fn a_page_without_a_use_is_taken_in_the_second_pass() {
        for left_at in [None, Some(0)] {
            let (frame, periods) = (Frame::new(), Periods::new(80));
            frame.set_loaded(&periods, left_at);
            periods.end();
            assert_eq!(frame.pass(HotPages::Stay), Found::Cooling);
            assert_eq!(frame.pass(HotPages::Stay), Found::Cold);
        }
    }

    #[test]
    fn a_page_that_comes_back_soon_is_hot() {
        let frame = Frame::new();
        for (later, found) in [(50, Found::Hot), (51, Found::Cooling)] {
            let periods = Periods::new(80);
            periods.arrivals.store(u32::MAX - 20, Ordering::Relaxed);
            // The page table keeps 31 bits.
            let left_at = periods.arrivals() & (u32::MAX >> 1);
            for _ in 0..later {
                periods.note_arrival();
            }
            frame.set_loaded(&periods, Some(left_at));
            frame.touch(&periods);
            assert_eq!(frame.pass(HotPages::Stay), found);
        }
    }

    #[test]
    fn an_eighth_of_the_frames_makes_a_period() {
        let periods = Periods::new(80);
        for _ in 0..9 {
            periods.note_arrival();
            assert_eq!(periods.present(), 0);
        }
        periods.note_arrival();
        assert_eq!(periods.present(), 1);
        // A pool of few frames has a period for each page.
        let periods = Periods::new(4);
        periods.note_arrival();
        assert_eq!(periods.present(), 1);
    }
}
