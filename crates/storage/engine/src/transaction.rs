//! A transaction: its id, snapshot, locks and place in the undo.
//!
//! States: idle (nothing used) -> active (snapshot or id) -> committing (the commit record is in
//! the log, visible to others, not yet durable) -> ended. An active transaction may be prepared
//! before that; see `stages`. A dropped active transaction becomes an orphan that the worker's
//! background task rolls back. A dropped prepared one stays as it is, for the next start.
//!
//! (I1) The id is taken by the first change or lock. The undo count is 0 exactly if there is
//! nothing to undo.
//! (I2) Locks are released after the outcome was published, so the next holder sees the outcome.
//! That also holds for implicit locks: a row is its writer's until the writer's outcome is
//! published.

pub(crate) mod claim;
pub(crate) mod group;
pub(crate) mod pending;
pub(crate) mod releasable;
pub(crate) mod touched_tables;

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use format::row_header::RowHeader;
use format::{Lsn, TxnId, UndoPointer};
use lock::{LockMode, OwnerLocks};
use stdx::planted::{Mistake, is_planted};
use store::replication::Position;
use store::{
    ClientId, Durability, Interrupt, Isolation, Outcome, Prepared, StoreError, StoreId, Suspend,
    TableId, Transaction, TransactionKey, TransactionOptions, UndoMark, WaitReason, Xid,
};
use txn::{Snapshot, WriterEnding};

use crate::schema::new_counter::NewCounter;
use crate::stages::{Ending, TxnOutcome};
use crate::transaction::claim::Claim;
use crate::transaction::group::{Replication, Stage};
use crate::transaction::pending::{LeftLock, Pending};
use crate::transaction::releasable::Releasable;
use crate::transaction::touched_tables::TouchedTables;
use crate::worker::open_slots::{LockNumbers, OpenSlot};
use crate::worker::{LeftUndo, Orphan, Worker};

/// Locks that are released before other tasks run: some 100 us.
pub(crate) const LOCKS_PER_TURN: usize = 512;

/// Records undone before other tasks run: some 100 to 200 us of rows in memory.
pub(crate) const UNDONE_PER_TURN: u64 = 32;

/// A transaction of the engine.
#[derive(Debug)]
pub(crate) struct EngineTransaction {
    /// Its worker.
    pub(crate) worker: Rc<Worker>,
    /// The options that it was begun with.
    pub(crate) options: TransactionOptions,
    /// Its id, once it has changed or locked something.
    pub(crate) id: Option<TxnId>,
    /// Its explicit locks. They exist with the id, and after its end until all are released.
    pub(crate) locks: Option<OwnerLocks>,
    /// The undo segment of its records: its worker's own, but for one that a former life has left.
    segment: u8,
    /// The snapshot of its consistent reads.
    snapshot: Option<Snapshot>,
    /// Its last undo record.
    pub(crate) last_undo: UndoPointer,
    /// Number of undo records from there to the beginning.
    pub(crate) undo_count: u64,
    /// Whether undo of it is in the log, undone or not.
    has_log: bool,
    /// Why it must be rolled back before anything else, for instance as a deadlock's victim. A part
    /// of it may be undone already, so nothing of it may be committed.
    pub(crate) doom: Option<StoreError>,
    /// The progress of the operation under way.
    pub(crate) pending: Pending,
    /// The row that it has read without a lock, to change it next.
    pub(crate) claim: Option<Claim>,
    /// What its scans may release early.
    pub(crate) releasable: Releasable,
    /// The commit record's end, while its durability is awaited.
    commit_lsn: Option<Lsn>,
    /// What was promised about it.
    promise: Promise,
    /// Whether a statement has used it.
    is_active: bool,
    /// The counter of a table that its commit sets: ALTER TABLE .. AUTO_INCREMENT.
    pub(crate) new_counter: Option<Box<NewCounter>>,
    /// Dropped with the transaction; if that is dropped before its end, when everything is undone.
    pub(crate) kept: Option<Box<dyn Any>>,
    /// The tables that it has changed, or locked rows in.
    pub(crate) tables: TouchedTables,
    /// Where it is shown to others, once a statement has used it.
    open: Option<OpenSlot>,
    /// Its part in a group of nodes, if there is a group.
    pub(crate) replication: Option<Box<Replication>>,
}

