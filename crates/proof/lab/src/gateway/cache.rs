//! What a cache of results gives and costs: point queries through gateways without one, with a
//! verified one and with a vouched one, beside no proxy and HAProxy.
//!
//! ```text
//! load --(direct: a quarter of the clients to each)--> a primary and three replicas
//!      --> HAProxy, read-connection, read-write-split, .. verified, .. vouched --> the same
//! ```
//!
//! Turns of a fraction of a second alternate, so what drifts falls on all. Each contender has the
//! median of its turns, and a ratio is the median of the ratios of neighbouring turns. The caches
//! of a second pass have room for about half of the rows' results, so that half of the queries
//! miss.

pub mod picture;

use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::process::{Process, ThreadTimes};
use testkit::server::plateau_program;
use testkit::topology::Replicated;
use testkit::{Folder, Server, free_port, wait_for};

use super::READY_LIMIT;
use super::cost::median;
use crate::generator::{Address, Distribution, Generator};
use crate::load::fill;
use crate::sample::LoadArguments;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64, 256, 1024, 2048])]
    clients: Vec<u32>,
    /// Turns of each in a cell.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a turn, in milliseconds.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    turn_ms: u64,
    /// Rows of the table.
    #[arg(long, default_value_t = 100_000)]
    rows: u32,
    /// Statements sent prepared instead of as text.
    #[arg(long)]
    prepared: bool,
    /// Only the pass in which all results have room.
    #[arg(long)]
    roomy: bool,
    /// Writes the medians to `docs/bench/cache.csv`, and draws them.
    #[arg(long)]
    record: bool,
}

/// What a vouched hit may cost, as a part of what HAProxy's statement costs.
const VOUCHED_COST_MAX: f64 = 0.45;

/// What a verified hit may cost, as a part of what a vouched one costs.
const VERIFIED_COST_MAX: f64 = 1.25;

/// What a query may cost a gateway with a full cache that does not have its result, as a part of
/// what it costs one without a cache.
const MISS_COST_MAX: f64 = 1.05;

/// Where the limits of cost hold.
const JUDGED_CLIENTS: [u32; 2] = [16, 64];

/// Memory that a kept result of the load takes, about: with it a cache has room for half of them.
const RESULT_BYTES: u32 = 700;

/// The smallest cache that there can be.
const FULL_BYTES: u64 = 64 << 10;

/// Replicas of the primary.
const REPLICAS: usize = 3;

/// Uncounted before each turn.
const SETTLE: Duration = Duration::from_millis(50);

/// Who stands between the load and the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Direct,
    HaProxy,
    Connection,
    Split,
    Verified,
    Vouched,
    /// Verified, with room for next to nothing: it is full, and each query misses.
    Full,
}

const KINDS: [Kind; 7] = [
    Kind::Direct,
    Kind::HaProxy,
    Kind::Connection,
    Kind::Split,
    Kind::Verified,
    Kind::Vouched,
    Kind::Full,
];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::HaProxy => "haproxy",
            Kind::Connection => "read-connection",
            Kind::Split => "read-write-split",
            Kind::Verified => "verified cache",
            Kind::Vouched => "vouched cache",
            Kind::Full => "full cache",
        }
    }

    fn is_cache(self) -> bool {
        matches!(self, Kind::Verified | Kind::Vouched)
    }
}

/// Whether the caches have room for all results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    All,
    Half,
}

impl Room {
    const ALL: [Room; 2] = [Room::All, Room::Half];

    fn name(self) -> &'static str {
        match self {
            Room::All => "all",
            Room::Half => "half",
        }
    }
}

/// Medians of a contender's turns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    room: Room,
    clients: u32,
    kind: Kind,
    per_second: f64,
    proxy_us: f64,
}

/// One of them, running. It is reached at one of several ports.
struct Contender {
    kind: Kind,
    ports: Vec<u16>,
    process: Option<Process>,
    _folder: Folder,
}

/// One turn: processor time of the proxy in microseconds a statement.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    per_second: f64,
    proxy_us: f64,
}

