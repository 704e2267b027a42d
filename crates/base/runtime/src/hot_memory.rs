//! The memory that a task reads at its next poll, fetched into the cache while others run.
//!
//! A worker with thousands of clients finds each of them cold: a short statement then waits for
//! memory about as long as it computes. The run queue knows who is polled next. So the worker
//! prefetches the memory of a task some polls ahead, and those waits overlap with other work.
//!
//! A task says where its memory is ([`crate::note_hot`]). An address and a length are kept, never a
//! reference. A range that is out of date costs one useless prefetch.
//!
//! (P1) A range is written and read by the task's worker alone, so every access is relaxed.
//! (P2) No range is ever dereferenced. The processor ignores a prefetch of an unmapped address.

use std::task::Waker;

use sync::atomic::{AtomicU64, Ordering};

/// Ranges that a task may have: two cache lines of them.
const RANGE_COUNT: usize = 16;

/// Bytes of a cache line on the processors that Plateau runs on.
const LINE_BYTES: usize = 64;

/// Bits of a range that hold its number of lines; the index of its first line is above them.
const COUNT_BITS: u32 = 8;

/// Lines of one range at most. A session's future, the largest range, has 30.
const LINE_COUNT_MAX: usize = 64;

/// Lines of a task's header, which has some 200 bytes.
const HEADER_LINE_COUNT: usize = 4;

const _: () = assert!(LINE_COUNT_MAX < 1 << COUNT_BITS);

/// Which piece of a task's memory a range is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HotPlace {
    /// Its future.
    Future,
    /// The socket that it waits for.
    Socket,
    /// Numbered by the task itself, from 0 to [`OWN_PLACE_MAX`].
    Own(usize),
}

/// The last place that [`crate::note_hot`] takes.
pub(crate) const OWN_PLACE_MAX: usize = RANGE_COUNT - 3;

impl HotPlace {
    fn index(self) -> usize {
        match self {
            Self::Future => 0,
            Self::Socket => 1,
            Self::Own(place) => 2 + place,
        }
    }
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct HotMemory {
    /// Index of a range's first line, and its number of lines; 0: no range (P1).
    ranges: [AtomicU64; RANGE_COUNT],
}

impl HotMemory {
    /// Replaces a range by the memory of `value`.
    ///
    /// # Panics
    /// If `place` is beyond [`OWN_PLACE_MAX`].
    pub(crate) fn note<T: ?Sized>(&self, place: HotPlace, value: &T) {
        let (first, count) = lines_of(value);
        let range = stdx::to_u64(first) << COUNT_BITS | stdx::to_u64(count);
        self.ranges[place.index()].store(range, Ordering::Relaxed);
    }

    /// Prefetches all ranges.
    pub(crate) fn prefetch(&self) {
        for range in &self.ranges {
            let range = range.load(Ordering::Relaxed);
            let first = stdx::to_usize(range >> COUNT_BITS);
            let count = stdx::to_usize(range & ((1 << COUNT_BITS) - 1));
            prefetch_lines(first, count);
        }
    }
}

/// Prefetches the header of the task that a waker wakes. A waker of another kind costs some useless
/// prefetches.
pub(crate) fn prefetch_task_of(waker: &Waker) {
    prefetch_lines(waker.data().addr() / LINE_BYTES, HEADER_LINE_COUNT);
}

/// Prefetches the memory of `value`.
pub(crate) fn prefetch<T>(value: &T) {
    let (first, count) = lines_of(value);
    prefetch_lines(first, count);
}

/// The index of the first cache line of `value`, and how many it has.
fn lines_of<T: ?Sized>(value: &T) -> (usize, usize) {
    let bytes = size_of_val(value);
    let begin = std::ptr::from_ref(value).cast::<u8>().addr();
    let first = begin / LINE_BYTES;
    let end = (begin + bytes).div_ceil(LINE_BYTES);
    (first, (end - first).min(LINE_COUNT_MAX))
}

fn prefetch_lines(first: usize, count: usize) {
    for line in first..first + count {
        prefetch_line(line * LINE_BYTES);
    }
}

#[cfg(target_arch = "x86_64")]
fn prefetch_line(address: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let line = std::ptr::without_provenance::<i8>(address);
    // SAFETY: a prefetch reads and writes nothing that the program can observe, and it never
    // faults, whatever the address (P2). For speed: `docs/bench/quanta.md` has the numbers.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
}

/// Other processors have no stable intrinsic: their own prefetching must do.
#[cfg(not(target_arch = "x86_64"))]
fn prefetch_line(_address: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_lines_that_its_bytes_touch() {
        #[repr(align(64))]
        struct Aligned([u8; 192]);
        let value = Aligned([0; 192]);
        let first = lines_of(&value).0;
        let lines = |from: usize, to: usize| lines_of(&value.0[from..to]);
        assert_eq!(lines(0, 64), (first, 1));
        assert_eq!(lines(0, 65), (first, 2));
        assert_eq!(lines(63, 65), (first, 2));
        assert_eq!(lines(64, 192), (first + 1, 2));
        assert_eq!(lines(64, 64), (first + 1, 0));
    }

    #[test]
    fn a_range_is_cut_and_a_later_one_takes_its_place() {
        let hot = HotMemory::default();
        let large = vec![0_u8; (LINE_COUNT_MAX + 9) * LINE_BYTES];
        for place in [HotPlace::Future, HotPlace::Own(OWN_PLACE_MAX)] {
            hot.note(place, &large[..]);
            let range = hot.ranges[place.index()].load(Ordering::Relaxed);
            assert_eq!(stdx::to_usize(range & 0xff), LINE_COUNT_MAX);
            hot.note(place, &large[..1]);
            let range = hot.ranges[place.index()].load(Ordering::Relaxed);
            assert_eq!(range & 0xff, 1);
        }
        hot.prefetch();
        // The noted memory may be gone.
        drop(large);
        hot.prefetch();
    }
}
