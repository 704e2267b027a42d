//! kill -9 at random moments under write load, with an oracle of what was acknowledged.
//!
//! Each writer makes transactions numbered from 1. Transaction n of writer w adds the row (w, n) to
//! two tables and moves an amount between two accounts. The writer reports each acknowledgement to
//! the judge. After a random number of acknowledgements the judge kills the server, starts it again
//! and checks, for each writer:
//!
//! (I1) No acknowledged transaction is lost: its rows exist.
//! (I2) At most one more exists: the one whose acknowledgement the kill cut off.
//! (I3) No transaction is partial: both tables have the same rows, each with its transaction's
//!      text, read by each of their indexes, and the accounts still have their initial sum.
//!
//! `plateau check` recovers the directory itself, with settings of its own. So in odd rounds the
//! server does the recovery, then is stopped, orderly or by another kill, and checked; in even
//! rounds the check comes first.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, Result, bail, ensure};
use sync::atomic::{AtomicBool, Ordering};
use testkit::process::run as run_program;
use testkit::server::plateau_program;
use testkit::{Client, Login, Outcome, Server, ServerKind, Signal};

use crate::random::Random;
use crate::target::Target;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// How often the server is killed.
    #[arg(long, default_value_t = 200)]
    rounds: u64,
    #[arg(long, default_value_t = 8)]
    writers: u64,
    /// Chooses the moments and the rows.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Does not run `plateau check` after each kill.
    #[arg(long)]
    no_check: bool,
}

const ACCOUNTS: u64 = 100;
const BALANCE: u64 = 1000;

/// The `text` column of a row, computed from the other two: from nothing up to some 150 characters.
const TEXT: &str = "REPEAT(CONCAT(writer, '.', number, ';'), (writer * 7 + number) % 15)";

/// A round ends after at most this many acknowledgements: enough to pass a checkpoint now and then.
const ACKNOWLEDGED_MAX: u64 = 2000;

/// Deadlock and lock wait timeout: the transaction was rolled back and is tried again.
const RETRIED: [u16; 2] = [1213, 1205];

/// Number of the last acknowledged transaction of each writer.
type Acknowledged = BTreeMap<u64, u64>;

/// Runs the rounds; fails at the first broken invariant.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut server = arguments.target.launch().start()?;
    create_tables(&mut server.connect()?)?;
    let mut random = Random::new(arguments.seed);
    let mut state = Acknowledged::new();
    let (mut transactions, mut unanswered) = (0, 0);
    for round in 1..=arguments.rounds {
        let target = 1 + random.below(ACKNOWLEDGED_MAX);
        let acknowledged = write_until_killed(&mut server, arguments, &state, target, &mut random)?;
        let is_checked = server.kind() == ServerKind::Plateau && !arguments.no_check;
        let found = recover(&mut server, round, is_checked, &acknowledged)
            .with_context(|| format!("round {round}, seed {}", arguments.seed))?;
        let sum = |state: &Acknowledged| state.values().sum::<u64>();
        transactions = sum(&found);
        unanswered += transactions - sum(&acknowledged);
        state = found;
        if round % 10 == 0 || round == arguments.rounds {
            println!(
                "round {round}: {transactions} transactions kept, {unanswered} of them \
                      were durable but not answered yet when the server was killed"
            );
        }
    }
    server.stop()?;
    println!("{} rounds: nothing lost, nothing in part", arguments.rounds);
    ensure!(transactions > 0, "no transaction was acknowledged");
    Ok(())
}

/// Starts the killed server again and judges its contents; it is running afterwards.
fn recover(
    server: &mut Server,
    round: u64,
    is_checked: bool,
    acknowledged: &Acknowledged,
) -> Result<Acknowledged> {
    if is_checked && round.is_multiple_of(2) {
        check_data(server).context("check of what the kill left")?;
    }
    server.start_again().context("start after the kill")?;
    let found = judge(&mut server.connect()?, acknowledged)?;
    if is_checked && !round.is_multiple_of(2) {
        match round % 4 {
            1 => server.stop()?,
            _ => server.kill()?,
        }
        check_data(server).context("check behind the server's own recovery")?;
        server.start_again().context("start after the check")?;
    }
    Ok(found)
}

