//! Transactions that meet: victims, orphans, and what scans see of others.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use env::sim::Faults;
use sim::rows::{Row, Session, accounts, all, big, blob, index, row, table};
use sim::{Database, World, WorldOptions};
use store::{
    Durability, Inserted, Interrupt, Isolation, Mutation, RowBatch, RowKey, RowLock, ScanOptions,
    SchemaStore, StoreError, Table, Uniqueness,
};
use value::Value;

fn named(table: &str) -> store::TableName {
    store::TableName {
        database: "test".to_owned(),
        table: table.to_owned(),
    }
}

/// A statement ends (it is killed, or out of time) while its transaction is rolled back as a
/// deadlock's victim. Half of it is then undone, and none of the rest may be committed.
#[test]
fn a_victim_whose_rollback_was_interrupted_commits_nothing() {
    for ends_by_commit in [true, false] {
        let world = World::new(10, WorldOptions::default());
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            database.engine.create_table(accounts()).await.unwrap();
            let accounts = database.table("accounts");
            let rows = fill(&database, &accounts, 300).await;
            let mut victim = database.begin(Isolation::RepeatableRead);
            let mut winner = database.begin(Isolation::RepeatableRead);
            change_rows(&mut victim, &accounts, &rows[200..]).await;
            change_rows(&mut winner, &accounts, &rows[..200]).await;
            let statement = victim.txn.mark();
            let (table, wanted) = (Rc::clone(&accounts), rows[250].0.clone());
            let is_over = Rc::new(Cell::new(false));
            let noting = Rc::clone(&is_over);
            inner.executor.spawn(async move {
                let done = winner.update(&table, &wanted, &row(250, 2, "")).await;
                assert_eq!(done, Ok(Mutation::Done));
                winner.rollback().await.unwrap();
                noting.set(true);
            });
            interrupt_rollback(&mut victim, &accounts, &rows[5].0).await;
            let ended = sim::rows::until_done(|| {
                if ends_by_commit {
                    victim.txn.commit(Durability::Durable)
                } else {
                    victim.txn.rollback_to(statement)
                }
            });
            assert_eq!(ended.await, Err(StoreError::Deadlock));
            assert!(!victim.txn.has_changes());
            while !is_over.get() {
                inner.executor.clock().sleep(Duration::from_millis(1)).await;
            }
            let mut fresh = database.begin(Isolation::RepeatableRead);
            assert_eq!(fresh.scan(&accounts, all()).await.unwrap(), rows);
        });
    }
}

/// Rows of a quarter page each. Returns the present rows.
async fn fill(database: &Database, table: &Rc<dyn Table>, count: i64) -> Vec<Row> {
    let note = "x".repeat(1000);
    let mut txn = database.begin(Isolation::RepeatableRead);
    for id in 0..count {
        let done = txn.insert(table, &row(id, 0, &note)).await;
        assert_eq!(done, Ok(Inserted::Done));
    }
    assert_eq!(txn.commit().await, Ok(()));
    let mut txn = database.begin(Isolation::RepeatableRead);
    let rows = txn.scan(table, all()).await;
    rows.expect("what was written can be read")
}

async fn change_rows(session: &mut Session, table: &Rc<dyn Table>, rows: &[Row]) {
    for (key, old) in rows {
        let changed = [old[0].clone(), Value::Int(1), old[2].clone()];
        let done = session.update(table, key, &changed).await;
        assert_eq!(done, Ok(Mutation::Done));
    }
}

/// Asks for a row that closes a cycle, and stops while the rollback waits in its middle.
async fn interrupt_rollback(victim: &mut Session, table: &Rc<dyn Table>, key: &[u8]) {
    let changes = victim.txn.mark();
    let values = row(5, 2, "");
    let values: Vec<_> = values.iter().map(Value::as_ref).collect();
    loop {
        match table.update(&mut *victim.txn, RowKey(key), &values, RowLock::Shared) {
            Err(Interrupt::Suspend(suspend)) if victim.txn.mark() == changes => suspend.await,
            Err(Interrupt::Suspend(_)) => return,
            other => panic!("the rollback waits for no page: {other:?}"),
        }
    }
}

