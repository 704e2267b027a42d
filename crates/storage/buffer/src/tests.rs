//! Tests of the pool on the simulated disk.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use env::sim::{DiskOptions, SimClock, SimDisk, SimExecutor, poll_at_most};
use env::{Disk, Random};
use format::log::OpKind;
use format::page_op::PageOp;
use format::{Lsn, PAGE_HEADER_BYTES, PageId, PageNo, PageSize, PageType, SpaceId};
use store::{Interrupt, Outcome, StoreError, Suspend, WaitReason};
use sync::atomic::Ordering;
use wal::{LogLevel, OnLogLoss, WalOptions};

use super::*;
use crate::evict::{LOOKS_PER_TURN, Taken};
use crate::frames::{Found, FrameNo, HotPages};

mod crash;
mod heat;
mod read_ahead;
mod removal;
mod shortages;
mod threads;
mod verify;

/// Between two checks of a background task: about a fifth of a slow disk's time.
const TICK: Duration = Duration::from_micros(100);

const SPACE: SpaceId = SpaceId(5);

fn id(page: u32) -> PageId {
    PageId::new(SPACE, PageNo(page))
}

fn options(frame_count: u32, worker_count: usize) -> StartOptions {
    StartOptions {
        on_loss: OnLogLoss::Refuse,
        directory: PathBuf::from("data"),
        wal: WalOptions {
            ring_bytes: 1 << 16,
            mtr_bytes_max: 1 << 13,
            worker_count,
            segment_blocks: 32,
            segments_ahead: 1,
            log_bytes_max: 1 << 17,
            flush_bytes_max: 1 << 14,
        },
        pool: PoolOptions {
            page_size: PageSize::KiB4,
            frame_count,
            clean_batch_pages: 4,
        },
    }
}

/// What a test needs: a disk, an executor, and the background work of a server.
struct World {
    disk: SimDisk,
    executor: SimExecutor,
}

impl World {
    fn new(seed: u64) -> Self {
        Self::with(
            seed,
            DiskOptions {
                seed,
                ..DiskOptions::default()
            },
        )
    }

    fn with(seed: u64, options: DiskOptions) -> Self {
        let clock = SimClock::new();
        let disk = SimDisk::new(options, clock.clone());
        Self {
            disk,
            executor: SimExecutor::new(seed, clock),
        }
    }

    fn disk(&self) -> Rc<dyn Disk> {
        Rc::new(self.disk.clone())
    }

    fn start(&self, options: StartOptions) -> Result<Started, RecoveryError> {
        let disk = self.disk();
        let started = async move { start(disk, options, Box::new(|_| {}), &mut |_| {}).await };
        self.executor
            .block_on(started)
            .expect("starting waits for nothing but the disk")
    }

    /// Starts, opens or makes the tablespace, and starts the background work.
    fn open(&self, options: StartOptions) -> Rc<Pages> {
        let started = self.start(options).expect("the directory is whole");
        let pool = started.pool;
        if started.is_new {
            self.create_space(&pool);
        } else {
            pool.open_space(&self.disk, SPACE).unwrap();
        }
        let pages = Rc::new(pool.pages(0, self.disk()));
        self.background(&pages);
        pages
    }

    fn create_space(&self, pool: &Arc<Pool>) {
        let (pool, disk) = (Arc::clone(pool), self.disk.clone());
        let created = self.run(async move { pool.create_space(&disk, SPACE).await });
        created.unwrap();
    }

    fn background(&self, pages: &Rc<Pages>) {
        let (flushing, disk, executor) = (Rc::clone(pages), self.disk(), self.executor.clone());
        self.executor.spawn(async move {
            loop {
                if let Some(job) = flushing.wal().try_lead() {
                    job.run(&*disk).await;
                }
                if flushing.wal().is_poisoned() {
                    return;
                }
                if flushing.wal().needs_segments() {
                    let _ = flushing.wal().prepare_segments(&*disk).await;
                }
                executor.clock().sleep(TICK).await;
            }
        });
        let (cleaning, executor) = (Rc::clone(pages), self.executor.clone());
        self.executor.spawn(async move {
            loop {
                let is_late = 50 < cleaning.wal().age_percent();
                if cleaning.needs_cleaning() || is_late {
                    if cleaning.clean(8).await.is_err() {
                        return;
                    }
                    if is_late && cleaning.checkpoint(b"payload".to_vec()).await.is_err() {
                        return;
                    }
                }
                executor.clock().sleep(TICK).await;
            }
        });
    }

    fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        self.executor
            .block_on(future)
            .expect("nobody waits for ever")
    }

    fn kill(self) -> Self {
        self.executor.clear();
        Self {
            disk: self.disk.kill(),
            executor: self.executor,
        }
    }

    fn crash(self) -> Self {
        self.executor.clear();
        Self {
            disk: self.disk.crash(),
            executor: self.executor,
        }
    }
}

/// The loop above a restartable operation.
async fn retry<T>(mut operation: impl FnMut() -> Outcome<T>) -> Result<T, StoreError> {
    loop {
        match operation() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Error(error)) => return Err(error),
            Err(Interrupt::Suspend(wait)) => wait.await,
        }
    }
}

async fn create(pages: &Pages, page: u32, byte: u8) -> Result<Lsn, StoreError> {
    let make = || {
        let mut change = pages.change()?;
        let latched = change.create(id(page), PageType::Meta)?;
        change
            .apply(latched, &PageOp::BodyFill { bytes: &[byte; 8] })
            .unwrap();
        Ok(change.commit())
    };
    retry(make).await
}

async fn put(pages: &Pages, page: u32, byte: u8) -> Result<Lsn, StoreError> {
    let make = || {
        let mut change = pages.change()?;
        let latched = change.latch(id(page))?;
        change
            .apply(
                latched,
                &PageOp::BytesPut {
                    offset: 40,
                    bytes: &[byte; 4],
                },
            )
            .unwrap();
        Ok(change.commit())
    };
    retry(make).await
}

async fn get(pages: &Pages, page: u32) -> Result<u8, StoreError> {
    retry(|| Ok(pages.shared(id(page))?.bytes()[40])).await
}

async fn durable(pages: &Pages, lsn: Lsn) -> Result<(), StoreError> {
    pages.wait_log(lsn, LogLevel::Durable).await
}

#[test]
fn a_change_is_read_back_in_each_way() {
    let world = World::new(1);
    let pages = world.open(options(16, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 3, 7).await.unwrap();
        put(&at_work, 3, 9).await.unwrap();
        assert_eq!(get(&at_work, 3).await, Ok(9));
        let page = retry(|| at_work.optimistic(id(3))).await.unwrap();
        use format::page_bytes::PageBytes as _;
        assert_eq!(page.u32_at(PAGE_HEADER_BYTES), Some(0x0707_0707));
        assert!(page.is_valid());
        put(&at_work, 3, 10).await.unwrap();
        assert!(!page.is_valid(), "it has changed since");
        let mut change = retry(|| at_work.change()).await.unwrap();
        assert_eq!(change.latch_unchanged(&page), None);
        let page = retry(|| at_work.optimistic(id(3))).await.unwrap();
        let latched = change.latch_unchanged(&page).unwrap();
        assert_eq!(change.bytes(latched)[40], 10);
    });
    pages.assert_nothing_held();
}

#[test]
fn what_was_gathered_is_given_up_without_trace() {
    let world = World::new(2);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 1, 1).await.unwrap();
        let before = at_work.reserved();
        retry(|| at_work.grow(SPACE, 3)).await.unwrap();
        let mut change = retry(|| at_work.change()).await.unwrap();
        change.create(id(1), PageType::Undo).unwrap();
        change.create(id(2), PageType::Undo).unwrap();
        drop(change);
        assert_eq!(at_work.reserved(), before);
        assert_eq!(
            retry(|| Ok(at_work.shared(id(1))?.bytes()[32])).await,
            Ok(1)
        );
        let absent = get(&at_work, 2).await;
        assert!(
            matches!(absent, Err(StoreError::Damaged { .. })),
            "{absent:?}"
        );
    });
    pages.assert_nothing_held();
}

#[test]
#[should_panic(expected = "a change that has applied an operation commits")]
fn a_begun_change_is_not_dropped() {
    let world = World::new(3);
    let pages = world.open(options(8, 1));
    world.run(async move {
        create(&pages, 1, 1).await.unwrap();
        let mut change = retry(|| pages.change()).await.unwrap();
        let page = change.latch(id(1)).unwrap();
        change
            .apply(page, &PageOp::BodyFill { bytes: b"x" })
            .unwrap();
        drop(change);
    });
}