/// What a transaction does behind a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// It goes on, with all its locks.
    GoesOn,
    /// It ends.
    Ends,
}

/// Whether a transaction is kept over a crash until somebody decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Promise {
    /// It is not prepared.
    #[default]
    None,
    /// The record that it is prepared ends here in the log.
    Prepared(Lsn),
    /// It was prepared, and is being rolled back. If that fails, it can only be rolled back again.
    Revoking,
    /// It was prepared, and is rolled back: the record of that ends here, and must be durable.
    Revoked(Lsn),
}

impl EngineTransaction {
    pub(crate) fn new(worker: Rc<Worker>, options: TransactionOptions) -> Self {
        Self {
            replication: None,
            segment: worker.options.index,
            worker,
            options,
            id: None,
            locks: None,
            snapshot: None,
            last_undo: UndoPointer::NULL,
            undo_count: 0,
            has_log: false,
            doom: None,
            pending: Pending::default(),
            claim: None,
            releasable: Releasable::default(),
            commit_lsn: None,
            promise: Promise::None,
            is_active: false,
            new_counter: None,
            kept: None,
            tables: TouchedTables::default(),
            open: None,
        }
    }

    /// A prepared transaction that a former life of the server has left.
    pub(crate) fn left(worker: Rc<Worker>, left: &LeftUndo) -> Self {
        assert!(worker.shared.txns.is_active(left.id), "nobody has decided");
        let options = TransactionOptions {
            isolation: Isolation::default(),
            read_only: false,
            lock_wait_timeout_s: 0,
            client: ClientId::NONE,
        };
        let table = Arc::clone(&worker.shared.locks);
        let mut txn = Self::new(worker, options);
        txn.id = Some(left.id);
        txn.locks = Some(OwnerLocks::new(table, left.id, txn.options.client));
        txn.segment = left.last_undo.segment();
        (txn.last_undo, txn.undo_count) = (left.last_undo, left.undo_count);
        (txn.has_log, txn.is_active) = (true, true);
        txn.promise = Promise::Prepared(Lsn(0));
        txn.open().show_id(left.id);
        txn.show_changes_of_prepared();
        txn
    }

    /// Its last record only says that it is prepared.
    fn show_changes_of_prepared(&mut self) {
        let changes = self.undo_count.checked_sub(1);
        let changes = changes.expect("who is prepared has that record");
        self.open().show_changes(changes);
    }

    /// Returns its id, which is taken now if it has none.
    pub(crate) fn ensure_id(&mut self) -> Outcome<TxnId> {
        self.is_active = true;
        if let Some(id) = self.id {
            return Ok(id);
        }
        self.open();
        assert!(
            self.last_undo.is_null() && self.undo_count == 0,
            "who has no id has changed nothing (I1)"
        );
        assert_eq!(self.promise, Promise::None, "who is prepared has an id");
        let id = self.worker.allocate_txn_id()?;
        let table = Arc::clone(&self.worker.shared.locks);
        self.locks = Some(OwnerLocks::new(table, id, self.options.client));
        self.id = Some(id);
        self.open().show_id(id);
        Ok(id)
    }

    /// As `ensure_id`, for a change.
    pub(crate) fn ensure_writer(&mut self) -> Outcome<TxnId> {
        if self.options.read_only {
            return Err(StoreError::ReadOnly.into());
        }
        self.ensure_id()
    }

