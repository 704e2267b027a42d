//! Which transaction may use a row now: implicit locks (the id in the row) and explicit ones.
//!
//! Every function here is called with the row's leaf latched, so the id and the locks seen belong
//! together. A writer checks and writes under the same exclusive latch. A locking reader reads and
//! enters its lock under the same shared latch. So neither can act between the other's check and
//! action. A row belongs to its writer until the writer's outcome is published: others also wait
//! for a writer that is writing its commit record. Nothing here waits. A lock that is not free is
//! returned as a suspension, which the caller returns after it has dropped the latch.

use std::rc::Rc;
use std::time::Duration;

use btree::{Tree, damaged};
use format::row_header::{EntryHeader, RowHeader};
use format::{IndexId, PageId, TxnId};
use lock::{
    Acquired, Ask, Converted, LockError, LockExtent, LockKind, LockMode, LockName, OwnerLocks, Term,
};
use store::{Isolation, LockWait, Outcome, RowLock, StoreError};

use crate::transaction::EngineTransaction;
use crate::worker::lock_suspend;

/// More than any transaction has done, so that a sum with its locks does not overflow.
const APPLIER_WORK: u64 = 1 << 62;

/// After this time a wait of one that applies a write set looks again who blocks it. Another may
/// lock a gap while an insert waits for it, and the waiter is not told.
const ORDER_AGAIN: Duration = Duration::from_millis(20);

/// Who was told to abort for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ordered {
    /// It is an ordinary wait.
    Nobody,
    /// Those that block it.
    Blockers,
}

/// What a writer locks of a row, at each isolation level: the lock that its id in the row becomes.
/// It goes with the change if that is taken back (`lock::LockTable::leave_record`). A bare record,
/// as readers lock it under READ COMMITTED, would stay.
pub(crate) const WRITERS_LOCK: LockKind = LockKind::EXCLUSIVE_RECORD;

/// The result of a check of the locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Go on.
    Granted,
    /// The writer in the row has just ended: read the row again.
    Changed,
    /// Another has it, and the caller does not wait: leave the row out.
    Skip,
}

/// The names of a row for locks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowName<'a> {
    /// The tree.
    pub(crate) index: IndexId,
    /// The key in it.
    pub(crate) key: &'a [u8],
    /// The writer of the newest version; `TxnId::NONE` for a key without a row.
    pub(crate) writer: TxnId,
}

/// The locks that a read requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedLock {
    /// For an entry that is not deleted.
    pub(crate) live: LockKind,
    /// For a deleted one. `None`: one whose deletion is committed is not locked.
    pub(crate) deleted: Option<LockKind>,
    /// What to do if another has it.
    pub(crate) wait: LockWait,
    /// How long it is kept.
    pub(crate) term: Term,
}

impl WantedLock {
    /// What a writer locks of a row, deleted or not.
    pub(crate) const ROW: Self = Self {
        live: WRITERS_LOCK,
        deleted: Some(WRITERS_LOCK),
        wait: LockWait::Wait,
        term: Term::Transaction,
    };

    /// The same lock for each entry.
    pub(crate) fn all(kind: LockKind, wait: LockWait) -> Self {
        Self {
            live: kind,
            deleted: Some(kind),
            wait,
            term: Term::Transaction,
        }
    }

    /// The same lock for each entry of a reader that locks no gaps. As in InnoDB, it has no use for
    /// an entry whose deletion is committed, and does not wait for others that have locked that.
    pub(crate) fn without_gaps(kind: LockKind, wait: LockWait) -> Self {
        assert!(kind.extent == LockExtent::BareRecord, "no gap is locked");
        Self {
            deleted: None,
            ..Self::all(kind, wait)
        }
    }

    /// The lock of an entry; `None`: it is not locked.
    fn kind(&self, is_deleted: bool, needs_lock: impl FnOnce() -> bool) -> Option<LockKind> {
        match self.deleted {
            _ if !is_deleted => Some(self.live),
            None => needs_lock().then_some(self.live),
            kind => kind,
        }
    }
}

