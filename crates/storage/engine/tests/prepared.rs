//! Prepared transactions: kept over crashes, decided by another, and locked until then.

#![forbid(unsafe_code)]

use std::rc::Rc;

use env::sim::{Faults, poll_at_most};
use sim::rows::{Row, Session, accounts, all, row, until_done};
use sim::{Database, World, WorldOptions};
use store::{
    Durability, Isolation, LeftPrepared, Prepared, SchemaStore, Store, StoreError, Table,
    TransactionOptions, Xid,
};
use value::Value;

const ROW_COUNT: i64 = 8;

fn xid(global: &str) -> Xid {
    Xid::new(1, global.as_bytes(), b"branch").expect("it is short")
}

async fn fill(database: &Database) -> (Rc<dyn Table>, Vec<Row>) {
    database
        .engine
        .create_table(accounts())
        .await
        .expect("the store works");
    let table = database.table("accounts");
    let mut txn = database.begin(Isolation::RepeatableRead);
    for id in 0..ROW_COUNT {
        txn.insert(&table, &row(id, 0, "old"))
            .await
            .expect("the store works");
    }
    txn.commit().await.expect("the store works");
    let rows = txn.scan(&table, all()).await.expect("the store works");
    txn.commit().await.expect("the store works");
    (table, rows)
}

/// Changes a row, removes the next one, and inserts another.
async fn change(session: &mut Session, table: &Rc<dyn Table>, rows: &[Row]) {
    let changed = row(0, 7, "new");
    session
        .update(table, &rows[0].0, &changed)
        .await
        .expect("the store works");
    session
        .delete(table, &rows[1].0)
        .await
        .expect("the store works");
    let added = row(ROW_COUNT, 9, "added");
    session
        .insert(table, &added)
        .await
        .expect("the store works");
}

async fn prepare(session: &mut Session, name: &str) -> Result<Prepared, StoreError> {
    let xid = xid(name);
    until_done(|| session.txn.prepare_as(&xid, Durability::Durable)).await
}

/// What a fresh transaction sees: the number of rows, and the first balance.
async fn seen(database: &Database, table: &Rc<dyn Table>) -> (usize, i64) {
    let mut reader = database.begin(Isolation::RepeatableRead);
    let rows = reader.scan(table, all()).await.expect("the store works");
    (rows.len(), sim::rows::integer(&rows[0].1[1]))
}

const BEFORE: (usize, i64) = (8, 0);
const AFTER: (usize, i64) = (8, 7);

/// The balances of all rows, which tell the deleted one and the added one apart.
async fn ids(database: &Database, table: &Rc<dyn Table>) -> Vec<Value> {
    let mut reader = database.begin(Isolation::RepeatableRead);
    let rows = reader.scan(table, all()).await.expect("the store works");
    rows.into_iter().map(|(_, row)| row[0].clone()).collect()
}

async fn update_fails(database: &Database, table: &Rc<dyn Table>, key: &[u8]) {
    let mut other = Session {
        txn: database.engine.begin(TransactionOptions {
            isolation: Isolation::RepeatableRead,
            read_only: false,
            lock_wait_timeout_s: 1,
            client: store::ClientId::NONE,
        }),
    };
    let refused = other.update(table, key, &row(0, 1, "other")).await;
    assert_eq!(refused.err(), Some(StoreError::LockWaitTimeout));
    other.rollback().await.expect("the store works");
}

async fn take(database: &Database, workers: usize) -> Vec<LeftPrepared> {
    let of = |index| database.on(index).engine.take_left_prepared();
    let left: Vec<_> = (0..workers).flat_map(of).collect();
    let again = (0..workers).flat_map(of).count();
    assert_eq!(again, 0, "each is taken once");
    left
}

async fn is_sound(database: &Database) {
    let report = database.check().await.expect("the store works");
    assert_eq!(report.faults, Vec::<String>::new());
}

/// How the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    RollBack,
}

const ENDS: [End; 2] = [End::Commit, End::RollBack];

async fn end(txn: &mut dyn store::Transaction, end: End) {
    let ended = match end {
        End::Commit => until_done(|| txn.commit(Durability::Durable)).await,
        End::RollBack => until_done(|| txn.rollback()).await,
    };
    assert_eq!(ended, Ok(()));
}

