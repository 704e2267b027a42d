//! From a table's making to its rows after a crash.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use env::Disk;
use format::{PageId, PageNo, PageType, SpaceId};
use sim::rows::{Row, accounts, all, big, blob, index, row, table};
use sim::{World, WorldOptions};
use store::{
    Inserted, Isolation, KeyRange, LockWait, Mutation, RowBatch, RowLock, ScanOptions, SchemaStore,
    Store, StoreError, Uniqueness,
};
use value::Value;
use wal::LogLevel;

fn equal(id: i64) -> ScanOptions {
    ScanOptions {
        index: Some(0),
        range: KeyRange::equal(vec![Value::Int(id)]),
        ..all()
    }
}

#[test]
fn rows_survive_commit_and_crash() {
    let world = World::new(1, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..500 {
            let done = txn
                .insert(&accounts, &row(id, id * 10, "first"))
                .await
                .unwrap();
            assert_eq!(done, Inserted::Done);
        }
        txn.commit().await.unwrap();
        let mut loser = database.begin(Isolation::RepeatableRead);
        let found = loser.scan(&accounts, equal(7)).await.unwrap();
        loser
            .update(&accounts, &found[0].0, &row(7, 0, "lost"))
            .await
            .unwrap();
        loser
            .insert(&accounts, &row(1000, 0, "lost"))
            .await
            .unwrap();
        let mut other = database.begin(Isolation::RepeatableRead);
        other
            .delete(
                &accounts,
                &loser.scan(&accounts, equal(8)).await.unwrap()[0].0,
            )
            .await
            .unwrap();
        other.commit().await.unwrap();
        Box::leak(Box::new(loser));
    });
    let world = world.crash();
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        let rows = txn.scan(&accounts, all()).await.unwrap();
        let expected: Vec<_> = (0..500)
            .filter(|id| *id != 8)
            .map(|id| row(id, id * 10, "first"))
            .collect();
        assert_eq!(
            rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>(),
            expected
        );
    });
}

#[test]
fn snapshots_see_what_was_committed_before_them() {
    let world = World::new(2, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut setup = database.begin(Isolation::RepeatableRead);
        for id in 0..3 {
            setup.insert(&accounts, &row(id, 100, "old")).await.unwrap();
        }
        setup.commit().await.unwrap();
        let mut old = database.begin(Isolation::RepeatableRead);
        let before = old.scan(&accounts, all()).await.unwrap();
        assert_eq!(before.len(), 3);
        let mut writer = database.begin(Isolation::RepeatableRead);
        writer
            .update(&accounts, &before[1].0, &row(1, 50, "new and longer"))
            .await
            .unwrap();
        writer.delete(&accounts, &before[2].0).await.unwrap();
        writer.insert(&accounts, &row(9, 1, "new")).await.unwrap();
        let own: Vec<_> = writer.scan(&accounts, all()).await.unwrap();
        assert_eq!(own.len(), 3);
        assert_eq!(own[1].1, row(1, 50, "new and longer"));
        assert_eq!(old.scan(&accounts, all()).await.unwrap(), before);
        writer.commit().await.unwrap();
        assert_eq!(old.scan(&accounts, all()).await.unwrap(), before);
        let mut fresh = database.begin(Isolation::RepeatableRead);
        assert_eq!(fresh.scan(&accounts, all()).await.unwrap(), own);
        let mut committed = database.begin(Isolation::ReadCommitted);
        assert_eq!(committed.scan(&accounts, equal(9)).await.unwrap().len(), 1);
    });
}

