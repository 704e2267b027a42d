//! Runs seeds of a simulation, on one thread for each processor: `sim --seeds N [--from M]
//! [--sharing | --replication]`. It is that of crashes, that of sessions that share connections, or
//! that of the nodes of a group. Prints the smallest seed that failed with its fault, and exits
//! with status 1 then.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::io::Write as _;
use std::ops::Range;
use std::panic;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use sim::replication::{self, GroupOptions, GroupTally};
use sim::sharing::{self, SharingOptions, SharingTally};
use sim::torture::{self, Tally, TortureOptions};

/// The interval of progress reports.
const SEEDS_PER_REPORT: u64 = 500;

/// What is simulated.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Crashes,
    Sharing,
    Replication,
}

/// What has happened, in a simulation of either kind.
#[derive(Debug)]
enum Sum {
    Crashes(Tally),
    Sharing(SharingTally),
    Replication(GroupTally),
}

impl Kind {
    fn run(self, seed: u64) -> Result<Sum, String> {
        match self {
            Kind::Crashes => torture::run(seed, TortureOptions::default()).map(Sum::Crashes),
            Kind::Sharing => sharing::run(seed, SharingOptions::of_seed(seed)).map(Sum::Sharing),
            Kind::Replication => {
                replication::run(seed, GroupOptions::of_seed(seed)).map(Sum::Replication)
            }
        }
    }

    fn nothing(self) -> Sum {
        match self {
            Kind::Crashes => Sum::Crashes(Tally::default()),
            Kind::Sharing => Sum::Sharing(SharingTally::default()),
            Kind::Replication => Sum::Replication(GroupTally::default()),
        }
    }
}

impl Sum {
    fn add(&mut self, other: Sum) {
        match (self, other) {
            (Sum::Crashes(sum), Sum::Crashes(other)) => sum.add(other),
            (Sum::Sharing(sum), Sum::Sharing(other)) => sum.add(other),
            (Sum::Replication(sum), Sum::Replication(other)) => sum.add(other),
            _ => unreachable!("all seeds are of one kind"),
        }
    }
}

/// The remaining work, and the results.
struct Progress {
    seeds: Range<u64>,
    done: u64,
    sum: Sum,
    fault: Option<(u64, String)>,
}

thread_local! {
    /// The seed that this thread runs.
    static SEED: Cell<u64> = const { Cell::new(0) };
}

fn main() -> ExitCode {
    let Some((kind, from, count)) = arguments() else {
        return say(
            "usage: sim --seeds N [--from M] [--sharing | --replication]",
            ExitCode::from(2),
        );
    };
    name_seed_in_panics();
    let progress = Mutex::new(Progress {
        seeds: from..from.saturating_add(count),
        done: 0,
        sum: kind.nothing(),
        fault: None,
    });
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(kind, &progress, count));
        }
    });
    let progress = progress.into_inner().expect("no seed panicked");
    match progress.fault {
        Some((seed, fault)) => say(&format!("seed {seed}: {fault}"), ExitCode::FAILURE),
        None => {
            let sum = progress.sum;
            say(&format!("{count} seeds hold: {sum:?}"), ExitCode::SUCCESS)
        }
    }
}

/// Prints the seed before the message of a failed assertion, which ends the process.
fn name_seed_in_panics() {
    let print_message = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // There is nowhere to report a failure of this.
        let _ = writeln!(std::io::stderr(), "seed {}:", SEED.get());
        print_message(info);
    }));
}

/// Runs seed after seed until none is left or one has failed.
fn work(kind: Kind, progress: &Mutex<Progress>, count: u64) {
    let lock = || progress.lock().expect("no seed panicked");
    loop {
        let Some(seed) = lock().seeds.next() else {
            return;
        };
        SEED.set(seed);
        let outcome = kind.run(seed);
        let mut progress = lock();
        match outcome {
            Ok(tally) => progress.sum.add(tally),
            Err(fault) => {
                progress.seeds = 0..0;
                if progress
                    .fault
                    .as_ref()
                    .is_none_or(|(first, _)| seed < *first)
                {
                    progress.fault = Some((seed, fault));
                }
            }
        }
        progress.done += 1;
        if progress.done.is_multiple_of(SEEDS_PER_REPORT) {
            // There is nowhere to report a failure of this.
            let _ = writeln!(std::io::stderr(), "{} of {count} seeds", progress.done);
        }
    }
}

/// What is simulated, the first seed and the number of seeds.
fn arguments() -> Option<(Kind, u64, u64)> {
    let (mut kind, mut from, mut count) = (Kind::Crashes, 0, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--sharing" {
            kind = Kind::Sharing;
            continue;
        }
        if name == "--replication" {
            kind = Kind::Replication;
            continue;
        }
        let value = arguments.next()?.parse().ok()?;
        match name.as_str() {
            "--seeds" => count = Some(value),
            "--from" => from = value,
            _ => return None,
        }
    }
    Some((kind, from, count?))
}

fn say(text: &str, code: ExitCode) -> ExitCode {
    // There is nowhere to report a failure of this.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}