async fn is_ended(database: &Database, table: &Rc<dyn Table>, end: End) {
    let expected = if end == End::Commit { AFTER } else { BEFORE };
    assert_eq!(seen(database, table).await, expected);
    let gone = Value::Int(if end == End::Commit { 1 } else { ROW_COUNT });
    assert!(!ids(database, table).await.contains(&gone), "{end:?}");
}

#[test]
fn who_prepares_ends_the_transaction() {
    for how in ENDS {
        let world = World::new(31, WorldOptions::default());
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            let (table, rows) = fill(&database).await;
            let mut session = database.begin(Isolation::RepeatableRead);
            change(&mut session, &table, &rows).await;
            assert_eq!(prepare(&mut session, "a").await, Ok(Prepared::Ready));
            assert_eq!(prepare(&mut session, "a").await, Ok(Prepared::Ready));
            assert_eq!(seen(&database, &table).await, BEFORE);
            update_fails(&database, &table, &rows[0].0).await;
            end(&mut *session.txn, how).await;
            is_ended(&database, &table, how).await;
            let mut next = database.begin(Isolation::RepeatableRead);
            next.delete(&table, &rows[2].0).await.unwrap();
            next.rollback().await.unwrap();
            assert_eq!(take(&database, 1).await.len(), 0);
            is_sound(&database).await;
        });
    }
}

#[test]
fn without_changes_there_is_nothing_to_keep() {
    let world = World::new(32, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let (table, rows) = fill(&database).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        assert_eq!(prepare(&mut session, "a").await, Ok(Prepared::Nothing));
        session.scan(&table, all()).await.unwrap();
        assert_eq!(prepare(&mut session, "a").await, Ok(Prepared::Nothing));
        let mark = session.txn.mark();
        change(&mut session, &table, &rows).await;
        until_done(|| session.txn.rollback_to(mark)).await.unwrap();
        assert_eq!(prepare(&mut session, "a").await, Ok(Prepared::Nothing));
        session.commit().await.unwrap();
    });
}

/// Two crashes, then a decision, then a third one. The number of workers changes, so that the
/// segment's worker is gone. Rows stay locked meanwhile, and purge passes.
#[test]
fn a_prepared_transaction_survives_crashes_until_somebody_decides() {
    for (how, workers) in [(End::Commit, 1), (End::RollBack, 1), (End::Commit, 3)] {
        let options = |worker_count| WorldOptions {
            worker_count,
            ..WorldOptions::default()
        };
        let mut world = World::new(33, options(3));
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            let (table, rows) = fill(&database).await;
            let mut session = database.on(2).begin(Isolation::RepeatableRead);
            let of_worker = database.on(2).table("accounts");
            change(&mut session, &of_worker, &rows).await;
            let mut loser = database.on(1).begin(Isolation::RepeatableRead);
            let of_loser = database.on(1).table("accounts");
            loser.delete(&of_loser, &rows[5].0).await.unwrap();
            assert_eq!(prepare(&mut session, "a").await, Ok(Prepared::Ready));
            assert_eq!(seen(&database, &table).await, BEFORE);
        });
        for _ in 0..2 {
            world = world.crash().with_options(options(workers));
            let inner = world.clone();
            world.run(async move {
                let database = inner.open().await.unwrap();
                let table = database.table("accounts");
                assert_eq!(seen(&database, &table).await, BEFORE);
                let left = take(&database, usize::from(workers)).await;
                assert_eq!(left.len(), 1);
                assert_eq!(left[0].xid, xid("a"));
                assert_eq!(left[0].tables, [table.definition().id]);
                let keys = database.begin(Isolation::RepeatableRead);
                let rows = { keys }.scan(&table, all()).await.unwrap();
                update_fails(&database, &table, &rows[0].0).await;
                // Work that purge has to pass.
                for round in 0..50 {
                    let mut other = database.begin(Isolation::RepeatableRead);
                    let changed = row(4, round, "other");
                    other.update(&table, &rows[4].0, &changed).await.unwrap();
                    other.commit().await.unwrap();
                }
                is_sound(&database).await;
            });
        }
        world = world.crash().with_options(options(workers));
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            let mut left = take(&database, usize::from(workers)).await;
            end(&mut *left[0].transaction, how).await;
        });
        world = world.crash().with_options(options(workers));
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            assert_eq!(take(&database, usize::from(workers)).await.len(), 0);
            let table = database.table("accounts");
            is_ended(&database, &table, how).await;
            is_sound(&database).await;
        });
    }
}

