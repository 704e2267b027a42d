//! One measurement of a server under the bench's load, and the line that shows it.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use metrics::HistogramSnapshot;
use rustix::time::{ClockId, clock_gettime};

use crate::generator::{Address, Distribution, Generator, Protocol, Shape, Tally};

/// What the load is made of, beside the kind of statements and the number of clients.
#[derive(Clone, Debug, clap::Args)]
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
    /// The load with this many clients.
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
            account_count: 0,
            settings: &[],
            failures: &[],
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
    pub(crate) p999_ms: f64,
    /// The longest wait, also of transactions unanswered at the end.
    pub(crate) longest_ms: f64,
    /// In an open loop, the lateness of the load itself.
    pub(crate) lateness: Option<Lateness>,
    /// Of the server, per statement; 0 if no process was named.
    pub(crate) cpu_us: f64,
    /// Of the load, per statement.
    pub(crate) load_cpu_us: f64,
    pub(crate) restarts: u64,
    pub(crate) failures: u64,
}

/// The delay between arrival and start of an open loop's transactions, only because the load got no
/// processor. It is part of each latency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lateness {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Relative to the latency: mean to mean, or 99th percentile to 99th percentile, whichever is
    /// greater.
    pub(crate) share: f64,
}

/// Above this share of the latency the load's own lateness falsifies the measurement.
pub(crate) const LATE_SHARE_MAX: f64 = 0.1;

impl Lateness {
    fn of(tally: &Tally, latency_us: &HistogramSnapshot) -> Lateness {
        let late_us = &tally.lateness_us;
        let part = |own: u64, whole: u64| stdx::u64_to_f64(own) / stdx::u64_to_f64(whole.max(1));
        let mean = |of: &HistogramSnapshot| part(of.sum(), of.count());
        let p99 = part(late_us.quantile(990), latency_us.quantile(990));
        Lateness {
            p50_ms: milliseconds(late_us.quantile(500)),
            p99_ms: milliseconds(late_us.quantile(990)),
            share: p99.max(mean(late_us) / mean(latency_us).max(1e-9)),
        }
    }

    pub(crate) fn is_too_late(&self) -> bool {
        LATE_SHARE_MAX < self.share
    }
}

/// Emphasized if it falsifies the run.
impl fmt::Display for Lateness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lateness {
            p50_ms,
            p99_ms,
            share,
        } = self;
        let percent = share * 100.0;
        write!(
            formatter,
            "the load late by p50 {p50_ms:.3} p99 {p99_ms:.3} ms, {percent:.1}% of the latency"
        )?;
        if self.is_too_late() {
            let limit = LATE_SHARE_MAX * 100.0;
            write!(
                formatter,
                " (TOO LATE: this run measures the load, not the server; at most {limit}% wanted: \
                 give it more --threads, a lower rate, or processors of its own)"
            )?;
        }
        Ok(())
    }
}

/// As drive shows it.
impl fmt::Display for Sample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:>8.0} statements/s  p50 {:.2} p95 {:.2} p99 {:.2} p99.9 {:.2} longest {:.2} ms  \
             server {:.2} us, load {:.2} us a statement, {} restarts",
            self.per_second,
            self.p50_ms,
            self.p95_ms,
            self.p99_ms,
            self.p999_ms,
            self.longest_ms,
            self.cpu_us,
            self.load_cpu_us,
            self.restarts
        )
    }
}

/// The counts so far.
#[derive(Debug, Default)]
pub(crate) struct Count {
    tally: Tally,
    /// Processor time of this process, which is the load.
    load: Duration,
}

impl Count {
    /// Runs the clients for this long, and adds their work.
    pub(crate) fn run(&mut self, generator: &mut Generator, length: Duration) -> Result<()> {
        let before = processor_time();
        self.tally.append(&generator.run(length)?);
        self.load += processor_time().saturating_sub(before);
        Ok(())
    }

