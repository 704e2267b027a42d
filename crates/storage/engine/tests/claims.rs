//! Rows that a transaction changes without a lock: what others find, and what it finds itself if
//! another was faster.

#![forbid(unsafe_code)]

use std::rc::Rc;

use sim::rows::{Row, Session, accounts, all, index, row, until_done};
use sim::{Database, World, WorldOptions};
use store::{
    Cursor, Fetched, Hold, Inserted, Interrupt, Isolation, KeyRange, LockWait, Mutation, RowBatch,
    RowLock, ScanOptions, SchemaStore, Store, StoreError, Table, Uniqueness,
};
use value::Value;

const LEVELS: [Isolation; 3] = [
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

fn run<F: Future<Output = ()> + 'static>(
    test: impl FnOnce(Database, Rc<dyn Table>) -> F + 'static,
) {
    let world = World::new(20, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("a new directory opens");
        let mut definition = accounts();
        let by_balance = index("by_balance", Uniqueness::Unique, &[1]);
        definition.indexes.push(by_balance);
        let created = database.engine.create_table(definition).await;
        created.expect("a new table");
        let table = database.table("accounts");
        let mut txn = database.begin(Isolation::ReadCommitted);
        for id in [1, 3, 5] {
            let done = txn.insert(&table, &row(id, id * 10, "")).await;
            assert_eq!(done, Ok(Inserted::Done));
        }
        assert_eq!(txn.commit().await, Ok(()));
        test(database, table).await;
    });
}

fn by_id(id: i64, lock: RowLock) -> ScanOptions {
    ScanOptions {
        index: Some(0),
        range: KeyRange::equal(vec![Value::Int(id)]),
        lock,
        ..all()
    }
}

/// A scan of one row, and the row as it was found.
struct Found {
    cursor: Box<dyn Cursor>,
    batch: RowBatch,
}

impl Found {
    async fn claim(session: &mut Session, table: &Rc<dyn Table>, id: i64) -> Self {
        let mut cursor = table.scan(by_id(id, RowLock::Claim));
        let mut batch = RowBatch::new(table.layout().clone());
        let fetched = until_done(|| cursor.fetch(&mut *session.txn, 1, &mut batch)).await;
        assert!(fetched.is_ok(), "{fetched:?}");
        Self { cursor, batch }
    }

    fn key(&self) -> Vec<u8> {
        self.batch.key(0).0.to_vec()
    }

    async fn confirm(&mut self, session: &mut Session) -> Result<bool, StoreError> {
        let (cursor, batch) = (&mut self.cursor, &mut self.batch);
        until_done(|| cursor.confirm(&mut *session.txn, batch)).await
    }

    fn balance(&self, place: usize) -> Value {
        let balance = self.batch.column(place, 1).expect("a whole row");
        balance.to_value()
    }
}

/// Whether another transaction finds the row locked.
async fn is_locked(database: &Database, table: &Rc<dyn Table>, id: i64) -> bool {
    let mut other = database.begin(Isolation::ReadCommitted);
    let options = ScanOptions {
        wait: LockWait::NoWait,
        ..by_id(id, RowLock::Exclusive)
    };
    let scanned = other.scan(table, options).await;
    assert_eq!(other.rollback().await, Ok(()));
    match scanned {
        Ok(_) => false,
        Err(StoreError::LockNotAvailable) => true,
        Err(error) => panic!("{error}"),
    }
}

/// Whether an insert has to wait for a lock.
async fn is_refused(session: &mut Session, table: &Rc<dyn Table>, row: &[Value]) -> bool {
    session.txn.set_lock_wait_timeout(0);
    match session.insert(table, row).await {
        Ok(Inserted::Done) => false,
        Err(StoreError::LockWaitTimeout) => true,
        other => panic!("{other:?}"),
    }
}

/// Rows that it has locked, and the memory of its lock objects.
fn locks(database: &Database, session: &Session) -> (u64, u64) {
    let open = database.engine.activity().transactions;
    let own = open.iter().find(|it| it.id == session.txn.id());
    let own = own.expect("it is open");
    (own.lock_count, own.lock_bytes)
}

/// The row is free until it is changed, and belongs to its writer then, without a lock object.
#[test]
fn a_claimed_row_is_locked_by_its_change() {
    for level in LEVELS {
        run(async move |database, table| {
            let mut first = database.begin(level);
            let found = Found::claim(&mut first, &table, 3).await;
            assert_eq!((found.batch.len(), found.batch.hold()), (1, Hold::Claimed));
            assert!(!is_locked(&database, &table, 3).await);
            let done = first.update(&table, &found.key(), &row(3, 30, "x")).await;
            assert_eq!(done, Ok(Mutation::Done));
            assert_eq!(locks(&database, &first), (1, 0));
            assert!(is_locked(&database, &table, 3).await);
            // Its own row may be claimed again, and counts once.
            let found = Found::claim(&mut first, &table, 3).await;
            let done = first.update(&table, &found.key(), &row(3, 30, "y")).await;
            assert_eq!(done, Ok(Mutation::Done));
            assert_eq!(locks(&database, &first).0, 1);
            assert_eq!(first.commit().await, Ok(()));
            assert!(!is_locked(&database, &table, 3).await);
        });
    }
}

