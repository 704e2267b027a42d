//! What others may do beside a locking read: it locks no more than InnoDB does.

#![forbid(unsafe_code)]

use std::rc::Rc;

use sim::rows::{Row, Session, accounts, all, index, row, until_done};
use sim::{Database, World, WorldOptions};
use store::{
    Cursor, Direction, Fetched, Hold, Inserted, Interrupt, Isolation, KeyBound, KeyRange, LockWait,
    Mutation, RowBatch, RowLock, ScanOptions, SchemaStore, StoreError, Suspend, Table, Uniqueness,
    WaitReason,
};
use value::Value;

/// The primary key, and the index of balances.
const BY_ID: usize = 0;
const BY_BALANCE: usize = 1;

/// Accounts 1, 5 and 9 with balances of ten times that, without notes, and the rows as they are
/// found.
async fn fill(database: &Database) -> (Rc<dyn Table>, Vec<Row>) {
    let mut definition = accounts();
    definition.columns.truncate(2);
    let by_balance = index("by_balance", Uniqueness::None, &[1]);
    definition.indexes.push(by_balance);
    let created = database.engine.create_table(definition).await;
    created.expect("a new table");
    let table = database.table("accounts");
    let mut txn = database.begin(Isolation::ReadCommitted);
    for id in [1, 5, 9] {
        assert_eq!(txn.insert(&table, &account(id)).await, Ok(Inserted::Done));
    }
    assert_eq!(txn.commit().await, Ok(()));
    let rows = txn.scan(&table, all()).await.expect("rows");
    assert_eq!(txn.commit().await, Ok(()));
    (table, rows)
}

fn account(id: i64) -> Vec<Value> {
    row(id, id * 10, "").into_iter().take(2).collect()
}

/// A locking read of one value of an index.
fn point(index: usize, value: i64, lock: RowLock) -> ScanOptions {
    ScanOptions {
        index: Some(index),
        range: KeyRange::equal(vec![Value::Int(value)]),
        lock,
        ..all()
    }
}

/// The same, which fails where it would wait.
fn impatient(index: usize, value: i64) -> ScanOptions {
    ScanOptions {
        wait: LockWait::NoWait,
        ..point(index, value, RowLock::Exclusive)
    }
}

fn run<F: Future<Output = ()> + 'static>(test: impl FnOnce(Database) -> F + 'static) {
    let world = World::new(28, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("a new directory opens");
        test(database).await;
    });
}

/// A deleted row that purge cannot remove, since the session that is returned may see it.
async fn delete_behind(database: &Database, table: &Rc<dyn Table>, row: &Row) -> Session {
    let mut reader = database.begin(Isolation::RepeatableRead);
    assert_eq!(reader.scan(table, all()).await.expect("rows").len(), 3);
    let mut deleter = delete(database, table, row).await;
    assert_eq!(deleter.commit().await, Ok(()));
    reader
}

/// A transaction that has deleted a row, and has not ended.
async fn delete(database: &Database, table: &Rc<dyn Table>, row: &Row) -> Session {
    let mut deleter = database.begin(Isolation::ReadCommitted);
    let deleted = deleter.delete(table, &row.0).await;
    assert_eq!(deleted, Ok(Mutation::Done));
    deleter
}

/// The entries have all columns, so a shared lock of them is enough.
#[test]
fn a_shared_read_of_all_columns_leaves_the_rows_to_others() {
    for (lock, is_free) in [(RowLock::Shared, true), (RowLock::Exclusive, false)] {
        run(async move |database| {
            let (table, _) = fill(&database).await;
            let mut reader = database.begin(Isolation::RepeatableRead);
            let read = reader.scan(&table, point(BY_BALANCE, 50, lock)).await;
            assert_eq!(read.expect("it waits for nothing")[0].1, account(5));
            let mut other = database.begin(Isolation::RepeatableRead);
            let found = other.scan(&table, impatient(BY_ID, 5)).await;
            match is_free {
                true => assert_eq!(found.expect("the row is free")[0].1, account(5)),
                false => assert_eq!(found, Err(StoreError::LockNotAvailable)),
            }
        });
    }
}

