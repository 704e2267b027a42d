//! Runs seeds of a simulation, on one thread for each processor: `sim --seeds N [--from M]
//! [--sharing | --replication | --planted | --mistake NAME]`. It is that of crashes, that of
//! sessions that share connections, or that of the nodes of a group. Prints the smallest seed that
//! failed with its fault, and exits with status 1 then. It also does so if a kind of event never
//! occurred in many seeds.
//!
//! With `--planted` each planted mistake must be found within the seeds. A mistake may end the
//! process by a failed assertion, so each is planted in a process of its own (`--mistake`).

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::io::Write as _;
use std::ops::Range;
use std::panic;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;

use env::Clock as _;
use env::linux::SystemClock;
use sim::planting::Planting;
use sim::replication::{self, GroupOptions, GroupTally};
use sim::sharing::{self, SharingOptions, SharingTally};
use sim::torture::{self, Tally, TortureOptions};

/// The interval of progress reports.
const SEEDS_PER_REPORT: u64 = 500;

/// In so many seeds each kind of event occurs: the rarest do in some ten of a thousand.
const SEEDS_FOR_ALL_KINDS: u64 = 2000;

/// What is simulated.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Crashes,
    Sharing,
    Replication,
    /// Crashes, with a mistake that is to be found.
    Mistaken(Planting),
    /// The same for each mistake.
    Planted,
}

/// What has happened, in a simulation of either kind.
#[derive(Debug)]
enum Sum {
    Crashes(Box<Tally>),
    Sharing(SharingTally),
    Replication(GroupTally),
}

impl Kind {
    fn run(self, seed: u64) -> Result<Sum, String> {
        let crashes = |tally| Sum::Crashes(Box::new(tally));
        match self {
            Kind::Sharing => sharing::run(seed, SharingOptions::of_seed(seed)).map(Sum::Sharing),
            Kind::Replication => {
                replication::run(seed, GroupOptions::of_seed(seed)).map(Sum::Replication)
            }
            Kind::Mistaken(planting) => planting.run(seed).map(crashes),
            Kind::Crashes | Kind::Planted => {
                torture::run(seed, TortureOptions::of_seed(seed)).map(crashes)
            }
        }
    }

    fn nothing(self) -> Sum {
        match self {
            Kind::Sharing => Sum::Sharing(SharingTally::default()),
            Kind::Replication => Sum::Replication(GroupTally::default()),
            Kind::Crashes | Kind::Mistaken(_) | Kind::Planted => Sum::Crashes(Box::default()),
        }
    }
}

impl Sum {
    fn add(&mut self, other: Sum) {
        match (self, other) {
            (Sum::Crashes(sum), Sum::Crashes(other)) => sum.add(*other),
            (Sum::Sharing(sum), Sum::Sharing(other)) => sum.add(other),
            (Sum::Replication(sum), Sum::Replication(other)) => sum.add(other),
            _ => unreachable!("all seeds are of one kind"),
        }
    }

    /// One line for each kind of event, and whether one has never occurred.
    fn describe(&self) -> (String, Option<&'static str>) {
        match self {
            Sum::Sharing(tally) => (format!("{tally:?}\n"), None),
            Sum::Replication(tally) => (format!("{tally:?}\n"), None),
            Sum::Crashes(tally) => {
                let counts = tally.counts();
                let lines = counts
                    .iter()
                    .map(|(name, count)| format!("{count:>12} {name}\n"));
                let missing = counts.iter().find(|(_, count)| *count == 0);
                (lines.collect(), missing.map(|(name, _)| *name))
            }
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
            "usage: sim --seeds N [--from M] \
             [--sharing | --replication | --planted | --mistake NAME]",
            ExitCode::from(2),
        );
    };
    if let Kind::Planted = kind {
        return find_all(from, count);
    }
    name_seed_in_panics();
    let began = SystemClock.now();
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
    if let Some((seed, fault)) = progress.fault {
        return say(&format!("seed {seed}: {fault}"), ExitCode::FAILURE);
    }
    let (counts, missing) = progress.sum.describe();
    let per_second = stdx::u64_to_f64(count) / SystemClock.now().since(began).as_secs_f64();
    let text = format!("{counts}{count} seeds hold, {per_second:.1} a second");
    match missing {
        Some(name) if SEEDS_FOR_ALL_KINDS <= count => {
            say(&format!("{text}; never: {name}"), ExitCode::FAILURE)
        }
        _ => say(&text, ExitCode::SUCCESS),
    }
}

/// Plants each mistake in turn, and says in which seed it is found.
fn find_all(from: u64, count: u64) -> ExitCode {
    let mut missed = 0;
    for planting in Planting::ALL {
        let found = find(*planting, from, count);
        missed += usize::from(found.is_none());
        let found = found.unwrap_or_else(|| format!("not found in {count} seeds"));
        let (class, name) = (planting.class, planting.name);
        say(&format!("{class:16} {name:24} {found}"), ExitCode::SUCCESS);
    }
    let count = Planting::ALL.len();
    let text = format!("{} of {count} planted mistakes are found", count - missed);
    let code = if missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    say(&text, code)
}

/// The line of the seed that has found a mistake.
fn find(planting: Planting, from: u64, count: u64) -> Option<String> {
    let program = std::env::current_exe().expect("a program that runs has its file");
    let (from, count) = (from.to_string(), count.to_string());
    let arguments = [
        "--mistake",
        planting.name,
        "--from",
        &from,
        "--seeds",
        &count,
    ];
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("this program can be started");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("seed "));
    let seed = lines.next()?.to_owned();
    // A failed assertion stands below its place, which is below its seed.
    let is_failed = seed.ends_with(':');
    let what = lines.find(|line| is_failed && !line.is_empty() && !line.starts_with("thread"));
    Some(format!("{seed} {}", what.unwrap_or_default()))
}

/// Prints the seed before the message of a failed assertion, which ends the process.
fn name_seed_in_panics() {
    let print_message = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // There is nowhere to report a failure of this.
        let _ = writeln!(std::io::stderr(), "seed {}:", SEED.get());
        print_message(info);
        std::process::exit(1);
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
        match name.as_str() {
            "--sharing" => kind = Kind::Sharing,
            "--replication" => kind = Kind::Replication,
            "--planted" => kind = Kind::Planted,
            "--mistake" => kind = Kind::Mistaken(Planting::find(&arguments.next()?)?),
            "--seeds" => count = Some(arguments.next()?.parse().ok()?),
            "--from" => from = arguments.next()?.parse().ok()?,
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
