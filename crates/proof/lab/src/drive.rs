//! The bench's load by itself, against a server that runs already: for looking at that server with
//! a profiler, or for a point that the bench does not have. Tables are sysbench's (`sbtest1`, ...)
//! in the database `sbtest`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use testkit::process::cpu_us;

use crate::generator::{Address, Distribution, Edge, Generator, Protocol, Shape};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Port of loopback.
    #[arg(long, default_value_t = 4006)]
    port: u16,
    /// Unix socket, in place of the port.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// A sysbench script without `oltp_`.
    #[arg(long, default_value = "point_select")]
    workload: String,
    #[arg(long, value_delimiter = ',', default_values_t = [64])]
    clients: Vec<u32>,
    #[arg(long, default_value_t = 4)]
    tables: u32,
    #[arg(long, default_value_t = 50_000)]
    rows: u32,
    #[arg(long, value_enum, default_value = "uniform")]
    rand: Distribution,
    /// Statements sent as text instead of prepared.
    #[arg(long)]
    text: bool,
    /// Seconds that count, after one that does not.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Threads of the load.
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// The server's process, to tell its processor time.
    #[arg(long)]
    process: Option<u32>,
}

/// Runs each number of clients once and prints a line for it.
pub fn run(arguments: &Arguments) -> Result<()> {
    for &client_count in &arguments.clients {
        let address = match &arguments.socket {
            Some(path) => Address::Unix(path.clone()),
            None => Address::Tcp(arguments.port),
        };
        let mut generator = Generator::connect(&Shape {
            address,
            workload: arguments.workload.clone(),
            client_count,
            table_count: arguments.tables,
            row_count: arguments.rows,
            distribution: arguments.rand,
            protocol: if arguments.text {
                Protocol::Text
            } else {
                Protocol::Prepared
            },
            thread_count: arguments.threads,
            seed: u64::from(client_count),
        })?;
        let own = std::process::id();
        let used = |id: Option<u32>| id.map_or(Ok(0), cpu_us);
        let mut marks = Vec::new();
        let tally = generator.run(
            Duration::from_secs(1),
            Duration::from_secs(arguments.seconds),
            |_: Edge| {
                marks.push((used(arguments.process)?, used(Some(own))?));
                Ok(())
            },
        )?;
        let [(server_from, load_from), (server_to, load_to)] = marks[..] else {
            anyhow::bail!("a run has two edges");
        };
        let count = stdx::u64_to_f64(tally.statement_count);
        let each = |used: u64| stdx::u64_to_f64(used) / count;
        let quantile = |permille| stdx::u64_to_f64(tally.latency_us.quantile(permille)) / 1e3;
        println!(
            "{:<16} {client_count:>5} clients {:>8.0} statements/s  p50 {:.2} p95 {:.2} p99 {:.2} \
             ms  server {:.2} us, load {:.2} us a statement  {} to {} transactions a client, {} \
             restarts",
            arguments.workload,
            tally.statements_per_second(),
            quantile(500),
            quantile(950),
            quantile(990),
            each(server_to - server_from),
            each(load_to - load_from),
            tally.client_least,
            tally.client_most,
            tally.restart_count
        );
    }
    Ok(())
}
