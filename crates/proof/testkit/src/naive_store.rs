//! [`NaiveStore`]: the contract of `store` in the simplest correct way.
//!
//! Tables are maps from encoded primary keys to encoded rows; an index scan computes every row's
//! key and sorts. Transactions have neither isolation nor locks; undo is a list of old rows. It
//! serves the tests of code above `store`, and as the twin of an engine. It can suspend every n-th
//! operation, so that callers prove that they can be called again. It can also stand for a store on
//! another server: each call then costs a round trip, and is counted.

mod transaction;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use format::row::RowLayout;
use store::{
    AutoIncrement, CallCost, Cursor, Direction, Fetched, Inserted, KeyBound, KeyRange, LocalFuture,
    Mutation, Outcome, RowBatch, RowKey, RowLock, ScanOptions, SchemaStore, Store, StoreError,
    StoreId, Suspend, Table, TableDefinition, TableId, TableName, TableStatistics, Transaction,
    TransactionOptions, Transactions, Uniqueness,
};
use value::key::KeyPart;
use value::{CollationId, ValueRef};

use transaction::{NaiveTransaction, Undo};

/// A wait for as long as a call to another server takes.
pub struct RoundTrip(pub Box<dyn Fn() -> Suspend>);

impl fmt::Debug for RoundTrip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoundTrip")
    }
}