#[test]
#[should_panic(expected = "a worker that waits holds no latch")]
fn waiting_with_a_latch_is_noticed() {
    let world = World::new(4);
    let pages = world.open(options(8, 1));
    world.run(async move {
        create(&pages, 1, 1).await.unwrap();
        let _held = retry(|| pages.shared(id(1))).await.unwrap();
        let _ = get(&pages, 7).await;
    });
}

#[test]
fn data_larger_than_the_pool_stays_right() {
    let world = World::new(5);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        for page in 0..60 {
            create(&at_work, page, 0).await.unwrap();
        }
        let mut random = Random::new(5);
        let mut expected = BTreeMap::new();
        for _ in 0..8000 {
            let page = u32::try_from(random.index(60)).unwrap();
            let byte = u8::try_from(random.index(256)).unwrap();
            if byte < 128 {
                put(&at_work, page, byte).await.unwrap();
                expected.insert(page, byte);
            } else if let Some(value) = expected.get(&page) {
                assert_eq!(get(&at_work, page).await, Ok(*value));
            }
        }
    });
    assert!(100 < pages.pool().pages_read());
    assert!(Lsn::FIRST < pages.wal().checkpoint(), "the log went round");
}

/// A share with one clean frame: a step that needs two pages takes the second frame from another
/// worker's share.
#[test]
fn a_worker_whose_frames_are_dirty_but_for_one_has_two_pages_at_once() {
    const SHARE: u32 = 16;
    let world = World::new(1);
    let pages = world.open(options(4 * SHARE, 4));
    let (one, other) = (3, 4);
    world.run(async move {
        create(&pages, one, 1).await.unwrap();
        create(&pages, other, 2).await.unwrap();
        pages.clean_all().await.unwrap();
        pages.checkpoint(Vec::new()).await.unwrap();
    });
    let world = world.kill();
    let pages = world.open(options(4 * SHARE, 4));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        for page in 5..5 + SHARE - 1 {
            create(&at_work, page, 7).await.unwrap();
        }
        assert!(!at_work.needs_cleaning(), "most of the pool is clean");
        assert_eq!(get(&at_work, one).await, Ok(0));
        assert_eq!(get(&at_work, other).await, Ok(0));
        let is_here = |page| at_work.shared(id(page)).is_ok();
        assert!(is_here(one) && is_here(other));
    });
    pages.assert_nothing_held();
}

/// A reader's thread may be preempted after it found a frame, before it sees that the page is
/// another one. The frame is then latched for a long time. No worker waits for that in place.
#[test]
fn a_free_frame_that_is_latched_is_waited_for_by_turns() {
    let world = World::new(7);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 1, 1).await.unwrap();
        at_work.clean_all().await.unwrap();
    });
    let pool = pages.pool();
    let frames = || (0..pool.frames.count()).map(FrameNo);
    for no in frames() {
        if pool.evict(no) {
            pool.free_frame(0, no);
        }
        assert!(pool.frame(no).page().is_none());
        assert!(pool.frame(no).latch.try_shared());
    }
    let done = Rc::new(Cell::new(0));
    let (reading, read) = (Rc::clone(&pages), Rc::clone(&done));
    world.executor.spawn(async move {
        assert_eq!(get(&reading, 1).await, Ok(0));
        read.set(read.get() + 1);
    });
    let (making, made) = (Rc::clone(&pages), Rc::clone(&done));
    world.executor.spawn(async move {
        create(&making, 2, 2).await.unwrap();
        made.set(made.get() + 1);
    });
    world.executor.run_steps(5000);
    assert_eq!(done.get(), 0);
    for no in frames() {
        pool.frame(no).latch.unlock_shared();
    }
    world.executor.run_steps(5000);
    assert_eq!(done.get(), 2);
    pages.assert_nothing_held();
}