/// What the payload of an index has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Rows.
    Row,
    /// Entries that lead to rows.
    Entry,
}

impl Stored {
    /// The writer of an entry, and whether it is marked deleted; `None` if it has no header.
    fn writer(self, payload: &[u8]) -> Option<(TxnId, bool)> {
        match self {
            Self::Row => RowHeader::split(payload).map(|(row, _)| (row.txn, row.is_deleted)),
            Self::Entry => EntryHeader::decode(payload).map(|entry| (entry.txn, entry.is_deleted)),
        }
    }
}

/// The mode of a reader's locks.
pub(crate) fn lock_mode(lock: RowLock) -> LockMode {
    assert!(lock != RowLock::None, "a consistent read locks nothing");
    match lock {
        RowLock::Source | RowLock::Shared => LockMode::Shared,
        RowLock::Exclusive | RowLock::Change | RowLock::Claim | RowLock::None => {
            LockMode::Exclusive
        }
    }
}

impl EngineTransaction {
    /// A writer's check: no other transaction has the row locked, implicitly or explicitly. Makes
    /// no lock entry unless it must wait.
    pub(crate) fn check_write(&mut self, row: RowName<'_>) -> Outcome<Access> {
        if self.id == Some(row.writer) {
            return Ok(Access::Granted);
        }
        let shared = &self.worker.shared;
        if !shared.txns.is_active(row.writer) {
            let own = self.id.expect("a writer has an id");
            let is_locked = || {
                let name = LockName::key(row.index, row.key);
                shared.locks.is_record_locked(own, &name)
            };
            if !shared.locks.has_locks(row.index) || !is_locked() {
                return Ok(Access::Granted);
            }
        }
        self.lock_row(row, WRITERS_LOCK, LockWait::Wait)
    }

    /// The extent of a lock on an entry alone.
    pub(crate) fn record_extent(&self) -> LockExtent {
        if self.locks_gaps() {
            LockExtent::Record
        } else {
            LockExtent::BareRecord
        }
    }

    /// How rows are locked that are read with `lock`.
    pub(crate) fn row_lock(&self, lock: RowLock) -> RowLock {
        match (self.locking_options().isolation, lock) {
            (Isolation::Serializable, RowLock::None) => RowLock::Shared,
            (Isolation::ReadUncommitted | Isolation::ReadCommitted, RowLock::Source) => {
                RowLock::None
            }
            (_, RowLock::Source) => RowLock::Shared,
            (_, lock) => lock,
        }
    }

    /// The lock that its locking reads take of each entry.
    pub(crate) fn wanted_lock(&self, kind: LockKind, wait: LockWait) -> WantedLock {
        if self.locks_gaps() {
            WantedLock::all(kind, wait)
        } else {
            WantedLock::without_gaps(kind, wait)
        }
    }

    /// Whether its locking reads lock the gaps between entries, too.
    pub(crate) fn locks_gaps(&self) -> bool {
        match self.locking_options().isolation {
            Isolation::ReadUncommitted | Isolation::ReadCommitted => false,
            Isolation::RepeatableRead | Isolation::Serializable => true,
        }
    }

    /// Locks a row, or an entry of an index, explicitly. The part of the lock that its own writes
    /// give it needs no entry.
    pub(crate) fn lock_row(
        &mut self,
        row: RowName<'_>,
        kind: LockKind,
        wait: LockWait,
    ) -> Outcome<Access> {
        self.lock_row_for(Term::Transaction, row, (kind, wait))
    }

