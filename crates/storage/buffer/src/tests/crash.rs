//! Crashes at random moments: acknowledged changes are there, and no change is there in part.

use std::cell::{Cell, RefCell};

use env::sim::{Faults, seeds};

use super::*;

/// Pages of the tests.
const PAGE_COUNT: u32 = 24;

/// Where a page has its number: in its first sector and in its last one. So a torn write shows.
const PLACES: [u16; 2] = [40, 4080];

/// The most workers of a life. Each has a doublewrite file, and the next life may have fewer.
const WORKER_COUNT_MAX: u64 = 3;

/// The state of a run, kept over crashes.
///
/// Every change writes its number to two pages at the same time. So after a crash there is a last
/// change that is there, and each page must have the number of the last change on it up to that
/// one.
#[derive(Default)]
struct Truth {
    /// Changes in log order: number, end, pages.
    changes: RefCell<Vec<(u64, Lsn, [u32; 2])>>,
    acknowledged: Cell<u64>,
    next: Cell<u64>,
}

/// Writes a number to two pages, and makes pages that are missing.
fn put_pair(pages: &Pages, number: u64, pair: [u32; 2], truth: &Truth) -> Outcome<Lsn> {
    let mut change = pages.change()?;
    for page in pair {
        if truth.exists(page) {
            change.latch(id(page))?;
        } else {
            change.create(id(page), PageType::Meta)?;
        }
    }
    for page in pair {
        let latched = change.latch(id(page))?;
        for offset in PLACES {
            let bytes = &number.to_le_bytes();
            let op = PageOp::BytesPut { offset, bytes };
            change.apply(latched, &op).unwrap();
        }
    }
    let end = change.commit();
    truth.changes.borrow_mut().push((number, end, pair));
    Ok(end)
}

impl Truth {
    fn exists(&self, page: u32) -> bool {
        self.changes
            .borrow()
            .iter()
            .any(|(_, _, pair)| pair.contains(&page))
    }

    /// What page `page` holds after the first `count` changes.
    fn value(&self, page: u32, count: usize) -> Option<u64> {
        let changes = self.changes.borrow();
        let last = changes[..count]
            .iter()
            .rev()
            .find(|(_, _, pair)| pair.contains(&page));
        last.map(|(number, _, _)| *number)
    }
}

async fn client(pages: Rc<Pages>, truth: Rc<Truth>, executor: SimExecutor, seed: u64) {
    let mut random = Random::new(seed);
    let mut page = || u32::try_from(random.index(stdx::to_usize(PAGE_COUNT))).unwrap();
    loop {
        let first = page();
        let pair = [first, (first + 1 + page() % (PAGE_COUNT - 1)) % PAGE_COUNT];
        let number = truth.next.replace(truth.next.get() + 1);
        let Ok(end) = retry(|| put_pair(&pages, number, pair, &truth)).await else {
            return;
        };
        match page() % 4 {
            0 => {
                if durable(&pages, end).await.is_err() {
                    return;
                }
                truth.acknowledged.set(truth.acknowledged.get().max(end.0));
            }
            1 => executor.clock().sleep(TICK).await,
            2 => check(&pages, &truth, first).await,
            _ => {}
        }
    }
}

/// Reads a page in the running pool.
async fn check(pages: &Pages, truth: &Truth, page: u32) {
    let mut read = || {
        let value = truth.value(page, truth.changes.borrow().len());
        Ok((u64_of(pages.shared(id(page))?.bytes()), value))
    };
    if let Ok((found, expected)) = retry(&mut read).await {
        assert_eq!(Some(found), expected);
    }
}

fn u64_of(page: &[u8]) -> u64 {
    let [first, last] = PLACES.map(|at| {
        let at = usize::from(at);
        u64::from_le_bytes(page[at..at + 8].try_into().unwrap())
    });
    assert_eq!(first, last, "a page is there whole");
    first
}

/// After a start: cuts the truth to what survived, and compares every page.
fn compare(world: &World, started: &Started, truth: &Truth, context: &str) {
    assert!(
        truth.acknowledged.get() <= started.log_end.0,
        "{context}: a durable change is lost"
    );
    truth
        .changes
        .borrow_mut()
        .retain(|(_, end, _)| *end <= started.log_end);
    started.pool.open_space(&world.disk, SPACE).unwrap();
    let pages = Rc::new(started.pool.pages(0, world.disk()));
    for page in 0..PAGE_COUNT {
        let Some(expected) = truth.value(page, truth.changes.borrow().len()) else {
            continue;
        };
        let reading = Rc::clone(&pages);
        let found =
            world.run(async move { retry(|| Ok(u64_of(reading.shared(id(page))?.bytes()))).await });
        assert_eq!(found, Ok(expected), "{context}: page {page}");
    }
}