/// A primary key names one entry, deleted or not. Its lock keeps the key free, and nothing else.
#[test]
fn a_deleted_row_is_locked_without_its_gaps() {
    run(async |database| {
        let (table, rows) = fill(&database).await;
        let _snapshot = delete_behind(&database, &table, &rows[1]).await;
        let mut reader = database.begin(Isolation::RepeatableRead);
        let read = reader.scan(&table, point(BY_ID, 5, RowLock::Exclusive));
        assert_eq!(read.await, Ok(Vec::new()));
        let mut other = database.begin(Isolation::RepeatableRead);
        for id in [4, 6] {
            assert_eq!(other.insert(&table, &account(id)).await, Ok(Inserted::Done));
        }
        let refused = other.insert(&table, &account(5)).await;
        assert_eq!(refused, Err(StoreError::LockWaitTimeout));
    });
}

/// The gap behind a value and its entries' own gaps are all that a backward scan of it locks.
#[test]
fn a_value_that_is_read_backward_leaves_the_gap_before_the_entry_before_it() {
    for (balance, row_count) in [(50, 1), (60, 0)] {
        run(async move |database| {
            let (table, _) = fill(&database).await;
            let mut reader = database.begin(Isolation::RepeatableRead);
            let backward = ScanOptions {
                direction: Direction::Backward,
                ..point(BY_BALANCE, balance, RowLock::Exclusive)
            };
            let read = reader.scan(&table, backward).await;
            assert_eq!(read.expect("it waits for nothing").len(), row_count);
            let mut other = database.begin(Isolation::RepeatableRead);
            for (id, is_free) in [(0, true), (3, row_count == 0), (6, false), (10, true)] {
                let inserted = other.insert(&table, &account(id)).await;
                match is_free {
                    true => assert_eq!(inserted, Ok(Inserted::Done), "{id} beside {balance}"),
                    false => assert_eq!(inserted, Err(StoreError::LockWaitTimeout), "{id}"),
                }
            }
        });
    }
}

/// Purge removes a deleted row that a reader has locked. Then the reader has the joined gap.
#[test]
fn the_key_of_a_locked_row_stays_free_behind_purge() {
    run(async |database| {
        let (table, rows) = fill(&database).await;
        let mut snapshot = delete_behind(&database, &table, &rows[1]).await;
        let mut reader = database.begin(Isolation::RepeatableRead);
        let read = reader.scan(&table, point(BY_ID, 5, RowLock::Shared));
        assert_eq!(read.await, Ok(Vec::new()));
        assert_eq!(snapshot.commit().await, Ok(()));
        assert_eq!(database.engine.purge_all().await, Ok(()));
        let mut other = database.begin(Isolation::RepeatableRead);
        for id in [4, 5, 6] {
            let refused = other.insert(&table, &account(id)).await;
            assert_eq!(refused, Err(StoreError::LockWaitTimeout), "{id}");
        }
    });
}

/// Under READ COMMITTED a deleted entry is passed, whoever has locked it, if its deletion is
/// committed.
#[test]
fn what_is_deleted_for_good_is_not_waited_for() {
    run(async |database| {
        let (table, rows) = fill(&database).await;
        let _snapshot = delete_behind(&database, &table, &rows[1]).await;
        let mut holder = database.begin(Isolation::RepeatableRead);
        for (index, value) in [(BY_ID, 5), (BY_BALANCE, 50)] {
            let held = holder.scan(&table, point(index, value, RowLock::Exclusive));
            assert_eq!(held.await, Ok(Vec::new()));
            for (isolation, found) in [
                (Isolation::ReadCommitted, Ok(Vec::new())),
                (Isolation::RepeatableRead, Err(StoreError::LockNotAvailable)),
            ] {
                let mut other = database.begin(isolation);
                let read = other.scan(&table, impatient(index, value)).await;
                assert_eq!(read, found, "{isolation:?} {index}");
            }
        }
        // A range whose end is behind it passes it, too.
        let range = ScanOptions {
            range: KeyRange {
                upper: KeyBound::Inclusive(vec![Value::Int(40)]),
                ..KeyRange::all()
            },
            ..impatient(BY_BALANCE, 0)
        };
        let mut other = database.begin(Isolation::ReadCommitted);
        let read = other.scan(&table, range).await;
        assert_eq!(read.expect("it waits for nothing").len(), 1);
        // This deletion can still be undone.
        let deleted = other.delete(&table, &rows[2].0).await;
        assert_eq!(deleted, Ok(Mutation::Done));
        let mut reader = database.begin(Isolation::ReadCommitted);
        for (index, value) in [(BY_ID, 9), (BY_BALANCE, 90)] {
            let read = reader.scan(&table, impatient(index, value)).await;
            assert_eq!(read, Err(StoreError::LockNotAvailable), "{index}");
        }
    });
}

