//! The session's transaction: when it begins, what ends it, what a failed statement rolls back.
//!
//! ```text
//!   None --first statement--> Open --commit, rollback--> None
//! ```
//!
//! (I1) A store transaction exists from the first statement that needs one until its end.
//! `is_begun` says whether the end of the statement ends it: after BEGIN or with autocommit off
//! it does not.
//! (I2) Metadata locks and savepoints live exactly as long as the transaction. If it is rolled back
//! in the background, the locks live until that is done.
//! (I3) It passes the gate of admission once, at its first statement, and holds its pass until
//! its outcome is in the log and its locks are released. What waits for the disk alone is in no
//! one's way.

use std::future::poll_fn;
use std::pin::Pin;

use admission::Pass;
use errcode::ErrorCode;
use executor::HandlerCall;
use expression::Share;
use runtime::TaskClass;
use store::{
    Durability, Isolation, Store, StoreError, Suspend, TableId, Transaction, TransactionOptions,
    UndoMark, WaitReason,
};

use crate::lock::metadata::SharedHold;
use crate::xa::branch::{XaBranch, XaState};
use crate::xa::detached::Detached;

/// What a savepoint takes in addition to its name: its entry, twice while the list grows.
const SAVEPOINT_BYTES: usize = 2 * size_of::<(String, End)>() + 16;

/// What `SET TRANSACTION` has set for the next transaction alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NextTransaction {
    /// `ISOLATION LEVEL ..`.
    pub isolation: Option<Isolation>,
    /// `READ ONLY` (true), `READ WRITE` (false).
    pub read_only: Option<bool>,
}

/// Whether the transaction has passed the gate of admission (I3).
#[derive(Debug, Default)]
enum Admitted {
    /// It has not.
    #[default]
    No,
    /// It does not count.
    Uncounted,
    /// It counts.
    Counted(Pass),
}

/// A session's transaction, or the lack of one.
#[derive(Debug, Default)]
pub struct TransactionState {
    /// The store's transaction.
    open: Option<Box<dyn Transaction>>,
    /// Whether it may use the store.
    admitted: Admitted,
    /// BEGIN was executed, and neither COMMIT nor ROLLBACK since.
    is_begun: bool,
    /// It is read-only, by its BEGIN or by what was set for it. False while none is open.
    pub is_read_only: bool,
    /// Locks of the tables in use.
    holds: Vec<SharedHold>,
    /// Made with the session's first one.
    savepoints: Option<Box<Savepoints>>,
    /// The XA transaction that it is. It outlives the store's transaction, if that is rolled back.
    xa: Option<Box<XaBranch>>,
    /// For the next BEGIN or first statement.
    pub next: NextTransaction,
    /// What it has done.
    pub seen: Seen,
}

/// The savepoints of a transaction.
#[derive(Debug, Default)]
struct Savepoints {
    /// In order of creation, each with what goes back to it. A name that is set again moves to the
    /// end.
    list: Vec<(String, End)>,
    /// Of the memory for statements.
    share: Share,
}

/// What a transaction has done, for clients that track it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Tables were read.
    pub reads: bool,
    /// Tables were written.
    pub writes: bool,
    /// Rows were sent.
    pub results: bool,
}

impl TransactionState {
    /// True between BEGIN and its end.
    pub fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// True if there is anything for COMMIT to end.
    pub fn is_open(&self) -> bool {
        self.is_begun || self.open.is_some()
    }

    /// BEGIN. The former transaction must have been committed.
    pub fn begin(&mut self, is_read_only: bool) {
        assert!(self.open.is_none(), "BEGIN commits what was open");
        self.is_begun = true;
        self.is_read_only = is_read_only;
    }

    /// The store's transaction, created if there is none.
    pub fn store_transaction(
        &mut self,
        store: &dyn Store,
        options: impl FnOnce() -> TransactionOptions,
    ) -> &mut Box<dyn Transaction> {
        self.open.get_or_insert_with(|| {
            let options = options();
            self.is_read_only = options.read_only;
            store.begin(options)
        })
    }

    /// True if it has passed the gate.
    pub fn is_admitted(&self) -> bool {
        !matches!(self.admitted, Admitted::No)
    }

    /// It has passed the gate; without a pass it does not count.
    pub fn admit(&mut self, pass: Option<Pass>) {
        self.admitted = pass.map_or(Admitted::Uncounted, Admitted::Counted);
    }

    /// The pass that it holds.
    pub fn pass(&mut self) -> Option<&mut Pass> {
        match &mut self.admitted {
            Admitted::Counted(pass) => Some(pass),
            Admitted::No | Admitted::Uncounted => None,
        }
    }

    /// It holds nothing any more that others wait for. It still counts as admitted.
    pub fn leave_gate(&mut self, how: End) {
        if let Some(pass) = self.take_pass() {
            how.leave(pass);
        }
    }

