//! Two stores behind one: tables of both in one transaction, and changes of tables.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use routed::{Member, RoutedStore};
use store::{
    Durability, Inserted, Interrupt, Isolation, KeyRange, LocalFuture, Outcome, RowBatch, RowLock,
    ScanOptions, SchemaStore, Store, StoreError, TableId, TableName, Transaction,
    TransactionOptions, Uniqueness,
};
use testkit::NaiveStore;
use testkit::definitions::{column, index, table};
use value::{CollationId, ColumnType, TypeKind, Value};

/// Two naive stores behind one, each with a table.
struct Pair {
    near: NaiveStore,
    far: NaiveStore,
    routed: RoutedStore,
    near_table: TableId,
    far_table: TableId,
}

fn definition(database: &str, name: &str) -> store::TableDefinition {
    let id = column("id", ColumnType::new(TypeKind::Int), false);
    let primary = index("PRIMARY", Uniqueness::Primary, &[0]);
    let mut definition = table(name, vec![id], vec![primary]);
    definition.name.database = database.to_owned();
    definition
}

fn member(store: &NaiveStore) -> Member {
    Member {
        store: Rc::new(store.clone()),
        schema: Some(Rc::new(store.clone())),
    }
}

fn pair() -> Pair {
    let (near, far) = (NaiveStore::new(), NaiveStore::with_ids_above(1000));
    let near_table = near.add_table(definition("test", "a"));
    let far_table = far.add_table(definition("far", "b"));
    let routed = RoutedStore::new(vec![member(&near), member(&far)]);
    Pair {
        near,
        far,
        routed,
        near_table,
        far_table,
    }
}

const OPTIONS: TransactionOptions = TransactionOptions {
    isolation: Isolation::RepeatableRead,
    read_only: false,
    lock_wait_timeout_s: 1,
    client: store::ClientId::NONE,
};

/// Calls until it is done. The stores here suspend for a turn at most.
fn done<T>(mut operation: impl FnMut() -> Outcome<T>) -> Result<T, StoreError> {
    loop {
        match operation() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Suspend(_)) => {}
            Err(Interrupt::Error(error)) => return Err(error),
        }
    }
}

/// The result of a change that waits for nothing.
fn now<T>(mut change: LocalFuture<'_, T>) -> T {
    match change
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the naive store changes tables at once"),
    }
}

impl Pair {
    fn insert(&self, txn: &mut dyn Transaction, table: TableId, id: i64) {
        let table = done(|| self.routed.table(table)).expect("it exists");
        let row = [Value::Int(id)];
        let row: Vec<_> = row.iter().map(Value::as_ref).collect();
        let inserted = done(|| table.insert(txn, &row, RowLock::Shared));
        assert_eq!(inserted, Ok(Inserted::Done));
    }

    /// The rows of the near table, and of the far one, as another transaction finds them.
    fn rows(&self) -> (usize, usize) {
        let mut txn = self.routed.begin(OPTIONS);
        let mut count = |table| {
            let table = done(|| self.routed.table(table)).expect("it exists");
            let mut cursor = table.scan(ScanOptions::default());
            let mut batch = RowBatch::new(table.layout().clone());
            done(|| cursor.fetch(&mut *txn, 100, &mut batch)).expect("rows");
            batch.len()
        };
        (count(self.near_table), count(self.far_table))
    }

    /// A transaction with a row in each store.
    fn with_both(&self) -> Box<dyn Transaction> {
        let mut txn = self.routed.begin(OPTIONS);
        txn.begin_statement();
        self.insert(&mut *txn, self.near_table, 1);
        self.insert(&mut *txn, self.far_table, 1);
        txn
    }
}

#[test]
fn a_rollback_and_a_savepoint_reach_both_stores() {
    let pair = pair();
    for every in [0, 2] {
        pair.near.suspend_every(every);
        pair.far.suspend_every(every);
        let mut txn = pair.with_both();
        let first = txn.mark();
        pair.insert(&mut *txn, pair.far_table, 2);
        let second = txn.mark();
        pair.insert(&mut *txn, pair.near_table, 3);
        pair.insert(&mut *txn, pair.far_table, 3);
        assert_eq!(pair.rows(), (2, 3));
        assert_eq!(done(|| txn.rollback_to(second)), Ok(()));
        assert_eq!(pair.rows(), (1, 2));
        pair.insert(&mut *txn, pair.near_table, 4);
        assert_eq!(done(|| txn.rollback_to(first)), Ok(()));
        assert_eq!(pair.rows(), (1, 1));
        assert!(txn.has_changes() && txn.is_active());
        assert_eq!(done(|| txn.rollback()), Ok(()));
        assert_eq!(pair.rows(), (0, 0));
        assert!(!txn.has_changes() && !txn.is_active());
    }
}

#[test]
fn a_transaction_that_is_dropped_is_undone_in_both() {
    let pair = pair();
    let kept = Rc::new(Cell::new(0));
    let mut txn = pair.with_both();
    txn.keep(Box::new(Rc::clone(&kept)));
    assert_eq!(Rc::strong_count(&kept), 2);
    drop(txn);
    assert_eq!(pair.rows(), (0, 0));
    assert_eq!(Rc::strong_count(&kept), 1, "nothing holds on to it");
}