/// Measures all cells and prints them; an error if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let with = |launch: testkit::Launch| {
        launch
            .with("--thread-handling=pool-of-threads")
            .with("--max-connections=20000")
            .with("--max-prepared-stmt-count=1000000")
    };
    let topology = Replicated::start_with(REPLICAS, with)?;
    let servers: Vec<u16> = topology.servers.iter().map(Server::port).collect();
    let primary = *servers.first().context("there is a primary")?;
    fill(primary, "oltp_point_select", (1, arguments.rows))?;
    for replica in 1..=REPLICAS {
        topology.wait_for_replica(replica, 0)?;
    }
    println!("| results kept | clients | | statements/s | proxy us | |");
    println!("|---|--:|---|--:|--:|---|");
    let (mut lines, mut missed) = (Vec::new(), Vec::new());
    let rooms = Room::ALL.into_iter();
    for room in rooms.take(if arguments.roomy { 1 } else { 2 }) {
        let contenders = KINDS
            .iter()
            .map(|kind| Contender::start(*kind, room, (&servers, arguments.rows)))
            .collect::<Result<Vec<_>>>()?;
        for contender in contenders.iter().filter(|it| it.kind.is_cache()) {
            contender.warm(arguments)?;
        }
        for &clients in &arguments.clients {
            let turns = measure(arguments, &contenders, clients)?;
            lines.extend(medians(room, clients, &turns));
            missed.extend(report(room, clients, &turns));
        }
    }
    // A run that misses a limit is kept, too.
    if arguments.record {
        picture::write(&lines)?;
        picture::redraw()?;
    }
    ensure!(
        missed.is_empty(),
        "limits are missed:\n{}",
        missed.join("\n")
    );
    Ok(())
}

impl Contender {
    fn start(kind: Kind, room: Room, (servers, rows): (&[u16], u32)) -> Result<Contender> {
        let folder = Folder::new("contender")?;
        if kind == Kind::Direct {
            let ports = servers.to_vec();
            let process = None;
            return Ok(Contender {
                kind,
                ports,
                process,
                _folder: folder,
            });
        }
        let port = free_port()?;
        let file = folder.path().join("settings");
        let (mut command, ready) = match kind {
            Kind::HaProxy => {
                fs::write(&file, haproxy(port, servers)?)?;
                let mut command = Command::new("haproxy");
                command.arg("-f").arg(&file);
                (command, "")
            }
            _ => {
                let text = settings(kind, room, (&folder, port, servers), rows)?;
                fs::write(&file, text)?;
                let mut command = Command::new(plateau_program()?);
                command.arg("--config").arg(&file);
                let ready = match kind {
                    Kind::Verified | Kind::Full => "results are kept",
                    _ => "a service is ready",
                };
                (command, ready)
            }
        };
        let log = folder.path().join("log");
        let mut process = Process::start(&mut command, &log, ready)?;
        if !ready.is_empty() {
            process.wait_ready(READY_LIMIT)?;
        }
        wait_for(
            &format!("{} accepts clients", kind.name()),
            || TcpStream::connect(("127.0.0.1", port)).is_ok(),
            |accepts| *accepts,
        );
        Ok(Contender {
            kind,
            ports: vec![port],
            process: Some(process),
            _folder: folder,
        })
    }

    /// The load, connected: a generator for each port.
    fn connect(&self, arguments: &Arguments, clients: u32) -> Result<Vec<Generator>> {
        let load = LoadArguments {
            text: !arguments.prepared,
            tables: 1,
            rows: arguments.rows,
            threads: 2,
            rand: Distribution::Uniform,
        };
        let count = u32::try_from(self.ports.len())?;
        let mut loads = Vec::new();
        for (place, port) in (0..count).zip(&self.ports) {
            // All clients together are as many, however many ports there are.
            let own = clients / count + u32::from(place < clients % count);
            if 0 < own {
                let shape = load.shape(Address::Tcp(*port), "point_select", own);
                loads.push(Generator::connect(&shape)?);
            }
        }
        Ok(loads)
    }

    /// Asks for all rows, so that their results are kept as far as there is room.
    fn warm(&self, arguments: &Arguments) -> Result<()> {
        for mut load in self.connect(arguments, 64)? {
            let mut asked = 0;
            // As many as find each row but a hundredth of them.
            while asked < 5 * u64::from(arguments.rows) {
                asked += load.run(Duration::from_millis(500))?.statement_count;
            }
        }
        Ok(())
    }

    fn times(&self) -> Result<ThreadTimes> {
        match &self.process {
            Some(process) => ThreadTimes::of(process.id()),
            None => Ok(ThreadTimes::default()),
        }
    }
}

