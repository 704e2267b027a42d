//! Bytes received from a peer, lent by the worker.

pub(crate) mod ring;

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use ring::RingBytes;

/// What one receive brought. The buffer returns to the worker when this is dropped. Empty: the peer
/// will send no more.
pub struct ReceivedBytes {
    storage: Storage,
}

enum Storage {
    /// No bytes, no buffer.
    Empty,
    /// The first `length` bytes of a buffer of the pool.
    Pooled {
        pool: Rc<BufferPool>,
        buffer: Box<[u8]>,
        length: usize,
    },
    /// A buffer of the kernel's ring.
    Ring(RingBytes),
    /// Few bytes. A request that waits for its turn then lies beside its socket, and holds neither
    /// a buffer nor an allocation.
    Inline {
        bytes: [u8; INLINE_BYTES],
        length: u8,
    },
    /// A copy of exactly the received bytes.
    Copied(Box<[u8]>),
}

impl ReceivedBytes {
    /// The end of what the peer sends.
    pub(crate) fn empty() -> Self {
        Self {
            storage: Storage::Empty,
        }
    }

    /// The first `length` bytes of a buffer that came from `pool`.
    pub(crate) fn pooled(pool: Rc<BufferPool>, buffer: Box<[u8]>, length: usize) -> Self {
        assert!(length <= buffer.len(), "a receive stays within its buffer");
        Self {
            storage: Storage::Pooled {
                pool,
                buffer,
                length,
            },
        }
    }

    /// A buffer that the kernel took from the worker's ring and filled.
    pub(crate) fn ring(bytes: RingBytes) -> Self {
        Self {
            storage: Storage::Ring(bytes),
        }
    }
}

impl ReceivedBytes {
    /// A copy of the received bytes, which holds no buffer of the worker.
    pub(crate) fn copied(bytes: &[u8]) -> Self {
        let storage = match u8::try_from(bytes.len()) {
            Ok(length) if bytes.len() <= INLINE_BYTES => {
                let mut inline = [0; INLINE_BYTES];
                inline[..bytes.len()].copy_from_slice(bytes);
                let bytes = inline;
                Storage::Inline { bytes, length }
            }
            _ => Storage::Copied(bytes.into()),
        };
        Self { storage }
    }
}

impl Deref for ReceivedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.storage {
            Storage::Empty => &[],
            Storage::Pooled { buffer, length, .. } => &buffer[..*length],
            Storage::Ring(bytes) => bytes,
            Storage::Inline { bytes, length } => &bytes[..usize::from(*length)],
            Storage::Copied(bytes) => bytes,
        }
    }
}

impl Drop for ReceivedBytes {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.storage, Storage::Empty) {
            Storage::Pooled { pool, buffer, .. } => pool.give_back(buffer),
            // A ring's buffer returns by itself.
            Storage::Empty | Storage::Ring(_) | Storage::Inline { .. } | Storage::Copied(_) => {}
        }
    }
}

impl fmt::Debug for ReceivedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedBytes")
            .field("length", &self.len())
            .finish()
    }
}

/// Bytes that are kept without an allocation: the execution of a prepared statement with a number
/// or two has 26 to 40.
pub(crate) const INLINE_BYTES: usize = 46;

/// Bytes of a pooled buffer: a large statement takes few of them, and a few of them fit into the
/// core's own cache.
const POOLED_BYTES: usize = 16 << 10;

/// Free buffers that a worker keeps: 1 MiB.
const POOLED_COUNT_MAX: usize = 64;

/// A worker's buffers. The one used last is used next, because it is still in the cache.
#[derive(Default)]
pub(crate) struct BufferPool {
    free: RefCell<Vec<Box<[u8]>>>,
}

impl BufferPool {
    /// A buffer with any contents.
    pub(crate) fn take(&self) -> Box<[u8]> {
        let free = self.free.borrow_mut().pop();
        free.unwrap_or_else(|| vec![0; POOLED_BYTES].into_boxed_slice())
    }

    pub(crate) fn give_back(&self, buffer: Box<[u8]>) {
        let mut free = self.free.borrow_mut();
        if free.len() < POOLED_COUNT_MAX {
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_receive_gives_its_buffer_back() {
        let pool = Rc::new(BufferPool::default());
        let mut buffer = pool.take();
        buffer[..3].copy_from_slice(b"abc");
        let address = buffer.as_ptr();
        let received = ReceivedBytes::pooled(pool.clone(), buffer, 3);
        assert_eq!(&*received, b"abc");
        drop(received);
        let again = pool.take();
        assert_eq!(again.as_ptr(), address);
        assert!(ReceivedBytes::empty().is_empty());
    }

    #[test]
    fn copies_are_what_came_below_at_and_above_what_is_kept_inline() {
        for count in [0, 1, INLINE_BYTES - 1, INLINE_BYTES, INLINE_BYTES + 1, 1000] {
            let bytes: Vec<u8> = (0..=255).cycle().take(count).collect();
            assert_eq!(&*ReceivedBytes::copied(&bytes), &bytes[..]);
        }
    }
}
