//! `cargo xtask hostile`: a thousand clients without privileges send the worst known statements and
//! packets; meanwhile another client sends small queries.
//!
//! It runs twice: once with a worker that has no hostile clients, once without such a worker. The
//! process has to stay below its limits plus 256 MiB, and the other client's 99th percentile below
//! 100 and 400 ms.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::hostile::{Attack, Report, attack, percentile};
use testkit::{Launch, ServerKind};

use crate::target::program_or_release;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of hostile clients.
    #[arg(long, default_value_t = 1000)]
    clients: usize,
    /// Seconds of each attack, and of the measurement before it.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Size of a statement, in MiB.
    #[arg(long, default_value_t = 15)]
    statement_mib: usize,
    /// Size that an unfinished packet announces, in MiB.
    #[arg(long, default_value_t = 15)]
    packet_mib: usize,
    /// The build of Plateau to attack; by default `cargo build --release` builds it.
    #[arg(long)]
    program: Option<PathBuf>,
    /// The server's `statement_memory_size`, in MiB.
    #[arg(long, default_value_t = 512)]
    statement_memory_mib: u64,
}

const MIB: u64 = 1 << 20;

/// What the process may take in addition to what its limits count.
const UNCOUNTED_MIB: u64 = 256;

/// Limits of the server, in MiB, in addition to that of statements.
const BUFFER_POOL_MIB: u64 = 128;
const PACKET_MEMORY_MIB: u64 = 256;

/// The other client's 99th percentile, with a worker without hostile clients and without such a
/// worker.
const FREE_WAIT_MAX: Duration = Duration::from_millis(100);
const SHARED_WAIT_MAX: Duration = Duration::from_millis(400);

/// Attacks a server that it starts, and reports the result.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut failures = Vec::new();
    for (spares_a_worker, wait_max) in [(true, FREE_WAIT_MAX), (false, SHARED_WAIT_MAX)] {
        let settings = [
            "workers=2".to_owned(),
            format!("buffer_pool_size={BUFFER_POOL_MIB}M"),
            format!("packet_memory_size={PACKET_MEMORY_MIB}M"),
            format!("statement_memory_size={}M", arguments.statement_memory_mib),
            format!("max_connections={}", arguments.clients * 2 + 10),
        ];
        let mut launch = Launch::new(ServerKind::Plateau).with_settings(settings);
        launch.program = Some(program_or_release(arguments.program.as_deref())?);
        let server = launch.start()?;
        let plan = Attack {
            clients: arguments.clients,
            statement_bytes: arguments.statement_mib << 20,
            packet_bytes: arguments.packet_mib << 20,
            duration: Duration::from_secs(arguments.seconds),
            spares_a_worker,
        };
        let report = attack(server, &plan)?;
        let name = match spares_a_worker {
            true => "one worker is free of them",
            false => "no worker is free of them",
        };
        println!("{} clients, {name}:", arguments.clients);
        failures.extend(judge(&report, arguments, wait_max));
    }
    ensure!(failures.is_empty(), "{}", failures.join("; "));
    Ok(())
}

/// Prints a report. Returns what exceeds its limit.
fn judge(report: &Report, arguments: &Arguments, wait_max: Duration) -> Vec<String> {
    let limit_mib =
        BUFFER_POOL_MIB + PACKET_MEMORY_MIB + arguments.statement_memory_mib + UNCOUNTED_MIB;
    let most_mib = report.resident_bytes_max / MIB;
    println!(
        "  memory: {} MiB before, {most_mib} MiB at the most, limit {limit_mib} MiB; {} answers",
        report.resident_bytes_before / MIB,
        report.answers,
    );
    for (name, waits) in [("quiet", &report.quiet), ("attacked", &report.attacked)] {
        println!(
            "  {name}: p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms, of {}",
            milliseconds(percentile(waits, 500)),
            milliseconds(percentile(waits, 990)),
            milliseconds(percentile(waits, 1000)),
            waits.len(),
        );
    }
    let wait = percentile(&report.attacked, 990);
    let mut failures = Vec::new();
    if limit_mib < most_mib {
        failures.push(format!("{most_mib} MiB of {limit_mib} MiB"));
    }
    if wait_max < wait {
        let (wait, most) = (milliseconds(wait), milliseconds(wait_max));
        failures.push(format!("p99 of {wait:.1} ms, {most:.0} at the most"));
    }
    failures
}

fn milliseconds(wait: Duration) -> f64 {
    wait.as_secs_f64() * 1e3
}
