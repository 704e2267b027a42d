//! What each worker counts of the tasks and turns of its loop.

use metrics::Counter;

/// What a worker's loop has done. Written by that worker alone.
#[derive(Debug, Default)]
pub(crate) struct LoopCounters {
    /// Turns of the loop.
    pub(crate) turns: Counter,
    /// Clients refused because there was no descriptor for them.
    pub(crate) refused: Counter,
    /// Polls of tasks.
    pub(crate) polls: Counter,
}