fn create_tables(client: &mut Client) -> Result<()> {
    client.run("CREATE DATABASE torture")?;
    client.run("USE torture")?;
    client.run("CREATE TABLE accounts (id INT NOT NULL PRIMARY KEY, balance BIGINT NOT NULL)")?;
    let rows: Vec<_> = (0..ACCOUNTS)
        .map(|id| format!("({id}, {BALANCE})"))
        .collect();
    client.run(&format!("INSERT INTO accounts VALUES {}", rows.join(", ")))?;
    for table in ["left_journal", "right_journal"] {
        client.run(&format!(
            "CREATE TABLE {table} (writer INT NOT NULL, number INT NOT NULL, text VARCHAR(200), \
             PRIMARY KEY (writer, number), KEY by_number (number, writer))"
        ))?;
    }
    Ok(())
}

/// Lets the writers continue from `state`, kills the server after `target` acknowledgements in
/// total, and returns what was acknowledged.
fn write_until_killed(
    server: &mut Server,
    arguments: &Arguments,
    state: &Acknowledged,
    target: u64,
    random: &mut Random,
) -> Result<Acknowledged> {
    let (sender, receiver) = channel();
    let port = server.port();
    let is_killed = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..arguments.writers)
            .map(|writer| {
                let mut writer = Writer {
                    writer,
                    number: state.get(&writer).copied().unwrap_or(0),
                    random: Random::new(random.next()),
                    sender: sender.clone(),
                };
                scope.spawn(move || writer.write(port, is_killed))
            })
            .collect();
        drop(sender);
        let mut acknowledged = state.clone();
        // If all writers ended early, their results say why.
        for (writer, number) in receiver.iter().take(stdx::to_usize(target)) {
            acknowledged.insert(writer, number);
        }
        is_killed.store(true, Ordering::SeqCst);
        let killed = kill(server);
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        killed?;
        for writer in ended {
            match writer {
                Ok(result) => result?,
                Err(_) => bail!("a writer panicked"),
            }
        }
        // Acknowledgements between the last count and the kill.
        take(&receiver, &mut acknowledged);
        Ok(acknowledged)
    })
}

/// Kills the server, which must still be running: one that ended by itself (by a failed assertion)
/// would recover like a killed one.
fn kill(server: &mut Server) -> Result<()> {
    let status = server.process().kill()?;
    ensure!(
        status.signal() == Some(Signal::KILL.as_raw()),
        "the server had ended before it was killed, with {status}:\n{}",
        server.log()
    );
    Ok(())
}

fn take(receiver: &Receiver<(u64, u64)>, acknowledged: &mut Acknowledged) {
    for (writer, number) in receiver.try_iter() {
        acknowledged.insert(writer, number);
    }
}

/// One client that writes until its connection breaks.
struct Writer {
    writer: u64,
    /// The number of the last acknowledged transaction.
    number: u64,
    random: Random,
    sender: Sender<(u64, u64)>,
}

impl Writer {
    /// Ends without an error when the connection breaks after the kill.
    fn write(&mut self, port: u16, is_killed: &AtomicBool) -> Result<()> {
        let broken = |error: anyhow::Error| match is_killed.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(error.context("a connection was lost before the kill")),
        };
        let login = Login {
            database: "torture".to_owned(),
            ..Login::root(port)
        };
        let mut client = match Client::connect(&login) {
            Ok(client) => client,
            Err(error) => return broken(error),
        };
        loop {
            let statements = self.next_transaction();
            match execute(&mut client, &statements)? {
                Ending::Acknowledged => {
                    self.number += 1;
                    // The judge takes all messages before it judges.
                    self.sender.send((self.writer, self.number)).ok();
                }
                Ending::RolledBack => {}
                Ending::Broken(error) => return broken(error),
            }
        }
    }

    fn next_transaction(&mut self) -> Vec<String> {
        let (writer, number) = (self.writer, self.number + 1);
        let from = self.random.below(ACCOUNTS);
        let to = self.random.below(ACCOUNTS);
        let amount = self.random.below(10);
        let text = TEXT.replace("writer", &writer.to_string());
        let text = text.replace("number", &number.to_string());
        vec![
            "BEGIN".to_owned(),
            format!("INSERT INTO left_journal VALUES ({writer}, {number}, {text})"),
            format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {from}"),
            format!("UPDATE accounts SET balance = balance + {amount} WHERE id = {to}"),
            format!("INSERT INTO right_journal VALUES ({writer}, {number}, {text})"),
            "COMMIT".to_owned(),
        ]
    }
}

enum Ending {
    Acknowledged,
    RolledBack,
    Broken(anyhow::Error),
}