/// While frames are wanted again and again, the oldest change also gets to its file, although its
/// page is hot.
#[test]
fn a_checkpoint_that_is_due_is_not_starved_by_cold_pages() {
    let world = World::new(8);
    let started = world.start(options(64, 1)).unwrap();
    world.create_space(&started.pool);
    let pages = Rc::new(started.pool.pages(0, world.disk()));
    let (wal, disk) = (Rc::clone(&pages), world.disk());
    let clock = world.executor.clock().clone();
    world.executor.spawn(async move {
        loop {
            if let Some(job) = wal.wal().try_lead() {
                job.run(&*disk).await;
            }
            clock.sleep(TICK).await;
        }
    });
    world.run(async move {
        for page in 0..20 {
            let end = create(&pages, page, 1).await.unwrap();
            durable(&pages, end).await.unwrap();
        }
        assert!(pages.needs_checkpoint());
        let pool = pages.pool();
        let frames = || (0..pool.frames.count()).map(|no| pool.frame(FrameNo(no)));
        for frame in frames().filter(|frame| frame.page() != Some(id(0))) {
            while frame.pass(HotPages::Cool) != Found::Cold {}
        }
        let hot = frames().find(|frame| frame.page() == Some(id(0))).unwrap();
        pages.end_period();
        hot.touch(&pool.periods);
        assert!(hot.rec_lsn().is_some() && !hot.is_cold());
        pool.wants_frames.store(true, Ordering::SeqCst);
        let cleaned = pages.clean(1).await.unwrap();
        assert!(0 < cleaned.pages);
        assert_eq!(hot.rec_lsn(), None);
    });
}

/// The pass that looks for cold pages to write also gives way. It may be dropped at any turn.
#[test]
fn a_long_search_for_cold_pages_gives_way() {
    const FRAMES: u32 = 3 * LOOKS_PER_TURN + 100;
    let world = World::new(16);
    let started = world.start(options(FRAMES, 1)).unwrap();
    world.create_space(&started.pool);
    let pages = started.pool.pages(0, world.disk());
    let pool = pages.pool();
    let frames = || (0..FRAMES).map(|no| pool.frame(FrameNo(no)));
    let cleaning = |polls: u32| {
        pool.wants_frames.store(true, Ordering::SeqCst);
        let at = pool.cold_hand.load(Ordering::Relaxed);
        let mut clean = std::pin::pin!(pages.clean(1));
        let mut context = Context::from_waker(Waker::noop());
        (0..polls).any(|_| clean.as_mut().poll(&mut context).is_ready());
        pool.cold_hand.load(Ordering::Relaxed) - at
    };
    assert!(frames().all(|frame| frame.rec_lsn().is_none()));
    assert_eq!(cleaning(1), LOOKS_PER_TURN);
    assert!(!pool.wal.is_poisoned(), "nothing was being written");
    assert_eq!(cleaning(2), 2 * LOOKS_PER_TURN);
    assert_eq!(cleaning(9), FRAMES);
}

/// Five passes over a large pool take long if every page is in use.
#[test]
fn a_long_search_for_a_frame_gives_way() {
    let world = World::new(15);
    let pages = world.open(options(2048, 1));
    let (pool, search) = (pages.pool(), Cell::default());
    let mut taken = Vec::new();
    let ended = loop {
        match pool.take_frame(0, &search) {
            Taken::Frame(frame) => taken.push(frame),
            ended => break ended,
        }
    };
    assert_eq!((taken.len(), ended), (2048, Taken::Later));
    assert_eq!(pool.take_frame(0, &search), Taken::Later);
    assert!(!pool.wants_frames.load(Ordering::SeqCst));
    assert_eq!(pool.take_frame(0, &search), Taken::Nothing);
    assert!(!pool.wants_frames.load(Ordering::SeqCst), "no task waits");
    // A task that needs a frame searches for itself, and waits in the end.
    for is_at_end in [false, false, true] {
        assert!(pages.take_frame().is_err());
        assert_eq!(pool.wants_frames.load(Ordering::SeqCst), is_at_end);
    }
    assert_eq!(
        pool.take_frame(0, &search),
        Taken::Nothing,
        "a short search"
    );
    pool.wants_frames.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        // A frame found on the way ends the search; the next one begins from the start.
        assert_eq!(pool.take_frame(0, &search), Taken::Later);
        pool.free_frame(0, taken[7]);
        assert_eq!(pool.take_frame(0, &search), Taken::Frame(taken[7]));
    }
}

#[test]
fn a_damaged_page_is_named() {
    let world = World::new(6);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 0, 1).await.unwrap();
        create(&at_work, 1, 1).await.unwrap();
        at_work.clean_all().await.unwrap();
        // Another batch goes into the doublewrite file, so that it cannot repair the damage.
        put(&at_work, 0, 0).await.unwrap();
        at_work.clean_all().await.unwrap();
        let end = at_work.checkpoint(b"payload".to_vec()).await.unwrap();
        assert_eq!(end, at_work.reserved());
    });
    drop(pages);
    let world = world.crash();
    world
        .disk
        .damage(Path::new("data/space_5.pdb"), 4096 + 100, 3);
    let pages = world.open(options(8, 1));
    world.run(async move {
        assert_eq!(get(&pages, 0).await, Ok(0));
        for _ in 0..2 {
            let error = get(&pages, 1).await.unwrap_err().to_string();
            assert!(error.contains("space_5.pdb page 1: checksum"), "{error}");
        }
    });
}

