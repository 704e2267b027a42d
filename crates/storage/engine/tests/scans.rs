//! Scans of tables that are larger than the pool: what they leave in memory, and how they read.

#![forbid(unsafe_code)]

use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use env::sim::poll_at_most;
use format::PageSize;
use sim::rows::{Row, Session, accounts, all, row, until_done};
use sim::{Database, World, WorldOptions};
use store::{
    Cursor, Direction, Fetched, Inserted, Interrupt, Isolation, KeyBound, KeyRange, RowBatch,
    SchemaStore, StoreError, Suspend, Table, WaitReason,
};

/// Frames of the pool, and rows of which a leaf has some seven: four pools.
const FRAMES: u32 = 128;
const ROW_COUNT: i64 = 3500;
const LEAF_ROWS_MAX: usize = 8;
/// Leaves that one wait reads ahead at most in this pool.
const WINDOW: u64 = 8;
/// Inner pages of the tree, and pages of the dictionary, at most.
const OTHER_PAGES: u64 = 8;
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

/// A scan of a table four times the pool costs the hot set next to no page.
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

/// A scan that is fetched from step by step.
struct Steps {
    session: Session,
    cursor: Box<dyn Cursor>,
    batch: RowBatch,
}

impl Steps {
    fn new(database: &Database, table: &Rc<dyn Table>, direction: Direction) -> Self {
        let mut options = all();
        options.direction = direction;
        Self {
            session: begin(database),
            cursor: table.scan(options),
            batch: RowBatch::new(table.layout().clone()),
        }
    }

    /// The next row, or a wait for it; the keys of rows are collected in `keys`.
    fn step(&mut self, keys: &mut Vec<Vec<u8>>) -> Result<Fetched, Interrupt> {
        self.batch.clear();
        let txn = &mut *self.session.txn;
        let fetched = self.cursor.fetch(txn, 1, &mut self.batch);
        keys.extend((0..self.batch.len()).map(|at| self.batch.key(at).0.to_vec()));
        fetched
    }

    /// Goes on until the scan waits for pages, the `nth` time.
    async fn until_miss(&mut self, nth: usize) -> Suspend {
        let (mut misses, mut keys) = (0, Vec::new());
        loop {
            match self.step(&mut keys) {
                Ok(Fetched::More) => {}
                Ok(Fetched::End) => panic!("the scan has fewer waits"),
                Err(Interrupt::Error(error)) => panic!("{error}"),
                Err(Interrupt::Suspend(wait)) => {
                    misses += usize::from(wait.reason() == WaitReason::PageMiss);
                    if misses == nth {
                        return wait;
                    }
                    wait.await;
                }
            }
        }
    }

    /// The keys up to the end or the first error.
    async fn rest(&mut self) -> (Vec<Vec<u8>>, Result<(), StoreError>) {
        let mut keys = Vec::new();
        loop {
            match until_done(|| self.step(&mut keys)).await {
                Ok(Fetched::More) => {}
                Ok(Fetched::End) => return (keys, Ok(())),
                Err(error) => return (keys, Err(error)),
            }
        }
    }
}

/// Whoever stops early, as at a LIMIT, has read at most as many pages in vain as were of use, and
/// never more than a window.
#[test]
fn a_scan_that_stops_has_read_little_in_vain() {
    for direction in [Direction::Forward, Direction::Backward] {
        let (world, _) = filled(33);
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.expect("it opens");
            let table = database.table("accounts");
            let read = || database.engine.pages().pool().pages_read();
            let start = read();
            let mut steps = Steps::new(&database, &table, direction);
            let (mut keys, mut before) = (Vec::new(), start);
            while keys.len() < 1000 {
                match steps.step(&mut keys) {
                    Err(Interrupt::Suspend(wait)) => wait.await,
                    fetched => assert_eq!(fetched.ok(), Some(Fetched::More)),
                }
                let now = read();
                // The awaited page comes with them, and background work may read one, too.
                assert!(now - before <= WINDOW + 2, "{} at a time", now - before);
                before = now;
                // Each leaf has some seven rows, the first and the last perhaps fewer.
                let used = u64::try_from(keys.len() / 6 + 2).expect("they are few");
                let most = (2 * used).min(used + WINDOW) + OTHER_PAGES;
                let so_far = now - start;
                assert!(so_far <= most, "{so_far} pages for {} rows", keys.len());
            }
        });
    }
}

/// A damaged leaf is no error before the scan comes to it.
#[test]
fn a_scan_returns_what_stands_before_a_damaged_leaf() {
    let (world, rows) = filled(34);
    world
        .disk
        .damage(&world.newest_table_file(), 300 * 4096 + 64, 1);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("it opens");
        let table = database.table("accounts");
        let mut counts = 0;
        for direction in [Direction::Forward, Direction::Backward] {
            let mut steps = Steps::new(&database, &table, direction);
            let (keys, end) = steps.rest().await;
            assert!(matches!(end, Err(StoreError::Damaged { .. })), "{end:?}");
            let expected = rows.iter().map(|(key, _)| key.clone());
            let expected: Vec<Vec<u8>> = match direction {
                Direction::Forward => expected.take(keys.len()).collect(),
                Direction::Backward => expected.rev().take(keys.len()).collect(),
            };
            assert_eq!(keys, expected);
            assert!(700 < keys.len(), "the leaf is far from both ends");
            counts += keys.len();
        }
        let lost = rows.len() - counts;
        assert!((1..=LEAF_ROWS_MAX).contains(&lost), "{lost} rows of a leaf");
    });
}

