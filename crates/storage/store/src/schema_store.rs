//! [`SchemaStore`]: changes of what tables there are, and of what is known of them.

use std::future::Future;
use std::pin::Pin;

use crate::{StoreError, TableDefinition, TableId, TableName};

/// A future that stays on its worker; schema changes return it.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A store whose databases and tables SQL may make, change and remove. Each change is atomic and
/// durable, and no part of a transaction.
pub trait SchemaStore {
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

    /// Renews what [`Table::statistics`](crate::Table::statistics) tells of a table.
    fn renew_statistics(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>>;
}
