//! What each worker counts of its part of the engine.

use metrics::{Counter, Histogram};
use sync::atomic::AtomicU64;

/// What a worker's part of the engine does. Written by that worker alone.
#[derive(Debug, Default)]
pub(crate) struct EngineCounters {
    /// How long waits for row locks took, in microseconds.
    pub(crate) lock_waits_us: Histogram,
    /// Ends of transactions that were written to undo.
    pub(crate) ends_written: Counter,
    /// Such ends that purge has passed.
    pub(crate) ends_purged: Counter,
    /// Records of undo that purge has passed.
    pub(crate) records_purged: Counter,
    /// Pages that were added to segments of undo.
    pub(crate) undo_pages_taken: Counter,
    /// Pages that purge has given back.
    pub(crate) undo_pages_dropped: Counter,
    /// The end of its last commit in the log.
    pub(crate) last_commit: AtomicU64,
    /// Orders to abort that were obeyed.
    pub(crate) orders: OrderCounters,
}

/// Orders that were obeyed, by what the transaction did when its order came.
#[derive(Debug, Default)]
pub(crate) struct OrderCounters {
    /// It was open, and its session did something else, or nothing.
    pub(crate) idle: Counter,
    /// It waited for a row lock.
    pub(crate) waiting: Counter,
    /// Its write set was sent.
    pub(crate) sent: Counter,
    /// Its write set had a later place, and its own changes stood.
    pub(crate) placed: Counter,
    /// It applied a write set with a later place.
    pub(crate) applying: Counter,
    /// Own write sets that were applied at their places, since their transactions had been undone.
    pub(crate) replayed: Counter,
}
