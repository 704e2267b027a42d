//! [`NaiveStore`]: the contract of `store` in the simplest correct way.
//!
//! Tables are maps from encoded primary keys to encoded rows; an index scan computes every row's
//! key and sorts. There is one transaction at a time, without isolation or locks; undo is a list of
//! old rows. It serves the tests of code above `store`, and as the twin of an engine. It can
//! suspend every n-th operation, so that callers prove that they can be called again.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use format::row::RowLayout;
use store::{
    AutoIncrement, Cursor, Direction, Durability, Fetched, Inserted, KeyBound, KeyRange,
    LocalFuture, Mutation, Outcome, RowBatch, RowKey, RowLock, ScanOptions, Store, StoreError,
    Suspend, Table, TableDefinition, TableId, TableName, TableStatistics, Transaction,
    TransactionOptions, UndoMark, Uniqueness,
};
use value::key::KeyPart;
use value::{CollationId, ValueRef};

/// A store in memory.
#[derive(Debug, Default)]
pub struct NaiveStore {
    inner: Rc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    tables: RefCell<BTreeMap<u64, Rc<NaiveTable>>>,
    databases: RefCell<Vec<(String, CollationId)>>,
    schema_version: Cell<u64>,
    next_id: Cell<u64>,
    next_row_id: Cell<u64>,
    /// The undo list: (table, key, the former row).
    undo: RefCell<Vec<Undo>>,
    /// Every how many operations it suspends; 0 never.
    suspend_every: Cell<u64>,
    operations: Cell<u64>,
    /// Rows that cursors have returned.
    rows_read: Cell<u64>,
}

#[derive(Debug)]
struct Undo {
    table: u64,
    key: Vec<u8>,
    before: Option<Vec<u8>>,
}

/// A table in memory.
pub struct NaiveTable {
    inner: Rc<Inner>,
    definition: Arc<TableDefinition>,
    layout: Arc<RowLayout>,
    rows: RefCell<BTreeMap<Vec<u8>, Vec<u8>>>,
    next_number: Cell<u64>,
}

impl fmt::Debug for NaiveTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NaiveTable")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}

impl NaiveStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every `count`-th operation suspend once before it completes; 0 for none.
    pub fn suspend_every(&self, count: u64) {
        self.inner.suspend_every.set(count);
    }

    /// How many rows cursors have returned so far.
    pub fn rows_read(&self) -> u64 {
        self.inner.rows_read.get()
    }

    /// Creates a table immediately.
    pub fn add_table(&self, mut definition: TableDefinition) -> TableId {
        let inner = &self.inner;
        inner.next_id.set(inner.next_id.get() + 1);
        inner.schema_version.set(inner.schema_version.get() + 1);
        let id = TableId(inner.next_id.get());
        definition.id = id;
        definition.version = 1;
        let database = definition.name.database.clone();
        let is_known = inner
            .databases
            .borrow()
            .iter()
            .any(|(name, _)| *name == database);
        if !is_known {
            inner
                .databases
                .borrow_mut()
                .push((database, definition.collation));
        }
        let types = definition.columns.iter().map(|column| &column.column_type);
        let table = NaiveTable {
            inner: inner.clone(),
            layout: Arc::new(RowLayout::new(types)),
            rows: RefCell::default(),
            next_number: Cell::new(definition.auto_increment_start.max(1)),
            definition: Arc::new(definition),
        };
        inner.tables.borrow_mut().insert(id.0, Rc::new(table));
        id
    }
}

impl Inner {
    /// Suspends if it is time to.
    fn operate(&self) -> Outcome<()> {
        self.operations.set(self.operations.get() + 1);
        let every = self.suspend_every.get();
        if every > 0 && self.operations.get().is_multiple_of(every) {
            return Err(Suspend::turn().into());
        }
        Ok(())
    }

    fn rollback_to(&self, mark: UndoMark) {
        let mut undo = self.undo.borrow_mut();
        while stdx::to_u64(undo.len()) > mark.0 {
            let Undo { table, key, before } = undo.pop().expect("it is not empty");
            let tables = self.tables.borrow();
            let Some(table) = tables.get(&table) else {
                continue;
            };
            match before {
                Some(row) => table.rows.borrow_mut().insert(key, row),
                None => table.rows.borrow_mut().remove(&key),
            };
        }
    }
}

