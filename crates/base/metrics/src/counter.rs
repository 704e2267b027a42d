//! A number that one worker counts up.

use std::cell::Cell;

/// A count that never falls. Wraps after 2^64, which takes centuries.
#[derive(Debug, Default)]
pub struct Counter {
    value: Cell<u64>,
}

impl Counter {
    /// Zero.
    pub const fn new() -> Self {
        Self {
            value: Cell::new(0),
        }
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `count`.
    #[inline]
    pub fn add(&self, count: u64) {
        self.value.set(self.value.get().wrapping_add(count));
    }

    /// The count so far.
    #[inline]
    pub fn value(&self) -> u64 {
        self.value.get()
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
    }
}
