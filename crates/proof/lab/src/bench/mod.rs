//! Comparison with Debian's `mariadbd` in one interleaved run: throughput, latency, fairness and
//! processor time of the server per statement, from one client to thousands, and the memory that
//! idle clients cost.
//!
//! All servers stand side by side with the same durability and the same cache. Each workload is
//! measured round after round. A round goes through all numbers of clients; for each, all servers
//! are connected before the clock starts and then measured in turn. So a slow minute of the machine
//! hits all that are compared, servers and numbers of clients; the tables give medians.
//!
//! The load is the bench's own (`generator`): sysbench, with a thread a client, burns 58 us of
//! processor time for a query at 4,096 clients and 11.8 us at 64. Where it shares two cores with a
//! server that needs 15 us, the pair shows 34,000 queries a second instead of 90,000, and most of
//! the drop is sysbench's. Statements, their order, tables and rows are sysbench's, and sysbench
//! still fills the tables.
//!
//! Load and servers share the machine, so throughput says what the pair can do; processor time per
//! statement is the server's own.

mod contestant;
mod record;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::contestant::{Contestant, Program};
use self::record::{Heading, folder};
use self::report::Report;
use crate::generator::{Address, Generator, IdleClients};
use crate::load::Load;
use crate::sample::{LoadArguments, Sample};

/// About twenty minutes with what stands here as defaults.
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
    /// Length of each measurement.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Least time before each measurement, in milliseconds, in which the clients run uncounted:
    /// they do until each has ended two transactions, or for five seconds.
    #[arg(long, default_value_t = 300)]
    ramp_ms: u64,
    /// Measurements of each point; the median counts.
    #[arg(long, default_value_t = 3)]
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
    samples: Vec<Sample>,
}

/// Measures all points and writes the report. A recorded run that misses a limit is an error behind
/// that: what is kept has been judged.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = match &arguments.program {
        Some(path) => path.clone(),
        None => contestant::build_release()?,
    };
    let mut contestants = Vec::new();
    for kind in &arguments.servers {
        contestants.push(Contestant::start(*kind, arguments, &program)?);
    }
    let mut report = Report::new(Heading::new(arguments)?);
    if arguments.idle > 0 {
        for contestant in &mut contestants {
            let cost = idle_cost(contestant, arguments.idle)
                .with_context(|| format!("idle clients of {}", contestant.name))?;
            println!(
                "{}: {} idle clients cost {:.1} MB",
                contestant.name,
                cost.clients,
                stdx::u64_to_f64(cost.bytes) / 1e6
            );
            report.idle.push((contestant.name, cost));
        }
    }
    for contestant in &contestants {
        contestant.server.connect()?.run("CREATE DATABASE sbtest")?;
        preparation(arguments, contestant).prepare()?;
    }
    let folder = folder(arguments.record)?;
    for workload in &arguments.workloads {
        let points = measure(arguments, &mut contestants, workload)?;
        for point in &points {
            println!("{}", report::line(point));
        }
        report.points.extend(points);
        // Written after each workload, so that a run cut short leaves what it has.
        report.write(&folder)?;
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
    let mut points: Vec<Point> = Vec::new();
    for &clients in &arguments.clients {
        points.extend(contestants.iter().map(|contestant| Point {
            workload: workload.to_owned(),
            clients,
            server: contestant.name,
            samples: Vec::new(),
        }));
    }
    for _ in 0..arguments.rounds.max(1) {
        for points in points.chunks_exact_mut(contestants.len()) {
            measure_once(arguments, contestants, points)?;
        }
    }
    Ok(points)
}

/// One sample of each contestant, measured in turn at its point.
fn measure_once(
    arguments: &Arguments,
    contestants: &mut [Contestant],
    points: &mut [Point],
) -> Result<()> {
    let told = |point: &Point| {
        let (workload, clients) = (&point.workload, point.clients);
        format!("{workload}, {clients} clients, {}", point.server)
    };
    let mut generators = Vec::new();
    for (contestant, point) in contestants.iter().zip(&*points) {
        let address = Address::Tcp(contestant.server.port());
        let load = &arguments.load;
        let shape = load.shape(address, &point.workload, point.clients);
        generators.push(Generator::connect(&shape).with_context(|| told(point))?);
    }
    for ((contestant, generator), point) in contestants.iter_mut().zip(&mut generators).zip(points)
    {
        let sample = Sample::take(
            generator,
            Some(contestant.server.process().id()),
            Duration::from_millis(arguments.ramp_ms),
            Duration::from_secs(arguments.seconds),
        );
        let sample = sample.with_context(|| told(point))?;
        if sample.per_second == 0.0 {
            println!("{}: no statement was answered in this round", told(point));
        }
        point.samples.push(sample);
    }
    Ok(())
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