/// The rows of one transaction cannot be read. Another, which was dropped before, is undone
/// nevertheless. The first keeps what holds its tables until it is undone, too.
#[test]
fn a_rollback_that_fails_holds_up_no_other_and_keeps_its_tables() {
    let world = World::new(11, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        for name in ["large", "small"] {
            let definition = store::TableDefinition {
                name: named(name),
                ..accounts()
            };
            database.engine.create_table(definition).await.unwrap();
        }
        let (large, small) = (database.table("large"), database.table("small"));
        let rows = fill(&database, &large, 300).await;
        let few = fill(&database, &small, 1).await;
        let mut unreadable = database.begin(Isolation::RepeatableRead);
        change_rows(&mut unreadable, &large, &rows).await;
        let mut other = database.begin(Isolation::RepeatableRead);
        change_rows(&mut other, &small, &few).await;
        let all_fail = Faults {
            read_permille: 1000,
            ..Faults::default()
        };
        inner.disk.set_faults(all_fail);
        drop(other);
        let hold = Rc::new(());
        unreadable.txn.keep(Box::new(Rc::clone(&hold)));
        drop(unreadable);
        let mut next = database.begin(Isolation::RepeatableRead);
        change_rows(&mut next, &small, &few).await;
        next.commit().await.unwrap();
        assert_eq!(Rc::strong_count(&hold), 2, "it is not undone yet");
        inner.disk.set_faults(Faults::default());
        while Rc::strong_count(&hold) == 2 {
            inner
                .executor
                .clock()
                .sleep(Duration::from_millis(100))
                .await;
        }
        let mut fresh = database.begin(Isolation::RepeatableRead);
        assert_eq!(fresh.scan(&large, all()).await.unwrap(), rows);
    });
}

/// A statement may look up thousands of large rows that it does not change in the end.
#[test]
fn a_large_row_that_was_looked_up_is_not_kept() {
    let world = World::new(14, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        let large = "x".repeat(50_000);
        txn.insert(&accounts, &row(1, 1, &large)).await.unwrap();
        let key = txn.scan(&accounts, all()).await.unwrap()[0].0.clone();
        let mut batch = RowBatch::new(accounts.layout().clone());
        let keys = [RowKey(&key)];
        let look = || accounts.lookup(&mut *txn.txn, &keys, RowLock::Exclusive, &mut batch);
        assert_eq!(sim::rows::until_done(look).await, Ok(()));
        assert_eq!((batch.len(), batch.range_ends()), (1, [1].as_slice()));
        let held = format!("{:?}", txn.txn);
        assert!(!held.contains(&format!("{:?}", b"xxxx").replace(['[', ']'], "")));
    });
}

/// The pages of a large row are released when its writer rolls back. So no other reads them before
/// the commit; small rows are seen uncommitted.
#[test]
fn read_uncommitted_sees_large_rows_as_they_were_committed() {
    let world = World::new(13, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let columns = vec![big("id"), big("balance"), blob("note")];
        let indexes = vec![
            index("PRIMARY", Uniqueness::Primary, &[0]),
            index("by_balance", Uniqueness::None, &[1]),
        ];
        let definition = table("accounts", columns, indexes);
        database.engine.create_table(definition).await.unwrap();
        let accounts = database.table("accounts");
        let mut writer = database.begin(Isolation::RepeatableRead);
        for id in 0..3 {
            writer.insert(&accounts, &row(id, id, "old")).await.unwrap();
        }
        writer.commit().await.unwrap();
        let keys = writer.scan(&accounts, all()).await.unwrap();
        let large = "x".repeat(50_000);
        for (id, note) in [(0, "new"), (1, large.as_str())] {
            let changed = row(id, id + 10, note);
            let key = &keys[stdx::to_usize(u64::try_from(id).unwrap())].0;
            writer.update(&accounts, key, &changed).await.unwrap();
        }
        writer.insert(&accounts, &row(3, 13, &large)).await.unwrap();
        let expected = [row(0, 10, "new"), row(1, 1, "old"), row(2, 2, "old")];
        let by_balance = ScanOptions {
            index: Some(1),
            ..all()
        };
        for scan in [all(), by_balance] {
            let mut reader = database.begin(Isolation::ReadUncommitted);
            let mut seen = reader.scan(&accounts, scan).await.unwrap();
            seen.sort_by(|(one, _), (other, _)| one.cmp(other));
            let seen: Vec<_> = seen.into_iter().map(|(_, row)| row).collect();
            assert_eq!(seen, expected);
        }
        let own = writer.scan(&accounts, all()).await.unwrap();
        assert_eq!(own[3].1, row(3, 13, &large));
    });
}

