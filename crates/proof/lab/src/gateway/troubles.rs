//! How long other clients wait while a server or clients of the gateway misbehave, and what memory
//! that takes.
//!
//! Behind each gateway are a primary and two replicas. Turns of point selects with one trouble
//! alternate with turns without it, so what drifts falls on both, and each has the median of its
//! turns. A trouble begins once the clients are connected. Statements that fail are counted and
//! their clients connect again; the others are those whose 99th percentile may double.

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use env::linux::SystemClock;
use env::{Clock as _, Instant};
use sync::atomic::{AtomicBool, Ordering};
use testkit::hostile::percentile;
use testkit::process::Process;
use testkit::server::plateau_program;
use testkit::topology::Replicated;
use testkit::{Client, Folder, Login, Outcome, free_port, wait_for};

use super::READY_LIMIT;
use super::cost::median;
use super::relay::Relay;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Clients with point selects.
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Connections that are logging in and do not go on.
    #[arg(long, default_value_t = 1000)]
    half_open: usize,
    /// Clients that do not read a reply of a gigabyte.
    #[arg(long, default_value_t = 8)]
    lazy: usize,
    /// Turns of each kind.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a turn, in seconds. It has to be longer than the gateway takes to notice a server.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(5..))]
    seconds: u64,
    /// Routers to measure.
    #[arg(long, value_delimiter = ',', default_values_t = ROUTERS.map(str::to_owned))]
    routers: Vec<String>,
}

const ROUTERS: [&str; 2] = ["read-write-split", "read-connection"];

/// What the 99th percentile of others may grow to.
const P99_MAX: f64 = 2.0;

/// More than a gateway with a few clients needs, and less than one reply that is held whole.
const RESIDENT_BYTES_MAX: u64 = 256 << 20;

/// Rows of the table.
const ROW_COUNT: usize = 10_000;

/// A connection that has ended is replaced after this time at the latest.
const REOPEN_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    FrozenServer,
    Garbage,
    LazyReaders,
    HalfOpenLogins,
}

const TROUBLES: [Trouble; 4] = [
    Trouble::FrozenServer,
    Trouble::Garbage,
    Trouble::LazyReaders,
    Trouble::HalfOpenLogins,
];

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trouble::FrozenServer => "a server is frozen",
            Trouble::Garbage => "a server sends garbage",
            Trouble::LazyReaders => "clients read nothing of 1 GB",
            Trouble::HalfOpenLogins => "half-open logins",
        })
    }
}

/// Measures all troubles and prints them; an error if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut topology = Replicated::start_with(2, |launch| launch.with("--max-connections=500"))?;
    fill(&topology)?;
    println!(
        "| {} clients | router | p99 ms without | with | times | longest ms with | statements/s \
         without | with | failed with | resident MiB |",
        arguments.clients
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut missed = Vec::new();
    for router in &arguments.routers {
        for trouble in TROUBLES {
            let row = measure(arguments, &mut topology, router, trouble)?;
            println!("{row}");
            missed.extend(row.missed());
        }
    }
    ensure!(
        missed.is_empty(),
        "limits are missed:\n{}",
        missed.join("\n")
    );
    Ok(())
}

/// The table of the point selects, on all servers.
fn fill(topology: &Replicated) -> Result<()> {
    let mut primary = topology.connect(0)?;
    primary.run("CREATE DATABASE shop")?;
    primary.run("CREATE TABLE shop.item (id INT PRIMARY KEY, text VARCHAR(100))")?;
    let rows = format!(
        "INSERT INTO shop.item SELECT seq, REPEAT('x', 100) FROM shop.seq_1_to_{ROW_COUNT}"
    );
    primary.run(&rows)?;
    for replica in 1..=2 {
        topology.wait_for_replica(replica, 0)?;
    }
    Ok(())
}

/// What was measured of one trouble.
struct Row {
    router: String,
    trouble: Trouble,
    without: Vec<Turn>,
    with: Vec<Turn>,
    resident_bytes: u64,
}

