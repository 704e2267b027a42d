//! Which pages stay in memory.

use super::*;

const FRAMES: u32 = 256;

/// A worker that reads in a pool of clean pages.
struct Reader {
    world: World,
    pages: Rc<Pages>,
}

impl Reader {
    /// A tablespace of `page_count` pages, and nothing in memory.
    fn new(page_count: u32) -> Self {
        let world = World::new(40);
        let pages = world.open(options(FRAMES, 1));
        let at_work = Rc::clone(&pages);
        world.run(async move {
            for page in 0..page_count {
                create(&at_work, page, 1).await.expect("there is room");
            }
            at_work.clean_all().await.expect("the disk is whole");
            let written = at_work.checkpoint(Vec::new()).await;
            written.expect("the disk is whole");
        });
        let world = world.kill();
        let pages = world.open(options(FRAMES, 1));
        Self { world, pages }
    }

    /// Uses each page some times in a row, as a scan does.
    fn read(&self, range: std::ops::Range<u32>) {
        let pages = Rc::clone(&self.pages);
        self.world.run(async move {
            for page in range {
                for _ in 0..4 {
                    get(&pages, page).await.expect("it is there");
                }
            }
        });
    }

    /// The number of these pages in memory.
    fn present(&self, range: std::ops::Range<u32>) -> usize {
        let pool = self.pages.pool();
        let space = pool.spaces.get(SPACE).expect("it is open");
        let is_here = |page: &u32| space.table.frame_of(PageNo(*page)).is_some();
        range.filter(is_here).count()
    }
}

/// The hot set is not even used while the scan runs.
#[test]
fn a_hot_set_survives_a_scan_of_twice_the_pool() {
    let hot = 0..FRAMES * 5 / 8;
    let reader = Reader::new(4 * FRAMES);
    reader.read(hot.clone());
    reader.pages.end_period();
    reader.read(hot.clone());
    assert_eq!(reader.present(hot.clone()), hot.len());
    reader.read(FRAMES..3 * FRAMES);
    assert_eq!(reader.present(hot.clone()), hot.len());
    // The same pages a second time are too many to be hot as well.
    reader.read(FRAMES..3 * FRAMES);
    assert_eq!(reader.present(hot.clone()), hot.len());
}

/// No second passes: arrivals end periods as well.
#[test]
fn a_set_that_is_used_between_scans_becomes_hot() {
    let reader = Reader::new(4 * FRAMES);
    let hot = 0..FRAMES / 4;
    for part in 0..8 {
        reader.read(hot.clone());
        let start = FRAMES + part * (FRAMES / 4);
        reader.read(start..start + FRAMES / 4);
    }
    reader.read(FRAMES..4 * FRAMES);
    assert_eq!(reader.present(hot.clone()), hot.len());
}

/// Loading never makes a page hotter than using it.
#[test]
fn pages_of_a_scan_go_before_older_ones_that_were_used_again() {
    let reader = Reader::new(4 * FRAMES);
    reader.read(0..FRAMES / 2);
    reader.pages.end_period();
    reader.read(0..FRAMES / 2);
    // Fills the other half, and then as much again.
    reader.read(FRAMES..2 * FRAMES);
    assert_eq!(reader.present(0..FRAMES / 2), 128);
}

/// A set that is not used any more makes room for the next.
#[test]
fn another_hot_set_takes_the_place_of_the_last() {
    let reader = Reader::new(4 * FRAMES);
    let old = 0..FRAMES * 5 / 8;
    let new = FRAMES..FRAMES + FRAMES * 5 / 8;
    for set in [&old, &new] {
        for _ in 0..8 {
            reader.read(set.clone());
            reader.pages.end_period();
        }
    }
    assert_eq!(reader.present(new.clone()), new.len());
    reader.read(2 * FRAMES..4 * FRAMES);
    assert_eq!(reader.present(new.clone()), new.len());
    let count = reader.present(old);
    assert_eq!(count, 0);
}