impl Store for NaiveStore {
    fn begin(&self, _: TransactionOptions) -> Box<dyn Transaction> {
        Box::new(NaiveTransaction {
            inner: self.inner.clone(),
            is_active: false,
        })
    }

    fn schema_version(&self) -> u64 {
        self.inner.schema_version.get()
    }

    fn definitions(&self) -> Arc<[Arc<TableDefinition>]> {
        self.inner
            .tables
            .borrow()
            .values()
            .map(|table| table.definition.clone())
            .collect()
    }

    fn databases(&self) -> Arc<[(String, CollationId)]> {
        self.inner.databases.borrow().clone().into()
    }

    fn table(&self, id: TableId) -> Outcome<Rc<dyn Table>> {
        match self.inner.tables.borrow().get(&id.0) {
            Some(table) => Ok(table.clone()),
            None => Err(StoreError::NoSuchTable.into()),
        }
    }

    fn create_database(
        &self,
        name: &str,
        collation: CollationId,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        self.inner
            .databases
            .borrow_mut()
            .push((name.to_owned(), collation));
        Box::pin(std::future::ready(Ok(())))
    }

    fn drop_database(&self, name: &str) -> LocalFuture<'_, Result<(), StoreError>> {
        self.inner
            .databases
            .borrow_mut()
            .retain(|(known, _)| known != name);
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
        self.inner
            .schema_version
            .set(self.inner.schema_version.get() + 1);
        let dropped = self.inner.tables.borrow_mut().remove(&id.0);
        let found = dropped.map(|_| ()).ok_or(StoreError::NoSuchTable);
        Box::pin(std::future::ready(found))
    }

    fn rename_tables(
        &self,
        _: Vec<(TableId, TableName)>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        refused("rename")
    }

    fn truncate_table(&self, id: TableId) -> LocalFuture<'_, Result<(), StoreError>> {
        if let Some(table) = self.inner.tables.borrow().get(&id.0) {
            table.rows.borrow_mut().clear();
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn alter_table(
        &self,
        _: TableDefinition,
        _: Option<u64>,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        refused("alter")
    }

    fn replace_table(
        &self,
        _: TableId,
        _: TableId,
        _: TableName,
    ) -> LocalFuture<'_, Result<(), StoreError>> {
        refused("replace")
    }
}