/// What the clients of a turn have seen.
#[derive(Debug, Default)]
struct Turn {
    p99_ms: f64,
    longest_ms: f64,
    per_second: f64,
    failed: usize,
}

impl Row {
    fn times(&self) -> f64 {
        of(&self.with, |it| it.p99_ms) / of(&self.without, |it| it.p99_ms)
    }

    /// The limits that are missed.
    fn missed(&self) -> Vec<String> {
        let (times, bytes) = (self.times(), self.resident_bytes);
        let place = format!("{}, {}", self.router, self.trouble);
        let mut missed = Vec::new();
        if times.is_nan() || P99_MAX < times {
            missed.push(format!(
                "{place}: the 99th percentile of others is {times:.2} times what it is without, \
                 at most {P99_MAX} wanted"
            ));
        }
        if RESIDENT_BYTES_MAX < bytes {
            missed.push(format!(
                "{place}: the gateway took {} MiB, at most {} wanted",
                bytes >> 20,
                RESIDENT_BYTES_MAX >> 20
            ));
        }
        missed
    }
}

fn of(turns: &[Turn], value: impl Fn(&Turn) -> f64) -> f64 {
    median(turns.iter().map(value).collect())
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed: usize = self.with.iter().map(|it| it.failed).sum();
        write!(
            f,
            "| {} | {} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} | {failed} | {} |",
            self.trouble,
            self.router,
            of(&self.without, |it| it.p99_ms),
            of(&self.with, |it| it.p99_ms),
            self.times(),
            of(&self.with, |it| it.longest_ms),
            of(&self.without, |it| it.per_second),
            of(&self.with, |it| it.per_second),
            self.resident_bytes >> 20,
        )
    }
}

/// A gateway before the servers, for one trouble.
struct Scene<'s> {
    arguments: &'s Arguments,
    topology: &'s mut Replicated,
    gateway: Process,
    /// Stands before the last replica.
    relay: Relay,
    port: u16,
    metrics_port: u16,
    _folder: Folder,
}

/// Measures turns with and without a trouble, by a gateway of its own.
fn measure(
    arguments: &Arguments,
    topology: &mut Replicated,
    router: &str,
    trouble: Trouble,
) -> Result<Row> {
    let mut scene = Scene::start(arguments, topology, router, trouble)?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        for (turns, trouble) in [(&mut without, None), (&mut with, Some(trouble))] {
            scene.wait_until_whole();
            let turn = scene.turn(trouble);
            turns.push(turn.with_context(|| format!("{router}, {trouble:?}"))?);
        }
    }
    let resident_bytes = scene.gateway.resident_bytes_max()?;
    let router = router.to_owned();
    Ok(Row {
        router,
        trouble,
        without,
        with,
        resident_bytes,
    })
}

