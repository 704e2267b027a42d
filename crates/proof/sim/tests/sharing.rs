//! Fixed seeds of sessions that share connections; `cargo xtask sim --sharing` runs any number.

#![forbid(unsafe_code)]

use sim::sharing::{Mistake, SharingOptions, SharingTally, run};

/// Two workers and a limit of one is the setup of every sixth seed or so; others have more. The
/// counts prove that the seeds do something.
#[test]
fn fixed_seeds_hold() {
    let mut sum = SharingTally::default();
    for seed in 0..150 {
        match run(seed, SharingOptions::of_seed(seed)) {
            Ok(tally) => sum.add(tally),
            Err(fault) => panic!("seed {seed}: {fault}"),
        }
    }
    for (count, what) in [
        (sum.answered, "statements"),
        (sum.spread, "transactions over several servers"),
        (sum.replica_reads, "reads on replicas behind a write"),
        (sum.waited, "waits"),
        (sum.moved, "connections that moved"),
        (sum.overflowed, "connections above the limit"),
        (sum.victims, "victims"),
        (sum.timed_out, "waits that timed out"),
        (sum.gone, "clients that left while they waited"),
        (sum.lost, "sessions that ended with their server"),
        (sum.repeated, "reads that were repeated"),
        (sum.primaries, "changes of the primary"),
        (sum.still, "moments of rest"),
        (sum.put_right, "connections that were put right"),
    ] {
        assert!(10 < count, "few {what}: {sum:?}");
    }
}

/// What the simulation does not find when it is planted, it would not find in the code. Each
/// mistake breaks its rule first.
#[test]
fn planted_mistakes_are_found() {
    for mistake in Mistake::ALL {
        let found = (0..40).find_map(|seed| {
            let options = SharingOptions {
                mistake: Some(mistake),
                ..SharingOptions::of_seed(seed)
            };
            run(seed, options).err()
        });
        let rule = match mistake {
            Mistake::OpensOneMore => "(S1)",
            Mistake::Overtakes => "(S2)",
            Mistake::GivesBackEarly | Mistake::LeavesItsServer => "(S3)",
            Mistake::ReadsTooEarly => "(S4)",
            Mistake::LosesWakeUps | Mistake::LosesOrders | Mistake::AnswersNobody => "(S5)",
            Mistake::KeepsConnections => "(S6)",
            Mistake::PutsNothingRight => "(S8)",
        };
        let found = found.unwrap_or_default();
        assert!(found.contains(rule), "{mistake:?}: {found:?}");
    }
}
