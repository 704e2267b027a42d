//! One client: what a durable change takes beyond a read, beside what the disk takes alone.
//!
//! A commit of one client cannot be quicker than one durable write. So the median of an UPDATE,
//! less that of a SELECT of one row by its key, is compared with the median of a write of 4 KiB to
//! a file that is open with `O_DSYNC`, in the same file system. The file has its blocks before, as
//! a log has them. Throughput of the same UPDATE is compared with MariaDB's.
//!
//! The disk, both statements, and MariaDB take turns, so that a slow moment affects all of them.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;

use anyhow::{Context, Result};
use env::Clock as _;
use env::linux::SystemClock;
use testkit::folder::Folder;
use testkit::{Client, Launch, Server};

use super::point::median;
use super::verdict::{Limits, Outcome, Verdict};
use crate::load;
use crate::random::Random;
use crate::target::MeasuredBuild;
use crate::target::reference;

/// About a minute with what stands here as defaults.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Turns of each.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// Statements, or writes, of a turn.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..))]
    statements: u32,
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    #[command(flatten)]
    build: MeasuredBuild,
    #[command(flatten)]
    verdict: Limits,
}

/// An UPDATE takes at most this multiple of a durable write longer than a SELECT.
const WRITES_MAX: f64 = 1.15;
/// Of MariaDB's changes a second.
const SHARE_MIN: f64 = 1.0;
/// A write, and how many of them the file has room for.
const WRITE_BYTES: u32 = 4096;
const WRITE_COUNT: u32 = 4096;

/// Microseconds that each call took.
#[derive(Debug, Default)]
struct Times(Vec<f64>);

/// A server with its client.
struct Side {
    _server: Server,
    client: Client,
    selects: Times,
    updates: Times,
}

/// A file that is written durably.
struct Disk {
    _folder: Folder,
    file: File,
    next: u32,
    writes: Times,
}

/// Measures; fails if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let program = arguments.build.program()?;
    let plateau = Launch::plateau(program)
        .with_settings(["flush_log_at_trx_commit=1"])
        .with_settings(&arguments.build.settings);
    let mariadb = reference()
        .with("--innodb-flush-log-at-trx-commit=1")
        .with("--skip-log-bin");
    let mut disk = Disk::new()?;
    let mut sides = [
        Side::start(plateau, arguments)?,
        Side::start(mariadb, arguments)?,
    ];
    let mut random = Random::new(1);
    for _ in 0..arguments.rounds {
        disk.take_turn(arguments.statements)?;
        for side in &mut sides {
            side.take_turn(arguments, &mut random)?;
        }
    }
    println!(
        "disk     write of {WRITE_BYTES} bytes {}",
        disk.writes.line()
    );
    for (name, side) in ["plateau", "mariadb"].into_iter().zip(&sides) {
        println!("{name:<8} select {}", side.selects.line());
        println!("{name:<8} update {}", side.updates.line());
    }
    let verdicts = judge(&disk, &sides);
    arguments.verdict.judge(&verdicts)
}

fn judge(disk: &Disk, [plateau, mariadb]: &[Side; 2]) -> Vec<Verdict> {
    let beyond = plateau.updates.median() - plateau.selects.median();
    let writes = beyond / disk.writes.median();
    let share = plateau.updates.per_second() / mariadb.updates.per_second();
    vec![
        Verdict {
            what: String::from("an update less a select, of a durable write"),
            measured: format!("{writes:.3}"),
            limit: format!("<= {WRITES_MAX}"),
            outcome: Outcome::of(writes <= WRITES_MAX),
        },
        Verdict {
            what: String::from("updates a second, of MariaDB's"),
            measured: format!("{share:.2}"),
            limit: format!(">= {SHARE_MIN}"),
            outcome: Outcome::of(SHARE_MIN <= share),
        },
    ]
}

impl Times {
    /// Adds what a call takes.
    fn add<T>(&mut self, call: impl FnOnce() -> Result<T>) -> Result<()> {
        let begun_at = SystemClock.now();
        call()?;
        let took: Duration = SystemClock.now().since(begun_at);
        self.0.push(took.as_secs_f64() * 1e6);
        Ok(())
    }

    fn median(&self) -> f64 {
        median(self.0.iter().copied())
    }

    fn per_second(&self) -> f64 {
        let count = stdx::u64_to_f64(stdx::to_u64(self.0.len()));
        count * 1e6 / self.0.iter().sum::<f64>().max(1.0)
    }

    fn line(&self) -> String {
        format!(
            "{:>8.1} us in the median, {:>8.0} a second",
            self.median(),
            self.per_second()
        )
    }
}

impl Disk {
    fn new() -> Result<Disk> {
        let folder = Folder::new("durable-writes")?;
        let path = folder.path().join("writes");
        let flags = rustix::fs::OFlags::DSYNC.bits();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = options
            .custom_flags(flags.cast_signed())
            .open(&path)
            .with_context(|| path.display().to_string())?;
        let disk = Disk {
            _folder: folder,
            file,
            next: 0,
            writes: Times::default(),
        };
        for place in 0..WRITE_COUNT {
            disk.write(place)?;
        }
        Ok(disk)
    }

    fn write(&self, place: u32) -> Result<()> {
        let bytes = [1; WRITE_BYTES as usize];
        let offset = u64::from(place) * u64::from(WRITE_BYTES);
        Ok(self.file.write_all_at(&bytes, offset)?)
    }

    fn take_turn(&mut self, count: u32) -> Result<()> {
        let mut times = std::mem::take(&mut self.writes);
        for _ in 0..count {
            times.add(|| self.write(self.next))?;
            self.next = (self.next + 1) % WRITE_COUNT;
        }
        self.writes = times;
        Ok(())
    }
}

impl Side {
    fn start(launch: Launch, arguments: &Arguments) -> Result<Side> {
        let server = launch.start()?;
        load::fill(server.port(), "oltp_read_write", (1, arguments.rows))?;
        let mut client = server.connect()?;
        client.run("USE sbtest")?;
        Ok(Side {
            _server: server,
            client,
            selects: Times::default(),
            updates: Times::default(),
        })
    }

    fn take_turn(&mut self, arguments: &Arguments, random: &mut Random) -> Result<()> {
        let Side {
            client,
            selects,
            updates,
            ..
        } = self;
        for _ in 0..arguments.statements {
            let id = 1 + random.below(arguments.rows.into());
            let select = format!("SELECT c FROM sbtest1 WHERE id = {id}");
            selects.add(|| client.value(&select))?;
        }
        for _ in 0..arguments.statements {
            let (id, number) = (
                1 + random.below(arguments.rows.into()),
                random.below(1 << 30),
            );
            let update = format!("UPDATE sbtest1 SET c = '{number:0>119}' WHERE id = {id}");
            updates.add(|| client.run(&update))?;
        }
        Ok(())
    }
}
