//! A table whose rows are made when it is read: `information_schema` and the like.
//!
//! It implements [`store::Table`], so the planner and the executor need not know that no store is
//! behind it. It is read-only. Its only possible index is over the names of database and table that
//! its rows describe; rows about other tables are then not made.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use format::row::RowLayout;
use store::{
    AutoIncrement, Cursor, Direction, Fetched, Inserted, KeyBound, KeyRange, Mutation, Outcome,
    RowBatch, RowKey, RowLock, ScanOptions, StoreError, Table, TableDefinition, TableName,
    TableStatistics, Transaction,
};
use value::key::{KeyPart, append_key};
use value::{Value, ValueRef};

/// One value for each column, of the column's type.
type Row = Vec<Value>;

/// The source of a virtual table's rows.
pub trait RowSource {
    /// The tables that its rows describe, if they describe tables.
    fn tables(&self) -> Vec<Arc<TableDefinition>>;

    /// Suspends until the rows can be made. Most sources have nothing to wait for.
    fn ready(&self) -> Outcome<()> {
        Ok(())
    }

    /// The rows: all, or those that describe these tables, in this order.
    fn rows(&self, about: Option<&[Arc<TableDefinition>]>) -> Vec<Row>;
}

/// Rows in memory with the interface of a table.
pub struct VirtualTable {
    shared: Rc<Shared>,
    /// The rows' encoding. Constant.
    layout: Arc<RowLayout>,
}

/// What a table shares with its cursors.
struct Shared {
    /// The definition. Constant.
    definition: Arc<TableDefinition>,
    /// The columns of its index's keys; empty if it has none. Constant.
    key_parts: Vec<KeyPart>,
    source: Box<dyn RowSource>,
    /// All rows, as of the first scan.
    rows: OnceCell<Rc<[Row]>>,
    /// The tables that they describe, with the keys of their names, sorted.
    tables: OnceCell<Vec<(Vec<u8>, Arc<TableDefinition>)>>,
}

impl VirtualTable {
    /// A table of the source's rows.
    pub fn new(definition: Arc<TableDefinition>, source: Box<dyn RowSource>) -> Self {
        let types = definition.columns.iter().map(|column| &column.column_type);
        let layout = Arc::new(RowLayout::new(types));
        let shared = Shared {
            key_parts: key_parts(&definition),
            definition,
            source,
            rows: OnceCell::new(),
            tables: OnceCell::new(),
        };
        Self {
            shared: Rc::new(shared),
            layout,
        }
    }
}

impl Shared {
    fn rows(&self) -> Rc<[Row]> {
        let rows = self.rows.get_or_init(|| self.source.rows(None).into());
        Rc::clone(rows)
    }

    /// The rows that describe the tables with names in the range, sorted by these names.
    fn rows_within(&self, range: &KeyRange) -> Rc<[Row]> {
        let tables = self.tables.get_or_init(|| self.tables_by_key());
        let key_of = |values: &[Value]| self.key(values.iter().map(Value::as_ref));
        let start = match &range.lower {
            KeyBound::Open => 0,
            KeyBound::Inclusive(values) => below(tables, &key_of(values)),
            KeyBound::Exclusive(values) => through(tables, &key_of(values)),
        };
        let end = match &range.upper {
            KeyBound::Open => tables.len(),
            KeyBound::Inclusive(values) => through(tables, &key_of(values)),
            KeyBound::Exclusive(values) => below(tables, &key_of(values)),
        };
        let within = tables.get(start..end).unwrap_or_default();
        let about: Vec<_> = within.iter().map(|(_, table)| Arc::clone(table)).collect();
        self.source.rows(Some(&about)).into()
    }

    fn tables_by_key(&self) -> Vec<(Vec<u8>, Arc<TableDefinition>)> {
        let key_of = |name: &TableName| {
            let names = [&name.database, &name.table];
            self.key(names.map(|name| ValueRef::Bytes(name.as_bytes())))
        };
        let tables = self.source.tables();
        let mut tables: Vec<_> = tables
            .into_iter()
            .map(|it| (key_of(&it.name), it))
            .collect();
        tables.sort_by(|(one, _), (other, _)| one.cmp(other));
        tables
    }

    /// The key of as many of the index's columns as there are values.
    fn key<'v>(&self, values: impl IntoIterator<Item = ValueRef<'v>>) -> Vec<u8> {
        let mut key = Vec::new();
        append_key(&self.key_parts, values, &mut key);
        key
    }
}

fn key_parts(definition: &TableDefinition) -> Vec<KeyPart> {
    let parts = definition.indexes.first().map(|index| &index.parts);
    let columns = parts.into_iter().flatten().map(|part| part.column);
    columns
        .map(|column| &definition.columns[column])
        .map(|column| KeyPart::whole(column.column_type.clone(), column.nullable))
        .collect()
}