/// A scan passes uncommitted rows of others one by one, and other tasks run meanwhile. The same
/// holds on the way back to an old version of one row.
#[test]
fn a_scan_of_what_it_does_not_see_gives_way() {
    let world = World::new(12, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut reader = database.begin(Isolation::RepeatableRead);
        assert_eq!(reader.scan(&accounts, all()).await.unwrap(), []);
        let mut writer = database.begin(Isolation::RepeatableRead);
        for id in 0..1000 {
            writer.insert(&accounts, &row(id, 0, "")).await.unwrap();
        }
        // The row and its undo count as one read each.
        assert_eq!(turns_of_scan(&mut reader, &accounts).await, (0, 7));
        writer.commit().await.unwrap();
        let mut reader = database.begin(Isolation::RepeatableRead);
        let rows = reader.scan(&accounts, all()).await.unwrap();
        let mut writer = database.begin(Isolation::RepeatableRead);
        for balance in 0..1000 {
            let changed = row(0, balance, "");
            writer
                .update(&accounts, &rows[0].0, &changed)
                .await
                .unwrap();
        }
        assert_eq!(turns_of_scan(&mut reader, &accounts).await, (1000, 3));
    });
}

/// Scans everything. Returns the number of rows, and how often it gave way.
async fn turns_of_scan(session: &mut Session, table: &Rc<dyn Table>) -> (usize, usize) {
    let mut row_count = 0;
    let count = |batch: &RowBatch| {
        row_count += batch.len();
        Ok(())
    };
    let turns = session.fetch_all(table, all(), 64, count).await;
    (row_count, turns.expect("what was written can be read"))
}

/// Otherwise a rollback of many rows in memory would be one poll, however long.
#[test]
fn a_long_rollback_gives_way() {
    let options = WorldOptions {
        frame_count: 1024,
        ..WorldOptions::default()
    };
    let world = World::new(15, options);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..1000 {
            txn.insert(&accounts, &row(id, 0, "")).await.unwrap();
        }
        let mark = store::UndoMark(500);
        assert_eq!(turns_of(|| txn.txn.rollback_to(mark)).await, 16);
        assert_eq!(turns_of(|| txn.txn.rollback()).await, 15);
        assert_eq!(txn.scan(&accounts, all()).await.unwrap(), []);
    });
}

/// Number of times that an operation gives way before it is done.
async fn turns_of(operation: impl FnMut() -> store::Outcome<()>) -> usize {
    let done = sim::rows::count_turns(operation).await;
    done.expect("it succeeds").1
}

/// The same for a transaction whose session is gone.
#[test]
fn the_long_rollback_of_an_orphan_gives_way() {
    let options = WorldOptions {
        frame_count: 1024,
        ..WorldOptions::default()
    };
    let world = World::new(16, options);
    let inner = world.clone();
    let left = Rc::new(std::cell::RefCell::new(None));
    let leaving = Rc::clone(&left);
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..1000 {
            txn.insert(&accounts, &row(id, 0, "")).await.unwrap();
        }
        leaving.replace(Some((txn, accounts)));
    });
    let (txn, accounts) = left.take().unwrap();
    drop(txn);
    let mut rows = 1000;
    assert_eq!(accounts.statistics().row_count, rows);
    while rows != 0 {
        world.executor.run_steps(1);
        let before = std::mem::replace(&mut rows, accounts.statistics().row_count);
        assert!(before - rows <= 32, "{before} and then {rows}");
    }
}

