//! Pages that are brought in before they are asked for.

use std::future::poll_fn;

use env::sim::Faults;

use super::*;

const FILE: &str = "data/space_5.pdb";

/// A pool without pages in memory, whose file has these.
fn cold(seed: u64, written: &[u32], frame_count: u32) -> (World, Rc<Pages>) {
    let world = World::new(seed);
    let pages = world.open(options(64, 1));
    let (at_work, written) = (Rc::clone(&pages), written.to_vec());
    world.run(async move {
        for page in written {
            create(&at_work, page, 1).await.unwrap();
        }
        at_work.clean_all().await.unwrap();
        at_work.checkpoint(Vec::new()).await.unwrap();
    });
    drop(pages);
    let world = world.kill();
    let pages = world.open(options(frame_count, 1));
    (world, pages)
}

/// Which of the pages are in memory.
fn present(pages: &Pages, asked: impl Iterator<Item = u32>) -> Vec<u32> {
    let space = pages.space(SPACE).unwrap();
    asked
        .filter(|&page| space.table.frame_of(PageNo(page)).is_some())
        .collect()
}

fn numbers(pages: &[u32]) -> Vec<PageNo> {
    pages.iter().copied().map(PageNo).collect()
}

#[test]
fn near_pages_come_by_one_read() {
    // Two runs: 9 is too far after 2, and 5 to 8 of the second are not wanted.
    let (world, pages) = cold(31, &[0, 1, 2, 9, 10, 14, 15], 64);
    let ahead = pages.read_ahead(SPACE, &numbers(&[15, 9, 1, 2, 0, 9]));
    let told = format!("{ahead:?}");
    assert_eq!(told, "ReadAhead { runs: 3, .. }");
    world.run(ahead);
    assert_eq!(present(&pages, 0..20), [0, 1, 2, 9, 15]);
    assert!(pages.shared(id(2)).is_ok(), "nobody waits for it");
    // Pages in memory are not read again.
    let again = pages.read_ahead(SPACE, &numbers(&[0, 1, 10]));
    world.run(again);
    assert_eq!(present(&pages, 0..20), [0, 1, 2, 9, 10, 15]);
    assert_eq!(pages.pool().pages_read(), 6);
    // No such tablespace, and no page.
    world.run(pages.read_ahead(SpaceId(77), &numbers(&[1])));
    world.run(pages.read_ahead(SPACE, &[]));
}

#[test]
fn what_cannot_be_read_is_left_to_the_reader() {
    let (world, pages) = cold(32, &[0, 1, 2, 3], 32);
    world.disk.damage(Path::new(FILE), 4096 + 24, 1);
    // Page 1 is damaged, and page 400 is beyond the end.
    world.run(pages.read_ahead(SPACE, &numbers(&[0, 1, 2, 400])));
    assert_eq!(present(&pages, 0..4), [0, 2]);
    world.disk.set_faults(Faults {
        read_permille: 1000,
        ..Faults::default()
    });
    world.run(pages.read_ahead(SPACE, &numbers(&[3])));
    assert_eq!(present(&pages, 0..4), [0, 2]);
    world.disk.set_faults(Faults::default());
    let at_work = Rc::clone(&pages);
    world.run(async move {
        let whole = retry(|| at_work.shared(id(3)).map(|page| page.id())).await;
        assert_eq!(whole.unwrap(), id(3));
        let damaged = retry(|| at_work.shared(id(1)).map(|page| page.id())).await;
        assert!(matches!(damaged, Err(StoreError::Damaged { .. })));
    });
}

/// All that are under way have an eighth of the pool, however they end.
#[test]
fn reads_ahead_leave_frames_to_pages_that_are_asked_for() {
    let written: Vec<u32> = (0..20).collect();
    let (world, pages) = cold(33, &written, 64);
    let pool = Arc::clone(pages.pool());
    let frames = || pool.frames_ahead.load(Ordering::Relaxed);
    let ask = |first: u32| {
        let ahead = pages.read_ahead(SPACE, &numbers(&[first, first + 1, first + 2]));
        (ahead, frames())
    };
    let (first, second, third, fourth) = (ask(0), ask(4), ask(8), ask(12));
    assert_eq!([first.1, second.1, third.1, fourth.1], [3, 6, 8, 8]);
    assert_eq!(pool.reads_ahead_cut(), 2);
    drop(first);
    assert_eq!(frames(), 5);
    let fifth = ask(12);
    assert_eq!(fifth.1, 8);
    for (ahead, _) in [second, third, fourth, fifth] {
        world.run(ahead);
    }
    assert_eq!(present(&pages, 0..20), [4, 5, 6, 8, 9, 12, 13, 14]);
    assert_eq!(frames(), 0);
    // Whoever waits for a frame comes first.
    pool.wants_frames.store(true, Ordering::SeqCst);
    assert_eq!(ask(0).1, 0);
    pool.wants_frames.store(false, Ordering::SeqCst);
    assert_eq!(ask(0).1, 3);
}

/// It gives up when no frame is free. No task waits, so the cleaners do not hurry.
#[test]
fn a_read_ahead_without_a_frame_tells_of_no_shortage() {
    let (world, pages) = cold(36, &[0, 1], 32);
    let (pool, search) = (Arc::clone(pages.pool()), Cell::default());
    let mut taken = Vec::new();
    loop {
        match pool.take_frame(0, &search) {
            Taken::Frame(frame) => taken.push(frame),
            Taken::Later => {}
            Taken::Nothing => break,
        }
    }
    assert_eq!(taken.len(), 32);
    world.run(pages.read_ahead(SPACE, &numbers(&[0, 1])));
    assert_eq!((present(&pages, 0..2), pool.reads_ahead_cut()), (vec![], 1));
    assert!(!pool.wants_frames.load(Ordering::SeqCst));
    assert!(pages.take_frame().is_err());
    assert!(pool.wants_frames.load(Ordering::SeqCst), "a task waits");
}

/// A task that waits for a page of a dropped read then reads the page itself.
#[test]
fn a_read_that_is_given_up_wakes_those_that_wait() {
    let (world, pages) = cold(34, &[0, 1, 2], 32);
    let at_work = Rc::clone(&pages);
    world.run(async move {
        let mut ahead = Some(at_work.read_ahead(SPACE, &numbers(&[0, 1, 2])));
        let mut waiting = Box::pin(store::until_done(|| {
            at_work.shared(id(1)).map(|page| page.id())
        }));
        let mut polls = 0;
        let read = poll_fn(|context: &mut Context<'_>| {
            polls += 1;
            let waited = waiting.as_mut().poll(context);
            if polls == 1 {
                assert!(waited.is_pending());
                ahead = None;
            }
            waited
        });
        assert_eq!(read.await.unwrap(), id(1));
    });
    assert_eq!(present(&pages, 0..3), [1]);
}
