//! One test for each fault of the model, and for the guarantee that a seed replays.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::clock::Clock as _;
use crate::disk::{Disk, DiskErrorKind, File, FileAccess, IoFuture, OpenOptions, WriteDurability};
use crate::{IoBuffer, Random};

const CREATE: OpenOptions = OpenOptions {
    write: true,
    create: true,
    exclusive: false,
    access: FileAccess::Direct,
};
const OPEN: OpenOptions = OpenOptions {
    create: false,
    ..CREATE
};
const UNIT: usize = 512;
const SEEDS: std::ops::Range<u64> = 0..300;

/// Runs a future of a disk without delays.
fn now<T: 'static>(future: IoFuture<T>) -> T {
    SimExecutor::new(0, SimClock::new())
        .block_on(future)
        .expect("no delays")
}

fn write(disk: &SimDisk, file: &File, offset: u64, byte: u8, units: usize) {
    write_as(disk, file, offset, byte, units, WriteDurability::Volatile);
}

fn write_as(
    disk: &SimDisk,
    file: &File,
    offset: u64,
    byte: u8,
    units: usize,
    durability: WriteDurability,
) {
    let mut buffer = IoBuffer::zeroed(units * UNIT);
    buffer.fill(byte);
    let (_, result) = now(disk.write(file, offset, buffer, durability));
    assert_eq!(result, Ok(units * UNIT));
}

/// The first byte of each unit; asserts that no unit is torn.
fn units(disk: &SimDisk, file: &File) -> Vec<u8> {
    let length = usize::try_from(disk.length(file).unwrap()).unwrap();
    if length == 0 {
        return Vec::new();
    }
    let (buffer, result) = now(disk.read(file, 0, IoBuffer::zeroed(length)));
    assert_eq!(result, Ok(length));
    let chunks = buffer.chunks(UNIT);
    chunks
        .map(|unit| {
            unit.iter()
                .fold(unit[0], |a, b| if a == *b { a } else { 255 })
        })
        .collect()
}

/// A file of 16 durable units of 1, in a durable directory entry.
fn prepared(seed: u64) -> (SimDisk, File) {
    let disk = SimDisk::with_seed(seed);
    let file = disk.open(Path::new("f"), CREATE).unwrap();
    write(&disk, &file, 0, 1, 16);
    now(disk.sync(&file)).unwrap();
    disk.sync_directory(Path::new("")).unwrap();
    (disk, file)
}

fn after_crash(disk: &SimDisk) -> Vec<u8> {
    let disk = disk.crash();
    let file = disk.open(Path::new("f"), OPEN).unwrap();
    units(&disk, &file)
}

#[test]
fn what_is_durable_survives_every_crash() {
    for seed in SEEDS {
        let (disk, file) = prepared(seed);
        write_as(&disk, &file, 512, 2, 1, WriteDurability::Sync);
        write(&disk, &file, 1024, 3, 1);
        write_as(&disk, &file, 1024, 4, 1, WriteDurability::Sync);
        let mut expected = vec![1; 16];
        (expected[1], expected[2]) = (2, 4);
        assert_eq!(after_crash(&disk), expected);
    }
}

#[test]
fn unsynced_writes_vanish_reorder_and_tear_at_both_sizes() {
    let mut outcomes = BTreeSet::new();
    for seed in SEEDS {
        let (disk, file) = prepared(seed);
        write(&disk, &file, 0, 2, 16);
        write(&disk, &file, 0, 3, 16);
        let found = after_crash(&disk);
        assert_eq!(found.len(), 16);
        assert!(found.iter().all(|unit| (1..=3).contains(unit)), "{found:?}");
        outcomes.insert(found);
    }
    let even = |half: &[u8]| half.iter().all(|unit| *unit == half[0]);
    assert!(outcomes.contains(&vec![1; 16]), "all vanished");
    assert!(outcomes.contains(&vec![3; 16]), "all survived");
    assert!(
        outcomes.iter().any(|it| it.contains(&2) && it.contains(&3)),
        "reordered"
    );
    assert!(outcomes.iter().any(|it| !even(&it[..8])), "torn at 512");
    let torn_at_4096 = |it: &&Vec<u8>| even(&it[..8]) && even(&it[8..]) && it[0] != it[8];
    assert!(outcomes.iter().any(|it| torn_at_4096(&it)), "torn at 4096");
}

