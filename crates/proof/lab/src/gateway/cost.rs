//! What the gateway costs: its processor time a statement and its throughput, beside those of
//! HAProxy in TCP mode, of the proxy of two links (`forward/proxy.rs`), and of no proxy at all.
//!
//! All stand before one MariaDB on the same cores, with the same load connected to each. Turns of a
//! fraction of a second alternate, so what drifts falls on all. Each has the median of its turns,
//! and the gateway the median of its ratios to HAProxy's neighbouring turns.
//!
//! * `contender`: who is measured, and how it is started.
//! * `record`: the medians of a run as CSV.
//! * [`picture`]: their curves.

mod contender;
pub mod picture;
mod record;

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use testkit::process::ThreadTimes;
use testkit::{Launch, ServerKind};

use self::contender::{Contender, KINDS, Kind};
use self::record::{Line, Protocol};
use crate::generator::{Address, Distribution, Generator};
use crate::load::fill;
use crate::sample::LoadArguments;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 16, 64, 512, 2048])]
    clients: Vec<u32>,
    /// Turns of each in a cell.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a turn, in milliseconds.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    turn_ms: u64,
    /// Rows of the table.
    #[arg(long, default_value_t = 10_000)]
    rows: u32,
    /// Writes the medians to `docs/bench/gateway.csv`, and draws them.
    #[arg(long)]
    record: bool,
}

/// What a statement may cost the gateway, as a part of what it costs HAProxy.
const COST_MAX: f64 = 0.85;

/// The throughput that the gateway must have, as a part of HAProxy's.
const THROUGHPUT_MIN: f64 = 1.0;

/// What a statement may cost `read-write-split`, as a part of what it costs `read-connection`.
const SPLIT_COST_MAX: f64 = 1.15;

/// The throughput that `read-write-split` must have with any number of clients, as a part of
/// that of `read-connection`.
const SPLIT_THROUGHPUT_MIN: f64 = 0.9;

/// What rules that a statement does not meet may cost, as a part of a statement's cost without.
const RULES_COST_MAX: f64 = 1.03;

/// What a query log of each statement may cost, as a part of a statement's cost without.
const LOG_COST_MAX: f64 = 1.10;

/// Where that limit holds.
const LOG_JUDGED_CLIENTS: u32 = 64;

/// Where the limits of cost and that of HAProxy's throughput hold.
const JUDGED_CLIENTS: [u32; 2] = [16, 64];

/// Uncounted before each turn.
const SETTLE: Duration = Duration::from_millis(50);

/// One turn: processor time in microseconds a statement.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    per_second: f64,
    proxy_us: f64,
    server_us: f64,
    load_us: f64,
}

/// A number of clients and a protocol.
struct Cell {
    protocol: Protocol,
    clients: u32,
    /// By [`KINDS`].
    turns: Vec<Vec<Turn>>,
}

/// Measures all cells and prints them; an error if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut server = Launch::new(ServerKind::MariaDb)
        .with("--thread-handling=pool-of-threads")
        .with("--max-connections=20000")
        .with("--max-prepared-stmt-count=1000000")
        .start()?;
    fill(server.port(), "oltp_point_select", (1, arguments.rows))?;
    let server_id = server.process().id();
    let contenders = KINDS
        .iter()
        .map(|kind| Contender::start(*kind, server.port()))
        .collect::<Result<Vec<_>>>()?;
    println!("| statements | clients | | statements/s | proxy us | server us | load us |");
    println!("|---|--:|---|--:|--:|--:|--:|");
    let (mut lines, mut missed) = (Vec::new(), Vec::new());
    for protocol in Protocol::ALL {
        for &clients in &arguments.clients {
            let mut server_ns = server_times(server_id);
            let cell = measure(arguments, &contenders, (protocol, clients), &mut server_ns)?;
            print!("{cell}");
            lines.extend(KINDS.map(|kind| cell.line(kind)));
            missed.extend(cell.missed());
        }
    }
    // A run that misses a limit is kept, too.
    if arguments.record {
        record::write(&lines)?;
        picture::redraw()?;
    }
    ensure!(
        missed.is_empty(),
        "limits are missed:\n{}",
        missed.join("\n")
    );
    Ok(())
}

/// What reads the server's processor time, in nanoseconds since the last reading.
fn server_times(server_id: u32) -> impl FnMut() -> Result<u64> {
    let mut last = ThreadTimes::default();
    move || {
        let now = ThreadTimes::of(server_id)?;
        let used = now.since_ns(&last);
        last = now;
        Ok(used)
    }
}

