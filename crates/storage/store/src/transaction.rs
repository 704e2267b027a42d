//! A store and its transactions.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use crate::{Outcome, StoreError, Table, TableDefinition, TableId, TableName};

/// A future that stays on its worker; schema changes return it.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One worker's handle on a store.
pub trait Store {
    /// Begins a transaction; it costs nothing until its first statement.
    fn begin(&self, options: TransactionOptions) -> Box<dyn Transaction>;

    /// Grows with each schema change anywhere in the store; caches of definitions compare it.
    fn schema_version(&self) -> u64;

    /// All definitions at the present schema version.
    fn definitions(&self) -> Arc<[Arc<TableDefinition>]>;

    /// All databases, with their default collation's id, at the present schema version.
    fn databases(&self) -> Arc<[(String, value::CollationId)]>;

    /// A handle on the table as now defined; `NoSuchTable` after a drop.
    fn table(&self, id: TableId) -> Outcome<Rc<dyn Table>>;

    /// Makes a database; `TableExists` if the name is taken.
    fn create_database(
        &self,
        name: &str,
        collation: value::CollationId,
    ) -> LocalFuture<'_, Result<(), StoreError>>;

    /// Removes an empty database.
    fn drop_database(&self, name: &str) -> LocalFuture<'_, Result<(), StoreError>>;

    /// Makes a table (the store assigns `id` and `version` of the definition).
    fn create_table(
        &self,
        definition: TableDefinition,
    ) -> LocalFuture<'_, Result<TableId, StoreError>>;

    /// Another one whenever statistics have become others than plans were made by; who keeps plans
    /// compares it. A store without statistics has one version.
    fn statistics_version(&self) -> u64 {
        0
    }

    /// Renews what [`Table::statistics`] tells of a table; nothing by default.
    fn renew_statistics(&self, _id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Removes a table and its rows.
    fn drop_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>>;

    /// Renames tables, one after the other, all in one atomic step.
    fn rename_tables(
        &self,
        renames: Vec<(TableId, TableName)>,
    ) -> LocalFuture<'_, Result<(), StoreError>>;

    /// Removes all rows and starts AUTO_INCREMENT over.
    fn truncate_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>>;

    /// Publishes a changed definition whose rows need no change (comments, defaults, names), or
    /// whose indexes differ: indexes with new names are built, missing ones removed. In the same
    /// atomic and durable step the AUTO_INCREMENT counter becomes `next_number`, if given. Returns
    /// `NotSupported` if the rows would have to be rewritten; the caller then copies the table.
    fn alter_table(
        &self,
        definition: TableDefinition,
        next_number: Option<u64>,
    ) -> LocalFuture<'_, Result<(), StoreError>>;

    /// In one atomic step, removes the table `old` and renames `copy` to `name`. Returns
    /// `TableExists` if a third table has that name.
    fn replace_table(
        &self,
        old: TableId,
        copy: TableId,
        name: TableName,
    ) -> LocalFuture<'_, Result<(), StoreError>>;
}

/// A transaction. Dropped without an end, it is rolled back in the background.
pub trait Transaction {
    /// Begins a statement: under READ COMMITTED it reads a fresh snapshot.
    fn begin_statement(&mut self);

    /// Opens the snapshot now (`START TRANSACTION WITH CONSISTENT SNAPSHOT`).
    fn open_snapshot(&mut self);

    /// The place to which `rollback_to` can return: a savepoint or a statement's begin.
    fn mark(&self) -> UndoMark;

    /// Undoes everything since `mark`; locks stay. If an earlier error demanded a rollback
    /// ([`StoreError::ends_transaction`]) that did not complete, it undoes everything and returns
    /// that error again.
    fn rollback_to(&mut self, mark: UndoMark) -> Outcome<()>;

    /// Commits and ends the transaction. Suspends until it is as durable as asked; the caller then
    /// calls again. An error may end the transaction, as in [`rollback_to`](Self::rollback_to).
    fn commit(&mut self, durability: Durability) -> Outcome<()>;

    /// Undoes everything and ends the transaction.
    fn rollback(&mut self) -> Outcome<()>;

    /// True once it has changed a row (and not undone all of it).
    fn has_changes(&self) -> bool;

    /// True between the first statement that used the store and the end.
    fn is_active(&self) -> bool;

    /// Sets the time limit of waits for row locks.
    fn set_lock_wait_timeout(&mut self, seconds: u64);

    /// A number for `information_schema.innodb_trx`; 0 while it has changed nothing.
    fn id(&self) -> u64;

    /// Gives the transaction up. Its changes are undone in the background. `kept`, which still
    /// holds its tables, is dropped after that.
    fn detach(self: Box<Self>, kept: Box<dyn Any>);

    /// For a store to downcast its own transaction.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl fmt::Debug for dyn Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

/// A place in a transaction's undo: everything numbered higher came later.
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
    /// 1: on disk.
    #[default]
    Durable,
}
