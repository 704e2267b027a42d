//! [`ScanNumber`]: names of the scans of a worker.

use std::cell::Cell;

/// A scan of a worker's transactions. A cursor keeps its number, though one transaction after the
/// other uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanNumber(u64);

/// Numbers the scans of a worker.
#[derive(Debug, Default)]
pub(crate) struct ScanCount(Cell<u64>);

impl ScanCount {
    /// A scan begins.
    pub(crate) fn begin(&self) -> ScanNumber {
        self.0.set(self.0.get() + 1);
        ScanNumber(self.0.get())
    }
}
