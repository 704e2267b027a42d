//! Tests of the log on the simulated disk.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{DiskOptions, Faults, SimClock, SimDisk, SimExecutor, seeds};
use env::{
    Disk, DiskError, DiskErrorKind, FileAccess, IoBuffer, OpenOptions, Random, WriteDurability,
};
use format::Lsn;
use format::log::{LogOp, MTR_HEADER_BYTES, OpKind};
use proptest::prelude::*;
use sync::Mutex;

use super::*;

mod damage;
mod given_up;

/// Between two checks of a background task: about a fifth of a slow disk's time.
const TICK: Duration = Duration::from_micros(100);

const DIRECTORY: &str = "data";

fn options() -> WalOptions {
    WalOptions {
        ring_bytes: 1 << 14,
        mtr_bytes_max: 1 << 11,
        worker_count: 2,
        segment_blocks: 8,
        segments_ahead: 1,
        log_bytes_max: 1 << 17,
        flush_bytes_max: 1 << 13,
    }
}

/// The causes that the callback of a poisoned log has received.
type Causes = Arc<Mutex<Vec<WalError>>>;

struct World {
    disk: SimDisk,
    executor: SimExecutor,
    causes: Causes,
}

/// Mini-transactions as a test remembers them: number and end.
type Found = Vec<(u64, Lsn)>;

impl World {
    fn new(options: DiskOptions) -> Self {
        let clock = SimClock::new();
        let executor = SimExecutor::new(options.seed, clock.clone());
        let disk = SimDisk::new(options, clock);
        disk.create_directory(Path::new(DIRECTORY)).unwrap();
        Self {
            disk,
            executor,
            causes: Causes::default(),
        }
    }

    fn with_seed(seed: u64) -> Self {
        Self::new(DiskOptions {
            seed,
            ..DiskOptions::default()
        })
    }

    fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        self.executor
            .block_on(future)
            .expect("nobody waits for ever")
    }

    /// Opens the log, or makes it if there is none, and reads all of it.
    fn open(&self, options: WalOptions) -> Result<(Arc<Wal>, Found), WalError> {
        let (disk, causes) = (self.disk.clone(), Arc::clone(&self.causes));
        self.run(async move {
            let directory = Path::new(DIRECTORY);
            let log = if Log::exists(&disk, directory)? {
                Log::open(&disk, directory).await?
            } else {
                Log::create(&disk, directory, &options).await?
            };
            let mut scan = log.scan(OnLogLoss::Refuse);
            let mut found = Found::new();
            while let Some(mtr) = scan.next(&disk).await? {
                let ops: Vec<_> = mtr.ops().collect();
                let payload = ops[0].unwrap().payload;
                found.push((
                    u64::from_le_bytes(payload[..8].try_into().unwrap()),
                    mtr.end,
                ));
            }
            let on_poison = Box::new(move |error: &WalError| causes.lock().push(error.clone()));
            let wal = Wal::start(&disk, log, &scan, options, on_poison).await?;
            Ok((wal, found))
        })
    }

    /// A server's background work: flushing, segments, and checkpoints when they are due.
    fn background(&self, wal: &Arc<Wal>) {
        let (wal, disk) = (Arc::clone(wal), self.disk.clone());
        let executor = self.executor.clone();
        self.executor.spawn(async move {
            while !wal.is_poisoned() {
                if let Some(job) = wal.try_lead() {
                    job.run(&disk).await;
                }
                if wal.needs_segments() {
                    let _ = wal.prepare_segments(&disk).await;
                }
                if 50 < wal.age_percent() {
                    let lsn = wal.durable().min(wal.closed());
                    let boundary = BOUNDARIES
                        .with_borrow(|ends| ends.iter().rev().find(|end| **end <= lsn).copied());
                    if let Some(lsn) = boundary {
                        let _ = wal.write_checkpoint(&disk, lsn, Vec::new()).await;
                    }
                }
                executor.clock().sleep(TICK).await;
            }
        });
    }

    fn crash(self) -> Self {
        self.executor.clear();
        let disk = self.disk.crash();
        Self {
            disk,
            executor: self.executor,
            causes: Causes::default(),
        }
    }
}

thread_local! {
    /// Ends of mini-transactions of the running test: where a checkpoint may be.
    static BOUNDARIES: RefCell<Vec<Lsn>> = const { RefCell::new(Vec::new()) };
}

/// Why a mini-transaction was not written.
#[derive(Debug, PartialEq)]
enum Refused {
    NoSegment(DiskError),
    Closed(WalError),
}