#[test]
fn rollback_and_savepoints_restore_rows() {
    let world = World::new(3, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        txn.insert(&accounts, &row(1, 1, "one")).await.unwrap();
        txn.insert(&accounts, &row(2, 2, "two")).await.unwrap();
        txn.commit().await.unwrap();
        let mut txn = database.begin(Isolation::RepeatableRead);
        let rows = txn.scan(&accounts, all()).await.unwrap();
        txn.update(&accounts, &rows[0].0, &row(1, 5, "changed"))
            .await
            .unwrap();
        let mark = txn.txn.mark();
        let large = "x".repeat(50_000);
        txn.insert(&accounts, &row(3, 3, &large)).await.unwrap();
        txn.update(&accounts, &rows[1].0, &row(2, 3, &large))
            .await
            .unwrap();
        let moved = txn
            .update(&accounts, &rows[0].0, &row(77, 5, "moved"))
            .await
            .unwrap();
        assert_eq!(moved, Mutation::Done);
        let seen = txn.scan(&accounts, all()).await.unwrap();
        let seen: Vec<_> = seen.into_iter().map(|(_, row)| row).collect();
        assert_eq!(
            seen,
            [row(2, 3, &large), row(3, 3, &large), row(77, 5, "moved")]
        );
        sim::rows::until_done(|| txn.txn.rollback_to(mark))
            .await
            .unwrap();
        let seen = txn.scan(&accounts, all()).await.unwrap();
        assert_eq!(seen[0].1, row(1, 5, "changed"));
        assert_eq!(seen[1].1, row(2, 2, "two"));
        assert_eq!(seen.len(), 2);
        txn.rollback().await.unwrap();
        let mut txn = database.begin(Isolation::RepeatableRead);
        let rows = txn.scan(&accounts, all()).await.unwrap();
        assert_eq!(rows[0].1, row(1, 1, "one"));
    });
}

#[test]
fn writers_wait_for_each_other() {
    let world = World::new(4, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        txn.insert(&accounts, &row(1, 1, "one")).await.unwrap();
        txn.insert(&accounts, &row(2, 2, "two")).await.unwrap();
        txn.commit().await.unwrap();
        let key_of = |rows: Vec<Row>| rows[0].0.clone();
        let mut first = database.begin(Isolation::RepeatableRead);
        let one = key_of(first.scan(&accounts, equal(1)).await.unwrap());
        let two = key_of(first.scan(&accounts, equal(2)).await.unwrap());
        first
            .update(&accounts, &one, &row(1, 10, "first"))
            .await
            .unwrap();
        let no_wait = ScanOptions {
            lock: RowLock::Exclusive,
            wait: LockWait::NoWait,
            ..equal(1)
        };
        let mut second = database.begin(Isolation::RepeatableRead);
        let refused = second.scan(&accounts, no_wait.clone()).await;
        assert_eq!(refused, Err(StoreError::LockNotAvailable));
        let skip = ScanOptions {
            wait: LockWait::SkipLocked,
            lock: RowLock::Shared,
            ..all()
        };
        assert_eq!(second.scan(&accounts, skip).await.unwrap().len(), 1);
        let timed_out = second.update(&accounts, &one, &row(1, 20, "second")).await;
        assert_eq!(timed_out, Err(StoreError::LockWaitTimeout));
        let duplicate = second.insert(&accounts, &row(2, 0, "again")).await.unwrap();
        assert_eq!(
            duplicate,
            Inserted::Duplicate {
                index: 0,
                key: two.clone().into()
            }
        );
    });
}

#[test]
fn a_deadlock_has_one_victim() {
    let world = World::new(5, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        txn.insert(&accounts, &row(1, 1, "one")).await.unwrap();
        txn.insert(&accounts, &row(2, 2, "two")).await.unwrap();
        txn.commit().await.unwrap();
        let rows = txn.scan(&accounts, all()).await.unwrap();
        let (one, two) = (rows[0].0.clone(), rows[1].0.clone());
        let mut first = database.begin(Isolation::RepeatableRead);
        let mut second = database.begin(Isolation::RepeatableRead);
        first
            .update(&accounts, &one, &row(1, 10, "first"))
            .await
            .unwrap();
        second
            .update(&accounts, &two, &row(2, 20, "second"))
            .await
            .unwrap();
        let results = Rc::new(RefCell::new(Vec::new()));
        let (noting, table) = (Rc::clone(&results), Rc::clone(&accounts));
        inner.executor.spawn(async move {
            let result = first.update(&table, &two, &row(2, 0, "first")).await;
            first.rollback().await.unwrap();
            noting.borrow_mut().push(result);
        });
        let result = second.update(&accounts, &one, &row(1, 0, "second")).await;
        second.rollback().await.unwrap();
        results.borrow_mut().push(result);
        while results.borrow().len() < 2 {
            inner.executor.yield_now().await;
        }
        let results = results.borrow();
        let is_victim =
            |result: &&Result<Mutation, StoreError>| **result == Err(StoreError::Deadlock);
        assert_eq!(results.iter().filter(is_victim).count(), 1, "{results:?}");
        assert!(results.contains(&Ok(Mutation::Done)), "{results:?}");
    });
}