    /// Where it is shown to others, from its first use on.
    fn open(&mut self) -> &OpenSlot {
        let worker = &self.worker;
        self.open.get_or_insert_with(|| {
            let list = &worker.shared.open_slots[usize::from(worker.options.index)];
            let now_us = worker.options.clock.wall_micros();
            OpenSlot::take(&worker.free_slots, list, &self.options, now_us)
        })
    }

    /// It changes a table, or locks rows of it in this mode.
    pub(crate) fn touch(&mut self, table: TableId, mode: LockMode) {
        if self.tables.note(table, mode) {
            self.show_locks();
        }
    }

    /// Shows the numbers of its locks to others.
    pub(crate) fn show_locks(&mut self) {
        let locks = self.locks.as_ref();
        let numbers = LockNumbers {
            count: stdx::to_u64(locks.map_or(0, OwnerLocks::row_count)),
            object_count: self.tables.object_count() + locks.map_or(0, OwnerLocks::object_count),
            table_count: self.tables.table_count(),
            bytes: locks.map_or(0, OwnerLocks::held_bytes),
        };
        self.open().show_locks(numbers);
    }

    /// The snapshot of consistent reads, opened now if it is not open.
    pub(crate) fn snapshot(&mut self) -> &Snapshot {
        self.is_active = true;
        self.open();
        let worker = &self.worker;
        self.snapshot
            .get_or_insert_with(|| Snapshot::open(&worker.txns, || worker.pages.reserved()))
    }

    /// Opens the snapshot of the isolation level, if it is not open.
    pub(crate) fn open_view(&mut self) {
        if self.options.isolation != Isolation::Serializable {
            self.snapshot();
        }
    }

    /// The commit number up to which its consistent reads see, if that is settled.
    pub(crate) fn view(&self) -> Option<Lsn> {
        self.snapshot.as_ref().map(Snapshot::lsn)
    }

    /// True if its snapshot sees what `writer` has written.
    pub(crate) fn sees(&mut self, writer: TxnId) -> Outcome<bool> {
        self.snapshot();
        let snapshot = self.snapshot.as_ref().expect("it was opened");
        self.sees_in(snapshot, writer)
    }

    /// True if a snapshot of it sees what `writer` has written.
    pub(crate) fn sees_in(&self, snapshot: &Snapshot, writer: TxnId) -> Outcome<bool> {
        let seen = snapshot.sees(writer, self.id);
        seen.map_err(|WriterEnding(writer)| {
            let ended = self.worker.shared.txns.ended(writer);
            Suspend::new(WaitReason::CommitNumber, ended).into()
        })
    }

    /// True if a version of a row is seen. READ UNCOMMITTED sees the newest version, but of large
    /// rows only what its snapshot sees. The pages of another's large row are released when its
    /// writer rolls back, while they are read.
    pub(crate) fn sees_version(&mut self, header: &RowHeader) -> Outcome<bool> {
        if self.options.isolation == Isolation::ReadUncommitted && !header.is_spilled {
            return Ok(true);
        }
        self.sees(header.txn)
    }

    /// Notes an undo record that a committed mini-transaction has written.
    pub(crate) fn note_undo(&mut self, pointer: UndoPointer) {
        assert!(self.id.is_some(), "who changes something has an id (I1)");
        assert_eq!(
            self.promise,
            Promise::None,
            "who is prepared changes nothing"
        );
        assert!(
            !pointer.is_null() && pointer != self.last_undo,
            "each record is noted once"
        );
        self.last_undo = pointer;
        self.undo_count += 1;
        self.has_log = true;
        let count = self.undo_count;
        self.open().show_changes(count);
    }

    /// Runs an operation. If its error ends the transaction (a deadlock's victim), the whole
    /// transaction is rolled back first, by this call or by repeated ones.
    pub(crate) fn run<T>(&mut self, operation: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.end_if_doomed()?;
        let outcome = operation(self);
        let outcome = self.worker.reported(outcome);
        if let Err(Interrupt::Error(error)) = &outcome
            && error.ends_transaction()
        {
            self.doom = Some(error.clone());
            self.end_if_doomed()?;
        }
        outcome
    }