/// How many keys are below all those that begin with `key`.
fn below<T>(keys: &[(Vec<u8>, T)], key: &[u8]) -> usize {
    keys.partition_point(|(it, _)| it.as_slice() < key)
}

/// How many keys begin with `key` or are below those.
fn through<T>(keys: &[(Vec<u8>, T)], key: &[u8]) -> usize {
    keys.partition_point(|(it, _)| it.as_slice() < key || it.starts_with(key))
}

impl fmt::Debug for VirtualTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualTable")
            .field("name", &self.shared.definition.name)
            .finish_non_exhaustive()
    }
}

const READ_ONLY: StoreError = StoreError::NotSupported {
    what: "changing a virtual table",
};

impl Table for VirtualTable {
    fn definition(&self) -> &Arc<TableDefinition> {
        &self.shared.definition
    }

    fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    fn scan(&self, options: ScanOptions) -> Box<dyn Cursor> {
        let index_count = self.shared.definition.indexes.len();
        assert!(
            options.index.is_none_or(|index| index < index_count),
            "the index is the table's"
        );
        Box::new(VirtualCursor {
            shared: Rc::clone(&self.shared),
            by_name: options.index.is_some(),
            is_backward: options.direction == Direction::Backward,
            ranges: vec![options.range],
            at: 0,
            rows: None,
            next: 0,
        })
    }

    fn insert(&self, _: &mut dyn Transaction, _: &[ValueRef<'_>], _: RowLock) -> Outcome<Inserted> {
        Err(READ_ONLY.into())
    }

    fn update(
        &self,
        _: &mut dyn Transaction,
        _: RowKey<'_>,
        _: &[ValueRef<'_>],
        _: RowLock,
    ) -> Outcome<Mutation> {
        Err(READ_ONLY.into())
    }

    fn delete(&self, _: &mut dyn Transaction, _: RowKey<'_>) -> Outcome<Mutation> {
        Err(READ_ONLY.into())
    }

    fn lookup(
        &self,
        _: &mut dyn Transaction,
        _: &[RowKey<'_>],
        _: RowLock,
        _: &mut RowBatch,
    ) -> Outcome<()> {
        Err(READ_ONLY.into())
    }

    fn take_auto_increment(&self, _: AutoIncrement) -> Outcome<u64> {
        Err(READ_ONLY.into())
    }

    fn next_auto_increment(&self) -> u64 {
        0
    }

    fn statistics(&self) -> TableStatistics {
        TableStatistics::default()
    }
}

/// A scan of the rows in memory.
struct VirtualCursor {
    shared: Rc<Shared>,
    /// Over the index, within `ranges`.
    by_name: bool,
    ranges: Vec<KeyRange>,
    /// The range that is read.
    at: usize,
    is_backward: bool,
    /// Those of the range; `None` before the first is read.
    rows: Option<Rc<[Row]>>,
    /// How many of them were returned.
    next: usize,
}

impl Cursor for VirtualCursor {
    fn seek(&mut self, ranges: &[KeyRange]) {
        self.ranges = ranges.to_vec();
        self.enter(0);
    }

    fn fetch(
        &mut self,
        _: &mut dyn Transaction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Outcome<Fetched> {
        self.shared.source.ready()?;
        let last = self.ranges.len().saturating_sub(1);
        while batch.len() < limit {
            let rows = self.rows();
            if rows.len() <= self.next {
                if self.at == last || self.ranges.is_empty() {
                    return Ok(Fetched::End);
                }
                batch.end_range();
                self.enter(self.at + 1);
                continue;
            }
            let position = if self.is_backward {
                rows.len() - 1 - self.next
            } else {
                self.next
            };
            push(&rows[position], &position.to_le_bytes(), batch)?;
            self.next += 1;
        }
        let is_end = self.at == last && self.rows().len() <= self.next;
        Ok(if is_end { Fetched::End } else { Fetched::More })
    }
}

impl VirtualCursor {
    /// The rows of the present range.
    fn rows(&mut self) -> Rc<[Row]> {
        let Some(range) = self.ranges.get(self.at) else {
            return Rc::from([]);
        };
        let rows = self.rows.get_or_insert_with(|| {
            if self.by_name {
                self.shared.rows_within(range)
            } else {
                self.shared.rows()
            }
        });
        Rc::clone(rows)
    }

    /// Goes to the beginning of a range.
    fn enter(&mut self, range: usize) {
        self.at = range;
        self.next = 0;
        if self.by_name {
            self.rows = None;
        }
    }
}

fn push(row: &[Value], key: &[u8], batch: &mut RowBatch) -> Outcome<()> {
    let values: Vec<_> = row.iter().map(Value::as_ref).collect();
    let layout = Arc::clone(batch.layout());
    let mut encoded = Ok(());
    batch.push(key, |out| encoded = layout.encode(&values, out));
    encoded.map_err(|error| StoreError::damaged(error.to_string()).into())
}
