//! Comparison with Debian's `mariadbd` in one interleaved run: throughput, latency, fairness,
//! processor time of the server per statement, from one client to thousands, and the memory of idle
//! clients.
//!
//! All servers have the same durability and the same cache; there is one of each kind for each
//! number of clients. The clients of a workload are connected and warmed once. Then all pairs of a
//! server and its clients are measured in turns, and are paused
//! ([`testkit::process::Process::pause`]) during the others' turns. So a slow minute of the machine
//! affects all compared servers and numbers of clients alike. The beginning of a turn, in which
//! caches fill again, is not counted. Several turns make a round.
//!
//! One process may have bad minutes in all of its rounds, and the best of several points is the
//! lucky one. So everything is repeated with fresh processes, one generation after the other. The
//! tables show the median of their medians.
//!
//! The load is the bench's own (`generator`). sysbench, with a thread for each client, takes 58 us
//! of processor time for a query at 4,096 clients and 11.8 us at 64. If it shares two cores with a
//! server that needs 15 us, the pair shows 34,000 queries a second instead of 90,000, and most of
//! the drop is sysbench's. Statements, their order, tables and rows are sysbench's, and sysbench
//! still fills the tables.
//!
//! Load and servers share the machine. So throughput is that of the pair; processor time per
//! statement is the server's own.

pub mod admission;
pub(crate) mod contestant;
pub mod cost;
mod history;
pub mod holdback;
pub mod larger;
pub mod latency;
mod open;
mod pair;
pub mod picture;
mod point;
mod record;
mod report;
pub mod single;
mod verdict;
mod walls;

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::contestant::{Contestant, Program, Setup, start_all};
use self::pair::{Order, Processor, Timing, measure};
use self::point::line;
use self::record::{Heading, folder};
use self::report::Report;
use crate::generator::{Address, IdleClients, WARM_TIME_MAX};
use crate::sample::LoadArguments;
use crate::target::MeasuredBuild;

/// Comparisons beside that of servers.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Puts six walls of older engines back, one by one, and measures what each costs.
    Walls(walls::Arguments),
}

/// About three quarters of an hour with what stands here as defaults.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Another comparison than that of servers.
    #[command(subcommand)]
    other: Option<Other>,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 512, 4096])]
    clients: Vec<u32>,
    /// sysbench scripts without `oltp_`, or `tpcc` with as many warehouses as `--tables`.
    #[arg(long, value_delimiter = ',', default_values_t = WORKLOADS.map(String::from))]
    workloads: Vec<String>,
    /// Servers to compare.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Program::ALL)]
    servers: Vec<Program>,
    /// Length of each measurement, made of turns.
    #[arg(long, default_value_t = 1)]
    seconds: u64,
    /// Counted part of a turn, in milliseconds.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    turn_ms: u64,
    /// Uncounted start of a turn, in milliseconds. It warms the caches again; many clients need
    /// more of it.
    #[arg(long, default_value_t = 1000)]
    settle_ms: u64,
    /// Least uncounted time before the measurements of a workload, in milliseconds. The clients run
    /// until each has ended two transactions, or for ten seconds.
    #[arg(long, default_value_t = 1000)]
    ramp_ms: u64,
    /// Generations of server processes; the median of theirs counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    generations: u32,
    /// Measurements of each point in a generation; their median is that process's.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    #[command(flatten)]
    load: LoadArguments,
    /// When the log is flushed: 1 at each commit, 2 and 0 each second.
    #[arg(long, default_value_t = 1)]
    flush: u32,
    /// Idle clients whose memory is measured first; 0 skips this.
    #[arg(long, default_value_t = 10_000)]
    idle: u32,
    #[command(flatten)]
    build: MeasuredBuild,
    /// Rates of an open loop that is measured after each workload, as parts of the best
    /// throughput: 0.3,0.6,0.8.
    #[arg(long, value_delimiter = ',')]
    open: Vec<String>,
    /// Clients of the open loop, which are compared with 64; both are among `--clients`.
    #[arg(long, default_value_t = 4096)]
    open_clients: u32,
    /// Keeps the result in `docs/bench`, with its lines of `history.csv`; without it, both go to
    /// the build directory.
    #[arg(long)]
    record: bool,
}

const WORKLOADS: [&str; 5] = [
    "point_select",
    "read_only",
    "update_non_index",
    "write_only",
    "read_write",
];

/// The cost of idle clients for a server.
#[derive(Clone, Debug)]
struct IdleCost {
    clients: u32,
    /// Growth of the resident set.
    bytes: u64,
}

