//! Comparison with Debian's `mariadbd` in one interleaved run: throughput, latency, fairness and
//! processor time of the server per statement, from one client to thousands, and the memory that
//! idle clients cost.
//!
//! All servers have the same durability and the same cache, and there is one of each kind for each
//! number of clients. The clients of a workload are connected and warmed once; then all of these
//! pairs of a server and its clients are measured by turns, and stand still
//! ([`testkit::process::Process::pause`]) while it is another's turn. So a slow minute of the
//! machine hits all that are compared, servers and numbers of clients, alike. The beginning of a
//! turn, in which caches fill again, is not counted. Turns make rounds.
//!
//! A point of one process may have met a bad minute in all of its rounds, and the best of several
//! points is the one that was lucky. So all is done anew with fresh processes, one generation after
//! the other, and the tables give the median of their medians.
//!
//! The load is the bench's own (`generator`): sysbench, with a thread a client, burns 58 us of
//! processor time for a query at 4,096 clients and 11.8 us at 64. Where it shares two cores with a
//! server that needs 15 us, the pair shows 34,000 queries a second instead of 90,000, and most of
//! the drop is sysbench's. Statements, their order, tables and rows are sysbench's, and sysbench
//! still fills the tables.
//!
//! Load and servers share the machine, so throughput says what the pair can do; processor time per
//! statement is the server's own.

pub(crate) mod contestant;
mod record;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::contestant::{Contestant, Program};
use self::record::{Heading, folder};
use self::report::Report;
use crate::generator::{Address, Generator, IdleClients};
use crate::load::Load;
use crate::sample::{Count, LoadArguments, Sample};

/// About three quarters of an hour with what stands here as defaults.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 512, 4096])]
    clients: Vec<u32>,
    /// sysbench scripts without `oltp_`.
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
    /// Uncounted beginning of a turn, in milliseconds, in which is warmed what the others have made
    /// cold. It takes longest with many clients.
    #[arg(long, default_value_t = 1000)]
    settle_ms: u64,
    /// Least time before the measurements of a workload, in milliseconds, in which the clients run
    /// uncounted: they do until each has ended two transactions, or for five seconds.
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
    /// Idle clients whose memory is measured before all else; 0 leaves it out.
    #[arg(long, default_value_t = 10_000)]
    idle: u32,
    /// The build of Plateau to measure; without it, `cargo build --release` makes one first.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Settings for Plateau as `name=value`.
    #[arg(long = "set")]
    settings: Vec<String>,
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

/// What idle clients cost a server.
#[derive(Clone, Debug)]
struct IdleCost {
    clients: u32,
    /// Growth of the resident set.
    bytes: u64,
}

/// All samples of one server at one point.
#[derive(Clone, Debug)]
struct Point {
    workload: String,
    clients: u32,
    server: &'static str,
    /// Of each generation.
    generations: Vec<Vec<Sample>>,
    /// The fewest and the most transactions that one client finished in all samples of its
    /// generation.
    least: u64,
    most: u64,
}

/// Measures all points and writes the report. A recorded run that misses a limit is an error behind
/// that: what is kept has been judged.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = match &arguments.program {
        Some(path) => path.clone(),
        None => contestant::build_release()?,
    };
    let folder = folder(arguments.record)?;
    let mut report = Report::new(Heading::new(arguments)?);
    for generation in 1..=arguments.generations {
        let mut contestants = start_all(arguments, &program)?;
        if generation == 1 && arguments.idle > 0 {
            report.idle = idle_costs(arguments, &mut contestants)?;
        }
        for contestant in &mut contestants {
            contestant.server.connect()?.run("CREATE DATABASE sbtest")?;
            preparation(arguments, contestant).prepare()?;
            contestant.server.process().pause()?;
        }
        let count = contestants.len();
        println!("generation {generation}: {count} servers have their tables");
        for workload in &arguments.workloads {
            for point in measure(arguments, &mut contestants, workload)? {
                println!("{}", report::line(&point));
                report.add(point);
            }
            // Written after each workload, so that a run cut short leaves what it has.
            report.write(&folder)?;
        }
    }
    report.append_history(&folder)?;
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

