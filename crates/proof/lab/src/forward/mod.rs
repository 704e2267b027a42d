//! What forwarding costs: a proxy of two links, which frames packets both ways, beside a proxy that
//! copies bytes between two sockets on the same loop.
//!
//! The proxy of links logs its clients in, logs in to the server, and sees the first byte of each
//! command and the status flags that end each reply. The load's clients take EOF packets and the
//! proxy's own logins do not, so the ends of all lists are translated. Turns of a fraction of a
//! second alternate. A pair of processes has the median of the ratios of neighbouring turns, and a
//! cell the geometric mean of its pairs: two runs of one pair differ by less than two pairs do.

pub mod proxy;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::process::{Process, ThreadTimes};
use testkit::{Folder, free_port};

use self::proxy::{Driver, Kind};
use crate::generator::{Address, Distribution, Generator};
use crate::load::fill;
use crate::sample::LoadArguments;
use crate::target::Target;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64])]
    clients: Vec<u32>,
    /// Loops that the proxies run on.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = DRIVERS)]
    io: Vec<Driver>,
    /// Pairs of processes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    generations: u32,
    /// Turns of each proxy of a pair in a cell.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a turn, in milliseconds.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    turn_ms: u64,
    /// Rows of the table.
    #[arg(long, default_value_t = 10_000)]
    rows: u32,
}

const DRIVERS: [Driver; 2] = [Driver::Uring, Driver::Epoll];

/// What a statement may cost the proxy of links, as a part of what it costs the one that copies.
const RATIO_MAX: f64 = 1.10;

/// Uncounted before each turn.
const SETTLE: Duration = Duration::from_millis(50);

/// A proxy that starts in more is not going to.
const READY_LIMIT: Duration = Duration::from_secs(20);

/// A proxy in a process of its own.
struct Proxy {
    process: Process,
    port: u16,
    /// Its log lies there.
    _folder: Folder,
}

impl Proxy {
    fn start(kind: Kind, driver: Driver, server_port: u16) -> Result<Proxy> {
        let folder = Folder::new("proxy")?;
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("proxy")
            .arg(kind.to_string())
            .arg(driver.to_string())
            .arg(port.to_string())
            .arg(server_port.to_string());
        let mut process = Process::start(&mut command, &folder.path().join("log"), "listening")?;
        process.wait_ready(READY_LIMIT)?;
        Ok(Proxy {
            process,
            port,
            _folder: folder,
        })
    }

    /// Runs the load for a turn; nanoseconds of the proxy's processor time a statement.
    fn turn(&self, generator: &mut Generator, length: Duration) -> Result<f64> {
        generator.run_uncounted(SETTLE)?;
        let before = ThreadTimes::of(self.process.id())?;
        let tally = generator.run(length)?;
        let used_ns = ThreadTimes::of(self.process.id())?.since_ns(&before);
        ensure!(0 < tally.statement_count, "the proxy answers nothing");
        Ok(stdx::u64_to_f64(used_ns) / stdx::u64_to_f64(tally.statement_count))
    }
}

/// One number of clients, one protocol, one loop.
struct Cell {
    name: String,
    driver: Driver,
    is_text: bool,
    clients: u32,
    pairs: Vec<Pair>,
}

/// Medians of one pair of processes.
#[derive(Clone, Copy)]
struct Pair {
    copy_us: f64,
    link_us: f64,
    ratio: f64,
}

impl Cell {
    fn mean(&self, of: impl Fn(&Pair) -> f64) -> f64 {
        let count = stdx::u64_to_f64(stdx::to_u64(self.pairs.len()));
        (self.pairs.iter().map(|it| of(it).ln()).sum::<f64>() / count).exp()
    }
}

/// Measures all cells and prints them; an error if one is above the limit.
pub fn run(arguments: &Arguments) -> Result<()> {
    let server = arguments.target.start()?;
    fill(server.port(), "oltp_point_select", (1, arguments.rows))?;
    let mut cells = arguments.cells();
    for _ in 0..arguments.generations {
        for &driver in &arguments.io {
            let copy = Proxy::start(Kind::Copy, driver, server.port())?;
            let link = Proxy::start(Kind::Link, driver, server.port())?;
            for cell in cells.iter_mut().filter(|cell| cell.driver == driver) {
                let connect = |proxy: &Proxy| {
                    let load = LoadArguments {
                        text: cell.is_text,
                        tables: 1,
                        rows: arguments.rows,
                        threads: 1,
                        rand: Distribution::Uniform,
                    };
                    let address = Address::Tcp(proxy.port);
                    Generator::connect(&load.shape(address, "point_select", cell.clients))
                };
                let (mut by_copy, mut by_link) = (connect(&copy)?, connect(&link)?);
                let loads = [&mut by_copy, &mut by_link];
                cell.pairs.push(measure(arguments, [&copy, &link], loads)?);
            }
        }
    }
    for cell in &cells {
        println!("{cell}");
    }
    let ratios = cells.iter().map(|cell| cell.mean(|it| it.ratio));
    let worst = ratios.fold(0.0, f64::max);
    println!("worst {worst:.3}, at most {RATIO_MAX} wanted");
    ensure!(worst <= RATIO_MAX, "forwarding costs more than it may");
    Ok(())
}

impl Arguments {
    /// All cells, unmeasured.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &driver in &self.io {
            for is_text in [true, false] {
                for &clients in &self.clients {
                    let protocol = if is_text { "text" } else { "prepared" };
                    cells.push(Cell {
                        name: format!("{driver:<6} {protocol:<9} {clients:>4} clients"),
                        driver,
                        is_text,
                        clients,
                        pairs: Vec::new(),
                    });
                }
            }
        }
        cells
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, pairs, .. } = self;
        let copy_us = self.mean(|it| it.copy_us);
        let link_us = self.mean(|it| it.link_us);
        let ratio = self.mean(|it| it.ratio);
        write!(
            f,
            "{name}  copy {copy_us:.2} us, links {link_us:.2} us a statement: "
        )?;
        write!(f, "{ratio:.3} of")?;
        pairs
            .iter()
            .try_for_each(|it| write!(f, " {:.3}", it.ratio))
    }
}

fn measure(
    arguments: &Arguments,
    [copy, link]: [&Proxy; 2],
    [by_copy, by_link]: [&mut Generator; 2],
) -> Result<Pair> {
    let length = Duration::from_millis(arguments.turn_ms);
    by_copy.warm(Duration::from_millis(500))?;
    by_link.warm(Duration::from_millis(500))?;
    let (mut copies, mut links, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        // Each second one goes backwards: what drifts falls on both.
        let (copy_ns, link_ns) = if round % 2 == 0 {
            let copy_ns = copy.turn(by_copy, length)?;
            (copy_ns, link.turn(by_link, length)?)
        } else {
            let link_ns = link.turn(by_link, length)?;
            (copy.turn(by_copy, length)?, link_ns)
        };
        copies.push(copy_ns / 1e3);
        links.push(link_ns / 1e3);
        ratios.push(link_ns / copy_ns);
    }
    Ok(Pair {
        copy_us: median(&mut copies)?,
        link_us: median(&mut links)?,
        ratio: median(&mut ratios)?,
    })
}

fn median(values: &mut [f64]) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.get(values.len() / 2).copied();
    middle.context("there is a turn")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(&mut [3.0, 1.0, 2.0]).unwrap() - 2.0).abs() < 1e-9);
        assert!(median(&mut []).is_err());
    }
}