    /// The measurement, with the processor time that the server used for it. If nothing was
    /// answered, each quantile is the whole time, which is its lower bound. (A disk that stalls for
    /// a second is enough, if few clients write.) One such sample must neither end a long run nor
    /// look fast.
    ///
    /// In an open loop unanswered transactions count by their age at the end. Otherwise a server
    /// that answers half of the arrivals would look as fast as one that answers all.
    pub(crate) fn sample(&self, server_us: f64) -> Sample {
        let tally = &self.tally;
        let count = stdx::u64_to_f64(tally.statement_count.max(1));
        let is_open = 0 < tally.lateness_us.count();
        let mut latency_us = tally.latency_us.clone();
        if is_open {
            latency_us.merge(&tally.unanswered_us);
        }
        let quantile_ms = |permille| match tally.statement_count {
            0 => tally.seconds * 1e3,
            _ => milliseconds(latency_us.quantile(permille)),
        };
        Sample {
            per_second: tally.statements_per_second(),
            p50_ms: quantile_ms(500),
            p95_ms: quantile_ms(950),
            p99_ms: quantile_ms(990),
            p999_ms: quantile_ms(999),
            longest_ms: milliseconds(tally.longest_us).max(quantile_ms(1000)),
            lateness: is_open.then(|| Lateness::of(tally, &latency_us)),
            cpu_us: server_us / count,
            load_cpu_us: self.load.as_secs_f64() * 1e6 / count,
            restarts: tally.restart_count,
            failures: tally.failure_count,
        }
    }
}

fn milliseconds(micros: u64) -> f64 {
    stdx::u64_to_f64(micros) / 1e3
}

/// Of this process, all its threads.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics::Histogram;

    #[test]
    fn runs_without_an_answer_are_as_slow_as_they_are_long() {
        let silent = Tally {
            seconds: 1.0,
            failure_count: 2,
            ..Tally::default()
        };
        let mut count = Count::default();
        count.tally.append(&silent);
        count.tally.append(&silent);
        let sample = count.sample(70.0);
        let told = [
            sample.per_second,
            sample.p50_ms,
            sample.p99_ms,
            sample.p999_ms,
            sample.longest_ms,
            sample.cpu_us,
        ];
        let wanted = [0.0, 2000.0, 2000.0, 2000.0, 2000.0, 70.0];
        assert_eq!(told.map(f64::round), wanted);
        assert_eq!(sample.failures, 4);
    }

    fn histogram(values: impl IntoIterator<Item = u64>) -> HistogramSnapshot {
        let histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram.snapshot()
    }

    /// A run of a second: 99 transactions of 1 ms, and one that has waited for 900 ms at the end.
    fn starved() -> Tally {
        Tally {
            seconds: 1.0,
            statement_count: 99,
            latency_us: histogram([1000; 99]),
            unanswered_us: histogram([900_000]),
            longest_us: 900_000,
            ..Tally::default()
        }
    }

    #[test]
    fn who_is_never_served_shows_by_age() {
        let mut count = Count::default();
        count.tally.append(&starved());
        let sample = count.sample(0.0);
        assert_eq!(sample.longest_ms.round(), 900.0);
        assert_eq!(sample.p99_ms.round(), 1.0);
        assert_eq!(sample.lateness, None);
    }

    #[test]
    fn what_an_open_loop_leaves_unanswered_is_in_its_quantiles() {
        let mut count = Count::default();
        let open = Tally {
            lateness_us: histogram([10; 100]),
            ..starved()
        };
        count.tally.append(&open);
        let sample = count.sample(0.0);
        assert_eq!(
            (sample.p99_ms.round(), sample.p999_ms.round()),
            (1.0, 900.0)
        );
        let lateness = sample.lateness.unwrap();
        assert!((lateness.p99_ms - 0.01).abs() < 1e-9);
        assert!((lateness.share - 0.01).abs() < 1e-3 && !lateness.is_too_late());
        // The unanswered transaction of the first of two turns is counted once, where it ended.
        let later = Tally {
            unanswered_us: HistogramSnapshot::empty(),
            ..open
        };
        count.tally.append(&later);
        let sample = count.sample(0.0);
        assert_eq!(
            (sample.p999_ms.round(), sample.longest_ms.round()),
            (1.0, 900.0)
        );
    }

    #[test]
    fn a_late_load_is_noticed_at_its_limit() {
        let late = |late_us: u64| {
            let tally = Tally {
                statement_count: 1,
                latency_us: histogram([1000; 10]),
                lateness_us: histogram([late_us; 10]),
                ..Tally::default()
            };
            Lateness::of(&tally, &tally.latency_us).is_too_late()
        };
        assert_eq!([90, 110].map(late), [false, true]);
    }
}
