//! A scan waits for its rows, all scans of a statement see the same, and nothing can be changed.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use store::{
    Durability, Fetched, Interrupt, RowBatch, RowLock, ScanOptions, SchemaStore, until_done,
};
use value::ColumnType;

use super::*;

/// Ready at the second poll.
struct Later(bool);

impl Future for Later {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

fn options() -> TransactionOptions {
    TransactionOptions {
        isolation: store::Isolation::RepeatableRead,
        read_only: false,
        lock_wait_timeout_s: 1,
        client: store::ClientId::NONE,
    }
}

/// A table of one column with two rows: how often it was asked, and that again.
fn store(asked: &Rc<Cell<i64>>) -> VirtualStore {
    let column = ColumnDefinition::new("a", ColumnType::new(value::TypeKind::BigInt), false);
    let asked = Rc::clone(asked);
    let ask = move || {
        asked.set(asked.get() + 1);
        let row = vec![Value::Int(asked.get())];
        let rows: LocalFuture<'static, _> = Box::pin(async move {
            Later(false).await;
            vec![row.clone(), row]
        });
        rows
    };
    let table = Declaration {
        name: "t",
        comment: "",
        columns: vec![column],
        ask: Rc::new(ask),
    };
    VirtualStore::new("d", vec![table])
}

fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

fn rows(table: &dyn Table, txn: &mut dyn Transaction) -> Vec<Value> {
    let mut cursor = table.scan(ScanOptions::default());
    let mut found = Vec::new();
    let mut batch = RowBatch::new(Arc::clone(table.layout()));
    loop {
        batch.clear();
        let fetched = done(until_done(|| cursor.fetch(txn, 1, &mut batch))).unwrap();
        let values = (0..batch.len()).map(|row| batch.column(row, 0).unwrap().to_value());
        found.extend(values);
        if fetched == Fetched::End {
            return found;
        }
    }
}

#[test]
fn a_statement_asks_once_and_the_next_asks_again() {
    let asked = Rc::default();
    let store = store(&asked);
    let mut txn = store.begin(options());
    for statement in 1..=2 {
        txn.begin_statement();
        let table = store.table(TableId(TABLE_ID_MIN)).unwrap();
        let mut cursor = table.scan(ScanOptions::default());
        let mut batch = RowBatch::new(Arc::clone(table.layout()));
        let first = cursor.fetch(&mut *txn, 1, &mut batch);
        let Err(Interrupt::Suspend(wait)) = first else {
            panic!("it waits: {first:?}");
        };
        assert_eq!(wait.reason(), WaitReason::Remote);
        done(wait);
        for _ in 0..2 {
            let expected = [Value::Int(statement), Value::Int(statement)];
            assert_eq!(rows(&*table, &mut *txn), expected);
        }
        assert_eq!(asked.get(), statement);
        assert!(txn.is_active() && !txn.has_changes());
    }
    txn.commit(Durability::Durable).unwrap();
    assert!(!txn.is_active());
}

#[test]
fn who_does_not_wait_leaves_nothing_behind() {
    let asked = Rc::default();
    let store = store(&asked);
    let mut txn = store.begin(options());
    let table = store.table(TableId(TABLE_ID_MIN)).unwrap();
    let mut batch = RowBatch::new(Arc::clone(table.layout()));
    let mut given_up = table.scan(ScanOptions::default());
    drop(
        given_up
            .fetch(&mut *txn, 1, &mut batch)
            .expect_err("it waits"),
    );
    drop(given_up);
    assert_eq!(rows(&*table, &mut *txn), [Value::Int(2), Value::Int(2)]);
}

#[test]
fn nothing_can_be_changed() {
    let store = store(&Rc::default());
    let mut txn = store.begin(options());
    let table = store.table(TableId(TABLE_ID_MIN)).unwrap();
    let is_refused = |interrupt: &Interrupt| {
        let error = StoreError::NotSupported {
            what: "changing a virtual table",
        };
        matches!(interrupt, Interrupt::Error(it) if *it == error)
    };
    let row = [Value::Int(1).as_ref()];
    assert!(is_refused(
        &table.insert(&mut *txn, &row, RowLock::Shared).unwrap_err()
    ));
    let key = store::RowKey(&[0; 8]);
    assert!(is_refused(&table.delete(&mut *txn, key).unwrap_err()));
    let refused = StoreError::NotSupported {
        what: "changing virtual tables",
    };
    let dropped = done(store.drop_table(TableId(TABLE_ID_MIN)));
    assert_eq!(dropped, Err(refused.clone()));
    assert_eq!(done(store.create_database("e", COLLATION)), Err(refused));
    let missing = store
        .table(TableId(TABLE_ID_MIN + 1))
        .map(drop)
        .unwrap_err();
    assert!(matches!(missing, Interrupt::Error(StoreError::NoSuchTable)));
}