/// A row is waited for and then taken back. Its writer, which goes on, keeps the gap where the row
/// was, if its level locks gaps.
#[test]
fn a_row_that_is_taken_back_leaves_no_gap_where_the_level_locks_none() {
    for (isolation, is_free) in [
        (Isolation::ReadCommitted, true),
        (Isolation::RepeatableRead, false),
    ] {
        run(async move |database| {
            let (table, _) = fill(&database).await;
            let mut writer = database.begin(isolation);
            let mark = writer.txn.mark();
            let inserted = writer.insert(&table, &account(3)).await;
            assert_eq!(inserted, Ok(Inserted::Done));
            let mut waiter = database.begin(isolation);
            let values = account(3);
            let values: Vec<_> = values.iter().map(Value::as_ref).collect();
            let mut insert = || table.insert(&mut *waiter.txn, &values, RowLock::Shared);
            let wait = row_wait(&mut insert).await;
            let undone = until_done(|| writer.txn.rollback_to(mark)).await;
            undone.expect("it can be undone");
            wait.await;
            let inserted = until_done(insert).await;
            match is_free {
                true => assert_eq!(inserted, Ok(Inserted::Done)),
                false => assert_eq!(inserted, Err(StoreError::LockWaitTimeout)),
            }
        });
    }
}

/// A change tests a row as it was committed last. The row matches, so the change waits for it.
/// During the wait the row's deletion is committed, and purge may remove the row.
#[test]
fn a_row_that_is_gone_behind_the_wait_of_a_change_stays_free() {
    for is_purged in [false, true] {
        run(async move |database| {
            let (table, rows) = fill(&database).await;
            let mut deleter = delete(&database, &table, &rows[1]).await;
            let mut changer = database.begin(Isolation::ReadCommitted);
            let mut change = Change::of(&mut changer, &table).await;
            let wait = change.wait(&mut changer);
            assert_eq!(deleter.commit().await, Ok(()));
            wait.await;
            if is_purged {
                assert_eq!(database.engine.purge_all().await, Ok(()));
            }
            assert_eq!(change.confirm(&mut changer).await, Ok(false));
            let mut other = database.begin(Isolation::ReadCommitted);
            let inserted = other.insert(&table, &account(5)).await;
            assert_eq!(inserted, Ok(Inserted::Done), "purged: {is_purged}");
        });
    }
}

/// Between the test of a row and the wait for it, a function of the same statement has replaced a
/// row that it waited for. That row's lock is not one of the row that is gone.
#[test]
fn what_a_change_has_locked_meanwhile_stays_locked() {
    run(async |database| {
        let (table, rows) = fill(&database).await;
        let mut deleter = delete(&database, &table, &rows[1]).await;
        let mut changer = database.begin(Isolation::ReadCommitted);
        let mut change = Change::of(&mut changer, &table).await;
        let mut writer = database.begin(Isolation::ReadCommitted);
        let inserted = writer.insert(&table, &account(7)).await;
        assert_eq!(inserted, Ok(Inserted::Done));
        let values = account(7);
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let mut insert = || table.insert(&mut *changer.txn, &values, RowLock::Exclusive);
        let wait = row_wait(&mut insert).await;
        assert_eq!(writer.rollback().await, Ok(()));
        wait.await;
        assert_eq!(until_done(insert).await, Ok(Inserted::Done));
        let mut other = database.begin(Isolation::ReadCommitted);
        let mut scan = table.scan(point(BY_ID, 7, RowLock::Exclusive));
        let mut batch = RowBatch::new(table.layout().clone());
        let mut fetch = || scan.fetch(&mut *other.txn, 1, &mut batch);
        let wait = row_wait(&mut fetch).await;
        assert_eq!(deleter.commit().await, Ok(()));
        assert_eq!(change.confirm(&mut changer).await, Ok(false));
        wait.await;
        let refused = until_done(fetch).await;
        assert_eq!(refused, Err(StoreError::LockWaitTimeout));
    });
}

