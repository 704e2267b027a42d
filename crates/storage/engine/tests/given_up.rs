//! Work that fails, or is dropped, in its middle: the next operation finds nothing half done.

#![forbid(unsafe_code)]

use btree::{From, Place, Run, Tree};
use env::sim::poll_at_most;
use format::page_op::PageOp;
use format::{IndexId, PageId, PageNo, SpaceId, undo};
use sim::rows::{Row, Session, accounts, all, index, integer, row, until_done};
use sim::{Database, World, WorldOptions};
use store::{
    Inserted, Interrupt, Isolation, Mutation, RowLock, SchemaStore, Store, StoreError,
    TableDefinition, TableId, TableName, Uniqueness, WaitReason,
};
use value::{CollationId, Value};
use wal::{LogLevel, OnLogLoss};

/// Enough that the dictionary's file grows while they are renamed, and frames are waited for.
const TABLE_COUNT: usize = 60;

fn named(table: String) -> TableName {
    TableName {
        database: "test".to_owned(),
        table,
    }
}

/// Tables whose rows of the dictionary have pages of their own.
async fn make_tables(database: &Database) {
    for number in 0..TABLE_COUNT {
        let definition = TableDefinition {
            name: named(format!("old_{number}")),
            comment: "x".repeat(2000),
            ..accounts()
        };
        let made = database.engine.create_table(definition).await;
        made.expect("it is a good definition");
    }
}

/// New names for all of them.
fn renames(database: &Database) -> Vec<(TableId, TableName)> {
    let definitions = database.engine.definitions();
    let ids = definitions.iter().map(|definition| definition.id);
    let renamed = |(number, id)| (id, named(format!("new_{number}")));
    ids.enumerate().map(renamed).collect()
}

/// The rows of the dictionary in its pages, whoever wrote them.
async fn dictionary_rows(database: &Database) -> Vec<(Vec<u8>, Vec<u8>)> {
    let tree = Tree {
        space: SpaceId(0),
        root: PageNo(3),
        index: IndexId(1),
    };
    let pages = database.engine.pages();
    let (mut place, mut run, mut rows) = (Place::first(), Run::new(), Vec::new());
    while place.from != From::Nothing {
        let read = until_done(|| tree.read_run(pages, &place, 16, &mut run)).await;
        read.expect("the dictionary can be read");
        let entries = (0..run.len()).map(|number| run.entry(number));
        rows.extend(entries.map(|(key, version)| (key.to_vec(), version.to_vec())));
        place = run.next.clone();
    }
    rows
}

fn two_workers() -> WorldOptions {
    WorldOptions {
        worker_count: 2,
        frame_count: 32,
        ..WorldOptions::default()
    }
}

/// The disk is full when half of the rows are written.
#[test]
fn a_schema_change_that_fails_is_undone_before_that_is_told() {
    let world = World::new(20, two_workers());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        make_tables(&database).await;
        let before = dictionary_rows(&database).await;
        inner.disk.set_capacity(inner.disk.used_bytes());
        let refused = database.engine.rename_tables(renames(&database)).await;
        assert_eq!(refused, Err(StoreError::DiskFull));
        assert_eq!(dictionary_rows(&database).await, before);
        inner.disk.set_capacity(u64::MAX);
        let other = database.on(1);
        let again = other.engine.rename_tables(renames(&database)).await;
        assert_eq!(again, Ok(()));
        assert_ne!(dictionary_rows(&database).await, before);
        let report = database.check().await.unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
    });
}

