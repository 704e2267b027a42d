//! Scans of tables that are larger than the pool: what they leave in memory, and how they read.

#![forbid(unsafe_code)]

use std::rc::Rc;

use format::PageSize;
use sim::rows::{Row, Session, accounts, all, row};
use sim::{Database, World, WorldOptions};
use store::{Direction, Inserted, Isolation, KeyBound, KeyRange, SchemaStore, Table};

/// Frames of the pool, and rows of which a leaf has some seven.
const FRAMES: u32 = 128;
const ROW_COUNT: i64 = 3500;
/// Rows that are read again and again: some forty leaves.
const HOT_COUNT: usize = 280;

fn options() -> WorldOptions {
    WorldOptions {
        frame_count: FRAMES,
        page_size: PageSize::KiB4,
        ..WorldOptions::default()
    }
}

fn begin(database: &Database) -> Session {
    database.begin(Isolation::RepeatableRead)
}

/// A database with the rows, none of which is in memory, and the rows.
fn filled(seed: u64) -> (World, Vec<Row>) {
    let world = World::new(seed, options());
    let inner = world.clone();
    let rows = world.run(async move {
        let database = inner.open().await.expect("a new directory is made");
        let created = database.engine.create_table(accounts()).await;
        assert!(created.is_ok());
        let table = database.table("accounts");
        let mut txn = begin(&database);
        for id in 0..ROW_COUNT {
            let done = txn.insert(&table, &row(id, 0, &"x".repeat(500))).await;
            assert_eq!(done, Ok(Inserted::Done));
        }
        assert_eq!(txn.commit().await, Ok(()));
        let rows = begin(&database).scan(&table, all()).await;
        assert_eq!(database.close().await, Ok(()));
        rows.expect("what was written can be read")
    });
    (world.crash(), rows)
}

/// Looks each row up, one after the other. Returns how many pages were read for it.
async fn look_up(database: &Database, table: &Rc<dyn Table>, rows: &[Row]) -> u64 {
    let pool = database.engine.pages();
    let before = pool.pool().pages_read();
    for wanted in rows {
        let mut options = all();
        options.range = KeyRange::equal(vec![wanted.1[0].clone()]);
        let found = begin(database).scan(table, options).await;
        assert_eq!(found.as_deref(), Ok(std::slice::from_ref(wanted)));
    }
    pool.pool().pages_read() - before
}

/// A scan of a table ten times the pool costs the hot set no page.
#[test]
fn a_scan_does_not_push_out_what_is_read_again_and_again() {
    let (world, rows) = filled(31);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("it opens");
        let table = database.table("accounts");
        let hot = &rows[..HOT_COUNT];
        let cold = look_up(&database, &table, hot).await;
        assert!(30 < cold, "{cold} pages: they were not in memory");
        database.engine.pages().end_period();
        assert_eq!(look_up(&database, &table, hot).await, 0, "before the scan");
        for direction in [Direction::Forward, Direction::Backward] {
            let scanned = scan(&database, &table, direction).await;
            assert_eq!(scanned, ROW_COUNT);
            let again = look_up(&database, &table, hot).await;
            assert!(
                again <= cold / 20,
                "{again} of {cold} pages were pushed out"
            );
        }
    });
}

/// Reads all rows. Returns their number.
async fn scan(database: &Database, table: &Rc<dyn Table>, direction: Direction) -> i64 {
    let mut options = all();
    options.direction = direction;
    let rows = begin(database).scan(table, options).await;
    i64::try_from(rows.expect("all can be read").len()).expect("they are few")
}

/// Leaves come several at a time, in both directions. A short range brings in what it needs.
#[test]
fn a_scan_reads_many_leaves_at_a_time() {
    for direction in [Direction::Forward, Direction::Backward] {
        let (world, rows) = filled(32);
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.expect("it opens");
            let table = database.table("accounts");
            let pool = database.engine.pages();
            let counts = || (pool.pool().pages_read(), pool.pool().reads());
            // The rows of a leaf or two, in the middle of the table.
            let before = counts();
            let bound = |at: usize| KeyBound::Inclusive(vec![rows[at].1[0].clone()]);
            let mut short = all();
            short.range = KeyRange {
                lower: bound(1700),
                upper: bound(1705),
            };
            short.direction = direction;
            let few = begin(&database).scan(&table, short).await;
            assert_eq!(few.map(|rows| rows.len()), Ok(6));
            let short_pages = counts().0 - before.0;
            assert!(short_pages <= 8, "{short_pages} pages for six rows");
            let before = counts();
            assert_eq!(scan(&database, &table, direction).await, ROW_COUNT);
            let (pages, reads) = (counts().0 - before.0, counts().1 - before.1);
            assert!(400 < pages, "{pages} pages");
            assert!(reads * 4 < pages, "{reads} reads of {pages} pages");
        });
    }
}
