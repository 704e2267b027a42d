//! What the admission of transactions gives: `auto` beside fixed limits and none, on one server.
//!
//! Each load runs on a server of its own, with all clients on the same few rows. The setting is
//! changed while the server runs, and each setting has a turn in each round, so that a slow minute
//! of the machine affects all. `auto` begins again at each change, so it has time to settle before
//! its turn is counted. Then the number of clients changes under `auto`, and it is seen how soon
//! throughput is what it stays at. Last, thousands of transactions are opened that do nothing.
//!
//! Clients log in as an account without privileges beyond the tables: administrators need no
//! admission. Statements are prepared.
//!
//! The load `tpcc` is TPC-C by `go-tpc`, with the greatest number of clients alone.
//!
//! Module `turns` has the turns of a sweep, `changes` the change of load and the idle transactions,
//! `tpcc` all of TPC-C.

mod changes;
mod tpcc;
mod turns;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::{Client, Launch, Server};

use super::verdict::{Limits, Outcome, Verdict};
use crate::generator::{Address, Distribution, Generator, Protocol, Shape, create_accounts};
use crate::target::MeasuredBuild;

/// Some twelve minutes with what stands here as defaults.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// `update_index` is a transaction of one statement, `lock_exclusive` of two between BEGIN and
    /// COMMIT; `tpcc` is TPC-C by `go-tpc`. By default the first two.
    #[arg(long = "load")]
    loads: Vec<String>,
    /// Numbers of clients, each with a sweep of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 4096])]
    clients: Vec<u32>,
    /// Rows that all clients change.
    #[arg(long, default_value_t = 16)]
    rows: u32,
    /// The fixed limits of the sweep.
    #[arg(long, value_delimiter = ',', default_values_t = LIMITS)]
    limits: Vec<u32>,
    /// Turns of each setting.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of a turn that count.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Seconds that `auto` has before its turn counts.
    #[arg(long, default_value_t = SETTLE.as_secs())]
    settle_seconds: u64,
    /// Open transactions that do nothing; 0: none.
    #[arg(long, default_value_t = 1000)]
    idle: u32,
    /// Warehouses of TPC-C.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    warehouses: u32,
    #[command(flatten)]
    build: MeasuredBuild,
    #[command(flatten)]
    verdict: Limits,
}

/// From one for each worker and a few more, to all clients.
const LIMITS: [u32; 9] = [8, 16, 32, 64, 128, 256, 512, 1024, 4096];
/// The loads of a run that names none.
const LOADS: [&str; 2] = ["update_index", "lock_exclusive"];
/// `auto` must give this share of the best fixed limit.
const AUTO_SHARE_MIN: f64 = 0.95;
/// It must do so this soon after a change of load.
const SETTLE: Duration = Duration::from_secs(10);
/// Idle transactions may make the 95th percentile of others this much longer.
const IDLE_P95_MAX: f64 = 1.1;
/// No transaction may wait longer than this many times clients through throughput.
const ROUNDS_MAX: f64 = 4.0;
/// What tells why a load stands still.
const GATE_NUMBERS: [&str; 6] = [
    "Admission_limit",
    "Admission_inside",
    "Admission_waiting",
    "Admission_blocked",
    "Admission_overdue",
    "Handler_commit",
];
/// Threads of the load.
const THREADS: u32 = 2;

/// A server under one load.
struct Stand {
    server: Server,
    root: Client,
    load: String,
    rows: u32,
}

/// Measures all loads; fails if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = arguments.build.program()?;
    let mut verdicts = Vec::new();
    let mut loads = arguments.loads.clone();
    if loads.is_empty() {
        loads.extend(LOADS.map(str::to_owned));
    }
    for load in &loads {
        if load == "tpcc" {
            verdicts.extend(tpcc::run(&program, arguments)?);
            continue;
        }
        for &clients in &arguments.clients {
            let mut stand = Stand::start(&program, load, arguments)?;
            verdicts.extend(turns::sweep(&mut stand, clients, arguments)?);
        }
        let mut stand = Stand::start(&program, load, arguments)?;
        let (least, most) = (
            arguments
                .clients
                .iter()
                .min()
                .context("a number of clients")?,
            arguments
                .clients
                .iter()
                .max()
                .context("a number of clients")?,
        );
        if least != most {
            verdicts.extend(changes::change_of_load(&mut stand, (*least, *most))?);
        }
        if arguments.idle != 0 {
            verdicts.push(changes::idle_transactions(&mut stand, *least, arguments)?);
        }
    }
    arguments.verdict.judge(&verdicts)
}