/// A statement may be dropped at any moment. The next change gets its turn when all or nothing of
/// the last one is there.
#[test]
fn the_turn_of_a_schema_change_passes_on_when_it_is_undone() {
    for poll_count in 1.. {
        let world = World::new(21, two_workers());
        let inner = world.clone();
        let is_over = world.run(async move {
            let database = inner.open().await.unwrap();
            make_tables(&database).await;
            let before = dictionary_rows(&database).await;
            let renaming = database.engine.rename_tables(renames(&database));
            let renamed = poll_at_most(poll_count, renaming).await;
            let other = &database.on(1).engine;
            let collation = CollationId::UTF8MB4_GENERAL_CI;
            other.create_database("next", collation).await.unwrap();
            let after = dictionary_rows(&database).await;
            let kept = before.iter().filter(|row| after.contains(row)).count();
            assert!(kept == 0 || kept == TABLE_COUNT, "{kept} at {poll_count}");
            renamed.is_some()
        });
        if is_over {
            return;
        }
    }
}

/// The next start gives back a tree that an ALTER TABLE has left, even if another ALTER TABLE has
/// completed in between.
#[test]
fn what_an_alter_table_has_left_is_found_behind_another_one() {
    for poll_count in 1.. {
        let world = World::new(22, WorldOptions::default());
        let inner = world.clone();
        let is_over = world.run(async move {
            let database = inner.open().await.unwrap();
            database.engine.create_table(accounts()).await.unwrap();
            let table = database.table("accounts");
            let mut txn = database.begin(Isolation::RepeatableRead);
            for id in 0..100 {
                txn.insert(&table, &row(id, id, "note")).await.unwrap();
            }
            txn.commit().await.unwrap();
            let with_index = |name: &str| {
                let mut definition = TableDefinition::clone(table.definition());
                let by_balance = index(name, Uniqueness::None, &[1]);
                definition.indexes.push(by_balance);
                definition
            };
            let first = database.engine.alter_table(with_index("first"), None);
            let first = poll_at_most(poll_count, first).await;
            let second = database.engine.alter_table(with_index("second"), None);
            second.await.unwrap();
            // Durable, and with it the end of the second.
            let collation = CollationId::UTF8MB4_GENERAL_CI;
            let next = database.engine.create_database("next", collation);
            next.await.unwrap();
            first.is_some()
        });
        let world = world.crash();
        let inner = world.clone();
        let faults = world.run(async move {
            let database = inner.open().await.unwrap();
            assert_eq!(database.table("accounts").definition().indexes.len(), 2);
            database.check().await.unwrap().faults
        });
        assert_eq!(faults, Vec::<String>::new(), "at {poll_count}");
        if is_over {
            return;
        }
    }
}

/// If a purge is dropped while it waits for a page, the next one continues it.
#[test]
fn a_purge_that_is_given_up_holds_up_no_other() {
    for poll_count in 1..40 {
        let world = World::new(23, WorldOptions::default());
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            database.engine.create_table(accounts()).await.unwrap();
            let table = database.table("accounts");
            let mut txn = database.begin(Isolation::RepeatableRead);
            let note = "x".repeat(1000);
            for id in 0..300 {
                txn.insert(&table, &row(id, id, &note)).await.unwrap();
            }
            txn.commit().await.unwrap();
            for (key, _) in txn.scan(&table, all()).await.unwrap() {
                txn.delete(&table, &key).await.unwrap();
            }
            txn.commit().await.unwrap();
            // The background may have begun, and is waited for.
            let _ended = poll_at_most(poll_count, database.engine.purge_all()).await;
            let report = database.check().await.unwrap();
            assert_eq!((report.row_count, report.faults), (0, vec![]));
        });
    }
}

