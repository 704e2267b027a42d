//! Whether a cache of results ever tells an old one: many clients read and change counters through
//! gateways, before a primary and replicas that are late by design.
//!
//! Each row has a counter that only rises. A writer notes the value once its change was
//! acknowledged. A reader looks at that note before it asks, and must not be told less. Half of the
//! clients use prepared statements, some use transactions, and rows are read alone and several at a
//! time.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use env::linux::SystemClock;
use env::{Clock as _, Instant};
use sync::atomic::{AtomicU64, Ordering};
use testkit::process::Process;
use testkit::server::plateau_program;
use testkit::topology::Replicated;
use testkit::{Client, Folder, Login, Server, free_port};

use super::READY_LIMIT;
use crate::random::Random;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How long all of it takes, in seconds: a part for each kind of cache.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Clients.
    #[arg(long, default_value_t = 64)]
    clients: u64,
    /// Rows, each with a counter.
    #[arg(long, default_value_t = 1000)]
    rows: u64,
    /// Seconds by which replicas are late.
    #[arg(long, default_value_t = 1)]
    delay: u64,
    /// The seed of all clients.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The services that are measured: router, and whose results are shared.
const KINDS: [(&str, &str); 4] = [
    ("read-write-split", "all"),
    ("read-write-split", "worker"),
    ("read-connection", "all"),
    ("read-connection", "worker"),
];

/// Of a thousand actions, so many are changes. Each makes all results void, so that rows are read
/// again between two of them.
const CHANGES_PERMILLE: u64 = 2;

const COM_STMT_PREPARE: u8 = 22;
const COM_STMT_EXECUTE: u8 = 23;

/// What one client has done.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    reads: u64,
    changes: u64,
}

/// Runs all of it. An error if a client was told an old value.
pub fn run(arguments: &Arguments) -> Result<()> {
    let topology = Replicated::start(2)?;
    let mut root = topology.connect(0)?;
    root.run("CREATE DATABASE counted")?;
    root.run("CREATE TABLE counted.c (id INT PRIMARY KEY, v BIGINT UNSIGNED, pad CHAR(60))")?;
    let rows: Vec<String> = (0..arguments.rows)
        .map(|id| format!("({id}, 0, '-')"))
        .collect();
    root.run(&format!("INSERT INTO counted.c VALUES {}", rows.join(",")))?;
    for replica in 1..topology.servers.len() {
        topology.wait_for_replica(replica, 0)?;
        let mut client = topology.connect(replica)?;
        client.run("STOP SLAVE")?;
        client.run(&format!(
            "CHANGE MASTER TO MASTER_DELAY = {}",
            arguments.delay
        ))?;
        client.run("START SLAVE")?;
    }
    let servers: Vec<u16> = topology.servers.iter().map(Server::port).collect();
    let acknowledged: Vec<AtomicU64> = (0..arguments.rows).map(|_| AtomicU64::new(0)).collect();
    let share = Duration::from_secs(arguments.seconds) / u32::try_from(KINDS.len())?;
    println!("| router | sharing | reads | changes | hits | voids |");
    println!("|---|---|--:|--:|--:|--:|");
    for kind in KINDS {
        // What another gateway has acknowledged is not known to this one.
        for replica in 1..topology.servers.len() {
            topology.wait_for_replica(replica, 0)?;
        }
        let folder = Folder::new("stale")?;
        let (port, admin) = (free_port()?, free_port()?);
        let _gateway = start(&folder, (port, admin), &servers, kind)?;
        let until = SystemClock.now() + share;
        let seed = arguments.seed;
        let done = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..arguments.clients)
                .map(|number| {
                    let acknowledged = &acknowledged;
                    let random = Random::new(seed * 1_000_000 + number);
                    scope.spawn(move || play(port, number, (random, until), acknowledged))
                })
                .collect();
            let mut all = Done::default();
            for client in clients {
                let one = client.join().expect("a client does not panic")?;
                all.reads += one.reads;
                all.changes += one.changes;
            }
            anyhow::Ok(all)
        })?;
        let mut operator = Client::connect(&Login {
            user: "eye".to_owned(),
            ..Login::root(admin)
        })?;
        let counts = operator.value("SELECT CONCAT(hits, ' | ', voids) FROM plateau.cache")?;
        let counts = counts.context("a row")?;
        let (router, sharing) = kind;
        println!(
            "| {router} | {sharing} | {} | {} | {counts} |",
            done.reads, done.changes
        );
        ensure!(
            0 < done.changes && !counts.starts_with("0 "),
            "nothing was tried"
        );
    }
    Ok(())
}

fn start(
    folder: &Folder,
    (port, admin): (u16, u16),
    servers: &[u16],
    (router, sharing): (&str, &str),
) -> Result<Process> {
    let data = folder.path().join("data");
    let mut text = format!(
        "listen = \"127.0.0.1:{port}\"\nsocket = \"\"\nadmin_listen = \"127.0.0.1:{admin}\"\n\
         admin_socket = \"\"\ndata = {data:?}\nlog = \"info\"\n"
    );
    for (number, server) in (1..).zip(servers) {
        write!(
            text,
            "[[server]]\nname = \"db{number}\"\naddress = \"127.0.0.1:{server}\"\n"
        )?;
    }
    // Sessions may read old values from replicas by themselves, so the primary answers what is not
    // kept: those of `read-connection` stay there, and those of the split ask for all writes.
    let reads = match router {
        "read-connection" => "role = \"primary\"\n",
        _ => "causal_reads = \"service\"\n",
    };
    write!(
        text,
        "[[monitor]]\nuser = \"root\"\ninterval = 0.1\ntimeout = 5\n[[admin]]\nuser = \"eye\"\n\
         [[service]]\nname = \"all\"\nrouter = \"{router}\"\nwait = 60\ncache = \"c\"\n{reads}\
         [[cache]]\nname = \"c\"\nsharing = \"{sharing}\"\n"
    )?;
    let file = folder.path().join("settings");
    fs::write(&file, text)?;
    let mut command = Command::new(plateau_program()?);
    command.arg("--config").arg(&file);
    let log = folder.path().join("log");
    let mut process = Process::start(&mut command, &log, "results are kept")?;
    process.wait_ready(READY_LIMIT)?;
    Ok(process)
}