impl<'s> Scene<'s> {
    fn start(
        arguments: &'s Arguments,
        topology: &'s mut Replicated,
        router: &str,
        trouble: Trouble,
    ) -> Result<Scene<'s>> {
        let folder = Folder::new("troubles")?;
        let (port, metrics_port) = (free_port()?, free_port()?);
        let mut ports: Vec<u16> = topology.servers.iter().map(|it| it.port()).collect();
        let last = ports.last_mut().context("there are servers")?;
        let relay = Relay::start(*last)?;
        if trouble == Trouble::Garbage {
            *last = relay.port;
        }
        let data = folder.path().join("data");
        let mut text = format!(
            "listen = \"127.0.0.1:{port}\"\nmetrics_listen = \"127.0.0.1:{metrics_port}\"\n\
             socket = \"\"\ndata = {data:?}\nlog = \"info\"\nmax_connections = 2000\n\
             proxy_protocol_networks = \"localhost\"\n"
        );
        for (number, port) in (1..).zip(ports) {
            text += &format!("[[server]]\nname = \"db{number}\"\naddress = \"127.0.0.1:{port}\"\n");
        }
        text += &format!(
            "[[monitor]]\nuser = \"root\"\n[[service]]\nname = \"all\"\nrouter = \"{router}\"\n"
        );
        let file = folder.path().join("settings");
        fs::write(&file, text)?;
        let mut command = Command::new(plateau_program()?);
        command.arg("--config").arg(&file);
        let log = folder.path().join("log");
        let mut gateway = Process::start(&mut command, &log, "a service is ready")?;
        gateway.wait_ready(READY_LIMIT)?;
        Ok(Scene {
            arguments,
            topology,
            gateway,
            relay,
            port,
            metrics_port,
            _folder: folder,
        })
    }

    /// Waits until all servers are in service, and no statement of an earlier turn runs.
    fn wait_until_whole(&self) {
        let count = self.topology.servers.len();
        let in_service = || in_service(self.metrics_port).unwrap_or_default();
        wait_for("all servers are in service", in_service, |it| *it == count);
        let running = || self.long_replies().unwrap_or(usize::MAX);
        wait_for("long replies are ended", running, |it| *it == 0);
    }

    /// Statements with long replies that run on any server.
    fn long_replies(&self) -> Result<usize> {
        let text = "SELECT COUNT(*) FROM information_schema.processlist \
                    WHERE info LIKE '%shop.seq_1_to_1024%' AND id <> CONNECTION_ID()";
        let mut total = 0;
        for server in &self.topology.servers {
            let count = server.connect()?.value(text)?.context("a count")?;
            total += count.parse::<usize>()?;
        }
        Ok(total)
    }

    /// Lets the clients work, and makes trouble meanwhile.
    fn turn(&mut self, trouble: Option<Trouble>) -> Result<Turn> {
        let arguments = self.arguments;
        let login = &Login::root(self.port);
        let clients: Vec<Client> = (0..arguments.clients)
            .map(|_| Client::connect(login))
            .collect::<Result<_>>()?;
        let is_over = &AtomicBool::new(false);
        let (turn_end, end) = channel();
        let seconds = Duration::from_secs(arguments.seconds);
        let works = std::thread::scope(|scope| {
            // Ends all threads, however this ends.
            let over = EndOnDrop(is_over);
            let works: Vec<_> = clients
                .into_iter()
                .enumerate()
                .map(|(number, client)| scope.spawn(move || work(client, login, number, is_over)))
                .collect();
            let mut lazy = Vec::new();
            match trouble {
                None => {}
                Some(Trouble::FrozenServer) => self.second().pause()?,
                Some(Trouble::Garbage) => self.relay.go_mad(),
                Some(Trouble::LazyReaders) => {
                    lazy = lazy_readers(login, arguments.lazy)?;
                    let running = || self.long_replies().unwrap_or_default();
                    wait_for("long replies run", running, |it| *it == arguments.lazy);
                }
                Some(Trouble::HalfOpenLogins) => {
                    let (port, count) = (self.port, arguments.half_open);
                    scope.spawn(move || hold_open(port, count, &end));
                }
            }
            let (_timer, never) = channel::<()>();
            let passed = never.recv_timeout(seconds);
            ensure!(passed == Err(RecvTimeoutError::Timeout), "it is a timer");
            drop(over);
            drop(turn_end);
            match trouble {
                Some(Trouble::FrozenServer) => self.second().resume()?,
                Some(Trouble::Garbage) => self.relay.recover(),
                None | Some(Trouble::LazyReaders | Trouble::HalfOpenLogins) => {}
            }
            drop(lazy);
            let joined = works.into_iter().map(|it| it.join());
            let works: Vec<Work> = joined
                .map(|it| it.map_err(|_| anyhow::anyhow!("a client panicked")))
                .collect::<Result<_>>()?;
            Ok(works)
        })?;
        Turn::of(works, seconds)
    }

    /// The replica that freezes.
    fn second(&mut self) -> &mut Process {
        self.topology.servers[1].process()
    }
}