#[test]
fn a_full_disk_fails_the_growth_alone() {
    let world = World::new(7);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    let disk = world.disk.clone();
    world.run(async move {
        create(&at_work, 0, 1).await.unwrap();
        disk.set_capacity(0);
        assert_eq!(create(&at_work, 50, 1).await, Err(StoreError::DiskFull));
        put(&at_work, 0, 2).await.unwrap();
        disk.set_capacity(u64::MAX);
        create(&at_work, 50, 1).await.unwrap();
        let lsn = put(&at_work, 0, 3).await.unwrap();
        durable(&at_work, lsn).await.unwrap();
    });
}

/// The wait of a caller for room that is not there yet.
fn growth(pages: &Pages, pages_count: u32) -> Suspend {
    match pages.grow(SPACE, pages_count) {
        Err(Interrupt::Suspend(growth)) => growth,
        other => panic!("there is no room yet: {other:?}"),
    }
}

/// Two callers want room, one of them too much. A caller that comes when the disk has room again
/// does not get that error.
#[test]
fn a_growth_that_failed_is_told_to_no_other() {
    for small_is_first in [true, false] {
        let world = World::new(13);
        let pages = world.open(options(8, 1));
        let ask = |pages_count| growth(&pages, pages_count);
        world
            .disk
            .set_capacity(world.disk.used_bytes() + 100 * 4096);
        let (small, large) = (ask(20), ask(90));
        let (first, second) = if small_is_first {
            (small, large)
        } else {
            (large, small)
        };
        world.disk.set_capacity(world.disk.used_bytes() + 30 * 4096);
        world.run(first);
        world.run(second);
        world.disk.set_capacity(u64::MAX);
        assert!(pages.grow(SPACE, 10).is_ok());
        world.run(ask(60));
        assert!(pages.grow(SPACE, 60).is_ok());
    }
}

/// (G1) of `growth.rs`: what many callers want at once is one call, for more than they want if the
/// disk has room.
#[test]
fn a_file_grows_once_for_all_who_want_room() {
    let world = World::new(15);
    let pages = world.open(options(8, 1));
    let grow = |pages_count| growth(&pages, pages_count);
    let all: Vec<_> = (100..120).map(grow).collect();
    for one in all {
        world.run(one);
    }
    let room = pages.pool().room_pages(SPACE).unwrap();
    assert_eq!(room, 100 + 4 + 25, "the first made room for the others");
    assert!(pages.grow(SPACE, 125).is_ok());
    world.run(grow(300));
    assert!(pages.grow(SPACE, 300).is_ok());
    // The disk has room for what is wanted, but not for more.
    world
        .disk
        .set_capacity(world.disk.used_bytes() + 150 * 4096);
    world.run(grow(500));
    assert!(pages.grow(SPACE, 500).is_ok());
}

/// (G2) of `growth.rs`: statements that are killed while the disk is slow leave one call behind.
#[test]
fn growths_that_nobody_waits_for_are_one_call() {
    let world = World::new(16);
    let pages = world.open(options(8, 1));
    let (at_work, disk) = (Rc::clone(&pages), world.disk.clone());
    world.run(async move {
        disk.hold_late_work();
        for _ in 0..20 {
            let given_up = poll_at_most(1, growth(&at_work, 100)).await;
            assert!(given_up.is_none(), "the call is not done");
        }
        let mut calls = disk.release_late_work();
        assert_eq!(calls.len(), 1);
        assert_eq!(at_work.pool().room_pages(SPACE), Some(0));
        assert_eq!(calls.remove(0).run(), Ok(()));
        assert!(
            at_work.grow(SPACE, 100).is_ok(),
            "whoever comes next finds its room"
        );
        // A growth that fails leaves the turn to the next.
        disk.hold_late_work();
        assert!(poll_at_most(1, growth(&at_work, 200)).await.is_none());
        let call = disk.release_late_work().remove(0);
        disk.set_capacity(0);
        assert!(call.run().is_err());
        disk.set_capacity(u64::MAX);
        growth(&at_work, 200).await;
        assert!(at_work.grow(SPACE, 200).is_ok());
    });
}

