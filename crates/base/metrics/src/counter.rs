//! A number that one worker counts up and any thread reads.

use sync::atomic::{AtomicU64, Ordering};

/// A count that never falls. Wraps after 2^64, which takes centuries.
///
/// It has one writer, so counting is a load and a store, without a locked instruction. A second
/// writer would lose counts and do no other harm.
#[derive(Debug, Default)]
pub struct Counter {
    value: AtomicU64,
}

impl Counter {
    /// Zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`.
    #[inline]
    pub fn add(&self, count: u64) {
        // Relaxed: a slightly old sum is good enough.
        let sum = self.value().wrapping_add(count);
        self.value.store(sum, Ordering::Relaxed);
    }

    /// The count so far; another thread's may be a moment old.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_up() {
        let counter = Counter::new();
        counter.increment();
        counter.add(41);
        assert_eq!(counter.value(), 42);
        std::thread::scope(|scope| {
            let read = scope.spawn(|| counter.value());
            assert_eq!(read.join().unwrap(), 42);
        });
    }
}
