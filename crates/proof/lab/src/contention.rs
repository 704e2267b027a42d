//! Many clients that lock the same few rows: commits, deadlocks and latency, compared with MariaDB.
//!
//! Each transaction has two statements between BEGIN and COMMIT. Both servers run at the same time
//! and take turns: one is paused while the other is measured, so that a slow minute of the machine
//! affects both. After a deadlock a client rolls back and begins another transaction; its latency
//! goes on counting.
//!
//! The suite fails if Plateau has less than `--share` of MariaDB's commits, or if a wait ended by
//! its time-out: no transaction here is long enough for that.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::{Launch, Server};

use crate::generator::{Address, Distribution, Generator, Protocol, Shape, Tally};
use crate::target::MeasuredBuild;
use crate::target::reference;

/// About three minutes with what stands here as defaults.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Only this combination of load, clients and rows, as `load:clients:rows`; may be repeated.
    #[arg(long = "case")]
    cases: Vec<Case>,
    /// Seconds that count for each server in each combination.
    #[arg(long, default_value_t = 6)]
    seconds: u32,
    /// The least share of MariaDB's commits.
    #[arg(long, default_value_t = 0.8)]
    share: f64,
    #[command(flatten)]
    build: MeasuredBuild,
}

/// One combination.
#[derive(Clone, Debug)]
struct Case {
    /// `mixed`, `exclusive` or `upgrade`.
    load: String,
    clients: u32,
    rows: u32,
}

/// The load, the number of clients, and the number of rows. Mixed: each statement is a shared read
/// or an update, half and half. Upgrade: the row that was read shared is updated.
const CASES: [(&str, u32, u32); 7] = [
    ("mixed", 8, 8),
    ("mixed", 32, 8),
    ("mixed", 128, 8),
    ("mixed", 32, 64),
    ("exclusive", 32, 8),
    ("exclusive", 128, 64),
    ("upgrade", 32, 8),
];

/// A turn of one server.
const TURN: Duration = Duration::from_secs(1);

/// The uncounted beginning of a turn, in which caches fill again.
const SETTLE: Duration = Duration::from_millis(200);

/// Threads of the load.
const THREADS: u32 = 2;

impl std::str::FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Case> {
        let mut parts = text.split(':');
        let mut next = || parts.next().context("expected load:clients:rows");
        Ok(Case {
            load: next()?.to_owned(),
            clients: next()?.parse()?,
            rows: next()?.parse()?,
        })
    }
}

/// A server, its clients, and their results.
struct Side {
    name: &'static str,
    server: Server,
    generator: Generator,
    tally: Tally,
}

/// Measures every combination; fails if one misses the share.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = arguments.build.program()?;
    let mut cases = arguments.cases.clone();
    if cases.is_empty() {
        cases.extend(CASES.map(|(load, clients, rows)| Case {
            load: load.to_owned(),
            clients,
            rows,
        }));
    }
    let mut missed = Vec::new();
    for case in &cases {
        let told = format!(
            "{:<9} {:>3} clients {:>2} rows",
            case.load, case.clients, case.rows
        );
        let share = measure(arguments, &program, case, &told).context(told.clone())?;
        if share < arguments.share {
            missed.push(format!("{told}: {share:.2} of MariaDB's commits"));
        }
    }
    ensure!(
        missed.is_empty(),
        "less than {} of MariaDB's commits:\n{}",
        arguments.share,
        missed.join("\n")
    );
    Ok(())
}

/// Runs both servers in turns. Returns Plateau's share of MariaDB's commits.
fn measure(arguments: &Arguments, program: &Path, case: &Case, told: &str) -> Result<f64> {
    let plateau = Launch::plateau(program).with_settings(&arguments.build.settings);
    let mariadb = reference().with("--skip-log-bin");
    let mut sides = [
        Side::start("plateau", plateau, case)?,
        Side::start("mariadb", mariadb, case)?,
    ];
    for _ in 0..arguments.seconds {
        for side in &mut sides {
            side.take_turn()?;
        }
    }
    for side in &sides {
        println!("{told} {}", side.line());
    }
    let [plateau, mariadb] = sides.map(|side| stdx::u64_to_f64(side.commit_count()));
    let share = plateau / mariadb.max(1.0);
    println!("{told} plateau has {share:.2} of mariadb's commits");
    Ok(share)
}

impl Side {
    /// Starts a server with its table, and pauses it.
    fn start(name: &'static str, launch: Launch, case: &Case) -> Result<Side> {
        let mut server = launch.start()?;
        let mut client = server.connect()?;
        client.run("CREATE DATABASE sbtest")?;
        client.run("USE sbtest")?;
        client.run("CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT NOT NULL, c INT NOT NULL)")?;
        for row in 1..=case.rows {
            client.run(&format!("INSERT INTO sbtest1 VALUES ({row}, 0, 0)"))?;
        }
        let shape = Shape {
            address: Address::Tcp(server.port()),
            workload: format!("lock_{}", case.load),
            client_count: case.clients,
            table_count: 1,
            row_count: case.rows,
            distribution: Distribution::Uniform,
            protocol: Protocol::Text,
            account_count: 0,
            settings: &[],
            failures: &[],
            thread_count: THREADS,
            seed: u64::from(case.clients),
        };
        let mut generator = Generator::connect(&shape)?;
        generator.warm(SETTLE)?;
        server.process().pause()?;
        Ok(Side {
            name,
            server,
            generator,
            tally: Tally::default(),
        })
    }

    fn take_turn(&mut self) -> Result<()> {
        let process = self.server.process();
        process.resume()?;
        self.generator.run_uncounted(SETTLE)?;
        let counted = self.generator.run(TURN)?;
        self.tally.append(&counted);
        process.pause()
    }

    fn commit_count(&self) -> u64 {
        self.tally.latency_us.count()
    }

    fn line(&self) -> String {
        let quantile_ms = |permille| {
            let quantile_us = self.tally.latency_us.quantile(permille);
            stdx::u64_to_f64(quantile_us) / 1e3
        };
        format!(
            "{}: {:>6} commits {:>6} deadlocks  p50 {:.2} p95 {:.2} p99 {:.2} ms",
            self.name,
            self.commit_count(),
            self.tally.restart_count,
            quantile_ms(500),
            quantile_ms(950),
            quantile_ms(990)
        )
    }
}