/// The scan's table is dropped while reads are under way: they end, and their frames are free.
#[test]
fn reads_of_a_dropped_table_end() {
    for is_polled_later in [true, false] {
        let (world, _) = filled(35);
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.expect("it opens");
            let table = database.table("accounts");
            let mut steps = Steps::new(&database, &table, Direction::Forward);
            let wait = steps.until_miss(6).await;
            let mut wait = Box::pin(wait);
            assert!(poll_at_most(1, wait.as_mut()).await.is_none(), "it reads");
            let dropped = database.engine.drop_table(table.definition().id).await;
            assert_eq!(dropped, Ok(()));
            if is_polled_later {
                wait.await;
                let (_, end) = steps.rest().await;
                assert!(matches!(end, Err(StoreError::Damaged { .. })), "{end:?}");
            } else {
                drop(wait);
            }
            drop(steps);
            // A table as large as the pool has room.
            let created = database.engine.create_table(accounts()).await;
            assert!(created.is_ok());
            let table = database.table("accounts");
            let mut txn = begin(&database);
            for id in 0..900 {
                let done = txn.insert(&table, &row(id, 0, &"x".repeat(500))).await;
                assert_eq!(done, Ok(Inserted::Done));
            }
            assert_eq!(txn.commit().await, Ok(()));
            assert_eq!(database.close().await, Ok(()));
        });
    }
}

/// A session that ends in the wait gives its reads up; others read the pages themselves, and the
/// server can end.
#[test]
fn a_server_ends_while_pages_are_read_ahead() {
    let (world, rows) = filled(36);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("it opens");
        let table = database.table("accounts");
        for _ in 0..FRAMES {
            let mut steps = Steps::new(&database, &table, Direction::Forward);
            let wait = steps.until_miss(5).await;
            assert!(poll_at_most(1, Box::pin(wait).as_mut()).await.is_none());
        }
        let all_rows = begin(&database).scan(&table, all()).await;
        assert_eq!(all_rows.as_deref(), Ok(rows.as_slice()));
        let mut steps = Steps::new(&database, &table, Direction::Backward);
        let mut wait = Box::pin(steps.until_miss(5).await);
        assert!(poll_at_most(1, wait.as_mut()).await.is_none(), "it reads");
        drop(wait);
        drop(steps);
        assert_eq!(database.close().await, Ok(()));
    });
}

/// Files are open already: a scan needs no descriptor.
#[test]
fn a_scan_reads_ahead_without_descriptors() {
    let (world, _) = filled(37);
    let inner = world.clone();
    world.run(async move {
        let database = inner.open().await.expect("it opens");
        let table = database.table("accounts");
        inner.disk.take_descriptors();
        for direction in [Direction::Forward, Direction::Backward] {
            assert_eq!(scan(&database, &table, direction).await, ROW_COUNT);
        }
        inner.disk.give_descriptors();
    });
}

/// Scans that go on at once, each of a part of the table.
const SCANS: usize = 35;
/// Pages that they read: half as many again as the 535 leaves of their parts.
const PART_PAGES_MAX: u64 = 800;

/// Many scans at once do not push out each other's pages before their use.
#[test]
fn many_scans_at_once_read_each_page_about_once() {
    for direction in [Direction::Forward, Direction::Backward] {
        let (world, rows) = filled(38);
        let inner = world.clone();
        world.run(async move {
            let database = inner.open().await.expect("it opens");
            let table = database.table("accounts");
            let pool = database.engine.pages().pool();
            let before = pool.pages_read();
            let part = rows.len() / SCANS;
            let scan = |number: usize| {
                let bound = |at: usize| KeyBound::Inclusive(vec![rows[at].1[0].clone()]);
                let mut options = all();
                options.range = KeyRange {
                    lower: bound(number * part),
                    upper: bound(number * part + part - 1),
                };
                options.direction = direction;
                let (database, table) = (&database, &table);
                async move {
                    let found = begin(database).scan(table, options).await;
                    assert_eq!(found.map(|rows| rows.len()), Ok(part));
                }
            };
            let mut scans: Vec<_> = (0..SCANS).map(scan).map(Box::pin).collect();
            poll_fn(|context| {
                scans.retain_mut(|scan| scan.as_mut().poll(context).is_pending());
                match scans.is_empty() {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            })
            .await;
            let pages = pool.pages_read() - before;
            assert!(pages <= PART_PAGES_MAX, "{pages} pages");
        });
    }
}
