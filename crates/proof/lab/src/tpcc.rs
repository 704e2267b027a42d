//! TPC-C by `go-tpc`, Plateau and MariaDB in turns in one run: transactions, the time of new
//! orders, processor time of server and client, errors, the standard's conditions, and the time of
//! `go-tpc`'s checks.
//!
//! Each round runs the load against one server and then against the other, so that both have the
//! same conditions. The medians of the rounds are compared with the limits. The twelve consistency
//! conditions of the standard are checked by queries of our own (`conditions`): after the load,
//! after each run, and after a run in whose middle the server is killed. The checks of `go-tpc`
//! come once, at the end. MariaDB needs many minutes for one of them, so its checks are ended as
//! soon as they have taken longer than Plateau's. `cargo xtask setup` builds the version of
//! `go-tpc` that `suites/go-tpc/go.mod` names.

pub(crate) mod conditions;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use env::Clock as _;
use env::linux::SystemClock;
use testkit::folder::target_directory;
use testkit::process::cpu_us;
use testkit::{Client, Launch, Login, Server};

use crate::target::MeasuredBuild;
use crate::target::reference;

/// Connections that both servers allow: more than any number of threads that fits on a machine.
const CONNECTIONS_MAX: u32 = 20_000;

/// Prepared statements that both servers allow: each thread of the client has some 30.
const STATEMENTS_MAX: u32 = 1_000_000;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(long, default_value_t = 4)]
    warehouses: u32,
    /// Numbers of threads, each with runs of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64])]
    threads: Vec<u32>,
    /// Length of each run.
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// Runs of each server and number of threads; their median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Of both servers.
    #[arg(long, default_value = "1G")]
    buffer_pool_size: String,
    #[command(flatten)]
    build: MeasuredBuild,
    /// Reports the numbers, and fails only on errors.
    #[arg(long)]
    no_limits: bool,
}

/// At least this multiple of MariaDB's transactions.
const RATE_MIN: f64 = 1.4;
/// At most this fraction of MariaDB's processor time for a transaction.
const CPU_MAX: f64 = 0.5;
/// At most this multiple of the time that all but one of a thousand of MariaDB's new orders take.
const P999_MAX: f64 = 1.0;
/// At most this multiple of MariaDB's time for the checks.
const CHECK_MAX: f64 = 2.0;
/// The exit status of `timeout` if it has ended a program.
const TIMED_OUT: i32 = 124;
/// New orders of a run in whose middle the server is killed.
const KILL_ORDERS: u64 = 1000;
/// A server that makes fewer orders in this time hangs.
const KILL_LIMIT: Duration = Duration::from_secs(120);
/// Deadlock and lock wait timeout: a TPC-C client tries again.
const ALLOWED_ERRORS: [u16; 2] = [1213, 1205];

/// A call of `go-tpc`.
pub(crate) struct Call<'a> {
    /// `prepare`, `run` or `check`.
    pub(crate) action: &'a str,
    pub(crate) user: &'a str,
    pub(crate) port: u16,
    pub(crate) warehouses: u32,
    pub(crate) threads: u32,
}

impl Call<'_> {
    /// Gives a command what each call needs.
    pub(crate) fn arguments(&self, command: &mut Command) {
        command
            .args(["tpcc", self.action])
            .args(["-H", "127.0.0.1", "-D", "tpcc", "-U", self.user])
            .args(["-P", &self.port.to_string()])
            .args(["--warehouses", &self.warehouses.to_string()])
            .args(["-T", &self.threads.to_string()])
            // Its default is TLS if the server offers it. Plateau always does, and MariaDB only if
            // it has a certificate: without this, one server would encrypt and the other not.
            .args(["--conn-params", "tls=false"]);
    }
}

/// A server under load.
struct Contestant {
    name: &'static str,
    server: Server,
}

/// The results of one run.
#[derive(Debug, Clone, Default)]
struct Sample {
    /// New orders a minute.
    tpm_c: f64,
    new_order: Latency,
    /// Of the server, for each transaction of any kind.
    server_us: f64,
    /// Of `go-tpc`.
    client_us: f64,
    /// By error number.
    errors: BTreeMap<u16, u64>,
}

