//! How often pages are written.

use super::*;

const FRAMES: u32 = 256;
/// Four times the pool.
const PAGE_COUNT: u32 = 4 * FRAMES;
/// As many changes as make all pages come in some times.
const CHANGE_COUNT: u32 = 8 * PAGE_COUNT;

/// Changes of random pages. Returns the pages read and written for them.
fn change_at_random(seed: u64, log_bytes_max: u64) -> (u64, u64) {
    let world = World::new(seed);
    let mut options = options(FRAMES, 1);
    options.wal.log_bytes_max = log_bytes_max;
    let pages = world.open(options);
    let clock = world.executor.clock().clone();
    world.run(async move {
        for page in 0..PAGE_COUNT {
            create(&pages, page, 1).await.expect("there is room");
        }
        let mut random = Random::new(seed);
        let pool = Arc::clone(pages.pool());
        let mut counts = [(0, 0); 2];
        for count in &mut counts {
            *count = (pool.pages_read(), pool.pages_written());
            for _ in 0..CHANGE_COUNT {
                // So the cleaner keeps up, as it does with a disk that is not too slow.
                clock.sleep(TICK).await;
                let page = random.below(u64::from(PAGE_COUNT));
                let page = u32::try_from(page).expect("it is below their count");
                put(&pages, page, 2).await.expect("the disk is whole");
            }
        }
        // The first half made pages hot.
        let [_, (read, written)] = counts;
        (pool.pages_read() - read, pool.pages_written() - written)
    })
}

/// Each page that is changed has to be written once for each time that it comes in. A hot page that
/// stays is written for the log's sake alone.
#[test]
fn pages_are_written_little_more_often_than_they_come_in() {
    let (read, written) = change_at_random(50, 1 << 22);
    assert!(u64::from(CHANGE_COUNT) / 2 < read, "{read} pages read");
    assert!(
        written * 100 <= read * 112,
        "{written} pages written, {read} read"
    );
}
