//! Ranges that are sought together, and keys that are looked up together, find what each finds
//! alone.

#![forbid(unsafe_code)]

use std::rc::Rc;

use sim::rows::{Session, accounts, all, index, row, until_done};
use sim::{Database, World, WorldOptions};
use store::{
    Direction, FETCH_BYTES_MAX, Fetched, Interrupt, Isolation, KeyBound, KeyRange, RowBatch,
    RowKey, RowLock, ScanOptions, SchemaStore, Table, Uniqueness, WaitReason,
};
use value::Value;

/// Accounts 1 to 200 without every seventh; the balance is the last digit.
async fn filled(world: &World) -> (Database, Rc<dyn Table>) {
    let database = world.open().await.expect("a new directory opens");
    let mut definition = accounts();
    let by_balance = index("by_balance", Uniqueness::None, &[1]);
    definition.indexes.push(by_balance);
    let created = database.engine.create_table(definition).await;
    created.expect("a new table");
    let table = database.table("accounts");
    let mut writer = database.begin(Isolation::RepeatableRead);
    for id in (1..=200).filter(|id| id % 7 != 0) {
        let inserted = writer.insert(&table, &row(id, id % 10, "")).await;
        inserted.expect("nothing is in the way");
    }
    writer.commit().await.expect("it is the only one");
    (database, table)
}

/// The ids of the rows of each range.
async fn sought(
    (session, table): (&mut Session, &Rc<dyn Table>),
    options: ScanOptions,
    ranges: &[KeyRange],
    limit: usize,
) -> Vec<Vec<Value>> {
    let mut cursor = table.scan(options);
    cursor.seek(ranges);
    let mut batch = RowBatch::new(table.layout().clone());
    let mut found = vec![Vec::new()];
    loop {
        batch.clear();
        let fetch = || cursor.fetch(&mut *session.txn, limit, &mut batch);
        let fetched = until_done(fetch).await.expect("rows");
        let mut ends = batch.range_ends().iter().peekable();
        for place in 0..=batch.len() {
            while ends.next_if_eq(&&place).is_some() {
                found.push(Vec::new());
            }
            if place < batch.len() {
                let id = batch.column(place, 0).expect("it decodes").to_value();
                found.last_mut().expect("a range is read").push(id);
            }
        }
        if fetched == Fetched::End {
            return found;
        }
    }
}

#[test]
fn ranges_that_are_sought_together_have_the_rows_that_each_has_alone() {
    let world = World::new(1, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let (database, table) = filled(&inner).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        let key = |number: i64| vec![Value::Int(number)];
        let ranges = [
            KeyRange::equal(key(7)),
            KeyRange::equal(key(3)),
            KeyRange::equal(key(3)),
            KeyRange {
                lower: KeyBound::Exclusive(key(4)),
                upper: KeyBound::Inclusive(key(6)),
            },
            KeyRange::equal(key(5000)),
            KeyRange {
                lower: KeyBound::Open,
                upper: KeyBound::Exclusive(key(2)),
            },
            KeyRange::equal(key(70)),
        ];
        for index in [0, 1] {
            for direction in [Direction::Forward, Direction::Backward] {
                for lock in [RowLock::None, RowLock::Exclusive] {
                    let options = ScanOptions {
                        index: Some(index),
                        direction,
                        lock,
                        ..all()
                    };
                    let mut alone = Vec::new();
                    for range in &ranges {
                        let one = std::slice::from_ref(range);
                        let of = (&mut session, &table);
                        alone.extend(sought(of, options.clone(), one, 10).await);
                    }
                    for limit in [1, 2, 64, 1000] {
                        let of = (&mut session, &table);
                        let together = sought(of, options.clone(), &ranges, limit).await;
                        assert_eq!(together, alone, "{options:?} by {limit}");
                    }
                    let of = (&mut session, &table);
                    assert_eq!(sought(of, options, &[], 10).await, [Vec::new()]);
                }
            }
        }
    });
}

