//! What gates count.

use std::sync::Arc;

use metrics::{Counter, Histogram};
use sync::CachePadded;
use sync::atomic::{AtomicU32, Ordering};

/// The numbers of a worker's gate, which it alone writes.
#[derive(Debug, Default)]
pub(crate) struct GateNumbers {
    /// Transactions inside that count against the quota.
    pub(crate) inside: Level,
    /// Transactions in the line.
    pub(crate) waiting: Level,
    /// Transactions inside that wait for locks.
    pub(crate) blocked: Level,
    /// Transactions that have got a pass.
    pub(crate) admitted: Counter,
    /// Transactions that had to wait.
    pub(crate) queued: Counter,
    /// Transactions that went past the gate.
    pub(crate) escapes: Counter,
    /// Waiters that were let in above the quota because they were overdue.
    pub(crate) overdue: Counter,
    /// Commits of transactions with a pass.
    pub(crate) commits: Counter,
    /// Statements of transactions with a pass.
    pub(crate) statements: Counter,
    /// How long those waited that were let in.
    pub(crate) waited_us: Histogram,
}

/// A number that rises and falls, with one writer; any thread reads it.
#[derive(Debug, Default)]
pub(crate) struct Level(AtomicU32);

impl Level {
    // All Relaxed: readers on other threads want a number, and the writer reads its own.
    pub(crate) fn value(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn raise(&self) {
        self.0.store(self.value() + 1, Ordering::Relaxed);
    }

    pub(crate) fn lower(&self) {
        self.lower_by(1);
    }

    pub(crate) fn lower_by(&self, count: u32) {
        let before = self.value();
        assert!(count <= before, "who leaves has been there");
        self.0.store(before - count, Ordering::Relaxed);
    }
}

/// The numbers of all workers' gates.
pub(crate) type AllNumbers = Arc<[CachePadded<GateNumbers>]>;