/// Log records on files that are gone must not keep the directory closed.
#[test]
fn a_crash_after_tables_were_dropped_is_survived() {
    let world = World::new(6, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        for name in ["dropped", "emptied", "copied", "copy"] {
            let definition = store::TableDefinition {
                name: named(name),
                ..accounts()
            };
            database.engine.create_table(definition).await.unwrap();
            let mut txn = database.begin(Isolation::RepeatableRead);
            txn.insert(&database.table(name), &row(1, 1, name))
                .await
                .unwrap();
            txn.commit().await.unwrap();
        }
        let id = |name| database.table(name).definition().id;
        let engine = &database.engine;
        engine.drop_table(id("dropped")).await.unwrap();
        engine.truncate_table(id("emptied")).await.unwrap();
        engine
            .replace_table(id("copied"), id("copy"), named("copied"))
            .await
            .unwrap();
    });
    let world = world.crash();
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let mut txn = database.begin(Isolation::RepeatableRead);
        let emptied = txn.scan(&database.table("emptied"), all()).await.unwrap();
        assert_eq!(emptied.len(), 0);
        let copied = txn.scan(&database.table("copied"), all()).await.unwrap();
        assert_eq!(copied[0].1, row(1, 1, "copy"));
        let left: Vec<_> = database.engine.definitions().iter().cloned().collect();
        assert_eq!(left.len(), 2, "{left:?}");
    });
}

/// A rebuilt table has only the newest versions. A read with an older snapshot fails, rather than
/// return wrong rows or none.
#[test]
fn a_snapshot_older_than_a_table_that_was_made_anew_is_refused() {
    let world = World::new(7, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        for name in ["indexed", "copied", "copy", "emptied", "renamed"] {
            let definition = store::TableDefinition {
                name: named(name),
                ..accounts()
            };
            database.engine.create_table(definition).await.unwrap();
            let mut txn = database.begin(Isolation::RepeatableRead);
            txn.insert(&database.table(name), &row(1, 1, name))
                .await
                .unwrap();
            txn.commit().await.unwrap();
        }
        let mut old = database.begin(Isolation::RepeatableRead);
        let before = old.scan(&database.table("renamed"), all()).await.unwrap();
        let definition = |name| store::TableDefinition::clone(database.table(name).definition());
        let engine = &database.engine;
        let mut indexed = definition("indexed");
        indexed
            .indexes
            .push(index("balance", Uniqueness::None, &[1]));
        engine.alter_table(indexed, None).await.unwrap();
        let (copied, copy) = (definition("copied").id, definition("copy").id);
        let taken = engine.replace_table(copied, copy, named("indexed")).await;
        assert_eq!(taken, Err(StoreError::TableExists));
        let placed = engine.replace_table(copied, copy, named("placed"));
        placed.await.unwrap();
        engine
            .truncate_table(definition("emptied").id)
            .await
            .unwrap();
        let renames = vec![(definition("renamed").id, named("other"))];
        engine.rename_tables(renames).await.unwrap();
        let mut fresh = database.begin(Isolation::RepeatableRead);
        let by_index = ScanOptions {
            index: Some(1),
            ..all()
        };
        for (name, by, rows) in [
            ("indexed", by_index, 1),
            ("placed", all(), 1),
            ("emptied", all(), 0),
        ] {
            let table = database.table(name);
            let refused = old.scan(&table, by.clone()).await;
            assert_eq!(refused, Err(StoreError::SnapshotTooOld), "{name}");
            assert_eq!(fresh.scan(&table, by).await.unwrap().len(), rows);
        }
        let by_rows = old.scan(&database.table("indexed"), all()).await.unwrap();
        assert_eq!(by_rows.len(), 1, "the rows are what they were");
        let after = old.scan(&database.table("other"), all()).await.unwrap();
        assert_eq!(after, before, "a name changes no rows");
    });
}

