//! Preparing segments, dropped in the middle.

use env::sim::poll_at_most;

use super::*;

/// Preparing segments may be dropped at any moment: the next call continues.
#[test]
fn preparing_that_is_given_up_holds_up_no_other() {
    for poll_count in 1.. {
        BOUNDARIES.with_borrow_mut(Vec::clear);
        let mut world = World::new(DiskOptions {
            seed: 14,
            delay: TICK..2 * TICK,
            ..DiskOptions::default()
        });
        let (wal, _) = world.open(options()).unwrap();
        let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
        let (is_over, count) = world.run(async move {
            let mut writer = at_work.writer(0);
            let mut count = 0;
            while !at_work.needs_segments() {
                write_durably(&mut writer, &disk, count).await;
                count += 1;
            }
            let prepared = poll_at_most(poll_count, at_work.prepare_segments(&disk)).await;
            at_work.prepare_segments(&disk).await.unwrap();
            assert!(!at_work.needs_segments());
            (prepared.is_some(), count)
        });
        drop(wal);
        world = world.crash();
        let (_, found) = world.open(options()).unwrap();
        assert_eq!(found.len(), usize::try_from(count).unwrap());
        if is_over {
            assert!(2 < poll_count, "it was given up in its middle");
            return;
        }
    }
}

/// A helper thread renames a segment after its future was dropped. The next call must not give the
/// same number to another segment: the file would be replaced, with the log in it.
#[test]
fn a_renaming_that_is_given_up_takes_no_segment_away() {
    BOUNDARIES.with_borrow_mut(Vec::clear);
    let mut world = World::with_seed(15);
    let (wal, _) = world.open(options()).unwrap();
    let (at_work, disk) = (Arc::clone(&wal), world.disk.clone());
    world.run(async move {
        let mut writer = at_work.writer(0);
        let obsolete_count = || at_work.flush_state().lock().segments.obsolete.len();
        let writing = || {
            let state = at_work.flush_state().lock();
            state.place.segment_of(state.next_block)
        };
        let mut end = Lsn::FIRST;
        while writing() < 2 {
            end = write_durably(&mut writer, &disk, 1).await;
            at_work.prepare_segments(&disk).await.unwrap();
        }
        // More segments are free than needed, so it matters which one is taken.
        free(&at_work, &disk, end).await;
        assert_eq!(obsolete_count(), 2);
        while writing() < 3 {
            end = write_durably(&mut writer, &disk, 2).await;
        }
        let last = at_work.flush_state().lock().segments.last();
        disk.hold_late_work();
        let given_up = poll_at_most(1, at_work.prepare_segments(&disk)).await;
        assert!(given_up.is_none(), "it waits for the renaming");
        let renaming = disk.release_late_work().pop().expect("one was asked for");
        free(&at_work, &disk, end).await;
        assert_eq!(obsolete_count(), 3);
        at_work.prepare_segments(&disk).await.unwrap();
        assert_eq!(obsolete_count(), 2);
        let late_answer = renaming.run().unwrap_err();
        assert_eq!(late_answer.kind, DiskErrorKind::NotFound);
        while writing() <= last.unwrap() {
            end = write_durably(&mut writer, &disk, 3).await;
            free(&at_work, &disk, end).await;
            at_work.prepare_segments(&disk).await.unwrap();
        }
        for number in 100..103 {
            write_durably(&mut writer, &disk, number).await;
        }
    });
    drop(wal);
    world = world.crash();
    let (_, found) = world.open(options()).unwrap();
    let numbers: Vec<_> = found.into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [100, 101, 102]);
}

/// Writes a mini-transaction of about half a block. Returns its end.
async fn write_durably(writer: &mut WalWriter, disk: &SimDisk, number: u64) -> Lsn {
    let end = write(writer, number, 1800).await.unwrap();
    let wal = Arc::clone(writer.wal());
    wal.request_all();
    wal.try_lead().unwrap().run(disk).await;
    end
}

/// Writes a checkpoint.
async fn free(wal: &Wal, disk: &SimDisk, end: Lsn) {
    wal.write_checkpoint(disk, end, Vec::new()).await.unwrap();
}
