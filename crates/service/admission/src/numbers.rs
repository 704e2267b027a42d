//! What gates count.

use std::sync::Arc;

use metrics::{Counter, Histogram};
use sync::CachePadded;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The numbers of a worker's gate, which it alone writes.
#[derive(Debug, Default)]
pub(crate) struct GateNumbers {
    /// Transactions inside that count against the quota.
    pub(crate) inside: Level,
    /// Transactions in the line.
    pub(crate) waiting: Level,
    /// When the first of the line came.
    pub(crate) first_us: Moment,
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
    /// Those of them whose transactions were lost.
    pub(crate) lost_statements: Counter,
    /// How many leave: a part of the rate of all workers (see `gate::patience_ticks`). 0 while the
    /// gate has no ticks.
    pub(crate) rate: Amount,
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

/// A large number with one writer; any thread reads it.
#[derive(Debug, Default)]
pub(crate) struct Amount(AtomicU64);

impl Amount {
    // Both Relaxed: as of a `Level`.
    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, amount: u64) {
        self.0.store(amount, Ordering::Relaxed);
    }
}

/// A time in microseconds, or none, with one writer; any thread reads it.
#[derive(Debug)]
pub(crate) struct Moment(AtomicU64);

impl Moment {
    const NONE: u64 = u64::MAX;

    // Both Relaxed: it stands for itself. Who acts on an old one moves a unit of quota in vain.
    pub(crate) fn value(&self) -> Option<u64> {
        let value = self.0.load(Ordering::Relaxed);
        (value != Self::NONE).then_some(value)
    }

    pub(crate) fn set(&self, moment: Option<u64>) {
        self.0
            .store(moment.unwrap_or(Self::NONE), Ordering::Relaxed);
    }
}

impl Default for Moment {
    fn default() -> Self {
        Self(AtomicU64::new(Self::NONE))
    }
}

/// The numbers of all workers' gates.
pub(crate) type AllNumbers = Arc<[CachePadded<GateNumbers>]>;
