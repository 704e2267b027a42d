//! Reading a page without a latch.
//!
//! Every byte is loaded atomically (relaxed) and copied. No reference to the page's bytes ever
//! exists, because another worker may be writing them ([`sync::ObservedBytes`]). What was read is
//! worthless until a later [`Optimistic::is_valid`] returns true. Lengths and offsets that were
//! read are checked against the page like any others.

use std::cmp::Ordering as Order;
use std::fmt;
use std::ptr::NonNull;

use format::PageId;
use format::page_bytes::PageBytes;
use stdx::planted::{Mistake, is_planted};
use sync::{LatchVersion, WORD_BYTES, copy_out, load_word};

use crate::frames::Frame;

/// A page that may change while it is read: see [`Optimistic::is_valid`]. Holds no latch.
#[derive(Clone, Copy)]
pub struct Optimistic<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) version: LatchVersion,
    /// Start of the frame's bytes; they live as long as `frame`.
    pub(crate) start: NonNull<u8>,
    pub(crate) length: usize,
    pub(crate) id: PageId,
}

impl Optimistic<'_> {
    /// The id of the page that was asked for.
    pub fn id(&self) -> PageId {
        self.id
    }

    /// Whether everything read so far was the page's, unchanged from the first read to now.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.frame.latch.validate(self.version) || is_planted(Mistake::TrustsChangedPages)
    }

    /// The 8 bytes of word `index`.
    #[inline]
    fn word(&self, index: usize) -> u64 {
        assert!(index < self.length / WORD_BYTES);
        // SAFETY: the frame has `length` bytes, so the word's 8 are inside. It is aligned to its
        // size, and lives as long as `frame`. Its writers have `ObservedBytes` (F1).
        unsafe { load_word(self.start, index) }
    }

    /// Up to 8 bytes at `offset` in the low part of a word; its other bytes are arbitrary.
    #[inline]
    fn unaligned(&self, offset: usize, count: usize) -> Option<u64> {
        if self.length < offset.checked_add(count)? {
            return None;
        }
        let (index, skip) = (offset / WORD_BYTES, offset % WORD_BYTES);
        let low = self.word(index) >> (skip * 8);
        if skip + count <= WORD_BYTES {
            return Some(low);
        }
        Some(low | (self.word(index + 1) << ((WORD_BYTES - skip) * 8)))
    }

    /// Calls `each` with the bytes from `offset` on, in pieces of at most 8, until it returns a
    /// value.
    #[inline]
    fn pieces<T>(
        &self,
        offset: usize,
        length: usize,
        mut each: impl FnMut(&[u8]) -> Option<T>,
    ) -> Option<Option<T>> {
        if self.length < offset.checked_add(length)? {
            return None;
        }
        let mut done = 0;
        while done < length {
            let count = WORD_BYTES.min(length - done);
            let word = self.unaligned(offset + done, count)?.to_le_bytes();
            if let Some(found) = each(word.get(..count)?) {
                return Some(Some(found));
            }
            done += count;
        }
        Some(None)
    }
}

impl PageBytes for Optimistic<'_> {
    fn length(&self) -> usize {
        self.length
    }

    #[inline]
    fn u8_at(&self, offset: usize) -> Option<u8> {
        self.unaligned(offset, 1).map(stdx::low_u8)
    }

    #[inline]
    fn u16_at(&self, offset: usize) -> Option<u16> {
        self.unaligned(offset, 2).map(stdx::low_u16)
    }

    #[inline]
    fn u32_at(&self, offset: usize) -> Option<u32> {
        self.unaligned(offset, 4).map(stdx::low_u32)
    }

    #[inline]
    fn u64_at(&self, offset: usize) -> Option<u64> {
        self.unaligned(offset, 8)
    }

    fn copy_to(&self, offset: usize, out: &mut [u8]) -> Option<()> {
        if self.length < offset.checked_add(out.len())? {
            return None;
        }
        // SAFETY: the frame has `length` bytes, in whole words, and lives as long as `frame`. Its
        // writers have `ObservedBytes` (F1), and `out` is the caller's own.
        unsafe { copy_out(self.start, offset, out) };
        Some(())
    }

    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Option<Order> {
        let mut rest = other;
        let found = self.pieces(offset, length, |piece| {
            let (with, behind) = rest.split_at(piece.len().min(rest.len()));
            rest = behind;
            let order = piece.cmp(with);
            (order != Order::Equal).then_some(order)
        })?;
        // All of the page's bytes were equal: `other` is longer or as long.
        Some(found.unwrap_or(if rest.is_empty() {
            Order::Equal
        } else {
            Order::Less
        }))
    }
}

impl fmt::Debug for Optimistic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Optimistic")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{FrameNo, Frames};
    use format::PageSize;
    use proptest::prelude::*;

    proptest! {
        /// The naive twin is the slice.
        #[test]
        fn reads_as_a_slice_does(
            seed in proptest::collection::vec(any::<u8>(), 64),
            offset in 0usize..4200,
            length in 0usize..1200,
            other in proptest::collection::vec(any::<u8>(), 0..80),
            same in 0usize..80,
        ) {
            let frames = Frames::new(2, PageSize::KiB4);
            let frame = frames.frame(FrameNo(1));
            // SAFETY: no other code knows the frames.
            let mut bytes = unsafe { frames.bytes_mut(FrameNo(1)) };
            let filling: Vec<u8> = seed.iter().copied().cycle().take(4096).collect();
            bytes.put(0, &filling).unwrap();
            let page = bytes.bytes();
            let version = frame.latch.optimistic().unwrap();
            let start = frames.address(FrameNo(1));
            let id = PageId::default();
            let optimistic = Optimistic { frame, version, start, length: 4096, id };
            prop_assert_eq!(optimistic.u8_at(offset), page.u8_at(offset));
            prop_assert_eq!(optimistic.u16_at(offset), page.u16_at(offset));
            prop_assert_eq!(optimistic.u32_at(offset), page.u32_at(offset));
            prop_assert_eq!(optimistic.u64_at(offset), page.u64_at(offset));
            prop_assert_eq!(optimistic.u64_at(usize::MAX), None);
            let (mut left, mut right) = (vec![0; length], vec![0; length]);
            let ours = optimistic.copy_to(offset, &mut left);
            prop_assert_eq!(ours, page_copy(page, offset, &mut right));
            prop_assert_eq!(left, right);
            let compare = |other: &[u8]| {
                (optimistic.compare(offset, length, other), page.compare(offset, length, other))
            };
            let (ours, theirs) = compare(&other);
            prop_assert_eq!(ours, theirs);
            if let Some(equal) = page.get(offset..offset + same) {
                let (ours, theirs) = compare(equal);
                prop_assert_eq!(ours, theirs);
            }
            prop_assert!(optimistic.is_valid());
        }
    }

    fn page_copy(page: &[u8], offset: usize, out: &mut [u8]) -> Option<()> {
        if page.len() < offset + out.len() {
            None
        } else {
            page.copy_to(offset, out)
        }
    }
}
