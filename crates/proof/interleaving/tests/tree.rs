//! A tree and its pool between threads, each of whose steps `shuttle` draws.
//!
//! Each thread is a worker. It changes keys of its own, in leaves that it shares with the others,
//! and looks at what it has written; one scans all. The pool has fewer frames than the tree has
//! pages, so pages leave and come back between the steps. At the end the tree is checked.

#![cfg(shuttle)]
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use btree::change::Edit;
use btree::check::Check;
use btree::{From, Pages, Place, Run, Tree, space};
use buffer::{Pool, PoolOptions, StartOptions, start};
use env::sim::SimDisk;
use env::{Disk, Random};
use format::{IndexId, PageSize, SpaceId};
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, thread};
use stdx::planted::{Mistake, plant};
use store::{Interrupt, Outcome};
use wal::{OnLogLoss, WalOptions};

/// Schedules that are drawn, each with changes of its own.
const SCHEDULES: u64 = 1000;

/// Workers that change the tree; one more scans it.
const WRITER_COUNT: usize = 2;
const FRAME_COUNT: u32 = 10;
const KEY_COUNT: u64 = 24;
const CHANGE_COUNT: usize = 12;
/// Up to a third of a page, so that few changes split a leaf.
const PAYLOAD_BYTES_MAX: u64 = 1200;
/// A thread's stack: a start needs more than the checker gives by itself.
const STACK_BYTES: usize = 1 << 20;

const SPACE: SpaceId = SpaceId(3);

/// Polls until ready, doing the background work in between.
fn drive<T>(pages: &Pages, disk: &SimDisk, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        write_log(pages, disk);
        thread::yield_now();
    }
}

/// A flush may wait for nothing but the disk, which answers at once.
fn write_log(pages: &Pages, disk: &SimDisk) {
    let mut context = Context::from_waker(Waker::noop());
    if let Some(job) = pages.wal().try_lead() {
        let written = pin!(job.run(disk)).poll(&mut context);
        assert!(written.is_ready(), "the disk answers at once");
    }
    if pages.wal().needs_segments() {
        let made = pin!(pages.wal().prepare_segments(disk)).poll(&mut context);
        assert!(matches!(made, Poll::Ready(Ok(()))), "there is room");
    }
}

/// Calls an operation until it is done. A wait is given up after some polls: one for a frame needs
/// this very worker to clean.
fn until_done<T>(pages: &Pages, disk: &SimDisk, mut operation: impl FnMut() -> Outcome<T>) -> T {
    loop {
        match operation() {
            Ok(value) => return value,
            Err(Interrupt::Error(error)) => panic!("{error}"),
            Err(Interrupt::Suspend(wait)) => {
                let (mut wait, mut context) = (pin!(wait), Context::from_waker(Waker::noop()));
                for _ in 0..20 {
                    if wait.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                    write_log(pages, disk);
                    if pages.needs_cleaning() {
                        let cleaned = drive(pages, disk, pages.clean(8));
                        cleaned.expect("the disk has no faults");
                    }
                    thread::yield_now();
                }
            }
        }
    }
}

fn open(disk: &SimDisk) -> Arc<Pool> {
    let options = StartOptions {
        on_loss: OnLogLoss::Refuse,
        directory: PathBuf::from("data"),
        wal: WalOptions {
            ring_bytes: 1 << 19,
            mtr_bytes_max: 1 << 17,
            worker_count: WRITER_COUNT + 1,
            segment_blocks: 256,
            segments_ahead: 1,
            log_bytes_max: 1 << 20,
            flush_bytes_max: 1 << 16,
        },
        pool: PoolOptions {
            page_size: PageSize::KiB4,
            frame_count: FRAME_COUNT,
            clean_batch_pages: 4,
        },
    };
    let (handle, mut context) = (disk_of(disk), Context::from_waker(Waker::noop()));
    let mut notes = |_: buffer::Note<'_>| {};
    let mut opening = pin!(start(handle, options, Box::new(|_| {}), &mut notes));
    let Poll::Ready(started) = opening.as_mut().poll(&mut context) else {
        panic!("the disk answers at once");
    };
    let started = started.unwrap_or_else(|error| panic!("an empty directory opens: {error}"));
    started.pool
}