    fn lock_row_for(
        &mut self,
        term: Term,
        row: RowName<'_>,
        (kind, wait): (LockKind, LockWait),
    ) -> Outcome<Access> {
        let own = self.ensure_id()?;
        let name = LockName::key(row.index, row.key);
        if own == row.writer {
            if kind.covers_gap() {
                let extent = LockExtent::Gap;
                self.acquire_for(term, &name, LockKind { extent, ..kind }, wait)?;
            }
            return Ok(Access::Granted);
        }
        let shared = &self.worker.shared;
        if shared.txns.is_active(row.writer) {
            if self.patience(wait).is_zero() {
                // The writer's lock is entered only for transactions that wait for it.
                return refused(wait);
            }
            let is_active = |holder| shared.txns.is_active(holder);
            match shared.locks.convert_implicit(row.writer, &name, is_active) {
                Converted::Entered => {}
                Converted::Ended => return Ok(Access::Changed),
                Converted::Full => return Err(StoreError::LockTableFull.into()),
            }
        }
        let access = self.acquire_for(term, &name, kind, wait)?;
        debug_assert!(
            access != Access::Granted || !self.worker.shared.txns.is_active(row.writer),
            "a locked row has no change of others under way"
        );
        Ok(access)
    }

    /// Locks a row as a scan asks for it. A lock that the transaction has already is not released
    /// early any more.
    fn lock_for_scan(
        &mut self,
        term: Term,
        row: RowName<'_>,
        wanted: (LockKind, LockWait),
    ) -> Outcome<Access> {
        let (index, key, kept) = (row.index, row.key, self.kept_lock_count());
        let access = self.lock_row_for(term, row, wanted)?;
        if access == Access::Granted
            && kept == self.kept_lock_count()
            && !self.releasable.is_empty()
        {
            self.releasable.keep(&LockName::key(index, key));
        }
        Ok(access)
    }

    /// Locks the newest version of an entry of an index, with its leaf latched. Returns whether it
    /// is deleted, or `None` if it is gone or to be left out.
    pub(crate) fn lock_entry(
        &mut self,
        (tree, stored): (Tree, Stored),
        key: &[u8],
        wanted: WantedLock,
    ) -> Outcome<Option<bool>> {
        self.lock_and_see((tree, stored), key, wanted, |_| {})
    }

    /// As [`lock_entry`](Self::lock_entry). `see` gets the payload that is locked.
    pub(crate) fn lock_and_see(
        &mut self,
        (tree, stored): (Tree, Stored),
        key: &[u8],
        wanted: WantedLock,
        mut see: impl FnMut(&[u8]),
    ) -> Outcome<Option<bool>> {
        self.ensure_id()?;
        let worker = Rc::clone(&self.worker);
        let root = PageId::new(tree.space, tree.root);
        let no_header = || damaged(root, "an entry of an index without a header");
        loop {
            let locked = tree.read_latched(&worker.pages, key, |payload| {
                let Some(payload) = payload else {
                    return Ok(None);
                };
                let (writer, is_deleted) = stored.writer(payload).ok_or_else(no_header)?;
                let row = RowName {
                    index: tree.index,
                    key,
                    writer,
                };
                let needs_lock = || {
                    // A deletion may be undone until its transaction has ended. What was waited for
                    // is locked already, and counts as this entry's.
                    let locks = self.locks.as_ref().filter(|it| it.has_pending());
                    let is_awaited = |locks: &OwnerLocks| {
                        locks.is_pending(&LockName::key(tree.index, key), wanted.live)
                    };
                    worker.shared.txns.is_active(writer) || locks.is_some_and(is_awaited)
                };
                let access = match wanted.kind(is_deleted, needs_lock) {
                    Some(kind) => self.lock_for_scan(wanted.term, row, (kind, wanted.wait))?,
                    None => Access::Granted,
                };
                if access == Access::Granted {
                    see(payload);
                }
                Ok(Some((access, is_deleted)))
            })?;
            match locked {
                None | Some((Access::Skip, _)) => return Ok(None),
                Some((Access::Granted, is_deleted)) => return Ok(Some(is_deleted)),
                Some((Access::Changed, _)) => {}
            }
        }
    }

