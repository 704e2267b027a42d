//! The bench's load by itself, against a server that runs already: for looking at that server with
//! a profiler, or for a point that the bench does not have. Tables are sysbench's (`sbtest1`, ...)
//! in the database `sbtest`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use testkit::process::cpu_us;

use crate::generator::{Address, Generator, JUDGED_MEAN, SHARE_LEAST, SHARE_MOST, Shares};
use crate::sample::{Count, LoadArguments, Sample};

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
    /// An open loop: transactions arrive at this rate a second, each for any client, and their time
    /// is counted from then. Without it each client begins the next when one ends.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Seconds that count, after one at least that does not.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// The server's process id, to report its processor time.
    #[arg(long)]
    process: Option<u32>,
}

/// How long an open loop runs uncounted before it is measured: the preceding closed loop has left
/// each client with a running transaction.
const OPENING: Duration = Duration::from_secs(1);

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
        if let Some(rate) = arguments.rate {
            generator.open(f64::from(rate));
            generator.run_uncounted(OPENING)?;
        }
        let server_us = || arguments.process.map_or(Ok(0), cpu_us);
        let (before_us, mut count) = (server_us()?, Count::default());
        count.run(&mut generator, Duration::from_secs(arguments.seconds))?;
        let sample = count.sample(stdx::u64_to_f64(server_us()? - before_us));
        let (workload, shares) = (&arguments.workload, generator.shares());
        println!(
            "{workload:<16} {client_count:>5} clients {sample}, {}",
            told(&sample, &shares)
        );
    }
    Ok(())
}

/// How evenly clients were served. In an open loop chance decides how much each client has to do,
/// so the load's own lateness is shown.
fn told(sample: &Sample, shares: &Shares) -> String {
    let Some(lateness) = &sample.lateness else {
        let verdict = match shares.is_fair() {
            None => format!("not judged: {JUDGED_MEAN} wanted"),
            Some(true) => "fair".to_owned(),
            Some(false) => format!("UNFAIR: {SHARE_LEAST} to {SHARE_MOST} wanted"),
        };
        return format!("each client {shares} transactions ({verdict})");
    };
    lateness.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_told_with_their_verdict() {
        let sample = Count::default().sample(0.0);
        let told = |counts: [u64; 2]| told(&sample, &Shares::of(counts.into_iter()));
        let fair = "each client 0.80 to 1.20 of the mean of 100 transactions (fair)";
        assert_eq!(told([80, 120]), fair);
        assert!(told([60, 140]).ends_with("(UNFAIR: 0.7 to 1.3 wanted)"));
        assert!(told([0, 1]).ends_with("(not judged: 50 wanted)"));
    }
}