fn measure(
    arguments: &Arguments,
    contenders: &[Contender],
    (protocol, clients): (Protocol, u32),
    server_ns: &mut dyn FnMut() -> Result<u64>,
) -> Result<Cell> {
    let load = LoadArguments {
        text: protocol == Protocol::Text,
        tables: 1,
        rows: arguments.rows,
        threads: 2,
        rand: Distribution::Uniform,
    };
    let mut loads = Vec::new();
    for contender in contenders {
        let shape = load.shape(Address::Tcp(contender.port), "point_select", clients);
        let told = || format!("{} with {clients} clients", contender.kind);
        let mut generator = Generator::connect(&shape).with_context(told)?;
        generator.warm(Duration::from_millis(300))?;
        loads.push(generator);
    }
    let mut cell = Cell {
        protocol,
        clients,
        turns: vec![Vec::new(); contenders.len()],
    };
    let length = Duration::from_millis(arguments.turn_ms);
    for round in 0..arguments.rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (Some(contender), Some(load)) = (contenders.get(at), loads.get_mut(at)) else {
                continue;
            };
            let turn = turn(contender, load, length, server_ns)?;
            cell.turns
                .get_mut(at)
                .context("one a contender")?
                .push(turn);
        }
    }
    Ok(cell)
}

fn turn(
    contender: &Contender,
    load: &mut Generator,
    length: Duration,
    server_ns: &mut dyn FnMut() -> Result<u64>,
) -> Result<Turn> {
    let proxy_times = || match &contender.process {
        Some(process) => ThreadTimes::of(process.id()),
        None => Ok(ThreadTimes::default()),
    };
    load.run_uncounted(SETTLE)?;
    let (before, load_before) = (proxy_times()?, own_ns()?);
    server_ns()?;
    let tally = load.run(length)?;
    let server = server_ns()?;
    let (proxy, own) = (proxy_times()?.since_ns(&before), own_ns()? - load_before);
    let kind = contender.kind;
    ensure!(0 < tally.statement_count, "{kind} answers nothing");
    let each = |ns: u64| stdx::u64_to_f64(ns) / 1e3 / stdx::u64_to_f64(tally.statement_count);
    Ok(Turn {
        per_second: tally.statements_per_second(),
        proxy_us: each(proxy),
        server_us: each(server),
        load_us: each(own),
    })
}

/// Processor time of this process so far, which is the load's, in nanoseconds.
fn own_ns() -> Result<u64> {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec)?;
    Ok(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec)?)
}

impl Cell {
    fn of(&self, kind: Kind) -> &[Turn] {
        let place = KINDS.iter().position(|it| *it == kind);
        let turns = place.and_then(|place| self.turns.get(place));
        turns.map(Vec::as_slice).unwrap_or_default()
    }

    fn median(&self, kind: Kind, of: impl Fn(&Turn) -> f64) -> f64 {
        median(self.of(kind).iter().map(of).collect())
    }

    /// The medians of a contender.
    fn line(&self, kind: Kind) -> Line {
        Line {
            protocol: self.protocol,
            clients: self.clients,
            kind,
            per_second: self.median(kind, |it| it.per_second),
            proxy_us: self.median(kind, |it| it.proxy_us),
            server_us: self.median(kind, |it| it.server_us),
            load_us: self.median(kind, |it| it.load_us),
        }
    }

    /// One's, as a part of another's in the same round.
    fn ratio(&self, kind: Kind, beside: Kind, of: impl Fn(&Turn) -> f64) -> f64 {
        let pairs = self.of(kind).iter().zip(self.of(beside));
        median(pairs.map(|(own, other)| of(own) / of(other)).collect())
    }