/// A page whose log is lost is neither read nor changed.
#[test]
fn a_page_that_is_ahead_of_the_log_is_refused() {
    let world = World::new(14);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 0, 1).await.unwrap();
        at_work.clean_all().await.unwrap();
        at_work.checkpoint(Vec::new()).await.unwrap();
    });
    drop(pages);
    let world = world.crash();
    let file = space::open_file(&world.disk, Path::new("data/space_5.pdb"), false).unwrap();
    let read = world.disk.read(&file, 0, env::IoBuffer::zeroed(4096));
    let (mut bytes, _) = world.run(read);
    format::page::set_page_lsn(&mut *bytes, Lsn(1 << 40));
    format::page::seal(&mut bytes);
    let sync = env::WriteDurability::Sync;
    let (_, written) = world.run(world.disk.write(&file, 0, bytes, sync));
    assert_eq!(written, Ok(4096));
    let pages = world.open(options(8, 1));
    world.run(async move {
        for error in [
            get(&pages, 0).await.unwrap_err(),
            put(&pages, 0, 2).await.unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.contains("but the log of its time ends at"), "{error}");
        }
    });
}

#[test]
fn notes_come_back_in_order() {
    let world = World::new(9);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    let lsns = world.run(async move {
        let mut lsns = Vec::new();
        for number in 0..3 {
            let mut change = retry(|| at_work.change()).await.unwrap();
            change.note(OpKind(99), &[number]);
            lsns.push(change.commit());
        }
        durable(&at_work, lsns[2]).await.unwrap();
        lsns
    });
    drop(pages);
    let world = world.crash();
    let disk = world.disk();
    let found = world.run(async move {
        let mut found = Vec::new();
        let mut notes = |note: Note<'_>| found.push((note.payload.to_vec(), note.end));
        start(disk, options(8, 1), Box::new(|_| {}), &mut notes)
            .await
            .unwrap();
        found
    });
    let expected: Vec<_> = (0..3u8).map(|number| vec![number]).zip(lsns).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_directory_in_use_or_foreign_is_refused() {
    let world = World::new(10);
    let first = world.start(options(8, 1)).unwrap();
    let second = world.start(options(8, 1)).unwrap_err();
    assert_eq!(second, RecoveryError::InUse(PathBuf::from("data")));
    drop(first);
    world.start(options(8, 1)).unwrap();
    let mut elsewhere = options(8, 1);
    elsewhere.directory = PathBuf::from("other");
    world.disk.create_directory(Path::new("other")).unwrap();
    let access = env::FileAccess::Buffered;
    let make = env::OpenOptions {
        write: true,
        create: true,
        exclusive: true,
        access,
    };
    world.disk.open(Path::new("other/file"), make).unwrap();
    let foreign = world.start(elsewhere).unwrap_err();
    assert_eq!(foreign, RecoveryError::Foreign(PathBuf::from("other")));
}

/// A directory without its control file is not taken for a new one: nothing in it is touched.
#[test]
fn tablespaces_without_a_control_file_are_refused() {
    let world = World::new(15);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 0, 1).await.unwrap();
        at_work.clean_all().await.unwrap();
        at_work.checkpoint(Vec::new()).await.unwrap();
    });
    drop(pages);
    let world = world.crash();
    world.disk.remove(Path::new("data/control.pdc")).unwrap();
    let names = world.disk.list(Path::new("data"));
    let refused = world.start(options(8, 1)).unwrap_err();
    assert_eq!(refused, RecoveryError::NoControl(PathBuf::from("data")));
    assert_eq!(world.disk.list(Path::new("data")), names);
}

#[test]
fn suspensions_say_why() {
    let world = World::new(11);
    let pages = world.open(options(8, 1));
    assert_eq!(growth(&pages, 9).reason(), WaitReason::Growth);
    let Err(Interrupt::Suspend(miss)) = pages.shared(id(1)) else {
        panic!("it is not in memory")
    };
    assert_eq!(miss.reason(), WaitReason::PageMiss);
    let Err(Interrupt::Suspend(join)) = pages.shared(id(1)) else {
        panic!("it is being read")
    };
    drop(miss);
    world.run(join);
}