fn refused(what: &'static str) -> LocalFuture<'static, Result<(), StoreError>> {
    Box::pin(std::future::ready(Err(StoreError::NotSupported { what })))
}

#[derive(Debug)]
struct NaiveTransaction {
    inner: Rc<Inner>,
    is_active: bool,
}

impl Transaction for NaiveTransaction {
    fn begin_statement(&mut self) {
        self.is_active = true;
    }

    fn open_snapshot(&mut self) {
        self.is_active = true;
    }

    fn mark(&self) -> UndoMark {
        UndoMark(stdx::to_u64(self.inner.undo.borrow().len()))
    }

    fn rollback_to(&mut self, mark: UndoMark) -> Outcome<()> {
        self.inner.rollback_to(mark);
        Ok(())
    }

    fn commit(&mut self, _: Durability) -> Outcome<()> {
        self.inner.undo.borrow_mut().clear();
        self.is_active = false;
        Ok(())
    }

    fn rollback(&mut self) -> Outcome<()> {
        self.inner.rollback_to(UndoMark(0));
        self.is_active = false;
        Ok(())
    }

    fn has_changes(&self) -> bool {
        !self.inner.undo.borrow().is_empty()
    }

    fn is_active(&self) -> bool {
        self.is_active
    }

    fn set_lock_wait_timeout(&mut self, _: u64) {}

    fn id(&self) -> u64 {
        0
    }

    fn detach(self: Box<Self>, _: Box<dyn Any>) {
        self.inner.rollback_to(UndoMark(0));
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl NaiveTable {
    /// The key of a row in an index, followed by its primary key so that equal keys stay apart.
    fn index_key(&self, index: usize, row: &[ValueRef<'_>]) -> Vec<u8> {
        let mut key = Vec::new();
        for part in &self.definition.indexes[index].parts {
            self.part(part.column, part.prefix_length)
                .append(row[part.column], &mut key);
        }
        key
    }

    fn part(&self, column: usize, prefix: Option<u32>) -> KeyPart {
        let column = &self.definition.columns[column];
        KeyPart {
            column: column.column_type.clone(),
            nullable: column.nullable,
            prefix,
        }
    }

    fn decoded<'r>(&self, row: &'r [u8]) -> Vec<ValueRef<'r>> {
        let column = |place| {
            self.layout
                .column(row, place)
                .expect("a stored row decodes")
        };
        (0..self.definition.columns.len()).map(column).collect()
    }

    fn encoded(&self, row: &[ValueRef<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.layout
            .encode(row, &mut bytes)
            .expect("a row is of the table's types");
        bytes
    }

    /// Another row that has the new row's key in a unique index.
    fn conflict(&self, row: &[ValueRef<'_>], own: Option<&[u8]>) -> Option<(usize, Vec<u8>)> {
        for (index, definition) in self.definition.indexes.iter().enumerate() {
            let has_null = definition
                .parts
                .iter()
                .any(|part| row[part.column].is_null());
            if definition.uniqueness == Uniqueness::None || has_null {
                continue;
            }
            let key = self.index_key(index, row);
            let rows = self.rows.borrow();
            let found = rows.iter().find(|(row_key, bytes)| {
                own != Some(row_key.as_slice())
                    && self.index_key(index, &self.decoded(bytes)) == key
            });
            if let Some((row_key, _)) = found {
                return Some((index, row_key.clone()));
            }
        }
        None
    }

    fn row_key(&self, row: &[ValueRef<'_>]) -> Vec<u8> {
        if self.definition.primary_key().is_some() {
            return self.index_key(0, row);
        }
        self.inner.next_row_id.set(self.inner.next_row_id.get() + 1);
        self.inner.next_row_id.get().to_be_bytes().to_vec()
    }

    fn change(&self, key: &[u8], after: Option<Vec<u8>>) {
        let mut rows = self.rows.borrow_mut();
        let before = match after {
            Some(row) => rows.insert(key.to_vec(), row),
            None => rows.remove(key),
        };
        let undo = Undo {
            table: self.definition.id.0,
            key: key.to_vec(),
            before,
        };
        self.inner.undo.borrow_mut().push(undo);
    }

    /// The rows of a range, in order, as (row key, row).
    fn select(&self, options: &ScanOptions) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> = Vec::new();
        for (key, row) in self.rows.borrow().iter() {
            let sort_key = match options.index {
                Some(index) => self.index_key(index, &self.decoded(row)),
                None => key.clone(),
            };
            let is_inside = options
                .index
                .is_none_or(|index| self.is_inside(index, &options.range, &sort_key));
            if is_inside {
                found.push((sort_key, key.clone(), row.clone()));
            }
        }
        found.sort();
        if options.direction == Direction::Backward {
            found.reverse();
        }
        found.into_iter().map(|(_, key, row)| (key, row)).collect()
    }

    fn is_inside(&self, index: usize, range: &KeyRange, key: &[u8]) -> bool {
        let prefix = |values: &[value::Value]| {
            let mut bytes = Vec::new();
            let parts = &self.definition.indexes[index].parts;
            for (value, part) in values.iter().zip(parts) {
                self.part(part.column, part.prefix_length)
                    .append(value.as_ref(), &mut bytes);
            }
            bytes
        };
        let above = match &range.lower {
            KeyBound::Open => true,
            KeyBound::Inclusive(values) => *key >= *prefix(values),
            KeyBound::Exclusive(values) => {
                let prefix = prefix(values);
                *key > *prefix && !key.starts_with(&prefix)
            }
        };
        let below = match &range.upper {
            KeyBound::Open => true,
            KeyBound::Inclusive(values) => {
                let prefix = prefix(values);
                *key <= *prefix || key.starts_with(&prefix)
            }
            KeyBound::Exclusive(values) => *key < *prefix(values),
        };
        above && below
    }
}

impl Table for NaiveTable {
    fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    fn scan(&self, options: ScanOptions) -> Box<dyn Cursor> {
        let table = self.inner.tables.borrow()[&self.definition.id.0].clone();
        Box::new(NaiveCursor {
            table,
            options,
            rows: None,
            at: 0,
        })
    }

    fn insert(&self, _: &mut dyn Transaction, row: &[ValueRef<'_>]) -> Outcome<Inserted> {
        self.inner.operate()?;
        if let Some((index, key)) = self.conflict(row, None) {
            return Ok(Inserted::Duplicate {
                index,
                key: key.into(),
            });
        }
        let key = self.row_key(row);
        self.change(&key, Some(self.encoded(row)));
        Ok(Inserted::Done)
    }

    fn update(
        &self,
        _: &mut dyn Transaction,
        key: RowKey<'_>,
        row: &[ValueRef<'_>],
    ) -> Outcome<Mutation> {
        self.inner.operate()?;
        if !self.rows.borrow().contains_key(key.0) {
            return Ok(Mutation::Gone);
        }
        if let Some((index, other)) = self.conflict(row, Some(key.0)) {
            return Ok(Mutation::Duplicate {
                index,
                key: other.into(),
            });
        }
        let has_primary = self.definition.primary_key().is_some();
        let new_key = if has_primary {
            self.row_key(row)
        } else {
            key.0.to_vec()
        };
        if new_key != key.0 {
            self.change(key.0, None);
        }
        self.change(&new_key, Some(self.encoded(row)));
        Ok(Mutation::Done)
    }

    fn delete(&self, _: &mut dyn Transaction, key: RowKey<'_>) -> Outcome<Mutation> {
        self.inner.operate()?;
        if !self.rows.borrow().contains_key(key.0) {
            return Ok(Mutation::Gone);
        }
        self.change(key.0, None);
        Ok(Mutation::Done)
    }

    fn lookup(
        &self,
        _: &mut dyn Transaction,
        key: RowKey<'_>,
        _: RowLock,
        batch: &mut RowBatch,
    ) -> Outcome<bool> {
        self.inner.operate()?;
        let rows = self.rows.borrow();
        let Some(row) = rows.get(key.0) else {
            return Ok(false);
        };
        batch.push(key.0, |buffer| buffer.extend_from_slice(row));
        Ok(true)
    }

    fn take_auto_increment(&self, request: AutoIncrement) -> Outcome<u64> {
        self.inner.operate()?;
        Ok(match request {
            AutoIncrement::Take {
                count,
                step,
                offset,
            } => {
                let next = self.next_number.get().max(offset);
                let first = offset + (next - offset).div_ceil(step) * step;
                self.next_number.set(first + count * step);
                first
            }
            AutoIncrement::Pass(number) => {
                self.next_number.set(self.next_number.get().max(number + 1));
                number
            }
        })
    }

    fn next_auto_increment(&self) -> u64 {
        self.next_number.get()
    }

    fn statistics(&self) -> TableStatistics {
        let row_count = stdx::to_u64(self.rows.borrow().len());
        TableStatistics {
            row_count,
            ..TableStatistics::default()
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct NaiveCursor {
    table: Rc<NaiveTable>,
    options: ScanOptions,
    rows: Option<Vec<(Vec<u8>, Vec<u8>)>>,
    at: usize,
}

impl Cursor for NaiveCursor {
    fn seek(&mut self, range: &KeyRange) {
        self.options.range = range.clone();
        self.rows = None;
        self.at = 0;
    }

    fn fetch(
        &mut self,
        _: &mut dyn Transaction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Outcome<Fetched> {
        assert!(
            batch.len() < limit,
            "a batch is cleared before it is filled again"
        );
        self.table.inner.operate()?;
        let (table, options) = (&self.table, &self.options);
        let rows = self.rows.get_or_insert_with(|| table.select(options));
        let rows_read = &table.inner.rows_read;
        for (key, row) in rows.iter().skip(self.at).take(limit) {
            batch.push(key, |buffer| buffer.extend_from_slice(row));
            rows_read.set(rows_read.get() + 1);
        }
        self.at = (self.at + limit).min(rows.len());
        Ok(if self.at == rows.len() {
            Fetched::End
        } else {
            Fetched::More
        })
    }
}