/// Writes mini-transaction `number` with `bytes` of payload beyond it.
async fn write(writer: &mut WalWriter, number: u64, bytes: usize) -> Result<Lsn, Refused> {
    loop {
        match writer.permit(Purpose::Work) {
            Ok(()) => break,
            Err(NoRoom::Wait) => {
                let wait = writer.wal().wait_room(Purpose::Work);
                wait.await.map_err(Refused::NoSegment)?;
            }
            Err(NoRoom::Closed(error)) => return Err(Refused::Closed(error)),
        }
    }
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(8 + bytes, stdx::low_u8(number));
    let mut mtr = vec![0; MTR_HEADER_BYTES];
    LogOp::new(OpKind(77), &[], &payload).encode(&mut mtr);
    let commit = writer.commit(&mut mtr);
    BOUNDARIES.with_borrow_mut(|ends| ends.push(commit.end));
    Ok(commit.end)
}

/// A run's state of its mini-transactions, kept over crashes.
#[derive(Default)]
struct Truth {
    /// All that were written since the last crash, in log order.
    written: RefCell<Found>,
    /// The end of the last one whose durability was reported.
    acknowledged: Cell<Lsn>,
    next: Cell<u64>,
}

/// Commits at random until the crash.
async fn client(wal: Arc<Wal>, worker: usize, truth: Rc<Truth>, executor: SimExecutor, seed: u64) {
    let mut writer = wal.writer(worker);
    let mut random = Random::new(seed);
    loop {
        let bytes = if random.chance(50) {
            random.index(1900)
        } else {
            random.index(60)
        };
        let number = truth.next.replace(truth.next.get() + 1);
        let Ok(end) = write(&mut writer, number, bytes).await else {
            return;
        };
        truth.written.borrow_mut().push((number, end));
        match random.index(4) {
            0 => executor.clock().sleep(TICK).await,
            1 => drop(wal.wait(worker, end, LogLevel::Durable)),
            2 => {
                let level = if random.coin() {
                    LogLevel::Durable
                } else {
                    LogLevel::Written
                };
                if wal.wait(worker, end, level).await.is_err() {
                    return;
                }
                if level == LogLevel::Durable {
                    assert!(end <= wal.durable());
                    truth.acknowledged.set(truth.acknowledged.get().max(end));
                }
            }
            _ => {}
        }
    }
}

/// Several lives of a log with crashes at random moments. The log found is a prefix of what was
/// written, and holds all that was acknowledged.
fn lives(seed: u64, faults: Faults) {
    BOUNDARIES.with_borrow_mut(Vec::clear);
    let mut random = Random::new(seed);
    let delay = if random.coin() {
        Duration::ZERO
    } else {
        Duration::from_micros(500)
    };
    let mut world = World::new(DiskOptions {
        seed,
        delay: Duration::ZERO..delay,
        ..DiskOptions::default()
    });
    let truth = Rc::new(Truth::default());
    let mut before: Found = Vec::new();
    for life in 0..6 {
        let (wal, found) = world.open(options()).expect("the log is whole");
        let all: Found = before
            .iter()
            .chain(&*truth.written.borrow())
            .copied()
            .collect();
        let last = found.last().map_or(wal.checkpoint(), |(_, end)| *end);
        let known = all
            .iter()
            .position(|(_, end)| wal.checkpoint() < *end)
            .unwrap_or(all.len());
        assert_eq!(
            found,
            all[known..known + found.len()],
            "seed {seed}, life {life}"
        );
        assert!(truth.acknowledged.get() <= last, "seed {seed}, life {life}");
        before = all[..known + found.len()].to_vec();
        BOUNDARIES.with_borrow_mut(|ends| ends.retain(|end| *end <= last));
        truth.written.borrow_mut().clear();
        // As `buffer::start` does before the first commit: see `Wal::start`.
        let (starting, disk) = (Arc::clone(&wal), world.disk.clone());
        world.run(async move {
            let end = starting.durable();
            starting
                .write_checkpoint(&disk, end, Vec::new())
                .await
                .expect("nothing fails yet");
        });
        world.disk.set_faults(faults);
        world.background(&wal);
        for worker in 0..2 {
            let executor = world.executor.clone();
            let client = client(
                Arc::clone(&wal),
                worker,
                Rc::clone(&truth),
                executor,
                seed + life,
            );
            world.executor.spawn(client);
        }
        // In short lives, the end of the life before lies after the checkpoint of the next.
        let steps_max = if random.coin() { 200 } else { 3000 };
        world.executor.run_steps(random.below(steps_max));
        drop(wal);
        world.disk.set_faults(Faults::default());
        world = world.crash();
    }
}

