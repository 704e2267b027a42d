//! Tables with more indexes than the pool has frames for their leaves. Each change of a row, and
//! each undo of one, needs only a few pages at a time and ends.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;

use sim::rows::{Row, Session, all, big, index, table};
use sim::{Database, World, WorldOptions};
use store::{
    Inserted, Interrupt, Isolation, Mutation, RowLock, SchemaStore, StoreError, Table, Uniqueness,
    WaitReason,
};
use value::Value;

/// Columns after the key. Each index has all of them, so its entries are long and fill many leaves.
const COLUMN_COUNT: usize = 8;
/// Secondary indexes, each with a root and leaves: twice the frames of the pool and more.
const INDEX_COUNT: usize = 63;
/// Rows to begin with, and how many of them are changed; they fill some leaves of each index.
const ROW_COUNT: i64 = 60;
const CHANGE_COUNT: usize = 15;
/// Steps of the executor, many times what a test takes: an operation that repeats for ever exceeds
/// them.
const STEPS_MAX: u64 = 400_000;

fn wide(uniqueness: Uniqueness) -> store::TableDefinition {
    let mut columns = vec![big("id")];
    columns.extend((0..COLUMN_COUNT).map(|number| big(&format!("c{number}"))));
    let mut indexes = vec![index("PRIMARY", Uniqueness::Primary, &[0])];
    indexes.extend((0..INDEX_COUNT).map(|number| {
        let rotate = |column: usize| 1 + (column + number) % COLUMN_COUNT;
        let parts: Vec<_> = (0..COLUMN_COUNT).map(rotate).collect();
        index(&format!("i{number}"), uniqueness, &parts)
    }));
    table("wide", columns, indexes)
}

/// A row whose columns are far from those of its neighbours.
fn row(id: i64, generation: i64) -> Vec<Value> {
    let mix =
        |column: i64| (id * 31 + column * 17 + generation * 7).wrapping_mul(0x9e37_79b9) % 9973;
    let mut values = vec![Value::Int(id)];
    values.extend(
        (0..)
            .take(COLUMN_COUNT)
            .map(|column| Value::Int(mix(column))),
    );
    values
}

async fn fill(database: &Database, table: &Rc<dyn Table>, count: i64) -> Vec<Row> {
    for id in 0..count {
        let mut txn = database.begin(Isolation::RepeatableRead);
        let done = txn.insert(table, &row(id, 0)).await;
        assert_eq!(done, Ok(Inserted::Done));
        assert_eq!(txn.commit().await, Ok(()));
    }
    let mut txn = database.begin(Isolation::RepeatableRead);
    let rows = txn.scan(table, all()).await;
    rows.expect("what was written can be read")
}

/// Changes, removes and adds rows; everything is left open.
async fn change(session: &mut Session, table: &Rc<dyn Table>, rows: &[Row]) {
    for (number, (key, old)) in (0..).zip(rows) {
        let done = if number % 3 == 0 {
            session.delete(table, key).await
        } else {
            let id = sim::rows::integer(&old[0]);
            session.update(table, key, &row(id, 1)).await
        };
        assert_eq!(done, Ok(Mutation::Done));
        let done = session.insert(table, &row(1000 + number, 2)).await;
        assert_eq!(done, Ok(Inserted::Done));
    }
}

async fn check(database: &Database, rows: &[Row]) {
    let mut fresh = database.begin(Isolation::RepeatableRead);
    let table = database.table("wide");
    assert_eq!(fresh.scan(&table, all()).await.as_deref(), Ok(rows));
    drop(fresh);
    let report = database.check().await.expect("everything can be read");
    assert_eq!(report.faults, Vec::<String>::new());
}

/// Runs to the end, or fails if there is none.
fn run(world: &World, work: impl Future<Output = ()> + 'static) {
    let done = Rc::new(std::cell::Cell::new(false));
    let noting = Rc::clone(&done);
    world.executor.spawn(async move {
        work.await;
        noting.set(true);
    });
    let mut steps = 0;
    while !done.get() {
        assert!(steps < STEPS_MAX, "it comes to an end");
        world.executor.run_steps(10_000);
        steps += 10_000;
    }
}