/// A store in memory. Clones are handles of the same store.
#[derive(Debug, Clone, Default)]
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
    transactions: Rc<Transactions<NaiveTransaction>>,
    /// Every how many operations it suspends; 0 never.
    suspend_every: Cell<u64>,
    operations: Cell<u64>,
    /// Waits for a round trip, if the store is remote.
    round_trip: RefCell<Option<RoundTrip>>,
    /// The present call has waited.
    has_waited: Cell<bool>,
    /// Statements that have ended.
    statements_ended: Cell<u64>,
    /// The next end of a statement fails.
    fails_at_end: Cell<bool>,
    /// Completed calls that read or wrote.
    calls: Cell<u64>,
    /// Rows that cursors have returned.
    rows_read: Cell<u64>,
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

    /// From now on each call waits for a round trip, as to another server.
    pub fn be_remote(&self, round_trip: RoundTrip) {
        *self.inner.round_trip.borrow_mut() = Some(round_trip);
    }

    /// How many calls have read or written so far.
    pub fn calls(&self) -> u64 {
        self.inner.calls.get()
    }

    /// How many changing statements have ended so far.
    pub fn statements_ended(&self) -> u64 {
        self.inner.statements_ended.get()
    }

    /// The next changing statement fails at its end, as if what it has sent was refused.
    pub fn fail_next_end(&self) {
        self.inner.fails_at_end.set(true);
    }

    /// How many rows cursors have returned so far.
    pub fn rows_read(&self) -> u64 {
        self.inner.rows_read.get()
    }

    /// Creates a table immediately.
    pub fn add_table(&self, mut definition: TableDefinition) -> TableId {
        let inner = &self.inner;
        inner.next_id.set(inner.next_id.get() + 1);
        inner.raise_version();
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
        let primary = |definition: &TableDefinition| {
            let primary = definition.primary_key();
            primary.map(|it| it.parts.iter().map(|part| part.column).collect::<Vec<_>>())
        };
        let old = &table.definition;
        if shape(old) != shape(&new) || primary(old) != primary(&new) {
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

impl Inner {
    fn raise_version(&self) {
        self.schema_version.set(self.schema_version.get() + 1);
    }

    /// Begins a call that reads or writes. Suspends for its round trip, and if it is time to.
    fn operate(&self) -> Outcome<()> {
        if let Some(round_trip) = &*self.round_trip.borrow()
            && !self.has_waited.replace(false)
        {
            self.has_waited.set(true);
            return Err((round_trip.0)().into());
        }
        self.calls.set(self.calls.get() + 1);
        self.operations.set(self.operations.get() + 1);
        let every = self.suspend_every.get();
        if every > 0 && self.operations.get().is_multiple_of(every) {
            return Err(Suspend::turn().into());
        }
        Ok(())
    }
}

impl Store for NaiveStore {
    fn id(&self) -> StoreId {
        self.inner.transactions.store()
    }

    fn begin(&self, _: TransactionOptions) -> Box<dyn Transaction> {
        let begin = || NaiveTransaction::new(self.inner.clone());
        self.inner.transactions.begin(begin)
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
}

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
            if definition.uniqueness == Uniqueness::Primary {
                if own != Some(key.as_slice()) && rows.contains_key(&key) {
                    return Some((index, key));
                }
                continue;
            }
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

    fn change(&self, txn: &mut dyn Transaction, key: &[u8], after: Option<Vec<u8>>) {
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
        let transactions = &self.inner.transactions;
        transactions.with(txn, |own| own.undo.push(undo));
    }

    /// All rows in the order of an index, or of their keys.
    fn sorted(&self, index: Option<usize>) -> Vec<IndexedRow> {
        let rows = self.rows.borrow();
        let indexed = rows.iter().map(|(key, row)| IndexedRow {
            sort_key: match index {
                Some(index) => self.index_key(index, &self.decoded(row)),
                None => key.clone(),
            },
            key: key.clone(),
            row: row.clone(),
        });
        let mut indexed: Vec<_> = indexed.collect();
        indexed.sort();
        indexed
    }

    /// The test whether a key of an index is within a range.
    fn is_inside(&self, index: usize, range: &KeyRange) -> impl Fn(&[u8]) -> bool {
        let prefix = |bound: &KeyBound| match bound {
            KeyBound::Open => Vec::new(),
            KeyBound::Inclusive(values) | KeyBound::Exclusive(values) => {
                let mut bytes = Vec::new();
                let parts = &self.definition.indexes[index].parts;
                for (value, part) in values.iter().zip(parts) {
                    self.part(part.column, part.prefix_length)
                        .append(value.as_ref(), &mut bytes);
                }
                bytes
            }
        };
        let (lower, upper) = (prefix(&range.lower), prefix(&range.upper));
        let range = range.clone();
        move |key| {
            let is_above = match range.lower {
                KeyBound::Open => true,
                KeyBound::Inclusive(_) => *key >= *lower,
                KeyBound::Exclusive(_) => *key > *lower && !key.starts_with(&lower),
            };
            let is_below = match range.upper {
                KeyBound::Open => true,
                KeyBound::Inclusive(_) => *key <= *upper || key.starts_with(&upper),
                KeyBound::Exclusive(_) => *key < *upper,
            };
            is_above && is_below
        }
    }
}

/// A row with its key in an index.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IndexedRow {
    sort_key: Vec<u8>,
    key: Vec<u8>,
    row: Vec<u8>,
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
        let ranges = vec![options.range.clone()];
        Box::new(NaiveCursor {
            table,
            options,
            ranges,
            rows: None,
            range: 0,
            at: 0,
        })
    }

    fn insert(&self, txn: &mut dyn Transaction, row: &[ValueRef<'_>]) -> Outcome<Inserted> {
        self.inner.operate()?;
        if let Some((index, key)) = self.conflict(row, None) {
            return Ok(Inserted::Duplicate {
                index,
                key: key.into(),
            });
        }
        let key = self.row_key(row);
        self.change(txn, &key, Some(self.encoded(row)));
        Ok(Inserted::Done)
    }

    fn update(
        &self,
        txn: &mut dyn Transaction,
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
            self.change(txn, key.0, None);
        }
        self.change(txn, &new_key, Some(self.encoded(row)));
        Ok(Mutation::Done)
    }

    fn delete(&self, txn: &mut dyn Transaction, key: RowKey<'_>) -> Outcome<Mutation> {
        self.inner.operate()?;
        if !self.rows.borrow().contains_key(key.0) {
            return Ok(Mutation::Gone);
        }
        self.change(txn, key.0, None);
        Ok(Mutation::Done)
    }

    fn lookup(
        &self,
        _: &mut dyn Transaction,
        keys: &[RowKey<'_>],
        _: RowLock,
        batch: &mut RowBatch,
    ) -> Outcome<()> {
        self.inner.operate()?;
        let rows = self.rows.borrow();
        for key in keys {
            if let Some(row) = rows.get(key.0) {
                batch.push(key.0, |buffer| buffer.extend_from_slice(row));
            }
            batch.end_range();
        }
        Ok(())
    }

    fn call_cost(&self) -> CallCost {
        match &*self.inner.round_trip.borrow() {
            Some(_) => CallCost::RoundTrip,
            None => CallCost::Local,
        }
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

    fn measure(&self, index: usize, ranges: &[KeyRange]) -> Outcome<Option<Vec<u64>>> {
        self.inner.operate()?;
        let rows = self.sorted(Some(index));
        let count = |range| {
            let is_inside = self.is_inside(index, range);
            let inside = rows.iter().filter(|row| is_inside(&row.sort_key));
            stdx::to_u64(inside.count())
        };
        Ok(Some(ranges.iter().map(count).collect()))
    }
}

#[derive(Debug)]
struct NaiveCursor {
    table: Rc<NaiveTable>,
    options: ScanOptions,
    ranges: Vec<KeyRange>,
    /// All rows in the order of the index, once one was read.
    rows: Option<Vec<IndexedRow>>,
    /// The range that is read, and the next row to look at.
    range: usize,
    at: usize,
}

impl Cursor for NaiveCursor {
    fn seek(&mut self, ranges: &[KeyRange]) {
        self.ranges = ranges.to_vec();
        self.rows = None;
        (self.range, self.at) = (0, 0);
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
        let rows_read = &self.table.inner.rows_read;
        let rows = self.rows.get_or_insert_with(|| {
            let mut rows = self.table.sorted(self.options.index);
            if self.options.direction == Direction::Backward {
                rows.reverse();
            }
            rows
        });
        while let Some(range) = self.ranges.get(self.range) {
            let index = self.options.index;
            let is_inside = index.map(|index| self.table.is_inside(index, range));
            while let Some(IndexedRow { sort_key, key, row }) = rows.get(self.at) {
                if is_inside
                    .as_ref()
                    .is_none_or(|is_inside| is_inside(sort_key))
                {
                    if batch.len() == limit {
                        return Ok(Fetched::More);
                    }
                    batch.push(key, |buffer| buffer.extend_from_slice(row));
                    rows_read.set(rows_read.get() + 1);
                }
                self.at += 1;
            }
            (self.range, self.at) = (self.range + 1, 0);
            if self.range < self.ranges.len() {
                batch.end_range();
            }
        }
        Ok(Fetched::End)
    }
}