fn named(table: &str) -> store::TableName {
    store::TableName {
        database: "test".to_owned(),
        table: table.to_owned(),
    }
}

/// Large rows come few at a time, however many were asked for. A caller that reads no column gets
/// none.
#[test]
fn large_rows_are_fetched_one_by_one() {
    let world = World::new(8, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let large = "x".repeat(700_000);
        let mut txn = database.begin(Isolation::RepeatableRead);
        for id in 0..4 {
            txn.insert(&accounts, &row(id, 0, &large)).await.unwrap();
        }
        let mut sizes = Vec::new();
        for columns in [None, Some(Rc::from([]))] {
            let look = |batch: &RowBatch| {
                sizes.push((batch.len(), batch.row_bytes() / large.len()));
                Ok(())
            };
            let options = ScanOptions { columns, ..all() };
            txn.fetch_all(&accounts, options, 64, look).await.unwrap();
        }
        // Two rows are more than a fetch returns; counting them returns no bytes of them.
        assert_eq!(sizes, [(2, 2), (2, 2), (0, 0), (4, 0)]);
        txn.commit().await.unwrap();
    });
}

/// A transaction puts an entry back that another has deleted, returns to its savepoint, and sees by
/// its older snapshot the row that had the entry.
#[test]
fn a_savepoint_leaves_entries_of_older_versions_visible() {
    let world = World::new(9, WorldOptions::default());
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
        let mut first = database.begin(Isolation::RepeatableRead);
        first.insert(&accounts, &row(1, 4, "")).await.unwrap();
        first.commit().await.unwrap();
        let by_balance = || ScanOptions {
            index: Some(1),
            ..all()
        };
        let mut older = database.begin(Isolation::RepeatableRead);
        let seen = older.scan(&accounts, by_balance()).await.unwrap();
        let mut other = database.begin(Isolation::RepeatableRead);
        other
            .update(&accounts, &seen[0].0, &row(1, 5, ""))
            .await
            .unwrap();
        other.commit().await.unwrap();
        let mark = older.txn.mark();
        older
            .update(&accounts, &seen[0].0, &row(1, 4, "back"))
            .await
            .unwrap();
        sim::rows::until_done(|| older.txn.rollback_to(mark))
            .await
            .unwrap();
        for options in [all(), by_balance()] {
            assert_eq!(older.scan(&accounts, options).await.unwrap(), seen);
        }
        older.commit().await.unwrap();
    });
}

/// An undo record must fit into a page, however many index entries a change removes. The keys of
/// eight are longer than a page here. Those of 120 are longer than a record's length field can say.
#[test]
fn rows_with_more_entries_than_an_undo_page_holds_come_and_go() {
    for index_count in [8, 120] {
        let options = WorldOptions {
            // Undoing a change needs the leaves of all its entries in memory.
            frame_count: 2048,
            ..WorldOptions::default()
        };
        let world = World::new(10, options);
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            let mut indexes = vec![index("PRIMARY", Uniqueness::Primary, &[0])];
            for number in 0..index_count {
                let mut by_note = index(&format!("by_note_{number}"), Uniqueness::None, &[2]);
                by_note.parts[0].prefix_length = Some(600);
                indexes.push(by_note);
            }
            let columns = vec![big("id"), big("balance"), blob("note")];
            let definition = table("wide", columns, indexes);
            database.engine.create_table(definition).await.unwrap();
            let wide = database.table("wide");
            let empty = database.engine.check().await.unwrap();
            // A loop without end would fill the disk.
            let capacity = inner.disk.used_bytes() + (32 << 20);
            inner.disk.set_capacity(capacity);
            let note = |letter: &str| letter.repeat(650);
            let mut txn = database.begin(Isolation::RepeatableRead);
            for (id, letter) in (0..).zip(["a", "b", "c", "d", "e", "f"]) {
                txn.insert(&wide, &row(id, 0, &note(letter))).await.unwrap();
            }
            txn.commit().await.unwrap();
            let rows = txn.scan(&wide, all()).await.unwrap();
            let (first, second) = (rows[0].0.clone(), rows[1].0.clone());
            let mut undone = database.begin(Isolation::RepeatableRead);
            let new = row(0, 0, &note("x"));
            undone.update(&wide, &first, &new).await.unwrap();
            undone.delete(&wide, &second).await.unwrap();
            undone.rollback().await.unwrap();
            let report = database.engine.check().await.unwrap();
            assert_eq!((report.row_count, report.faults), (6, vec![]));
            txn.update(&wide, &first, &new).await.unwrap();
            txn.delete(&wide, &second).await.unwrap();
            txn.commit().await.unwrap();
            let report = database.engine.check().await.unwrap();
            assert_eq!((report.row_count, report.faults), (5, vec![]));
            for (key, _) in txn.scan(&wide, all()).await.unwrap() {
                txn.delete(&wide, &key).await.unwrap();
            }
            txn.commit().await.unwrap();
            let report = database.engine.check().await.unwrap();
            // Purge has found every entry: no tree has more than its root, except for a page here
            // or there whose neighbour was busy.
            assert_eq!((report.row_count, report.faults), (0, vec![]));
            assert!(report.page_count < empty.page_count + 4);
        });
    }
}

