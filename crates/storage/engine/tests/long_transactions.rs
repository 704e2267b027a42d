//! Transactions that stay open for long: others' undo does not pile up behind them, and after a
//! crash all that is needed is there.

#![forbid(unsafe_code)]

use std::rc::Rc;
use std::time::Duration;

use format::SpaceId;
use sim::rows::{Row, Session, accounts, all, row};
use sim::{Database, World, WorldOptions};
use store::{Inserted, Isolation, Mutation, SchemaStore, Table};
use value::Value;

/// The undo segment of the only worker.
const UNDO: SpaceId = SpaceId(1);

/// Updates of others between two checks, and the number of checks.
const UPDATES: i64 = 20;
const ROUNDS: i64 = 60;

fn begin(database: &Database) -> Session {
    database.begin(Isolation::RepeatableRead)
}

/// Rows 0 to 9, with a balance of 0 and a long note.
async fn fill(database: &Database) -> (Rc<dyn Table>, Vec<Row>) {
    let created = database.engine.create_table(accounts()).await;
    created.expect("a table");
    let table = database.table("accounts");
    let mut txn = begin(database);
    for id in 0..10 {
        let done = txn.insert(&table, &row(id, 0, &"x".repeat(500))).await;
        assert_eq!(done, Ok(Inserted::Done));
    }
    assert_eq!(txn.commit().await, Ok(()));
    let rows = begin(database).scan(&table, all()).await;
    (table, rows.expect("rows"))
}

/// Sets another balance and note in a row.
async fn set(txn: &mut Session, table: &Rc<dyn Table>, (key, old): &Row, balance: i64) {
    let Value::Int(id) = old[0] else {
        panic!("the key is a number");
    };
    let note = if balance % 2 == 0 { "y" } else { "z" };
    let changed = row(id, balance, &note.repeat(500));
    let done = txn.update(table, key, &changed).await;
    assert_eq!(done, Ok(Mutation::Done));
}

/// Changes row 1 many times, each time in a transaction of its own, with pauses for purge.
async fn work(world: &World, database: &Database, table: &Rc<dyn Table>, rows: &[Row], round: i64) {
    for number in 0..UPDATES {
        let mut txn = begin(database);
        set(&mut txn, table, &rows[1], round * UPDATES + number + 1).await;
        assert_eq!(txn.commit().await, Ok(()));
    }
    let pause = Duration::from_millis(50);
    world.executor.clock().sleep(pause).await;
}

fn undo_pages(database: &Database) -> u32 {
    let pool = database.engine.pages().pool();
    pool.room_pages(UNDO).expect("the segment is open")
}

async fn balances(database: &Database, table: &Rc<dyn Table>) -> Vec<Value> {
    let rows = begin(database).scan(table, all()).await;
    let rows = rows.expect("rows");
    rows.into_iter().map(|(_, row)| row[1].clone()).collect()
}

fn balance_of(values: &[Value], id: usize, balance: i64) {
    assert_eq!(values[id], Value::Int(balance), "row {id}");
}

/// How the long transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    RollBack,
    Crash,
    CommitAndCrash,
}

/// Without skipping, the undo of 1,200 updates would take 150 pages of 4 KiB. If the records
/// beside a skipped one were not settled, the crash would undo the last update of another.
#[test]
fn an_idle_writer_does_not_hold_up_purge() {
    for end in [End::Commit, End::RollBack, End::Crash, End::CommitAndCrash] {
        let world = World::new(7, WorldOptions::default());
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            let (table, rows) = fill(&database).await;
            let mut others = begin(&database);
            set(&mut others, &table, &rows[2], 77).await;
            let mut idle = begin(&database);
            set(&mut idle, &table, &rows[0], 5).await;
            set(&mut others, &table, &rows[3], 77).await;
            assert_eq!(others.commit().await, Ok(()));
            let mut most = 0;
            for round in 0..ROUNDS {
                work(&inner, &database, &table, &rows, round).await;
                most = most.max(undo_pages(&database));
                if round == ROUNDS / 2 {
                    set(&mut idle, &table, &rows[4], 5).await;
                }
            }
            assert!(most < 50, "{most} pages of undo");
            let values = balances(&database, &table).await;
            balance_of(&values, 0, 0);
            finish(&inner, &database, (&table, &rows), idle, end).await;
        });
        if matches!(end, End::Crash | End::CommitAndCrash) {
            let world = world.crash();
            let inner = world.clone();
            world.run(async move {
                let database = inner.open().await.unwrap();
                let table = database.table("accounts");
                check(&database, &table, end).await;
                assert_eq!(
                    database.check().await.map(|report| report.faults),
                    Ok(vec![])
                );
            });
        }
    }
}

/// Ends the long transaction, and lets the others continue.
async fn finish(
    world: &World,
    database: &Database,
    (table, rows): (&Rc<dyn Table>, &[Row]),
    mut idle: Session,
    end: End,
) {
    match end {
        End::Commit | End::CommitAndCrash => assert_eq!(idle.commit().await, Ok(())),
        End::RollBack => assert_eq!(idle.rollback().await, Ok(())),
        End::Crash => {
            // It is open when the machine goes down: nothing runs after this.
            drop(idle);
            return;
        }
    }
    if end == End::CommitAndCrash {
        return;
    }
    work(world, database, table, rows, ROUNDS - 1).await;
    check(database, table, end).await;
    let pages = undo_pages(database);
    work(world, database, table, rows, ROUNDS - 1).await;
    assert!(undo_pages(database) <= pages, "all was given back");
}

async fn check(database: &Database, table: &Rc<dyn Table>, end: End) {
    let values = balances(database, table).await;
    let idle = match end {
        End::Commit | End::CommitAndCrash => 5,
        End::RollBack | End::Crash => 0,
    };
    balance_of(&values, 0, idle);
    balance_of(&values, 4, idle);
    balance_of(&values, 1, ROUNDS * UPDATES);
    balance_of(&values, 2, 77);
    balance_of(&values, 3, 77);
}