    /// Takes its pass, which is to be given back at its end. It still counts as admitted.
    pub fn take_pass(&mut self) -> Option<Pass> {
        match std::mem::replace(&mut self.admitted, Admitted::Uncounted) {
            Admitted::Counted(pass) => Some(pass),
            Admitted::No | Admitted::Uncounted => None,
        }
    }

    /// True if a statement has used the store in it.
    pub fn is_active(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_active())
    }

    /// The store's transaction, if there is one.
    pub fn opened(&mut self) -> Option<&mut Box<dyn Transaction>> {
        self.open.as_mut()
    }

    /// True if the table's lock is held already.
    pub fn holds(&self, table: TableId) -> bool {
        self.holds.iter().any(|hold| hold.table() == table)
    }

    /// Tables in use.
    pub fn held_tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.holds.iter().map(SharedHold::table)
    }

    /// Holds a table's metadata lock until the transaction's end.
    pub fn keep(&mut self, hold: SharedHold) {
        self.holds.push(hold);
    }

    /// About what the savepoints would take with one more, and the share to count it in.
    pub fn savepoints_share(&mut self, name: &str) -> (&mut Share, usize) {
        let savepoints = self.savepoints.get_or_insert_default();
        let names = savepoints.list.iter().map(|(name, _)| name.len());
        let count = savepoints.list.len() + 1;
        let bytes = names.sum::<usize>() + name.len() + count * SAVEPOINT_BYTES;
        (&mut savepoints.share, bytes)
    }

    /// Sets a savepoint here. Before the first use of the store there is nothing to go back to but
    /// the beginning: then all locks go, too, as in MariaDB.
    pub fn set_savepoint(&mut self, name: &str) {
        self.release_savepoint(name);
        let used = self.open.as_ref().filter(|open| open.is_active());
        let back = used.map_or(End::Rollback, |open| End::RollbackTo(open.mark()));
        let savepoints = self.savepoints.get_or_insert_default();
        savepoints.list.push((name.to_owned(), back));
    }

    /// What goes back to a savepoint; those set after it are removed.
    pub fn savepoint(&mut self, name: &str) -> Option<End> {
        let list = &mut self.savepoints.as_mut()?.list;
        let position = position(list, name)?;
        list.truncate(position + 1);
        list.last().map(|(_, back)| *back)
    }

    /// Removes a savepoint. Returns false if there is none of that name.
    pub fn release_savepoint(&mut self, name: &str) -> bool {
        let Some(savepoints) = &mut self.savepoints else {
            return false;
        };
        let found = position(&savepoints.list, name);
        found.map(|place| savepoints.list.remove(place)).is_some()
    }

    /// Drops the store's transaction, which was not used.
    pub fn forget_unused(&mut self) {
        self.open = None;
        if !self.is_begun {
            self.admitted = Admitted::No;
        }
        self.is_read_only &= self.is_begun;
    }

    /// Drops everything after the end of the store's transaction. If it has not ended, it is rolled
    /// back in the background, and its tables stay locked until then.
    pub fn end(&mut self) {
        if let Some(mut open) = self.open.take()
            && open.is_active()
        {
            open.keep(Box::new(std::mem::take(&mut self.holds)));
        }
        self.is_begun = false;
        self.is_read_only = false;
        self.admitted = Admitted::No;
        self.seen = Seen::default();
        // These keep their memory for the next transaction.
        self.holds.clear();
        if let Some(savepoints) = &mut self.savepoints {
            savepoints.list.clear();
            savepoints.share.clear();
        }
    }

    /// Drops the store's transaction after a deadlock rolled it back, or whichever error it is. An
    /// explicit transaction ends with it, as in InnoDB.
    pub fn lost(&mut self, error: ErrorCode) {
        self.end();
        if let Some(branch) = &mut self.xa {
            branch.state = XaState::lost(error);
        }
    }

    /// The XA transaction.
    pub(crate) fn xa(&mut self) -> Option<&mut XaBranch> {
        self.xa.as_deref_mut()
    }

    /// It is an XA transaction.
    pub(crate) fn set_xa(&mut self, branch: XaBranch) {
        assert!(self.xa.is_none(), "a session has one XA transaction");
        self.xa = Some(Box::new(branch));
    }

    /// It is an XA transaction no more.
    pub(crate) fn take_xa(&mut self) -> Option<XaBranch> {
        self.xa.take().map(|branch| *branch)
    }

    /// True if it has changed something in the store.
    pub(crate) fn has_changes(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.has_changes())
    }

    /// Gives the prepared transaction away, with the locks of its tables.
    pub(crate) fn detach(&mut self) -> Detached {
        let open = self.open.take();
        let holds = std::mem::take(&mut self.holds);
        self.end();
        Detached::new(open, holds)
    }
}

/// The place of a savepoint.
fn position(list: &[(String, End)], name: &str) -> Option<usize> {
    list.iter()
        .position(|(of, _)| of.eq_ignore_ascii_case(name))
}

