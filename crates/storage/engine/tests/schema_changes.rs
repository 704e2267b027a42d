//! Schema changes that fail, are dropped, or meet a crash: all of a change or nothing, and no file
//! without an owner.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use env::sim::poll_at_most;
use sim::rows::{accounts, all, index, integer, row};
use sim::{Database, World, WorldOptions};
use store::{
    Inserted, Isolation, SchemaStore, Store, StoreError, TableDefinition, TableName, Uniqueness,
};

/// The value that the counter is set to.
const NEXT: u64 = 7_000_000;

/// A comment so long that two do not fit into one page of the dictionary.
const COMMENT_BYTES: usize = 3000;

/// Number of tablespace files.
fn spaces(world: &World) -> usize {
    let is_space = |name: &&PathBuf| name.extension().is_some_and(|end| end == "pdb");
    world.files().iter().filter(is_space).count()
}

async fn filled(world: &World) -> Database {
    let database = world.open().await.expect("the directory is whole");
    let made = database.engine.create_table(accounts()).await;
    made.expect("it is a good definition");
    let table = database.table("accounts");
    let mut txn = database.begin(Isolation::RepeatableRead);
    for id in 0..20 {
        let inserted = txn.insert(&table, &row(id, id, "note")).await;
        inserted.expect("no other is there");
    }
    txn.commit().await.expect("the disk is whole");
    database
}

async fn add_index_and_count(database: &Database) {
    let mut definition = TableDefinition::clone(database.table("accounts").definition());
    let by_balance = index("by_balance", Uniqueness::None, &[1]);
    definition.indexes.push(by_balance);
    let altered = database.engine.alter_table(definition, Some(NEXT)).await;
    assert_eq!(altered, Ok(()));
}

/// The number of the table's indexes, and its next number.
async fn found(world: &World) -> (usize, u64) {
    let database = world.open().await.expect("the directory is whole");
    let table = database.table("accounts");
    let report = database.check().await.expect("everything can be read");
    assert_eq!(report.faults, Vec::<String>::new());
    (
        table.definition().indexes.len(),
        table.next_auto_increment(),
    )
}

#[test]
fn a_counter_that_was_set_is_there_after_a_crash() {
    let world = World::new(30, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = filled(&inner).await;
        let definition = TableDefinition::clone(database.table("accounts").definition());
        let altering = database.engine.alter_table(definition, Some(NEXT));
        altering.await.unwrap();
        assert_eq!(database.table("accounts").next_auto_increment(), NEXT);
    });
    let world = world.crash();
    let inner = world.clone();
    let next = world.run(async move { found(&inner).await });
    assert_eq!(next, (1, NEXT));
}

#[test]
fn a_crash_leaves_index_and_counter_or_neither() {
    let (mut with, mut without) = (0, 0);
    for step_count in 0.. {
        let world = World::new(31, WorldOptions::default());
        let inner = world.clone();
        let database = world.run(async move { filled(&inner).await });
        let is_over = Rc::new(Cell::new(false));
        let ended = Rc::clone(&is_over);
        world.executor.spawn(async move {
            add_index_and_count(&database).await;
            ended.set(true);
        });
        world.executor.run_steps(step_count);
        let world = world.crash();
        let inner = world.clone();
        match world.run(async move { found(&inner).await }) {
            (2, NEXT) => with += 1,
            (1, 1..NEXT) => without += 1,
            other => panic!("{other:?} after {step_count} steps"),
        }
        if is_over.get() {
            break;
        }
    }
    assert!(0 < with && 0 < without, "{with} with, {without} without");
}

fn with_comment(name: &str) -> TableDefinition {
    TableDefinition {
        name: TableName {
            database: "test".to_owned(),
            table: name.to_owned(),
        },
        comment: "x".repeat(COMMENT_BYTES),
        ..accounts()
    }
}

