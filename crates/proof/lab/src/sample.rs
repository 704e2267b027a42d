//! One measurement of a server under the bench's load.

use std::time::Duration;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use crate::generator::{Address, Distribution, Generator, Protocol, Shape, Tally};

/// What the load is made of, beside the kind of statements and the number of clients.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArguments {
    /// Tables, which are sysbench's: `sbtest1`, ...
    #[arg(long, default_value_t = 4)]
    pub(crate) tables: u32,
    #[arg(long, default_value_t = 50_000)]
    pub(crate) rows: u32,
    /// How rows are chosen: all alike, or three of four in the middle hundredth (sysbench's own).
    #[arg(long, value_enum, default_value = "uniform")]
    pub(crate) rand: Distribution,
    /// Statements sent as text instead of prepared.
    #[arg(long)]
    pub(crate) text: bool,
    /// Threads of the load.
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: u32,
}

impl LoadArguments {
    /// The load of so many clients.
    pub(crate) fn shape(&self, address: Address, workload: &str, client_count: u32) -> Shape {
        Shape {
            address,
            workload: workload.to_owned(),
            client_count,
            table_count: self.tables,
            row_count: self.rows,
            distribution: self.rand,
            protocol: if self.text {
                Protocol::Text
            } else {
                Protocol::Prepared
            },
            thread_count: self.threads,
            seed: u64::from(client_count),
        }
    }
}

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    /// Of the server, per statement; 0 of a process that was not named.
    pub(crate) cpu_us: f64,
    /// Of the load, per statement.
    pub(crate) load_cpu_us: f64,
    pub(crate) restarts: u64,
}

/// What was counted so far.
#[derive(Debug, Default)]
pub(crate) struct Count {
    tally: Tally,
    /// Processor time of this process, which is the load.
    load: Duration,
}

impl Count {
    /// Runs the clients for that long, and adds what they do.
    pub(crate) fn run(&mut self, generator: &mut Generator, length: Duration) -> Result<()> {
        let before = processor_time();
        self.tally.append(&generator.run(length)?);
        self.load += processor_time().saturating_sub(before);
        Ok(())
    }

    /// The measurement, with the processor time that the server has used for it. Where nothing was
    /// answered (a disk that stands still for a second is enough, with few clients that write) each
    /// quantile is the whole time, which it is at least: one such sample among several must neither
    /// end a long run nor look fast.
    pub(crate) fn sample(&self, server_us: u64) -> Sample {
        let tally = &self.tally;
        let count = stdx::u64_to_f64(tally.statement_count.max(1));
        let quantile_ms = |permille| match tally.statement_count {
            0 => tally.seconds * 1e3,
            _ => stdx::u64_to_f64(tally.latency_us.quantile(permille)) / 1e3,
        };
        Sample {
            per_second: tally.statements_per_second(),
            p50_ms: quantile_ms(500),
            p95_ms: quantile_ms(950),
            p99_ms: quantile_ms(990),
            cpu_us: stdx::u64_to_f64(server_us) / count,
            load_cpu_us: self.load.as_secs_f64() * 1e6 / count,
            restarts: tally.restart_count,
        }
    }
}

/// Of this process, all its threads.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_an_answer_are_as_slow_as_they_are_long() {
        let silent = Tally {
            seconds: 1.0,
            ..Tally::default()
        };
        let mut count = Count::default();
        count.tally.append(&silent);
        count.tally.append(&silent);
        let sample = count.sample(70);
        let told = [
            sample.per_second,
            sample.p50_ms,
            sample.p99_ms,
            sample.cpu_us,
        ];
        assert_eq!(told.map(f64::round), [0.0, 2000.0, 2000.0, 70.0]);
    }
}
