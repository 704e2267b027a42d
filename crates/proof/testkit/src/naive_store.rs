//! [`NaiveStore`]: the contract of `store` in the simplest correct way.
//!
//! Tables are maps from encoded primary keys to encoded rows; an index scan computes every row's
//! key and sorts. Transactions have neither isolation nor locks; undo is a list of old rows. It
//! serves the tests of code above `store`, and as the twin of an engine. It can suspend every n-th
//! operation, so that callers prove that they can be called again. It can also stand for a store on
//! another server: each call then costs a round trip, and is counted. Changes of locked rows are
//! then kept back and sent together, and a refused insert brings the row that is in its way.

mod cursor;
mod groups;
mod schema;
mod transaction;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use format::row::RowLayout;
use store::{
    AutoIncrement, CallCost, Condition, Cursor, IndexDefinition, IndexPart, Inserted, KeyBound,
    KeyRange, Mutation, Offer, Outcome, RowBatch, RowKey, RowLock, ScanOptions, Store, StoreError,
    StoreId, Suspend, Table, TableDefinition, TableId, TableStatistics, Taken, Transaction,
    TransactionOptions, Transactions, Uniqueness,
};
use value::key::KeyPart;
use value::{CollationId, ValueRef};

use cursor::NaiveCursor;
use transaction::{NaiveTransaction, Undo};