#[test]
fn unsynced_lengths_survive_or_not() {
    let mut lengths = BTreeSet::new();
    for seed in SEEDS {
        let (disk, file) = prepared(seed);
        disk.set_length(&file, 512).unwrap();
        disk.allocate(&file, 20 * 512).unwrap();
        lengths.insert(after_crash(&disk).len());
    }
    assert_eq!(lengths, BTreeSet::from([1, 16, 20]));
}

#[test]
fn unsynced_names_are_old_or_new_each_for_itself() {
    let mut outcomes = BTreeSet::new();
    for seed in SEEDS {
        let (disk, _) = prepared(seed);
        disk.open(Path::new("g"), CREATE).unwrap();
        disk.sync_directory(Path::new("")).unwrap();
        disk.open(Path::new("new"), CREATE).unwrap();
        disk.rename(Path::new("f"), Path::new("moved")).unwrap();
        disk.remove(Path::new("g")).unwrap();
        outcomes.insert(disk.crash().list(Path::new("")).unwrap());
    }
    let has = |names: &[PathBuf], name: &str| names.contains(&PathBuf::from(name));
    assert_eq!(outcomes.len(), 8, "three steps, each done or not");
    assert!(
        outcomes
            .iter()
            .all(|names| has(names, "f") != has(names, "moved"))
    );
}

#[test]
fn synced_names_survive_and_other_directories_do_not() {
    let mut survived = BTreeSet::new();
    for seed in SEEDS {
        let disk = SimDisk::with_seed(seed);
        disk.create_directory(Path::new("a/b")).unwrap();
        disk.open(Path::new("a/b/kept"), CREATE).unwrap();
        disk.open(Path::new("a/doubtful"), CREATE).unwrap();
        disk.sync_directory(Path::new("a/b")).unwrap();
        let after = disk.crash();
        assert_eq!(
            after.list(Path::new("a/b")),
            Ok(vec![PathBuf::from("kept")])
        );
        survived.insert(after.list(Path::new("a")).unwrap().len());
    }
    assert_eq!(survived, BTreeSet::from([1, 2]));
}

#[test]
fn injected_errors_come_as_often_as_asked_and_damage_as_allowed() {
    let (disk, file) = prepared(5);
    disk.set_faults(Faults {
        read_permille: 1000,
        write_permille: 1000,
        sync_permille: 1000,
    });
    let (_, read) = now(disk.read(&file, 0, IoBuffer::zeroed(512)));
    assert_eq!(read.unwrap_err().kind, DiskErrorKind::Failed);
    let (buffer, result) =
        now(disk.write(&file, 0, IoBuffer::zeroed(16 * UNIT), WriteDurability::Sync));
    assert_eq!(result.unwrap_err().kind, DiskErrorKind::Failed);
    assert_eq!(buffer.len(), 16 * UNIT);
    disk.set_faults(Faults::default());
    let seen = units(&disk, &file);
    assert!(
        seen.contains(&0) && seen.contains(&1),
        "a failed write wrote some of its units"
    );
}

#[test]
fn a_later_sync_does_not_save_what_a_failed_one_lost() {
    let mut outcomes = BTreeSet::new();
    for seed in SEEDS {
        let (disk, file) = prepared(seed);
        write(&disk, &file, 0, 2, 1);
        disk.set_faults(Faults {
            sync_permille: 1000,
            ..Faults::default()
        });
        assert!(now(disk.sync(&file)).is_err());
        disk.set_faults(Faults::default());
        assert_eq!(units(&disk, &file)[0], 2, "still to be read");
        now(disk.sync(&file)).unwrap();
        outcomes.insert(after_crash(&disk)[0]);
    }
    assert_eq!(outcomes, BTreeSet::from([1, 2]));
}

