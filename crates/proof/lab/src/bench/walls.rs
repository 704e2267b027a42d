//! `bench walls`: what each of six walls of older engines would cost here.
//!
//! Published work on MySQL and MariaDB took these walls down one by one: one latch for all locks,
//! one for the log, lists of active transactions that each view copies, a latch at the open and the
//! close of a view, as many transactions inside as there are clients, and a thread that wakes each
//! waiter for the log. Here each is put back and taken away in turn, under the same load, from one
//! client to thousands. A wall is built around the part that it would stand in (the lock table, the
//! log, the transactions), in this crate alone: the product has no switch for it. Only the
//! transactions inside are limited by a setting of the server.
//!
//! Threads are as many as the machine has processors, and each plays its share of the clients, one
//! operation of each in turn. On two processors a latch that is held for a moment is seldom
//! contended. So there are counts beside the throughput: acquisitions that found the latch taken,
//! and context switches. With more processors the same command shows more.
//!
//! Modules: `crowd` (threads and counts), `locks`, `log`, `views`, `drawn` (table and picture).

mod crowd;
mod drawn;
mod locks;
mod log;
mod views;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use self::crowd::Measured;
use super::admission;
use crate::target::program_or_release;

/// Some four minutes with what stands here as defaults.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 512, 4096])]
    clients: Vec<u32>,
    /// The walls to measure; by default all.
    #[arg(long = "wall", value_enum)]
    walls: Vec<Wall>,
    /// Measurements of each point; their median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a measurement, in milliseconds.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    turn_ms: u64,
    /// The build of Plateau for the wall of admission; by default `cargo build --release` makes it.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Keeps the curves and their picture in `docs/bench`.
    #[arg(long)]
    record: bool,
}

/// What stands in the way of many clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum Wall {
    /// One latch for all row locks.
    OneLockShard,
    /// One latch for all that is written to the log.
    OneLogLatch,
    /// Each view copies the list of active transactions.
    CopiedViews,
    /// A latch at the open and the close of a view.
    ViewLatch,
    /// All transactions are inside at once.
    NoAdmission,
    /// A thread wakes each waiter for the log.
    HandOffAtCommit,
}

impl Wall {
    const ALL: [Self; 6] = [
        Self::CopiedViews,
        Self::NoAdmission,
        Self::HandOffAtCommit,
        Self::OneLockShard,
        Self::OneLogLatch,
        Self::ViewLatch,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::OneLockShard => "one lock shard",
            Self::OneLogLatch => "one log latch",
            Self::CopiedViews => "copied views",
            Self::ViewLatch => "view latch",
            Self::NoAdmission => "no admission",
            Self::HandOffAtCommit => "hand-off at commit",
        }
    }
}

/// Whether a wall stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Yes,
    No,
}

/// A wall's measurements with one number of clients.
#[derive(Debug, Clone)]
struct Point {
    wall: Wall,
    clients: u32,
    with: Measured,
    without: Measured,
}

impl Point {
    /// The throughput that the wall leaves.
    fn left(&self) -> f64 {
        self.with.rate() / self.without.rate().max(1e-9)
    }
}

/// Curves that must part.
const PARTED_MIN: usize = 3;

/// Curves part where the wall leaves at most this much with the most clients.
const PARTED_LEFT_MAX: f64 = 0.8;

/// Measures all walls; fails if fewer than three show in the throughput.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let walls = match arguments.walls.as_slice() {
        [] => &Wall::ALL[..],
        some => some,
    };
    let mut points = Vec::new();
    for &wall in walls {
        let measured = match wall {
            Wall::NoAdmission => without_admission(arguments)?,
            _ => inside(wall, arguments)?,
        };
        println!("{}", drawn::table(wall, &measured));
        points.extend(measured);
    }
    if arguments.record {
        drawn::record(&points)?;
    }
    let last = |wall: &&Wall| {
        let own = points.iter().filter(|point| point.wall == **wall);
        own.max_by_key(|point| point.clients)
            .is_some_and(|point| point.left() <= PARTED_LEFT_MAX)
    };
    let parted: Vec<_> = walls.iter().filter(last).map(|wall| wall.name()).collect();
    println!("curves that part: {}", parted.join(", "));
    ensure!(
        PARTED_MIN <= parted.len() || walls.len() < Wall::ALL.len(),
        "fewer than {PARTED_MIN} curves part"
    );
    Ok(())
}

/// The walls that are built around a crate, with and without in turn.
fn inside(wall: Wall, arguments: &Arguments) -> Result<Vec<Point>> {
    let duration = Duration::from_millis(arguments.turn_ms);
    let measure = |clients: u32, stands: Stands| match wall {
        Wall::OneLockShard => locks::measure(clients, stands, duration),
        Wall::OneLogLatch | Wall::HandOffAtCommit => log::measure(wall, clients, stands, duration),
        Wall::CopiedViews | Wall::ViewLatch | Wall::NoAdmission => {
            Ok(views::measure(wall, clients, stands, duration))
        }
    };
    let mut points = Vec::new();
    for &clients in &arguments.clients {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..arguments.rounds {
            with.push(measure(clients, Stands::Yes)?);
            without.push(measure(clients, Stands::No)?);
        }
        points.push(Point {
            wall,
            clients,
            with: crowd::median(with),
            without: crowd::median(without),
        });
    }
    Ok(points)
}

/// The wall of a whole server: clients that fight for the same rows, all of them inside.
fn without_admission(arguments: &Arguments) -> Result<Vec<Point>> {
    let program = program_or_release(arguments.program.as_deref())?;
    let rates = admission::off_and_auto(&program, &arguments.clients, arguments.rounds)?;
    let points = rates.into_iter().map(|(clients, off, auto)| Point {
        wall: Wall::NoAdmission,
        clients,
        with: Measured::of_rate(off),
        without: Measured::of_rate(auto),
    });
    Ok(points.collect())
}
