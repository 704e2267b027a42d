//! Many clients and many servers, where each statement names its server at random: what the limits
//! of connections cost.
//!
//! With a service time (the server sleeps) the gateway is held to a simulated queue that serves
//! first come, first served, with the same limits and times. Without one (a row by its key), the
//! throughput with the least limit is held to that with the greatest.
//!
//! Beside the gateway stands a MariaDB with Spider, which is held to nothing. It gets the same
//! texts: the gateway reads the server from the hint, Spider from the name of the table. Two loads
//! are the gateway's alone. SLEEP would run in Spider itself. And Spider logs in to the servers as
//! one account, whoever its clients are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use metrics::Histogram;
use testkit::process::{Process, ThreadTimes};
use testkit::spider::{NO_CONNECTION, Spider};
use testkit::topology::many;
use testkit::{Client, Folder, Server, free_port, wait_for};

use crate::generator::{Address, Generator, Protocol, Shape, account, create_accounts};
use crate::sample::{Count, LoadArguments, Sample};

use super::cost::median;
use super::{WAIT_SECONDS, start};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(long, default_value_t = 300)]
    clients: u32,
    #[arg(long, default_value_t = 16)]
    servers: u32,
    /// What is sent: `named_sleep` has a service time, `named_select` has none.
    #[arg(long, value_delimiter = ',', default_values = [SLEEP, SELECT])]
    statements: Vec<String>,
    /// Connections to a server.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 50, 20, 10, 5])]
    limits: Vec<u32>,
    /// Accounts that the clients are spread over.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 200])]
    accounts: Vec<u32>,
    /// Turns of each limit.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a turn, in seconds.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    #[command(flatten)]
    load: LoadArguments,
}

/// The workloads.
const SLEEP: &str = "named_sleep";
const SELECT: &str = "named_select";

/// The throughput that is wanted, as a part of what it is compared with.
const THROUGHPUT_MIN: f64 = 0.98;

/// The 99th percentile that is allowed, as a part of the simulated one.
const P99_MAX: f64 = 1.2;

/// The database of the clients' tables.
const DATABASE: &str = "sbtest";

/// The table of a server has the server's number behind its name.
const TABLE: &str = "sbtest";
const COLUMNS: &str = "(id int not null primary key, c char(120) not null)";

/// Of each table: they fit into the memory of a small server.
const ROWS: u32 = 1000;

/// What stands before the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gateway,
    Spider,
}

/// One that runs.
enum Front {
    Gateway {
        process: Process,
        /// Has its settings and data, and is removed after it.
        _folder: Folder,
    },
    Spider(Server),
}

/// One cell of the table.
struct Cell {
    kind: Kind,
    workload: String,
    accounts: u32,
    limit: u32,
    turns: Vec<Turn>,
}

/// What was measured in a turn.
struct Turn {
    sample: Sample,
    /// Processor time of what stands before the servers, in microseconds a statement.
    front_us: f64,
    /// The most connections that a server had at a time. Two of the gateway's are beside its limit:
    /// its monitor's, and that by which it reads the accounts.
    connections: u64,
}

/// Measures all cells and prints them; an error if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let servers = many(usize::try_from(arguments.servers)?)?;
    let account_count = arguments.accounts.iter().max().copied().unwrap_or_default();
    for (number, server) in (1..).zip(&servers) {
        prepare(server, account_count, number)?;
    }
    let mut service_ms = None;
    if arguments.statements.iter().any(|it| it == SLEEP) {
        let single = alone(arguments, &servers)?;
        println!("service time with one client: {single:.2} ms");
        service_ms = Some(single);
    }
    println!(
        "| statement | accounts | limit | | statements/s | p50 ms | p99 ms | its us | failed | \
         connections | simulated /s | p99 ms |"
    );
    println!("|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut missed = Vec::new();
    for workload in &arguments.statements {
        for &accounts in &arguments.accounts {
            let mut cells = Vec::new();
            for &limit in &arguments.limits {
                for &kind in kinds(workload, accounts) {
                    cells.push(Cell::new(kind, workload, (accounts, limit)));
                }
            }
            for _ in 0..arguments.rounds {
                for cell in &mut cells {
                    let turn = cell.turn(arguments, &servers);
                    let turn = turn.with_context(|| cell.name())?;
                    cell.turns.push(turn);
                }
            }
            for cell in &cells {
                // Without a service time there is nothing to be simulated.
                let service_ms = service_ms.filter(|_| workload == SLEEP);
                let simulated = service_ms.map(|ms| simulate(arguments, cell.limit, ms));
                cell.print(simulated.as_ref());
                missed.extend(cell.missed(&cells, simulated.as_ref()));
            }
        }
    }
    ensure!(
        missed.is_empty(),
        "limits are missed:\n{}",
        missed.join("\n")
    );
    Ok(())
}

