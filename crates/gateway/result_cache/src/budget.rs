//! [`Budget`]: the memory of a cache, counted as the allocator gives it out.

use std::sync::Arc;

use sync::atomic::{AtomicUsize, Ordering};

/// The memory of a cache. What is kept, what is being copied, the keys of replies under way, and
/// what clients are being sent that is not kept any more counts against it.
#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    /// Constant.
    max: usize,
}

impl Budget {
    /// Of so many bytes.
    pub fn new(max: usize) -> Budget {
        Budget {
            used: AtomicUsize::new(0),
            max,
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        // Relaxed, here and below: a number that guards no other memory.
        self.used.load(Ordering::Relaxed)
    }

    /// Most bytes.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Takes bytes. Returns `false` if there are not as many.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let sum = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        // Not taken and given back: others would let replies go meanwhile.
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        taken.is_ok()
    }

    /// Counts bytes that are taken whether there are as many or not.
    pub(crate) fn count(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives bytes back.
    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether so many bytes are free.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        self.used().saturating_add(bytes) <= self.max
    }
}

/// Bytes that were taken. They are given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Claim {
    /// No bytes.
    pub(crate) fn none(budget: Arc<Budget>) -> Claim {
        Claim { budget, bytes: 0 }
    }

    /// Takes bytes. `None` if there are not as many.
    pub(crate) fn take(budget: &Arc<Budget>, bytes: usize) -> Option<Claim> {
        budget.take(bytes).then(|| Claim {
            budget: Arc::clone(budget),
            bytes,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The caller gives the bytes back later.
    pub(crate) fn leave(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

/// What an `Arc` has beside its value: two counts.
pub(crate) const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// Smallest piece that the allocator gives out, and the step between its smallest classes.
const QUANTUM_BYTES: usize = 16;

/// What the allocator gives for a request of so many bytes: jemalloc has four classes between two
/// powers of two (jemalloc manual, "Size classes").
pub(crate) fn allocated_bytes(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=8 => 8,
        _ if bytes <= 8 * QUANTUM_BYTES => bytes.next_multiple_of(QUANTUM_BYTES),
        _ => {
            let top = (bytes - 1).ilog2();
            bytes.next_multiple_of(1 << (top - 2))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let budget = Budget::new(100);
        assert!(budget.take(60) && budget.has(40) && !budget.has(41));
        assert!(!budget.take(41));
        assert_eq!(budget.used(), 60);
        assert!(budget.take(40));
        assert!(!budget.take(1) && !budget.take(usize::MAX));
        budget.give(100);
        assert_eq!(budget.used(), 0);
    }

    /// The classes of jemalloc's manual.
    #[test]
    fn requests_are_rounded_up_to_classes() {
        for (bytes, class) in [
            (0, 0),
            (1, 8),
            (8, 8),
            (9, 16),
            (17, 32),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (1025, 1280),
            (4096, 4096),
            (4097, 5120),
            (14337, 16384),
            (16385, 20480),
            (16 << 20, 16 << 20),
            ((16 << 20) + 1, 20 << 20),
        ] {
            assert_eq!(allocated_bytes(bytes), class, "{bytes}");
        }
    }
}
