//! Locking reads that wait, and what they find when they continue.

#![forbid(unsafe_code)]

use std::rc::Rc;

use env::Clock;
use sim::rows::{Row, Session, accounts, all, index, integer, row, until_done};
use sim::{Database, World, WorldOptions};
use store::{
    Cursor, Fetched, Hold, Inserted, Interrupt, Isolation, KeyBound, KeyRange, LockWait, Mutation,
    RowBatch, RowLock, ScanOptions, SchemaStore, StoreError, Table, Uniqueness, WaitReason,
};
use value::Value;

/// Accounts 1, 2, 4, 5, 7 with balances of ten times that, and the rows as they are found. The
/// second index, if any, is of balances, unique or not.
async fn fill(database: &Database, balances: Option<Uniqueness>) -> (Rc<dyn Table>, Vec<Row>) {
    let mut definition = accounts();
    if let Some(uniqueness) = balances {
        let by_balance = index("by_balance", uniqueness, &[1]);
        definition.indexes.push(by_balance);
    }
    let created = database.engine.create_table(definition).await;
    created.expect("a new table");
    let table = database.table("accounts");
    let mut txn = database.begin(Isolation::ReadCommitted);
    for id in [1, 2, 4, 5, 7] {
        let done = txn.insert(&table, &row(id, id * 10, "")).await;
        assert_eq!(done, Ok(Inserted::Done));
    }
    assert_eq!(txn.commit().await, Ok(()));
    let mut txn = database.begin(Isolation::ReadCommitted);
    let rows = txn.scan(&table, all()).await.expect("rows");
    (table, rows)
}

/// A locking scan of one of the table's indexes.
struct Scan {
    session: Session,
    cursor: Box<dyn Cursor>,
    batch: RowBatch,
}

impl Scan {
    fn new(database: &Database, table: &Rc<dyn Table>, index: usize) -> Self {
        let options = ScanOptions {
            index: Some(index),
            lock: RowLock::Exclusive,
            ..all()
        };
        Self {
            session: database.begin(Isolation::ReadCommitted),
            cursor: table.scan(options),
            batch: RowBatch::new(table.layout().clone()),
        }
    }

    /// Continues until it must wait for a lock.
    async fn wait(&mut self) -> store::Suspend {
        loop {
            match self
                .cursor
                .fetch(&mut *self.session.txn, 100, &mut self.batch)
            {
                Err(Interrupt::Suspend(suspend)) if suspend.reason() == WaitReason::RowLock => {
                    return suspend;
                }
                Err(Interrupt::Suspend(suspend)) => suspend.await,
                other => panic!("it waits, and not {other:?}"),
            }
        }
    }

    /// Continues to the end. Returns all ids that it has found.
    async fn finish(mut self) -> Vec<i64> {
        loop {
            let (cursor, txn, batch) = (&mut self.cursor, &mut self.session.txn, &mut self.batch);
            let fetched = until_done(|| cursor.fetch(&mut **txn, 100, batch)).await;
            if fetched.expect("no error") == Fetched::End {
                let ids = (0..self.batch.len()).map(|number| {
                    let id = self.batch.column(number, 0).expect("a whole row");
                    integer(&id.to_value())
                });
                return ids.collect();
            }
        }
    }
}

fn run<F: Future<Output = ()> + 'static>(test: impl FnOnce(Database, World) -> F + 'static) {
    let world = World::new(20, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("a new directory opens");
        test(database, inner).await;
    });
}