    /// Rolls a doomed transaction back, by this call or by repeated ones, then fails with the
    /// reason. Does nothing to other transactions.
    fn end_if_doomed(&mut self) -> Outcome<()> {
        let Some(error) = self.doom.clone() else {
            return Ok(());
        };
        self.roll_back()?;
        Err(error.into())
    }

    /// Rolls the transaction back as a deadlock's victim is, by this call or by repeated ones.
    pub(crate) fn fail<T>(&mut self, error: StoreError) -> Outcome<T> {
        assert!(error.ends_transaction(), "all of it is rolled back");
        self.doom = Some(error.clone());
        self.end_if_doomed()?;
        Err(error.into())
    }

    /// Whether something was promised about it: it is prepared, or is rolled back behind that.
    pub(crate) fn has_promise(&self) -> bool {
        self.promise != Promise::None
    }

    /// Whether it was prepared and its rollback has begun, so that a part of it may be undone.
    fn is_revoked(&self) -> bool {
        matches!(self.promise, Promise::Revoking | Promise::Revoked(_))
    }

    /// Whether its id is or was this one, and something of that transaction is left.
    pub(crate) fn has_rest_of(&self, id: TxnId) -> bool {
        self.id == Some(id) || self.locks.as_ref().is_some_and(|it| it.owner() == id)
    }

    /// Undoes everything since `mark`; gives way to other tasks when it has undone much. A
    /// transaction that goes on keeps its locks.
    fn undo_to(&mut self, mark: u64, after: After) -> Outcome<()> {
        if !self.pending.is_rollback {
            self.stop_operation();
            self.pending.is_rollback = true;
        }
        while mark < self.undo_count {
            if after == After::GoesOn {
                self.keep_lock(self.last_undo)?;
            }
            let left = match self.locks_gaps() {
                true => LeftLock::Gap,
                false => LeftLock::Nothing,
            };
            let progress = self.pending.undoing.get_or_insert_default();
            progress.left = left;
            let previous = self.worker.undo_one(self.last_undo, progress)?;
            self.undo_count -= 1;
            self.last_undo = previous;
            if let Some(replication) = &mut self.replication {
                replication.cut(self.undo_count);
            }
            if (self.undo_count == 0) != previous.is_null() {
                let what = "the undo of a transaction does not end where its first change is";
                return Err(StoreError::damaged(what).into());
            }
            if mark < self.undo_count && self.undo_count.is_multiple_of(UNDONE_PER_TURN) {
                return Err(Suspend::turn().into());
            }
        }
        assert_eq!(
            self.undo_count == 0,
            self.last_undo.is_null(),
            "undo is counted (I1)"
        );
        self.pending.is_rollback = false;
        // Not earlier: others would find, and wait for, what is about to be undone.
        self.release_brief();
        if let Some(open) = &self.open {
            open.show_changes(self.undo_count);
        }
        Ok(())
    }