#[test]
fn acknowledged_log_survives_crashes() {
    for seed in seeds(0, 40) {
        lives(seed, Faults::default());
    }
}

#[test]
fn acknowledged_log_survives_failing_disks() {
    for seed in seeds(1000, 25) {
        let faults = Faults {
            write_permille: 5,
            sync_permille: 20,
            ..Faults::default()
        };
        lives(seed, faults);
    }
}

#[test]
fn a_failed_write_closes_the_log() {
    let world = World::with_seed(1);
    let (wal, _) = world.open(options()).unwrap();
    let executor = world.executor.clone();
    world.background(&wal);
    let disk = world.disk.clone();
    let at_work = Arc::clone(&wal);
    world.run(async move {
        let mut writer = at_work.writer(0);
        let good = write(&mut writer, 1, 0).await.unwrap();
        at_work.wait(0, good, LogLevel::Durable).await.unwrap();
        disk.set_faults(Faults {
            write_permille: 1000,
            ..Faults::default()
        });
        let lost = write(&mut writer, 2, 0).await.unwrap();
        let outcome = at_work.wait(0, lost, LogLevel::Durable).await;
        assert_eq!(outcome, Err(WalError::Poisoned));
        at_work.wait(0, good, LogLevel::Durable).await.unwrap();
        disk.set_faults(Faults::default());
        executor.clock().sleep(TICK).await;
        assert_eq!(
            write(&mut writer, 3, 0).await,
            Err(Refused::Closed(WalError::Poisoned))
        );
        assert_eq!(at_work.durable(), good);
        assert!(at_work.try_lead().is_none());
    });
    let causes = world.causes.lock().clone();
    assert!(matches!(causes[..], [WalError::Disk(_)]), "{causes:?}");
}

#[test]
fn a_log_on_a_full_disk_recycles_its_segments() {
    let world = World::with_seed(2);
    let (wal, _) = world
        .open(WalOptions {
            // More than permits must find ahead of the writing.
            segment_blocks: 32,
            ..options()
        })
        .unwrap();
    world.background(&wal);
    let disk = world.disk.clone();
    let at_work = Arc::clone(&wal);
    let bytes = world.run(async move {
        let mut writer = at_work.writer(1);
        disk.set_capacity(0);
        let mut last = Lsn::FIRST;
        for number in 0..200 {
            last = write(&mut writer, number, 1000).await.unwrap();
        }
        at_work.wait(1, last, LogLevel::Durable).await.unwrap();
        last.0
    });
    let log_bytes_max = options().log_bytes_max;
    assert!(log_bytes_max < bytes, "{bytes} bytes fit without recycling");
}

/// For any size of segments. The blocks ahead of a checkpoint at the end of the log are enough to
/// continue, and those after it are all reused.
#[test]
fn a_log_of_small_segments_goes_on_on_a_full_disk() {
    for (seed, segment_blocks) in [(8, 1), (9, 3), (10, 8), (11, 12)] {
        BOUNDARIES.with_borrow_mut(Vec::clear);
        let world = World::with_seed(seed);
        let (wal, _) = world
            .open(WalOptions {
                segment_blocks,
                ..options()
            })
            .unwrap();
        world.background(&wal);
        world.disk.set_capacity(0);
        let is_done = Rc::new(Cell::new(false));
        let (at_work, ending) = (Arc::clone(&wal), Rc::clone(&is_done));
        world.executor.spawn(async move {
            let mut writer = at_work.writer(0);
            let mut random = Random::new(seed);
            for number in 0..400 {
                let bytes = random.index(2000);
                let end = write(&mut writer, number, bytes).await.unwrap();
                if random.coin() {
                    at_work.wait(0, end, LogLevel::Durable).await.unwrap();
                }
            }
            ending.set(true);
        });
        for _ in 0..200 {
            world.executor.run_steps(1000);
        }
        assert!(is_done.get(), "segments of {segment_blocks} blocks");
        assert!(options().log_bytes_max < wal.durable().0);
    }
}

/// A log whose segments are of 64 blocks, with its background.
fn open_large_segments(world: &World) -> Arc<Wal> {
    let options = WalOptions {
        segment_blocks: 64,
        log_bytes_max: 1 << 20,
        ..options()
    };
    let (wal, _) = world.open(options).unwrap();
    world.background(&wal);
    wal
}

