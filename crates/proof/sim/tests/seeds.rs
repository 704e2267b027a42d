//! Fixed seeds of the crash simulation; `cargo xtask sim` runs any number of seeds.

#![forbid(unsafe_code)]

use sim::torture::{Tally, TortureOptions, run};

/// The events of the seeds together.
fn hold(seeds: impl IntoIterator<Item = u64>, options: fn(u64) -> TortureOptions) -> Tally {
    let mut sum = Tally::default();
    for seed in seeds {
        match run(seed, options(seed)) {
            Ok(tally) => sum.add(tally),
            Err(fault) => panic!("seed {seed}: {fault}"),
        }
    }
    sum
}

/// The counts prove that the seeds do something; idle seeds would pass, too.
#[test]
fn fixed_seeds_hold() {
    let sum = hold(0..20, |_| TortureOptions::default());
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

/// Sessions that read ranges, keep snapshots, are killed, and come to their ends.
#[test]
fn seeds_with_ranges_hold() {
    let sum = hold(100..130, TortureOptions::of_seed);
    for (count, what) in [
        (sum.held_snapshots, "snapshots that were kept"),
        (sum.range_reads, "reads of ranges"),
        (sum.lost_claims, "claims of rows that another has changed"),
        (sum.deadlocks, "deadlocks"),
        (sum.timeouts, "lock waits that timed out"),
        (sum.killed, "killed sessions"),
        (sum.stalls, "stalls"),
        (sum.process_deaths, "deaths of the process"),
        (sum.closings, "orderly ends of a round"),
        (sum.disk.writes_torn, "torn writes"),
        (sum.disk.writes_lost, "lost writes"),
    ] {
        assert!(0 < count, "no {what}: {sum:?}");
    }
}

/// Seeds that found faults: a full disk, failing reads, and dropped tables after which the store
/// did not open. Others found a half-built index, a transaction rolled back twice, and an entry
/// undone that was never inserted. One found a checkpoint between a page's creation and the drop of
/// its tablespace. In two, the second worker joined while all frames were dirty and no cleaner ran.
/// In the last two, redo began between two changes of a page whose tablespace was dropped, and a
/// segment of the log lay in the place of an earlier one.
#[test]
fn seeds_that_found_faults_hold() {
    let seeds = [20, 21, 60, 436, 7024, 2515, 2665, 830, 1301];
    let sum = hold(seeds, |_| TortureOptions::default());
    assert!(0 < sum.committed && 0 < sum.snapshots, "{sum:?}");
}