/// A database with a table of rows, most of whose pages are not in memory.
async fn open_filled(world: &World, uniqueness: Uniqueness) -> (Database, Rc<dyn Table>, Vec<Row>) {
    let database = world.open().await.expect("a new directory is made");
    let definition = wide(uniqueness);
    let made = database.engine.create_table(definition).await;
    assert!(made.is_ok(), "{made:?}");
    let wide = database.table("wide");
    let rows = fill(&database, &wide, ROW_COUNT).await;
    (database, wide, rows)
}

#[test]
fn a_rollback_needs_few_pages_at_a_time() {
    let world = World::new(21, WorldOptions::default());
    let inner = world.clone();
    run(&world, async move {
        let (database, wide, rows) = open_filled(&inner, Uniqueness::None).await;
        let mut txn = database.begin(Isolation::RepeatableRead);
        change(&mut txn, &wide, &rows[..CHANGE_COUNT]).await;
        assert_eq!(txn.rollback().await, Ok(()));
        check(&database, &rows).await;
    });
}

/// Dropped work is undone in the background, or by recovery, wherever a crash comes.
#[test]
fn a_rollback_comes_to_its_end_across_crashes() {
    let world = World::new(22, WorldOptions::default());
    let inner = world.clone();
    let kept: Rc<RefCell<Vec<Row>>> = Rc::default();
    let (keeping, left) = (Rc::clone(&kept), Rc::new(RefCell::new(None)));
    let leaving = Rc::clone(&left);
    run(&world, async move {
        let (database, wide, rows) = open_filled(&inner, Uniqueness::None).await;
        let mut txn = database.begin(Isolation::RepeatableRead);
        change(&mut txn, &wide, &rows[..CHANGE_COUNT]).await;
        // The log of the open transaction is durable together with what follows it.
        let mut other = database.begin(Isolation::RepeatableRead);
        let added = row(500, 3);
        assert_eq!(other.insert(&wide, &added).await, Ok(Inserted::Done));
        assert_eq!(other.commit().await, Ok(()));
        let (mut rows, rows_before) = (rows.clone(), rows.len());
        let mut fresh = database.begin(Isolation::RepeatableRead);
        let seen = fresh.scan(&wide, all()).await.unwrap();
        rows.extend(seen.into_iter().filter(|(_, values)| *values == added));
        assert_eq!(rows.len(), rows_before + 1);
        keeping.replace(rows);
        leaving.replace(Some(txn));
    });
    drop(left.take());
    world.executor.run_steps(2_000);
    let mut world = world;
    for steps in [1_500, 4_000, 500] {
        world = world.crash();
        let opening = world.clone();
        world.executor.spawn(async move {
            opening.open().await.unwrap();
        });
        world.executor.run_steps(steps);
    }
    let world = world.crash();
    let inner = world.clone();
    run(&world, async move {
        let database = inner.open().await.unwrap();
        let rows = kept.take();
        check(&database, &rows).await;
    });
}

/// The checks of unique indexes are steps like the changes that follow them.
#[test]
fn a_row_of_many_unique_indexes_is_changed() {
    let world = World::new(23, WorldOptions::default());
    let inner = world.clone();
    run(&world, async move {
        let (database, wide, rows) = open_filled(&inner, Uniqueness::Unique).await;
        let mut txn = database.begin(Isolation::RepeatableRead);
        change(&mut txn, &wide, &rows[..4]).await;
        let mut moved = rows[7].1.clone();
        moved[0] = Value::Int(700);
        let done = txn.update(&wide, &rows[7].0, &moved).await;
        assert_eq!(done, Ok(Mutation::Done));
        let again = txn.insert(&wide, &rows[8].1).await.unwrap();
        assert!(matches!(again, Inserted::Duplicate { index: 0, .. }));
        let mut double = rows[9].1.clone();
        double[0] = Value::Int(701);
        let again = txn.insert(&wide, &double).await.unwrap();
        assert!(matches!(again, Inserted::Duplicate { index: 1, .. }));
        assert_eq!(txn.rollback().await, Ok(()));
        check(&database, &rows).await;
    });
}