fn haproxy(port: u16, servers: &[u16]) -> Result<String> {
    let mut text = format!(
        "global\n  maxconn 9000\ndefaults\n  mode tcp\n  timeout connect 5s\n  \
         timeout client 1h\n  timeout server 1h\n\
         listen all\n  bind 127.0.0.1:{port}\n  balance roundrobin\n"
    );
    for (number, server) in (1..).zip(servers) {
        writeln!(text, "  server db{number} 127.0.0.1:{server}")?;
    }
    Ok(text)
}

fn settings(
    kind: Kind,
    room: Room,
    (folder, port, servers): (&Folder, u16, &[u16]),
    rows: u32,
) -> Result<String> {
    let data = folder.path().join("data");
    let mut text = format!(
        "listen = \"127.0.0.1:{port}\"\nsocket = \"\"\ndata = {data:?}\nlog = \"info\"\n\
         max_connections = 9000\n"
    );
    for (number, server) in (1..).zip(servers) {
        write!(
            text,
            "[[server]]\nname = \"db{number}\"\naddress = \"127.0.0.1:{server}\"\n"
        )?;
    }
    let router = match kind {
        Kind::Split => "read-write-split",
        _ => "read-connection",
    };
    write!(
        text,
        "[[monitor]]\nuser = \"root\"\ntimeout = 30\n[[service]]\nname = \"all\"\n\
         router = \"{router}\"\n"
    )?;
    if kind.is_cache() || kind == Kind::Full {
        let size = match room {
            _ if kind == Kind::Full => FULL_BYTES,
            Room::All => 4 * u64::from(RESULT_BYTES * rows),
            Room::Half => u64::from(RESULT_BYTES / 2 * rows),
        };
        let trust = match kind {
            Kind::Vouched => "assume_cacheable = true\nttl = 3600\n",
            _ => "",
        };
        write!(
            text,
            "cache = \"c\"\n[[cache]]\nname = \"c\"\nsize = {size}\n\
             max_reply_size = \"8K\"\n{trust}"
        )?;
    }
    Ok(text)
}

fn measure(
    arguments: &Arguments,
    contenders: &[Contender],
    clients: u32,
) -> Result<Vec<Vec<Turn>>> {
    let mut loads = Vec::new();
    for contender in contenders {
        let told = || format!("{} with {clients} clients", contender.kind.name());
        let mut load = contender.connect(arguments, clients).with_context(told)?;
        run_all(&mut load, Duration::from_millis(200))?;
        loads.push(load);
    }
    let mut turns = vec![Vec::new(); contenders.len()];
    let length = Duration::from_millis(arguments.turn_ms);
    for round in 0..arguments.rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let (Some(contender), Some(load), Some(turns)) =
                (contenders.get(at), loads.get_mut(at), turns.get_mut(at))
            else {
                continue;
            };
            run_all(load, SETTLE)?;
            let before = contender.times()?;
            let (count, per_second) = run_all(load, length)?;
            let used_ns = contender.times()?.since_ns(&before);
            ensure!(0 < count, "{} answers nothing", contender.kind.name());
            turns.push(Turn {
                per_second,
                proxy_us: stdx::u64_to_f64(used_ns) / 1e3 / stdx::u64_to_f64(count),
            });
        }
    }
    Ok(turns)
}

/// Runs all generators of a contender at once. Returns how many statements were answered, and how
/// many a second.
fn run_all(loads: &mut [Generator], length: Duration) -> Result<(u64, f64)> {
    std::thread::scope(|scope| {
        let running: Vec<_> = loads
            .iter_mut()
            .map(|load| scope.spawn(move || load.run(length)))
            .collect();
        let mut sum = (0, 0.0);
        for run in running {
            let tally = run.join().expect("a generator does not panic")?;
            sum.0 += tally.statement_count;
            sum.1 += tally.statements_per_second();
        }
        Ok(sum)
    })
}

