//! Fixed seeds of the crash simulation; `cargo xtask sim` runs as many as one likes.

use sim::torture::{TortureOptions, run};

fn hold(seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        if let Err(fault) = run(seed, TortureOptions::default()) {
            panic!("seed {seed}: {fault}");
        }
    }
}

#[test]
fn fixed_seeds_hold() {
    hold(0..20);
}

/// Seeds that have met a full disk, reads that failed, dropped tables after which the store did not
/// open, an index half built, a transaction rolled back twice, an entry that was taken back
/// without having been put, and a checkpoint between a page's making and its tablespace's drop.
#[test]
fn seeds_that_found_faults_hold() {
    hold([20, 21, 60, 436, 7024]);
}