/// Runs the comparison; fails if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = arguments.build.program()?;
    let mut contestants = [
        Contestant::start("plateau", plateau(arguments, &program))?,
        Contestant::start("mariadb", mariadb(arguments))?,
    ];
    for contestant in &mut contestants {
        let begun_at = SystemClock.now();
        contestant.tpc(arguments, "prepare", 4, &[String::from("--no-check")])?;
        println!(
            "{:<8} prepare {:.1} s",
            contestant.name,
            SystemClock.now().since(begun_at).as_secs_f64()
        );
        contestant.check_conditions("after the load")?;
    }
    let mut failures = Vec::new();
    for &threads in &arguments.threads {
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..arguments.rounds {
            for (contestant, samples) in contestants.iter_mut().zip(&mut samples) {
                let sample = contestant.load(arguments, threads)?;
                println!("{}", sample.line(contestant.name, threads));
                failures.extend(sample.refused(contestant.name));
                samples.push(sample);
                contestant.check_conditions("after a run")?;
            }
        }
        let [ours, theirs] = samples;
        failures.extend(judge(&ours, &theirs, threads));
    }
    for contestant in &mut contestants {
        contestant.kill_under_load(arguments)?;
        contestant.check_conditions("after kill -9 in a run")?;
    }
    let [ours, theirs] = &contestants;
    failures.extend(compare_checks(arguments, ours, theirs)?);
    if arguments.no_limits {
        failures.retain(|failure| failure.contains("error"));
    }
    ensure!(failures.is_empty(), "missed: {}", failures.join("; "));
    Ok(())
}

/// Runs the checks of both servers; says whether ours take too long.
fn compare_checks(
    arguments: &Arguments,
    ours: &Contestant,
    theirs: &Contestant,
) -> Result<Option<String>> {
    let begun_at = SystemClock.now();
    ours.tpc(arguments, "check", 1, &[])?;
    let ours_s = SystemClock.now().since(begun_at).as_secs_f64();
    println!("{:<8} check {ours_s:.1} s", ours.name);
    let most_s = ours_s.ceil().max(1.0);
    let begun_at = SystemClock.now();
    let mut command = Command::new("timeout");
    command.arg(most_s.to_string()).arg(go_tpc()?);
    theirs.arguments(&mut command, arguments, "check", 1);
    let output = command.stdin(Stdio::null()).output()?;
    let theirs_s = SystemClock.now().since(begun_at).as_secs_f64();
    if output.status.code() == Some(TIMED_OUT) {
        println!("{:<8} check more than {most_s:.0} s", theirs.name);
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{} fails its check: {said}",
        theirs.name
    );
    println!("{:<8} check {theirs_s:.1} s", theirs.name);
    Ok((CHECK_MAX * theirs_s < ours_s)
        .then(|| format!("check takes {ours_s:.1} s, MariaDB {theirs_s:.1}")))
}

/// Where `cargo xtask setup` puts the client.
pub(crate) fn go_tpc() -> Result<PathBuf> {
    let program = target_directory().join("clients/go-tpc/go-tpc");
    ensure!(program.exists(), "no go-tpc: run `cargo xtask setup` first");
    Ok(program)
}

fn plateau(arguments: &Arguments, program: &Path) -> Launch {
    let own = [
        format!("buffer_pool_size={}", arguments.buffer_pool_size),
        String::from("log_size=1G"),
        String::from("flush_log_at_trx_commit=1"),
        format!("max_connections={CONNECTIONS_MAX}"),
        format!("max_prepared_stmt_count={STATEMENTS_MAX}"),
    ];
    Launch::plateau(program).with_settings(own.iter().chain(&arguments.build.settings))
}

fn mariadb(arguments: &Arguments) -> Launch {
    reference()
        .with(format!(
            "--innodb-buffer-pool-size={}",
            arguments.buffer_pool_size
        ))
        .with("--innodb-log-file-size=1G")
        .with("--innodb-flush-log-at-trx-commit=1")
        .with(format!("--max-connections={CONNECTIONS_MAX}"))
        .with(format!("--max-prepared-stmt-count={STATEMENTS_MAX}"))
        .with("--skip-log-bin")
}

impl Contestant {
    fn start(name: &'static str, launch: Launch) -> Result<Self> {
        let server = launch.start()?;
        let mut client = Client::connect(&Login::root(server.port()))?;
        client.run("CREATE DATABASE tpcc")?;
        Ok(Self { name, server })
    }

