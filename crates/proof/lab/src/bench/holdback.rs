//! What one open transaction costs those beside it, and how much undo it keeps.
//!
//! 64 clients change random rows. Beside them one session holds a transaction open: one that has
//! changed a row and reads nothing, or one with a snapshot. Beside a third server nothing is open.
//! MariaDB has the same three. All servers have the same load in turns of a second, one after the
//! other, and are paused meanwhile. So the machine's slow minutes affect all alike, and what an
//! open transaction costs in time is the ratio to the server without one.
//!
//! At the end the transaction ends, and the load continues: undo must return.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use testkit::{Client, Launch, Server, ServerKind};

use super::point::median;
use super::verdict::{Limits, Outcome, Verdict};
use crate::generator::{Address, Distribution, Generator, Protocol, Shape};
use crate::load;
use crate::target::MeasuredBuild;
use crate::target::reference;

/// With 60 seconds some seven minutes; the promise is about 600.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Seconds of load for each server while the transaction is open.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(10..))]
    seconds: u32,
    #[arg(long, default_value_t = 64)]
    clients: u32,
    #[arg(long, default_value_t = 50_000)]
    rows: u32,
    /// The pool of each server, in MiB.
    #[arg(long, default_value_t = 512)]
    pool: u32,
    #[command(flatten)]
    build: MeasuredBuild,
    #[command(flatten)]
    verdict: Limits,
}

/// The last part of the time must have this share of the first one's throughput, relative to the
/// server beside which nothing is open.
const LAST_SHARE_MIN: f64 = 0.97;
/// An open writer without a snapshot keeps at most this multiple of the undo without it.
const WRITER_UNDO_MAX: f64 = 1.1;
/// An open snapshot keeps for each change at most this multiple of MariaDB's bytes.
const SNAPSHOT_BYTES_MAX: f64 = 1.2;
/// After the end of the transaction at most this share of its undo is left.
const LEFT_MAX: f64 = 0.1;
/// First and last part of the time.
const PARTS: usize = 10;
/// A turn of one server, and its uncounted beginning.
const TURN: Duration = Duration::from_secs(1);
const SETTLE: Duration = Duration::from_millis(200);
/// Turns after the end of the transaction, at most.
const AFTER: u32 = 20;
/// Threads of the load.
const THREADS: u32 = 2;
/// Of Plateau's.
const PAGE_BYTES: u64 = 16384;

/// What is open beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Writer,
    Snapshot,
}

/// A server with its load and what is open beside it.
struct Side {
    open: Open,
    server: Server,
    root: Client,
    load: Generator,
    /// The session that holds the transaction open.
    holder: Option<Client>,
    /// Changes a second in each turn.
    rates: Vec<f64>,
    /// Changes since the transaction was opened.
    change_count: u64,
    /// Bytes of undo after each turn.
    undo: Vec<u64>,
    undo_before: u64,
}

/// Measures; fails if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = arguments.build.program()?;
    let mut sides = Vec::new();
    for open in [Open::Nothing, Open::Writer, Open::Snapshot] {
        for launch in [plateau(arguments, &program), mariadb(arguments)] {
            sides.push(Side::start(open, launch, arguments)?);
        }
    }
    for _ in 0..arguments.seconds {
        for side in &mut sides {
            side.take_turn()?;
        }
    }
    for side in &sides {
        println!("{}", side.line());
    }
    let mut verdicts = judge(&sides)?;
    for side in &mut sides {
        if side.kind() == ServerKind::Plateau && side.open == Open::Snapshot {
            verdicts.push(side.undo_returns()?);
        }
    }
    arguments.verdict.judge(&verdicts)
}

fn plateau(arguments: &Arguments, program: &Path) -> Launch {
    let own = [
        format!("buffer_pool_size={}M", arguments.pool),
        String::from("log_size=512M"),
        String::from("flush_log_at_trx_commit=1"),
    ];
    Launch::plateau(program).with_settings(own.iter().chain(&arguments.build.settings))
}

/// Its undo is in its system tablespace, which grows by a mebibyte at a time here.
fn mariadb(arguments: &Arguments) -> Launch {
    reference()
        .with(format!("--innodb-buffer-pool-size={}M", arguments.pool))
        .with("--innodb-log-file-size=512M")
        .with("--innodb-flush-log-at-trx-commit=1")
        .with("--innodb-autoextend-increment=1")
        .with("--skip-log-bin")
}