/// A handle that is dropped leaves the transaction prepared; one whose rollback has begun is rolled
/// back.
#[test]
fn a_dropped_handle_leaves_the_transaction_prepared() {
    let world = World::new(34, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let (table, rows) = fill(&database).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        change(&mut session, &table, &rows).await;
        prepare(&mut session, "a").await.unwrap();
        drop(session);
        inner
            .executor
            .clock()
            .sleep(std::time::Duration::from_secs(1))
            .await;
        update_fails(&database, &table, &rows[0].0).await;
        database.close().await.unwrap();
    });
    world.executor.clear();
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let table = database.table("accounts");
        let mut left = take(&database, 1).await;
        assert_eq!(left.len(), 1);
        assert_eq!(seen(&database, &table).await, BEFORE);
        let begun = until_done(|| left[0].transaction.rollback());
        assert!(
            poll_at_most(1, begun).await.is_none(),
            "it waits for the log"
        );
        drop(left);
        inner
            .executor
            .clock()
            .sleep(std::time::Duration::from_secs(1))
            .await;
        is_ended(&database, &table, End::RollBack).await;
    });
}

/// A rollback fails when it has undone a part. What is left cannot be committed any more.
#[test]
fn a_commit_behind_a_rollback_that_has_failed_rolls_back() {
    let world = World::new(36, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let (table, rows) = fill(&database).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        change(&mut session, &table, &rows).await;
        // More than there are frames, so that the oldest undo is not in memory.
        let note = "x".repeat(1000);
        for id in (ROW_COUNT + 1..).take(300) {
            let added = row(id, 0, &note);
            session.insert(&table, &added).await.unwrap();
        }
        prepare(&mut session, "a").await.unwrap();
        let whole = session.txn.mark();
        let is_read = |error: &StoreError| matches!(error, StoreError::Disk { is_read: true, .. });
        let failing = Faults {
            read_permille: 1000,
            ..Faults::default()
        };
        inner.disk.set_faults(failing);
        let failed = session.rollback().await;
        assert!(failed.as_ref().is_err_and(is_read), "{failed:?}");
        let left = session.txn.mark();
        let failed = session.commit().await;
        assert!(failed.as_ref().is_err_and(is_read), "{failed:?}");
        inner.disk.set_faults(Faults::default());
        assert!(1 < left.0 && left < whole, "{left:?} of {whole:?}");
        assert_eq!(session.commit().await, Err(StoreError::RolledBack));
        assert!(!session.txn.is_active());
        is_ended(&database, &table, End::RollBack).await;
        is_sound(&database).await;
    });
}

/// A crash at each moment of PREPARE and of the rollback behind it: all or nothing, and what was
/// told holds.
#[test]
fn a_crash_at_any_moment_keeps_what_was_promised() {
    let (mut lost, mut kept) = (0, 0);
    for polls in 1.. {
        let world = World::new(35, WorldOptions::default());
        let inner = world.clone();
        // The session lives until the crash: a dropped one would be rolled back.
        let (is_ready, is_over, _session) = world.run(async move {
            let database = inner.open().await.unwrap();
            let (table, rows) = fill(&database).await;
            let mut session = database.begin(Isolation::RepeatableRead);
            change(&mut session, &table, &rows).await;
            let mut is_ready = false;
            let both = async {
                prepare(&mut session, "a").await.unwrap();
                is_ready = true;
                session.rollback().await.unwrap();
            };
            let is_over = poll_at_most(polls, both).await.is_some();
            (is_ready, is_over, session)
        });
        let world = world.crash();
        let inner = world.clone();
        let left = world.run(async move {
            let database = inner.open().await.unwrap();
            let table = database.table("accounts");
            let left = take(&database, 1).await.len();
            assert_eq!(seen(&database, &table).await, BEFORE, "{polls} polls");
            is_sound(&database).await;
            left
        });
        assert!(left <= 1 && (is_ready || !is_over));
        if is_over {
            assert_eq!(left, 0, "the rollback was told");
            break;
        }
        if left == 0 {
            lost += 1;
        } else {
            kept += 1;
        }
    }
    assert!(0 < lost && 0 < kept, "{lost} lost, {kept} kept");
}