/// If a disk has lost the write of one page, the pages of a segment may form a circle.
#[test]
fn a_circle_of_undo_pages_is_damage_and_no_endless_start() {
    let world = World::new(24, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let table = database.table("accounts");
        // Purge does not pass an open transaction.
        let mut open = database.begin(Isolation::RepeatableRead);
        open.insert(&table, &row(1, 1, "open")).await.unwrap();
        Box::leak(Box::new(open));
        let pages = database.engine.pages();
        let first = PageId::new(SpaceId(1), PageNo(3));
        let end = until_done(|| {
            let mut change = pages.change()?;
            let page = change.latch(first)?;
            let op = PageOp::BytesPut {
                offset: u16::try_from(undo::UNDO_NEXT).expect("an offset in a page"),
                bytes: &first.page.0.to_le_bytes(),
            };
            change.apply(page, &op).expect("four bytes of the page");
            Ok(change.commit())
        });
        let end = end.await.unwrap();
        pages.wait_log(end, LogLevel::Durable).await.unwrap();
    });
    let world = world.crash();
    let inner = world.clone();
    let refused = world.run(async move { inner.open().await.err() });
    let Some(StoreError::Damaged { what, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(what.contains("run in a circle"), "{what}");
}

/// Accounts with an index on their balance, which has several leaves. All is in its file.
fn indexed(seed: u64) -> World {
    let world = World::new(seed, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("the disk is whole");
        let mut definition = accounts();
        let by_balance = index("by_balance", Uniqueness::None, &[1]);
        definition.indexes.push(by_balance);
        database
            .engine
            .create_table(definition)
            .await
            .expect("the disk is whole");
        let table = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..INDEXED_COUNT {
            txn.insert(&table, &row(id, id, "note"))
                .await
                .expect("the disk is whole");
        }
        txn.commit().await.expect("the disk is whole");
        database.close().await.expect("the disk is whole");
    });
    world.crash()
}

const INDEXED_COUNT: i64 = 400;

/// Changes rows until one change fails since a page of the index is damaged. Returns the rows
/// before, or `None` if no change fails or the damaged page has rows.
async fn fail_on_damage(database: &Database, txn: &mut Session) -> Option<Vec<Row>> {
    let table = database.table("accounts");
    let rows = txn.scan(&table, all()).await.ok()?;
    for (key, old) in &rows {
        let balance = integer(&old[1]) + INDEXED_COUNT;
        let new = row(integer(&old[0]), balance, "new");
        if txn.update(&table, key, &new).await.is_err() {
            return Some(rows);
        }
    }
    None
}

/// Each page of an index is damaged in turn. A change that comes to it fails, and its transaction
/// is rolled back all the same: by itself, or by the start after a crash. The rows are as before,
/// and the table can be dropped.
#[test]
fn a_damaged_index_does_not_stop_a_rollback() {
    let mut failed_count = 0;
    for page in 3..24 {
        for crashes in [false, true] {
            let world = indexed(25);
            world
                .disk
                .damage(&world.newest_table_file(), page * 4096 + 64, 1);
            let inner = world.clone();
            let before = world.run(async move {
                // It reads the roots.
                let database = inner.open().await.ok()?;
                let mut txn = database.begin(Isolation::RepeatableRead);
                let rows = fail_on_damage(&database, &mut txn).await?;
                if crashes {
                    // Its change is durable with this.
                    let other = TableDefinition {
                        name: named("other".to_owned()),
                        ..accounts()
                    };
                    database.engine.create_table(other).await.unwrap();
                    Box::leak(Box::new(txn));
                } else {
                    txn.rollback().await.unwrap();
                    database.close().await.unwrap();
                }
                Some(rows)
            });
            let Some(before) = before else {
                continue;
            };
            failed_count += 1;
            let world = world.crash();
            let inner = world.clone();
            world.run(async move {
                let database = inner.open().await.unwrap();
                let table = database.table("accounts");
                let mut txn = database.begin(Isolation::RepeatableRead);
                assert_eq!(txn.scan(&table, all()).await.unwrap(), before);
                txn.commit().await.unwrap();
                let id = table.definition().id;
                database.engine.drop_table(id).await.unwrap();
            });
        }
    }
    assert!(6 <= failed_count, "{failed_count} cases");
}