fn of(turns: &[Vec<Turn>], kind: Kind) -> &[Turn] {
    let place = KINDS.iter().position(|it| *it == kind);
    place
        .and_then(|it| turns.get(it))
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// One's, as a part of another's in the same round.
fn ratio(turns: &[Vec<Turn>], (kind, beside): (Kind, Kind), get: fn(&Turn) -> f64) -> f64 {
    let pairs = of(turns, kind).iter().zip(of(turns, beside));
    median(pairs.map(|(own, other)| get(own) / get(other)).collect())
}

/// The medians of a cell.
fn medians(room: Room, clients: u32, turns: &[Vec<Turn>]) -> Vec<Line> {
    let line = |kind: Kind| Line {
        room,
        clients,
        kind,
        per_second: median(of(turns, kind).iter().map(|it| it.per_second).collect()),
        proxy_us: median(of(turns, kind).iter().map(|it| it.proxy_us).collect()),
    };
    KINDS.map(line).to_vec()
}

/// Prints a cell. Returns the limits that are missed.
fn report(room: Room, clients: u32, turns: &[Vec<Turn>]) -> Vec<String> {
    let name = room.name();
    let per_second = |it: &Turn| it.per_second;
    let proxy_us = |it: &Turn| it.proxy_us;
    let mut missed = Vec::new();
    for line in medians(room, clients, turns) {
        let kind = line.kind;
        print!(
            "| {name} | {clients} | {} | {:.0} | {:.2} |",
            kind.name(),
            line.per_second,
            line.proxy_us
        );
        if kind == Kind::Full {
            let cost = ratio(turns, (kind, Kind::Connection), proxy_us);
            print!(" {cost:.2} of the time of read-connection |");
        }
        if kind.is_cache() {
            let others = [Kind::Direct, Kind::Connection, Kind::Split];
            let gains = others.map(|other| ratio(turns, (kind, other), per_second));
            let [direct, connection, split] = gains;
            let cost = ratio(turns, (kind, Kind::HaProxy), proxy_us);
            print!(
                " {direct:.2} of direct, {connection:.2} of read-connection, {split:.2} of the \
                 split; {cost:.2} of HAProxy's time |"
            );
            for (other, gain) in others.iter().zip(gains) {
                if gain < 1.0 {
                    missed.push(format!(
                        "{name}, {clients} clients: the {} has {gain:.2} of the throughput of {}",
                        kind.name(),
                        other.name()
                    ));
                }
            }
        }
        println!();
    }
    if room == Room::All && JUDGED_CLIENTS.contains(&clients) {
        let limits = [
            (Kind::Vouched, Kind::HaProxy, VOUCHED_COST_MAX),
            (Kind::Verified, Kind::Vouched, VERIFIED_COST_MAX),
            (Kind::Full, Kind::Connection, MISS_COST_MAX),
        ];
        for (kind, beside, max) in limits {
            let cost = ratio(turns, (kind, beside), proxy_us);
            if max < cost {
                missed.push(format!(
                    "{clients} clients: the {} costs {cost:.2} of the time of {}, at most {max} \
                     wanted",
                    kind.name(),
                    beside.name()
                ));
            }
        }
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(of: impl Fn(Kind) -> (f64, f64)) -> Vec<Vec<Turn>> {
        let turn = |kind: &Kind| {
            let (per_second, proxy_us) = of(*kind);
            vec![Turn {
                per_second,
                proxy_us,
            }]
        };
        KINDS.iter().map(turn).collect()
    }

    #[test]
    fn limits_are_held_at_their_value_and_missed_beyond() {
        let missed = |verified: (f64, f64), vouched: (f64, f64)| {
            let turns = turns(|kind| match kind {
                Kind::Verified => verified,
                Kind::Vouched => vouched,
                _ => (100.0, 10.0),
            });
            report(Room::All, 16, &turns).len()
        };
        assert_eq!(missed((100.0, 5.0), (100.0, 4.5)), 0);
        assert_eq!(missed((100.0, 5.0), (100.0, 4.6)), 1);
        assert_eq!(missed((100.0, 5.7), (100.0, 4.5)), 1);
        assert_eq!(missed((99.0, 5.0), (100.0, 4.5)), 3);
        let all = turns(|_| (100.0, 10.0));
        assert!(
            report(Room::Half, 16, &all).is_empty(),
            "its cost is not judged"
        );
    }

    #[test]
    fn caches_differ_in_what_their_names_say() {
        let folder = Folder::new("contender").unwrap();
        let text = |kind, room| settings(kind, room, (&folder, 1, &[2, 3]), 1000).unwrap();
        assert!(!text(Kind::Connection, Room::All).contains("cache"));
        assert!(text(Kind::Split, Room::All).contains("read-write-split"));
        assert!(text(Kind::Vouched, Room::All).contains("assume_cacheable = true"));
        assert!(!text(Kind::Verified, Room::All).contains("assume_cacheable"));
        assert!(text(Kind::Verified, Room::All).contains("size = 2800000\n"));
        assert!(text(Kind::Verified, Room::Half).contains("size = 350000\n"));
    }
}
