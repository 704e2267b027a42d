//! Random changes of a table that is some times as large as the buffer pool, beside MariaDB.
//!
//! Both servers have the same pool, log and durability, and both read and write past the page
//! cache: it is MariaDB's default, and Plateau knows no other way. They take turns; one is paused
//! while the other is measured. Besides throughput the command shows what a change costs: processor
//! time, bytes on the device (`/proc/PID/io`), and pages read and written as the servers count
//! them. These do not depend on how fast the machine is just then.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::process::DeviceBytes;
use testkit::{Client, Launch, Server};

use super::point::median;
use super::verdict::{Limits, Outcome, Verdict};
use crate::generator::{Address, Distribution, Generator, Protocol, Shape, Tally};
use crate::load;
use crate::target::MeasuredBuild;
use crate::target::reference;

/// About three minutes with what stands here as defaults.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The pool of each server, in MiB.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(8..=16384))]
    pool: u32,
    /// The table, as a multiple of the pool.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    times: u32,
    /// The log of each server, in MiB.
    #[arg(long, default_value_t = 512)]
    log: u32,
    /// A sysbench script without `oltp_`.
    #[arg(long, default_value = "update_non_index")]
    workload: String,
    #[arg(long, default_value_t = 64)]
    clients: u32,
    /// Turns of each server.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of a turn that count.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Seconds at the beginning of a turn that do not count.
    #[arg(long, default_value_t = 2)]
    settle: u64,
    #[command(flatten)]
    build: MeasuredBuild,
    /// An earlier build of it, to compare with.
    #[arg(long)]
    against: Option<PathBuf>,
    #[command(flatten)]
    verdict: Limits,
}

/// Throughput must be at least this multiple of MariaDB's.
const RATE_MIN: f64 = 1.1;
/// Bytes of a row of sysbench's in InnoDB's pages, which are filled to fifteen sixteenths.
const ROW_BYTES: u64 = 226;
/// How long the clients run before the first turn, so that the pools are full of dirty pages.
const RAMP: Duration = Duration::from_secs(10);
/// Threads of the load.
const THREADS: u32 = 2;

/// A server, its clients, and its turns.
struct Side {
    name: &'static str,
    server: Server,
    root: Client,
    load: Generator,
    turns: Vec<Turn>,
}

/// What a server has done so far.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cpu_us: u64,
    device: DeviceBytes,
    pages_read: u64,
    pages_written: u64,
}

/// What one turn has counted.
#[derive(Clone, Debug, Default)]
struct Turn {
    tally: Tally,
    counts: Counts,
}

/// Measures; fails if Plateau misses its limit.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = arguments.build.program()?;
    let mut sides = vec![
        Side::start("plateau", plateau(arguments, &program), arguments)?,
        Side::start("mariadb", mariadb(arguments), arguments)?,
    ];
    if let Some(base) = &arguments.against {
        sides.push(Side::start("base", plateau(arguments, base), arguments)?);
    }
    println!(
        "{}, {} clients, {} rows, {} times a pool of {} MiB",
        arguments.workload,
        arguments.clients,
        rows(arguments),
        arguments.times,
        arguments.pool
    );
    for _ in 0..arguments.rounds {
        for side in &mut sides {
            side.take_turn(arguments)?;
        }
        // No server always follows the same other.
        sides.rotate_left(1);
    }
    sides.sort_by_key(|side| side.name);
    for side in &sides {
        println!("{}", side.line());
    }
    let verdicts = judge(&sides)?;
    arguments.verdict.judge(&verdicts)
}

fn rows(arguments: &Arguments) -> u32 {
    let bytes = (u64::from(arguments.pool) << 20) * u64::from(arguments.times);
    u32::try_from(bytes / ROW_BYTES).unwrap_or(u32::MAX)
}

fn plateau(arguments: &Arguments, program: &Path) -> Launch {
    let own = [
        format!("buffer_pool_size={}M", arguments.pool),
        format!("log_size={}M", arguments.log),
        String::from("flush_log_at_trx_commit=1"),
    ];
    Launch::plateau(program).with_settings(own.iter().chain(&arguments.build.settings))
}

fn mariadb(arguments: &Arguments) -> Launch {
    reference()
        .with(format!("--innodb-buffer-pool-size={}M", arguments.pool))
        .with(format!("--innodb-log-file-size={}M", arguments.log))
        .with("--innodb-flush-method=O_DIRECT")
        .with("--innodb-flush-log-at-trx-commit=1")
        .with("--skip-log-bin")
}

impl Side {
    /// Starts a server with its table, warms its clients, and pauses it.
    fn start(name: &'static str, launch: Launch, arguments: &Arguments) -> Result<Side> {
        let mut server = launch.start().context(name)?;
        let rows = rows(arguments);
        load::fill(server.port(), "oltp_read_write", (1, rows)).context(name)?;
        let root = server.connect()?;
        let mut load = Generator::connect(&Shape {
            address: Address::Tcp(server.port()),
            workload: arguments.workload.clone(),
            client_count: arguments.clients,
            table_count: 1,
            row_count: rows,
            distribution: Distribution::Uniform,
            protocol: Protocol::Prepared,
            account_count: 0,
            settings: &[],
            failures: &[],
            thread_count: THREADS,
            seed: u64::from(arguments.clients),
        })?;
        load.warm(RAMP)?;
        server.process().pause()?;
        Ok(Side {
            name,
            server,
            root,
            load,
            turns: Vec::new(),
        })
    }