/// Writes until there is no room. Returns the end of the last record, and why there is no more.
async fn write_until_refused(writer: &mut WalWriter) -> (Lsn, Refused) {
    let mut last = Lsn::FIRST;
    loop {
        match write(writer, 9, 1000).await {
            Ok(end) => last = end,
            Err(refused) => return (last, refused),
        }
    }
}

/// If even that is impossible (here the disk was full before the segments were made), new work
/// fails, and undoing goes on for a while. Work that comes when there is room does not get the old
/// error (R1).
#[test]
fn a_full_disk_refuses_until_there_is_room() {
    let world = World::with_seed(2);
    let segment_bytes = 64 * 4096;
    world.disk.set_capacity(segment_bytes + segment_bytes / 2);
    let wal = open_large_segments(&world);
    let disk = world.disk.clone();
    let at_work = Arc::clone(&wal);
    world.run(async move {
        let mut writer = at_work.writer(1);
        let (last, refused) = write_until_refused(&mut writer).await;
        assert!(matches!(refused, Refused::NoSegment(error) if error.kind == DiskErrorKind::Full));
        at_work.wait(1, last, LogLevel::Durable).await.unwrap();
        assert_eq!(writer.permit(Purpose::Undo), Ok(()));
        assert!(at_work.needs_segments(), "it is tried again");
        disk.set_capacity(u64::MAX);
        let end = write(&mut writer, 10, 1000).await.unwrap();
        at_work.wait(1, end, LogLevel::Durable).await.unwrap();
    });
}

/// The process has no descriptor for a segment: new work fails, the log does not. It goes on once
/// there are descriptors.
#[test]
fn segments_wait_for_file_descriptors() {
    let world = World::with_seed(3);
    let wal = open_large_segments(&world);
    let disk = world.disk.clone();
    let at_work = Arc::clone(&wal);
    world.run(async move {
        let mut writer = at_work.writer(1);
        disk.take_descriptors();
        let (last, refused) = write_until_refused(&mut writer).await;
        let Refused::NoSegment(error) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(error.kind, DiskErrorKind::NoDescriptor);
        assert!(at_work.is_stopped_by(DiskErrorKind::NoDescriptor));
        assert!(!at_work.is_stopped_by(DiskErrorKind::Full));
        at_work.wait(1, last, LogLevel::Durable).await.unwrap();
        disk.give_descriptors();
        let end = write(&mut writer, 10, 1000).await.unwrap();
        assert!(!at_work.is_stopped_by(DiskErrorKind::NoDescriptor));
        at_work.wait(1, end, LogLevel::Durable).await.unwrap();
    });
}

/// At the end of the log, a checkpoint names the next block: all before it is free.
#[test]
fn a_checkpoint_at_the_end_needs_nothing_before_it() {
    let mut world = World::with_seed(12);
    for life in 0..3 {
        let (wal, found) = world.open(options()).unwrap();
        assert_eq!(found.len(), usize::from(0 < life), "what came after it");
        let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
        world.run(async move {
            let mut writer = at_work.writer(0);
            for number in 0..5 {
                write(&mut writer, number, 1800).await.unwrap();
            }
            at_work.request_all();
            at_work.try_lead().unwrap().run(&disk).await;
            let end = at_work.durable();
            at_work
                .write_checkpoint(&disk, end, Vec::new())
                .await
                .unwrap();
            assert_eq!(at_work.age_percent(), 0);
            write(&mut writer, 9, 10).await.unwrap();
            at_work.request_all();
            at_work.try_lead().unwrap().run(&disk).await;
        });
        drop(wal);
        world = world.crash();
    }
}

#[test]
fn levels_are_reached_one_by_one() {
    let world = World::with_seed(3);
    let (wal, _) = world.open(options()).unwrap();
    let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
    world.run(async move {
        let mut writer = at_work.writer(0);
        let end = write(&mut writer, 1, 10).await.unwrap();
        assert!(at_work.try_lead().is_none(), "nobody wants it written");
        at_work.request(end, LogLevel::Written);
        at_work.try_lead().unwrap().run(&disk).await;
        assert_eq!(at_work.reached(LogLevel::Written), end);
        assert!(at_work.durable() < end);
        at_work.wait(0, end, LogLevel::Written).await.unwrap();
        at_work.request_all();
        let job = at_work.try_lead().unwrap();
        assert!(at_work.try_lead().is_none(), "the role is taken");
        job.run(&disk).await;
        assert_eq!(at_work.durable(), end);
        drop(at_work.try_lead());
    });
    assert_eq!(wal.age_percent(), 3, "two blocks were begun");
}

