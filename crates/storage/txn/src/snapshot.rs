//! An open snapshot.

use std::rc::Rc;

use format::{Lsn, TxnId};

use crate::worker::{SnapshotEntry, TransactionWorker, WriterEnding};

/// A view of the store as of one commit number. Closed when dropped.
#[derive(Debug)]
pub struct Snapshot {
    /// Where it is registered.
    worker: Rc<TransactionWorker>,
    /// Shared with the worker, whose conversions add exceptions.
    pub(crate) entry: Rc<SnapshotEntry>,
}

impl Snapshot {
    /// Opens a snapshot of everything committed by now. `position` loads the log's reserved
    /// position.
    pub fn open(worker: &Rc<TransactionWorker>, position: impl FnOnce() -> Lsn) -> Self {
        let entry = worker.open(position);
        Self {
            worker: Rc::clone(worker),
            entry,
        }
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
