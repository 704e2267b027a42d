//! Damage of the log: it is found, named by file and position, and accepted only if the operator
//! asked for that.

use super::*;

/// Existing segments of the log.
fn segments(disk: &SimDisk) -> Vec<PathBuf> {
    let directory = Path::new(DIRECTORY).join("log");
    let names = disk.list(&directory).unwrap();
    names.iter().map(|name| directory.join(name)).collect()
}

fn segment(number: u64) -> PathBuf {
    Path::new(DIRECTORY).join(format!("log/log_{number:016x}.pdl"))
}

fn open_segment(world: &World, number: u64) -> env::File {
    let options = OpenOptions {
        write: true,
        create: false,
        exclusive: false,
        access: FileAccess::Buffered,
    };
    world.disk.open(&segment(number), options).unwrap()
}

/// A log over three segments, from flushes of one block each, that ends by a loss of power. No
/// checkpoint mentions any of it. A segment has 8 blocks.
fn three_segments(block_count: u64) -> (World, Found) {
    log_of(block_count, 0)
}

/// The same with a checkpoint before the block `checkpoint`.
fn log_of(block_count: u64, checkpoint: u64) -> (World, Found) {
    let world = World::with_seed(21);
    let (wal, _) = world.open(large()).unwrap();
    let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
    let all = world.run(async move {
        let mut writer = at_work.writer(0);
        let mut all = Found::new();
        for number in 0..block_count {
            if number == checkpoint {
                let end = at_work.durable();
                let write = at_work.write_checkpoint(&disk, end, Vec::new());
                write.await.unwrap();
            }
            let end = write(&mut writer, number, 900).await.unwrap();
            at_work.request_all();
            at_work.try_lead().unwrap().run(&disk).await;
            at_work.prepare_segments(&disk).await.unwrap();
            all.push((number, end));
        }
        all
    });
    drop(wal);
    (world.crash(), all)
}

fn large() -> WalOptions {
    WalOptions {
        log_bytes_max: 1 << 20,
        ..options()
    }
}

fn damage_of(world: &World) -> LogDamage {
    match world.open(large()) {
        Err(WalError::Damaged(damage)) => *damage,
        Err(other) => panic!("{other}"),
        Ok((_, found)) => panic!("the log opened with {} of it", found.len()),
    }
}

#[test]
fn a_rotten_block_is_named_with_its_witness() {
    for block in [0, 5, 7, 8, 18] {
        let (world, all) = three_segments(20);
        let path = segment(block / 8);
        let offset = block % 8 * 4096;
        world.disk.damage(&path, offset + 40, 3);
        let damage = damage_of(&world);
        assert_eq!((damage.path, damage.offset), (path, offset), "{block}");
        let whole = all[..stdx::to_usize(block)].last();
        assert_eq!(damage.position, whole.map_or(Lsn::FIRST, |(_, end)| *end));
        let next = block + 1;
        let (path, offset) = (segment(next / 8), next % 8 * 4096);
        assert_eq!(damage.kind, LogDamageKind::KnownToBlock { path, offset });
    }
    // No later block mentions the last one: it looks as if the crash had torn it.
    let (world, all) = three_segments(20);
    world.disk.damage(&segment(2), 3 * 4096 + 40, 3);
    let (_, found) = world.open(large()).unwrap();
    assert_eq!(found[..], all[..19]);
}

/// Bytes that the next start leaves out, and the position before them.
fn torn(world: &World) -> (u64, Lsn) {
    let disk = world.disk.clone();
    world.run(async move {
        let log = Log::open(&disk, Path::new(DIRECTORY)).await.unwrap();
        let mut scan = log.scan(OnLogLoss::Refuse);
        while scan.next(&disk).await.unwrap().is_some() {}
        (scan.torn_bytes(), scan.position())
    })
}

#[test]
fn a_torn_tail_is_measured() {
    let (world, all) = three_segments(20);
    let end = |count: usize| all[count - 1].1;
    assert_eq!(torn(&world), (0, end(20)), "the log is whole");
    let path = "data/log/log_0000000000000002.pdl";
    overwrite(&world.disk, path, 4 * 4096, &[7; 100]);
    assert_eq!(torn(&world), (100, end(20)));
    overwrite(&world.disk, path, 5 * 4096 + 10, &[7; 10]);
    assert_eq!(torn(&world), (120, end(20)), "of two blocks");
    // A damaged last block: the start leaves out its record as well.
    world.disk.damage(&segment(2), 3 * 4096 + 40, 3);
    let (bytes, position) = torn(&world);
    assert!(120 + 900 < bytes && bytes <= 120 + 4096, "{bytes}");
    assert_eq!(position, end(19));
    let (_, found) = world.open(large()).unwrap();
    assert_eq!(found[..], all[..19]);
    assert_eq!(torn(&world).1, end(19));
}