/// Each page of a large value is damaged in turn, whose transaction was open at a crash. The next
/// start rolls it back, and leaves the page in use.
#[test]
fn a_damaged_large_value_does_not_stop_a_rollback() {
    let mut passed_count = 0;
    for page in 3..6 {
        let world = World::new(28, WorldOptions::default());
        let inner = world.clone();
        let file = world.run(async move {
            let database = inner.open().await.unwrap();
            database.engine.create_table(accounts()).await.unwrap();
            let file = inner.newest_table_file();
            let table = database.table("accounts");
            let mut txn = database.begin(Isolation::RepeatableRead);
            let large = "x".repeat(9_000);
            txn.insert(&table, &row(1, 1, &large)).await.unwrap();
            let pages = database.engine.pages();
            pages.clean_all().await.unwrap();
            // Other pages take the place of these in the doublewrite file.
            make_tables(&database).await;
            pages.clean_all().await.unwrap();
            pages.checkpoint(b"engine 1".to_vec()).await.unwrap();
            Box::leak(Box::new(txn));
            file
        });
        let world = world.crash();
        world.disk.damage(&file, page * 4096 + 64, 1);
        let inner = world.clone();
        let report = world.run(async move {
            let database = inner.open().await.expect("it starts");
            let table = database.table("accounts");
            let mut txn = database.begin(Isolation::RepeatableRead);
            assert_eq!(txn.scan(&table, all()).await, Ok(Vec::new()));
            txn.commit().await.unwrap();
            let report = database.check().await.unwrap();
            database.close().await.unwrap();
            report
        });
        passed_count += u32::from(report.fault_count() != 0);
    }
    assert_eq!(passed_count, 3, "the value has three pages");
}

/// Each page of an index is damaged in turn, and the index is dropped to be made again. That
/// succeeds, and so does each start behind it.
#[test]
fn a_damaged_index_can_be_dropped_and_made_again() {
    let mut dropped_count = 0;
    for page in 3..24 {
        let world = indexed(27);
        world
            .disk
            .damage(&world.newest_table_file(), page * 4096 + 64, 1);
        let inner = world.clone();
        let rows = world.run(async move {
            let database = inner.open().await.ok()?;
            let mut txn = database.begin(Isolation::RepeatableRead);
            let table = database.table("accounts");
            let rows = txn.scan(&table, all()).await.ok()?;
            txn.commit().await.unwrap();
            let definition = TableDefinition {
                id: table.definition().id,
                ..accounts()
            };
            let dropped = database.engine.alter_table(definition, None).await;
            assert_eq!(dropped, Ok(()), "page {page}");
            Some(rows)
        });
        let Some(rows) = rows else {
            continue;
        };
        dropped_count += 1;
        let mut world = world.crash();
        for _ in 0..2 {
            let (inner, expected) = (world.clone(), rows.clone());
            world.run(async move {
                let database = inner.open().await.expect("it starts");
                let table = database.table("accounts");
                let mut definition = TableDefinition::clone(table.definition());
                let by_balance = index("by_balance", Uniqueness::None, &[1]);
                definition.indexes = vec![definition.indexes.remove(0), by_balance];
                let made = database.engine.alter_table(definition, None).await;
                assert_eq!(made, Ok(()), "page {page}");
                let mut txn = database.begin(Isolation::RepeatableRead);
                assert_eq!(txn.scan(&table, all()).await, Ok(expected));
            });
            world = world.crash();
        }
    }
    assert!(3 <= dropped_count, "{dropped_count} cases");
}