/// Transactions a second without a limit and under `auto`, with each number of clients.
pub(super) fn off_and_auto(
    program: &Path,
    clients: &[u32],
    rounds: u32,
) -> Result<Vec<(u32, f64, f64)>> {
    let arguments = Arguments {
        loads: Vec::new(),
        clients: clients.to_vec(),
        rows: 16,
        limits: Vec::new(),
        rounds,
        seconds: 1,
        settle_seconds: 3,
        idle: 0,
        warehouses: 1,
        build: MeasuredBuild::default(),
        verdict: Limits { no_limits: true },
    };
    let rates = |&clients: &u32| {
        let mut stand = Stand::start(program, "lock_exclusive", &arguments)?;
        let (off, auto) = turns::off_and_auto(&mut stand, clients, &arguments)?;
        Ok((clients, off, auto))
    };
    clients.iter().map(rates).collect()
}

impl Stand {
    fn start(program: &Path, load: &str, arguments: &Arguments) -> Result<Stand> {
        let own = [
            "buffer_pool_size=256M".to_owned(),
            "log_size=1G".to_owned(),
            "max_connections=20000".to_owned(),
            "max_prepared_stmt_count=1000000".to_owned(),
        ];
        let launch =
            Launch::plateau(program).with_settings(own.iter().chain(&arguments.build.settings));
        let server = launch.start()?;
        let mut root = server.connect()?;
        for statement in [
            "CREATE DATABASE sbtest",
            "USE sbtest",
            "CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL)",
            "CREATE TABLE idle (id INT PRIMARY KEY, n INT NOT NULL)",
        ] {
            root.run(statement)?;
        }
        for row in 1..=arguments.rows {
            root.run(&format!("INSERT INTO sbtest1 VALUES ({row}, 0, '')"))?;
        }
        create_accounts(&mut root, 1, "sbtest")?;
        Ok(Stand {
            server,
            root,
            load: load.to_owned(),
            rows: arguments.rows,
        })
    }

    /// Clients of the load.
    fn generator(&self, client_count: u32) -> Result<Generator> {
        Generator::connect(&Shape {
            address: Address::Tcp(self.server.port()),
            workload: self.load.clone(),
            client_count,
            table_count: 1,
            row_count: self.rows,
            distribution: Distribution::Uniform,
            protocol: Protocol::Prepared,
            account_count: 1,
            settings: &[],
            failures: &[],
            thread_count: THREADS,
            seed: u64::from(client_count),
        })
    }

    fn set(&mut self, limit: &str) -> Result<()> {
        let statement = format!("SET GLOBAL max_concurrent_transactions = {limit}");
        self.root.run(&statement).map(drop)
    }

    /// Says what the gate shows if the last piece of a run had no transaction.
    fn show_if_still(&mut self, rates: &[f64]) -> Result<()> {
        if rates.last().is_some_and(|it| *it != 0.0) {
            return Ok(());
        }
        let mut told = Vec::new();
        for name in GATE_NUMBERS {
            told.push(format!("{name} {}", self.root.status(name)?));
        }
        println!(
            "  no transaction in piece {}: {}",
            rates.len(),
            told.join(", ")
        );
        Ok(())
    }

    /// The limit now; 0 for none.
    fn limit(&mut self) -> Result<u64> {
        self.root.status("Admission_limit")
    }
}

/// A verdict on a number that is at least, or at most, another.
fn judged(what: String, measured: String, limit: String, outcome: Outcome) -> Verdict {
    Verdict {
        what,
        measured,
        limit,
        outcome,
    }
}