#[test]
fn a_block_of_zeroes_and_a_stale_segment_are_damage() {
    let (world, _) = three_segments(20);
    overwrite(
        &world.disk,
        "data/log/log_0000000000000001.pdl",
        0,
        &[0; 4096 * 8],
    );
    let damage = damage_of(&world);
    assert_eq!((damage.path, damage.offset), (segment(1), 0));
    // Another segment in its place.
    let (world, _) = three_segments(20);
    world.disk.remove(&segment(1)).unwrap();
    world.disk.rename(&segment(0), &segment(1)).unwrap();
    assert_eq!(damage_of(&world).kind, LogDamageKind::Missing);
}

/// The blocks of the last segment are the only ones that mention those of the one before.
#[test]
fn a_segment_in_the_place_of_an_earlier_one_is_damage() {
    let (world, _) = three_segments(20);
    world.disk.remove(&segment(1)).unwrap();
    world.disk.rename(&segment(2), &segment(1)).unwrap();
    let damage = damage_of(&world);
    assert_eq!((damage.path, damage.offset), (segment(1), 0));
    let misplaced = LogDamageKind::Misplaced {
        number: 16,
        path: segment(1),
        offset: 0,
    };
    assert_eq!(damage.kind, misplaced);
    // The log breaks in the middle of a segment, after the blocks of the later place.
    let (world, all) = log_of(18, 12);
    world.disk.remove(&segment(1)).unwrap();
    world.disk.rename(&segment(2), &segment(1)).unwrap();
    let damage = damage_of(&world);
    assert_eq!((damage.path, damage.offset), (segment(1), 4 * 4096));
    assert_eq!((damage.position, damage.kind), (all[11].1, misplaced));
    // Blocks of an earlier place lie in each recycled segment.
    let (world, all) = three_segments(20);
    let [.., prepared] = &segments(&world.disk)[..] else {
        panic!("there are segments")
    };
    assert!(*prepared != segment(2), "one is prepared");
    let (disk, stale) = (world.disk.clone(), open_segment(&world, 1));
    let bytes = world.run(async move { disk.read(&stale, 0, IoBuffer::zeroed(8 * 4096)).await.0 });
    overwrite(&world.disk, prepared.to_str().unwrap(), 0, &bytes);
    assert_eq!(world.open(large()).unwrap().1, all);
}

#[test]
fn missing_segments_are_damage() {
    // The checkpoint's own, one in the middle, the last one that has log; and all of them.
    for number in 0..3 {
        let (world, _) = three_segments(20);
        world.disk.remove(&segment(number)).unwrap();
        let damage = damage_of(&world);
        assert_eq!((damage.path, damage.offset), (segment(number), 0));
        assert_eq!(damage.kind, LogDamageKind::Missing);
    }
    let (world, _) = three_segments(20);
    for path in segments(&world.disk) {
        world.disk.remove(&path).unwrap();
    }
    assert_eq!(damage_of(&world).path, segment(0));
    // A prepared segment without log is no loss.
    let (world, all) = three_segments(20);
    let last = segments(&world.disk).pop().unwrap();
    assert!(last != segment(2), "one is prepared");
    world.disk.remove(&last).unwrap();
    assert_eq!(world.open(large()).unwrap().1, all);
}

/// The log ends with the last block of a segment: the next one holds nothing, and must exist.
#[test]
fn a_log_that_ends_with_its_segment_has_the_next_one() {
    let (world, all) = three_segments(16);
    assert_eq!(world.open(large()).unwrap().1, all);
    let (world, _) = three_segments(16);
    for path in segments(&world.disk).split_off(2) {
        world.disk.remove(&path).unwrap();
    }
    let damage = damage_of(&world);
    assert_eq!((damage.path, damage.offset), (segment(2), 0));
}

#[test]
fn emptied_and_cut_segments_are_damage() {
    let whole = 8 * 4096;
    for number in 0..3 {
        for length in [0, 100, 4096, 4096 * 3 + 7, whole - 4096, whole - 1] {
            let (world, _) = three_segments(20);
            let file = open_segment(&world, number);
            world.disk.set_length(&file, length).unwrap();
            let damage = damage_of(&world);
            assert_eq!(damage.path, segment(number));
            assert_eq!(damage.kind, LogDamageKind::Cut { length, whole });
            let text = WalError::Damaged(Box::new(damage)).to_string();
            let name = format!("log_{number:016x}.pdl is damaged at byte ");
            assert!(text.contains(&name), "{text}");
        }
    }
}

