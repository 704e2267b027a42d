//! [`Releasable`]: locks that scans may release before the transaction's end.
//!
//! Under READ COMMITTED a scan locks a batch of rows, and its caller lets those go that do not
//! match. Meanwhile another scan of the transaction may ask for one of them: in a join of a table
//! with itself, in a subquery, in a function. It makes no lock of its own then.
//!
//! (R1) A lock that another scan has asked for since is not released early.

use lock::{LockKind, LockName};

/// A scan of the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanNumber(u64);

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
    scan_count: u64,
    locks: Vec<RowLock>,
}

impl Releasable {
    /// A scan begins.
    pub(crate) fn begin_scan(&mut self) -> ScanNumber {
        self.scan_count += 1;
        ScanNumber(self.scan_count)
    }

    /// A scan has locked these for a row of its batch.
    pub(crate) fn add(
        &mut self,
        (scan, row): (ScanNumber, usize),
        locks: impl Iterator<Item = (LockName, LockKind)>,
    ) {
        assert!(scan.0 <= self.scan_count, "the scan has begun");
        self.locks.extend(locks.map(|(name, kind)| RowLock {
            scan,
            row,
            name,
            kind,
        }));
    }

    /// Takes what a scan has locked for a row, to be released.
    pub(crate) fn take(&mut self, scan: ScanNumber, row: usize) -> Vec<(LockName, LockKind)> {
        assert!(scan.0 <= self.scan_count, "the scan has begun");
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
        let mut scans = self.locks.iter().map(|it| it.scan.0);
        debug_assert!(scans.all(|it| it <= self.scan_count), "no scan is unknown");
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
