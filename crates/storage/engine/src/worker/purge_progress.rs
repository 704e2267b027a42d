//! [`Purge`]: how far a worker's purge has come.

use std::collections::{BTreeMap, BTreeSet};

use env::Instant;
use format::{PageNo, TxnId};

/// Purge's progress in the segments of a worker.
#[derive(Debug, Default)]
pub(crate) struct Purge {
    /// Reads that have failed in a row.
    pub(crate) failures: u32,
    /// Transactions that have begun since the one of the last checked record.
    pub(crate) debt: u64,
    /// Transactions below this have begun [`PURGE_PATIENCE`](crate::PURGE_PATIENCE) ago or earlier.
    pub(crate) old_below: u64,
    /// The next transaction id at the last sample, and its time.
    pub(crate) sample: (u64, Instant),
    /// The progress in each segment.
    pub(crate) segments: BTreeMap<u8, Progress>,
}

/// Purge's progress in a segment. It is lost when a purge is dropped in the middle, as by a crash.
/// The next one begins at the tail, and repeated work changes nothing (P2).
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// Pages with skipped records, in the order of the chain, all before `no`.
    pub(crate) kept: Vec<PageNo>,
    /// The transactions whose records were skipped.
    pub(crate) skipped: BTreeSet<TxnId>,
    /// The page of the next record, and its offset.
    pub(crate) no: PageNo,
    pub(crate) at: usize,
    /// A record of this page was skipped.
    pub(crate) has_skipped: bool,
}
