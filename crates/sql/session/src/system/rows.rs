//! Rows of the server's own tables: read whole, and changed by their primary keys.

use std::rc::Rc;
use std::sync::Arc;

use catalog::SYSTEM_DATABASE;
use store::{
    Direction, Durability, Fetched, Inserted, Isolation, KeyRange, LockWait, Mutation, RowBatch,
    RowLock, ScanOptions, Store, StoreError, Table, Transaction, TransactionOptions, until_done,
};
use value::Value;

/// Rows read at a time.
const FETCH_ROWS: usize = 64;
/// How long the server's start waits for a lock, which no session holds yet: the sessions' default.
const LOCK_WAIT_TIMEOUT_S: u64 = 50;

/// What to do with the row of a key.
pub(crate) struct RowChange {
    /// The values of the primary key.
    pub(crate) key: Vec<Value>,
    /// The new row; `None` removes it.
    pub(crate) row: Option<Vec<Value>>,
}

/// A table of the system database, if it exists.
pub(crate) async fn find(
    store: &dyn Store,
    name: &str,
) -> Result<Option<Rc<dyn Table>>, StoreError> {
    let definitions = store.definitions();
    let definition = definitions.iter().find(|definition| {
        definition.name.database == SYSTEM_DATABASE && definition.name.table == name
    });
    match definition {
        Some(definition) => until_done(|| store.table(definition.id)).await.map(Some),
        None => Ok(None),
    }
}

/// All rows of a table, each decoded by `decode` from its place in a batch.
pub(crate) async fn read_all<T>(
    store: &dyn Store,
    table: &dyn Table,
    decode: impl Fn(&RowBatch, usize) -> T,
) -> Result<Vec<T>, StoreError> {
    let mut txn = store.begin(options());
    let mut cursor = table.scan(scan(KeyRange::all(), RowLock::None));
    let mut batch = RowBatch::new(Arc::clone(table.layout()));
    let mut rows = Vec::new();
    loop {
        batch.clear();
        let fetched = until_done(|| cursor.fetch(&mut *txn, FETCH_ROWS, &mut batch)).await?;
        rows.extend((0..batch.len()).map(|row| decode(&batch, row)));
        if fetched == Fetched::End {
            break;
        }
    }
    until_done(|| txn.commit(Durability::Lazy)).await?;
    Ok(rows)
}

/// Makes the changes, all or none, durably. For a caller that has nothing else to watch meanwhile.
pub(crate) async fn apply(
    store: &dyn Store,
    table: &dyn Table,
    changes: Vec<RowChange>,
) -> Result<(), StoreError> {
    let mut txn = begin(store, LOCK_WAIT_TIMEOUT_S);
    let written = write(table, &mut *txn, changes).await;
    end(&mut *txn, written).await
}

/// Begins a transaction for changes, with this limit for lock waits.
pub(crate) fn begin(store: &dyn Store, lock_wait_timeout_s: u64) -> Box<dyn Transaction> {
    store.begin(TransactionOptions {
        lock_wait_timeout_s,
        ..options()
    })
}

/// Makes the changes in a transaction. [`end`] must end it, also if this future was dropped early.
pub(crate) async fn write(
    table: &dyn Table,
    txn: &mut dyn Transaction,
    changes: Vec<RowChange>,
) -> Result<(), StoreError> {
    for change in changes {
        apply_one(table, txn, change).await?;
    }
    Ok(())
}

/// Commits durably, or rolls everything back.
pub(crate) async fn end<E: From<StoreError>>(
    txn: &mut dyn Transaction,
    written: Result<(), E>,
) -> Result<(), E> {
    match written {
        Ok(()) => until_done(|| txn.commit(Durability::Durable)).await?,
        Err(_) => until_done(|| txn.rollback()).await?,
    }
    written
}

async fn apply_one(
    table: &dyn Table,
    txn: &mut dyn Transaction,
    change: RowChange,
) -> Result<(), StoreError> {
    txn.begin_statement();
    loop {
        let range = KeyRange::equal(change.key.clone());
        let mut cursor = table.scan(scan(range, RowLock::Exclusive));
        let mut found = RowBatch::new(Arc::clone(table.layout()));
        while until_done(|| cursor.fetch(txn, 1, &mut found)).await? == Fetched::More
            && found.is_empty()
        {}
        let existing = (!found.is_empty()).then(|| found.key(0));
        let changed = match (existing, &change.row) {
            (None, None) => return Ok(()),
            (None, Some(row)) => return insert(table, txn, row).await,
            (Some(key), None) => until_done(|| table.delete(txn, key)).await?,
            (Some(key), Some(row)) => {
                let row: Vec<_> = row.iter().map(Value::as_ref).collect();
                until_done(|| table.update(txn, key, &row, RowLock::Shared)).await?
            }
        };
        match changed {
            Mutation::Done => return Ok(()),
            Mutation::Duplicate { index, .. } => return Err(StoreError::DuplicateKey { index }),
            // The row has moved: look for it again.
            Mutation::Gone | Mutation::Changed => {}
        }
    }
}

async fn insert(
    table: &dyn Table,
    txn: &mut dyn Transaction,
    row: &[Value],
) -> Result<(), StoreError> {
    let row: Vec<_> = row.iter().map(Value::as_ref).collect();
    match until_done(|| table.insert(txn, &row, RowLock::Exclusive)).await? {
        Inserted::Done => Ok(()),
        Inserted::Duplicate { index, .. } => Err(StoreError::DuplicateKey { index }),
    }
}

fn options() -> TransactionOptions {
    TransactionOptions {
        isolation: Isolation::ReadCommitted,
        read_only: false,
        lock_wait_timeout_s: LOCK_WAIT_TIMEOUT_S,
        client: store::ClientId::NONE,
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
        pushed: None,
    }
}
