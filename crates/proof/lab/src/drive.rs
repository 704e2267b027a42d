//! The bench's load by itself, against a server that runs already: for looking at that server with
//! a profiler, or for a point that the bench does not have. Tables are sysbench's (`sbtest1`, ...)
//! in the database `sbtest`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use testkit::process::cpu_us;

use crate::generator::{Address, Generator};
use crate::sample::{Count, LoadArguments};

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
    #[command(flatten)]
    load: LoadArguments,
    /// Seconds that count, after one at least that does not.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
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
        let shape = arguments
            .load
            .shape(address, &arguments.workload, client_count);
        let mut generator = Generator::connect(&shape)?;
        generator.warm(Duration::from_secs(1))?;
        let server_us = || arguments.process.map_or(Ok(0), cpu_us);
        let (before_us, mut count) = (server_us()?, Count::default());
        count.run(&mut generator, Duration::from_secs(arguments.seconds))?;
        let sample = count.sample(server_us()? - before_us);
        let (least, most) = generator.least_and_most();
        println!(
            "{:<16} {client_count:>5} clients {:>8.0} statements/s  p50 {:.2} p95 {:.2} p99 {:.2} \
             ms  server {:.2} us, load {:.2} us a statement  {least} to {most} transactions a \
             client, {} restarts",
            arguments.workload,
            sample.per_second,
            sample.p50_ms,
            sample.p95_ms,
            sample.p99_ms,
            sample.cpu_us,
            sample.load_cpu_us,
            sample.restarts
        );
    }
    Ok(())
}