#[test]
fn a_full_disk_refuses_growth_alone_and_goes_on_once_there_is_room() {
    let (disk, file) = prepared(1);
    disk.set_capacity(16 * 512);
    write(&disk, &file, 0, 2, 16);
    let (_, result) = now(disk.write(
        &file,
        16 * 512,
        IoBuffer::zeroed(512),
        WriteDurability::Volatile,
    ));
    assert_eq!(result.unwrap_err().kind, DiskErrorKind::Full);
    assert_eq!(
        disk.allocate(&file, 17 * 512).unwrap_err().kind,
        DiskErrorKind::Full
    );
    disk.set_capacity(17 * 512);
    disk.allocate(&file, 17 * 512).unwrap();
    disk.set_capacity(0);
    write(&disk, &file, 16 * 512, 3, 1);
    assert_eq!(units(&disk, &file)[16], 3);
}

#[test]
fn a_dead_process_loses_nothing_that_completed() {
    for seed in SEEDS {
        let (disk, file) = prepared(seed);
        write(&disk, &file, 0, 2, 16);
        disk.open(Path::new("g"), CREATE).unwrap();
        let next = disk.kill();
        let again = next.open(Path::new("f"), OPEN).unwrap();
        assert_eq!(units(&next, &again), vec![2; 16]);
        assert_eq!(next.list(Path::new("")).unwrap().len(), 2);
        // It is still not durable; then the power fails as well.
        let found = after_crash(&next);
        assert!(found.iter().all(|unit| (1..=2).contains(unit)));
    }
}

#[test]
fn a_removed_file_may_come_back_after_a_dead_process() {
    let has_come_back = |seed| {
        let (disk, _) = prepared(seed);
        disk.remove(Path::new("f")).unwrap();
        let killed = disk.kill();
        assert!(killed.open(Path::new("f"), OPEN).is_err());
        let next = killed.crash();
        let found = next.open(Path::new("f"), OPEN).ok();
        found.map(|file| units(&next, &file).len())
    };
    let found: BTreeSet<_> = SEEDS.map(has_come_back).collect();
    assert_eq!(found, BTreeSet::from([None, Some(16)]));
}

#[test]
fn lost_flushes_are_confirmed_and_counted() {
    for seed in SEEDS {
        let (disk, file) = prepared(seed);
        disk.lose_flushes(1000);
        write(&disk, &file, 0, 2, 16);
        now(disk.sync(&file)).unwrap();
        assert_eq!(units(&disk, &file), vec![2; 16]);
        let counts = disk.fault_counts();
        assert_eq!((counts.flushes_lost, counts.syncs_failed), (1, 0));
        let found = after_crash(&disk);
        assert!(found.iter().all(|unit| (1..=2).contains(unit)));
    }
}

#[test]
fn the_old_incarnation_is_dead_and_its_lock_gone() {
    let (disk, file) = prepared(3);
    disk.lock(&file).unwrap();
    let second = disk.open(Path::new("f"), OPEN).unwrap();
    assert_eq!(disk.lock(&second).unwrap_err().kind, DiskErrorKind::Busy);
    let next = disk.crash();
    assert!(disk.open(Path::new("f"), OPEN).is_err());
    assert!(now(disk.sync(&file)).is_err());
    assert!(now(disk.read(&file, 0, IoBuffer::zeroed(512))).1.is_err());
    assert!(
        now(next.read(&file, 0, IoBuffer::zeroed(512))).1.is_err(),
        "a foreign file"
    );
    let again = next.open(Path::new("f"), OPEN).unwrap();
    next.lock(&again).unwrap();
    drop(again);
    let third = next.open(Path::new("f"), OPEN).unwrap();
    next.lock(&third).unwrap();
}

#[test]
fn damage_turns_one_bit() {
    let (disk, file) = prepared(3);
    disk.damage(Path::new("f"), 600, 1);
    let (buffer, _) = now(disk.read(&file, 600, IoBuffer::zeroed(1)));
    assert_eq!(buffer[0], 3);
}

