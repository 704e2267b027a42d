//! [`Releasable`]: locks that scans may release before the transaction's end.
//!
//! Under READ COMMITTED a scan locks a batch of rows, and its caller lets those go that do not
//! match. Meanwhile another scan of the transaction may ask for one of them: in a join of a table
//! with itself, in a subquery, in a function. It makes no lock of its own then.
//!
//! (R1) A lock that another scan has asked for since is not released early.

use lock::{LockKind, LockName};

use crate::worker::scan_count::ScanNumber;

/// A lock of a row in the batch that a scan has returned last.
#[derive(Debug)]
struct RowLock {
    scan: ScanNumber,
    /// The row's place in the batch.
    row: usize,
    name: LockName,
    kind: LockKind,
}

/// The locks of all scans of a transaction: at most those of a batch of each.
#[derive(Debug, Default)]
pub(crate) struct Releasable {
    locks: Vec<RowLock>,
}

impl Releasable {
    /// A scan has locked these for a row of its batch.
    pub(crate) fn add(
        &mut self,
        (scan, row): (ScanNumber, usize),
        locks: impl Iterator<Item = (LockName, LockKind)>,
    ) {
        let mut rows = self.locks.iter().filter(|it| it.scan == scan);
        debug_assert!(
            rows.all(|it| it.row <= row),
            "rows are locked in the order of the batch"
        );
        self.locks.extend(locks.map(|(name, kind)| RowLock {
            scan,
            row,
            name,
            kind,
        }));
    }

    /// Takes what a scan has locked for a row, to be released.
    pub(crate) fn take(&mut self, scan: ScanNumber, row: usize) -> Vec<(LockName, LockKind)> {
        let of_row = self
            .locks
            .extract_if(.., |it| it.scan == scan && it.row == row);
        of_row.map(|it| (it.name, it.kind)).collect()
    }

    /// The rows of a scan's batch have been looked at: those that are locked stay locked.
    pub(crate) fn keep_all_of(&mut self, scan: ScanNumber) {
        self.locks.retain(|it| it.scan != scan);
    }

    /// Another scan asks for what is locked here (R1).
    pub(crate) fn keep(&mut self, name: &LockName) {
        self.locks.retain(|it| it.name != *name);
    }

    /// A statement ends, and its scans with it.
    pub(crate) fn clear(&mut self) {
        self.locks.clear();
    }

    /// Whether no scan may release a lock.
    pub(crate) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }
}