/// An insert is killed while its check of a unique value waits. Its transaction goes on, and others
/// may use the value.
#[test]
fn a_unique_check_that_is_given_up_leaves_the_value_to_others() {
    let world = World::new(26, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let mut definition = accounts();
        let by_balance = index("by_balance", Uniqueness::Unique, &[1]);
        definition.indexes.push(by_balance);
        database.engine.create_table(definition).await.unwrap();
        let table = database.table("accounts");
        let mut deleter = database.begin(Isolation::RepeatableRead);
        deleter.insert(&table, &row(1, 5, "")).await.unwrap();
        deleter.commit().await.unwrap();
        let rows = deleter.scan(&table, all()).await.unwrap();
        let deleted = deleter.delete(&table, &rows[0].0).await;
        assert_eq!(deleted, Ok(Mutation::Done));
        let mut killed = database.begin(Isolation::RepeatableRead);
        killed.txn.begin_statement();
        let mark = killed.txn.mark();
        let values = row(2, 5, "");
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        loop {
            match table.insert(&mut *killed.txn, &values, RowLock::Shared) {
                Err(Interrupt::Suspend(wait)) if wait.reason() == WaitReason::RowLock => break,
                Err(Interrupt::Suspend(wait)) => wait.await,
                other => panic!("it waits for the deleted entry, and not {other:?}"),
            }
        }
        let undone = until_done(|| killed.txn.rollback_to(mark)).await;
        assert_eq!(undone, Ok(()));
        assert_eq!(deleter.commit().await, Ok(()));
        let mut other = database.begin(Isolation::RepeatableRead);
        let inserted = other.insert(&table, &row(3, 5, "")).await;
        assert_eq!(inserted, Ok(Inserted::Done));
    });
}

/// The machine after a crash, which is told what to do about damage.
fn with_word(world: &World, on_loss: OnLogLoss) -> World {
    let options = WorldOptions {
        on_loss,
        ..world.options()
    };
    world.clone().with_options(options)
}

/// Rows that are committed, and a transaction with undo on several pages that has changed them all.
/// All is in the files, and no page is in the doublewrite file.
fn changed_and_open() -> World {
    let world = World::new(29, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("the disk is whole");
        database
            .engine
            .create_table(accounts())
            .await
            .expect("the disk is whole");
        let table = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..INDEXED_COUNT {
            txn.insert(&table, &row(id, 0, "note"))
                .await
                .expect("the disk is whole");
        }
        txn.commit().await.expect("the disk is whole");
        let rows = txn.scan(&table, all()).await.expect("the disk is whole");
        txn.commit().await.expect("the disk is whole");
        let mut txn = database.begin(Isolation::RepeatableRead);
        for (key, old) in &rows {
            let new = row(integer(&old[0]), 1, "new");
            txn.update(&table, key, &new)
                .await
                .expect("the disk is whole");
        }
        let pages = database.engine.pages();
        pages.clean_all().await.expect("the disk is whole");
        make_tables(&database).await;
        pages.clean_all().await.expect("the disk is whole");
        pages
            .checkpoint(b"engine 1".to_vec())
            .await
            .expect("the disk is whole");
        Box::leak(Box::new(txn));
    });
    world.crash()
}

/// Each page of undo is damaged in turn. Where the start refuses, it goes on by the operator's
/// word: no committed row is lost, and the next start needs no word.
#[test]
fn damaged_undo_loses_no_committed_row() {
    let mut refused_count = 0;
    for page in 2..16 {
        let world = changed_and_open();
        world.disk.damage(
            std::path::Path::new("data/space_1.pdb"),
            page * 4096 + 64,
            1,
        );
        let refusing = with_word(&world, OnLogLoss::Refuse);
        let inner = refusing.clone();
        let refused = refusing.run(async move { inner.open().await.is_err() });
        refusing.executor.clear();
        if !refused {
            continue;
        }
        refused_count += 1;
        let accepting = with_word(&world, OnLogLoss::Accept);
        for world in [accepting, with_word(&world, OnLogLoss::Refuse)] {
            let inner = world.clone();
            world.run(async move {
                let database = inner.open().await.expect("it starts");
                let table = database.table("accounts");
                let mut txn = database.begin(Isolation::RepeatableRead);
                let rows = txn.scan(&table, all()).await.unwrap();
                assert_eq!(stdx::to_u64(rows.len()), INDEXED_COUNT.unsigned_abs());
                txn.insert(&table, &row(9_999, 0, "after")).await.unwrap();
                txn.rollback().await.unwrap();
                database.close().await.unwrap();
            });
            world.executor.clear();
        }
    }
    assert!(3 <= refused_count, "{refused_count} cases");
}