/// Ends the clients of a turn, also if it fails.
struct EndOnDrop<'s>(&'s AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        // Relaxed: who sees it a statement later ends a statement later.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How many servers take reads, as the gateway's page of numbers says.
fn in_service(metrics_port: u16) -> Result<usize> {
    let mut stream = TcpStream::connect(("127.0.0.1", metrics_port))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    let is_one = |line: &&str| line.starts_with("plateau_server_reads{") && line.ends_with(" 1");
    Ok(page.lines().filter(is_one).count())
}

/// What a client has seen.
#[derive(Debug, Default)]
struct Work {
    waits: Vec<Duration>,
    failed: usize,
}

impl Turn {
    fn of(works: Vec<Work>, seconds: Duration) -> Result<Turn> {
        let failed = works.iter().map(|it| it.failed).sum();
        let mut waits: Vec<_> = works.into_iter().flat_map(|it| it.waits).collect();
        waits.sort_unstable();
        let Some(longest) = waits.last() else {
            bail!("no statement was answered");
        };
        let ms = |wait: Duration| wait.as_secs_f64() * 1e3;
        let count = stdx::u64_to_f64(stdx::to_u64(waits.len()));
        Ok(Turn {
            p99_ms: ms(percentile(&waits, 990)),
            longest_ms: ms(*longest),
            per_second: count / seconds.as_secs_f64(),
            failed,
        })
    }
}

/// Selects rows by key until the turn is over. Statements that fail are no waits.
fn work(client: Client, login: &Login, number: usize, is_over: &AtomicBool) -> Work {
    let mut work = Work::default();
    let mut client = Some(client);
    // A stride that visits all rows, from a place of its own.
    let keys = (number * 631..).map(|step| 1 + step * 7919 % ROW_COUNT);
    for key in keys {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let connected = match client.take() {
            Some(connected) => Ok(connected),
            None => Client::connect(login),
        };
        let Ok(mut connected) = connected else {
            work.failed += 1;
            continue;
        };
        let begun = SystemClock.now();
        let text = format!("SELECT text FROM shop.item WHERE id = {key}");
        match connected.query(&text) {
            Ok(Outcome::Rows(_)) => {
                work.waits.push(waited(begun));
                client = Some(connected);
            }
            Ok(_) | Err(_) => work.failed += 1,
        }
    }
    work
}

fn waited(begun: Instant) -> Duration {
    SystemClock.now().since(begun)
}

/// Clients that ask for a gigabyte and read nothing of it.
fn lazy_readers(login: &Login, count: usize) -> Result<Vec<Client>> {
    let ask = |_| {
        let mut client = Client::connect(login)?;
        client.send_query(b"SELECT REPEAT('x', 1048576) FROM shop.seq_1_to_1024")?;
        Ok(client)
    };
    (0..count).map(ask).collect()
}

/// How logins begin that do not go on: not at all, with a half packet, with half a header of the
/// PROXY protocol, with a packet that asks for TLS.
const BEGINS: [&[u8]; 4] = [
    b"",
    b"\x50\0\0\x01\x85\xa6",
    b"PROXY TCP4 10.1.2.3 10.",
    b"\x20\0\0\x01\x85\xae\xff\x01\0\0\0\x01\x2d\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
];

/// Keeps so many logins half open until the turn ends; those that the gateway closes are replaced.
fn hold_open(port: u16, count: usize, end: &Receiver<()>) {
    let mut logins: Vec<Option<TcpStream>> = Vec::new();
    logins.resize_with(count, || None);
    loop {
        for (place, begin) in logins.iter_mut().zip(BEGINS.into_iter().cycle()) {
            let is_open = place.as_mut().is_some_and(is_open);
            if !is_open {
                // One that cannot be opened now is opened in the next round.
                *place = half_open(port, begin).ok();
            }
        }
        if !matches!(
            end.recv_timeout(REOPEN_EVERY),
            Err(RecvTimeoutError::Timeout)
        ) {
            return;
        }
    }
}

fn half_open(port: u16, begin: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(begin)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Whether the other side has not closed a connection; takes what it has sent.
fn is_open(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 1024];
    match stream.read(&mut buffer) {
        Ok(count) => count != 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