/// Purge has removed an entry that one has locked and another waits for. When the first one ends,
/// the waiter has the lock. So nobody puts the entry back before the waiter has looked: else it
/// would read an uncommitted row.
#[test]
fn an_entry_that_is_waited_for_is_not_put_back() {
    run(async |database, _| {
        let (table, _) = fill(&database, Some(Uniqueness::None)).await;
        let new = row(9, 77, "");
        let values: Vec<_> = new.iter().map(Value::as_ref).collect();
        let mut writer = database.begin(Isolation::ReadCommitted);
        assert_eq!(writer.insert(&table, &new).await, Ok(Inserted::Done));
        assert_eq!(writer.commit().await, Ok(()));
        let mut reader = database.begin(Isolation::RepeatableRead);
        let rows = reader.scan(&table, all()).await.expect("rows");
        let (key, _) = rows.last().expect("the new one");
        assert_eq!(writer.delete(&table, key).await, Ok(Mutation::Done));
        assert_eq!(writer.commit().await, Ok(()));
        let by_balance = || ScanOptions {
            range: KeyRange::equal(vec![Value::Int(77)]),
            index: Some(1),
            lock: RowLock::Exclusive,
            ..all()
        };
        let mut holder = database.begin(Isolation::RepeatableRead);
        assert_eq!(holder.scan(&table, by_balance()).await, Ok(Vec::new()));
        let mut waiter = database.begin(Isolation::RepeatableRead);
        let mut cursor = table.scan(by_balance());
        let mut batch = RowBatch::new(table.layout().clone());
        let fetched = cursor.fetch(&mut *waiter.txn, 10, &mut batch);
        assert!(matches!(fetched, Err(Interrupt::Suspend(_))));
        assert_eq!(reader.commit().await, Ok(()));
        assert_eq!(database.engine.purge_all().await, Ok(()));
        let mut insert = || table.insert(&mut *writer.txn, &values, RowLock::Shared);
        for is_over in [false, true] {
            loop {
                match insert() {
                    Err(Interrupt::Suspend(wait)) if wait.reason() == WaitReason::RowLock => break,
                    Err(Interrupt::Suspend(wait)) => wait.await,
                    other => panic!("it waits for the entry ({is_over}), and not {other:?}"),
                }
            }
            if !is_over {
                assert_eq!(holder.commit().await, Ok(()));
            }
        }
        let fetch = || cursor.fetch(&mut *waiter.txn, 10, &mut batch);
        assert_eq!(until_done(fetch).await, Ok(Fetched::End));
        assert_eq!(batch.len(), 0);
        assert_eq!(waiter.commit().await, Ok(()));
        assert_eq!(until_done(insert).await, Ok(Inserted::Done));
    });
}

/// A scan gives way in the middle of a fetch, and meets a row that another has locked when it is
/// called again. It returns what it has found before, and then that row alone.
#[test]
fn rows_from_before_a_turn_come_before_a_locked_row() {
    const ROW_COUNT: i64 = 2000;
    run(async |database, _| {
        let created = database.engine.create_table(accounts()).await;
        created.expect("a new table");
        let table = database.table("accounts");
        let mut txn = database.begin(Isolation::ReadCommitted);
        for id in 0..ROW_COUNT {
            let inserted = txn.insert(&table, &row(id, 0, "")).await;
            assert_eq!(inserted, Ok(Inserted::Done));
        }
        assert_eq!(txn.commit().await, Ok(()));
        // Rows are deleted behind the first one, and a snapshot keeps them from purge.
        let mut reader = database.begin(Isolation::RepeatableRead);
        let rows = reader.scan(&table, all()).await.expect("rows");
        let [_, deleted @ .., (last, _)] = rows.as_slice() else {
            panic!("there are rows");
        };
        for (key, _) in deleted {
            assert_eq!(txn.delete(&table, key).await, Ok(Mutation::Done));
        }
        assert_eq!(txn.commit().await, Ok(()));
        let changed = txn.update(&table, last, &row(ROW_COUNT - 1, 1, "")).await;
        assert_eq!(changed, Ok(Mutation::Done));
        let mut other = database.begin(Isolation::ReadCommitted);
        let mut cursor = table.scan(semi_consistent());
        let mut batch = RowBatch::new(table.layout().clone());
        let fetch = || cursor.fetch(&mut *other.txn, usize::MAX, &mut batch);
        let (fetched, turns) = sim::rows::count_turns(fetch).await.expect("rows");
        assert_eq!(fetched, Fetched::More);
        assert!(0 < turns, "it gives way");
        assert_eq!((batch.len(), batch.hold()), (1, Hold::AsAsked));
        batch.clear();
        let fetch = || cursor.fetch(&mut *other.txn, usize::MAX, &mut batch);
        assert_eq!(until_done(fetch).await, Ok(Fetched::More));
        assert_eq!((batch.len(), batch.hold()), (1, Hold::Committed));
    });
}

