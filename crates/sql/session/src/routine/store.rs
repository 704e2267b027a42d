//! Stored programs as rows of their table.

use std::rc::Rc;
use std::sync::Arc;

use ::store::{
    Direction, Durability, Fetched, Inserted, Isolation, KeyRange, LockWait, Mutation, RowBatch,
    RowLock, ScanOptions, Store, StoreError, Table, Transaction, TransactionOptions, until_done,
};
use catalog::account_record::SYSTEM_DATABASE;
use catalog::routine::{ROUTINE_TABLE, routine_table};
use catalog::{Routine, Routines};
use value::Value;

/// What to change in the table of routines.
#[derive(Debug, Clone)]
pub enum RoutineChange {
    /// A new routine, or one in place of what has its name.
    Put(Box<Routine>),
    /// Gone.
    Remove(Arc<Routine>),
}

/// The table of routines, if it has been made.
async fn table(store: &dyn Store) -> Result<Option<Rc<dyn Table>>, StoreError> {
    let definitions = store.definitions();
    let definition = definitions.iter().find(|definition| {
        definition.name.database == SYSTEM_DATABASE && definition.name.table == ROUTINE_TABLE
    });
    match definition {
        Some(definition) => until_done(|| store.table(definition.id)).await.map(Some),
        None => Ok(None),
    }
}

/// Makes the table of routines where it is missing. The system database is there.
pub async fn bootstrap(store: &dyn Store) -> Result<(), StoreError> {
    if table(store).await?.is_none() {
        store.create_table(routine_table()).await?;
    }
    Ok(())
}

/// Reads all routines. One that is damaged is left out and told of.
pub async fn load(store: &dyn Store) -> Result<Routines, StoreError> {
    let Some(table) = table(store).await? else {
        return Ok(Routines::default());
    };
    let mut txn = store.begin(options());
    let mut cursor = table.scan(scan(KeyRange::all(), RowLock::None));
    let mut batch = RowBatch::new(Arc::clone(table.layout()));
    while until_done(|| cursor.fetch(&mut *txn, 64, &mut batch)).await? == Fetched::More {}
    until_done(|| txn.commit(Durability::Lazy)).await?;
    let routines = (0..batch.len()).filter_map(|row| {
        let routine = read_row(&batch, row);
        if routine.is_none() {
            tracing::error!(
                row,
                "a stored program cannot be read and is as if it were not there"
            );
        }
        routine
    });
    Ok(Routines::new(routines.collect()))
}

fn read_row(batch: &RowBatch, row: usize) -> Option<Routine> {
    let columns = 0..routine_table().columns.len();
    let values: Option<Vec<Value>> = columns
        .map(|column| Some(batch.column(row, column).ok()?.to_value()))
        .collect();
    Routine::from_row(&values?)
}

/// Makes the changes, all or none, durably.
pub async fn apply(store: &dyn Store, changes: &[RoutineChange]) -> Result<(), StoreError> {
    let table = table(store).await?.ok_or(StoreError::NoSuchTable)?;
    let mut txn = store.begin(options());
    for change in changes {
        if let Err(error) = apply_one(&*table, &mut *txn, change).await {
            until_done(|| txn.rollback()).await?;
            return Err(error);
        }
    }
    until_done(|| txn.commit(Durability::Durable)).await
}

async fn apply_one(
    table: &dyn Table,
    txn: &mut dyn Transaction,
    change: &RoutineChange,
) -> Result<(), StoreError> {
    txn.begin_statement();
    let routine = match change {
        RoutineChange::Put(routine) => routine,
        RoutineChange::Remove(routine) => &**routine,
    };
    let key = [&*routine.database, &*routine.name, routine.kind.text()];
    let key = key.map(|text| Value::bytes(text.as_bytes())).to_vec();
    let mut cursor = table.scan(scan(KeyRange::equal(key), RowLock::Exclusive));
    let mut found = RowBatch::new(Arc::clone(table.layout()));
    while until_done(|| cursor.fetch(txn, 1, &mut found)).await? == Fetched::More
        && found.is_empty()
    {}
    let existing = (!found.is_empty()).then(|| found.key(0));
    let RoutineChange::Put(routine) = change else {
        return match existing {
            Some(key) => until_done(|| table.delete(txn, key)).await.map(|_| ()),
            None => Ok(()),
        };
    };
    let row = routine.to_row();
    let row: Vec<_> = row.iter().map(Value::as_ref).collect();
    match existing {
        Some(key) => match until_done(|| table.update(txn, key, &row)).await? {
            Mutation::Done => Ok(()),
            Mutation::Duplicate { index, .. } => Err(StoreError::DuplicateKey { index }),
            Mutation::Gone => Err(StoreError::NoSuchTable),
        },
        None => match until_done(|| table.insert(txn, &row)).await? {
            Inserted::Done => Ok(()),
            Inserted::Duplicate { index, .. } => Err(StoreError::DuplicateKey { index }),
        },
    }
}

fn options() -> TransactionOptions {
    TransactionOptions {
        isolation: Isolation::ReadCommitted,
        read_only: false,
        lock_wait_timeout_s: 50,
    }
}

fn scan(range: KeyRange, lock: RowLock) -> ScanOptions {
    ScanOptions {
        index: Some(0),
        range,
        direction: Direction::Forward,
        lock,
        columns: None,
        wait: LockWait::Wait,
    }
}
