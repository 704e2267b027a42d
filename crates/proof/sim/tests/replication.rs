//! Fixed seeds of a group of nodes; `cargo xtask sim --replication` runs any number.

#![forbid(unsafe_code)]

use std::panic;

use sim::replication::{GroupOptions, GroupTally, Mistake, run};

/// The counts prove that the seeds do something.
#[test]
fn fixed_seeds_hold() {
    let mut sum = GroupTally::default();
    for seed in 0..40 {
        match run(seed, GroupOptions::of_seed(seed)) {
            Ok(tally) => sum.add(tally),
            Err(fault) => panic!("seed {seed}: {fault}"),
        }
    }
    for (count, what) in [
        (sum.committed, "commits"),
        (sum.aborted, "victims"),
        (sum.refused, "commits that were refused"),
        (sum.aborted_idle, "idle sessions that were told to abort"),
        (sum.left, "sessions that left in the middle of a commit"),
        (sum.refused_places, "places without an outcome"),
        (sum.kills, "kills"),
        (sum.orders.idle, "orders to sessions that did nothing"),
        (sum.orders.waiting, "orders to sessions that waited"),
        (sum.orders.sent, "orders to transactions that were sent"),
        (sum.orders.replayed, "write sets that were applied again"),
    ] {
        assert!(20 < count, "few {what}: {sum:?}");
    }
    assert!(0 < sum.orders.placed + sum.orders.applying, "{sum:?}");
}

/// What the simulation does not find when it is planted, it would not find in the code. Some
/// mistakes break a rule of the engine first, which panics.
#[test]
fn planted_mistakes_are_found() {
    for mistake in Mistake::ALL {
        let is_found = (0..20).any(|seed| {
            let options = GroupOptions {
                mistake: Some(mistake),
                ..GroupOptions::of_seed(seed)
            };
            panic::catch_unwind(|| run(seed, options).is_err()).unwrap_or(true)
        });
        assert!(is_found, "{mistake:?}");
    }
}
