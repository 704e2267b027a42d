//! Many clients and many servers, where each statement names its server at random: what the limits
//! of connections cost.
//!
//! With a service time (the server sleeps) the gateway is held to a simulated queue that serves
//! first come, first served, with the same limits and times. Without one, the throughput with the
//! least limit is held to that with the greatest.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use anyhow::{Result, ensure};
use metrics::Histogram;
use testkit::process::ThreadTimes;
use testkit::topology::many;
use testkit::{Folder, Server, free_port};

use crate::generator::{Address, Generator, Protocol, Shape};
use crate::sample::{Count, LoadArguments, Sample};

use super::cost::median;
use super::start;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(long, default_value_t = 300)]
    clients: u32,
    #[arg(long, default_value_t = 16)]
    servers: u32,
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

/// The throughput that is wanted, as a part of what it is compared with.
const THROUGHPUT_MIN: f64 = 0.98;

/// The 99th percentile that is allowed, as a part of the simulated one.
const P99_MAX: f64 = 1.2;

/// One cell of the table.
struct Cell {
    workload: &'static str,
    accounts: u32,
    limit: u32,
    samples: Vec<(Sample, f64)>,
}

/// Measures all cells and prints them; an error if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let servers = many(usize::try_from(arguments.servers)?)?;
    let account_count = arguments.accounts.iter().max().copied().unwrap_or_default();
    for server in &servers {
        prepare(server, account_count)?;
    }
    let single = alone(arguments, &servers)?;
    println!("service time with one client: {single:.2} ms");
    println!(
        "| statement | accounts | limit | statements/s | p50 ms | p99 ms | gateway us | simulated \
         /s | p99 ms |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut missed = Vec::new();
    for workload in ["named_sleep", "named_constant"] {
        for &accounts in &arguments.accounts {
            let mut cells: Vec<Cell> = Vec::new();
            for &limit in &arguments.limits {
                let samples = Vec::new();
                cells.push(Cell {
                    workload,
                    accounts,
                    limit,
                    samples,
                });
            }
            for _ in 0..arguments.rounds {
                for cell in &mut cells {
                    let sample = cell.turn(arguments, &servers)?;
                    cell.samples.push(sample);
                }
            }
            for cell in &cells {
                let simulated = simulate(arguments, cell.limit, single);
                cell.print(&simulated);
                missed.extend(cell.missed(&cells, &simulated));
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

fn prepare(server: &Server, account_count: u32) -> Result<()> {
    let mut client = server.connect()?;
    client.run("create database sbtest")?;
    for number in 0..account_count {
        client.run(&format!("create user user{number}@'%'"))?;
        client.run(&format!("grant all on sbtest.* to user{number}@'%'"))?;
    }
    Ok(())
}

/// What one client waits for a statement that sleeps, in milliseconds.
fn alone(arguments: &Arguments, servers: &[Server]) -> Result<f64> {
    let mut cell = Cell {
        workload: "named_sleep",
        accounts: 1,
        limit: 1,
        samples: Vec::new(),
    };
    let single = Arguments {
        clients: 1,
        limits: Vec::new(),
        accounts: Vec::new(),
        load: arguments.load.clone(),
        ..*arguments
    };
    let (sample, _) = cell.turn(&single, servers)?;
    Ok(1e3 / sample.per_second)
}

impl Cell {
    /// A gateway with this limit serves the clients for a while. Returns what was measured, and the
    /// gateway's processor time a statement in microseconds.
    fn turn(&mut self, arguments: &Arguments, servers: &[Server]) -> Result<(Sample, f64)> {
        let folder = Folder::new("gateway")?;
        let port = free_port()?;
        let ports: Vec<u16> = servers.iter().map(Server::port).collect();
        let gateway = start(&folder, port, &ports, (self.limit, None))?;
        let load = LoadArguments {
            tables: arguments.servers,
            ..arguments.load.clone()
        };
        let shape = Shape {
            protocol: Protocol::Text,
            account_count: self.accounts,
            ..load.shape(Address::Tcp(port), self.workload, arguments.clients)
        };
        let mut generator = Generator::connect(&shape)?;
        generator.warm(Duration::from_millis(500))?;
        let before = ThreadTimes::of(gateway.id())?;
        let mut count = Count::default();
        count.run(&mut generator, Duration::from_secs(arguments.seconds))?;
        let after = ThreadTimes::of(gateway.id())?;
        let sample = count.sample(0.0);
        let statements = sample.per_second * stdx::u64_to_f64(arguments.seconds);
        let gateway_us = stdx::u64_to_f64(after.since_ns(&before)) / 1e3 / statements.max(1.0);
        Ok((sample, gateway_us))
    }

    fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(|(sample, _)| of(sample)).collect())
    }

    fn per_second(&self) -> f64 {
        self.median(|it| it.per_second)
    }

    /// Without a service time there is nothing to be simulated.
    fn is_simulated(&self) -> bool {
        self.workload == "named_sleep"
    }

    fn print(&self, simulated: &Simulated) {
        let gateway_us = median(self.samples.iter().map(|it| it.1).collect());
        let beside = match self.is_simulated() {
            true => format!("{:.0} | {:.2}", simulated.per_second, simulated.p99_ms),
            false => " | ".to_owned(),
        };
        println!(
            "| {} | {} | {} | {:.0} | {:.2} | {:.2} | {gateway_us:.2} | {beside} |",
            self.workload,
            self.accounts,
            self.limit,
            self.per_second(),
            self.median(|it| it.p50_ms),
            self.median(|it| it.p99_ms),
        );
    }

    /// The limits that it misses, beside the cells of the other numbers of connections.
    fn missed(&self, cells: &[Cell], simulated: &Simulated) -> Vec<String> {
        let mut missed = Vec::new();
        let name = format!(
            "{} with {} accounts and {} connections",
            self.workload, self.accounts, self.limit
        );
        let is_simulated = self.is_simulated();
        let is_least = cells.iter().all(|it| self.limit <= it.limit);
        if !is_simulated && !is_least {
            return missed;
        }
        let beside = match is_simulated {
            true => simulated.per_second,
            false => cells.first().map_or(0.0, Cell::per_second),
        };
        let share = self.per_second() / beside;
        if share < THROUGHPUT_MIN {
            missed.push(format!(
                "{name}: {share:.3} of the throughput, at least {THROUGHPUT_MIN} wanted"
            ));
        }
        let p99 = self.median(|it| it.p99_ms) / simulated.p99_ms;
        if is_simulated && P99_MAX < p99 {
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