/// A row that does not match is released, also if the leaf has changed while it was waited for.
#[test]
fn a_row_that_was_waited_for_is_released_if_it_does_not_match() {
    for index in [BY_ID, BY_BALANCE] {
        run(async move |database| {
            let (table, _) = fill(&database).await;
            let mut writer = database.begin(Isolation::ReadCommitted);
            let inserted = writer.insert(&table, &account(2)).await;
            assert_eq!(inserted, Ok(Inserted::Done));
            let mut holder = database.begin(Isolation::ReadCommitted);
            let held = holder.scan(&table, point(BY_ID, 1, RowLock::Exclusive));
            assert_eq!(held.await.expect("a row").len(), 1);
            let mut reader = database.begin(Isolation::ReadCommitted);
            let mut scan = table.scan(point(index, key_of_first(index), RowLock::Exclusive));
            let mut batch = RowBatch::new(table.layout().clone());
            let mut fetch = || scan.fetch(&mut *reader.txn, 10, &mut batch);
            let wait = row_wait(&mut fetch).await;
            assert_eq!(writer.rollback().await, Ok(()));
            assert_eq!(holder.commit().await, Ok(()));
            wait.await;
            assert!(until_done(fetch).await.is_ok());
            assert_eq!(batch.len(), 1);
            scan.release(&mut *reader.txn, 0);
            let mut other = database.begin(Isolation::ReadCommitted);
            let found = other
                .scan(&table, impatient(index, key_of_first(index)))
                .await;
            assert_eq!(found.expect("the row is free").len(), 1, "{index}");
        });
    }
}

/// A scan of an index returns the row that it has found before it waits for the next one. That one
/// does not match, and neither its entry nor the row is kept locked.
#[test]
fn a_row_that_was_waited_for_behind_another_is_released_with_its_entry() {
    run(async |database| {
        let (table, _) = fill(&database).await;
        let mut holder = database.begin(Isolation::ReadCommitted);
        let held = holder.scan(&table, point(BY_ID, 5, RowLock::Exclusive));
        assert_eq!(held.await.expect("a row").len(), 1);
        let mut reader = database.begin(Isolation::ReadCommitted);
        let mut scan = table.scan(ScanOptions {
            index: Some(BY_BALANCE),
            lock: RowLock::Exclusive,
            ..all()
        });
        let mut batch = RowBatch::new(table.layout().clone());
        let mut fetch = || scan.fetch(&mut *reader.txn, 10, &mut batch);
        assert_eq!(until_done(&mut fetch).await, Ok(Fetched::More));
        assert_eq!(batch.len(), 1);
        batch.clear();
        let mut fetch = || scan.fetch(&mut *reader.txn, 10, &mut batch);
        let wait = row_wait(&mut fetch).await;
        assert_eq!(holder.commit().await, Ok(()));
        wait.await;
        assert!(until_done(fetch).await.is_ok());
        assert_eq!(batch.column(0, 0), Ok(Value::Int(5).as_ref()));
        scan.release(&mut *reader.txn, 0);
        let mut other = database.begin(Isolation::ReadCommitted);
        for (index, key) in [(BY_BALANCE, 50), (BY_ID, 5)] {
            let found = other.scan(&table, impatient(index, key)).await;
            assert_eq!(found.expect("the row is free").len(), 1, "{index}");
        }
    });
}

