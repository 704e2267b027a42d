//! What clients get whose sessions share connections, beside clients with connections of their own.
//!
//! The server is a MariaDB with a thread for each connection. Before it stands a gateway with
//! `read-write-split` and few connections. Turns of all numbers of clients alternate with those of
//! clients that are connected directly, so what drifts falls on all. Each has the median of its
//! turns.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use testkit::process::ThreadTimes;
use testkit::{Folder, Launch, ServerKind, free_port};

use crate::generator::{Address, Distribution, Generator};
use crate::load::fill;
use crate::sample::{Count, LoadArguments, Sample};

use super::cost::median;
use super::start;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What clients do: point_select, read_write, ..
    #[arg(long, default_value = "point_select")]
    workload: String,
    /// Numbers of clients of the gateway. The first is what the others are compared with.
    #[arg(long, value_delimiter = ',', default_values_t = [32, 2048])]
    clients: Vec<u32>,
    /// Numbers of clients that are connected directly.
    #[arg(long, value_delimiter = ',')]
    direct: Vec<u32>,
    /// Connections that the clients of the gateway share.
    #[arg(long, default_value_t = 32)]
    connections: u32,
    /// Turns of each.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Length of a turn, in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// The server has the first processor for itself, gateway and load have the others: as where
    /// each has its own machine.
    #[arg(long)]
    apart: bool,
    #[command(flatten)]
    load: LoadArguments,
}

/// The throughput of many clients, as a part of that of the first number of them.
const THROUGHPUT_MIN: f64 = 0.9;

/// The 95th percentile, as a part of the clients by the throughput, which is the mean.
const P95_MAX: f64 = 2.0;

/// Clients of one kind, and what was measured of them.
struct Row {
    name: &'static str,
    clients: u32,
    port: u16,
    /// Statements of a transaction.
    steps: f64,
    samples: Vec<Taken>,
}

/// What was measured in a turn: processor times in microseconds a statement.
struct Taken {
    sample: Sample,
    gateway_us: f64,
    server_us: f64,
}

/// Measures all numbers of clients and prints them; an error if a limit is missed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let processors = sched_getaffinity(None)?;
    if arguments.apart {
        run_on(&processors, |place| place == 0)?;
    }
    let mut server = Launch::new(ServerKind::MariaDb)
        .with("--max-connections=20000")
        .with("--max-prepared-stmt-count=1000000")
        .with("--innodb-flush-log-at-trx-commit=2")
        .start()?;
    if arguments.apart {
        run_on(&processors, |place| 0 < place)?;
    }
    let LoadArguments { tables, rows, .. } = arguments.load;
    fill(server.port(), "oltp_read_write", (tables, rows))?;
    let folder = Folder::new("gateway")?;
    let gateway_port = free_port()?;
    let gateway = start(
        &folder,
        gateway_port,
        &[server.port()],
        (arguments.connections, None),
    )?;
    let row = |name, port| {
        move |clients: &u32| Row {
            name,
            clients: *clients,
            port,
            steps: 1.0,
            samples: Vec::new(),
        }
    };
    let shared = arguments.clients.iter().map(row("gateway", gateway_port));
    let direct = arguments.direct.iter().map(row("direct", server.port()));
    let mut rows: Vec<Row> = shared.chain(direct).collect();
    for _ in 0..arguments.rounds {
        for row in &mut rows {
            let taken = row.turn(arguments, (gateway.id(), server.process().id()));
            let told = || format!("{} with {} clients", row.name, row.clients);
            let taken = taken.with_context(told)?;
            row.samples.push(taken);
        }
    }
    print(arguments, &rows);
    let missed = missed(arguments.clients.len(), &rows);
    ensure!(
        missed.is_empty(),
        "limits are missed:\n{}",
        missed.join("\n")
    );
    Ok(())
}

/// What this thread starts from now on runs on those of the processors whose places are wanted.
fn run_on(processors: &CpuSet, is_wanted: impl Fn(usize) -> bool) -> Result<()> {
    let all = (0..CpuSet::MAX_CPU).filter(|it| processors.is_set(*it));
    let mut wanted = CpuSet::new();
    for (place, processor) in all.enumerate() {
        if is_wanted(place) {
            wanted.set(processor);
        }
    }
    ensure!(wanted.count() != 0, "there is one processor only");
    sched_setaffinity(None, &wanted)?;
    Ok(())
}

impl Row {
    /// Connects the clients, lets them work, and ends them: others must not be in the way.
    fn turn(&mut self, arguments: &Arguments, (gateway, server): (u32, u32)) -> Result<Taken> {
        let load = LoadArguments {
            rand: Distribution::Uniform,
            ..arguments.load.clone()
        };
        let shape = load.shape(Address::Tcp(self.port), &arguments.workload, self.clients);
        let mut generator = Generator::connect(&shape)?;
        self.steps = generator.step_count();
        generator.warm(Duration::from_millis(500))?;
        let before = (ThreadTimes::of(gateway)?, ThreadTimes::of(server)?);
        let mut count = Count::default();
        count.run(&mut generator, Duration::from_secs(arguments.seconds))?;
        let after = (ThreadTimes::of(gateway)?, ThreadTimes::of(server)?);
        let sample = count.sample(0.0);
        let statements = sample.per_second * stdx::u64_to_f64(arguments.seconds);
        let each = |ns: u64| stdx::u64_to_f64(ns) / 1e3 / statements.max(1.0);
        Ok(Taken {
            sample,
            gateway_us: each(after.0.since_ns(&before.0)),
            server_us: each(after.1.since_ns(&before.1)),
        })
    }

    fn median(&self, of: impl Fn(&Taken) -> f64) -> f64 {
        median(self.samples.iter().map(of).collect())
    }

    fn per_second(&self) -> f64 {
        self.median(|it| it.sample.per_second)
    }

    /// The 95th percentile of transactions, as a part of their mean, by the throughput.
    fn p95_share(&self) -> f64 {
        let per_second = self.per_second().max(1.0) / self.steps;
        self.median(|it| it.sample.p95_ms) * per_second / (f64::from(self.clients) * 1e3)
    }
}

fn print(arguments: &Arguments, rows: &[Row]) {
    println!(
        "| {} | clients | statements/s | p95 ms | p99 ms | p95 N/X | gateway us | server us | \
         load us |",
        arguments.workload
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for row in rows {
        println!(
            "| {} | {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            row.name,
            row.clients,
            row.per_second(),
            row.median(|it| it.sample.p95_ms),
            row.median(|it| it.sample.p99_ms),
            row.p95_share(),
            row.median(|it| it.gateway_us),
            row.median(|it| it.server_us),
            row.median(|it| it.sample.load_cpu_us),
        );
    }
}

/// The limits that the clients of the gateway miss, which are the first rows.
fn missed(shared_count: usize, rows: &[Row]) -> Vec<String> {
    let mut missed = Vec::new();
    let shared = rows.get(..shared_count).unwrap_or_default();
    let best = shared.first().map_or(0.0, Row::per_second);
    for row in shared.iter().skip(1) {
        let share = row.per_second() / best;
        let clients = row.clients;
        if share < THROUGHPUT_MIN {
            missed.push(format!(
                "{clients} clients have {share:.2} of the throughput, at least {THROUGHPUT_MIN} \
                 wanted"
            ));
        }
        let p95 = row.p95_share();
        if P95_MAX < p95 {
            missed.push(format!(
                "{clients} clients have a 95th percentile of {p95:.2} N/X, at most {P95_MAX} wanted"
            ));
        }
    }
    missed
}