/// Measures all points and writes the report. If a recorded run misses a limit, it fails
/// afterwards: the kept report contains the verdict.
pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(Other::Walls(arguments)) = &arguments.other {
        return walls::run(arguments);
    }
    let percents = arguments.open.iter().map(|it| open::percent(it));
    let percents = percents.collect::<Result<Vec<_>>>()?;
    let setup = arguments.setup()?;
    let timing = arguments.timing();
    let folder = folder(arguments.record)?;
    let mut report = Report::new(Heading::new(&setup, &arguments.method())?);
    for generation in 1..=arguments.generations {
        let mut contestants = start_all(&arguments.servers, &arguments.clients, &setup)?;
        if generation == 1 && arguments.idle > 0 {
            report.idle = idle_costs(arguments, &mut contestants)?;
        }
        for contestant in &mut contestants {
            contestant.fill(&setup)?;
        }
        let count = contestants.len();
        println!("generation {generation}: {count} servers have their tables");
        for workload in &arguments.workloads {
            let mut all: Vec<_> = contestants.iter_mut().collect();
            let mut points = measure(&setup, &timing, &mut all, workload)?;
            if !percents.is_empty() {
                let rates = (arguments.open_clients, &percents[..]);
                let open = open::measure((&setup, &timing), &mut all, &points, rates)?;
                points.extend(open);
            }
            for point in points {
                println!("{}", line(&point));
                report.add(point);
            }
            // Written after each workload, so that an interrupted run keeps its results.
            report.write(&folder)?;
        }
    }
    report.append_history(&folder)?;
    if arguments.record {
        picture::redraw()?;
    }
    print!("{}", report.verdicts());
    println!("written to {}", folder.display());
    let missed = report.missed();
    ensure!(
        !arguments.record || missed.is_empty(),
        "{} limits are missed:\n{}",
        missed.len(),
        missed.join("\n")
    );
    Ok(())
}

impl Arguments {
    fn setup(&self) -> Result<Setup> {
        Ok(Setup {
            load: self.load.clone(),
            workloads: self.workloads.clone(),
            flush: self.flush,
            settings: self.build.settings.clone(),
            program: self.build.program()?,
            base: None,
        })
    }

    fn timing(&self) -> Timing {
        Timing {
            rounds: self.rounds,
            turns: (self.seconds * 1000).div_ceil(self.turn_ms).max(1),
            turn: Duration::from_millis(self.turn_ms),
            settle: Duration::from_millis(self.settle_ms),
            ramp: Duration::from_millis(self.ramp_ms),
            processor: Processor::Ticks,
            order: Order::Same,
        }
    }

    /// How often and how long each point is measured, for the report.
    fn method(&self) -> String {
        format!(
            "{} generations of processes, in each {} rounds of {} s in turns of {} ms, each behind \
             {} ms uncounted; before all {} ms at least and two transactions of each client (or {} \
             s); medians of medians",
            self.generations,
            self.rounds,
            self.seconds,
            self.turn_ms,
            self.settle_ms,
            self.ramp_ms,
            WARM_TIME_MAX.as_secs(),
        )
    }
}

/// Measured on fresh servers, the first of each kind.
fn idle_costs(
    arguments: &Arguments,
    contestants: &mut [Contestant],
) -> Result<Vec<(&'static str, IdleCost)>> {
    let firsts = contestants.iter_mut().step_by(arguments.clients.len());
    let cost_of = |contestant: &mut Contestant| {
        let name = contestant.name;
        let cost = idle_cost(contestant, arguments.idle)
            .with_context(|| format!("idle clients of {name}"))?;
        let megabytes = stdx::u64_to_f64(cost.bytes) / 1e6;
        println!(
            "{name}: {} idle clients cost {megabytes:.1} MB",
            cost.clients
        );
        Ok((name, cost))
    };
    firsts.map(cost_of).collect()
}

/// The growth of a fresh server's resident set by idle clients, which are logged in and have sent
/// nothing.
fn idle_cost(contestant: &mut Contestant, clients: u32) -> Result<IdleCost> {
    // What a server sets up at its first login is not the cost of a client.
    contestant.server.connect()?.ping()?;
    let address = Address::Tcp(contestant.server.port());
    let before = contestant.server.process().resident_bytes()?;
    let idle = IdleClients::connect(&address, clients)?;
    let after = contestant.server.process().resident_bytes()?;
    drop(idle);
    Ok(IdleCost {
        clients,
        bytes: after.saturating_sub(before),
    })
}