/// A range ends before the last row, which is waited for, and is gone behind the wait. What the
/// scan was granted for that row's key ends with the scan. It would be taken for a lock of the row
/// that its transaction inserts there later, and end with that insert.
#[test]
fn a_row_that_ends_a_range_and_is_then_inserted_stays_locked() {
    run(async |database, _| {
        let (table, _) = fill(&database, None).await;
        let locking = |range| ScanOptions {
            range,
            index: Some(0),
            lock: RowLock::Exclusive,
            ..all()
        };
        let bound = |id| KeyBound::Inclusive(vec![Value::Int(id)]);
        let mut first = database.begin(Isolation::ReadCommitted);
        let inserted = first.insert(&table, &row(8, 80, "")).await;
        assert_eq!(inserted, Ok(Inserted::Done));
        let mut second = database.begin(Isolation::ReadCommitted);
        let mut third = database.begin(Isolation::ReadCommitted);
        let mut range = table.scan(locking(KeyRange {
            lower: bound(1),
            upper: bound(7),
        }));
        let mut rows = RowBatch::new(table.layout().clone());
        loop {
            match range.fetch(&mut *second.txn, 10, &mut rows) {
                Ok(Fetched::More) => rows.clear(),
                Err(Interrupt::Suspend(_)) => break,
                other => panic!("it waits for what ends the range, and not {other:?}"),
            }
        }
        let last = || locking(KeyRange::equal(vec![Value::Int(8)]));
        let mut scan = table.scan(last());
        let mut found = RowBatch::new(table.layout().clone());
        let fetched = scan.fetch(&mut *third.txn, 10, &mut found);
        assert!(matches!(fetched, Err(Interrupt::Suspend(_))));
        assert_eq!(first.rollback().await, Ok(()));
        let fetch = || range.fetch(&mut *second.txn, 10, &mut rows);
        assert_eq!(until_done(fetch).await, Ok(Fetched::End));
        // It was the third one's turn.
        let values = row(8, 81, "");
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let mut insert = || table.insert(&mut *second.txn, &values, RowLock::Exclusive);
        assert!(matches!(insert(), Err(Interrupt::Suspend(_))));
        let fetch = || scan.fetch(&mut *third.txn, 10, &mut found);
        assert_eq!(until_done(fetch).await, Ok(Fetched::End));
        assert_eq!(until_done(insert).await, Ok(Inserted::Done));
        let refused = third.scan(&table, last()).await;
        assert_eq!(refused, Err(StoreError::LockWaitTimeout));
    });
}

/// An insert waits for a row that is gone behind the wait. A later scan of its transaction releases
/// a row that does not match, and its own locks alone. Else the next waiter would get a row whose
/// writer has not ended.
#[test]
fn a_row_that_was_waited_for_and_then_inserted_stays_locked() {
    run(async |database, _| {
        let (table, _) = fill(&database, None).await;
        let by_id = |id: i64| ScanOptions {
            range: KeyRange::equal(vec![Value::Int(id)]),
            index: Some(0),
            lock: RowLock::Exclusive,
            ..all()
        };
        let mut first = database.begin(Isolation::ReadCommitted);
        let inserted = first.insert(&table, &row(3, 30, "")).await;
        assert_eq!(inserted, Ok(Inserted::Done));
        let mut waiters = [
            database.begin(Isolation::ReadCommitted),
            database.begin(Isolation::ReadCommitted),
        ];
        let [second, third] = &mut waiters;
        let values = row(3, 31, "");
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let mut insert = || table.insert(&mut *second.txn, &values, RowLock::Exclusive);
        assert!(matches!(insert(), Err(Interrupt::Suspend(_))));
        let mut scan = table.scan(by_id(3));
        let mut found = RowBatch::new(table.layout().clone());
        let fetched = scan.fetch(&mut *third.txn, 10, &mut found);
        assert!(matches!(fetched, Err(Interrupt::Suspend(_))));
        assert_eq!(first.rollback().await, Ok(()));
        assert_eq!(until_done(insert).await, Ok(Inserted::Done));
        let mut own = table.scan(by_id(1));
        let mut batch = RowBatch::new(table.layout().clone());
        let fetch = || own.fetch(&mut *second.txn, 10, &mut batch);
        assert!(until_done(fetch).await.is_ok());
        own.release(&mut *second.txn, 0);
        // The third one waits until the second one ends.
        let fetch = || scan.fetch(&mut *third.txn, 10, &mut found);
        let refused = until_done(fetch).await;
        assert_eq!(refused, Err(StoreError::LockWaitTimeout));
    });
}

/// An entry that a writer has deleted, and has put back before it ends.
#[test]
fn a_row_that_comes_back_is_found() {
    for (uniqueness, is_moved) in [
        (Uniqueness::Unique, false),
        (Uniqueness::Unique, true),
        (Uniqueness::None, false),
        (Uniqueness::None, true),
    ] {
        run(async move |database, _| {
            let (table, rows) = fill(&database, Some(uniqueness)).await;
            let mut writer = database.begin(Isolation::ReadCommitted);
            let done = if is_moved {
                writer.update(&table, &rows[0].0, &row(1, 15, "")).await
            } else {
                writer.delete(&table, &rows[0].0).await
            };
            assert_eq!(done, Ok(Mutation::Done));
            let mut scan = Scan::new(&database, &table, 1);
            let wait = scan.wait().await;
            writer.rollback().await.expect("an end");
            wait.await;
            assert_eq!(scan.finish().await, [1, 2, 4, 5, 7]);
        });
    }
}