#[test]
fn a_log_that_lost_its_end_is_refused() {
    let world = World::with_seed(4);
    let (wal, _) = world.open(options()).unwrap();
    world.background(&wal);
    let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
    world.run(async move {
        let mut writer = at_work.writer(0);
        let end = write(&mut writer, 1, 10).await.unwrap();
        at_work.wait(0, end, LogLevel::Durable).await.unwrap();
        let start = at_work.checkpoint();
        at_work
            .write_checkpoint(&disk, start, b"kept".to_vec())
            .await
            .unwrap();
    });
    drop(wal);
    let world = world.crash();
    world
        .disk
        .damage(Path::new("data/log/log_0000000000000000.pdl"), 40, 1);
    let lost = world.open(options()).err();
    let Some(WalError::Damaged(damage)) = lost else {
        panic!("{lost:?}");
    };
    assert_eq!(damage.kind, LogDamageKind::KnownToControl);
}

/// A write may end inside a mini-transaction. A checkpoint may be written just then, and power may
/// fail before the rest is written.
#[test]
fn durable_bytes_may_end_inside_a_mini_transaction() {
    let options = WalOptions {
        flush_bytes_max: 4096,
        ..options()
    };
    for seed in 0..20 {
        let delay = Duration::ZERO..Duration::from_micros(500);
        let world = World::new(DiskOptions {
            seed,
            delay,
            ..DiskOptions::default()
        });
        let (wal, _) = world.open(options.clone()).unwrap();
        let flushing = (Arc::clone(&wal), world.disk.clone());
        let checkpointing = (wal, world.disk.clone(), world.executor.clone());
        world.run(async move {
            let (wal, disk, executor) = checkpointing;
            let mut writer = wal.writer(0);
            for number in 0..3 {
                write(&mut writer, number, 1800).await.unwrap();
            }
            wal.request_all();
            executor.spawn(async move {
                let (wal, disk) = flushing;
                wal.try_lead().unwrap().run(&disk).await;
            });
            // The first of two blocks ends in the third mini-transaction.
            while wal.durable() == Lsn::FIRST {
                executor.clock().sleep(TICK / 10).await;
            }
            wal.write_checkpoint(&disk, Lsn::FIRST, Vec::new())
                .await
                .unwrap();
        });
        let world = world.crash();
        let (_, found) = world.open(options.clone()).expect("nothing whole was lost");
        assert!(2 <= found.len());
    }
}

#[test]
fn obsolete_segments_are_used_again() {
    BOUNDARIES.with_borrow_mut(Vec::clear);
    let world = World::with_seed(5);
    let (wal, _) = world.open(options()).unwrap();
    world.background(&wal);
    let at_work = Arc::clone(&wal);
    world.run(async move {
        let mut writer = at_work.writer(0);
        for number in 0..3000 {
            let end = write(&mut writer, number, 200).await.unwrap();
            if number % 10 == 0 {
                at_work.wait(0, end, LogLevel::Durable).await.unwrap();
            }
        }
    });
    let files = world.disk.list(&PathBuf::from("data/log")).unwrap();
    assert!(files.len() < 30, "{} segments", files.len());
    assert!(400_000 < wal.checkpoint().0);
}

/// A log of a few blocks and two lives on a disk of its own.
fn small_log() -> (World, Found) {
    let mut world = World::with_seed(6);
    let mut all = Found::new();
    for life in 0..2u64 {
        let (wal, found) = world
            .open(WalOptions {
                log_bytes_max: 1 << 20,
                ..options()
            })
            .unwrap();
        assert_eq!(found, all);
        world.background(&wal);
        let at_work = Arc::clone(&wal);
        let written = world.run(async move {
            let mut writer = at_work.writer(0);
            let mut written = Found::new();
            for number in 0..12 {
                let number = life * 100 + number;
                let end = write(&mut writer, number, 700).await.unwrap();
                at_work.wait(0, end, LogLevel::Durable).await.unwrap();
                written.push((number, end));
            }
            written
        });
        all.extend(written);
        drop(wal);
        world = world.crash();
    }
    (world, all)
}