fn disk_of(disk: &SimDisk) -> Rc<dyn Disk> {
    Rc::new(disk.clone())
}

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// The changes of a worker to the keys that are its own; returns what is there then.
fn change(
    pages: &Pages,
    disk: &SimDisk,
    tree: Tree,
    (worker, seed): (usize, u64),
) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut random, mut twin) = (Random::new(seed), BTreeMap::new());
    let worker_count = stdx::to_u64(WRITER_COUNT);
    for _ in 0..CHANGE_COUNT {
        let number = random.below(KEY_COUNT / worker_count) * worker_count;
        let key = key(number + stdx::to_u64(worker));
        if random.below(3) == 0 {
            let done = until_done(pages, disk, || {
                tree.modify(pages, &key, |_| Ok(Edit::Remove))
            });
            assert_eq!(done, twin.remove(&key).is_some(), "its keys are its own");
            until_done(pages, disk, || tree.shrink(pages, &key));
        } else {
            let length = stdx::to_usize(1 + random.below(PAYLOAD_BYTES_MAX));
            let payload = vec![stdx::low_u8(number); length];
            let edit = |_: Option<&[u8]>| Ok(Edit::Put(payload.clone()));
            until_done(pages, disk, || tree.modify(pages, &key, edit));
            twin.insert(key.clone(), payload);
        }
        let mut found = Vec::new();
        let is_there = until_done(pages, disk, || {
            found.clear();
            tree.get(pages, &key, &mut found)
        });
        assert_eq!(is_there.then_some(&found), twin.get(&key));
    }
    twin
}

/// All entries, in their order.
fn scan(pages: &Pages, disk: &SimDisk, tree: Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut place, mut run, mut found) = (Place::first(), Run::new(), Vec::new());
    while place.from != From::Nothing {
        until_done(pages, disk, || tree.read_run(pages, &place, 3, &mut run));
        found.extend((0..run.len()).map(|at| {
            let (key, payload) = run.entry(at);
            (key.to_vec(), payload.to_vec())
        }));
        place = run.next.clone();
    }
    assert!(found.is_sorted_by(|one, other| one.0 < other.0));
    found
}

fn workers_share_a_tree(seed: u64) {
    let disk = SimDisk::with_seed(seed);
    let pool = open(&disk);
    let pages = pool.pages(WRITER_COUNT, disk_of(&disk));
    let made = drive(&pages, &disk, pool.create_space(&disk, SPACE));
    made.expect("there is room");
    until_done(&pages, &disk, || space::create(&pages, SPACE));
    let tree = until_done(&pages, &disk, || Tree::create(&pages, SPACE, IndexId(9)));
    // These keys stay as they are, so each scan finds them.
    let fixed: Vec<_> = (0..4).map(|at| key(KEY_COUNT + at)).collect();
    for key in &fixed {
        let edit = |_: Option<&[u8]>| Ok(Edit::Put(vec![7; 900]));
        until_done(&pages, &disk, || tree.modify(&pages, key, edit));
    }
    let writers: Vec<_> = (0..WRITER_COUNT)
        .map(|worker| {
            let (pool, disk) = (Arc::clone(&pool), disk.clone());
            thread::spawn(move || {
                let pages = pool.pages(worker, disk_of(&disk));
                let seed = seed.wrapping_mul(31) + stdx::to_u64(worker);
                change(&pages, &disk, tree, (worker, seed))
            })
        })
        .collect();
    for _ in 0..3 {
        let found = scan(&pages, &disk, tree);
        let last = found.iter().rev().take(fixed.len()).rev();
        assert!(last.map(|(key, _)| key).eq(&fixed), "what stays is found");
    }
    let mut twin = BTreeMap::new();
    for writer in writers {
        twin.extend(writer.join().expect("no thread failed"));
    }
    twin.extend(fixed.into_iter().map(|key| (key, vec![7; 900])));
    assert!(scan(&pages, &disk, tree).into_iter().eq(twin));
    let (mut check, mut entries) = (Check::new(tree), Run::new());
    while let Some(looked) = until_done(&pages, &disk, || check.step(&pages, &mut entries)) {
        assert_eq!(looked.faults, Vec::<String>::new());
    }
}

fn run(seed: u64) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    let scheduler = RandomScheduler::new_from_seed(seed, 1);
    Runner::new(scheduler, config).run(move || workers_share_a_tree(seed));
}

#[test]
fn workers_leave_a_whole_tree() {
    (0..SCHEDULES).for_each(run);
}

#[test]
fn reads_of_changed_pages_are_found() {
    plant(Some(Mistake::TrustsChangedPages));
    let is_found = |seed| catch_unwind(AssertUnwindSafe(|| run(seed))).is_err();
    let found = (0..SCHEDULES).any(is_found);
    plant(None);
    assert!(found, "not found in {SCHEDULES} schedules");
}
