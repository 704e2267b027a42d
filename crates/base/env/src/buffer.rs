//! A block-aligned byte buffer that a disk operation owns while the kernel works on it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment of buffers, offsets and lengths for `FileAccess::Direct`: the largest logical block
/// of the disks in use.
pub const DIRECT_ALIGNMENT_BYTES: usize = 4096;

/// Zeroed bytes whose address is a multiple of [`DIRECT_ALIGNMENT_BYTES`].
pub struct IoBuffer {
    /// Start of the allocation; owned by this value alone.
    start: NonNull<u8>,
    /// Bytes allocated; constant, never 0.
    length: usize,
}

impl IoBuffer {
    /// A buffer of `length` zero bytes.
    ///
    /// # Panics
    /// If `length` is 0 or larger than `isize::MAX` rounded to the alignment.
    pub fn zeroed(length: usize) -> Self {
        assert!(0 < length, "a disk buffer has bytes");
        let layout = layout(length);
        // SAFETY: the layout's size is not 0, asserted above.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        Self { start, length }
    }
}

fn layout(length: usize) -> Layout {
    Layout::from_size_align(length, DIRECT_ALIGNMENT_BYTES)
        .expect("the alignment is a power of two and lengths are far below isize::MAX")
}

impl Drop for IoBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this very layout and is freed once.
        unsafe { dealloc(self.start.as_ptr(), layout(self.length)) }
    }
}

impl Deref for IoBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `length` initialised bytes at `start` live as long as `self`, which is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for IoBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl fmt::Debug for IoBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoBuffer")
            .field("length", &self.length)
            .finish()
    }
}

// SAFETY: the buffer owns its bytes as a `Vec<u8>` would; nothing is shared or thread-bound.
unsafe impl Send for IoBuffer {}
// SAFETY: shared access gives only `&[u8]`.
unsafe impl Sync for IoBuffer {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_zeroed_aligned_and_writable() {
        let mut buffer = IoBuffer::zeroed(8192);
        assert_eq!(buffer.as_ptr().addr() % DIRECT_ALIGNMENT_BYTES, 0);
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer.fill(7);
        assert_eq!(buffer.len(), 8192);
        assert_eq!(buffer.last(), Some(&7));
    }
}
