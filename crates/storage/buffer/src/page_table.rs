//! From a page's number to its frame: one array for each tablespace, grown by doubling.
//!
//! Bucket *k* holds the entries of the next `256 * 2^k` pages, made when the first of them is
//! touched and never moved, so a look-up is two loads and readers need no protection. An entry is
//! a frame number plus one, or 0.

use std::sync::OnceLock;

use format::PageNo;
use sync::atomic::{AtomicU32, Ordering};

use crate::frames::FrameNo;

/// Entries of the first bucket.
const FIRST_BUCKET_BITS: u32 = 8;
/// Buckets for all 32-bit page numbers.
const BUCKET_COUNT: usize = 25;

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

    /// The frame that held the page a moment ago: to be checked under its latch.
    #[inline]
    pub(crate) fn frame_of(&self, page: PageNo) -> Option<FrameNo> {
        let (bucket, index) = place(page);
        let bucket = self.buckets.get(bucket)?.get()?;
        // Acquire: the frame's contents are seen by who finds it here.
        let entry = bucket.get(index)?.load(Ordering::Acquire);
        entry.checked_sub(1).map(FrameNo)
    }

    /// Says where the page is now.
    pub(crate) fn set(&self, page: PageNo, frame: Option<FrameNo>) {
        let (bucket, index) = place(page);
        let length = 1usize << (stdx::to_u32(bucket) + FIRST_BUCKET_BITS);
        let bucket = self
            .buckets
            .get(bucket)
            .expect("a place is inside the table");
        let bucket = bucket.get_or_init(|| (0..length).map(|_| AtomicU32::new(0)).collect());
        let entry = bucket.get(index).expect("a place is inside the table");
        // Release pairs with the acquire in `frame_of`.
        entry.store(frame.map_or(0, |frame| frame.0 + 1), Ordering::Release);
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
            table.set(PageNo(page), Some(FrameNo(page)));
        }
        for page in 0..3000 {
            let expected = (page % 7 == 0).then_some(FrameNo(page));
            assert_eq!(table.frame_of(PageNo(page)), expected);
        }
        table.set(PageNo(7), None);
        assert_eq!(table.frame_of(PageNo(7)), None);
    }
}
