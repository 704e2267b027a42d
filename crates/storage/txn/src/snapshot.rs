//! An open snapshot.

use std::cell::RefCell;
use std::rc::Rc;

use format::{Lsn, TxnId};

use crate::worker::TransactionWorker;

/// A view of the store as of one commit number. Closed when dropped.
#[derive(Debug)]
pub struct Snapshot {
    /// Where it is registered.
    worker: Rc<TransactionWorker>,
    /// Shared with the worker, whose conversions add exceptions.
    pub(crate) entry: Rc<SnapshotEntry>,
}

/// The worker's part of a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotEntry {
    /// Commits up to this are seen. Constant.
    pub(crate) lsn: Lsn,
    /// Transactions from this number on began after the snapshot and are not seen. Constant.
    pub(crate) high: u64,
    /// Its place in the worker's order of opening. Constant.
    pub(crate) sequence: u64,
    /// Ended transactions below the ring that are not seen (T2), in order.
    pub(crate) exceptions: RefCell<Vec<u64>>,
}

/// The writer of a version is taking its commit number, so it is not known yet whether a snapshot
/// sees the version. Await [`TransactionSystem::ended`](crate::TransactionSystem::ended) and ask
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterEnding(pub TxnId);

impl Snapshot {
    pub(crate) fn new(worker: Rc<TransactionWorker>, entry: Rc<SnapshotEntry>) -> Self {
        Self { worker, entry }
    }

    /// Commits up to this are seen.
    pub fn lsn(&self) -> Lsn {
        self.entry.lsn
    }

    /// True if a row version written by `writer` is seen. `own` is the number of the reading
    /// transaction, which sees its own changes.
    pub fn sees(&self, writer: TxnId, own: Option<TxnId>) -> Result<bool, WriterEnding> {
        if own == Some(writer) {
            return Ok(true);
        }
        self.worker.is_visible(&self.entry, writer)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.worker.close(&self.entry);
    }
}
