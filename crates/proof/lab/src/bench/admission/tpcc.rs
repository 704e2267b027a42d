//! TPC-C by `go-tpc` with thousands of clients: how soon `auto` settles, the longest wait for
//! entry, and a sweep of settings.
//!
//! One process of `go-tpc` runs all the time, since thousands of its clients take a while to
//! connect. The settings change while it runs, and commits are counted by the server. At first
//! there is `auto`, and the load begins: that is the change of load. Pauses are slept by the
//! server, in a statement of an administrator.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use env::Clock as _;
use env::linux::SystemClock;
use testkit::{Client, Launch, Server};

use super::super::verdict::Verdict;
use super::Arguments;
use super::changes::{PIECE, PIECES, longest_wait, settles};
use super::turns::{Measured, judge};
use crate::generator::{TPCC, account, create_accounts};
use crate::tpcc::{Call, go_tpc};

/// The uncounted beginning of a turn: what was admitted before has ended.
const TURN_SETTLE: Duration = Duration::from_secs(5);
/// The limit before `auto` begins.
const BEFORE_AUTO: &str = "64";
/// How long all clients may take to begin.
const CONNECT_MAX: Duration = Duration::from_secs(120);
/// Threads that load the tables.
const LOAD_THREADS: u32 = 4;

/// A server under TPC-C.
struct Stand {
    server: Server,
    root: Client,
    warehouses: u32,
}

/// All clients, until this is dropped.
struct Terminals(Child);

/// A setting, and what its turns have counted.
struct Setting {
    text: String,
    /// Commits a second of each turn.
    rates: Vec<f64>,
    commits: u64,
    /// Processor time of the server.
    cpu_us: u64,
    /// The limit at the end of each turn.
    limits: Vec<u64>,
}

/// What a while has counted.
struct Counted {
    commits: u64,
    seconds: f64,
    cpu_us: u64,
}

/// Measures with the greatest number of clients.
pub(super) fn run(program: &Path, arguments: &Arguments) -> Result<Vec<Verdict>> {
    let clients = arguments.clients.iter().copied().max();
    let clients = clients.context("a number of clients")?;
    let mut stand = Stand::start(program, arguments)?;
    stand.set("auto")?;
    let mut terminals = stand.terminals(clients)?;
    let what = format!("tpcc, {} warehouses, {clients} clients", stand.warehouses);
    let mut rates = Vec::with_capacity(PIECES);
    for _ in 0..PIECES {
        rates.push(stand.count(PIECE)?.rate());
    }
    let told: Vec<String> = rates.iter().map(|it| format!("{it:.0}")).collect();
    let limit = stand.root.status("Admission_limit")?;
    println!("\n{what}, from none: limit {limit}\n  {}", told.join(" "));
    let mut verdicts = vec![
        settles(&what, &rates),
        longest_wait(&mut stand.root, &what, (clients, &rates))?,
    ];
    verdicts.extend(sweep(&mut stand, (clients, &what), arguments)?);
    let ended = terminals.0.try_wait()?;
    ensure!(ended.is_none(), "go-tpc has ended in the middle: {ended:?}");
    Ok(verdicts)
}

/// A turn of each setting in each round.
fn sweep(
    stand: &mut Stand,
    (clients, what): (u32, &str),
    arguments: &Arguments,
) -> Result<Vec<Verdict>> {
    let fixed = arguments.limits.iter().filter(|it| **it <= clients);
    let texts = ["off".to_owned(), "auto".to_owned()];
    let texts = texts.into_iter().chain(fixed.map(ToString::to_string));
    let mut settings: Vec<Setting> = texts.map(Setting::new).collect();
    for round in 0..arguments.rounds {
        // Each round begins with another one, so that none is always behind the same one.
        let first = stdx::to_usize(u64::from(round)) % settings.len();
        settings.rotate_left(first);
        for setting in &mut settings {
            setting.take_turn(stand, arguments)?;
        }
    }
    settings.sort_by_key(|it| it.text.parse::<u32>().unwrap_or(0));
    println!("\n{what}");
    for setting in &settings {
        println!(
            "  {:>6}  {:>6.0} commits/s {:.0?}  {:>7.2} us CPU  limits {:?}",
            setting.text,
            setting.rate(),
            setting.rates,
            setting.cpu_us(),
            setting.limits,
        );
    }
    let measured: Vec<Measured> = settings.iter().map(Setting::measured).collect();
    judge(&measured, what)
}