fn overwrite(disk: &SimDisk, path: &str, offset: u64, bytes: &[u8]) {
    let options = OpenOptions {
        write: true,
        create: false,
        exclusive: false,
        access: FileAccess::Buffered,
    };
    let file = disk.open(Path::new(path), options).unwrap();
    let mut buffer = IoBuffer::zeroed(bytes.len());
    buffer.copy_from_slice(bytes);
    let write = disk.write(&file, offset, buffer, WriteDurability::Sync);
    let executor = SimExecutor::new(0, SimClock::new());
    executor.block_on(write).unwrap().1.unwrap();
}

/// A crash leaves the front of a mini-transaction; the next life's log is found after it.
#[test]
fn log_goes_on_behind_an_unfinished_mini_transaction() {
    let mut world = World::with_seed(7);
    let mut expected = Found::new();
    for life in 0..3 {
        let (wal, found) = world.open(options()).unwrap();
        assert_eq!(found, expected);
        let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
        let ends = world.run(async move {
            let mut writer = at_work.writer(0);
            let mut ends = Found::new();
            // The third one begins in one block and ends in the next.
            for number in 0..3 {
                ends.push((number, write(&mut writer, number, 1800).await.unwrap()));
            }
            at_work.request_all();
            at_work.try_lead().unwrap().run(&disk).await;
            ends
        });
        expected.extend(&ends[..2]);
        drop(wal);
        world = world.crash();
        let second_block = (2 * life + 1 - life) * 4096;
        overwrite(
            &world.disk,
            "data/log/log_0000000000000000.pdl",
            second_block,
            &[9; 40],
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the segments contain: either the scan finds all that was written, except the last
    /// blocks, which no later whole block mentions, or it reports damage.
    #[test]
    fn a_mutated_log_gives_a_prefix(
        hits in proptest::collection::vec((0u64..4, 0u64..8, 0u64..4096, any::<[u8; 6]>()), 1..5)
    ) {
        let ((world, all), hit_count) = (small_log(), hits.len());
        for (segment, block, offset, bytes) in hits {
            let path = format!("data/log/log_{segment:016x}.pdl");
            let files = world.disk.list(Path::new("data/log")).unwrap();
            if files.iter().any(|file| file.ends_with(&path[9..])) {
                let offset = (block * 4096 + offset).min(8 * 4096 - 6);
                overwrite(&world.disk, &path, offset, &bytes);
            }
        }
        match world.open(options()) {
            Ok((_, found)) => {
                prop_assert_eq!(&found[..], &all[..found.len()]);
                // A hit may cross the border of two blocks.
                let (kept, lost) = (found.len(), 2 * hit_count);
                prop_assert!(all.len() <= kept + lost, "{kept} of {}", all.len());
            }
            Err(WalError::Damaged(_)) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

/// After an orderly end no log is needed, and a missing file of it is no loss. But the other files
/// must not be mistaken for it.
#[test]
fn a_closed_log_whose_last_segment_is_gone_goes_on() {
    let world = World::with_seed(8);
    let (wal, _) = world.open(options()).unwrap();
    world.background(&wal);
    let (disk, at_work) = (world.disk.clone(), Arc::clone(&wal));
    let end = world.run(async move {
        let mut writer = at_work.writer(0);
        let end = write(&mut writer, 1, 0).await.unwrap();
        at_work.wait(0, end, LogLevel::Durable).await.unwrap();
        at_work
            .write_checkpoint(&disk, end, Vec::new())
            .await
            .unwrap();
        at_work.close(&disk, Vec::new()).await.unwrap();
        assert_eq!(
            write(&mut writer, 2, 0).await,
            Err(Refused::Closed(WalError::Poisoned))
        );
        end
    });
    drop(wal);
    let world = world.crash();
    let path = |number: u64| Path::new(DIRECTORY).join(format!("log/log_{number:016x}.pdl"));
    world.disk.remove(&path(0)).unwrap();
    let names = world.disk.list(&Path::new(DIRECTORY).join("log")).unwrap();
    let next = path(1).file_name().map(PathBuf::from);
    assert!(names.contains(&next.unwrap()), "the one behind it is there");
    let (wal, found) = world.open(options()).unwrap();
    assert_eq!((found, wal.durable()), (Vec::new(), end));
    world.background(&wal);
    let done = Rc::new(Cell::new(0));
    let noting = Rc::clone(&done);
    world.executor.spawn(async move {
        let mut writer = wal.writer(0);
        for number in 2..40 {
            let end = write(&mut writer, number, 1000).await.unwrap();
            wal.wait(0, end, LogLevel::Durable).await.unwrap();
            noting.set(number);
        }
    });
    world.executor.run_steps(10_000);
    assert_eq!(done.get(), 39, "nobody waits for ever");
}