/// The disk becomes full at each page that a CREATE or a TRUNCATE asks for: those of the tablespace
/// and then that of the dictionary.
#[test]
fn a_full_disk_leaves_no_tablespace_behind() {
    for is_truncate in [false, true] {
        let mut refused = 0;
        for page_count in 0.. {
            let world = World::new(32, WorldOptions::default());
            let inner = world.clone();
            let outcome = world.run(async move {
                let database = filled(&inner).await;
                let engine = &database.engine;
                engine.create_table(with_comment("other")).await.unwrap();
                let id = database.table("other").definition().id;
                let count = spaces(&inner);
                let room = inner.disk.used_bytes() + page_count * 4096;
                inner.disk.set_capacity(room);
                let outcome = if is_truncate {
                    engine.truncate_table(id).await
                } else {
                    engine.create_table(with_comment("new")).await.map(drop)
                };
                let made = usize::from(outcome.is_ok() && !is_truncate);
                assert_eq!(spaces(&inner), count + made, "{outcome:?} at {page_count}");
                outcome
            });
            if outcome.is_ok() {
                break;
            }
            assert_eq!(outcome, Err(StoreError::DiskFull));
            refused += 1;
        }
        assert!(1 < refused, "{refused}");
    }
}

/// A statement that is dropped leaves its tablespace to the background, or has made its table.
#[test]
fn a_create_table_that_is_given_up_leaves_no_tablespace_behind() {
    for poll_count in 1.. {
        let world = World::new(33, WorldOptions::default());
        let inner = world.clone();
        let is_over = world.run(async move {
            let database = filled(&inner).await;
            let count = spaces(&inner);
            let creating = database.engine.create_table(with_comment("new"));
            let created = poll_at_most(poll_count, creating).await;
            let report = database.check().await.unwrap();
            assert_eq!(report.faults, Vec::<String>::new());
            let definitions = database.engine.definitions();
            let has_table = definitions.iter().any(|it| it.name.table == "new");
            assert_eq!(
                spaces(&inner),
                count + usize::from(has_table),
                "{poll_count}"
            );
            created.is_some()
        });
        if is_over {
            return;
        }
    }
}

/// The ids of a table's rows, in the order in which they are kept.
async fn ids(database: &Database) -> Vec<i64> {
    let table = database.table("accounts");
    let mut txn = database.begin(Isolation::RepeatableRead);
    let rows = txn.scan(&table, all()).await.expect("the disk is whole");
    txn.commit().await.expect("the disk is whole");
    rows.iter().map(|(_, row)| integer(&row[0])).collect()
}

/// A directory of an early version has tables whose rows have hidden ids, although a unique key
/// without NULL is there. They stay as they are.
#[test]
fn rows_are_kept_by_a_unique_key_if_it_was_chosen_when_the_table_was_made() {
    for is_early in [true, false] {
        let world = World::new(34, WorldOptions::default());
        let inner = world.clone();
        let wanted: &[i64] = if is_early { &[3, 1, 2] } else { &[1, 2, 3] };
        world.run(async move {
            let database = inner.open().await.unwrap();
            let mut definition = accounts();
            definition.indexes = vec![index("u", Uniqueness::Unique, &[0])];
            if !is_early {
                definition.choose_clustered_key();
            }
            database.engine.create_table(definition).await.unwrap();
            insert_three(&database).await;
            assert_eq!(ids(&database).await, wanted);
        });
        let world = world.crash();
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            assert_eq!(ids(&database).await, wanted);
            let mut definition = TableDefinition::clone(database.table("accounts").definition());
            let by_balance = index("by_balance", Uniqueness::None, &[1]);
            definition.indexes.push(by_balance);
            let altering = database.engine.alter_table(definition.clone(), None);
            assert_eq!(altering.await, Ok(()));
            assert_eq!(ids(&database).await, wanted);
            // What the rows are kept by does not change in place.
            definition.indexes[0].uniqueness = match is_early {
                true => Uniqueness::Clustered,
                false => Uniqueness::Unique,
            };
            let altering = database.engine.alter_table(definition, None);
            let what = "ALTER TABLE in place";
            assert_eq!(altering.await, Err(StoreError::NotSupported { what }));
            let id = database.table("accounts").definition().id;
            database.engine.truncate_table(id).await.unwrap();
            insert_three(&database).await;
            assert_eq!(ids(&database).await, wanted);
            let report = database.check().await.unwrap();
            assert_eq!(report.faults, Vec::<String>::new());
        });
    }
}

async fn insert_three(database: &Database) {
    let table = database.table("accounts");
    let mut txn = database.begin(Isolation::RepeatableRead);
    for id in [3, 1, 2] {
        let inserted = txn.insert(&table, &row(id, id, "note")).await;
        assert_eq!(inserted, Ok(Inserted::Done));
    }
    let again = txn.insert(&table, &row(2, 0, "again")).await;
    assert!(matches!(again, Ok(Inserted::Duplicate { index: 0, .. })));
    txn.commit().await.expect("the disk is whole");
}
