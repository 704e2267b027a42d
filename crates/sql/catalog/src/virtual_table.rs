//! A table whose rows are made when it is opened: `information_schema` and the like.
//!
//! It implements [`store::Table`], so that the planner and the executor need not know that there
//! is no store behind it. It is read-only and has no index.

use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use format::row::RowLayout;
use store::{
    AutoIncrement, Cursor, Direction, Fetched, Inserted, KeyRange, Mutation, Outcome, RowBatch,
    RowKey, RowLock, ScanOptions, StoreError, Table, TableDefinition, TableStatistics, Transaction,
};
use value::{Value, ValueRef};

/// Rows in memory behind a table's face.
pub struct VirtualTable {
    /// What the rows look like. Constant.
    definition: Arc<TableDefinition>,
    /// Their encoding. Constant.
    layout: Arc<RowLayout>,
    /// The rows as of the opening. Constant.
    rows: Rc<[Vec<Value>]>,
}

impl VirtualTable {
    /// A table of these rows; each has one value for each column, of the column's type.
    pub fn new(definition: Arc<TableDefinition>, rows: Vec<Vec<Value>>) -> Self {
        let types = definition.columns.iter().map(|column| &column.column_type);
        let layout = Arc::new(RowLayout::new(types));
        assert!(
            rows.iter().all(|row| row.len() == definition.columns.len()),
            "rows fit"
        );
        Self {
            definition,
            layout,
            rows: rows.into(),
        }
    }
}

impl fmt::Debug for VirtualTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualTable")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}

const READ_ONLY: StoreError = StoreError::NotSupported {
    what: "changing a virtual table",
};

impl Table for VirtualTable {
    fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    fn scan(&self, options: ScanOptions) -> Box<dyn Cursor> {
        assert!(options.index.is_none(), "a virtual table has no index");
        let is_backward = options.direction == Direction::Backward;
        Box::new(VirtualCursor {
            rows: Rc::clone(&self.rows),
            next: 0,
            is_backward,
        })
    }

    fn insert(&self, _: &mut dyn Transaction, _: &[ValueRef<'_>]) -> Outcome<Inserted> {
        Err(READ_ONLY.into())
    }

    fn update(
        &self,
        _: &mut dyn Transaction,
        _: RowKey<'_>,
        _: &[ValueRef<'_>],
    ) -> Outcome<Mutation> {
        Err(READ_ONLY.into())
    }

    fn delete(&self, _: &mut dyn Transaction, _: RowKey<'_>) -> Outcome<Mutation> {
        Err(READ_ONLY.into())
    }

    fn lookup(
        &self,
        _: &mut dyn Transaction,
        key: RowKey<'_>,
        _: RowLock,
        batch: &mut RowBatch,
    ) -> Outcome<bool> {
        let position = <[u8; 8]>::try_from(key.0).map(usize::from_le_bytes);
        let row = position.ok().and_then(|position| self.rows.get(position));
        row.map_or(Ok(false), |row| push(row, key.0, batch).map(|()| true))
    }

    fn take_auto_increment(&self, _: AutoIncrement) -> Outcome<u64> {
        Err(READ_ONLY.into())
    }

    fn next_auto_increment(&self) -> u64 {
        0
    }

    fn statistics(&self) -> TableStatistics {
        let row_count = self.rows.len() as u64;
        TableStatistics {
            row_count,
            ..TableStatistics::default()
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A scan of the rows in memory.
#[derive(Debug)]
struct VirtualCursor {
    rows: Rc<[Vec<Value>]>,
    /// How many rows were given.
    next: usize,
    is_backward: bool,
}

impl Cursor for VirtualCursor {
    fn seek(&mut self, _: &KeyRange) {
        self.next = 0;
    }

    fn fetch(
        &mut self,
        _: &mut dyn Transaction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Outcome<Fetched> {
        for _ in 0..limit {
            if self.rows.len() <= self.next {
                return Ok(Fetched::End);
            }
            let position = if self.is_backward {
                self.rows.len() - 1 - self.next
            } else {
                self.next
            };
            push(&self.rows[position], &position.to_le_bytes(), batch)?;
            self.next += 1;
        }
        Ok(if self.rows.len() <= self.next {
            Fetched::End
        } else {
            Fetched::More
        })
    }
}

fn push(row: &[Value], key: &[u8], batch: &mut RowBatch) -> Outcome<()> {
    let values: Vec<_> = row.iter().map(Value::as_ref).collect();
    let layout = Arc::clone(batch.layout());
    let mut encoded = Ok(());
    batch.push(key, |out| encoded = layout.encode(&values, out));
    encoded.map_err(|error| {
        StoreError::Damaged {
            what: error.to_string(),
        }
        .into()
    })
}