    /// Runs `go-tpc`. Returns its output, and its processor time.
    fn tpc(
        &self,
        arguments: &Arguments,
        action: &str,
        threads: u32,
        more: &[String],
    ) -> Result<(String, u64)> {
        let mut command = Command::new(go_tpc()?);
        self.arguments(&mut command, arguments, action, threads);
        let mut child = command
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("cannot start go-tpc")?;
        let mut said = String::new();
        let mut output = child.stdout.take().context("its output is a pipe")?;
        output.read_to_string(&mut said)?;
        // The output ends with the process; until it is waited for, its times can be read.
        let client_us = cpu_us(child.id())?;
        let status = child.wait()?;
        ensure!(
            status.success(),
            "go-tpc {action} ended with {status}:\n{said}"
        );
        Ok((said, client_us))
    }

    /// Gives a command what each call of `go-tpc` needs.
    fn arguments(&self, command: &mut Command, arguments: &Arguments, action: &str, threads: u32) {
        let call = Call {
            action,
            user: "root",
            port: self.server.port(),
            warehouses: arguments.warehouses,
            threads,
        };
        call.arguments(command);
    }

    /// Checks the conditions of the standard, and says how long that took.
    fn check_conditions(&self, moment: &str) -> Result<()> {
        let seconds = conditions::check(&mut self.connect()?, moment).context(self.name)?;
        println!("{:<8} conditions hold {moment}, {seconds:.1} s", self.name);
        Ok(())
    }

    fn connect(&self) -> Result<Client> {
        Client::connect(&Login {
            database: String::from("tpcc"),
            ..Login::root(self.server.port())
        })
    }

    /// Kills the server as soon as a run has made some orders, and starts it again.
    fn kill_under_load(&mut self, arguments: &Arguments) -> Result<()> {
        let mut client = self.connect()?;
        let mut orders = || -> Result<u64> {
            let sum = client.value("SELECT SUM(d_next_o_id) FROM district")?;
            Ok(sum.context("there are districts")?.parse()?)
        };
        let before = orders()?;
        let mut command = Command::new(go_tpc()?);
        let threads = arguments.threads.first().copied().unwrap_or(1);
        self.arguments(&mut command, arguments, "run", threads);
        let mut load = command
            .args(["--time", &format!("{}s", KILL_LIMIT.as_secs())])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start go-tpc")?;
        let begun_at = SystemClock.now();
        let made = loop {
            let made = orders().map(|now| now - before);
            let is_late = KILL_LIMIT <= SystemClock.now().since(begun_at);
            if is_late || !matches!(made, Ok(..KILL_ORDERS)) {
                break made;
            }
        };
        let killed = self.server.kill();
        load.kill()?;
        load.wait()?;
        killed?;
        ensure!(KILL_ORDERS <= made?, "no load in {KILL_LIMIT:?}");
        self.server.start_again().context("start after the kill")
    }

    fn load(&mut self, arguments: &Arguments, threads: u32) -> Result<Sample> {
        let before = self.server.process().cpu_us()?;
        let length = [
            String::from("--time"),
            format!("{}s", arguments.seconds),
            // A deadlock ends the transaction, not the thread.
            String::from("--ignore-error"),
        ];
        let (said, client_us) = self.tpc(arguments, "run", threads, &length)?;
        let server_us = self.server.process().cpu_us()? - before;
        let told = Told::of(&said);
        ensure!(
            0.0 < told.tpm_c,
            "no new order in {} s:\n{said}",
            arguments.seconds
        );
        let count = stdx::u64_to_f64(told.transaction_count.max(1));
        Ok(Sample {
            tpm_c: told.tpm_c,
            new_order: told.new_order,
            server_us: stdx::u64_to_f64(server_us) / count,
            client_us: stdx::u64_to_f64(client_us) / count,
            errors: told.errors,
        })
    }
}

impl Sample {
    fn line(&self, name: &str, threads: u32) -> String {
        let errors: Vec<String> = self
            .errors
            .iter()
            .map(|(it, count)| format!("{count} x {it}"))
            .collect();
        format!(
            "{name:<8} {threads:>4} threads {:>8.0} tpmC  p95 {:>6.0} ms  p99.9 {:>6.0} ms  \
             server {:>6.0} us  client {:>6.0} us  errors: {}",
            self.tpm_c,
            self.new_order.p95_ms,
            self.new_order.p999_ms,
            self.server_us,
            self.client_us,
            if errors.is_empty() {
                String::from("none")
            } else {
                errors.join(", ")
            },
        )
    }

    /// Errors that no client should get.
    fn refused(&self, name: &str) -> Option<String> {
        let mut numbers = self.errors.keys();
        let number = numbers.find(|number| !ALLOWED_ERRORS.contains(number))?;
        Some(format!("{name} gave error {number}"))
    }
}

