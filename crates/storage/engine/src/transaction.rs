//! A transaction: its id, snapshot, locks and place in the undo.
//!
//! States: idle (nothing used) -> active (snapshot or id) -> committing (the commit record is in
//! the log, visible to others, not yet durable) -> ended. A dropped active transaction becomes an
//! orphan that the worker's background task rolls back.
//!
//! (I1) The id is taken by the first change or lock; the undo count is 0 exactly if nothing is to
//! be undone.
//! (I2) Locks are released after the fate was published, so who gets them sees the fate. That is
//! true of implicit ones, too: a row is its writer's until the writer's fate is published.

use std::any::Any;
use std::rc::Rc;

use format::page_op::PageOp;
use format::row_header::RowHeader;
use format::undo::{UndoKind, UndoRecord};
use format::{Lsn, TxnId, UndoPointer};
use lock::OwnerLocks;
use store::{
    Durability, Halt, Isolation, Outcome, StoreError, Suspend, Transaction, TransactionOptions,
    UndoMark, WaitReason,
};
use txn::{Snapshot, WriterEnding};

use crate::row::auto_increment::NewCounter;
use crate::row::write::Pending;
use crate::undo::rollback::UNDONE_PER_TURN;
use crate::undo::undo_log::apply;
use crate::worker::{Orphan, Worker};

/// Locks that are released before others have their turn: some 100 us.
pub(crate) const LOCKS_PER_TURN: usize = 512;

/// A transaction of the engine.
#[derive(Debug)]
pub struct EngineTransaction {
    /// Its worker.
    pub(crate) worker: Rc<Worker>,
    /// As begun.
    pub(crate) options: TransactionOptions,
    /// Its id, once it has changed or locked something.
    pub(crate) id: Option<TxnId>,
    /// Its explicit locks; there with the id, and behind its end until all are released.
    pub(crate) locks: Option<OwnerLocks>,
    /// What its consistent reads see.
    snapshot: Option<Snapshot>,
    /// Its last undo record.
    pub(crate) last_undo: UndoPointer,
    /// How many undo records lead from there to the beginning.
    pub(crate) undo_count: u64,
    /// Undo of it is in the log, undone or not.
    has_log: bool,
    /// Why it must be rolled back before anything else: a deadlock's victim, say. A part of it may
    /// be undone already, so nothing of it may be committed.
    doom: Option<StoreError>,
    /// How far the operation under way has come.
    pub(crate) pending: Pending,
    /// The commit record's end, while its durability is awaited.
    commit_lsn: Option<Lsn>,
    /// A statement has used it.
    is_active: bool,
    /// What its commit makes of a table's counter: ALTER TABLE .. AUTO_INCREMENT.
    pub(crate) new_counter: Option<Box<NewCounter>>,
    /// What is dropped with it, or, where it is dropped before its end, when everything is undone.
    pub(crate) kept: Option<Box<dyn Any>>,
}

impl EngineTransaction {
    pub(crate) fn new(worker: Rc<Worker>, options: TransactionOptions) -> Self {
        Self {
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
            commit_lsn: None,
            is_active: false,
            new_counter: None,
            kept: None,
        }
    }

    /// Its id; taken now if it has none.
    pub(crate) fn ensure_id(&mut self) -> Outcome<TxnId> {
        self.is_active = true;
        if let Some(id) = self.id {
            return Ok(id);
        }
        let id = self.worker.allocate_txn_id()?;
        let table = std::sync::Arc::clone(&self.worker.shared.locks);
        self.locks = Some(OwnerLocks::new(table, id));
        self.id = Some(id);
        Ok(id)
    }

    /// The same for a change.
    pub(crate) fn ensure_writer(&mut self) -> Outcome<TxnId> {
        if self.options.read_only {
            return Err(StoreError::ReadOnly.into());
        }
        self.ensure_id()
    }

    /// What consistent reads see, opened now if it is not open.
    pub(crate) fn snapshot(&mut self) -> &Snapshot {
        self.is_active = true;
        let worker = &self.worker;
        self.snapshot
            .get_or_insert_with(|| worker.txns.open_snapshot(|| worker.pages.reserved()))
    }

    /// Opens what the isolation level reads through, if it is not open.
    pub(crate) fn open_view(&mut self) {
        if self.options.isolation != Isolation::Serializable {
            self.snapshot();
        }
    }

    /// What its consistent reads see commits up to, if that is settled.
    pub(crate) fn view(&self) -> Option<Lsn> {
        self.snapshot.as_ref().map(Snapshot::lsn)
    }