/// Another changes the row in between: nothing is written, and the caller gets the new version.
#[test]
fn a_change_by_another_is_seen() {
    for level in LEVELS {
        run(async move |database, table| {
            let mut first = database.begin(level);
            let mut found = Found::claim(&mut first, &table, 3).await;
            let mut second = database.begin(level);
            let key = found.key();
            let done = second
                .update(&table, &key, &row(3, 77, "long enough"))
                .await;
            assert_eq!(done, Ok(Mutation::Done));
            assert_eq!(second.commit().await, Ok(()));
            for _ in 0..2 {
                let done = first.update(&table, &key, &row(3, 31, "")).await;
                assert_eq!(done, Ok(Mutation::Changed), "also when it is tried again");
            }
            assert!(!first.txn.has_changes());
            assert_eq!(found.confirm(&mut first).await, Ok(true));
            assert_eq!(found.balance(1), Value::Int(77));
            assert!(is_locked(&database, &table, 3).await);
            let done = first.update(&table, &key, &row(3, 78, "")).await;
            assert_eq!(done, Ok(Mutation::Done));
            assert_eq!(first.commit().await, Ok(()));
        });
    }
}

/// Another removes the row in between. A reader that locks gaps has the gap locked then.
#[test]
fn a_removal_by_another_is_seen() {
    for (level, locks_gap) in [
        (Isolation::ReadCommitted, false),
        (Isolation::RepeatableRead, true),
    ] {
        run(async move |database, table| {
            let mut first = database.begin(level);
            let mut found = Found::claim(&mut first, &table, 3).await;
            let mut second = database.begin(level);
            let key = found.key();
            assert_eq!(second.delete(&table, &key).await, Ok(Mutation::Done));
            assert_eq!(second.commit().await, Ok(()));
            assert_eq!(database.engine.purge_all().await, Ok(()));
            let done = first.delete(&table, &key).await;
            assert_eq!(done, Ok(Mutation::Changed));
            assert_eq!(found.confirm(&mut first).await, Ok(false));
            assert_eq!(
                is_refused(&mut second, &table, &row(4, 40, "")).await,
                locks_gap
            );
        });
    }
}

/// A change that waits for a reader's lock finds the row as it was claimed, or not.
#[test]
fn a_reader_in_between_is_waited_for() {
    run(async |database, table| {
        let mut first = database.begin(Isolation::RepeatableRead);
        let found = Found::claim(&mut first, &table, 3).await;
        let mut reader = database.begin(Isolation::RepeatableRead);
        let rows: Vec<Row> = reader
            .scan(&table, by_id(3, RowLock::Shared))
            .await
            .expect("a row");
        assert_eq!(rows.len(), 1);
        first.txn.set_lock_wait_timeout(0);
        let refused = first.update(&table, &found.key(), &row(3, 31, "")).await;
        assert_eq!(refused, Err(StoreError::LockWaitTimeout));
        assert_eq!(reader.commit().await, Ok(()));
        let done = first.update(&table, &found.key(), &row(3, 31, "")).await;
        assert_eq!(done, Ok(Mutation::Done));
        // A row that another has locked is not claimed.
        let mut waiter = database.begin(Isolation::RepeatableRead);
        waiter.txn.set_lock_wait_timeout(0);
        let rows = waiter.scan(&table, by_id(3, RowLock::Claim)).await;
        assert_eq!(rows, Err(StoreError::LockWaitTimeout));
    });
}

/// A change that is undone while the transaction goes on leaves the row locked, as in InnoDB: by a
/// savepoint, and by a duplicate in another index.
#[test]
fn a_change_that_is_undone_leaves_its_lock() {
    for level in LEVELS {
        run(async move |database, table| {
            let mut first = database.begin(level);
            let mark = first.txn.mark();
            let found = Found::claim(&mut first, &table, 3).await;
            let done = first.update(&table, &found.key(), &row(3, 30, "x")).await;
            assert_eq!(done, Ok(Mutation::Done));
            let undone = until_done(|| first.txn.rollback_to(mark)).await;
            assert_eq!(undone, Ok(()));
            assert!(is_locked(&database, &table, 3).await);
            assert_eq!(locks(&database, &first).0, 1);
            first.txn.begin_statement();
            let found = Found::claim(&mut first, &table, 5).await;
            let refused = first.update(&table, &found.key(), &row(5, 10, "")).await;
            assert!(
                matches!(refused, Ok(Mutation::Duplicate { index: 1, .. })),
                "{refused:?}"
            );
            assert!(is_locked(&database, &table, 5).await);
            assert_eq!(first.rollback().await, Ok(()));
            assert!(!is_locked(&database, &table, 3).await);
            assert!(!is_locked(&database, &table, 5).await);
        });
    }
}

