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
    hold(0..4);
}

/// 1040: a row was inserted under a key that another had locked and purge had emptied. 3606: the
/// rollback of an insert brought a deleted row back whose large value purge had given back.
#[test]
fn seeds_that_found_faults_hold() {
    hold([1040, 3606, 6201]);
}
