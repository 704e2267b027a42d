//! What each worker counts of its part of the engine.

use metrics::{Counter, Histogram};

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
}