/// One of each kind for each number of clients.
fn start_all(arguments: &Arguments, program: &Path) -> Result<Vec<Contestant>> {
    let kinds = arguments.servers.iter();
    let all = kinds.flat_map(|kind| {
        arguments
            .clients
            .iter()
            .map(move |clients| (*kind, *clients))
    });
    all.map(|(kind, clients)| Contestant::start(kind, clients, arguments, program))
        .collect()
}

/// Of fresh servers, the first of each kind.
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

fn preparation(arguments: &Arguments, contestant: &Contestant) -> Load {
    Load {
        script: "oltp_read_write".to_owned(),
        port: contestant.server.port(),
        tables: arguments.load.tables,
        rows: arguments.load.rows,
        clients: 1,
        seconds: 1,
        is_prepared: false,
    }
}

/// The points of a workload.
fn measure(
    arguments: &Arguments,
    contestants: &mut [Contestant],
    workload: &str,
) -> Result<Vec<Point>> {
    let mut pairs = Vec::new();
    for contestant in contestants {
        let told = format!(
            "{workload}, {} clients, {}",
            contestant.clients, contestant.name
        );
        pairs.push(Pair::connect(arguments, contestant, workload).context(told)?);
    }
    let turn_count = (arguments.seconds * 1000)
        .div_ceil(arguments.turn_ms)
        .max(1);
    for _ in 0..arguments.rounds {
        for _ in 0..turn_count {
            for pair in &mut pairs {
                pair.take_turn(arguments).with_context(|| pair.told())?;
            }
        }
        pairs.iter_mut().for_each(Pair::end_round);
    }
    Ok(pairs.into_iter().map(Pair::end).collect())
}

/// A server and its clients, who stand still but for their turns.
struct Pair<'a> {
    contestant: &'a mut Contestant,
    generator: Generator,
    point: Point,
    /// Of the rounds that are over.
    samples: Vec<Sample>,
    /// Of the round that is under way.
    count: Count,
    /// Processor time of the server in what was counted.
    server_us: u64,
}

impl<'a> Pair<'a> {
    /// Connects and warms the clients of a server that stands still.
    fn connect(
        arguments: &Arguments,
        contestant: &'a mut Contestant,
        workload: &str,
    ) -> Result<Self> {
        let point = Point {
            workload: workload.to_owned(),
            clients: contestant.clients,
            server: contestant.name,
            generations: Vec::new(),
            least: 0,
            most: 0,
        };
        contestant.server.process().resume()?;
        let address = Address::Tcp(contestant.server.port());
        let shape = arguments.load.shape(address, workload, point.clients);
        let mut generator = Generator::connect(&shape)?;
        generator.warm(Duration::from_millis(arguments.ramp_ms))?;
        contestant.server.process().pause()?;
        Ok(Self {
            contestant,
            generator,
            point,
            samples: Vec::new(),
            count: Count::default(),
            server_us: 0,
        })
    }

    fn told(&self) -> String {
        let Point {
            workload,
            clients,
            server,
            ..
        } = &self.point;
        format!("{workload}, {clients} clients, {server}")
    }

    /// Lets server and clients run, at first uncounted.
    fn take_turn(&mut self, arguments: &Arguments) -> Result<()> {
        let process = self.contestant.server.process();
        process.resume()?;
        let settle = Duration::from_millis(arguments.settle_ms);
        self.generator.run_uncounted(settle)?;
        let before_us = process.cpu_us()?;
        let turn = Duration::from_millis(arguments.turn_ms);
        self.count.run(&mut self.generator, turn)?;
        self.server_us += process.cpu_us()? - before_us;
        process.pause()
    }

    /// Makes a sample of the turns of a round.
    fn end_round(&mut self) {
        let server_us = std::mem::take(&mut self.server_us);
        let sample = std::mem::take(&mut self.count).sample(server_us);
        if sample.per_second == 0.0 {
            println!("{}: no statement was answered in this round", self.told());
        }
        self.samples.push(sample);
    }

    /// The clients go.
    fn end(mut self) -> Point {
        self.point.generations.push(self.samples);
        (self.point.least, self.point.most) = self.generator.least_and_most();
        self.point
    }
}

/// By how much the resident set of a fresh server grows with idle clients. They are logged in and
/// have sent nothing.
fn idle_cost(contestant: &mut Contestant, clients: u32) -> Result<IdleCost> {
    // What a server sets up at its first login is not a client's cost.
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