impl Side {
    /// Starts a server with its table and its load, opens the transaction, and pauses the server.
    fn start(open: Open, launch: Launch, arguments: &Arguments) -> Result<Side> {
        let mut server = launch.start()?;
        load::fill(server.port(), "oltp_read_write", (1, arguments.rows))?;
        let mut root = server.connect()?;
        root.run("CREATE TABLE sbtest.other (id INT PRIMARY KEY, n INT NOT NULL)")?;
        root.run("INSERT INTO sbtest.other VALUES (1, 0)")?;
        let mut load = Generator::connect(&Shape {
            address: Address::Tcp(server.port()),
            workload: String::from("update_non_index"),
            client_count: arguments.clients,
            table_count: 1,
            row_count: arguments.rows,
            distribution: Distribution::Uniform,
            protocol: Protocol::Prepared,
            account_count: 0,
            settings: &[],
            failures: &[],
            thread_count: THREADS,
            seed: u64::from(arguments.clients),
        })?;
        load.warm(TURN)?;
        let holder = open.begin(&server)?;
        let undo_before = undo_bytes(&server, &mut root)?;
        server.process().pause()?;
        Ok(Side {
            open,
            server,
            root,
            load,
            holder,
            rates: Vec::new(),
            change_count: 0,
            undo: Vec::new(),
            undo_before,
        })
    }

    fn kind(&self) -> ServerKind {
        self.server.kind()
    }

    fn take_turn(&mut self) -> Result<()> {
        self.server.process().resume()?;
        // Counted as well, because its changes leave undo.
        let settled = self.load.run(SETTLE)?;
        let counted = self.load.run(TURN)?;
        self.undo.push(undo_bytes(&self.server, &mut self.root)?);
        self.server.process().pause()?;
        self.rates.push(counted.statements_per_second());
        self.change_count += settled.statement_count + counted.statement_count;
        Ok(())
    }

    /// The median rate of the first part of the time, and of the last.
    fn first_and_last(&self) -> (f64, f64) {
        let length = (self.rates.len() / PARTS).max(3).min(self.rates.len());
        let (first, last) = (
            &self.rates[..length],
            &self.rates[self.rates.len() - length..],
        );
        (median(first.iter().copied()), median(last.iter().copied()))
    }

    fn last_share(&self) -> f64 {
        let (first, last) = self.first_and_last();
        last / first.max(1e-9)
    }

    /// The median of the second half of the time.
    fn undo_usual(&self) -> f64 {
        let half = &self.undo[self.undo.len() / 2..];
        median(half.iter().map(|&bytes| stdx::u64_to_f64(bytes)))
    }

    /// Undo that has come, for each change.
    fn bytes_a_change(&self) -> f64 {
        let last = self.undo.last().copied().unwrap_or(self.undo_before);
        let grown = last.saturating_sub(self.undo_before);
        stdx::u64_to_f64(grown) / stdx::u64_to_f64(self.change_count.max(1))
    }

    fn line(&self) -> String {
        let (first, last) = self.first_and_last();
        format!(
            "{:<8} {:<8} {first:>7.0} changes/s at first, {last:>7.0} at last; undo {:>7.2} MiB \
             usually, {:>6.1} bytes a change",
            match self.kind() {
                ServerKind::Plateau => "plateau",
                ServerKind::MariaDb => "mariadb",
            },
            self.open.told(),
            self.undo_usual() / f64::from(1 << 20),
            self.bytes_a_change()
        )
    }

    /// Ends the transaction and runs the load until its undo has returned.
    fn undo_returns(&mut self) -> Result<Verdict> {
        let most = self.undo.last().copied().unwrap_or(0);
        let files_before = undo_file_bytes(&self.server)?;
        self.server.process().resume()?;
        if let Some(mut holder) = self.holder.take() {
            holder.run("COMMIT")?;
        }
        let (mut left, mut turns) = (1.0, 0);
        while LEFT_MAX < left && turns < AFTER {
            self.load.run_uncounted(TURN)?;
            turns += 1;
            let undo = undo_bytes(&self.server, &mut self.root)?;
            left = stdx::u64_to_f64(undo) / stdx::u64_to_f64(most.max(1));
        }
        let grown = undo_file_bytes(&self.server)?.saturating_sub(files_before);
        self.server.process().pause()?;
        Ok(Verdict {
            what: String::from("undo left after the end of the snapshot"),
            measured: format!("{left:.2} after {turns} s, its files grew by {grown} bytes"),
            limit: format!("<= {LEFT_MAX}"),
            outcome: Outcome::of(left <= LEFT_MAX),
        })
    }
}