/// A row that was waited for is locked and not claimed, and nothing is left of the wait.
#[test]
fn a_row_that_was_waited_for_is_locked() {
    for level in LEVELS {
        run(async move |database, table| {
            let mut first = database.begin(level);
            let found = Found::claim(&mut first, &table, 3).await;
            let done = first.update(&table, &found.key(), &row(3, 30, "x")).await;
            assert_eq!(done, Ok(Mutation::Done));
            let mut second = database.begin(level);
            let mut cursor = table.scan(by_id(3, RowLock::Claim));
            let mut batch = RowBatch::new(table.layout().clone());
            let fetched = cursor.fetch(&mut *second.txn, 1, &mut batch);
            let Err(Interrupt::Suspend(wait)) = fetched else {
                panic!("it waits, and not {fetched:?}");
            };
            assert_eq!(database.engine.activity().waits.len(), 1);
            assert_eq!(first.commit().await, Ok(()));
            wait.await;
            let fetched = until_done(|| cursor.fetch(&mut *second.txn, 1, &mut batch)).await;
            assert_eq!(fetched, Ok(Fetched::More));
            assert_eq!((batch.len(), batch.hold()), (1, Hold::AsAsked));
            assert_eq!(database.engine.activity().waits.len(), 0);
            assert_eq!(locks(&database, &second).0, 1);
        });
    }
}

/// Another is removing the claimed row. Under READ COMMITTED nothing of it stays locked.
#[test]
fn a_row_that_goes_while_it_is_waited_for_leaves_no_lock() {
    for (level, locks_gap) in [
        (Isolation::ReadCommitted, false),
        (Isolation::RepeatableRead, true),
    ] {
        run(async move |database, table| {
            let mut first = database.begin(level);
            let mut found = Found::claim(&mut first, &table, 3).await;
            let mut second = database.begin(level);
            let key = found.key();
            assert_eq!(second.delete(&table, &key).await, Ok(Mutation::Done));
            let done = first.delete(&table, &key).await;
            assert_eq!(done, Ok(Mutation::Changed), "it does not wait here");
            let (cursor, batch) = (&mut found.cursor, &mut found.batch);
            let confirmed = cursor.confirm(&mut *first.txn, batch);
            let Err(Interrupt::Suspend(wait)) = confirmed else {
                panic!("it waits, and not {confirmed:?}");
            };
            assert_eq!(second.commit().await, Ok(()));
            wait.await;
            assert_eq!(found.confirm(&mut first).await, Ok(false));
            assert_eq!(database.engine.purge_all().await, Ok(()));
            assert_eq!(
                is_refused(&mut second, &table, &row(3, 30, "")).await,
                locks_gap
            );
        });
    }
}

/// A claim ends with its change: a part of the same statement may change the row again, by its key.
#[test]
fn a_claim_ends_with_its_change() {
    run(async |database, table| {
        let mut first = database.begin(Isolation::RepeatableRead);
        let found = Found::claim(&mut first, &table, 3).await;
        let done = first.update(&table, &found.key(), &row(3, 30, "x")).await;
        assert_eq!(done, Ok(Mutation::Done));
        let done = first.delete(&table, &found.key()).await;
        assert_eq!(done, Ok(Mutation::Done));
    });
}

/// A claim ends with the next fetch or statement: no later change is compared with it.
#[test]
fn a_claim_ends_with_the_next_fetch() {
    run(async |database, table| {
        let mut first = database.begin(Isolation::RepeatableRead);
        let found = Found::claim(&mut first, &table, 3).await;
        let mut second = database.begin(Isolation::RepeatableRead);
        let key = found.key();
        let done = second.update(&table, &key, &row(3, 77, "")).await;
        assert_eq!(done, Ok(Mutation::Done));
        assert_eq!(second.commit().await, Ok(()));
        let locked = first.scan(&table, by_id(3, RowLock::Exclusive)).await;
        assert_eq!(locked.expect("a row").len(), 1);
        let done = first.update(&table, &key, &row(3, 31, "")).await;
        assert_eq!(done, Ok(Mutation::Done));
        // Several rows are all locked.
        let mut cursor = table.scan(by_id(1, RowLock::Claim));
        cursor.seek(&[1, 5].map(|id| KeyRange::equal(vec![Value::Int(id)])));
        let mut batch = RowBatch::new(table.layout().clone());
        let fetched = until_done(|| cursor.fetch(&mut *first.txn, 9, &mut batch)).await;
        assert_eq!(fetched, Ok(Fetched::End));
        assert_eq!((batch.len(), batch.hold()), (2, Hold::AsAsked));
        assert!(is_locked(&database, &table, 1).await && is_locked(&database, &table, 5).await);
    });
}
