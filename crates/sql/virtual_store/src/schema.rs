//! What would change the tables: nothing may.

use std::future::ready;

use store::{LocalFuture, SchemaStore, StoreError, TableDefinition, TableId, TableName};
use value::CollationId;

use crate::VirtualStore;

fn refused<T: 'static>() -> LocalFuture<'static, Result<T, StoreError>> {
    Box::pin(ready(Err(StoreError::NotSupported {
        what: "changing virtual tables",
    })))
}

impl SchemaStore for VirtualStore {
    fn create_database(&self, _: &str, _: CollationId) -> LocalFuture<'_, Result<(), StoreError>> {
        refused()
    }

    fn drop_database(&self, _: &str) -> LocalFuture<'_, Result<(), StoreError>> {
        refused()
    }

    fn create_table(&self, _: TableDefinition) -> LocalFuture<'_, Result<TableId, StoreError>> {
        refused()
    }

    fn drop_table(&self, _: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        refused()
    }

    fn rename_tables(
        &self,
        _: Vec<(TableId, TableName)>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        refused()
    }

    fn truncate_table(&self, _: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        refused()
    }

    fn alter_table(
        &self,
        _: TableDefinition,
        _: Option<u64>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        refused()
    }

    fn replace_table(
        &self,
        _: TableId,
        _: TableId,
        _: TableName,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        refused()
    }

    fn renew_statistics(&self, _: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        // There are none.
        Box::pin(ready(Ok(())))
    }
}