/// The limits that the medians miss.
fn judge(ours: &[Sample], theirs: &[Sample], threads: u32) -> Vec<String> {
    let ratio = |of: fn(&Sample) -> f64| median(ours, of) / median(theirs, of);
    let (rate, cpu) = (ratio(|it| it.tpm_c), ratio(|it| it.server_us));
    let long = ratio(|it| it.new_order.p999_ms);
    println!(
        "{threads} threads: {rate:.2} of MariaDB's tpmC, {cpu:.2} of its server CPU a transaction, \
         {long:.2} of its 99.9th percentile"
    );
    let mut failures = Vec::new();
    if rate < RATE_MIN {
        failures.push(format!(
            "{threads} threads: {rate:.2} of MariaDB's tpmC, not {RATE_MIN}"
        ));
    }
    if CPU_MAX < cpu {
        failures.push(format!(
            "{threads} threads: {cpu:.2} of MariaDB's CPU, not {CPU_MAX}"
        ));
    }
    if P999_MAX < long {
        failures.push(format!(
            "{threads} threads: {long:.2} of MariaDB's 99.9th percentile, not {P999_MAX}"
        ));
    }
    failures
}

fn median(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How long transactions of one kind take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Latency {
    p95_ms: f64,
    p999_ms: f64,
}

impl Latency {
    /// From a line of the summary.
    fn of(line: &str) -> Self {
        let number = |name| between(line, name, &[','])?.parse().ok();
        Self {
            p95_ms: number(" 95th(ms): ").unwrap_or(0.0),
            p999_ms: number(" 99.9th(ms): ").unwrap_or(0.0),
        }
    }
}

/// The summary of `go-tpc run`.
#[derive(Debug, Default, PartialEq)]
struct Told {
    tpm_c: f64,
    new_order: Latency,
    transaction_count: u64,
    errors: BTreeMap<u16, u64>,
}

impl Told {
    fn of(said: &str) -> Self {
        let mut told = Self::default();
        for line in said.lines() {
            if let Some(number) = between(line, "Error ", &[' ', ':'])
                && let Ok(number) = number.parse()
            {
                *told.errors.entry(number).or_default() += 1;
            } else if line.starts_with("[Summary]") && !line.contains("_ERR") {
                let count =
                    between(line, "Count: ", &[',']).and_then(|count| count.parse::<u64>().ok());
                told.transaction_count += count.unwrap_or(0);
                if line.contains("] NEW_ORDER ") {
                    told.new_order = Latency::of(line);
                }
            } else if line.starts_with("tpmC: ") {
                let rate = between(line, "tpmC: ", &[',']).and_then(|rate| rate.parse().ok());
                told.tpm_c = rate.unwrap_or(0.0);
            }
        }
        told
    }
}

/// The text after a word, up to one of these characters.
fn between<'t>(line: &'t str, before: &str, ends: &[char]) -> Option<&'t str> {
    let (_, rest) = line.split_once(before)?;
    rest.split(ends).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let said = "[Current] NEW_ORDER - Takes(s): 9.9, Count: 7, TPM: 42.0\n\
                    execute run failed, err exec: Error 1213 (40001): Deadlock found\n\
                    execute run failed, err exec: Error 1205: Lock wait timeout\n\
                    Finished\n\
                    [Summary] DELIVERY - Takes(s): 59.1, Count: 12, TPM: 12.2, Sum(ms): 1.0\n\
                    [Summary] NEW_ORDER - Takes(s): 59.9, Count: 130, TPM: 130.1, Sum(ms): 1.0, \
                    Avg(ms): 14.7, 50th(ms): 13.1, 90th(ms): 22.0, 95th(ms): 26.2, \
                    99th(ms): 44.0, 99.9th(ms): 58.7, Max(ms): 75.5\n\
                    [Summary] NEW_ORDER_ERR - Takes(s): 59.9, Count: 2, TPM: 2.0, Sum(ms): 1.0\n\
                    tpmC: 130.1, tpmTotal: 142.3, efficiency: 1.0%\n";
        let told = Told {
            tpm_c: 130.1,
            new_order: Latency {
                p95_ms: 26.2,
                p999_ms: 58.7,
            },
            transaction_count: 142,
            errors: BTreeMap::from([(1205, 1), (1213, 1)]),
        };
        assert_eq!(Told::of(said), told);
        assert_eq!(Told::of(""), Told::default());
    }
}