/// Number of tablespace files.
fn spaces(world: &World) -> usize {
    let is_space = |name: &&PathBuf| name.extension().is_some_and(|end| end == "pdb");
    world.files().iter().filter(is_space).count()
}

/// A crash in the middle of CREATE TABLE leaves a file. The next life removes it, makes a table,
/// and crashes as well. Redo must leave that table alone, because it is another one.
#[test]
fn the_id_of_a_table_that_was_half_made_is_not_used_again() {
    let options = WorldOptions {
        // Nothing is cleaned for lack of room, so the log is redone from far back.
        frame_count: 512,
        ..WorldOptions::default()
    };
    let world = World::new(11, options);
    let (inner, before) = (world.clone(), world.clone());
    let database = world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut loser = database.begin(Isolation::RepeatableRead);
        loser.insert(&accounts, &row(1, 1, "lost")).await.unwrap();
        Box::leak(Box::new(loser));
        let mut txn = database.begin(Isolation::RepeatableRead);
        txn.insert(&accounts, &row(2, 2, "kept")).await.unwrap();
        txn.commit().await.unwrap();
        database
    });
    let other = || store::TableDefinition {
        name: named("other"),
        ..accounts()
    };
    let count = spaces(&before);
    before.executor.spawn(async move {
        let _ = database.engine.create_table(other()).await;
    });
    while spaces(&before) == count {
        before.executor.run_steps(1);
    }
    let world = world.crash();
    assert_eq!(
        spaces(&world),
        count + 1,
        "the file is there, its table is not"
    );
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        assert_eq!(spaces(&inner), count);
        database.engine.create_table(other()).await.unwrap();
        let mut txn = database.begin(Isolation::RepeatableRead);
        let table = database.table("other");
        txn.insert(&table, &row(3, 3, "new")).await.unwrap();
        txn.commit().await.unwrap();
    });
    let world = world.crash();
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let mut txn = database.begin(Isolation::RepeatableRead);
        for (name, kept) in [("accounts", row(2, 2, "kept")), ("other", row(3, 3, "new"))] {
            let rows = txn.scan(&database.table(name), all()).await.unwrap();
            assert_eq!(rows.len(), 1, "{name}");
            assert_eq!(rows[0].1, kept);
        }
    });
}

/// A change of a tablespace may stand in the log after the note that it was dropped, with a
/// checkpoint between both and its file gone.
#[test]
fn log_on_a_file_that_is_gone_does_not_keep_the_directory_closed() {
    let world = World::new(12, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        txn.insert(&accounts, &row(1, 1, "kept")).await.unwrap();
        txn.commit().await.unwrap();
        let (pages, space) = (database.engine.pages(), SpaceId(5000));
        let pool = pages.pool();
        pool.create_space(&inner.disk, space).await.unwrap();
        let end = sim::rows::until_done(|| {
            let mut change = pages.change()?;
            change.create(PageId::new(space, PageNo(0)), PageType::Meta)?;
            Ok(change.commit())
        });
        let end = end.await.unwrap();
        pages.wait_log(end, LogLevel::Durable).await.unwrap();
        inner.disk.remove(Path::new("data/space_5000.pdb")).unwrap();
        inner.disk.sync_directory(Path::new("data")).unwrap();
    });
    let world = world.crash();
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let mut txn = database.begin(Isolation::RepeatableRead);
        let rows = txn.scan(&database.table("accounts"), all()).await.unwrap();
        assert_eq!(rows[0].1, row(1, 1, "kept"));
    });
}