    /// True if what `writer` has written is seen, by a snapshot.
    pub(crate) fn sees(&mut self, writer: TxnId) -> Outcome<bool> {
        let own = self.id;
        let seen = self.snapshot().sees(writer, own);
        seen.map_err(|WriterEnding(writer)| {
            let ended = self.worker.shared.txns.ended(writer);
            Suspend::new(WaitReason::CommitNumber, ended).into()
        })
    }

    /// True if a version of a row is seen. READ UNCOMMITTED sees whatever is there, but of large
    /// rows only what its snapshot sees: the pages of others go when their writer rolls back, while
    /// they are read.
    pub(crate) fn sees_version(&mut self, header: &RowHeader) -> Outcome<bool> {
        if self.options.isolation == Isolation::ReadUncommitted && !header.is_spilled {
            return Ok(true);
        }
        self.sees(header.txn)
    }

    /// Notes an undo record that a committed mini-transaction has written.
    pub(crate) fn note_undo(&mut self, pointer: UndoPointer) {
        self.last_undo = pointer;
        self.undo_count += 1;
        self.has_log = true;
    }

    /// Runs an operation; if it fails so that the transaction ends (a deadlock's victim), all of it
    /// is rolled back, by this call or by repeated ones, before the error is told.
    pub(crate) fn run<T>(&mut self, operation: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.end_if_doomed()?;
        let outcome = operation(self);
        if let Err(Halt::Error(error)) = &outcome
            && error.ends_transaction()
        {
            self.doom = Some(error.clone());
            self.end_if_doomed()?;
        }
        outcome
    }

    /// Rolls a doomed transaction back, by this call or by repeated ones; then fails with the
    /// reason. Does nothing to another.
    fn end_if_doomed(&mut self) -> Outcome<()> {
        let Some(error) = self.doom.clone() else {
            return Ok(());
        };
        self.rollback()?;
        Err(error.into())
    }

    /// Undoes everything since `mark`; gives way to others when it has undone much.
    fn undo_to(&mut self, mark: u64) -> Outcome<()> {
        if !self.pending.is_rollback {
            self.abandon_operation();
            self.pending.is_rollback = true;
        }
        while mark < self.undo_count {
            let previous = self
                .worker
                .undo_one(self.last_undo, &mut self.pending.undoing)?;
            self.undo_count -= 1;
            self.last_undo = previous;
            if mark < self.undo_count && self.undo_count.is_multiple_of(UNDONE_PER_TURN) {
                return Err(Suspend::turn().into());
            }
        }
        self.pending.is_rollback = false;
        Ok(())
    }