fn prepare(server: &Server, account_count: u32, number: u32) -> Result<()> {
    let mut client = server.connect()?;
    client.run(&format!("create database {DATABASE}"))?;
    create_accounts(&mut client, account_count, DATABASE)?;
    client.run(&format!(
        "create table {DATABASE}.{TABLE}{number} {COLUMNS}"
    ))?;
    client.run(&format!("use {DATABASE}"))?;
    client.run(&format!(
        "insert into {TABLE}{number} select seq, repeat('c', 119) from seq_1_to_{ROWS}"
    ))?;
    Ok(())
}

/// What a client waits for a statement that sleeps, if it is alone, in milliseconds.
fn alone(arguments: &Arguments, servers: &[Server]) -> Result<f64> {
    let mut cell = Cell::new(Kind::Gateway, SLEEP, (1, 1));
    let single = Arguments {
        clients: 1,
        statements: Vec::new(),
        limits: Vec::new(),
        accounts: Vec::new(),
        load: arguments.load.clone(),
        ..*arguments
    };
    let turn = cell.turn(&single, servers)?;
    Ok(1e3 / turn.sample.per_second)
}

/// Those whose figures for this load can be compared.
fn kinds(workload: &str, accounts: u32) -> &'static [Kind] {
    match (workload, accounts) {
        (SELECT, 1) => &[Kind::Gateway, Kind::Spider],
        _ => &[Kind::Gateway],
    }
}

impl Front {
    /// Starts one before these servers, with so many connections to each.
    fn start(kind: Kind, limit: u32, clients: u32, servers: &[Server]) -> Result<(Front, u16)> {
        match kind {
            Kind::Gateway => {
                let folder = Folder::new("gateway")?;
                let port = free_port()?;
                let ports: Vec<u16> = servers.iter().map(Server::port).collect();
                let front = Front::Gateway {
                    process: start(&folder, port, &ports, (limit, None))?,
                    _folder: folder,
                };
                Ok((front, port))
            }
            Kind::Spider => {
                let server = spider(&account(0), limit, clients).start(servers)?;
                create_accounts(&mut server.connect()?, 1, DATABASE)?;
                let port = server.port();
                Ok((Front::Spider(server), port))
            }
        }
    }

    fn times(&mut self) -> Result<ThreadTimes> {
        match self {
            Front::Gateway { process, .. } => ThreadTimes::of(process.id()),
            Front::Spider(server) => ThreadTimes::of(server.process().id()),
        }
    }
}

fn spider(user: &str, limit: u32, clients: u32) -> Spider<'_> {
    Spider {
        user,
        database: DATABASE,
        table: TABLE,
        columns: COLUMNS,
        connections: limit,
        wait_seconds: WAIT_SECONDS,
        clients,
    }
}

/// Sees how many connections each server has at most. The connections by which it sees that are not
/// counted, since they last.
struct Watch {
    roots: Vec<Client>,
}

impl Watch {
    /// Begins to count, when those of the turn before are gone.
    fn begin(servers: &[Server]) -> Result<Watch> {
        let mut roots = Vec::new();
        for server in servers {
            let mut root = server.connect()?;
            let mut count = || root.status("Threads_connected").ok();
            wait_for("a server without clients", &mut count, |it| *it == Some(1));
            root.run("flush status")?;
            roots.push(root);
        }
        Ok(Watch { roots })
    }

    fn most(mut self) -> Result<u64> {
        let mut most = 0;
        for root in &mut self.roots {
            most = most.max(root.status("Max_used_connections")? - 1);
        }
        Ok(most)
    }
}

impl Cell {
    fn new(kind: Kind, workload: &str, (accounts, limit): (u32, u32)) -> Cell {
        Cell {
            kind,
            workload: workload.to_owned(),
            accounts,
            limit,
            turns: Vec::new(),
        }
    }

