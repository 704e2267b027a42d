//! Checked access to the bytes of a page that may change or be damaged while it is read.
//!
//! A page is read in two ways: under a latch as a slice, and optimistically as a run of atomics
//! that another worker may be writing. Both go through [`PageBytes`]. It checks every read against
//! the page's length and returns `None` past it. So a torn or damaged length can lead to a wrong
//! answer, but never to a panic. An optimistic reader validates the page's version before it uses
//! the answer; a latched reader reports damage. Pages are written through [`PageBytesMut`], which
//! stores atomically where such readers may be.

use std::cmp::Ordering;
use std::ops::Range;

use sync::ObservedBytes;

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

/// Bytes of one page that the caller changes: a page of its own, or one in memory that optimistic
/// readers may be reading.
pub trait PageBytesMut {
    /// The whole page.
    fn bytes(&self) -> &[u8];

    /// Writes `bytes` at `offset`; `None` if they do not fit.
    fn put(&mut self, offset: usize, bytes: &[u8]) -> Option<()>;

    /// Sets `length` bytes from `offset` on to zero; `None` if there are not so many.
    fn clear(&mut self, offset: usize, length: usize) -> Option<()>;

    /// Copies `from` to `offset`, which may be inside; `None` if one of them leaves the page.
    fn move_within(&mut self, from: Range<usize>, offset: usize) -> Option<()>;

    /// Writes `value` at `offset`; `None` if it does not fit.
    #[inline]
    fn put_u16(&mut self, offset: usize, value: u16) -> Option<()> {
        self.put(offset, &value.to_le_bytes())
    }
}

impl PageBytesMut for [u8] {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }

    #[inline]
    fn put(&mut self, offset: usize, bytes: &[u8]) -> Option<()> {
        self.get_mut(offset..offset.checked_add(bytes.len())?)?
            .copy_from_slice(bytes);
        Some(())
    }

    fn clear(&mut self, offset: usize, length: usize) -> Option<()> {
        self.get_mut(offset..offset.checked_add(length)?)?.fill(0);
        Some(())
    }

    fn move_within(&mut self, from: Range<usize>, offset: usize) -> Option<()> {
        self.get(from.clone())?;
        self.get(offset..offset.checked_add(from.len())?)?;
        self.copy_within(from, offset);
        Some(())
    }
}

impl PageBytesMut for ObservedBytes<'_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }

    #[inline]
    fn put(&mut self, offset: usize, bytes: &[u8]) -> Option<()> {
        self.put(offset, bytes)
    }

    #[inline]
    fn clear(&mut self, offset: usize, length: usize) -> Option<()> {
        self.clear(offset, length)
    }

    #[inline]
    fn move_within(&mut self, from: Range<usize>, offset: usize) -> Option<()> {
        self.copy_within(from, offset)
    }
}