impl Open {
    fn told(self) -> &'static str {
        match self {
            Open::Nothing => "nothing",
            Open::Writer => "writer",
            Open::Snapshot => "snapshot",
        }
    }

    /// Opens the transaction.
    fn begin(self, server: &Server) -> Result<Option<Client>> {
        let statement = match self {
            Open::Nothing => return Ok(None),
            Open::Writer => "UPDATE sbtest.other SET n = n + 1 WHERE id = 1",
            Open::Snapshot => "SELECT COUNT(*) FROM sbtest.other",
        };
        let mut holder = server.connect()?;
        holder.run("BEGIN")?;
        holder.query(statement)?;
        Ok(Some(holder))
    }
}

/// Undo in use; of MariaDB the file that it is in.
fn undo_bytes(server: &Server, root: &mut Client) -> Result<u64> {
    match server.kind() {
        ServerKind::Plateau => Ok(root.status("Undo_pages")? * PAGE_BYTES),
        ServerKind::MariaDb => undo_file_bytes(server),
    }
}

/// The files that undo is in.
fn undo_file_bytes(server: &Server) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(server.data())? {
        let entry = entry?;
        let name = entry.file_name();
        let is_undo = match server.kind() {
            ServerKind::Plateau => is_undo_space(&name.to_string_lossy()),
            ServerKind::MariaDb => name == "ibdata1",
        };
        if is_undo {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}

/// Spaces 1 to 255 are the workers' segments of undo.
fn is_undo_space(name: &str) -> bool {
    let number = name
        .strip_prefix("space_")
        .and_then(|name| name.strip_suffix(".pdb"));
    let number = number.and_then(|number| number.parse::<u32>().ok());
    number.is_some_and(|number| (1..256).contains(&number))
}

fn judge(sides: &[Side]) -> Result<Vec<Verdict>> {
    let of = |kind, open| {
        let mut found = sides.iter().filter(|side| side.kind() == kind);
        found
            .find(|side| side.open == open)
            .context("each kind has its server")
    };
    let ours = |open| of(ServerKind::Plateau, open);
    let alone = ours(Open::Nothing)?;
    let mut verdicts = Vec::new();
    for open in [Open::Writer, Open::Snapshot] {
        let share = ours(open)?.last_share() / alone.last_share().max(1e-9);
        verdicts.push(Verdict {
            what: format!("{}: last part's throughput, of the first's", open.told()),
            measured: format!("{share:.3}"),
            limit: format!(">= {LAST_SHARE_MIN}"),
            outcome: Outcome::of(LAST_SHARE_MIN <= share),
        });
    }
    let kept = ours(Open::Writer)?.undo_usual() / alone.undo_usual().max(1.0);
    verdicts.push(Verdict {
        what: String::from("writer: undo, of that beside nothing"),
        measured: format!("{kept:.2}"),
        limit: format!("<= {WRITER_UNDO_MAX}"),
        outcome: Outcome::of(kept <= WRITER_UNDO_MAX),
    });
    let theirs = of(ServerKind::MariaDb, Open::Snapshot)?.bytes_a_change();
    let bytes = ours(Open::Snapshot)?.bytes_a_change() / theirs.max(1e-9);
    verdicts.push(Verdict {
        what: String::from("snapshot: bytes of undo a change, of MariaDB's"),
        measured: format!("{bytes:.2}"),
        limit: format!("<= {SNAPSHOT_BYTES_MAX}"),
        outcome: Outcome::of(bytes <= SNAPSHOT_BYTES_MAX),
    });
    Ok(verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_is_known_by_its_file() {
        assert!(is_undo_space("space_1.pdb") && is_undo_space("space_255.pdb"));
        for name in ["space_0.pdb", "space_1024.pdb", "space_x.pdb", "ibdata1"] {
            assert!(!is_undo_space(name), "{name}");
        }
    }
}
