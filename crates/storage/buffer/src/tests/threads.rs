//! Workers on threads of their own, on a real disk: what the simulation cannot show.

use std::task::{Context, Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

use env::linux::BlockingDisk;
use format::page_bytes::PageBytes;
use sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Pages, more than frames.
const PAGE_COUNT: u32 = 40;
const THREAD_COUNT: usize = 3;
const ROUND_COUNT: u64 = 4000;

/// A directory of its own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    #[allow(
        clippy::disallowed_methods,
        reason = "the name of a directory must be new"
    )]
    fn new() -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos();
        let name = format!("plateau-buffer-{}-{now}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Polls until ready, doing the worker's share of the background work in between.
fn drive<T>(pages: Option<&Pages>, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        if let Some(pages) = pages {
            work(pages);
        }
        std::thread::yield_now();
    }
}

/// A worker's work at the end of a tick. The blocking disk never leaves a flush pending. The
/// cleaner may wait for another worker's flush, so it is driven by itself.
fn work(pages: &Pages) {
    if let Some(job) = pages.wal().try_lead() {
        drive(None, job.run(&BlockingDisk));
    }
    if pages.wal().needs_segments() {
        drive(None, pages.wal().prepare_segments(&BlockingDisk)).unwrap();
    }
}

fn tend(pages: &Pages) {
    work(pages);
    if pages.needs_cleaning() {
        drive_working(pages, pages.clean(16)).unwrap();
    }
    if 50 < pages.wal().age_percent() {
        drive_working(pages, pages.clean(64)).unwrap();
        drive_working(pages, pages.checkpoint(Vec::new())).unwrap();
    }
}

fn drive_working<T>(pages: &Pages, future: impl Future<Output = T>) -> T {
    drive(Some(pages), future)
}

fn attempt<T>(pages: &Pages, mut operation: impl FnMut() -> Outcome<T>) -> T {
    loop {
        match operation() {
            Ok(value) => return value,
            Err(Interrupt::Error(error)) => panic!("{error}"),
            Err(Interrupt::Suspend(wait)) => {
                tend(pages);
                // Dropped after some tries: a wait for a frame needs this very worker to clean.
                let mut wait = std::pin::pin!(wait);
                let mut context = Context::from_waker(Waker::noop());
                for _ in 0..100 {
                    if wait.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                    tend(pages);
                    std::thread::yield_now();
                }
            }
        }
    }
}

/// Adds one to a number that stands at both ends of a page.
fn add_one(pages: &Pages, page: u32) -> Outcome<Lsn> {
    let mut change = pages.change()?;
    let latched = change.latch(id(page))?;
    let before = change.bytes(latched).u64_at(40).unwrap();
    let bytes = &(before + 1).to_le_bytes();
    for offset in [40, 4080] {
        change
            .apply(latched, &PageOp::BytesPut { offset, bytes })
            .unwrap();
    }
    Ok(change.commit())
}

/// Both numbers of a page, read optimistically until that is valid.
fn read(pages: &Pages, page: u32) -> Outcome<u64> {
    for _ in 0..1000 {
        let view = pages.optimistic(id(page))?;
        let (first, second) = (view.u64_at(40).unwrap(), view.u64_at(4080).unwrap());
        if view.is_valid() {
            assert_eq!(first, second, "a valid read is whole");
            return Ok(first);
        }
    }
    let latched = pages.shared(id(page))?;
    Ok(latched.bytes().u64_at(40).unwrap())
}

fn worker(pages: &Pages, seed: u64, sum: &AtomicU64) {
    let mut random = Random::new(seed);
    for _ in 0..ROUND_COUNT {
        let page = u32::try_from(random.index(stdx::to_usize(PAGE_COUNT))).unwrap();
        if random.coin() {
            let end = attempt(pages, || add_one(pages, page));
            sum.fetch_add(1, Ordering::Relaxed);
            if random.chance(20) {
                drive_working(pages, durable(pages, end)).unwrap();
            }
        } else {
            attempt(pages, || read(pages, page));
        }
        tend(pages);
    }
    pages.assert_nothing_held();
}

#[test]
fn workers_on_threads_lose_nothing() {
    let scratch = Scratch::new();
    let mut options = options(24, THREAD_COUNT);
    options.directory.clone_from(&scratch.0);
    options.wal.ring_bytes = 1 << 17;
    options.wal.log_bytes_max = 1 << 20;
    let begin = |options: StartOptions| {
        let disk: Rc<dyn Disk> = Rc::new(BlockingDisk);
        drive(None, start(disk, options, Box::new(|_| {}), &mut |_| {})).unwrap()
    };
    let started = begin(options.clone());
    drive(None, started.pool.create_space(&BlockingDisk, SPACE)).unwrap();
    {
        let pages = started.pool.pages(0, Rc::new(BlockingDisk));
        for page in 0..PAGE_COUNT {
            attempt(&pages, || {
                let mut change = pages.change()?;
                change.create(id(page), PageType::Meta)?;
                Ok(change.commit())
            });
        }
    }
    let sum = AtomicU64::new(0);
    let pool = &started.pool;
    std::thread::scope(|scope| {
        for number in 0..THREAD_COUNT {
            let sum = &sum;
            scope.spawn(move || {
                let pages = pool.pages(number, Rc::new(BlockingDisk));
                worker(&pages, stdx::to_u64(number), sum);
            });
        }
    });
    let total = |pool: &Arc<Pool>| {
        let pages = pool.pages(0, Rc::new(BlockingDisk));
        let sum: u64 = (0..PAGE_COUNT)
            .map(|page| attempt(&pages, || read(&pages, page)))
            .sum();
        let end = pages.reserved();
        drive_working(&pages, durable(&pages, end)).unwrap();
        sum
    };
    assert_eq!(total(&started.pool), sum.load(Ordering::Relaxed));
    assert!(0 < started.pool.pages_read(), "pages went and came");
    drop(started);
    let again = begin(options);
    again.pool.open_space(&BlockingDisk, SPACE).unwrap();
    assert_eq!(
        total(&again.pool),
        sum.load(Ordering::Relaxed),
        "after the end of the process"
    );
}
