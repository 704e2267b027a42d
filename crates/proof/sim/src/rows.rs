//! Short helpers for tables and rows in tests: tables have a few column types, and operations await
//! their suspensions.

use std::collections::BTreeMap;
use std::rc::Rc;

pub use store::until_done;
use store::{
    ColumnDefinition, Durability, Fetched, Inserted, Interrupt, Isolation, Mutation, Outcome,
    RowBatch, RowKey, RowLock, ScanOptions, Store, StoreError, Table, TableDefinition, Transaction,
    TransactionOptions, Uniqueness, WaitReason,
};
pub use testkit::definitions::{column, index, table};
use value::{ColumnType, TypeKind, Value};

use crate::Database;

/// Awaits an operation's suspensions until it completes, as `until_done` does. Also returns how
/// often it has yielded.
pub async fn count_turns<T>(
    mut operation: impl FnMut() -> Outcome<T>,
) -> Result<(T, usize), StoreError> {
    let mut turn_count = 0;
    loop {
        match operation() {
            Ok(value) => return Ok((value, turn_count)),
            Err(Interrupt::Suspend(suspend)) => {
                turn_count += usize::from(suspend.reason() == WaitReason::Turn);
                suspend.await;
            }
            Err(Interrupt::Error(error)) => return Err(error),
        }
    }
}

/// A BIGINT NOT NULL column.
pub fn big(name: &str) -> ColumnDefinition {
    column(name, ColumnType::new(TypeKind::BigInt), false)
}

/// A LONGBLOB column.
pub fn blob(name: &str) -> ColumnDefinition {
    column(name, ColumnType::new(TypeKind::LongBlob), true)
}

/// A table of accounts: `id`, its primary key, `balance`, `note`.
pub fn accounts() -> TableDefinition {
    let columns = vec![big("id"), big("balance"), blob("note")];
    let primary = index("PRIMARY", Uniqueness::Primary, &[0]);
    table("accounts", columns, vec![primary])
}

/// A row of [`accounts`].
pub fn row(id: i64, balance: i64, note: &str) -> Vec<Value> {
    vec![Value::Int(id), Value::Int(balance), Value::bytes(note)]
}

/// A row as values, and its key.
pub type Row = (Vec<u8>, Vec<Value>);

/// A transaction with the operations that tests need.
pub struct Session {
    /// The transaction.
    pub txn: Box<dyn Transaction>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("txn", &self.txn.id())
            .finish()
    }
}

impl Database {
    /// The table of that name.
    ///
    /// # Panics
    /// If there is none.
    pub fn table(&self, name: &str) -> Rc<dyn Table> {
        let definitions = self.engine.definitions();
        let found = definitions
            .iter()
            .find(|definition| definition.name.table == name);
        let id = found.unwrap_or_else(|| panic!("table {name} is there")).id;
        self.engine
            .table(id)
            .expect("a table that is listed can be opened")
    }

    /// Begins a transaction.
    pub fn begin(&self, isolation: Isolation) -> Session {
        let options = TransactionOptions {
            isolation,
            read_only: false,
            lock_wait_timeout_s: 5,
            client: store::ClientId::NONE,
        };
        Session {
            txn: self.engine.begin(options),
        }
    }
}

impl Session {
    /// Inserts a row.
    pub async fn insert(
        &mut self,
        table: &Rc<dyn Table>,
        row: &[Value],
    ) -> Result<Inserted, StoreError> {
        let row: Vec<_> = row.iter().map(Value::as_ref).collect();
        until_done(|| table.insert(&mut *self.txn, &row, RowLock::Shared)).await
    }

    /// Changes the row of a key.
    pub async fn update(
        &mut self,
        table: &Rc<dyn Table>,
        key: &[u8],
        row: &[Value],
    ) -> Result<Mutation, StoreError> {
        let row: Vec<_> = row.iter().map(Value::as_ref).collect();
        until_done(|| table.update(&mut *self.txn, RowKey(key), &row, RowLock::Shared)).await
    }

    /// Removes the row of a key.
    pub async fn delete(
        &mut self,
        table: &Rc<dyn Table>,
        key: &[u8],
    ) -> Result<Mutation, StoreError> {
        until_done(|| table.delete(&mut *self.txn, RowKey(key))).await
    }

    /// All rows of a scan.
    pub async fn scan(
        &mut self,
        table: &Rc<dyn Table>,
        options: ScanOptions,
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let take = |batch: &RowBatch| {
            for number in 0..batch.len() {
                rows.push((batch.key(number).0.to_vec(), values(table, batch, number)?));
            }
            Ok(())
        };
        self.fetch_all(table, options, 10, take).await?;
        Ok(rows)
    }

    /// Fetches to the end of a scan, up to `limit` rows at a time, and passes on the rows of each
    /// fetch. Returns how often the fetches have yielded.
    pub async fn fetch_all(
        &mut self,
        table: &Rc<dyn Table>,
        options: ScanOptions,
        limit: usize,
        mut look: impl FnMut(&RowBatch) -> Result<(), StoreError>,
    ) -> Result<usize, StoreError> {
        let mut cursor = table.scan(options);
        let mut batch = RowBatch::new(table.layout().clone());
        let mut turn_count = 0;
        loop {
            batch.clear();
            let fetch = || cursor.fetch(&mut *self.txn, limit, &mut batch);
            let (fetched, turns) = count_turns(fetch).await?;
            turn_count += turns;
            look(&batch)?;
            if fetched == Fetched::End {
                return Ok(turn_count);
            }
        }
    }

    /// Commits durably.
    pub async fn commit(&mut self) -> Result<(), StoreError> {
        until_done(|| self.txn.commit(Durability::Durable)).await
    }

    /// Rolls back.
    pub async fn rollback(&mut self) -> Result<(), StoreError> {
        until_done(|| self.txn.rollback()).await
    }
}

/// The value of a BIGINT column.
///
/// # Panics
/// If it is something else.
pub fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        other => panic!("a BIGINT column has {other:?}"),
    }
}

fn values(table: &Rc<dyn Table>, batch: &RowBatch, row: usize) -> Result<Vec<Value>, StoreError> {
    (0..table.definition().columns.len())
        .map(|column| match batch.column(row, column) {
            Ok(value) => Ok(value.to_value()),
            Err(error) => Err(StoreError::damaged(error.to_string())),
        })
        .collect()
}

/// A scan of all rows.
pub fn all() -> ScanOptions {
    ScanOptions {
        index: None,
        range: store::KeyRange::all(),
        direction: store::Direction::Forward,
        lock: RowLock::None,
        columns: None,
        wait: store::LockWait::Wait,
        pushed: None,
    }
}

/// A row of the torture's data table, without its key.
pub(crate) type Data = (i64, Option<i64>, Vec<u8>);

/// The writes of a transaction: for each key the row or its absence.
pub(crate) type Writes = BTreeMap<i64, Option<Data>>;

/// Such a row, and its key.
pub(crate) fn data_of(row: &[Value]) -> (i64, Data) {
    let unique = if row[2].is_null() {
        None
    } else {
        Some(integer(&row[2]))
    };
    let note = match &row[3] {
        Value::Bytes(bytes) => bytes.clone(),
        _ => Vec::new(),
    };
    (integer(&row[0]), (integer(&row[1]), unique, note))
}
