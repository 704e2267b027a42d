//! Checked access to the bytes of a page that may change or be damaged while it is read.
//!
//! A page is read in two ways: under a latch as a slice, and optimistically as a run of atomics
//! that another worker may be writing. Both go through [`PageBytes`]. It checks every read against
//! the page's length and returns `None` past it. So a torn or damaged length can lead to a wrong
//! answer, but never to a panic. An optimistic reader validates the page's version before it uses
//! the answer; a latched reader reports damage.

use std::cmp::Ordering;

/// Bytes of one page; all integers are little-endian.
pub trait PageBytes {
    /// Bytes in the page.
    fn length(&self) -> usize;

    /// The byte at `offset`.
    fn u8_at(&self, offset: usize) -> Option<u8>;

    /// Two bytes at `offset`.
    fn u16_at(&self, offset: usize) -> Option<u16>;

    /// Four bytes at `offset`.
    fn u32_at(&self, offset: usize) -> Option<u32>;

    /// Eight bytes at `offset`.
    fn u64_at(&self, offset: usize) -> Option<u64>;

    /// Copies `out.len()` bytes from `offset`.
    fn copy_to(&self, offset: usize, out: &mut [u8]) -> Option<()>;

    /// Compares `length` bytes at `offset` with `other`, as byte strings.
    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Option<Ordering>;

    /// Appends `length` bytes from `offset` to `out`.
    fn append_to(&self, offset: usize, length: usize, out: &mut Vec<u8>) -> Option<()> {
        if self.length() < offset.checked_add(length)? {
            return None;
        }
        let start = out.len();
        out.resize(start + length, 0);
        self.copy_to(offset, out.get_mut(start..)?)
    }
}

impl PageBytes for [u8] {
    fn length(&self) -> usize {
        self.len()
    }

    #[inline]
    fn u8_at(&self, offset: usize) -> Option<u8> {
        self.get(offset).copied()
    }

    #[inline]
    fn u16_at(&self, offset: usize) -> Option<u16> {
        Some(u16::from_le_bytes(*self.get(offset..)?.first_chunk()?))
    }

    #[inline]
    fn u32_at(&self, offset: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.get(offset..)?.first_chunk()?))
    }

    #[inline]
    fn u64_at(&self, offset: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.get(offset..)?.first_chunk()?))
    }

    #[inline]
    fn copy_to(&self, offset: usize, out: &mut [u8]) -> Option<()> {
        out.copy_from_slice(self.get(offset..offset.checked_add(out.len())?)?);
        Some(())
    }

    #[inline]
    fn compare(&self, offset: usize, length: usize, other: &[u8]) -> Option<Ordering> {
        Some(self.get(offset..offset.checked_add(length)?)?.cmp(other))
    }
}

/// Writes `value` at `offset`; `None` if it does not fit.
pub(crate) fn put_u16(page: &mut [u8], offset: usize, value: u16) -> Option<()> {
    put(page, offset, &value.to_le_bytes())
}

/// Writes `bytes` at `offset`; `None` if they do not fit.
pub(crate) fn put(page: &mut [u8], offset: usize, bytes: &[u8]) -> Option<()> {
    page.get_mut(offset..offset.checked_add(bytes.len())?)?
        .copy_from_slice(bytes);
    Some(())
}