/// A row is waited for and then taken back. The waiter locks neither its key nor its entry in the
/// index, and goes on: to another row, to the range's end, or to the index's. What it has locked
/// before stays locked.
#[test]
fn a_row_that_is_taken_back_behind_a_wait_leaves_its_key_free() {
    let range = |index, lower, upper| {
        let bound = |key: i64| KeyBound::Inclusive(vec![Value::Int(key * key_of_first(index))]);
        KeyRange {
            lower: bound(lower),
            upper: bound(upper),
        }
    };
    for (index, direction) in [
        (BY_ID, Direction::Forward),
        (BY_ID, Direction::Backward),
        (BY_BALANCE, Direction::Forward),
        (BY_BALANCE, Direction::Backward),
    ] {
        for (lower, upper) in [(2, 4), (1, 5), (3, 9), (3, 20), (0, 3)] {
            let range = range(index, lower, upper);
            run(async move |database| {
                let (table, _) = fill(&database).await;
                let mut writer = database.begin(Isolation::ReadCommitted);
                let inserted = writer.insert(&table, &account(3)).await;
                assert_eq!(inserted, Ok(Inserted::Done));
                let mut reader = database.begin(Isolation::ReadCommitted);
                let held = reader.scan(&table, point(BY_ID, 9, RowLock::Exclusive));
                assert_eq!(held.await.expect("a row").len(), 1);
                let mut scan = table.scan(ScanOptions {
                    index: Some(index),
                    direction,
                    range,
                    lock: RowLock::Exclusive,
                    ..all()
                });
                let mut batch = RowBatch::new(table.layout().clone());
                let wait = loop {
                    let mut fetch = || scan.fetch(&mut *reader.txn, 10, &mut batch);
                    match fetch() {
                        Err(Interrupt::Suspend(wait)) if wait.reason() == WaitReason::RowLock => {
                            break wait;
                        }
                        Err(Interrupt::Suspend(wait)) => wait.await,
                        Ok(Fetched::More) => batch.clear(),
                        other => panic!("it waits for the row, and not {other:?}"),
                    }
                };
                assert_eq!(writer.rollback().await, Ok(()));
                wait.await;
                loop {
                    let fetch = || scan.fetch(&mut *reader.txn, 10, &mut batch);
                    match until_done(fetch).await.expect("nothing is in its way") {
                        Fetched::End => break,
                        Fetched::More => batch.clear(),
                    }
                }
                let mut other = database.begin(Isolation::ReadCommitted);
                let inserted = other.insert(&table, &account(3)).await;
                assert_eq!(
                    inserted,
                    Ok(Inserted::Done),
                    "{index} {direction:?} {lower}"
                );
                let held = other.scan(&table, impatient(BY_ID, 9)).await;
                assert_eq!(held, Err(StoreError::LockNotAvailable));
            });
        }
    }
}

/// A scan has waited for a row that is gone. When it looks for that key again, the locks that the
/// transaction has taken meanwhile are not those of the row that it finds.
#[test]
fn what_was_locked_between_two_lookups_of_a_key_stays_locked() {
    run(async |database| {
        let (table, rows) = fill(&database).await;
        let mut deleter = delete(&database, &table, &rows[1]).await;
        let mut reader = database.begin(Isolation::ReadCommitted);
        let mut scan = table.scan(point(BY_ID, 5, RowLock::Exclusive));
        let mut batch = RowBatch::new(table.layout().clone());
        let mut fetch = || scan.fetch(&mut *reader.txn, 10, &mut batch);
        let wait = row_wait(&mut fetch).await;
        assert_eq!(deleter.commit().await, Ok(()));
        wait.await;
        assert_eq!(database.engine.purge_all().await, Ok(()));
        assert_eq!(until_done(fetch).await, Ok(Fetched::End));
        let held = reader.scan(&table, point(BY_ID, 9, RowLock::Exclusive));
        assert_eq!(held.await.expect("a row").len(), 1);
        let inserted = reader.insert(&table, &account(5)).await;
        assert_eq!(inserted, Ok(Inserted::Done));
        scan.seek(&[KeyRange::equal(vec![Value::Int(5)])]);
        let fetch = || scan.fetch(&mut *reader.txn, 10, &mut batch);
        assert!(until_done(fetch).await.is_ok());
        assert_eq!(batch.len(), 1);
        scan.release(&mut *reader.txn, 0);
        let mut other = database.begin(Isolation::ReadCommitted);
        let found = other.scan(&table, impatient(BY_ID, 9)).await;
        assert_eq!(found, Err(StoreError::LockNotAvailable));
    });
}

/// The key of account 1 in an index.
fn key_of_first(index: usize) -> i64 {
    match index {
        BY_ID => 1,
        _ => 10,
    }
}

/// A scan for a change, whose second row is locked by another transaction.
struct Change {
    cursor: Box<dyn Cursor>,
    batch: RowBatch,
}

impl Change {
    /// Fetches the first row, and the second one as it was committed last.
    async fn of(session: &mut Session, table: &Rc<dyn Table>) -> Self {
        let options = ScanOptions {
            index: Some(BY_ID),
            lock: RowLock::Change,
            wait: LockWait::SemiConsistent,
            ..all()
        };
        let mut cursor = table.scan(options);
        let mut batch = RowBatch::new(table.layout().clone());
        for hold in [Hold::AsAsked, Hold::Committed] {
            batch.clear();
            let fetch = || cursor.fetch(&mut *session.txn, usize::MAX, &mut batch);
            assert_eq!(until_done(fetch).await, Ok(Fetched::More));
            assert_eq!((batch.len(), batch.hold()), (1, hold));
        }
        Self { cursor, batch }
    }