/// What one client does until the end.
fn play(
    port: u16,
    number: u64,
    (mut random, until): (Random, Instant),
    acknowledged: &[AtomicU64],
) -> Result<Done> {
    let mut client = Client::connect(&Login::root(port))?;
    let prepared = match number % 2 {
        1 => Some(prepare(&mut client)?),
        _ => None,
    };
    let mut done = Done::default();
    let count = stdx::to_u64(acknowledged.len());
    while SystemClock.now() < until {
        let row = random.below(count);
        if random.below(1000) < CHANGES_PERMILLE {
            change(&mut client, row, &mut random, acknowledged)?;
            done.changes += 1;
            continue;
        }
        let other = random.below(count);
        let rows = match random.below(4) {
            0 => vec![row, other],
            _ => vec![row],
        };
        // Before the question is sent.
        let floors: Vec<u64> = rows.iter().map(|row| note(acknowledged, *row)).collect();
        let told = match (prepared, &rows[..]) {
            (Some(id), [row]) => vec![execute(&mut client, id, *row)?],
            _ => read(&mut client, &rows)?,
        };
        for ((row, floor), told) in rows.iter().zip(floors).zip(told) {
            ensure!(
                floor <= told,
                "client {number} was told {told} of row {row}; {floor} was acknowledged before"
            );
        }
        done.reads += 1;
    }
    Ok(done)
}

fn note(acknowledged: &[AtomicU64], row: u64) -> u64 {
    let place = usize::try_from(row)
        .ok()
        .and_then(|row| acknowledged.get(row));
    place.map_or(0, |it| it.load(Ordering::SeqCst))
}

/// Prepares a query of one row's counter. Returns its number.
fn prepare(client: &mut Client) -> Result<[u8; 4]> {
    client.send_command(COM_STMT_PREPARE, b"SELECT v FROM counted.c WHERE id = ?")?;
    let ok = client.next_packet()?;
    let id = ok.get(1..).and_then(|it| it.first_chunk());
    let id = *id
        .filter(|_| ok.first() == Some(&0))
        .context("it is prepared")?;
    // A parameter and a column, each with an EOF packet behind.
    for _ in 0..4 {
        client.next_packet()?;
    }
    Ok(id)
}

/// The counter of a row, by the binary protocol.
fn execute(client: &mut Client, id: [u8; 4], row: u64) -> Result<u64> {
    // No cursor, one execution, no NULLs; the type is BIGINT.
    let head = [&id[..], &[0, 1, 0, 0, 0, 0, 1, 8, 0]].concat();
    client.send_command(COM_STMT_EXECUTE, &[&head[..], &row.to_le_bytes()].concat())?;
    let mut packets = Vec::new();
    // The number of columns, the column, EOF, the row, EOF.
    for _ in 0..5 {
        packets.push(client.next_packet()?);
        ensure!(
            packets.last().and_then(|it| it.first()) != Some(&0xff),
            "an error"
        );
    }
    // Behind the header and the NULL bits.
    let row = packets.get(3).and_then(|it| it.get(2..)?.first_chunk());
    row.map(|value| u64::from_le_bytes(*value))
        .context("a counter")
}

/// The counters of rows, in their order.
fn read(client: &mut Client, rows: &[u64]) -> Result<Vec<u64>> {
    let mut told = Vec::new();
    let list: Vec<String> = rows.iter().map(u64::to_string).collect();
    let text = format!(
        "SELECT id, v FROM counted.c WHERE id IN ({})",
        list.join(", ")
    );
    let found = client.rows(&text)?;
    for row in rows {
        let is_it = |it: &&Vec<Option<Vec<u8>>>| it.first() == Some(&Some(row.to_string().into()));
        let value = found.iter().find(is_it).and_then(|it| it.get(1)?.clone());
        told.push(String::from_utf8(value.context("a counter")?)?.parse()?);
    }
    Ok(told)
}

/// Raises a counter, alone or in a transaction, and notes its value.
fn change(
    client: &mut Client,
    row: u64,
    random: &mut Random,
    acknowledged: &[AtomicU64],
) -> Result<()> {
    let is_open = random.below(2) == 0;
    if is_open {
        client.run("BEGIN")?;
    }
    let text = format!("UPDATE counted.c SET v = LAST_INSERT_ID(v + 1) WHERE id = {row}");
    let value = client.run(&text)?.last_insert_id;
    if is_open {
        if random.below(8) == 0 {
            client.run("ROLLBACK")?;
            return Ok(());
        }
        client.run("COMMIT")?;
    }
    let place = usize::try_from(row)?;
    let note = acknowledged.get(place).context("a row")?;
    note.fetch_max(value, Ordering::SeqCst);
    Ok(())
}