#[test]
fn keys_that_are_looked_up_together_have_a_range_each() {
    let world = World::new(1, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let (database, table) = filled(&inner).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        let rows = session.scan(&table, all()).await.expect("rows");
        let missing = [0xff; 8].to_vec();
        let keys = [&rows[5].0, &missing, &rows[2].0, &rows[5].0];
        let keys = keys.map(|key| RowKey(key));
        for lock in [RowLock::None, RowLock::Shared, RowLock::Exclusive] {
            let mut batch = RowBatch::new(table.layout().clone());
            let look = || table.lookup(&mut *session.txn, &keys, lock, &mut batch);
            until_done(look).await.expect("rows");
            assert_eq!(batch.range_ends(), [1, 1, 2, 3], "{lock:?}");
            let found: Vec<_> = (0..batch.len()).map(|place| batch.key(place)).collect();
            assert_eq!(found, [keys[0], keys[2], keys[3]], "{lock:?}");
        }
    });
}

/// Looks up the keys. Returns the batch, and how often the call has given way.
async fn looked_up(
    (session, table): (&mut Session, &Rc<dyn Table>),
    keys: &[RowKey<'_>],
) -> (RowBatch, usize) {
    let mut batch = RowBatch::new(table.layout().clone());
    let mut turns = 0;
    loop {
        match table.lookup(&mut *session.txn, keys, RowLock::Exclusive, &mut batch) {
            Ok(()) => return (batch, turns),
            Err(Interrupt::Suspend(suspend)) => {
                turns += usize::from(suspend.reason() == WaitReason::Turn);
                suspend.await;
            }
            Err(Interrupt::Error(error)) => panic!("{error}"),
        }
    }
}

#[test]
fn a_lookup_of_many_keys_gives_way_and_goes_on() {
    let world = World::new(1, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let (database, table) = filled(&inner).await;
        let mut session = database.begin(Isolation::RepeatableRead);
        let rows = session.scan(&table, all()).await.expect("rows");
        let keys: Vec<_> = rows.iter().map(|(key, _)| RowKey(key)).collect();
        for (count, expected) in [(1, 0), (63, 0), (64, 0), (65, 1), (150, 2)] {
            let of = (&mut session, &table);
            let (batch, turns) = looked_up(of, &keys[..count]).await;
            assert_eq!((batch.len(), turns), (count, expected), "{count} keys");
        }
    });
}

#[test]
fn a_lookup_ends_early_when_rows_are_large() {
    let world = World::new(1, WorldOptions::default());
    let inner = world.clone();
    world.run(async move {
        let (database, table) = filled(&inner).await;
        let mut writer = database.begin(Isolation::RepeatableRead);
        let text = "x".repeat(LARGE_BYTES);
        for id in 1001..=1000 + LARGE_COUNT {
            let inserted = writer.insert(&table, &row(id, 1, &text)).await;
            inserted.expect("nothing is in the way");
        }
        writer.commit().await.expect("it is the only one");
        let mut session = database.begin(Isolation::RepeatableRead);
        let rows = session.scan(&table, all()).await.expect("rows");
        let keys: Vec<_> = rows.iter().map(|(key, _)| RowKey(key)).collect();
        let large = &keys[keys.len() - 30..];
        let (batch, _) = looked_up((&mut session, &table), large).await;
        // The one that passes the limit is the last.
        let expected = FETCH_BYTES_MAX.div_ceil(LARGE_BYTES);
        assert_eq!(batch.range_ends().len(), expected);
        let (batch, _) = looked_up((&mut session, &table), &large[expected..]).await;
        assert_eq!(batch.len(), large.len() - expected);
    });
}

/// So that the limit of a call is passed within a few rows, and not met exactly.
const LARGE_BYTES: usize = 60_000;

/// Twice as many as one call returns, or less.
const LARGE_COUNT: i64 = 30;
