//! What the leader counts of its writes.

use metrics::Counter;

/// Counted by the leader alone; the role goes from worker to worker in order.
#[derive(Debug, Default)]
pub(crate) struct FlushCounters {
    /// Blocks written, as bytes.
    pub(crate) written_bytes: Counter,
    /// Writes of blocks.
    pub(crate) writes: Counter,
    /// Writes that were durable at once, and syncs of files.
    pub(crate) syncs: Counter,
}