/// A row of many pages is written, read and given back a part at a time.
#[test]
fn a_long_row_gives_way() {
    let options = WorldOptions {
        frame_count: 2048,
        ..WorldOptions::default()
    };
    let world = World::new(17, options);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        // Some 250 pages.
        let long = row(1, 1, &"x".repeat(1_000_000));
        let values: Vec<_> = long.iter().map(Value::as_ref).collect();
        let insert = || {
            accounts
                .insert(&mut *txn.txn, &values, RowLock::Shared)
                .map(|_| ())
        };
        assert_eq!(turns_of(insert).await, 3);
        txn.commit().await.unwrap();
        let mut cursor = accounts.scan(all());
        let mut batch = RowBatch::new(accounts.layout().clone());
        let fetch = || cursor.fetch(&mut *txn.txn, 1, &mut batch).map(|_| ());
        assert_eq!(turns_of(fetch).await, 3);
        assert_eq!(batch.len(), 1);
        let key = batch.key(0).0.to_vec();
        txn.delete(&accounts, &key).await.unwrap();
        txn.commit().await.unwrap();
        let report = database.check().await.unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
    });
}

/// What was inserted and undone leaves no empty pages: no later insert may ever fall there.
#[test]
fn a_rollback_gives_pages_back() {
    let options = WorldOptions {
        frame_count: 1024,
        ..WorldOptions::default()
    };
    let world = World::new(18, options);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let mut definition = accounts();
        let by_balance = index("by_balance", Uniqueness::None, &[1]);
        definition.indexes.push(by_balance);
        database.engine.create_table(definition).await.unwrap();
        let accounts = database.table("accounts");
        let before = database.check().await.unwrap();
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..3000 {
            // In no order of the index, whose pages are emptied everywhere.
            let balance = id * 797 % 2999;
            txn.insert(&accounts, &row(id, balance, "")).await.unwrap();
        }
        txn.rollback().await.unwrap();
        let after = database.check().await.unwrap();
        assert_eq!(after.faults, Vec::<String>::new());
        assert!(
            after.page_count <= before.page_count + 4,
            "{} pages of {}",
            after.page_count,
            before.page_count
        );
    });
}

/// Otherwise purge of many rows in memory would be one poll.
#[test]
fn a_long_purge_gives_way() {
    let options = WorldOptions {
        frame_count: 1024,
        ..WorldOptions::default()
    };
    let world = World::new(19, options);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..1000 {
            txn.insert(&accounts, &row(id, 0, "")).await.unwrap();
        }
        txn.commit().await.unwrap();
        for (key, _) in txn.scan(&accounts, all()).await.unwrap() {
            txn.delete(&accounts, &key).await.unwrap();
        }
        txn.commit().await.unwrap();
        let mut purging = std::pin::pin!(database.engine.purge_all());
        let mut polls = 0;
        let purged = std::future::poll_fn(|context| {
            polls += 1;
            purging.as_mut().poll(context)
        });
        purged.await.unwrap();
        assert!(1000 / 32 <= polls, "{polls} polls");
    });
}

/// The locks of many rows are released a part at a time, however the transaction ends.
#[test]
fn an_end_with_many_locks_gives_way() {
    let options = WorldOptions {
        frame_count: 1024,
        ..WorldOptions::default()
    };
    let world = World::new(20, options);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        fill(&database, &accounts, 2000).await;
        let locking = ScanOptions {
            lock: RowLock::Exclusive,
            ..all()
        };
        for is_commit in [true, false] {
            let mut txn = database.begin(Isolation::RepeatableRead);
            let rows = txn.scan(&accounts, locking.clone()).await.unwrap();
            assert_eq!(rows.len(), 2000);
            let turns = turns_of(|| match is_commit {
                true => txn.txn.commit(Durability::Durable),
                false => txn.txn.rollback(),
            });
            assert_eq!(turns.await, 3);
        }
    });
}