/// A table's file may be put back after a start that has missed it.
#[test]
fn a_start_that_misses_a_file_of_a_table_changes_nothing() {
    let world = World::new(13, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(accounts()).await.unwrap();
        let accounts = database.table("accounts");
        let mut txn = database.begin(Isolation::RepeatableRead);
        txn.insert(&accounts, &row(1, 1, "kept")).await.unwrap();
        txn.commit().await.unwrap();
    });
    let mut world = world.crash();
    let path = PathBuf::from("data/space_1025.pdb");
    let away = PathBuf::from("data/elsewhere");
    world.disk.rename(&path, &away).unwrap();
    world.disk.sync_directory(Path::new("data")).unwrap();
    for _ in 0..2 {
        let inner = world.clone();
        let refused = world.run(async move { inner.open().await.err() });
        let Some(StoreError::Damaged { what, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(what, "the file of tablespace 1025 is missing");
        world = world.crash();
    }
    world.disk.rename(&away, &path).unwrap();
    world.disk.sync_directory(Path::new("data")).unwrap();
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let mut txn = database.begin(Isolation::RepeatableRead);
        let rows = txn.scan(&database.table("accounts"), all()).await.unwrap();
        assert_eq!(rows[0].1, row(1, 1, "kept"));
    });
}

/// The first start with more workers was interrupted while it made an undo segment. The segment's
/// file has room and no page, and has no owner when fewer workers run the check.
#[test]
fn an_undo_segment_that_was_half_made_is_no_damage() {
    let world = World::new(21, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        inner.open().await.unwrap().close().await.unwrap();
        let path = Path::new("data/space_2.pdb");
        let options = env::OpenOptions {
            write: true,
            create: true,
            exclusive: true,
            access: env::FileAccess::Direct,
        };
        let file = inner.disk.open(path, options).unwrap();
        inner.disk.allocate(&file, 8 * 4096).unwrap();
    });
    world.executor.clear();
    let inner = world.clone();
    let report = world.run(async move { inner.open().await.unwrap().check().await.unwrap() });
    assert_eq!(report.faults, Vec::<String>::new());
}

/// A process was killed between making an undo segment's file and syncing its name. The next one
/// uses the file, and a loss of power behind that loses neither file nor commits.
#[test]
fn a_file_whose_name_was_not_synced_is_kept_by_the_next_start() {
    for seed in 0..8 {
        let world = World::new(seed, WorldOptions::default());
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            database.engine.create_table(accounts()).await.unwrap();
            database.close().await.unwrap();
        });
        world.executor.clear();
        let world = world.with_options(WorldOptions {
            worker_count: 2,
            ..WorldOptions::default()
        });
        let opening = world.clone();
        world.executor.spawn(async move {
            let _ = opening.open().await;
        });
        let second = Path::new("space_2.pdb");
        while !world.files().iter().any(|name| name == second) {
            world.executor.run_steps(1);
        }
        let world = world.kill();
        // The file is made again, and its name not synced.
        let path = Path::new("data/space_2.pdb");
        world.disk.remove(path).unwrap();
        world.disk.sync_directory(Path::new("data")).unwrap();
        let options = env::OpenOptions {
            write: true,
            create: true,
            exclusive: true,
            access: env::FileAccess::Direct,
        };
        world.disk.open(path, options).unwrap();
        let world = world.kill();
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            let second = database.on(1);
            let mut txn = second.begin(Isolation::RepeatableRead);
            let table = second.table("accounts");
            txn.insert(&table, &row(1, 1, "kept")).await.unwrap();
            txn.commit().await.unwrap();
        });
        let world = world.crash();
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.expect("no file is lost");
            let mut txn = database.begin(Isolation::RepeatableRead);
            let rows = txn.scan(&database.table("accounts"), all()).await.unwrap();
            assert_eq!(rows[0].1, row(1, 1, "kept"), "seed {seed}");
        });
    }
}