    /// Serves the clients for a while, with this limit.
    fn turn(&mut self, arguments: &Arguments, servers: &[Server]) -> Result<Turn> {
        let watch = Watch::begin(servers)?;
        let (mut front, port) = Front::start(self.kind, self.limit, arguments.clients, servers)?;
        let load = LoadArguments {
            tables: arguments.servers,
            rows: ROWS,
            ..arguments.load.clone()
        };
        let shape = Shape {
            protocol: Protocol::Text,
            account_count: self.accounts,
            failures: match self.kind {
                Kind::Gateway => &[],
                Kind::Spider => &[NO_CONNECTION],
            },
            ..load.shape(Address::Tcp(port), &self.workload, arguments.clients)
        };
        let mut generator = Generator::connect(&shape)?;
        generator.warm(Duration::from_millis(500))?;
        let before = front.times()?;
        let mut count = Count::default();
        count.run(&mut generator, Duration::from_secs(arguments.seconds))?;
        let after = front.times()?;
        let sample = count.sample(0.0);
        let statements = sample.per_second * stdx::u64_to_f64(arguments.seconds);
        Ok(Turn {
            sample,
            front_us: stdx::u64_to_f64(after.since_ns(&before)) / 1e3 / statements.max(1.0),
            connections: watch.most()?,
        })
    }

    fn median(&self, of: impl Fn(&Turn) -> f64) -> f64 {
        median(self.turns.iter().map(of).collect())
    }

    fn per_second(&self) -> f64 {
        self.median(|it| it.sample.per_second)
    }

    fn name(&self) -> String {
        format!(
            "{} through {:?} with {} accounts and {} connections",
            self.workload, self.kind, self.accounts, self.limit
        )
    }

    fn print(&self, simulated: Option<&Simulated>) {
        let kind = match self.kind {
            Kind::Gateway => "gateway",
            Kind::Spider => "spider",
        };
        let failures: u64 = self.turns.iter().map(|it| it.sample.failures).sum();
        let connections = self.turns.iter().map(|it| it.connections).max();
        let beside = match simulated {
            Some(it) => format!("{:.0} | {:.2}", it.per_second, it.p99_ms),
            None => " | ".to_owned(),
        };
        print!(
            "| {} | {} | {} | {kind} ",
            self.workload, self.accounts, self.limit
        );
        println!(
            "| {:.0} | {:.2} | {:.2} | {:.2} | {failures} | {} | {beside} |",
            self.per_second(),
            self.median(|it| it.sample.p50_ms),
            self.median(|it| it.sample.p99_ms),
            self.median(|it| it.front_us),
            connections.unwrap_or_default(),
        );
    }

    /// The limits that it misses: beside what is simulated, or with the fewest connections beside
    /// the most. The others' are not looked at, nor is Spider.
    fn missed(&self, cells: &[Cell], simulated: Option<&Simulated>) -> Vec<String> {
        let mut missed = Vec::new();
        let name = self.name();
        let is_least = cells.iter().all(|it| self.limit <= it.limit);
        if self.kind == Kind::Spider || simulated.is_none() && !is_least {
            return missed;
        }
        let of_kind = cells.iter().filter(|it| it.kind == self.kind);
        let most = of_kind.max_by_key(|it| it.limit);
        let beside = match simulated {
            Some(it) => it.per_second,
            None => most.map_or(0.0, Cell::per_second),
        };
        let share = self.per_second() / beside;
        if share < THROUGHPUT_MIN {
            missed.push(format!(
                "{name}: {share:.3} of the throughput, at least {THROUGHPUT_MIN} wanted"
            ));
        }
        let p99 = simulated.map(|it| self.median(|turn| turn.sample.p99_ms) / it.p99_ms);
        if let Some(p99) = p99
            && P99_MAX < p99
        {
            missed.push(format!(
                "{name}: {p99:.2} of the 99th percentile, at most {P99_MAX} wanted"
            ));
        }
        missed
    }
}

/// What a queue gives that serves first come, first served.
struct Simulated {
    per_second: f64,
    p99_ms: f64,
}

