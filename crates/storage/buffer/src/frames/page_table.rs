//! From a page's number to its frame: one array for each tablespace, grown by doubling.
//!
//! Bucket *k* holds the entries of the next `256 * 2^k` pages. It is made when the first of them is
//! touched, and never moved. So a look-up is two loads and readers need no protection. An entry is
//! a frame number plus one; or 0; or `LEFT` and the time when the page left memory, so that the
//! pool sees if the page comes back soon.

use std::sync::OnceLock;

use format::PageNo;
use sync::atomic::{AtomicU32, Ordering};

use crate::frames::FrameNo;

/// Entries of the first bucket.
const FIRST_BUCKET_BITS: u32 = 8;
/// Buckets for all 32-bit page numbers.
const BUCKET_COUNT: usize = 25;

const _: () = assert!(
    u32::MAX as u64 <= ((1 << BUCKET_COUNT) - 1) << FIRST_BUCKET_BITS,
    "each page number has a place"
);

/// Marks an entry that is no frame; the bits below hold the time when the page left.
const LEFT: u32 = 1 << 31;

/// Frames that entries can name.
pub(crate) const FRAMES_MAX: u32 = LEFT - 2;

/// The table of one tablespace. Shared by all workers.
#[derive(Debug)]
pub(crate) struct PageTable {
    buckets: [OnceLock<Box<[AtomicU32]>>; BUCKET_COUNT],
}

/// Bucket of a page, and index in it.
fn place(page: PageNo) -> (usize, usize) {
    let shifted = u64::from(page.0) + (1 << FIRST_BUCKET_BITS);
    let top = shifted.ilog2();
    let index = shifted - (1 << top);
    (
        stdx::to_usize(top - FIRST_BUCKET_BITS),
        stdx::to_usize(index),
    )
}

impl PageTable {
    pub(crate) fn new() -> Self {
        Self {
            buckets: [const { OnceLock::new() }; BUCKET_COUNT],
        }
    }

    /// The frame that held the page a moment ago. The caller checks it under its latch.
    #[inline]
    pub(crate) fn frame_of(&self, page: PageNo) -> Option<FrameNo> {
        let (bucket, index) = place(page);
        let bucket = self.buckets.get(bucket)?.get()?;
        // Acquire: a thread that finds the frame here sees its contents.
        let frame = bucket.get(index)?.load(Ordering::Acquire).wrapping_sub(1);
        // Excludes 0, `LEFT` and all above, which are not below this now.
        (frame < LEFT - 1).then_some(FrameNo(frame))
    }

    /// The time passed to [`PageTable::set_left`] when the page left memory, without the top bit.
    pub(crate) fn left_at(&self, page: PageNo) -> Option<u32> {
        let (bucket, index) = place(page);
        let bucket = self.buckets.get(bucket)?.get()?;
        // Relaxed: a hint.
        let entry = bucket.get(index)?.load(Ordering::Relaxed);
        entry.checked_sub(LEFT)
    }

    /// Sets the frame that holds the page now.
    pub(crate) fn set(&self, page: PageNo, frame: FrameNo) {
        assert!(frame.0 < FRAMES_MAX);
        self.put(page, frame.0 + 1);
    }

    /// Notes that the page has left memory, and when.
    pub(crate) fn set_left(&self, page: PageNo, at: u32) {
        self.put(page, LEFT | at);
    }

    fn put(&self, page: PageNo, word: u32) {
        let (bucket, index) = place(page);
        let length = 1usize << (stdx::to_u32(bucket) + FIRST_BUCKET_BITS);
        let bucket = self
            .buckets
            .get(bucket)
            .expect("a place is inside the table");
        let bucket = bucket.get_or_init(|| (0..length).map(|_| AtomicU32::new(0)).collect());
        let entry = bucket.get(index).expect("a place is inside the table");
        // Release pairs with the acquire in `frame_of`.
        entry.store(word, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_dense_and_apart() {
        assert_eq!(place(PageNo(0)), (0, 0));
        assert_eq!(place(PageNo(255)), (0, 255));
        assert_eq!(place(PageNo(256)), (1, 0));
        assert_eq!(place(PageNo(767)), (1, 511));
        assert_eq!(place(PageNo(768)), (2, 0));
        assert_eq!(place(PageNo(u32::MAX)).0, BUCKET_COUNT - 1);
    }

    #[test]
    fn entries_are_kept_apart() {
        let table = PageTable::new();
        for page in (0..3000).step_by(7) {
            assert_eq!(table.frame_of(PageNo(page)), None);
            assert_eq!(table.left_at(PageNo(page)), None);
            table.set(PageNo(page), FrameNo(page));
        }
        for page in 0..3000 {
            let expected = (page % 7 == 0).then_some(FrameNo(page));
            assert_eq!(table.frame_of(PageNo(page)), expected);
        }
        for at in [0, 1, LEFT - 1, LEFT, u32::MAX] {
            table.set_left(PageNo(7), at);
            assert_eq!(table.frame_of(PageNo(7)), None);
            assert_eq!(table.left_at(PageNo(7)), Some(at % LEFT));
        }
        table.set(PageNo(7), FrameNo(FRAMES_MAX - 1));
        assert_eq!(table.frame_of(PageNo(7)), Some(FrameNo(FRAMES_MAX - 1)));
        assert_eq!(table.left_at(PageNo(7)), None);
    }
}
