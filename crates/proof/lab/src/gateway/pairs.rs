//! Transactions over two servers of many, with few connections to each: none may wait for ever.
//!
//! Each client adds to a row of its own on two servers, chosen at random and in either order, by
//! hints. A transaction that is rolled back to break a deadlock (1213) is tried again. Any other
//! error fails the command, and so does a sum that is not what was committed.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use env::Clock;
use env::linux::SystemClock;
use metrics::Histogram;
use testkit::client::{Client, Login, Outcome};
use testkit::topology::many;
use testkit::{Folder, Server, free_port};

use super::start;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(long, default_value_t = 64)]
    clients: u32,
    /// Numbers of servers that the two are chosen from.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 16])]
    servers: Vec<u32>,
    /// Connections to a server.
    #[arg(long, default_value_t = 2)]
    limit: u32,
    /// By how many the limit may be exceeded by who holds another connection.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 0])]
    overflows: Vec<u32>,
    /// Length of a turn, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

/// What a client has done.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    committed: u64,
    victims: u64,
}

/// Runs all turns and prints them.
pub fn run(arguments: &Arguments) -> Result<()> {
    let most = arguments.servers.iter().max().copied().unwrap_or_default();
    ensure!(2 <= most, "a transaction needs two servers");
    let servers = many(usize::try_from(most)?)?;
    for server in &servers {
        let mut root = server.connect()?;
        root.run("create database pairs")?;
        root.run("create table pairs.t (id int primary key, amount bigint)")?;
        for id in 0..arguments.clients {
            root.run(&format!("insert into pairs.t values ({id}, 0)"))?;
        }
    }
    println!("| servers | overflow | transactions/s | victims | p50 ms | p99 ms | longest ms |");
    println!("|--:|--:|--:|--:|--:|--:|--:|");
    for &count in &arguments.servers {
        let Some(some) = servers.get(..usize::try_from(count)?) else {
            bail!("there are {most} servers");
        };
        for &overflow in &arguments.overflows {
            turn(arguments, some, overflow)?;
        }
    }
    Ok(())
}

fn turn(arguments: &Arguments, servers: &[Server], overflow: u32) -> Result<()> {
    let folder = Folder::new("gateway")?;
    let port = free_port()?;
    let ports: Vec<u16> = servers.iter().map(Server::port).collect();
    let _gateway = start(&folder, port, &ports, (arguments.limit, Some(overflow)))?;
    let before = sum(servers)?;
    let latency_us = Histogram::default();
    let until = SystemClock.now() + Duration::from_secs(arguments.seconds);
    let count = stdx::to_u64(servers.len());
    let tallies = thread::scope(|scope| {
        let latency_us = &latency_us;
        let clients: Vec<_> = (0..arguments.clients)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = Client::connect(&Login::root(port))?;
                    let mut tally = Tally::default();
                    let mut random = env::Random::new(u64::from(number));
                    while SystemClock.now() < until {
                        let first = random.next_u64() % count;
                        let second = (first + 1 + random.next_u64() % (count - 1)) % count;
                        let begun = SystemClock.now();
                        while !is_done(&mut client, number, [first, second])? {
                            tally.victims += 1;
                        }
                        tally.committed += 1;
                        let took = SystemClock.now().since(begun).as_micros();
                        latency_us.record(u64::try_from(took)?);
                    }
                    Ok(tally)
                })
            })
            .collect();
        let joined = clients
            .into_iter()
            .map(|it| it.join().expect("it does not panic"));
        joined.collect::<Result<Vec<Tally>>>()
    })?;
    let committed: u64 = tallies.iter().map(|it| it.committed).sum();
    let victims: u64 = tallies.iter().map(|it| it.victims).sum();
    let written = sum(servers)? - before;
    ensure!(
        written == 2 * committed,
        "{committed} transactions over two servers were committed, but {written} changes are there"
    );
    let idle = tallies.iter().filter(|it| it.committed == 0).count();
    ensure!(idle == 0, "{idle} clients have committed nothing");
    let ms = |us: u64| stdx::u64_to_f64(us) / 1e3;
    let latency = latency_us.snapshot();
    println!(
        "| {} | {overflow} | {} | {victims} | {:.2} | {:.2} | {:.2} |",
        servers.len(),
        committed / arguments.seconds,
        ms(latency.quantile(500)),
        ms(latency.quantile(990)),
        ms(latency.quantile(1000)),
    );
    Ok(())
}

/// The changes that all servers have.
fn sum(servers: &[Server]) -> Result<u64> {
    let mut sum = 0;
    for server in servers {
        let value = server.connect()?.value("select sum(amount) from pairs.t")?;
        sum += value.context("rows")?.parse::<u64>()?;
    }
    Ok(sum)
}

/// Carries out a transaction over two servers. False if it was rolled back to break a deadlock.
fn is_done(client: &mut Client, id: u32, servers: [u64; 2]) -> Result<bool> {
    let [first, second] = servers.map(|it| it + 1);
    let change = |server: u64| {
        format!(
            "/* plateau: server=db{server} */ update pairs.t set amount = amount + 1 \
             where id = {id}"
        )
    };
    let statements = [
        format!("/* plateau: server=db{first} */ begin"),
        change(first),
        change(second),
        "commit".to_owned(),
    ];
    for statement in &statements {
        match client.query(statement)? {
            Outcome::Error(error) if error.number == 1213 => return Ok(false),
            Outcome::Error(error) => bail!("{statement}: {error}"),
            Outcome::Done(_) | Outcome::Rows(_) => {}
        }
    }
    Ok(true)
}
