//! Removal of a tablespace's pages and file.

use env::sim::Faults;
use format::slotted::TreePageShape;

use super::*;

#[test]
fn a_dropped_tablespace_is_forgotten() {
    let world = World::new(8);
    let pages = world.open(options(8, 1));
    let at_work = Rc::clone(&pages);
    world.run(async move {
        create(&at_work, 0, 1).await.unwrap();
        create(&at_work, 1, 1).await.unwrap();
        let mut change = retry(|| at_work.change()).await.unwrap();
        change.note_space_drop(SPACE);
        change.commit();
        // A change was under way when the drop was noted.
        let lsn = put(&at_work, 1, 2).await.unwrap();
        durable(&at_work, lsn).await.unwrap();
        at_work.remove_space(SPACE).await.unwrap();
        assert!(matches!(
            get(&at_work, 0).await,
            Err(StoreError::Damaged { .. })
        ));
        assert!(!at_work.pool().has_space(SPACE));
        assert_eq!(at_work.pool().dirty_pages(), 0);
    });
    drop(pages);
    let world = world.crash();
    let started = world.start(options(8, 1)).unwrap();
    assert_eq!(started.pool.list_spaces(&world.disk), Ok(vec![]));
}

/// A page that is written again and again, behind an older one that stays dirty, counts once.
#[test]
fn dirty_pages_are_counted_as_they_are() {
    let world = World::new(8);
    let pages = world.open(options(32, 2));
    let other = pages.pool().pages(1, world.disk());
    world.run(async move {
        for page in 0..2 {
            create(&pages, page, 1).await.unwrap();
        }
        other.clean_all().await.unwrap();
        assert_eq!(pages.pool().dirty_pages(), 0);
        put(&pages, 0, 2).await.unwrap();
        let mut holder = retry(|| other.change()).await.unwrap();
        holder.latch(id(0)).unwrap();
        for byte in 3..9 {
            put(&pages, 1, byte).await.unwrap();
            assert_eq!(pages.pool().dirty_pages(), 2);
            assert_eq!(pages.clean(1).await, Ok(Cleaned { pages: 1 }));
            assert_eq!(pages.pool().dirty_pages(), 1);
        }
        assert_eq!(pages.pool().dirty.len(), 7);
        drop(holder);
        pages.clean_all().await.unwrap();
        assert_eq!(pages.pool().dirty_pages(), 0);
    });
}

/// A page whose write failed stays marked as being written. No one knows what its file holds.
#[test]
fn no_tablespace_is_removed_after_a_failed_write() {
    let world = World::new(8);
    let pages = world.open(options(8, 1));
    let disk = world.disk.clone();
    world.run(async move {
        create(&pages, 0, 1).await.unwrap();
        let lsn = put(&pages, 0, 2).await.unwrap();
        durable(&pages, lsn).await.unwrap();
        disk.set_faults(Faults {
            write_permille: 1000,
            ..Faults::default()
        });
        assert!(pages.clean(8).await.is_err());
        disk.set_faults(Faults::default());
        assert_eq!(pages.remove_space(SPACE).await, Err(StoreError::LogFailed));
    });
}

/// A worker that has not seen the removal yet finishes a change after it.
#[test]
fn a_page_made_behind_a_drop_holds_no_checkpoint_back() {
    let world = World::new(8);
    let pages = world.open(options(8, 1));
    world.run(async move {
        create(&pages, 0, 1).await.unwrap();
        put(&pages, 0, 2).await.unwrap();
        pages.pool().spaces.begin_removal(SPACE);
        pages.clean(8).await.unwrap();
        let end = pages.reserved();
        assert_eq!(pages.checkpoint(Vec::new()).await, Ok(end));
    });
}

/// A checkpoint between two changes of a page does not wait for the page if its tablespace was
/// dropped meanwhile. A crash then leaves a file that lacks the first change.
#[test]
fn operations_that_lack_earlier_ones_are_damage_unless_a_drop_follows() {
    for is_dropped in [true, false] {
        let world = World::new(8);
        let pages = world.open(options(8, 1));
        let disk = world.disk.clone();
        world.run(async move {
            let shape = TreePageShape {
                level: 0,
                index_id: 1,
                lower: b"",
                upper: None,
            };
            create(&pages, 0, 1).await.unwrap();
            apply(&pages, &PageOp::TreeInit(shape)).await;
            pages.clean_all().await.unwrap();
            apply(&pages, &insert(0, b"a")).await;
            let between = pages.reserved();
            let mut end = apply(&pages, &insert(1, b"b")).await;
            if is_dropped {
                let mut change = retry(|| pages.change()).await.unwrap();
                change.note_space_drop(SPACE);
                end = change.commit();
            }
            durable(&pages, end).await.unwrap();
            let wal = &pages.pool().wal;
            let write = wal.write_checkpoint(&disk, between, Vec::new());
            write.await.unwrap();
        });
        let world = world.crash();
        let started = world
            .start(options(8, 1))
            .map(|it| it.pool.list_spaces(&world.disk));
        if is_dropped {
            assert_eq!(started.unwrap(), Ok(vec![]));
        } else {
            let error = started.unwrap_err().to_string();
            assert!(error.contains("cannot be redone on page 5:0"), "{error}");
        }
    }
}

fn insert(slot: u16, key: &[u8]) -> PageOp<'_> {
    PageOp::TreeInsert {
        slot,
        key,
        payload: b"",
    }
}

async fn apply(pages: &Pages, op: &PageOp<'_>) -> Lsn {
    let make = || {
        let mut change = pages.change()?;
        let latched = change.latch(id(0))?;
        change.apply(latched, op).unwrap();
        Ok(change.commit())
    };
    retry(make).await.unwrap()
}
