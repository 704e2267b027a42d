//! Shortages: whom they fail, and how their ends are seen.

use super::*;

/// A caller that waited for a growth, and is called again, gets its failure.
#[test]
fn a_failed_growth_fails_the_operation_that_waited() {
    let world = World::new(17);
    let pages = world.open(options(8, 1));
    world.disk.set_capacity(world.disk.used_bytes());
    let failed = world.run(async move {
        growth(&pages, 50).await;
        pages.grow(SPACE, 50)
    });
    assert!(matches!(
        failed,
        Err(Interrupt::Error(StoreError::DiskFull))
    ));
}

/// A directory of one worker, or of a program that had one doublewrite file, is opened by three on
/// a full disk. They share what files there are.
#[test]
fn workers_share_a_doublewrite_file_where_there_is_no_room_for_more() {
    let world = World::new(18);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        for page in 0..4 {
            create(&at_work, page, 1).await.unwrap();
        }
        at_work.clean_all().await.unwrap();
    });
    drop(pages);
    let world = world.crash();
    world.disk.set_capacity(world.disk.used_bytes());
    let pages = world.open(options(8, 3));
    assert_eq!(pages.pool().roles.cleaner_count(), 1);
    let others = [1, 2].map(|worker| pages.pool().pages(worker, world.disk()));
    world.run(async move {
        for (page, byte) in [(0, 5), (1, 6), (2, 7)] {
            put(&pages, page, byte).await.unwrap();
        }
        for worker in &others {
            assert_ne!(worker.clean(1).await.unwrap().pages, 0);
            put(worker, 3, 9).await.unwrap();
        }
        pages.clean_all().await.unwrap();
    });
    let world = world.crash();
    let pages = world.open(options(8, 2));
    world.run(async move {
        for (page, byte) in [(0, 5), (1, 6), (2, 7), (3, 9)] {
            assert_eq!(get(&pages, page).await, Ok(byte));
        }
    });
}

/// The operation that waited for a growth is killed, goes on to another wait, or wants another room
/// now. Later work does not get the failure.
#[test]
fn a_failed_growth_fails_no_other_operation() {
    let leave: [fn(&Pages); 3] = [
        |pages| pages.forget_wait_failure(),
        |pages| drop(pages.busy()),
        |pages| drop(growth(pages, 60)),
    ];
    for (number, leave) in leave.into_iter().enumerate() {
        let world = World::new(18);
        let pages = world.open(options(8, 1));
        world.disk.set_capacity(world.disk.used_bytes());
        let wait = growth(&pages, 50);
        world.run(wait);
        world.disk.set_capacity(u64::MAX);
        leave(&pages);
        world.run(growth(&pages, 50));
        assert!(pages.grow(SPACE, 50).is_ok(), "case {number}");
    }
}

/// A change whose wait for a log segment has failed gets the error once. The next change waits for
/// an attempt of its own, and succeeds if there are descriptors by then.
#[test]
fn a_missing_segment_fails_the_change_that_waited_alone() {
    let world = World::new(19);
    let pages = world.open(options(8, 1));
    let (at_work, disk) = (Rc::clone(&pages), world.disk.clone());
    world.run(async move {
        let page = create(&at_work, 0, 1).await;
        page.unwrap();
        disk.take_descriptors();
        let refused = loop {
            if let Err(refused) = put(&at_work, 0, 2).await {
                break refused;
            }
        };
        assert!(
            matches!(refused, StoreError::NoDescriptor { .. }),
            "{refused}"
        );
        assert!(at_work.wal().is_stopped_by(Shortage::Descriptors.kind()));
        disk.give_descriptors();
        let lsn = put(&at_work, 0, 3).await.unwrap();
        durable(&at_work, lsn).await.unwrap();
    });
}

/// The file of a new tablespace is there, but its directory cannot be synced: it can be removed.
/// The shortage ends when any file opens.
#[test]
fn a_space_whose_directory_is_not_synced_can_be_removed() {
    let world = World::new(20);
    let pages = world.open(options(8, 1));
    let (pool, disk) = (Arc::clone(pages.pool()), world.disk.clone());
    let at_work = Rc::clone(&pages);
    let other = SpaceId(6);
    world.run(async move {
        disk.hold_late_work();
        let mut making = Box::pin(pool.create_space(&disk, other));
        assert!(poll_at_most(1, making.as_mut()).await.is_none());
        disk.take_descriptors();
        for call in disk.release_late_work() {
            assert!(call.run().is_err());
        }
        let made = making.await;
        assert!(
            matches!(made, Err(StoreError::NoDescriptor { .. })),
            "{made:?}"
        );
        assert!(pool.has_space(other));
        assert!(pool.news().is_short_of(Shortage::Descriptors));
        pool.try_descriptor(&disk);
        assert!(pool.news().is_short_of(Shortage::Descriptors));
        disk.give_descriptors();
        pool.try_descriptor(&disk);
        assert!(!pool.news().is_short_of(Shortage::Descriptors));
        at_work.remove_space(other).await.unwrap();
        assert!(!pool.has_space(other));
        assert_eq!(pool.list_spaces(&disk).unwrap(), [SPACE]);
    });
}
