//! Changes of the naive store's tables: each is made at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use store::{LocalFuture, SchemaStore, Store, StoreError, TableDefinition, TableId, TableName};
use value::CollationId;

use super::{NaiveStore, NaiveTable};

impl SchemaStore for NaiveStore {
    fn create_database(
        &self,
        name: &str,
        collation: CollationId,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        self.inner
            .databases
            .borrow_mut()
            .push((name.to_owned(), collation));
        self.inner.raise_version();
        Box::pin(std::future::ready(Ok(())))
    }

    fn drop_database(&self, name: &str) -> LocalFuture<'_, Result<(), StoreError>> {
        self.inner
            .databases
            .borrow_mut()
            .retain(|(known, _)| known != name);
        self.inner.raise_version();
        Box::pin(std::future::ready(Ok(())))
    }

    fn create_table(
        &self,
        definition: TableDefinition,
    ) -> LocalFuture<'_, Result<TableId, StoreError>> {
        let is_taken = self
            .definitions()
            .iter()
            .any(|known| known.name == definition.name);
        let made = if is_taken {
            Err(StoreError::TableExists)
        } else {
            Ok(self.add_table(definition))
        };
        Box::pin(std::future::ready(made))
    }

    fn drop_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        self.inner.raise_version();
        let dropped = self.inner.tables.borrow_mut().remove(&id.0);
        let found = dropped.map(|_| ()).ok_or(StoreError::NoSuchTable);
        Box::pin(std::future::ready(found))
    }

    fn rename_tables(
        &self,
        renames: Vec<(TableId, TableName)>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        let renamed = renames.into_iter().try_for_each(|(id, name)| {
            let is_taken = self.definitions().iter().any(|known| known.name == name);
            if is_taken {
                return Err(StoreError::TableExists);
            }
            self.redefine(id, |definition| definition.name = name)
        });
        Box::pin(std::future::ready(renamed))
    }

    fn truncate_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        if let Some(table) = self.inner.tables.borrow().get(&id.0) {
            table.rows.borrow_mut().clear();
            table.next_number.set(1);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn alter_table(
        &self,
        definition: TableDefinition,
        next_number: Option<u64>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(self.alter(definition, next_number)))
    }

    fn replace_table(
        &self,
        old: TableId,
        copy: TableId,
        name: TableName,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        self.inner.tables.borrow_mut().remove(&old.0);
        let renamed = self.redefine(copy, |definition| definition.name = name);
        Box::pin(std::future::ready(renamed))
    }

    fn renew_statistics(&self, _: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl NaiveStore {
    /// Publishes a definition if the rows are as it says, and their keys too.
    fn alter(&self, new: TableDefinition, next_number: Option<u64>) -> Result<(), StoreError> {
        let id = new.id;
        let table = self.inner.tables.borrow().get(&id.0).cloned();
        let table = table.ok_or(StoreError::NoSuchTable)?;
        let shape = |definition: &TableDefinition| -> Vec<_> {
            let columns = definition.columns.iter();
            columns
                .map(|it| (it.column_type.clone(), it.nullable))
                .collect()
        };
        let row_key = |definition: &TableDefinition| {
            let row_key = definition.clustered_key();
            row_key.map(|it| it.parts.iter().map(|part| part.column).collect::<Vec<_>>())
        };
        let old = &table.definition;
        if shape(old) != shape(&new) || row_key(old) != row_key(&new) {
            let what = "a change of the rows";
            return Err(StoreError::NotSupported { what });
        }
        self.redefine(id, |definition| {
            let version = definition.version;
            *definition = TableDefinition { version, ..new };
        })?;
        let altered = self.inner.tables.borrow().get(&id.0).cloned();
        let altered = altered.expect("it was redefined");
        let rows = altered.rows.borrow();
        for (key, row) in rows.iter() {
            if let Some((index, _)) = altered.conflict(&altered.decoded(row), Some(key)) {
                drop(rows);
                self.redefine(id, |definition| *definition = TableDefinition::clone(old))?;
                return Err(StoreError::DuplicateKey { index });
            }
        }
        if let Some(number) = next_number {
            altered.next_number.set(number);
        }
        Ok(())
    }

    /// Changes a table's definition, but nothing that its rows depend on.
    fn redefine(
        &self,
        id: TableId,
        change: impl FnOnce(&mut TableDefinition),
    ) -> Result<(), StoreError> {
        let inner = &self.inner;
        let mut tables = inner.tables.borrow_mut();
        let table = tables.get_mut(&id.0).ok_or(StoreError::NoSuchTable)?;
        let mut definition = TableDefinition::clone(&table.definition);
        change(&mut definition);
        definition.version += 1;
        *table = Rc::new(NaiveTable {
            inner: inner.clone(),
            definition: Arc::new(definition),
            layout: table.layout.clone(),
            rows: RefCell::new(table.rows.take()),
            next_number: table.next_number.clone(),
        });
        inner.raise_version();
        Ok(())
    }
}