    /// The limits that are missed.
    fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let (protocol, clients) = (self.protocol, self.clients);
        let split = self.ratio(Kind::Split, Kind::Uring, |it| it.per_second);
        if split < SPLIT_THROUGHPUT_MIN {
            missed.push(format!(
                "{protocol}, {clients} clients: the split has {split:.2} of the throughput of \
                 read-connection, at least {SPLIT_THROUGHPUT_MIN} wanted"
            ));
        }
        if !JUDGED_CLIENTS.contains(&self.clients) {
            return missed;
        }
        let split = self.ratio(Kind::Split, Kind::Uring, |it| it.proxy_us);
        if SPLIT_COST_MAX < split {
            missed.push(format!(
                "{protocol}, {clients} clients: the split has {split:.2} of the processor time of \
                 read-connection, at most {SPLIT_COST_MAX} wanted"
            ));
        }
        for kind in [Kind::OneRule, Kind::ManyRules] {
            let rules = self.ratio(kind, Kind::Split, |it| it.proxy_us);
            if RULES_COST_MAX < rules {
                missed.push(format!(
                    "{protocol}, {clients} clients: {kind}: {rules:.3} of the processor time of \
                     the split without, at most {RULES_COST_MAX} wanted"
                ));
            }
        }
        let log = self.ratio(Kind::Logged, Kind::Split, |it| it.proxy_us);
        if clients == LOG_JUDGED_CLIENTS && LOG_COST_MAX < log {
            missed.push(format!(
                "{protocol}, {clients} clients: the query log: {log:.3} of the processor time of \
                 the split without, at most {LOG_COST_MAX} wanted"
            ));
        }
        let cost = self.ratio(Kind::Uring, Kind::HaProxy, |it| it.proxy_us);
        if COST_MAX < cost {
            missed.push(format!(
                "{protocol}, {clients} clients: {cost:.2} of HAProxy's processor time, \
                 at most {COST_MAX} wanted"
            ));
        }
        let throughput = self.ratio(Kind::Uring, Kind::HaProxy, |it| it.per_second);
        if throughput < THROUGHPUT_MIN {
            missed.push(format!(
                "{protocol}, {clients} clients: {throughput:.2} of HAProxy's throughput, \
                 at least {THROUGHPUT_MIN} wanted"
            ));
        }
        missed
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (protocol, clients) = (self.protocol, self.clients);
        for kind in KINDS {
            let line = self.line(kind);
            write!(
                f,
                "| {protocol} | {clients} | {kind} | {:.0} | {:.2} | {:.2} | {:.2} |",
                line.per_second, line.proxy_us, line.server_us, line.load_us,
            )?;
            let beside = match kind {
                Kind::Uring | Kind::Private | Kind::Epoll => Some(Kind::HaProxy),
                Kind::Split => Some(Kind::Uring),
                Kind::OneRule | Kind::ManyRules | Kind::Logged => Some(Kind::Split),
                Kind::Direct | Kind::HaProxy | Kind::Link => None,
            };
            if let Some(beside) = beside {
                let cost = self.ratio(kind, beside, |it| it.proxy_us);
                let throughput = self.ratio(kind, beside, |it| it.per_second);
                write!(
                    f,
                    " {cost:.2} of the time of {beside}, {throughput:.2} of its throughput |"
                )?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(own: (f64, f64), other: (f64, f64)) -> Cell {
        cell_of(own, own, other)
    }

    fn cell_of(own: (f64, f64), split: (f64, f64), other: (f64, f64)) -> Cell {
        let turn = |(per_second, proxy_us): (f64, f64)| Turn {
            per_second,
            proxy_us,
            ..Turn::default()
        };
        let turns = |kind: &Kind| match kind {
            Kind::Uring => vec![turn(own)],
            Kind::Split | Kind::OneRule | Kind::ManyRules | Kind::Logged => vec![turn(split)],
            _ => vec![turn(other)],
        };
        Cell {
            protocol: Protocol::Text,
            clients: 16,
            turns: KINDS.iter().map(turns).collect(),
        }
    }

    #[test]
    fn limits_are_held_at_their_value_and_missed_beyond() {
        assert!(cell((100.0, 8.5), (100.0, 10.0)).missed().is_empty());
        assert_eq!(cell((100.0, 8.6), (100.0, 10.0)).missed().len(), 1);
        assert_eq!(cell((99.0, 8.5), (100.0, 10.0)).missed().len(), 1);
        assert_eq!(cell((99.0, 9.0), (100.0, 10.0)).missed().len(), 2);
    }

    #[test]
    fn the_split_is_judged_beside_the_other_router() {
        let missed = |split| cell_of((100.0, 8.0), split, (100.0, 10.0)).missed().len();
        assert_eq!(missed((90.0, 9.2)), 0);
        assert_eq!(missed((89.0, 9.2)), 1);
        assert_eq!(missed((89.0, 9.3)), 2);
        let mut unjudged = cell_of((100.0, 8.0), (89.0, 99.0), (100.0, 10.0));
        unjudged.clients = 8;
        assert_eq!(unjudged.missed().len(), 1);
    }

    #[test]
    fn the_query_log_is_judged_beside_the_split_without() {
        let missed = |clients, logged_us: f64| {
            let mut cell = cell((100.0, 8.0), (100.0, 10.0));
            cell.clients = clients;
            let place = KINDS.iter().position(|it| *it == Kind::Logged).unwrap();
            cell.turns[place][0].proxy_us = logged_us;
            cell.missed().len()
        };
        assert_eq!(missed(64, 8.8), 0);
        assert_eq!(missed(64, 8.9), 1);
        assert_eq!(missed(16, 8.9), 0);
    }

    #[test]
    fn only_some_numbers_of_clients_are_judged() {
        let mut unjudged = cell((1.0, 99.0), (100.0, 10.0));
        unjudged.clients = 8;
        assert!(unjudged.missed().is_empty());
    }
}