    /// Runs a change that is made of steps. When it is done, its place is dropped. If it ends
    /// otherwise (a duplicate, an error), what it has done is undone first.
    pub(crate) fn run_operation<T>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Outcome<T>,
        is_done: impl FnOnce(&T) -> bool,
    ) -> Outcome<T> {
        self.run(|txn| {
            if let Some(begun_at) = txn.pending.undo_to {
                txn.undo_operation(begun_at)?;
                let ended = std::mem::take(&mut txn.pending);
                if let Some(failure) = ended.failure {
                    return Err(failure.into());
                }
                txn.pending.refusal = ended.refusal;
            }
            let begun_at = *txn.pending.begun_at.get_or_insert(txn.undo_count);
            assert!(
                begun_at <= txn.undo_count,
                "an operation undoes its own changes alone"
            );
            let outcome = operation(txn);
            match &outcome {
                Err(Interrupt::Suspend(_)) => return outcome,
                Ok(answer) if is_done(answer) => {}
                _ if begun_at < txn.undo_count => {
                    let refusal = txn.pending.refusal.take();
                    let undone = txn.undo_operation(begun_at);
                    if undone.is_err() {
                        txn.pending.refusal = refusal;
                        if let Err(Interrupt::Error(failure)) = &outcome {
                            txn.pending.failure = Some(failure.clone());
                        }
                    }
                    undone?;
                }
                _ => {}
            }
            txn.pending = Pending::default();
            txn.release_brief();
            outcome
        })
    }

    /// Undoes the operation under way. If that suspends, the repeated operation continues it. Then
    /// it returns the failure or the refusal. If it began again after one of these, the row would
    /// be written and undone for ever while its pages are read one after the other.
    fn undo_operation(&mut self, begun_at: u64) -> Outcome<()> {
        let undone = self.undo_to(begun_at, After::GoesOn);
        if undone.is_err() {
            self.pending.undo_to = Some(begun_at);
        }
        undone
    }

    /// Whether its commit record is in the log, durable or not.
    pub(crate) fn is_committing(&self) -> bool {
        self.commit_lsn.is_some()
    }

    /// Drops everything that ends with the transaction, except its locks.
    fn release(&mut self) {
        if let Some(id) = self.id {
            assert!(
                !self.worker.shared.txns.is_active(id),
                "the outcome is published before anything is released (I2)"
            );
            self.worker.note_end();
        }
        self.pending = Pending::default();
        self.claim = None;
        self.snapshot = None;
        self.id = None;
        self.last_undo = UndoPointer::NULL;
        self.undo_count = 0;
        self.has_log = false;
        self.is_active = false;
        self.new_counter = None;
        if let Promise::Prepared(_) = self.promise {
            self.promise = Promise::None;
        }
        self.tables.clear();
        self.open = None;
    }

    /// Releases the locks of an ended transaction; gives way if there are many.
    fn release_locks(&mut self) -> Outcome<()> {
        assert!(self.id.is_none(), "locks are released behind the end (I2)");
        if let Some(locks) = &mut self.locks
            && locks.release_some(LOCKS_PER_TURN)
        {
            return Err(Suspend::turn().into());
        }
        self.locks = None;
        Ok(())
    }

    /// Ends a transaction that has an id, or is idle; a commit at its place, if it has one.
    fn end(&mut self, outcome: TxnOutcome<'_>, position: Option<Position>) -> Outcome<Option<Lsn>> {
        assert!(self.has_log || self.undo_count == 0, "undo is in the log");
        let lsn = match self.id {
            Some(id) if self.has_log => {
                assert!(self.commit_lsn.is_none(), "a transaction ends once");
                assert_eq!(
                    self.undo_count == 0,
                    self.last_undo.is_null(),
                    "undo is counted (I1)"
                );
                Some(self.worker.write_end(&Ending {
                    id,
                    segment: self.segment,
                    last_undo: self.last_undo,
                    outcome,
                    position,
                })?)
            }
            // Without undo in the log no end is needed there.
            locker => {
                let passed = position.map(|position| self.worker.pass_place(position));
                let lsn = passed.transpose()?;
                if let Some(id) = locker {
                    self.worker.shared.txns.finish_rollback(id);
                }
                lsn
            }
        };
        self.release();
        Ok(lsn)
    }

    /// Undoes everything and ends it, by this call or by repeated ones.
    pub(crate) fn roll_back(&mut self) -> Outcome<()> {
        if let Promise::Prepared(_) = self.promise {
            self.promise = Promise::Revoking;
        }
        if let Some(open) = &self.open {
            open.show_rollback();
        }
        self.undo_to(0, After::Ends)?;
        let ended = self.end(TxnOutcome::RolledBack, None)?;
        if let (Promise::Revoking, Some(lsn)) = (self.promise, ended) {
            self.promise = Promise::Revoked(lsn);
        }
        self.release_locks()?;
        // Else a crash would bring back what somebody was told is gone.
        if let Promise::Revoked(lsn) = self.promise {
            self.worker.wait_durable(lsn, Durability::Durable)?;
            self.promise = Promise::None;
        }
        self.doom = None;
        Ok(())
    }

    /// Leaves the write set that was sent to the worker: somebody must apply it (R1 of
    /// `replication`).
    fn give_up_place(&mut self) {
        if let Some(replication) = &mut self.replication {
            let next = replication.next();
            let left = std::mem::replace(&mut **replication, next);
            self.worker.finish_later(left);
        }
    }

    /// Marks it to be rolled back before anything else.
    pub(crate) fn set_doom(&mut self, error: StoreError) {
        self.doom.get_or_insert(error);
    }

    /// Cancels a lock wait and the operation under way, and releases the operation's locks. One
    /// whose statement was killed is not called again, so nothing else would release them.
    fn abandon_operation(&mut self) {
        self.stop_operation();
        self.release_brief();
    }

    /// Cancels a lock wait and the operation under way. The operation's locks stay.
    fn stop_operation(&mut self) {
        self.pending = Pending::default();
        self.end_wait();
    }

    /// Cancels a lock wait. If the lock was granted, it is kept.
    pub(crate) fn end_wait(&mut self) {
        if let Some(locks) = self.locks.as_mut() {
            locks.cancel_wait(self.worker.now_ns());
        }
        self.record_wait();
    }

    /// Cancels the lock wait of a scan that goes on without that lock. If it was granted, it is
    /// kept, unless it was for an operation: that is over. Whoever asked for it later would be told
    /// that it is held, and lose it when the next operation ends. Error 1213 if the transaction is
    /// to be rolled back because of the wait.
    pub(crate) fn leave_wait(&mut self) -> Result<(), StoreError> {
        // The clock is read for a wait alone: each row of a locking scan comes here.
        let waiting = self.locks.as_mut().filter(|locks| locks.has_pending());
        let left = waiting.map_or(Ok(()), |locks| {
            let left = locks.leave_wait(self.worker.now_ns());
            locks.release_brief();
            left
        });
        self.record_wait();
        left.map_err(|_| StoreError::Deadlock)
    }

    /// Counts the time of a lock wait that has ended.
    pub(crate) fn record_wait(&mut self) {
        let waited = self.locks.as_mut().and_then(OwnerLocks::take_waited);
        if let Some(waited) = waited {
            let waited_us = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
            self.worker.counters().lock_waits_us.record(waited_us);
        }
    }
}

