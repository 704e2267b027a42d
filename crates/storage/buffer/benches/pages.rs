//! What the pool costs a worker if everything is in memory: nanoseconds for one read of each kind
//! and for one small mini-transaction. `cargo bench -p buffer`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench measures real time, prints, and may fail loudly"
)]

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use buffer::{Pages, PoolOptions, StartOptions, start};
use env::sim::{SimClock, SimDisk, SimExecutor};
use format::page_bytes::PageBytes;
use format::page_op::PageOp;
use format::{PageId, PageNo, PageSize, PageType, SpaceId};
use store::{Interrupt, Outcome};
use wal::{OnLogLoss, WalOptions};

const SPACE: SpaceId = SpaceId(1);
const PAGE_COUNT: u32 = 1000;
const ROUNDS: u32 = 2_000_000;

fn id(page: u32) -> PageId {
    PageId::new(SPACE, PageNo(page % PAGE_COUNT))
}

async fn retry<T>(mut operation: impl FnMut() -> Outcome<T>) -> T {
    loop {
        match operation() {
            Ok(value) => return value,
            Err(Interrupt::Error(error)) => panic!("{error}"),
            Err(Interrupt::Suspend(wait)) => wait.await,
        }
    }
}

async fn open() -> Rc<Pages> {
    let disk: Rc<dyn env::Disk> = Rc::new(SimDisk::with_seed(1));
    let wal = WalOptions {
        log_bytes_max: 1 << 40,
        ..WalOptions::default()
    };
    let pool = PoolOptions {
        page_size: PageSize::KiB16,
        frame_count: PAGE_COUNT * 2,
        clean_batch_pages: 64,
    };
    let options = StartOptions {
        on_loss: OnLogLoss::Refuse,
        directory: PathBuf::from("bench"),
        wal,
        pool,
    };
    let started = start(Rc::clone(&disk), options, Box::new(|_| {}), &mut |_| {})
        .await
        .unwrap();
    started.pool.create_space(&*disk, SPACE).await.unwrap();
    Rc::new(started.pool.pages(0, disk))
}

fn report(what: &str, start: Instant) {
    let nanos = start.elapsed().as_nanos() / u128::from(ROUNDS);
    println!("{what:<40} {nanos:>6} ns");
}

fn read_optimistic(pages: &Pages) -> u64 {
    let mut sum = 0;
    for round in 0..ROUNDS {
        let Ok(page) = pages.optimistic(id(round * 7)) else {
            panic!("it is in memory")
        };
        sum += page.u64_at(40).unwrap();
        assert!(page.is_valid());
    }
    sum
}

fn read_shared(pages: &Pages) -> u64 {
    let mut sum = 0;
    for round in 0..ROUNDS {
        let Ok(page) = pages.shared(id(round * 7)) else {
            panic!("it is in memory")
        };
        sum += u64::from(page.bytes()[40]);
    }
    sum
}

async fn write(pages: &Pages) {
    let disk = Rc::clone(pages.disk());
    for round in 0..ROUNDS {
        let put = || {
            let mut change = pages.change()?;
            let page = change.latch(id(round * 7))?;
            let bytes = &round.to_le_bytes();
            change
                .apply(page, &PageOp::BytesPut { offset: 40, bytes })
                .unwrap();
            Ok(change.commit())
        };
        retry(put).await;
        if let Some(job) = pages.wal().try_lead() {
            job.run(&*disk).await;
            while pages.wal().needs_segments() {
                pages.wal().prepare_segments(&*disk).await.unwrap();
            }
        }
    }
}

async fn bench() {
    let pages = open().await;
    for page in 0..PAGE_COUNT {
        let make = || {
            let mut change = pages.change()?;
            change.create(id(page), PageType::Meta)?;
            Ok(change.commit())
        };
        retry(make).await;
    }
    let start = Instant::now();
    let sum = read_optimistic(&pages);
    report("optimistic read of 8 bytes", start);
    let start = Instant::now();
    let sum = sum + read_shared(&pages);
    report("shared read of one byte", start);
    let start = Instant::now();
    write(&pages).await;
    report("change of 4 bytes, flushed in bulk", start);
    assert!(sum < u64::MAX);
}

fn main() {
    let executor = SimExecutor::new(1, SimClock::new());
    executor.block_on(bench()).expect("nobody waits for ever");
}
