//! Fixed seeds of the crash simulation; `cargo xtask sim` runs as many as one likes.

use sim::torture::{TortureOptions, run};

#[test]
fn fixed_seeds_hold() {
    for seed in 0..4 {
        if let Err(fault) = run(seed, TortureOptions::default()) {
            panic!("seed {seed}: {fault}");
        }
    }
}