impl Transaction for EngineTransaction {
    fn key(&mut self, _: StoreId) -> TransactionKey {
        unreachable!("tables ask the handle of a transaction, and see no schema change")
    }

    fn begin_statement(&mut self) {
        self.abandon_operation();
        self.claim = None;
        self.releasable.clear();
        // Not in every call that abandons an operation: a rollback is called again after its waits,
        // and fetches their failures.
        self.worker.pages.forget_wait_failure();
        let is_for_statement = matches!(
            self.options.isolation,
            Isolation::ReadUncommitted | Isolation::ReadCommitted
        );
        if is_for_statement {
            self.snapshot = None;
        }
    }

    fn open_snapshot(&mut self) {
        self.snapshot();
    }

    fn mark(&self) -> UndoMark {
        UndoMark(self.undo_count)
    }

    fn rollback_to(&mut self, mark: UndoMark) -> Outcome<()> {
        self.run(|txn| txn.undo_to(mark.0, After::GoesOn))
    }

    fn prepare(&mut self) -> Outcome<Prepared> {
        self.end_if_doomed()?;
        if !self.has_changes() {
            return Ok(Prepared::Nothing);
        }
        let what = "PREPARE of a transaction that has changed tables of the embedded engine";
        Err(StoreError::NotSupported { what }.into())
    }