    fn take_turn(&mut self, arguments: &Arguments) -> Result<()> {
        self.server.process().resume()?;
        self.load
            .run_uncounted(Duration::from_secs(arguments.settle))?;
        let before = self.counts()?;
        let tally = self.load.run(Duration::from_secs(arguments.seconds))?;
        let counts = self.counts()?.since(before);
        self.server.process().pause()?;
        self.turns.push(Turn { tally, counts });
        Ok(())
    }

    fn counts(&mut self) -> Result<Counts> {
        let process = self.server.process();
        Ok(Counts {
            cpu_us: process.cpu_us()?,
            device: DeviceBytes::of(process.id())?,
            pages_read: self.root.status("Innodb_buffer_pool_reads")?,
            pages_written: self.root.status("Innodb_pages_written")?,
        })
    }

    /// The median of its turns.
    fn of_turns(&self, of: impl Fn(&Turn) -> f64) -> f64 {
        median(self.turns.iter().map(of))
    }

    fn line(&self) -> String {
        let rates: Vec<String> = self
            .turns
            .iter()
            .map(|turn| format!("{:.0}", turn.rate()))
            .collect();
        format!(
            "{:<8} {:>7.0} transactions/s  p95 {:>7.2} p99.9 {:>7.2} ms; each: {:>6.1} us CPU, \
             {:>7.0} bytes read, {:>7.0} written, {:.2} pages read, {:.2} written; turns {}",
            self.name,
            self.of_turns(Turn::rate),
            self.of_turns(|turn| turn.quantile_ms(950)),
            self.of_turns(|turn| turn.quantile_ms(999)),
            self.of_turns(|turn| turn.each(turn.counts.cpu_us)),
            self.of_turns(|turn| turn.each(turn.counts.device.read)),
            self.of_turns(|turn| turn.each(turn.counts.device.written)),
            self.of_turns(|turn| turn.each(turn.counts.pages_read)),
            self.of_turns(|turn| turn.each(turn.counts.pages_written)),
            rates.join(" ")
        )
    }
}

impl Counts {
    fn since(self, earlier: Counts) -> Counts {
        Counts {
            cpu_us: self.cpu_us.saturating_sub(earlier.cpu_us),
            device: self.device.since(earlier.device),
            pages_read: self.pages_read.saturating_sub(earlier.pages_read),
            pages_written: self.pages_written.saturating_sub(earlier.pages_written),
        }
    }
}

impl Turn {
    /// Transactions a second.
    fn rate(&self) -> f64 {
        stdx::u64_to_f64(self.tally.latency_us.count()) / self.tally.seconds.max(1e-9)
    }

    fn quantile_ms(&self, permille: u32) -> f64 {
        stdx::u64_to_f64(self.tally.latency_us.quantile(permille)) / 1e3
    }

    /// A count for each transaction.
    fn each(&self, count: u64) -> f64 {
        stdx::u64_to_f64(count) / stdx::u64_to_f64(self.tally.latency_us.count().max(1))
    }
}

fn judge(sides: &[Side]) -> Result<Vec<Verdict>> {
    let of = |name: &str| sides.iter().find(|side| side.name == name);
    let own = of("plateau").context("it had its turns")?;
    let mut verdicts = Vec::new();
    for other in sides.iter().filter(|side| side.name != own.name) {
        // Between turns that followed each other.
        let pairs = own.turns.iter().zip(&other.turns);
        let ratio = median(pairs.map(|(own, other)| own.rate() / other.rate().max(1e-9)));
        let is_limited = other.name == "mariadb";
        verdicts.push(Verdict {
            what: format!("throughput beside {}", other.name),
            measured: format!("{ratio:.2} of it"),
            limit: match is_limited {
                true => format!(">= {RATE_MIN}"),
                false => String::from("no limit"),
            },
            outcome: match is_limited {
                true => Outcome::of(RATE_MIN <= ratio),
                false => Outcome::Shown,
            },
        });
    }
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_for_each_transaction() {
        let mut turn = Turn::default();
        assert!((turn.each(7) - 7.0).abs() < 1e-9, "none was answered");
        let latency_us = metrics::Histogram::new();
        for value in [1000; 4] {
            latency_us.record(value);
        }
        turn.tally.latency_us = latency_us.snapshot();
        turn.tally.seconds = 2.0;
        assert!((turn.each(6) - 1.5).abs() < 1e-9);
        assert!((turn.rate() - 2.0).abs() < 1e-9);
        assert!((turn.quantile_ms(500) - 1.0).abs() < 0.1);
    }

    #[test]
    fn what_was_counted_before_a_turn_is_not_its_own() {
        let counts = |count| Counts {
            cpu_us: count,
            device: DeviceBytes {
                read: count,
                written: count,
            },
            pages_read: count,
            pages_written: count,
        };
        let since = counts(5).since(counts(3));
        assert_eq!((since.cpu_us, since.device.written), (2, 2));
        assert_eq!((since.pages_read, since.pages_written), (2, 2));
        assert_eq!(counts(3).since(counts(5)).pages_read, 0);
    }
}
