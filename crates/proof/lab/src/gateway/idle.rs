//! What thousands of idle clients cost that are connected to a gateway beside a few active ones.
//!
//! Each client has set variables and prepared statements, as those of a pool in an application
//! have. Turns of the active ones alone alternate with turns beside the idle ones. The memory of a
//! client is what the gateway's process has grown by, over the number of clients.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::{Folder, Launch, ServerKind, free_port};

use crate::generator::{Address, Generator, IdleClients, Shape};
use crate::load::fill;
use crate::sample::{Count, LoadArguments, Sample};

use super::cost::median;
use super::start;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// All clients.
    #[arg(long, default_value_t = 10_000)]
    clients: u32,
    /// Those that are active.
    #[arg(long, default_value_t = 100)]
    active: u32,
    /// Connections that they share.
    #[arg(long, default_value_t = 100)]
    connections: u32,
    /// Turns of each kind.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a turn, in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    #[command(flatten)]
    load: LoadArguments,
}

/// What each client has set.
const SETTINGS: &[&str] = &[
    "SET NAMES utf8mb4",
    "SET time_zone = '+00:00'",
    "SET sql_mode = 'STRICT_TRANS_TABLES'",
];

/// Tables of the load, and so statements that each client has prepared. What `--tables` says is
/// left aside.
const TABLE_COUNT: u32 = 2;

/// Memory of a client, at most.
const CLIENT_BYTES_MAX: f64 = 8192.0;

/// How far throughput and 95th percentile of the active ones may be off for the idle ones.
const PART_MAX: f64 = 0.15;

/// Measures memory and turns and prints them; an error if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.active < arguments.clients,
        "some clients must be idle"
    );
    let load = LoadArguments {
        tables: TABLE_COUNT,
        ..arguments.load.clone()
    };
    let server = Launch::new(ServerKind::MariaDb)
        .with("--max-prepared-stmt-count=1000000")
        .start()?;
    fill(server.port(), "oltp_read_write", (load.tables, load.rows))?;
    let folder = Folder::new("gateway")?;
    let port = free_port()?;
    let gateway = start(
        &folder,
        port,
        &[server.port()],
        (arguments.connections, None),
    )?;
    let shape = |client_count| Shape {
        settings: SETTINGS,
        ..load.shape(Address::Tcp(port), "point_select", client_count)
    };
    let empty = gateway.resident_bytes()?;
    let mut grown = None;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let idle = IdleClients::of(&shape(arguments.clients - arguments.active))?;
        beside.push(turn(&shape(arguments.active), arguments.seconds)?);
        let bytes = stdx::u64_to_f64(gateway.resident_bytes()?.saturating_sub(empty));
        grown.get_or_insert(bytes / f64::from(arguments.clients));
        drop(idle);
        alone.push(turn(&shape(arguments.active), arguments.seconds)?);
    }
    let client_bytes = grown.context("at least one round")?;
    println!("memory of a client: {client_bytes:.0} bytes");
    println!(
        "| {} active clients | statements/s | p95 ms | p99 ms |",
        arguments.active
    );
    println!("|---|--:|--:|--:|");
    let of =
        |samples: &[Sample], value: fn(&Sample) -> f64| median(samples.iter().map(value).collect());
    for (name, samples) in [("alone", &alone), ("beside idle ones", &beside)] {
        println!(
            "| {name} | {:.0} | {:.2} | {:.2} |",
            of(samples, |it| it.per_second),
            of(samples, |it| it.p95_ms),
            of(samples, |it| it.p99_ms),
        );
    }
    let ratio = |value| of(&beside, value) / of(&alone, value);
    let throughput = ratio(|it: &Sample| it.per_second);
    let p95 = ratio(|it: &Sample| it.p95_ms);
    ensure!(
        client_bytes < CLIENT_BYTES_MAX,
        "a client takes {client_bytes:.0} bytes, less than {CLIENT_BYTES_MAX} wanted"
    );
    ensure!(
        1.0 - PART_MAX <= throughput,
        "{throughput:.2} of the throughput, at least {} wanted",
        1.0 - PART_MAX
    );
    ensure!(
        p95 <= 1.0 + PART_MAX,
        "{p95:.2} of the 95th percentile, at most {} wanted",
        1.0 + PART_MAX
    );
    Ok(())
}

fn turn(shape: &Shape, seconds: u64) -> Result<Sample> {
    let mut generator = Generator::connect(shape)?;
    generator.warm(Duration::from_millis(500))?;
    let mut count = Count::default();
    count.run(&mut generator, Duration::from_secs(seconds))?;
    Ok(count.sample(0.0))
}