/// Opens a damaged log with the operator's consent, writes, and opens it as usual.
#[test]
fn a_loss_can_be_accepted() {
    for missing in [vec![0], vec![1], vec![0, 1, 2, 3]] {
        let (world, all) = three_segments(20);
        for number in &missing {
            world.disk.remove(&segment(*number)).ok();
        }
        let first_lost = stdx::to_usize(missing[0] * 8);
        let disk = world.disk.clone();
        let (wal, found, newest) = world.run(async move {
            let log = Log::open(&disk, Path::new(DIRECTORY)).await.unwrap();
            let mut scan = log.scan(OnLogLoss::Accept);
            let mut count = 0;
            while scan.next(&disk).await.unwrap().is_some() {
                count += 1;
            }
            let damage = scan.damage().unwrap();
            assert_eq!(damage.kind, LogDamageKind::Missing);
            let newest = scan.newest();
            scan.restart(Restart {
                lsn: newest.advance(4096),
                has_newer_pages: false,
            });
            let on_poison = Box::new(|error: &WalError| panic!("{error}"));
            let wal = Wal::start(&disk, log, &scan, large(), on_poison).await;
            (wal.unwrap(), count, newest)
        });
        assert_eq!(found, first_lost);
        if missing.len() == 1 {
            assert_eq!(newest, all.last().unwrap().1, "what is behind is known");
        }
        assert_eq!(wal.reserved(), newest.advance(4096));
        assert_eq!(wal.newest_lsn(wal.epoch() - 1), newest.advance(4096));
        let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
        let written = world.run(async move {
            let mut writer = at_work.writer(0);
            let mut written = Found::new();
            for number in 100..130 {
                let end = write(&mut writer, number, 900).await.unwrap();
                at_work.request_all();
                at_work.try_lead().unwrap().run(&disk).await;
                at_work.prepare_segments(&disk).await.unwrap();
                written.push((number, end));
            }
            written
        });
        drop(wal);
        let world = world.crash();
        assert_eq!(world.open(large()).unwrap().1, written);
    }
}

/// Blocks of the lost log lie after those of the new life, and claim blocks that it does not have.
/// They are of an earlier life.
#[test]
fn claims_of_earlier_lives_count_for_nothing() {
    let (world, _) = three_segments(20);
    let disk = world.disk.clone();
    let block = world.run(async move {
        let log = Log::open(&disk, Path::new(DIRECTORY)).await.unwrap();
        let mut latest = log.checkpoint().clone();
        // A life that the operator has started in the middle of the log.
        latest.sequence += 1;
        latest.epoch += 1;
        latest.block_no = 4;
        latest.durable_block = 4;
        latest.block_epoch = latest.epoch;
        latest.lsn = Lsn(4096 * 3);
        latest.lives.push(latest.epoch - 1, latest.lsn);
        control::write(&disk, &log.control.file(), &latest)
            .await
            .unwrap();
        latest.block_no
    });
    assert_eq!(block, 4);
    let (wal, found) = world.open(large()).unwrap();
    assert_eq!((found.len(), wal.durable()), (0, Lsn(4096 * 3)));
}

/// The control file says more than there is, in a record that is whole.
#[test]
fn a_log_that_ends_before_the_checkpoint_is_damage() {
    for (beyond, is_damage) in [(0, false), (1, true), (1 << 40, true)] {
        let (world, all) = three_segments(20);
        let disk = world.disk.clone();
        let end = all[19].1;
        let checkpoint = end.advance(beyond);
        world.run(async move {
            let log = Log::open(&disk, Path::new(DIRECTORY)).await.unwrap();
            let mut latest = log.checkpoint().clone();
            latest.sequence += 1;
            latest.lsn = checkpoint;
            let file = log.control.file();
            control::write(&disk, &file, &latest).await.unwrap();
        });
        if !is_damage {
            assert!(world.open(large()).unwrap().1.is_empty());
            continue;
        }
        let damage = damage_of(&world);
        assert_eq!((damage.path, damage.offset), (segment(2), 4 * 4096));
        let kind = LogDamageKind::BeforeCheckpoint { checkpoint };
        assert_eq!((damage.position, damage.kind), (end, kind));
        // Accepted, the log continues after what the control file names.
        let disk = world.disk.clone();
        let newest = world.run(async move {
            let log = Log::open(&disk, Path::new(DIRECTORY)).await.unwrap();
            let mut scan = log.scan(OnLogLoss::Accept);
            while scan.next(&disk).await.unwrap().is_some() {}
            scan.newest()
        });
        assert_eq!(newest, checkpoint);
    }
}

/// Each block claims exactly what was durable when it was written.
#[test]
fn claims_follow_the_syncs() {
    let world = World::with_seed(22);
    let (wal, _) = world.open(large()).unwrap();
    let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
    world.run(async move {
        let mut writer = at_work.writer(0);
        for level in [
            LogLevel::Durable,
            LogLevel::Written,
            LogLevel::Written,
            LogLevel::Durable,
            LogLevel::Durable,
        ] {
            let end = write(&mut writer, 1, 10).await.unwrap();
            at_work.request(end, level);
            at_work.try_lead().unwrap().run(&disk).await;
        }
        let file = disk
            .open(
                &segment(0),
                OpenOptions {
                    write: false,
                    create: false,
                    exclusive: false,
                    access: FileAccess::Buffered,
                },
            )
            .unwrap();
        let (bytes, outcome) = disk.read(&file, 0, IoBuffer::zeroed(5 * 4096)).await;
        assert_eq!(outcome.unwrap(), 5 * 4096);
        let claims = bytes.chunks_exact(4096).map(|block| {
            let (header, _) = format::log::open_log_block(block).unwrap();
            header.durable_block()
        });
        // The fourth is written, then synced with the two before it.
        assert_eq!(claims.collect::<Vec<_>>(), [0, 1, 1, 1, 4]);
    });
}