/// Clients that each ask a random server, again and again; a server serves so many at a time, each
/// for `service_ms`.
fn simulate(arguments: &Arguments, limit: u32, service_ms: f64) -> Simulated {
    /// In microseconds.
    const LENGTH: u64 = 60_000_000;
    let service = stdx::f64_to_u64(service_ms * 1e3).max(1);
    let mut random = env::Random::new(7);
    let mut free = vec![limit; usize::try_from(arguments.servers).unwrap_or(1)];
    let mut lines = vec![VecDeque::new(); free.len()];
    // When an event happens: a client asks (`None`), or is served by a server.
    let mut events = BinaryHeap::new();
    for client in 0..u64::from(arguments.clients) {
        events.push(Reverse((client * 37 % service, None, client)));
    }
    let latency_us = Histogram::default();
    let mut served = 0_u64;
    while let Some(Reverse((now, server, asked_at))) = events.pop() {
        if LENGTH < now {
            break;
        }
        if let Some(server) = server {
            // Its client has waited since `asked_at`, and asks again; who waits here is next.
            latency_us.record(now - asked_at);
            served += 1;
            match VecDeque::pop_front(&mut lines[server]) {
                Some(next) => events.push(Reverse((now + service, Some(server), next))),
                None => free[server] += 1,
            }
        }
        let server = stdx::to_usize(random.next_u64() % stdx::to_u64(free.len()));
        if 0 < free[server] {
            free[server] -= 1;
            events.push(Reverse((now + service, Some(server), now)));
        } else {
            lines[server].push_back(now);
        }
    }
    let seconds = stdx::u64_to_f64(LENGTH) / 1e6;
    Simulated {
        per_second: stdx::u64_to_f64(served) / seconds,
        p99_ms: stdx::u64_to_f64(latency_us.snapshot().quantile(990)) / 1e3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Distribution;

    fn cell(kind: Kind, limit: u32, per_second: f64, p99_ms: f64) -> Cell {
        let sample = Sample {
            per_second,
            p50_ms: 1.0,
            p95_ms: 1.0,
            p99_ms,
            p999_ms: p99_ms,
            longest_ms: p99_ms,
            lateness: None,
            cpu_us: 0.0,
            load_cpu_us: 0.0,
            restarts: 0,
            failures: 0,
        };
        let mut cell = Cell::new(kind, SELECT, (1, limit));
        cell.turns.push(Turn {
            sample,
            front_us: 1.0,
            connections: u64::from(limit),
        });
        cell
    }

    #[test]
    fn spider_stands_beside_where_it_does_the_same() {
        assert_eq!(kinds(SELECT, 1), [Kind::Gateway, Kind::Spider]);
        assert_eq!(kinds(SELECT, 200), [Kind::Gateway]);
        assert_eq!(kinds(SLEEP, 1), [Kind::Gateway]);
    }

    /// The clients' statements wait in vain, since a transaction has the only connection.
    #[test]
    fn a_wait_in_vain_is_counted_as_a_failure_alone() {
        let servers = many(1).unwrap();
        prepare(&servers[0], 1, 1).unwrap();
        let user = account(0);
        let spider = Spider {
            wait_seconds: 1,
            ..spider(&user, 1, 3)
        };
        let front = spider.start(&servers).unwrap();
        let mut holder = front.connect().unwrap();
        holder.run("begin").unwrap();
        let count = format!("select count(*) from {DATABASE}.{TABLE}1");
        let rows = holder.value(&count).unwrap();
        assert_eq!(rows, Some(ROWS.to_string()));
        let load = LoadArguments {
            tables: 1,
            rows: ROWS,
            rand: Distribution::Uniform,
            text: true,
            threads: 1,
        };
        let shape = Shape {
            failures: &[NO_CONNECTION],
            ..load.shape(Address::Tcp(front.port()), SELECT, 2)
        };
        let mut generator = Generator::connect(&shape).unwrap();
        let mut run = || generator.run(Duration::from_millis(100)).unwrap();
        let mut failed = run();
        while failed.failure_count == 0 {
            failed = run();
        }
        assert_eq!((failed.statement_count, failed.restart_count), (0, 0));
        holder.run("commit").unwrap();
        while run().statement_count == 0 {}
    }

    #[test]
    fn fewest_connections_are_held_to_the_most() {
        let missed = |least: f64| {
            let cells = [
                cell(Kind::Gateway, 5, least, 1.0),
                cell(Kind::Spider, 5, 1.0, 1.0),
                cell(Kind::Gateway, 10, 1.0, 1.0),
                cell(Kind::Spider, 100, 9000.0, 1.0),
                cell(Kind::Gateway, 100, 1000.0, 1.0),
            ];
            let missed = cells.iter().map(|it| it.missed(&cells, None).len());
            missed.collect::<Vec<_>>()
        };
        assert_eq!(missed(979.0), [1, 0, 0, 0, 0]);
        assert_eq!(missed(981.0), [0; 5]);
    }

    #[test]
    fn each_limit_is_held_to_the_simulated_queue() {
        let simulated = Simulated {
            per_second: 1000.0,
            p99_ms: 10.0,
        };
        let missed = |per_second, p99_ms| {
            let own = cell(Kind::Gateway, 10, per_second, p99_ms);
            let cells = [cell(Kind::Gateway, 5, 1.0, 1.0)];
            own.missed(&cells, Some(&simulated)).len()
        };
        assert_eq!(missed(981.0, 11.9), 0);
        assert_eq!(missed(979.0, 11.9), 1);
        assert_eq!(missed(979.0, 12.1), 2);
    }
}