/// One step of an end: `Ok(None)` when it is done, else the suspension to await.
pub fn end_step(open: &mut dyn Transaction, how: End) -> Result<Option<Suspend>, StoreError> {
    let outcome = match how {
        End::Commit(durability) => open.commit(durability),
        End::Rollback => open.rollback(),
        End::RollbackTo(mark) => open.rollback_to(mark),
    };
    match outcome {
        Ok(()) => Ok(None),
        Err(store::Interrupt::Suspend(suspend)) => Ok(Some(suspend)),
        Err(store::Interrupt::Error(error)) => Err(error),
    }
}

/// Waits for a suspension of an end. If it waits for its commit, the task says so to the worker.
pub(crate) async fn wait_for_end(mut suspend: Suspend) {
    let is_commit = suspend.reason() == WaitReason::Durability;
    poll_fn(|context| {
        let polled = Pin::new(&mut suspend).poll(context);
        if is_commit && polled.is_pending() {
            runtime::set_task_class(TaskClass::Committing);
        }
        polled
    })
    .await;
}

/// How a transaction, or a part of one, ends.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// Durably, or as `Durability` says.
    Commit(Durability),
    /// Everything is undone.
    Rollback,
    /// What came after the mark is undone.
    RollbackTo(UndoMark),
}

impl End {
    /// Gives back the pass of a transaction that has ended in this way.
    pub(crate) fn leave(self, pass: Pass) {
        match self {
            Self::Commit(_) => pass.commit(),
            Self::Rollback | Self::RollbackTo(_) => pass.roll_back(),
        }
    }

    /// The `Handler_%` call that it counts as.
    pub(crate) fn handler_call(self) -> HandlerCall {
        match self {
            Self::Commit(_) => HandlerCall::Commit,
            Self::Rollback => HandlerCall::Rollback,
            Self::RollbackTo(_) => HandlerCall::SavepointRollback,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::cell::RefCell;
    use std::rc::Rc;

    use store::{Outcome, Prepared, StoreId, TransactionKey, Xid};

    use super::*;
    use crate::lock::metadata::{MetadataLocks, MetadataWorker};

    #[test]
    fn a_savepoint_made_again_moves_and_going_back_forgets_later_ones() {
        let mut state = TransactionState::default();
        state.begin(false);
        state.set_savepoint("a");
        state.set_savepoint("b");
        state.set_savepoint("A");
        assert!(state.savepoint("b").is_some());
        assert!(state.savepoint("a").is_none(), "a was made after b");
        assert!(state.release_savepoint("B"));
        assert!(!state.release_savepoint("b"));
    }

    #[test]
    fn an_end_keeps_only_what_is_for_the_next_transaction() {
        let mut state = TransactionState::default();
        state.next.read_only = Some(true);
        state.begin(true);
        state.set_savepoint("a");
        state.end();
        assert!(!state.is_open() && !state.is_read_only);
        assert_eq!(state.next.read_only, Some(true));
        assert!(state.savepoint("a").is_none());
    }

    /// A store transaction that has not ended, and what it was given to keep.
    #[derive(Debug, Default)]
    struct Unended(Rc<RefCell<Option<Box<dyn Any>>>>);

    impl Transaction for Unended {
        fn key(&mut self, _: StoreId) -> TransactionKey {
            unreachable!("it has no tables")
        }

        fn begin_statement(&mut self) {}

        fn open_snapshot(&mut self) {}

        fn mark(&self) -> UndoMark {
            UndoMark(1)
        }

        fn rollback_to(&mut self, _: UndoMark) -> Outcome<()> {
            Ok(())
        }

        fn prepare(&mut self) -> Outcome<Prepared> {
            Ok(Prepared::Ready)
        }

        fn prepare_as(&mut self, _: &Xid, _: Durability) -> Outcome<Prepared> {
            Ok(Prepared::Ready)
        }

        fn commit(&mut self, _: Durability) -> Outcome<()> {
            Ok(())
        }

        fn rollback(&mut self) -> Outcome<()> {
            Ok(())
        }

        fn has_changes(&self) -> bool {
            true
        }

        fn is_active(&self) -> bool {
            true
        }

        fn set_lock_wait_timeout(&mut self, _: u64) {}

        fn id(&self) -> u64 {
            1
        }

        fn keep(&mut self, kept: Box<dyn Any>) {
            *self.0.borrow_mut() = Some(kept);
        }
    }

    #[test]
    fn a_transaction_that_is_given_up_holds_its_tables_until_it_is_undone() {
        let locks = MetadataLocks::new(1);
        let worker = MetadataWorker::new(0);
        let kept = Rc::default();
        let mut state = TransactionState {
            open: Some(Box::new(Unended(Rc::clone(&kept)))),
            ..TransactionState::default()
        };
        state.keep(worker.try_hold(&locks, TableId(5)).unwrap());
        state.lost(errcode::ER_LOCK_DEADLOCK);
        let is_held = |hold: &Box<dyn Any>| hold.is::<Vec<SharedHold>>();
        assert!(kept.borrow().as_ref().is_some_and(is_held));
        assert!(!state.is_open() && !state.holds(TableId(5)));
    }
}