#[test]
fn several_stores_with_changes_prepare_before_the_first_commits() {
    let pair = pair();
    for every in [0, 2] {
        pair.near.suspend_every(every);
        pair.far.suspend_every(every);
        let before = pair.near.prepared();
        let mut txn = pair.with_both();
        assert_eq!(done(|| txn.commit(Durability::Durable)), Ok(()));
        assert_eq!(pair.near.prepared() - before, 1);
        assert_eq!(pair.far.prepared(), pair.near.prepared());
        // The transaction can be used again: one store alone is not prepared.
        pair.insert(&mut *txn, pair.far_table, 2);
        assert_eq!(done(|| txn.commit(Durability::Durable)), Ok(()));
        assert_eq!(pair.far.prepared(), pair.near.prepared());
        assert_eq!(pair.rows(), (1, 2));
        let mut undo = pair.routed.begin(OPTIONS);
        for (table, id) in [
            (pair.near_table, 1),
            (pair.far_table, 1),
            (pair.far_table, 2),
        ] {
            let opened = done(|| pair.routed.table(table)).expect("it exists");
            let key = key_of(&*opened, &mut *undo, id);
            done(|| opened.delete(&mut *undo, store::RowKey(&key))).expect("it is there");
        }
        assert_eq!(done(|| undo.commit(Durability::Durable)), Ok(()));
    }
}

/// The key of the row with this id.
fn key_of(table: &dyn store::Table, txn: &mut dyn Transaction, id: i64) -> Vec<u8> {
    let mut cursor = table.scan(ScanOptions {
        index: Some(0),
        range: KeyRange::equal(vec![Value::Int(id)]),
        lock: RowLock::Exclusive,
        ..ScanOptions::default()
    });
    let mut batch = RowBatch::new(table.layout().clone());
    done(|| cursor.fetch(txn, 1, &mut batch)).expect("rows");
    batch.key(0).0.to_vec()
}

#[test]
fn nothing_is_committed_if_one_cannot_prepare() {
    let pair = pair();
    let mut txn = pair.with_both();
    // The near store is asked first. Its answer is a call, and the far one's fails.
    pair.far.fail_after(0, StoreError::DiskFull);
    assert_eq!(
        done(|| txn.commit(Durability::Durable)),
        Err(StoreError::DiskFull)
    );
    drop(txn);
    assert_eq!(pair.rows(), (0, 0));
}

#[test]
fn a_store_that_cannot_prepare_commits_first_and_decides() {
    let pair = pair();
    pair.near.refuse_to_prepare();
    let mut txn = pair.with_both();
    assert_eq!(done(|| txn.commit(Durability::Durable)), Ok(()));
    assert_eq!((pair.near.prepared(), pair.far.prepared()), (0, 1));
    assert_eq!(pair.rows(), (1, 1));
    // If its commit fails, so does the other's.
    let mut txn = pair.routed.begin(OPTIONS);
    pair.insert(&mut *txn, pair.far_table, 7);
    pair.insert(&mut *txn, pair.near_table, 7);
    pair.near.fail_after(0, StoreError::DiskFull);
    assert_eq!(
        done(|| txn.commit(Durability::Durable)),
        Err(StoreError::DiskFull)
    );
    drop(txn);
    assert_eq!(pair.rows(), (1, 1));
    // Two of them cannot take part in one transaction.
    pair.far.refuse_to_prepare();
    let mut txn = pair.routed.begin(OPTIONS);
    pair.insert(&mut *txn, pair.far_table, 8);
    pair.insert(&mut *txn, pair.near_table, 8);
    let refused = done(|| txn.commit(Durability::Durable));
    assert!(
        matches!(refused, Err(StoreError::NotSupported { .. })),
        "{refused:?}"
    );
    drop(txn);
    assert_eq!(pair.rows(), (1, 1));
}

#[test]
fn a_table_is_made_where_its_database_is() {
    let pair = pair();
    let made = now(pair.routed.create_table(definition("far", "c")));
    assert!(1000 < made.expect("a new table").0);
    let made = now(pair.routed.create_table(definition("test", "c")));
    assert!(made.expect("a new table").0 < 1000);
    let again = now(pair.routed.create_table(definition("far", "c")));
    assert_eq!(again, Err(StoreError::TableExists));
    let made = now(pair.routed.create_database("new", CollationId::BINARY));
    assert_eq!(made, Ok(()));
    let names: Vec<String> = pair
        .routed
        .databases()
        .iter()
        .map(|it| it.0.clone())
        .collect();
    assert_eq!(names, ["test", "new", "far"]);
    assert_eq!(pair.near.databases().len(), 2);
    let moved = TableName {
        database: "far".to_owned(),
        table: "a".to_owned(),
    };
    let moved = now(pair.routed.rename_tables(vec![(pair.near_table, moved)]));
    assert!(matches!(moved, Err(StoreError::NotSupported { .. })));
    assert_eq!(now(pair.routed.drop_table(pair.far_table)), Ok(()));
    assert!(done(|| pair.routed.table(pair.far_table)).is_err());
    assert_eq!(pair.routed.definitions().len(), 3);
}

#[test]
fn a_store_may_forbid_changes_of_its_tables() {
    let (near, far) = (NaiveStore::new(), NaiveStore::with_ids_above(1000));
    let id = far.add_table(definition("far", "b"));
    let fixed = Member {
        schema: None,
        ..member(&far)
    };
    let routed = RoutedStore::new(vec![member(&near), fixed]);
    let dropped = now(routed.drop_table(id));
    assert!(matches!(dropped, Err(StoreError::NotSupported { .. })));
    let made = now(routed.create_table(definition("far", "c")));
    assert!(matches!(made, Err(StoreError::NotSupported { .. })));
}