    /// Locks that are kept until its end.
    pub(crate) fn kept_lock_count(&self) -> usize {
        self.locks.as_ref().map_or(0, OwnerLocks::kept_count)
    }

    /// Releases one lock before its end.
    pub(crate) fn release_lock(&mut self, name: &LockName, kind: LockKind) {
        let locks = self.locks.as_mut();
        locks.expect("it has locks").release_one(name, kind);
    }

    /// Releases the locks of an operation.
    pub(crate) fn release_brief(&mut self) {
        if let Some(locks) = &mut self.locks {
            locks.release_brief();
        }
    }

    /// Asks for a lock by name, and keeps it until the end.
    pub(crate) fn acquire(
        &mut self,
        name: &LockName,
        kind: LockKind,
        wait: LockWait,
    ) -> Outcome<Access> {
        self.acquire_for(Term::Transaction, name, kind, wait)
    }

    /// Asks for a lock by name.
    pub(crate) fn acquire_for(
        &mut self,
        term: Term,
        name: &LockName,
        kind: LockKind,
        wait: LockWait,
    ) -> Outcome<Access> {
        let patience = self.patience(wait);
        let now_ns = self.worker.now_ns();
        let ask = Ask {
            name,
            kind,
            term,
            patience,
            work: self.work(),
        };
        let locks = self
            .locks
            .as_mut()
            .expect("an id comes with a place for locks");
        let acquired = locks.acquire(ask, now_ns);
        self.record_wait();
        match acquired {
            Ok(Acquired::Held) => Ok(Access::Granted),
            Ok(Acquired::Granted) => {
                self.show_locks();
                Ok(Access::Granted)
            }
            Ok(Acquired::Wait(future)) => {
                assert!(
                    !patience.is_zero(),
                    "a caller that does not wait is not queued"
                );
                let patience = match self.order_blockers_away() {
                    Ordered::Nobody => patience,
                    Ordered::Blockers => patience.min(ORDER_AGAIN),
                };
                Err(lock_suspend(&self.worker.options.sleep, future, patience).into())
            }
            // A request that waited before is asked for again, now without patience.
            Err(LockError::Timeout) if patience.is_zero() => refused(wait),
            Err(LockError::Timeout) => Err(StoreError::LockWaitTimeout.into()),
            Err(LockError::Deadlock) => Err(StoreError::Deadlock.into()),
            Err(LockError::Full) => Err(StoreError::LockTableFull.into()),
            Err(LockError::Busy) => refused(wait),
        }
    }

    /// What a deadlock counts of it beside its locks. What has its place in a group's order must
    /// be applied, so others go first.
    fn work(&self) -> u64 {
        match self.applied_seqno() {
            Some(_) => APPLIER_WORK,
            None => self.undo_count + self.tables.object_count(),
        }
    }

    /// Who applies a write set lets those abort that it waits for.
    fn order_blockers_away(&self) -> Ordered {
        let (Some(seqno), Some(locks)) = (self.applied_seqno(), &self.locks) else {
            return Ordered::Nobody;
        };
        for blocker in locks.blockers() {
            self.worker.shared.order_abort(blocker, seqno);
        }
        Ordered::Blockers
    }

    /// How long to wait for a lock; zero means not at all.
    fn patience(&self, wait: LockWait) -> Duration {
        match wait {
            LockWait::Wait | LockWait::SemiConsistent => {
                Duration::from_secs(self.locking_options().lock_wait_timeout_s)
            }
            LockWait::NoWait | LockWait::SkipLocked => Duration::ZERO,
        }
    }
}

/// The answer to a caller that does not wait for another's row.
fn refused(wait: LockWait) -> Outcome<Access> {
    match wait {
        LockWait::SkipLocked => Ok(Access::Skip),
        LockWait::NoWait => Err(StoreError::LockNotAvailable.into()),
        LockWait::Wait | LockWait::SemiConsistent => Err(StoreError::LockWaitTimeout.into()),
    }
}