/// Eight slow writes. Returns the order in which they completed and what a crash in the middle
/// left.
fn slow_run(seed: u64) -> (Vec<u64>, Vec<u8>) {
    let clock = SimClock::new();
    let delay = Duration::from_micros(10)..Duration::from_micros(500);
    let options = DiskOptions {
        seed,
        delay,
        ..DiskOptions::default()
    };
    let disk = SimDisk::new(options, clock.clone());
    let executor = SimExecutor::new(seed, clock);
    let file = disk.open(Path::new("f"), CREATE).unwrap();
    disk.sync_directory(Path::new("")).unwrap();
    disk.set_length(&file, 16 * 512).unwrap();
    executor.block_on(disk.sync(&file)).unwrap().unwrap();
    let completed = Rc::new(RefCell::new(Vec::new()));
    for index in 0..16 {
        let (disk, file, completed) = (disk.clone(), file.clone(), completed.clone());
        executor.spawn(async move {
            let mut buffer = IoBuffer::zeroed(512);
            buffer.fill(1);
            let (_, result) = disk
                .write(&file, index * 512, buffer, WriteDurability::Sync)
                .await;
            assert_eq!(result, Ok(512));
            completed.borrow_mut().push(index);
        });
    }
    executor.run_steps(Random::new(seed).below(60));
    executor.clear();
    let after = disk.crash();
    let file = after.open(Path::new("f"), OPEN).unwrap();
    let (buffer, _) = executor
        .block_on(after.read(&file, 0, IoBuffer::zeroed(16 * 512)))
        .unwrap();
    let found = buffer.chunks(512).map(|unit| unit[0]).collect();
    let order = completed.borrow().clone();
    (order, found)
}

#[test]
fn slow_operations_complete_out_of_order_and_acknowledged_ones_survive() {
    let mut out_of_order = 0;
    let mut unacknowledged_survivors = 0;
    for seed in SEEDS {
        let (order, found) = slow_run(seed);
        for &index in &order {
            assert_eq!(found[usize::try_from(index).unwrap()], 1, "seed {seed}");
        }
        out_of_order += usize::from(!order.is_sorted());
        unacknowledged_survivors +=
            usize::from(order.len() < found.iter().filter(|it| **it == 1).count());
    }
    assert!(100 < out_of_order);
    assert!(20 < unacknowledged_survivors);
}

#[test]
fn a_seed_replays_its_run() {
    for seed in SEEDS {
        assert_eq!(slow_run(seed), slow_run(seed));
    }
    assert_ne!(slow_run(1), slow_run(2));
}

#[test]
fn a_dropped_write_is_still_carried_out() {
    let clock = SimClock::new();
    let delay = Duration::from_micros(10)..Duration::from_micros(11);
    let disk = SimDisk::new(
        DiskOptions {
            delay,
            ..DiskOptions::default()
        },
        clock.clone(),
    );
    let executor = SimExecutor::new(0, clock.clone());
    let file = disk.open(Path::new("f"), CREATE).unwrap();
    drop(disk.write(&file, 0, IoBuffer::zeroed(512), WriteDurability::Volatile));
    let sleeping = clock.clone();
    executor
        .block_on(async move { sleeping.sleep(Duration::from_millis(1)).await })
        .unwrap();
    assert_eq!(clock.now().nanos(), 1_000_000);
    assert_eq!(disk.length(&file), Ok(512));
}

#[test]
fn a_run_that_only_lets_time_pass_is_stuck() {
    let executor = SimExecutor::new(0, SimClock::new());
    let clock = executor.clock().clone();
    executor.spawn(async move {
        loop {
            clock.sleep(Duration::from_millis(100)).await;
        }
    });
    assert_eq!(executor.block_on(std::future::pending::<()>()), Err(Stuck));
}

#[test]
fn a_stuck_run_is_reported() {
    let executor = SimExecutor::new(0, SimClock::new());
    assert_eq!(executor.block_on(std::future::pending::<()>()), Err(Stuck));
    assert_eq!(executor.run(), 1);
    let order = Rc::new(RefCell::new(Vec::new()));
    for name in 0..2 {
        let (executor_of_task, order) = (executor.clone(), order.clone());
        executor.spawn(async move {
            order.borrow_mut().push(name);
            executor_of_task.yield_now().await;
            order.borrow_mut().push(name);
        });
    }
    assert_eq!(executor.run(), 1);
    assert_eq!(order.borrow().len(), 4);
}
