//! What each worker counts of its pages.

use metrics::Counter;

/// What a worker does with pages. Written by it alone.
#[derive(Debug, Default)]
pub(crate) struct PageCounters {
    /// Pages asked for.
    pub(crate) requests: Counter,
    /// Searches for a frame that found none.
    pub(crate) frame_waits: Counter,
}