    /// Runs a change that is made of steps. When it is done its place is forgotten; when it ends
    /// otherwise (a duplicate, an error), what it has done is undone first.
    pub(crate) fn run_operation<T>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Outcome<T>,
        is_done: impl FnOnce(&T) -> bool,
    ) -> Outcome<T> {
        self.run(|txn| {
            if let Some(begun_at) = txn.pending.undo_to {
                txn.undo_operation(begun_at)?;
                if let Some(failure) = std::mem::take(&mut txn.pending).failure {
                    return Err(failure.into());
                }
            }
            let begun_at = *txn.pending.begun_at.get_or_insert(txn.undo_count);
            let outcome = operation(txn);
            match &outcome {
                Err(Halt::Suspend(_)) => return outcome,
                Ok(answer) if is_done(answer) => {}
                _ if begun_at < txn.undo_count => {
                    let undone = txn.undo_operation(begun_at);
                    if undone.is_err()
                        && let Err(Halt::Error(failure)) = &outcome
                    {
                        txn.pending.failure = Some(failure.clone());
                    }
                    undone?;
                }
                _ => {}
            }
            txn.pending = Pending::default();
            outcome
        })
    }

    /// Undoes the operation under way. If that suspends, the repeated operation goes on with it
    /// and then tells the failure, or begins anew where it had none: it finds what was in its way.
    /// Were it begun anew after a failure, a row that is too large for a full disk would be written
    /// and undone for ever.
    fn undo_operation(&mut self, begun_at: u64) -> Outcome<()> {
        let undone = self.undo_to(begun_at);
        if undone.is_err() {
            self.pending.undo_to = Some(begun_at);
        }
        undone
    }

    /// Writes the record that ends the transaction; its end is the commit number. As undoing does,
    /// it takes the last room of a full disk.
    fn write_end(&mut self, id: TxnId, kind: UndoKind) -> Outcome<Lsn> {
        let worker = Rc::clone(&self.worker);
        let _undoing = worker.pages.undoing();
        worker.await_room(self.append_end(id, kind))
    }

    fn append_end(&mut self, id: TxnId, kind: UndoKind) -> Outcome<Lsn> {
        let worker = Rc::clone(&self.worker);
        let mut record = Vec::new();
        UndoRecord::end(kind, id, self.last_undo).encode(&mut record);
        loop {
            let mut change = worker.pages.change()?;
            let counter = match &self.new_counter {
                Some(counter) if kind == UndoKind::Commit => {
                    Some((counter, counter.latch(&mut change)?))
                }
                _ => None,
            };
            let Some(place) = worker.undo.place(&mut change, record.len())? else {
                drop(change);
                worker.undo.make_room(&worker.pages)?;
                continue;
            };
            // Before the fate is decided: a page that does not take the record leaves the
            // transaction as it is.
            let op = PageOp::UndoAppend { record: &record };
            apply(&mut change, place.page, &op)?;
            if kind == UndoKind::Commit {
                let commit = || match counter {
                    Some((counter, page)) => counter.commit(change, page),
                    None => change.commit(),
                };
                return Ok(worker.shared.txns.commit(id, commit));
            }
            let lsn = change.commit();
            worker.shared.txns.finish_undone(id, lsn);
            return Ok(lsn);
        }
    }

    /// Whether its commit record is in the log, durable or not.
    pub(crate) fn is_committing(&self) -> bool {
        self.commit_lsn.is_some()
    }

    /// Forgets everything that ends with the transaction, but for its locks.
    fn release(&mut self) {
        if self.id.is_some() {
            self.worker.note_end();
        }
        self.pending = Pending::default();
        self.snapshot = None;
        self.id = None;
        self.last_undo = UndoPointer::NULL;
        self.undo_count = 0;
        self.has_log = false;
        self.is_active = false;
        self.new_counter = None;
    }

    /// Releases the locks of a transaction that has ended; gives way where there are many.
    fn release_locks(&mut self) -> Outcome<()> {
        if let Some(locks) = &mut self.locks
            && locks.release_some(LOCKS_PER_TURN)
        {
            return Err(Suspend::turn().into());
        }
        self.locks = None;
        Ok(())
    }

    /// Ends a transaction that has an id, or is idle.
    fn end(&mut self, kind: UndoKind) -> Outcome<Option<Lsn>> {
        let Some(id) = self.id else {
            self.release();
            return Ok(None);
        };
        // Without undo in the log nothing needs an end there.
        let lsn = if self.has_log {
            Some(self.write_end(id, kind)?)
        } else {
            self.worker.shared.txns.finish_rollback(id);
            None
        };
        self.release();
        Ok(lsn)
    }

    /// Gives up a lock wait and whatever operation was under way.
    fn abandon_operation(&mut self) {
        self.pending = Pending::default();
        if let Some(locks) = &mut self.locks {
            locks.cancel_wait();
        }
    }
}

impl Transaction for EngineTransaction {
    fn begin_statement(&mut self) {
        self.abandon_operation();
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
        self.end_if_doomed()?;
        self.undo_to(mark.0)
    }

    fn commit(&mut self, durability: Durability) -> Outcome<()> {
        self.end_if_doomed()?;
        if self.commit_lsn.is_none() {
            self.abandon_operation();
            self.commit_lsn = self.end(UndoKind::Commit)?;
        }
        self.release_locks()?;
        if let Some(lsn) = self.commit_lsn {
            self.worker.wait_durable(lsn, durability)?;
            self.commit_lsn = None;
        }
        Ok(())
    }

    fn rollback(&mut self) -> Outcome<()> {
        self.undo_to(0)?;
        self.end(UndoKind::RolledBack)?;
        self.release_locks()?;
        self.doom = None;
        Ok(())
    }

    fn has_changes(&self) -> bool {
        0 < self.undo_count
    }

    fn is_active(&self) -> bool {
        self.is_active
    }

    fn set_lock_wait_timeout(&mut self, seconds: u64) {
        self.options.lock_wait_timeout_s = seconds;
    }

    fn id(&self) -> u64 {
        self.id.map_or(0, TxnId::get)
    }

    fn give_up(mut self: Box<Self>, kept: Box<dyn Any>) {
        self.kept = Some(kept);
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for EngineTransaction {
    fn drop(&mut self) {
        self.abandon_operation();
        if let Some(id) = self.id {
            let locks = self.locks.take();
            let (last_undo, has_log) = (self.last_undo, self.has_log);
            let orphan = Orphan {
                id,
                last_undo,
                has_log,
                locks,
                kept: self.kept.take(),
            };
            self.worker.orphans.borrow_mut().push(orphan);
            self.worker.orphans_due.notify_own();
        }
    }
}
