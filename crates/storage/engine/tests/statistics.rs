//! Statistics of tables: measured ranges, counted and sampled distinct values, kept over a crash,
//! renewed in the background after a tenth of the rows has changed.

#![forbid(unsafe_code)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sim::poll_at_most;
use sim::rows::{accounts, index, row};
use sim::{Database, World, WorldOptions};
use store::{
    Isolation, KeyBound, KeyRange, SchemaStore, Store, Table, TableDefinition, Uniqueness,
};
use sync::atomic::{AtomicU64, Ordering};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use value::Value;

/// Accounts with an index on their balance.
fn definition() -> TableDefinition {
    let mut definition = accounts();
    let by_balance = index("by_balance", Uniqueness::None, &[1]);
    definition.indexes.push(by_balance);
    definition
}

/// Rows of the given numbers; the balance is one of so many.
async fn fill(database: &Database, ids: std::ops::Range<i64>, balances: i64) -> Rc<dyn Table> {
    let table = database.table("accounts");
    let mut txn = database.begin(Isolation::RepeatableRead);
    for id in ids {
        let inserted = txn.insert(&table, &row(id, id % balances, "note")).await;
        inserted.expect("no other is there");
    }
    txn.commit().await.expect("the disk is whole");
    table
}

fn options() -> WorldOptions {
    WorldOptions {
        frame_count: 2048,
        ..WorldOptions::default()
    }
}

#[test]
fn small_indexes_are_counted_and_large_ones_sampled() {
    for (rows, balances, is_counted) in [(500, 7, true), (20_000, 7, true), (20_000, 900, false)] {
        let world = World::new(40, options());
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            database.engine.create_table(definition()).await.unwrap();
            let table = fill(&database, 0..rows, balances).await;
            let id = table.definition().id;
            database.engine.renew_statistics(id).await.unwrap();
            let statistics = table.statistics();
            assert_eq!(statistics.row_count, rows.unsigned_abs());
            assert_eq!(statistics.distinct[0], [rows.unsigned_abs()]);
            let (found, exact) = (statistics.distinct[1][0], balances.unsigned_abs());
            if is_counted {
                assert_eq!(found, exact);
            } else {
                assert!(exact / 3 < found && found < exact * 3, "{found} of {exact}");
            }
            assert!(0 < statistics.data_bytes && 0 < statistics.index_bytes);
        });
    }
}

#[test]
fn ranges_are_measured() {
    let world = World::new(41, options());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(definition()).await.unwrap();
        let table = fill(&database, 0..3000, 10).await;
        let below = |bound: i64| KeyRange {
            lower: KeyBound::Open,
            upper: KeyBound::Exclusive(vec![Value::Int(bound)]),
        };
        let ranges = [
            below(10),
            below(-5),
            KeyRange::equal(vec![Value::Int(2999)]),
        ];
        let measured = sim::rows::until_done(|| table.measure(0, &ranges)).await;
        assert_eq!(measured, Ok(Some(vec![10, 0, 1])));
        let ranges = [KeyRange::equal(vec![Value::Int(3)])];
        let measured = sim::rows::until_done(|| table.measure(1, &ranges)).await;
        assert_eq!(measured, Ok(Some(vec![300])));
    });
}

#[test]
fn statistics_outlive_a_crash_and_a_truncated_table_has_none() {
    let world = World::new(42, options());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(definition()).await.unwrap();
        let table = fill(&database, 0..2000, 4).await;
        let id = table.definition().id;
        database.engine.renew_statistics(id).await.unwrap();
    });
    let world = world.crash();
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let table = database.table("accounts");
        let statistics = table.statistics();
        assert_eq!(statistics.row_count, 2000);
        assert_eq!(statistics.distinct[1], [4]);
        let report = database.check().await.expect("everything can be read");
        assert_eq!(report.faults, Vec::<String>::new());
        let id = table.definition().id;
        database.engine.truncate_table(id).await.unwrap();
    });
    let world = world.crash();
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        let statistics = database.table("accounts").statistics();
        assert_eq!(statistics.data_bytes, 0);
        assert!(statistics.row_count < 10);
    });
}

/// TRUNCATE drops the trees while they are sampled. That is no damage, and none is told.
#[test]
fn a_table_that_is_truncated_meanwhile_is_not_damaged() {
    let errors = Errors::default();
    let count = Arc::clone(&errors.0);
    let story = || {
        let world = World::new(44, options());
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.unwrap();
            database.engine.create_table(definition()).await.unwrap();
            let id = fill(&database, 0..20_000, 7).await.definition().id;
            let mut renewing = database.engine.renew_statistics(id);
            assert_eq!(poll_at_most(1, renewing.as_mut()).await, None);
            database.engine.truncate_table(id).await.unwrap();
            renewing.await.unwrap();
            database.sleep(Duration::from_secs(2)).await;
        });
    };
    tracing::subscriber::with_default(errors, story);
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

/// Counts what the log would have as an error.
#[derive(Debug, Default)]
struct Errors(Arc<AtomicU64>);

impl Subscriber for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn the_background_renews_them_after_a_tenth_of_the_rows_has_changed() {
    let world = World::new(43, options());
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.unwrap();
        database.engine.create_table(definition()).await.unwrap();
        let table = fill(&database, 0..4000, 5).await;
        let rest = || inner.executor.clock().sleep(Duration::from_secs(3));
        rest().await;
        let version = database.engine.statistics_version();
        assert_ne!(version, 0, "nothing was known before");
        assert_eq!(table.statistics().distinct[1], [5]);
        // Fewer than a tenth.
        fill(&database, 4000..4300, 50).await;
        rest().await;
        assert_eq!(table.statistics().distinct[1], [5]);
        fill(&database, 4300..4500, 50).await;
        rest().await;
        assert_eq!(table.statistics().distinct[1], [50]);
        assert_ne!(database.engine.statistics_version(), version);
    });
}