/// Rows that move ahead of a waiting scan are found at their new places.
#[test]
fn a_scan_goes_on_among_the_rows_that_are_there() {
    for number in [0, 1] {
        run(async move |database, _| {
            let (table, rows) = fill(&database, Some(Uniqueness::None)).await;
            let mut writer = database.begin(Isolation::ReadCommitted);
            let done = writer.update(&table, &rows[0].0, &row(1, 10, "x")).await;
            assert_eq!(done, Ok(Mutation::Done));
            let mut scan = Scan::new(&database, &table, number);
            let wait = scan.wait().await;
            let moved = writer.update(&table, &rows[4].0, &row(6, 60, "")).await;
            assert_eq!(moved, Ok(Mutation::Done));
            let gone = writer.delete(&table, &rows[2].0).await;
            assert_eq!(gone, Ok(Mutation::Done));
            let added = writer.insert(&table, &row(3, 30, "")).await;
            assert_eq!(added, Ok(Inserted::Done));
            writer.commit().await.expect("an end");
            wait.await;
            assert_eq!(scan.finish().await, [1, 2, 3, 5, 6]);
        });
    }
}

/// The wait for the row that has a key of a unique index times out, although the repeated operation
/// locks the key itself first.
#[test]
fn a_wait_in_the_check_of_a_unique_key_ends_in_time() {
    run(async move |database, world| {
        let (table, rows) = fill(&database, Some(Uniqueness::Unique)).await;
        let mut holder = database.begin(Isolation::ReadCommitted);
        let done = holder.delete(&table, &rows[3].0).await;
        assert_eq!(done, Ok(Mutation::Done));
        let clock = world.executor.clock();
        let begun = clock.now();
        let mut waiter = database.begin(Isolation::ReadCommitted);
        let added = waiter.insert(&table, &row(6, 50, "")).await;
        assert_eq!(added, Err(StoreError::LockWaitTimeout));
        let changed = waiter.update(&table, &rows[0].0, &row(1, 50, "")).await;
        assert_eq!(changed, Err(StoreError::LockWaitTimeout));
        let waited_ns = clock.now().nanos() - begun.nanos();
        let limit_ns = 5_000_000_000;
        assert!(
            (2 * limit_ns..3 * limit_ns).contains(&waited_ns),
            "{waited_ns}"
        );
        holder.rollback().await.expect("an end");
        let Value::Int(balance) = rows[3].1[1] else {
            panic!("a balance is a number")
        };
        let added = waiter.insert(&table, &row(6, balance, "")).await;
        assert!(matches!(added, Ok(Inserted::Duplicate { index: 1, .. })));
    });
}

/// Two share a row that the first one changes then. The scan of the other, which waits for it, is
/// the victim, although it finds that its leaf has changed and would look again.
#[test]
fn a_waiting_scan_that_is_a_victim_fails_although_its_leaf_has_changed() {
    run(async move |database, _| {
        let (table, rows) = fill(&database, None).await;
        let mut holder = database.begin(Isolation::ReadCommitted);
        let done = holder.update(&table, &rows[4].0, &row(7, 1, "")).await;
        assert_eq!(done, Ok(Mutation::Done));
        let first = ScanOptions {
            lock: RowLock::Shared,
            ..all()
        };
        let found = holder.scan(&table, first).await.expect("rows");
        assert_eq!(found.len(), 5);
        let mut scan = Scan::new(&database, &table, 0);
        let wait = scan.wait().await;
        let gone = holder.delete(&table, &rows[0].0).await;
        assert_eq!(gone, Ok(Mutation::Done));
        wait.await;
        let (cursor, txn, batch) = (&mut scan.cursor, &mut scan.session.txn, &mut scan.batch);
        let fetched = until_done(|| cursor.fetch(&mut **txn, 100, batch)).await;
        assert_eq!(fetched, Err(StoreError::Deadlock));
        scan.session.rollback().await.expect("an end");
        holder.commit().await.expect("an end");
    });
}

/// A row that was inserted is taken back, and its transaction goes on. Whoever waits for the row
/// does not wait for the transaction's end.
#[test]
fn a_scan_goes_on_when_the_row_that_it_waits_for_is_taken_back() {
    for number in [0, 1] {
        run(async move |database, _| {
            let (table, _) = fill(&database, Some(Uniqueness::None)).await;
            let mut writer = database.begin(Isolation::ReadCommitted);
            let place = writer.txn.mark();
            let added = writer.insert(&table, &row(0, 5, "")).await;
            assert_eq!(added, Ok(Inserted::Done));
            let mut scan = Scan::new(&database, &table, number);
            let wait = scan.wait().await;
            let undone = until_done(|| writer.txn.rollback_to(place)).await;
            assert_eq!(undone, Ok(()));
            wait.await;
            assert_eq!(scan.finish().await, [1, 2, 4, 5, 7]);
            writer.rollback().await.expect("an end");
        });
    }
}