    fn prepare_as(&mut self, xid: &Xid, durability: Durability) -> Outcome<Prepared> {
        self.end_if_doomed()?;
        if self.is_captured() && self.has_changes() {
            let what = "XA PREPARE on a node of a group";
            return Err(StoreError::NotSupported { what }.into());
        }
        let lsn = match (self.promise, self.id) {
            (Promise::Prepared(lsn), _) => lsn,
            (Promise::None, Some(id)) if self.has_changes() => {
                self.abandon_operation();
                let undo = (self.last_undo, self.undo_count);
                let (pointer, lsn) = self.worker.write_prepared(id, undo, xid)?;
                self.note_undo(pointer);
                self.show_changes_of_prepared();
                self.promise = Promise::Prepared(lsn);
                lsn
            }
            _ => return Ok(Prepared::Nothing),
        };
        if !is_planted(Mistake::PromisesBeforeFlush) {
            self.worker.wait_durable(lsn, durability)?;
        }
        Ok(Prepared::Ready)
    }

    fn commit(&mut self, durability: Durability) -> Outcome<()> {
        if self.is_revoked() {
            // Its rollback has failed in the middle. The rest must not be committed alone.
            self.rollback()?;
            return Err(StoreError::RolledBack.into());
        }
        if self.has_promise() && self.worker.shared.provider().is_some() {
            // It was prepared before the node had its part, and no other node would have it.
            let what = "XA COMMIT on a node of a group";
            return Err(StoreError::NotSupported { what }.into());
        }
        if self.applied_seqno().is_none() {
            self.end_if_doomed()?;
        }
        if self.commit_lsn.is_none() {
            if self
                .replication
                .as_ref()
                .is_none_or(|it| it.stage == Stage::Open)
            {
                self.abandon_operation();
            }
            let position = self.take_place()?;
            let counter = self.new_counter.take();
            let ended = self.end(TxnOutcome::Committed(counter.as_deref()), position);
            if ended.is_err() {
                self.new_counter = counter;
            }
            self.commit_lsn = ended?;
            if let Some(replication) = &mut self.replication {
                replication.reset();
            }
        }
        self.release_locks()?;
        if let Some(lsn) = self.commit_lsn {
            self.worker.wait_durable(lsn, durability)?;
            self.commit_lsn = None;
        }
        Ok(())
    }

    fn rollback(&mut self) -> Outcome<()> {
        self.give_up_place();
        self.roll_back()
    }

    fn has_changes(&self) -> bool {
        0 < self.undo_count
    }

    fn is_active(&self) -> bool {
        self.is_active || self.doom.is_some()
    }

    fn set_lock_wait_timeout(&mut self, seconds: u64) {
        self.options.lock_wait_timeout_s = seconds;
    }

    fn id(&self) -> u64 {
        self.id.map_or(0, TxnId::get)
    }

    fn keep(&mut self, kept: Box<dyn Any>) {
        self.kept = Some(kept);
    }
}

impl Drop for EngineTransaction {
    fn drop(&mut self) {
        self.abandon_operation();
        self.give_up_place();
        let Some(id) = self.id else {
            return;
        };
        if let Promise::Prepared(_) = self.promise {
            self.worker.undecided.borrow_mut().extend(self.locks.take());
            return;
        }
        let locks = self.locks.take();
        let (last_undo, has_log) = (self.last_undo, self.has_log);
        assert!(has_log || last_undo.is_null(), "undo is in the log");
        let orphan = Orphan {
            id,
            segment: self.segment,
            last_undo,
            has_log,
            locks,
            kept: self.kept.take(),
            open: self.open.take(),
        };
        if let Some(open) = &orphan.open {
            open.show_rollback();
        }
        self.worker.orphans.borrow_mut().push(orphan);
        self.worker.orphans_due.notify_own();
    }
}