impl Stand {
    fn start(program: &Path, arguments: &Arguments) -> Result<Stand> {
        let own = [
            "buffer_pool_size=2G".to_owned(),
            "log_size=1G".to_owned(),
            "flush_log_at_trx_commit=1".to_owned(),
            "max_connections=20000".to_owned(),
            "max_prepared_stmt_count=1000000".to_owned(),
        ];
        let launch =
            Launch::plateau(program).with_settings(own.iter().chain(&arguments.build.settings));
        let server = launch.start()?;
        let mut root = server.connect()?;
        root.run("CREATE DATABASE tpcc")?;
        let stand = Stand {
            server,
            root,
            warehouses: arguments.warehouses,
        };
        let mut prepare = stand.command("prepare", "root", LOAD_THREADS)?;
        let status = prepare.arg("--no-check").status();
        let status = status.context("cannot start go-tpc")?;
        ensure!(status.success(), "go-tpc prepare ended with {status}");
        Ok(stand)
    }

    fn command(&self, action: &str, user: &str, threads: u32) -> Result<Command> {
        let mut command = Command::new(go_tpc()?);
        let call = Call {
            action,
            user,
            port: self.server.port(),
            warehouses: self.warehouses,
            threads,
        };
        call.arguments(&mut command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(command)
    }

    /// Starts all clients, and waits until they are connected and have begun.
    fn terminals(&mut self, clients: u32) -> Result<Terminals> {
        create_accounts(&mut self.root, 1, TPCC)?;
        // A deadlock ends the transaction, not the thread.
        let mut command = self.command("run", &account(0), clients)?;
        command.args(["--ignore-error", "--silence"]);
        let mut terminals = Terminals(command.spawn().context("cannot start go-tpc")?);
        let begun_at = SystemClock.now();
        // They connect, then they prepare their statements, and then there are commits.
        while self.root.status("Threads_connected")? < u64::from(clients)
            || self.count(PIECE)?.commits == 0
        {
            let ended = terminals.0.try_wait()?;
            ensure!(ended.is_none(), "go-tpc has ended: {ended:?}");
            let waited = SystemClock.now().since(begun_at);
            ensure!(waited < CONNECT_MAX, "not all have begun in {waited:?}");
            self.pass(PIECE)?;
        }
        Ok(terminals)
    }

    fn set(&mut self, limit: &str) -> Result<()> {
        let statement = format!("SET GLOBAL max_concurrent_transactions = {limit}");
        self.root.run(&statement).map(drop)
    }

    /// Lets time pass.
    fn pass(&mut self, length: Duration) -> Result<()> {
        let seconds = length.as_secs_f64();
        self.root.query(&format!("SELECT SLEEP({seconds})"))?;
        Ok(())
    }

    fn count(&mut self, length: Duration) -> Result<Counted> {
        let before = self.root.status("Com_commit")?;
        let before_us = self.server.process().cpu_us()?;
        let begun_at = SystemClock.now();
        self.pass(length)?;
        let commits = self.root.status("Com_commit")? - before;
        Ok(Counted {
            commits,
            seconds: SystemClock.now().since(begun_at).as_secs_f64(),
            cpu_us: self.server.process().cpu_us()? - before_us,
        })
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Counted {
    /// Commits a second.
    fn rate(&self) -> f64 {
        stdx::u64_to_f64(self.commits) / self.seconds.max(1e-9)
    }
}

impl Setting {
    fn new(text: String) -> Setting {
        Setting {
            text,
            rates: Vec::new(),
            commits: 0,
            cpu_us: 0,
            limits: Vec::new(),
        }
    }

    fn take_turn(&mut self, stand: &mut Stand, arguments: &Arguments) -> Result<()> {
        if self.text == "auto" {
            // Those that came in without a limit have no pass. Until they have ended, no limit is
            // worth what it seems to be.
            stand.set(BEFORE_AUTO)?;
            stand.pass(TURN_SETTLE)?;
        }
        stand.set(&self.text)?;
        if self.text == "auto" {
            stand.pass(Duration::from_secs(arguments.settle_seconds))?;
        }
        stand.pass(TURN_SETTLE)?;
        let counted = stand.count(Duration::from_secs(arguments.seconds))?;
        self.rates.push(counted.rate());
        self.commits += counted.commits;
        self.cpu_us += counted.cpu_us;
        self.limits.push(stand.root.status("Admission_limit")?);
        Ok(())
    }

    /// The median of the turns.
    fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    }

    /// Of the server, for each commit.
    fn cpu_us(&self) -> f64 {
        stdx::u64_to_f64(self.cpu_us) / stdx::u64_to_f64(self.commits.max(1))
    }

    fn measured(&self) -> Measured {
        Measured {
            text: self.text.clone(),
            rate: self.rate(),
            cpu_us: self.cpu_us(),
        }
    }
}
