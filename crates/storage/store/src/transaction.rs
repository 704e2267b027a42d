//! Transactions of a store.
//!
//! ```text
//!   begin --> idle --statement--> active --commit, rollback--> idle
//!                                 active --prepare, prepare_as--> ready --commit, rollback--> idle
//! ```

use std::any::Any;
use std::fmt;

use crate::{ClientId, Outcome, StoreId, TransactionKey, Xid};

/// A transaction. Dropped without an end, it is rolled back in the background, unless it is kept
/// under a name ([`Transaction::prepare_as`]).
pub trait Transaction: fmt::Debug {
    /// The key by which the tables of `store` find this transaction among that store's own. A
    /// transaction of several stores begins its part in `store` when it is first asked.
    ///
    /// # Panics
    /// If it can have no part in `store`.
    fn key(&mut self, store: StoreId) -> TransactionKey;

    /// Begins a statement: under READ COMMITTED it reads a fresh snapshot.
    fn begin_statement(&mut self);

    /// Ends a statement whose operations were all done: makes those changes that a store has kept
    /// back to send them together. The statement has failed if this fails: the caller then rolls
    /// back to its mark. A commit does the same first.
    fn end_statement(&mut self) -> Outcome<()> {
        Ok(())
    }

    /// Opens the snapshot now (`START TRANSACTION WITH CONSISTENT SNAPSHOT`).
    fn open_snapshot(&mut self);

    /// The place to which `rollback_to` can return: a savepoint or a statement's begin.
    fn mark(&self) -> UndoMark;

    /// Undoes everything since `mark`; locks stay. If an earlier error demanded a rollback
    /// ([`ends_transaction`](crate::StoreError::ends_transaction)) that did not complete, it undoes
    /// everything and returns that error again.
    fn rollback_to(&mut self, mark: UndoMark) -> Outcome<()>;

    /// The first phase of a commit that several stores take part in. It ends the statement first,
    /// as a commit does. After [`Prepared::Ready`] a
    /// commit cannot fail, not even after a crash, and a rollback is still possible. A store that
    /// has changes and cannot promise that returns `NotSupported`; the transaction goes on. One
    /// such store may take part: it commits first, and so decides.
    fn prepare(&mut self) -> Outcome<Prepared>;

    /// XA PREPARE: as [`prepare`](Self::prepare), and the transaction is kept under `xid`. It
    /// survives a crash, and the next life of the server finds it
    /// ([`Store::take_left_prepared`](crate::Store::take_left_prepared)). Suspends until it is as
    /// durable as asked; the caller then calls again.
    fn prepare_as(&mut self, xid: &Xid, durability: Durability) -> Outcome<Prepared>;

    /// Commits and ends the transaction. Suspends until it is as durable as asked; the caller then
    /// calls again. An error may end the transaction, as in [`rollback_to`](Self::rollback_to).
    /// Behind a failed rollback of a prepared transaction it rolls back, too, and fails with
    /// [`RolledBack`](crate::StoreError::RolledBack).
    fn commit(&mut self, durability: Durability) -> Outcome<()>;

    /// Undoes everything and ends the transaction. If it fails, it can only be called again.
    fn rollback(&mut self) -> Outcome<()>;

    /// True once it has changed a row (and not undone all of it).
    fn has_changes(&self) -> bool;

    /// True between the first statement that used the store and the end.
    fn is_active(&self) -> bool;

    /// Sets the time limit of waits for row locks.
    fn set_lock_wait_timeout(&mut self, seconds: u64);

    /// A number for `information_schema.innodb_trx`; 0 while it has changed nothing.
    fn id(&self) -> u64;

    /// Takes what must live until everything is undone, in the background, after the caller has
    /// dropped the transaction before its end: the locks of its tables.
    fn keep(&mut self, kept: Box<dyn Any>);
}

/// The answer of a transaction that was asked to prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// Its changes survive a crash, and wait for the decision.
    Ready,
    /// It has changed nothing, so any end will do.
    Nothing,
}

/// A place in a transaction's undo: everything numbered higher came later. 0 is its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UndoMark(pub u64);

/// Options of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionOptions {
    /// What it may see of others.
    pub isolation: Isolation,
    /// Refuse changes.
    pub read_only: bool,
    /// How long to wait for a row lock.
    pub lock_wait_timeout_s: u64,
    /// Whose it is.
    pub client: ClientId,
}

/// SQL's isolation levels, as InnoDB has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Reads the newest version, committed or not.
    ReadUncommitted,
    /// A snapshot for each statement.
    ReadCommitted,
    /// A snapshot for the transaction, opened by its first consistent read.
    #[default]
    RepeatableRead,
    /// Plain reads lock in share mode.
    Serializable,
}

/// What must be true when a commit is acknowledged (`flush_log_at_trx_commit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// 0: in the log's memory; written and synced about once a second.
    Lazy,
    /// 2: handed to the operating system.
    Written,
    /// 1 and 3: on disk.
    #[default]
    Durable,
}