/// How many changes a remote store sends together.
const SENT_TOGETHER_MAX: usize = 1024;

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
    /// It does nothing in place of its callers.
    takes_nothing: Cell<bool>,
    /// It promises no commit.
    refuses_to_prepare: Cell<bool>,
    /// Transactions that were prepared.
    prepared: Cell<u64>,
    /// How many calls complete before one fails with the error.
    failure: RefCell<Option<(u64, StoreError)>>,
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

    /// An empty store whose tables have ids above this one, as two stores of a process need.
    pub fn with_ids_above(id: u64) -> Self {
        let store = Self::default();
        store.inner.next_id.set(id);
        store
    }

    /// From now on it does nothing in place of its callers, as a store in this process.
    pub fn take_nothing(&self) {
        self.inner.takes_nothing.set(true);
    }

    /// From now on it does not prepare a transaction with changes.
    pub fn refuse_to_prepare(&self) {
        self.inner.refuses_to_prepare.set(true);
    }

    /// How many transactions were prepared.
    pub fn prepared(&self) -> u64 {
        self.inner.prepared.get()
    }

    /// After `count` more calls one fails with the error. Later ones do not.
    pub fn fail_after(&self, count: u64, error: StoreError) {
        *self.inner.failure.borrow_mut() = Some((count, error));
    }

    /// Withdraws a failure. Returns false if it has happened already.
    pub fn withdraw_failure(&self) -> bool {
        self.inner.failure.take().is_some()
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

impl Inner {
    fn raise_version(&self) {
        self.schema_version.set(self.schema_version.get() + 1);
    }

    /// True if each call is a round trip.
    fn is_remote(&self) -> bool {
        self.round_trip.borrow().is_some()
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
        self.fail()?;
        self.operations.set(self.operations.get() + 1);
        let every = self.suspend_every.get();
        if every > 0 && self.operations.get().is_multiple_of(every) {
            return Err(Suspend::turn().into());
        }
        Ok(())
    }

    /// Fails if it is this call's turn to.
    fn fail(&self) -> Result<(), StoreError> {
        let mut failure = self.failure.borrow_mut();
        match &mut *failure {
            Some((0, _)) => failure.take().map_or(Ok(()), |(_, error)| Err(error)),
            Some((left, _)) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
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

impl NaiveTable {
    /// The key of a row in an index.
    fn index_key(&self, index: usize, row: &[ValueRef<'_>]) -> Vec<u8> {
        self.key_of(&self.definition.indexes[index].parts, row)
    }

    /// The key of a row in an index of these parts.
    fn key_of(&self, parts: &[IndexPart], row: &[ValueRef<'_>]) -> Vec<u8> {
        let mut key = Vec::new();
        for part in parts {
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
            if definition.is_clustered() {
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
        if self.definition.clustered_key().is_some() {
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

    /// Begins a change of a row that the transaction has locked. Its outcome is known before it is
    /// sent, so a remote store sends it with others.
    fn change_locked(&self, txn: &mut dyn Transaction) -> Outcome<()> {
        if !self.inner.is_remote() {
            return self.inner.operate();
        }
        self.inner.transactions.with(txn, |own| {
            if own.kept_back == SENT_TOGETHER_MAX {
                self.inner.operate()?;
                own.kept_back = 0;
            }
            own.kept_back += 1;
            Ok(())
        })
    }

    /// Whether the new row has the stored row's key in each unique index; `None` if there is no
    /// stored row.
    fn keeps_unique_keys(&self, key: &[u8], row: &[ValueRef<'_>]) -> Option<bool> {
        let rows = self.rows.borrow();
        let old = self.decoded(rows.get(key)?);
        let mut indexes = self.definition.indexes.iter().enumerate();
        Some(indexes.all(|(index, definition)| {
            definition.uniqueness == Uniqueness::None
                || self.index_key(index, &old) == self.index_key(index, row)
        }))
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
        self.is_inside_of(&self.definition.indexes[index].parts, range)
    }

    /// The test whether a key of these parts is within a range.
    fn is_inside_of(&self, parts: &[IndexPart], range: &KeyRange) -> impl Fn(&[u8]) -> bool {
        let prefix = |bound: &KeyBound| match bound {
            KeyBound::Open => Vec::new(),
            KeyBound::Inclusive(values) | KeyBound::Exclusive(values) => {
                let mut bytes = Vec::new();
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct IndexedRow {
    sort_key: Vec<u8>,
    key: Vec<u8>,
    row: Vec<u8>,
}

/// Whether keys of an index lead back to the column's values.
fn leads_back(definition: &TableDefinition, index: &IndexDefinition, column: usize) -> bool {
    let kind = |part: &IndexPart| definition.columns[part.column].column_type.clone();
    let place = index.parts.iter().position(|part| part.column == column);
    place.is_some_and(|place| {
        let mut parts = index.parts[..=place].iter();
        parts.all(|part| KeyPart::whole(kind(part), false).leads_back())
    })
}

impl Table for NaiveTable {
    fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    fn covers(&self, index: usize, columns: &[usize]) -> bool {
        let definition = &self.definition;
        let keys = [&definition.indexes[index]];
        let keys = keys.into_iter().chain(definition.clustered_key());
        columns.iter().all(|column| {
            let mut keys = keys.clone();
            keys.any(|key| leads_back(definition, key, *column))
        })
    }

    fn scan(&self, options: ScanOptions) -> Box<dyn Cursor> {
        let table = self.inner.tables.borrow()[&self.definition.id.0].clone();
        Box::new(NaiveCursor::new(table, options))
    }

    fn insert(
        &self,
        txn: &mut dyn Transaction,
        row: &[ValueRef<'_>],
        _: RowLock,
    ) -> Outcome<Inserted> {
        self.inner.operate()?;
        if let Some((index, key)) = self.conflict(row, None) {
            let sent = Some(key.clone());
            self.inner.transactions.with(txn, |own| own.sent = sent);
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
        _: RowLock,
    ) -> Outcome<Mutation> {
        let Some(keeps) = self.keeps_unique_keys(key.0, row) else {
            self.inner.operate()?;
            return Ok(Mutation::Gone);
        };
        match keeps {
            true => self.change_locked(txn)?,
            false => self.inner.operate()?,
        }
        if let Some((index, other)) = self.conflict(row, Some(key.0)) {
            return Ok(Mutation::Duplicate {
                index,
                key: other.into(),
            });
        }
        let is_keyed = self.definition.clustered_key().is_some();
        let new_key = if is_keyed {
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
        self.change_locked(txn)?;
        if !self.rows.borrow().contains_key(key.0) {
            return Ok(Mutation::Gone);
        }
        self.change(txn, key.0, None);
        Ok(Mutation::Done)
    }

    fn lookup(
        &self,
        txn: &mut dyn Transaction,
        keys: &[RowKey<'_>],
        _: RowLock,
        batch: &mut RowBatch,
    ) -> Outcome<()> {
        let sent = self.inner.transactions.with(txn, |own| own.sent.take());
        let is_sent = |sent: Vec<u8>| matches!(keys, [key] if *key.0 == *sent);
        if !self.inner.is_remote() || !sent.is_some_and(is_sent) {
            self.inner.operate()?;
        }
        let rows = self.rows.borrow();
        for key in keys {
            if let Some(row) = rows.get(key.0) {
                batch.push(key.0, |buffer| buffer.extend_from_slice(row));
            }
            batch.end_range();
        }
        Ok(())
    }

    /// It takes conditions of single columns, limits, and groups.
    fn take(&self, offer: &Offer) -> Taken {
        let can_take = self.inner.is_remote() && !self.inner.takes_nothing.get();
        let is_taken = |it: &Condition<()>| can_take && matches!(it, Condition::Column { .. });
        let conditions: Vec<bool> = offer.conditions.iter().map(is_taken).collect();
        let takes_all = can_take && conditions.iter().all(|is_taken| *is_taken);
        Taken {
            limit: takes_all && offer.is_limited,
            grouping: takes_all && offer.grouping.is_some(),
            conditions,
        }
    }

    fn call_cost(&self) -> CallCost {
        match self.inner.is_remote() {
            true => CallCost::RoundTrip,
            false => CallCost::Local,
        }
    }

    fn take_auto_increment(&self, request: AutoIncrement) -> Outcome<u64> {
        // A remote server passes numbers by itself, as it inserts rows.
        let is_told = matches!(request, AutoIncrement::Pass(_)) && self.inner.is_remote();
        if !is_told {
            self.inner.operate()?;
        }
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