/// A scan for a change, which tests rows that others have locked as they were committed last.
fn semi_consistent() -> ScanOptions {
    ScanOptions {
        index: Some(0),
        lock: RowLock::Change,
        wait: LockWait::SemiConsistent,
        ..all()
    }
}

/// Another has changed a large row, whose committed version is read from disk. After that wait,
/// too, the row counts as one that is not locked.
#[test]
fn a_large_row_that_is_busy_is_not_taken_for_a_locked_one() {
    run(async |database, _| {
        let (table, rows) = fill(&database, None).await;
        let mut writer = database.begin(Isolation::ReadCommitted);
        let large = "x".repeat(20_000);
        let done = writer.update(&table, &rows[0].0, &row(1, 11, &large)).await;
        assert_eq!(done, Ok(Mutation::Done));
        assert_eq!(writer.commit().await, Ok(()));
        let done = writer.update(&table, &rows[0].0, &row(1, 12, "")).await;
        assert_eq!(done, Ok(Mutation::Done));
        // More than there are frames: the large row's pages are not in memory.
        let mut other = database.begin(Isolation::ReadCommitted);
        for id in 100..400 {
            let done = other.insert(&table, &row(id, 0, &"y".repeat(1000))).await;
            assert_eq!(done, Ok(Inserted::Done));
        }
        assert_eq!(other.commit().await, Ok(()));
        let mut changer = database.begin(Isolation::ReadCommitted);
        let mut cursor = table.scan(semi_consistent());
        let mut batch = RowBatch::new(table.layout().clone());
        let mut wait_count = 0;
        loop {
            match cursor.fetch(&mut *changer.txn, 10, &mut batch) {
                Err(Interrupt::Suspend(wait)) => wait.await,
                fetched => break assert!(matches!(fetched, Ok(Fetched::More))),
            }
            wait_count += 1;
        }
        assert!(1 < wait_count, "the leaf and the pages of the row are read");
        assert_eq!((batch.len(), batch.hold()), (1, Hold::Committed));
        let balance = batch.column(0, 1).expect("a whole row");
        assert_eq!(balance, Value::Int(11).as_ref());
    });
}

/// A change tests a row as it was before more changes of an open transaction than the pool has
/// pages for their undo. Meanwhile the row's leaf changes with each wait.
#[test]
fn a_long_way_back_to_what_is_committed_gives_way_and_ends() {
    const CHANGE_COUNT: usize = 1500;
    run(async |database, _| {
        let (table, rows) = fill(&database, None).await;
        let mut writer = database.begin(Isolation::ReadCommitted);
        for note in ["y", "z"].iter().cycle().take(CHANGE_COUNT) {
            let changed = row(1, 11, &note.repeat(500));
            let done = writer.update(&table, &rows[0].0, &changed).await;
            assert_eq!(done, Ok(Mutation::Done));
        }
        let mut changer = database.begin(Isolation::ReadCommitted);
        let mut cursor = table.scan(semi_consistent());
        let mut batch = RowBatch::new(table.layout().clone());
        let (mut wait_count, mut turn_count) = (0, 0);
        loop {
            match cursor.fetch(&mut *changer.txn, 10, &mut batch) {
                Err(Interrupt::Suspend(wait)) => {
                    turn_count += usize::from(wait.reason() == WaitReason::Turn);
                    wait.await;
                }
                fetched => break assert!(matches!(fetched, Ok(Fetched::More))),
            }
            wait_count += 1;
            assert!(wait_count < CHANGE_COUNT, "each page is read once");
            let mut other = database.begin(Isolation::ReadCommitted);
            let changed = row(7, i64::try_from(wait_count).expect("a few"), "");
            let done = other.update(&table, &rows[4].0, &changed).await;
            assert_eq!(done, Ok(Mutation::Done));
            assert_eq!(other.commit().await, Ok(()));
        }
        assert!(4 < turn_count, "it gave way {turn_count} times");
        assert!(50 < wait_count - turn_count, "{wait_count} waits");
        assert_eq!((batch.len(), batch.hold()), (1, Hold::Committed));
        let balance = batch.column(0, 1).expect("a whole row");
        assert_eq!(balance, Value::Int(10).as_ref());
    });
}