/// Five lives of a directory. Returns the number of torn pages that were repaired.
fn lives(seed: u64, faults: Faults) -> usize {
    let mut random = Random::new(seed);
    let slow = if random.coin() {
        Duration::ZERO
    } else {
        Duration::from_micros(500)
    };
    let disk = DiskOptions {
        seed,
        delay: Duration::ZERO..slow,
        ..DiskOptions::default()
    };
    let mut world = World::with(seed, disk);
    let truth = Rc::new(Truth::default());
    // Fewer frames than pages, so that pages come and go.
    let mut options = options(8, 2);
    options.wal.log_bytes_max = 1 << 16;
    let first = world.start(options.clone()).unwrap();
    world.create_space(&first.pool);
    drop(first);
    world = world.crash();
    let mut repaired_count = 0;
    for life in 0..5 {
        let context = format!("seed {seed}, life {life}");
        let worker_count = stdx::to_usize(1 + random.below(WORKER_COUNT_MAX));
        options.wal.worker_count = worker_count;
        let started = world
            .start(options.clone())
            .unwrap_or_else(|e| panic!("{context}: {e}"));
        compare(&world, &started, &truth, &context);
        repaired_count += started.repaired.len();
        world.disk.set_faults(faults);
        for worker in 0..worker_count {
            let pages = Rc::new(started.pool.pages(worker, world.disk()));
            world.background(&pages);
            let (truth, executor) = (Rc::clone(&truth), world.executor.clone());
            let seed = seed * 100 + life * 10 + stdx::to_u64(worker);
            world.executor.spawn(client(pages, truth, executor, seed));
        }
        drop(started);
        let steps_max = if random.coin() { 200 } else { 3000 };
        world.executor.run_steps(random.below(steps_max));
        world.disk.set_faults(Faults::default());
        world = if random.chance(800) {
            world.crash()
        } else {
            world.kill()
        };
        if random.chance(300) {
            crash_in_recovery(&world, options.clone(), random.below(60));
            world = world.crash();
        }
    }
    repaired_count
}

/// Starts, and loses power in the middle of it.
fn crash_in_recovery(world: &World, options: StartOptions, steps: u64) {
    let disk = world.disk();
    world.executor.spawn(async move {
        let _ = start(disk, options, Box::new(|_| {}), &mut |_| {}).await;
    });
    world.executor.run_steps(steps);
}

#[test]
fn changes_survive_crashes_whole() {
    let repaired = seeds(0, 16).map(|seed| lives(seed, Faults::default()));
    assert_ne!(repaired.sum::<usize>(), 0, "torn pages were met");
}

#[test]
fn changes_survive_failing_disks() {
    for seed in seeds(1000, 10) {
        let faults = Faults {
            read_permille: 5,
            write_permille: 5,
            sync_permille: 10,
        };
        lives(seed, faults);
    }
}

/// A page that was copied is clean before its file has it. A checkpoint comes in between, by
/// another worker, and a crash at each step. The next start has the page's change (C1).
#[test]
fn a_checkpoint_does_not_pass_pages_on_their_way() {
    let crashes = |seed| (0..).take_while(move |steps| !ends_within(*steps, seed));
    let count: usize = (0..6).map(|seed| crashes(seed).count()).sum();
    assert!(20 < count, "the crashes meet each moment");
}

/// Whether a checkpoint beside a batch is done in so many steps. Then comes a crash.
fn ends_within(steps: u64, seed: u64) -> bool {
    let disk = DiskOptions {
        seed,
        delay: Duration::from_micros(20)..Duration::from_micros(60),
        ..DiskOptions::default()
    };
    let world = World::with(seed, disk);
    let pages = world.open(options(8, 2));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 0, 1).await.unwrap();
        let lsn = put(&at_work, 0, 9).await.unwrap();
        durable(&at_work, lsn).await.unwrap();
    });
    let cleaning = pages.pool().pages(1, world.disk());
    world.executor.spawn(async move {
        assert_eq!(cleaning.clean(8).await, Ok(Cleaned { pages: 1 }));
    });
    let is_done = Rc::new(Cell::new(false));
    let done = Rc::clone(&is_done);
    world.executor.spawn(async move {
        let pool = pages.pool();
        while pool.dirty.oldest(&pool.frames).is_some() {
            Suspend::turn().await;
        }
        pages.checkpoint(Vec::new()).await.unwrap();
        done.set(true);
    });
    world.executor.run_steps(steps);
    let was_done = is_done.get();
    let world = world.crash();
    let pages = world.open(options(8, 2));
    let found = world.run(async move { get(&pages, 0).await });
    assert_eq!(found, Ok(9), "seed {seed}, {steps} steps");
    was_done
}

/// Recovering twice is recovering once: the files are the same, byte for byte.
#[test]
fn recovery_can_be_repeated() {
    let world = World::new(77);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        for page in 0..12 {
            create(&at_work, page, 1).await.unwrap();
        }
        at_work.clean(4).await.unwrap();
        for page in 0..12 {
            let lsn = put(&at_work, page, 50).await.unwrap();
            durable(&at_work, lsn).await.unwrap();
        }
    });
    drop(pages);
    let mut world = world.crash();
    let mut images = Vec::new();
    for _ in 0..3 {
        let end = world.start(options(8, 1)).unwrap().log_end;
        let path = Path::new("data/space_5.pdb");
        let file = space::open_file(&world.disk, path, false).unwrap();
        let read = world.disk.read(&file, 0, env::IoBuffer::zeroed(12 * 4096));
        let (bytes, length) = world.run(read);
        assert_eq!(length, Ok(12 * 4096));
        images.push((end, bytes.to_vec()));
        world = world.crash();
    }
    assert_eq!(images[0], images[1]);
    assert_eq!(images[1], images[2]);
}

/// Power may fail at any moment of the first start. Nothing is lost yet; the next one goes on.
#[test]
fn a_first_start_can_be_repeated() {
    for seed in seeds(3000, 60) {
        let disk = DiskOptions {
            seed,
            delay: Duration::ZERO..Duration::from_micros(500),
            ..DiskOptions::default()
        };
        let mut world = World::with(seed, disk);
        let mut random = Random::new(seed);
        for _ in 0..3 {
            crash_in_recovery(&world, options(8, 1), random.below(40));
            world = if random.coin() {
                world.crash()
            } else {
                world.kill()
            };
        }
        let started = world.start(options(8, 1));
        assert!(started.is_ok(), "seed {seed}: {:?}", started.err());
    }
}
