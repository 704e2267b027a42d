//! Fixed seeds of the crash simulation; `cargo xtask sim` runs as many as one likes.

#![forbid(unsafe_code)]

use sim::torture::{Tally, TortureOptions, run};

/// What the seeds have lived through together.
fn hold(seeds: impl IntoIterator<Item = u64>) -> Tally {
    let mut sum = Tally::default();
    for seed in seeds {
        match run(seed, TortureOptions::default()) {
            Ok(tally) => sum.add(tally),
            Err(fault) => panic!("seed {seed}: {fault}"),
        }
    }
    sum
}

/// Seeds in which nothing happens would hold too.
#[test]
fn fixed_seeds_hold() {
    let sum = hold(0..20);
    for (count, what) in [
        (sum.committed, "commits"),
        (sum.rolled_back, "rollbacks"),
        (sum.snapshots, "snapshots"),
        (sum.schema_changes, "schema changes"),
        (sum.full, "full disks"),
        (sum.unread, "unreadable files"),
        (sum.unlocked, "lock tables that were full"),
        (sum.log_failures, "failures of the log"),
        (sum.harms_refused, "harms of the log that were told"),
        (sum.harms_survived, "harms of the log of no consequence"),
        (sum.losses_accepted, "losses of log that were accepted"),
    ] {
        assert!(0 < count, "no {what}: {sum:?}");
    }
}

/// Seeds that have met a full disk, reads that failed, dropped tables after which the store did not
/// open, an index half built, a transaction rolled back twice, an entry that was taken back
/// without having been put, and a checkpoint between a page's making and its tablespace's drop.
#[test]
fn seeds_that_found_faults_hold() {
    let sum = hold([20, 21, 60, 436, 7024]);
    assert!(0 < sum.committed && 0 < sum.snapshots, "{sum:?}");
}