/// A row that is too large for a full disk is undone and the statement fails, although the undo
/// waits for pages: the insert does not begin again.
#[test]
fn a_row_that_is_too_large_for_a_full_disk_is_refused() {
    let world = World::new(24, WorldOptions::default());
    let inner = world.clone();
    run(&world, async move {
        let database = inner.open().await.unwrap();
        let definition = sim::rows::accounts();
        database.engine.create_table(definition).await.unwrap();
        let accounts = database.table("accounts");
        inner
            .disk
            .set_capacity(inner.disk.used_bytes() + (600 << 10));
        let mut txn = database.begin(Isolation::RepeatableRead);
        let large = sim::rows::row(1, 1, &"x".repeat(1 << 20));
        let row: Vec<_> = large.iter().map(Value::as_ref).collect();
        let mut waits = 0;
        let refused = loop {
            match accounts.insert(&mut *txn.txn, &row, RowLock::Shared) {
                Ok(done) => panic!("there is no room: {done:?}"),
                Err(Interrupt::Error(error)) => break error,
                Err(Interrupt::Suspend(suspend)) => {
                    waits += 1;
                    suspend.await;
                }
            }
        };
        assert_eq!(refused, StoreError::DiskFull);
        assert!(waits < 500, "it was written once: {waits}");
        let small = sim::rows::row(2, 2, "");
        assert_eq!(txn.insert(&accounts, &small).await, Ok(Inserted::Done));
        assert_eq!(txn.commit().await, Ok(()));
        let report = database.check().await.unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
    });
}

/// A statement is killed when its wait for a growth has failed. The next one asks the disk itself.
#[test]
fn a_killed_statement_leaves_no_error_to_the_next() {
    let world = World::new(25, WorldOptions::default());
    let inner = world.clone();
    run(&world, async move {
        let database = inner.open().await.unwrap();
        let definition = sim::rows::accounts();
        database.engine.create_table(definition).await.unwrap();
        let accounts = database.table("accounts");
        inner.disk.set_capacity(inner.disk.used_bytes());
        let mut txn = database.begin(Isolation::RepeatableRead);
        let large = sim::rows::row(1, 1, &"x".repeat(1 << 20));
        let row: Vec<_> = large.iter().map(Value::as_ref).collect();
        loop {
            let Err(Interrupt::Suspend(suspend)) =
                accounts.insert(&mut *txn.txn, &row, RowLock::Shared)
            else {
                panic!("there is no room");
            };
            let reason = suspend.reason();
            suspend.await;
            if reason == WaitReason::Growth {
                break;
            }
        }
        inner.disk.set_capacity(u64::MAX);
        txn.txn.begin_statement();
        assert_eq!(txn.insert(&accounts, &large).await, Ok(Inserted::Done));
        assert_eq!(txn.commit().await, Ok(()));
    });
}

/// What sessions have left at the end is undone after the background work, and needs clean pages.
#[test]
fn what_is_left_at_the_end_is_undone() {
    let world = World::new(25, WorldOptions::default());
    let inner = world.clone();
    let kept: Rc<RefCell<Vec<Row>>> = Rc::default();
    let keeping = Rc::clone(&kept);
    run(&world, async move {
        let (database, wide, rows) = open_filled(&inner, Uniqueness::None).await;
        let mut txn = database.begin(Isolation::RepeatableRead);
        change(&mut txn, &wide, &rows[..CHANGE_COUNT]).await;
        drop(txn);
        assert_eq!(database.close().await, Ok(()));
        keeping.replace(rows);
    });
    let world = world.crash();
    let inner = world.clone();
    run(&world, async move {
        let database = inner.open().await.unwrap();
        check(&database, &kept.take()).await;
    });
}