fn execute(client: &mut Client, statements: &[String]) -> Result<Ending> {
    for statement in statements {
        match client.query(statement) {
            Ok(Outcome::Done(_)) => {}
            Ok(Outcome::Error(error)) if RETRIED.contains(&error.number) => {
                return Ok(match client.query("ROLLBACK") {
                    Ok(_) => Ending::RolledBack,
                    Err(error) => Ending::Broken(error),
                });
            }
            // The server may still send its shutdown error while it is being killed.
            Ok(Outcome::Error(error)) if error.number == 1053 => {
                return Ok(Ending::Broken(error.into()));
            }
            Ok(other) => bail!("{statement}: {other:?}"),
            Err(error) => return Ok(Ending::Broken(error)),
        }
    }
    Ok(Ending::Acknowledged)
}

/// Checks the invariants and returns what exists.
fn judge(client: &mut Client, acknowledged: &Acknowledged) -> Result<Acknowledged> {
    client.run("USE torture")?;
    let found = journal(client, "left_journal", "PRIMARY")?;
    let texts = contents(client, "left_journal", "PRIMARY")?;
    for (table, index) in [
        ("left_journal", "by_number"),
        ("right_journal", "PRIMARY"),
        ("right_journal", "by_number"),
    ] {
        let other = journal(client, table, index)?;
        ensure!(
            found == other,
            "(I3) {table} by {index} has {other:?}, not {found:?}"
        );
        let other = contents(client, table, index)?;
        ensure!(
            texts == other,
            "(I3) {table} by {index} has rows of {other:?}, not {texts:?}"
        );
    }
    for (writer, last) in acknowledged {
        let there = found.get(writer).copied().unwrap_or(0);
        ensure!(
            *last <= there,
            "(I1) writer {writer}: {last} acknowledged, {there} there"
        );
    }
    for (writer, there) in &found {
        let last = acknowledged.get(writer).copied().unwrap_or(0);
        ensure!(
            *there <= last + 1,
            "(I2) writer {writer}: {last} acknowledged, {there} there"
        );
    }
    let sum = client.value("SELECT CONCAT(COUNT(*), ' with ', SUM(balance)) FROM accounts")?;
    let expected = format!("{ACCOUNTS} with {}", ACCOUNTS * BALANCE);
    ensure!(
        sum.as_deref() == Some(&expected),
        "(I3) accounts sum to {sum:?}, not {expected}"
    );
    Ok(found)
}

/// The last transaction of each writer, by one index. There must be no gaps.
fn journal(client: &mut Client, table: &str, index: &str) -> Result<Acknowledged> {
    let rows = client.rows(&format!(
        "SELECT writer, COUNT(*), MAX(number) FROM {table} FORCE INDEX ({index}) GROUP BY writer"
    ))?;
    let mut last = Acknowledged::new();
    for row in rows {
        let numbers: Vec<u64> = row
            .iter()
            .map(|value| Ok(std::str::from_utf8(value.as_deref().unwrap_or(b"0"))?.parse()?))
            .collect::<Result<_>>()?;
        let [writer, count, number] = numbers[..] else {
            bail!("three columns")
        };
        ensure!(
            count == number,
            "(I1) {table} by {index}: {count} rows up to {number}"
        );
        last.insert(writer, number);
    }
    Ok(last)
}

/// A sum over all columns of each writer's rows, by one index; each row must have its text.
fn contents(client: &mut Client, table: &str, index: &str) -> Result<Vec<String>> {
    let rows = client.rows(&format!(
        "SELECT writer, SUM(CRC32(CONCAT_WS(',', writer, number, text))), \
         SUM(NOT (text <=> {TEXT})) FROM {table} FORCE INDEX ({index}) \
         GROUP BY writer ORDER BY writer"
    ))?;
    let mut sums = Vec::new();
    for row in rows {
        let text = |value: &Option<Vec<u8>>| {
            String::from_utf8_lossy(value.as_deref().unwrap_or(b"NULL")).into_owned()
        };
        let values: Vec<String> = row.iter().map(text).collect();
        let [writer, sum, wrong] = &values[..] else {
            bail!("three columns")
        };
        ensure!(
            wrong == "0",
            "(I3) {table} by {index}: {wrong} rows of writer {writer} have a wrong text"
        );
        sums.push(format!("{writer}: {sum}"));
    }
    Ok(sums)
}

/// `plateau check` finds no fault in what the kill left.
fn check_data(server: &Server) -> Result<()> {
    run_program(
        Command::new(plateau_program()?)
            .arg("check")
            .arg(server.data()),
    )
    .map(drop)
}