    /// Begins to wait for the second row.
    fn wait(&mut self, session: &mut Session) -> Suspend {
        match self.cursor.confirm(&mut *session.txn, &mut self.batch) {
            Err(Interrupt::Suspend(wait)) => wait,
            other => panic!("it waits for the row, and not {other:?}"),
        }
    }

    async fn confirm(&mut self, session: &mut Session) -> Result<bool, StoreError> {
        let (cursor, batch) = (&mut self.cursor, &mut self.batch);
        until_done(|| cursor.confirm(&mut *session.txn, batch)).await
    }
}

/// Calls until the call waits for another's row.
async fn row_wait<T: std::fmt::Debug>(call: &mut impl FnMut() -> Result<T, Interrupt>) -> Suspend {
    loop {
        match call() {
            Err(Interrupt::Suspend(wait)) if wait.reason() == WaitReason::RowLock => return wait,
            Err(Interrupt::Suspend(wait)) => wait.await,
            other => panic!("it waits for the row, and not {other:?}"),
        }
    }
}

/// A scan has locked a row that does not match. Another scan of the transaction has asked for that
/// row since, as in a join of a table with itself, and returns it.
#[test]
fn what_another_scan_has_asked_for_is_not_released() {
    for (index, lock) in [
        (BY_ID, RowLock::Exclusive),
        (BY_ID, RowLock::Shared),
        (BY_BALANCE, RowLock::Exclusive),
    ] {
        run(async move |database| {
            let (table, _) = fill(&database).await;
            let mut reader = database.begin(Isolation::ReadCommitted);
            let mut outer = table.scan(ScanOptions {
                lock: RowLock::Exclusive,
                ..all()
            });
            let mut batch = RowBatch::new(table.layout().clone());
            let fetch = || outer.fetch(&mut *reader.txn, 10, &mut batch);
            until_done(fetch).await.expect("rows");
            assert_eq!(batch.len(), 3);
            let found = reader.scan(&table, point(index, 5 * key_of_first(index), lock));
            assert_eq!(found.await.expect("a row").len(), 1);
            for row in [1, 2] {
                outer.release(&mut *reader.txn, row);
            }
            let mut other = database.begin(Isolation::ReadCommitted);
            let held = other.scan(&table, impatient(BY_ID, 5)).await;
            assert_eq!(held, Err(StoreError::LockNotAvailable), "{index} {lock:?}");
            let free = other.scan(&table, impatient(BY_ID, 9)).await;
            assert_eq!(free.expect("a row").len(), 1);
        });
    }
}

/// The cursor of a kept plan is used by one transaction after the other, beside other scans.
#[test]
fn a_cursor_releases_rows_for_each_of_its_transactions() {
    run(async move |database| {
        let (table, _) = fill(&database).await;
        let mut kept = table.scan(ScanOptions {
            lock: RowLock::Exclusive,
            ..all()
        });
        let all_rows = [KeyRange {
            lower: KeyBound::Open,
            upper: KeyBound::Open,
        }];
        for _ in 0..3 {
            let mut reader = database.begin(Isolation::ReadCommitted);
            let mut own = table.scan(point(BY_ID, 1, RowLock::Exclusive));
            let mut one = RowBatch::new(table.layout().clone());
            let fetch = || own.fetch(&mut *reader.txn, 10, &mut one);
            until_done(fetch).await.expect("a row");
            kept.seek(&all_rows);
            let mut batch = RowBatch::new(table.layout().clone());
            let fetch = || kept.fetch(&mut *reader.txn, 10, &mut batch);
            until_done(fetch).await.expect("rows");
            assert_eq!(batch.len(), 3);
            for row in [0, 1] {
                kept.release(&mut *reader.txn, row);
            }
            let mut other = database.begin(Isolation::ReadCommitted);
            for (id, is_free) in [(1, false), (5, true), (9, false)] {
                let read = other.scan(&table, impatient(BY_ID, id)).await;
                assert_eq!(read.is_ok(), is_free, "{id}: {read:?}");
            }
            assert_eq!(other.commit().await, Ok(()));
            assert_eq!(reader.commit().await, Ok(()));
        }
    });
}
