//! `cargo xtask`: the only build tool. Each command has a file of the same name.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    reason = "a command-line tool speaks on its standard output"
)]

mod ci;
mod fuzz;
mod libraries;
mod miri;
mod report;
mod setup;
mod shell;
mod sim;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Plateau's build tool",
    disable_version_flag = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Installs what the tests need on a bare Debian machine; may be run again.
    Setup(setup::Arguments),
    /// Checks the rules of the source that a tool can hold.
    Tidy(tidy::Arguments),
    /// Runs everything that must pass before a change is merged.
    Ci(ci::Arguments),
    /// Compares the answers to SELECT statements with MariaDB's.
    Differential(lab::differential::Arguments),
    /// Plays random schedules of several sessions here and on MariaDB, and sorts the differences
    /// into classes.
    Schedules(lab::schedules::Arguments),
    /// Plays random programs of clients that share the gateway's connections, and compares each
    /// reply with what a private connection gives.
    Programs(lab::gateway::programs::Arguments),
    /// Plays random transactions of many sessions, kills the server between them, and looks for
    /// anomalies of isolation and lost commits.
    History(lab::history::Arguments),
    /// Compares speed and processor time with MariaDB in one interleaved run.
    Bench(lab::bench::Arguments),
    /// Compares commits with MariaDB's where many clients lock the same few rows.
    Contention(lab::contention::Arguments),
    /// Compares limits of transactions inside the engine: `auto`, fixed ones, and none.
    Admission(lab::bench::admission::Arguments),
    /// Measures how long one client among thousands waits, and checks the limits.
    Latency(lab::bench::latency::Arguments),
    /// Compares the processor time of a statement with that of an earlier build.
    Cost(lab::bench::cost::Arguments),
    /// Compares random changes of a table that is larger than the buffer pool with MariaDB's.
    Larger(lab::bench::larger::Arguments),
    /// Compares a durable change of one client with a durable write, and with MariaDB's.
    Single(lab::bench::single::Arguments),
    /// Measures what one open transaction costs the changes beside it, and what undo it keeps.
    Holdback(lab::bench::holdback::Arguments),
    /// Draws a recorded bench run as SVG. Without a run and a file, draws the README's picture, of
    /// the last run, and that of what the gateway costs.
    Draw(lab::bench::picture::Arguments),
    /// Runs the bench's load against a server that is already running.
    Drive(lab::drive::Arguments),
    /// Compares the processor time of forwarding packets with that of copying bytes.
    Forward(lab::forward::Arguments),
    /// Compares processor time and throughput of the gateway with HAProxy's.
    GatewayCost(lab::gateway::cost::Arguments),
    /// Measures what caches of results give and cost.
    GatewayCache(lab::gateway::cache::Arguments),
    /// Looks for old results in what caches tell, while many clients change the tables.
    GatewayStale(lab::gateway::stale::Arguments),
    /// Measures how soon a cache of results learns of a change past the gateway.
    GatewayFollow(lab::gateway::follow::Arguments),
    /// Compares the server that EXPLAIN ROUTE names with the one whose general log has the
    /// statement, for random sessions.
    GatewayExplain(lab::gateway::explain::Arguments),
    /// Measures what clients get whose sessions share few connections of the gateway.
    GatewaySharing(lab::gateway::sharing::Arguments),
    /// Measures what limits of connections cost where statements name one of many servers.
    GatewayServers(lab::gateway::servers::Arguments),
    /// Runs transactions over two servers of many, with few connections to each.
    GatewayPairs(lab::gateway::pairs::Arguments),
    /// Measures what thousands of idle clients of the gateway cost.
    GatewayIdle(lab::gateway::idle::Arguments),
    /// Measures how long other clients of the gateway wait while servers or clients misbehave.
    GatewayTroubles(lab::gateway::troubles::Arguments),
    /// Runs one of the proxies that `forward` compares.
    #[command(hide = true)]
    Proxy(lab::forward::proxy::Arguments),
    /// Runs the smoke suites of real clients.
    Smoke(lab::smoke::Arguments),
    /// Walks WordPress and Adminer page by page, and compares each page with MariaDB's.
    Pages(lab::pages::Arguments),
    /// Runs the protocol suites of others: mysql_client_test, go-sql-driver, mysqlclient.
    Suites(lab::suites::Arguments),
    /// Runs sysbench's scripts: no error, and sums that agree with what was acknowledged.
    Sysbench(lab::sysbench::Arguments),
    /// Compares TPC-C by go-tpc with MariaDB in one interleaved run.
    Tpcc(lab::tpcc::Arguments),
    /// Runs the fuzz targets: decoders, parser, recovery.
    Fuzz(fuzz::Arguments),
    /// Runs seeds of a simulation: crashes of the storage crates, the gateway's pool and router, or
    /// nodes of a group.
    Sim(sim::Arguments),
    /// Runs the tests of reads without a latch under Miri, which finds data races.
    Miri,
    /// Attacks the server with clients without privileges. Checks its memory limits, and how long
    /// another client waits.
    Hostile(lab::hostile::Arguments),
    /// Kills the server under write load, again and again: nothing acknowledged may be lost.
    Torture(lab::torture::Arguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    let shell = shell::Shell::at_repository_root()?;
    match arguments.command {
        Command::Setup(arguments) => setup::run(&shell, &arguments),
        Command::Tidy(arguments) => tidy::run(&shell, &arguments),
        Command::Ci(arguments) => ci::run(&shell, &arguments),
        Command::Differential(arguments) => lab::differential::run(&arguments),
        Command::Schedules(arguments) => optimized(|| lab::schedules::run_command(&arguments)),
        Command::Programs(arguments) => lab::gateway::programs::run(&arguments),
        Command::History(arguments) => lab::history::run(&arguments),
        Command::Bench(arguments) => optimized(|| lab::bench::run(&arguments)),
        Command::Contention(arguments) => optimized(|| lab::contention::run(&arguments)),
        Command::Admission(arguments) => optimized(|| lab::bench::admission::run(&arguments)),
        Command::Latency(arguments) => optimized(|| lab::bench::latency::run(&arguments)),
        Command::Cost(arguments) => optimized(|| lab::bench::cost::run(&arguments)),
        Command::Larger(arguments) => optimized(|| lab::bench::larger::run(&arguments)),
        Command::Single(arguments) => optimized(|| lab::bench::single::run(&arguments)),
        Command::Holdback(arguments) => optimized(|| lab::bench::holdback::run(&arguments)),
        Command::Draw(arguments) => draw(&arguments),
        Command::Drive(arguments) => optimized(|| lab::drive::run(&arguments)),
        Command::Forward(arguments) => optimized(|| lab::forward::run(&arguments)),
        Command::GatewayCost(arguments) => optimized(|| lab::gateway::cost::run(&arguments)),
        Command::GatewayCache(arguments) => optimized(|| lab::gateway::cache::run(&arguments)),
        Command::GatewayStale(arguments) => optimized(|| lab::gateway::stale::run(&arguments)),
        Command::GatewayFollow(arguments) => lab::gateway::follow::run(&arguments),
        Command::GatewayExplain(arguments) => lab::gateway::explain::run(&arguments),
        Command::GatewaySharing(arguments) => optimized(|| lab::gateway::sharing::run(&arguments)),
        Command::GatewayPairs(arguments) => optimized(|| lab::gateway::pairs::run(&arguments)),
        Command::GatewayServers(arguments) => optimized(|| lab::gateway::servers::run(&arguments)),
        Command::GatewayIdle(arguments) => optimized(|| lab::gateway::idle::run(&arguments)),
        Command::GatewayTroubles(arguments) => {
            optimized(|| lab::gateway::troubles::run(&arguments))
        }
        Command::Proxy(arguments) => lab::forward::proxy::run(&arguments),
        Command::Smoke(arguments) => lab::smoke::run(&arguments),
        Command::Pages(arguments) => lab::pages::run(&arguments),
        Command::Suites(arguments) => lab::suites::run(&arguments),
        Command::Sysbench(arguments) => lab::sysbench::run(&arguments),
        Command::Tpcc(arguments) => optimized(|| lab::tpcc::run(&arguments)),
        Command::Fuzz(arguments) => fuzz::run(&shell, &arguments),
        Command::Sim(arguments) => sim::run(&shell, &arguments),
        Command::Miri => miri::run(&shell),
        Command::Hostile(arguments) => optimized(|| lab::hostile::run(&arguments)),
        Command::Torture(arguments) => lab::torture::run(&arguments),
    }
}

/// Draws one recorded run, or the pictures of both pages.
fn draw(arguments: &lab::bench::picture::Arguments) -> anyhow::Result<()> {
    lab::bench::picture::run(arguments)?;
    if arguments.is_for_readme() {
        lab::gateway::cost::picture::redraw()?;
        lab::gateway::cache::picture::redraw()?;
    }
    Ok(())
}

/// Runs a measurement; a build without optimization runs an optimized one for it.
fn optimized(measure: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    if !cfg!(debug_assertions) {
        return measure();
    }
    let status = std::process::Command::new("cargo")
        .args(["run", "--release", "--quiet", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .status()?;
    anyhow::ensure!(status.success(), "ended with {status}");
    Ok(())
}
