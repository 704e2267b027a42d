//! One measurement of a server under the bench's load.

use std::time::Duration;

use anyhow::Result;
use testkit::process::cpu_us;

use crate::generator::{Address, Distribution, Edge, Generator, Protocol, Shape, Tally};

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
    /// The fewest and the most transactions that one client finished.
    pub(crate) client_least: u64,
    pub(crate) client_most: u64,
    pub(crate) restarts: u64,
}

impl Sample {
    /// Runs the clients uncounted until they are warm, for `ramp` at least, then for `length`.
    pub(crate) fn take(
        generator: &mut Generator,
        server: Option<u32>,
        ramp: Duration,
        length: Duration,
    ) -> Result<Sample> {
        let mut marks = Vec::new();
        let tally = generator.run(ramp, length, |_: Edge| {
            marks.push((server.map_or(Ok(0), cpu_us)?, cpu_us(std::process::id())?));
            Ok(())
        })?;
        let [(server_from, load_from), (server_to, load_to)] = marks[..] else {
            anyhow::bail!("a run has two edges");
        };
        Ok(Sample::of(
            &tally,
            server_to - server_from,
            load_to - load_from,
        ))
    }

    /// What was counted, and the processor time of server and load. Where nothing was answered (a
    /// disk that stands still for a second is enough, with few clients that write) each quantile is
    /// the whole window, which it is at least: one such sample among several must neither end a
    /// long run nor look fast.
    fn of(tally: &Tally, server_us: u64, load_us: u64) -> Sample {
        let count = stdx::u64_to_f64(tally.statement_count.max(1));
        let each = |used: u64| stdx::u64_to_f64(used) / count;
        let quantile_ms = |permille| match tally.statement_count {
            0 => tally.seconds * 1e3,
            _ => stdx::u64_to_f64(tally.latency_us.quantile(permille)) / 1e3,
        };
        Sample {
            per_second: tally.statements_per_second(),
            p50_ms: quantile_ms(500),
            p95_ms: quantile_ms(950),
            p99_ms: quantile_ms(990),
            cpu_us: each(server_us),
            load_cpu_us: each(load_us),
            client_least: tally.client_least,
            client_most: tally.client_most,
            restarts: tally.restart_count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_without_an_answer_is_as_slow_as_it_is_long() {
        let silent = Tally {
            seconds: 2.0,
            ..Tally::default()
        };
        let sample = Sample::of(&silent, 70, 30);
        let told = [
            sample.per_second,
            sample.p50_ms,
            sample.p99_ms,
            sample.cpu_us,
            sample.load_cpu_us,
        ];
        assert_eq!(told.map(f64::round), [0.0, 2000.0, 2000.0, 70.0, 30.0]);
    }
}
