//! How soon a cache of results learns of a change past the gateway from the primary's binary log.
//!
//! A client changes a row directly on the primary, while a reader asks the gateway for it again and
//! again. What is measured is the time from the server's OK to the first answer with the new value,
//! and how many answers with the old one were sent meanwhile. Others change another table.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use env::Clock as _;
use env::linux::SystemClock;
use sync::atomic::{AtomicBool, Ordering};
use testkit::process::Process;
use testkit::server::plateau_program;
use testkit::topology::Replicated;
use testkit::{Client, Folder, Login, free_port};

use super::READY_LIMIT;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Changes that are measured.
    #[arg(long, default_value_t = 300)]
    changes: usize,
    /// Clients that change another table meanwhile, without a pause.
    #[arg(long, default_value_t = 0)]
    writers: usize,
}

/// Until then results are kept again.
const PAUSE: Duration = Duration::from_millis(20);

/// A change that was not seen by then will not be.
const SEEN_LIMIT: Duration = Duration::from_secs(10);

const READ: &str = "SELECT v FROM counted.c WHERE id = 1";

/// What a change has led to.
struct Seen {
    late: Duration,
    old_answers: u32,
}

/// Runs all of it.
pub fn run(arguments: &Arguments) -> Result<()> {
    let topology = Replicated::start(0)?;
    let mut root = topology.connect(0)?;
    for statement in [
        "CREATE DATABASE counted",
        "CREATE TABLE counted.c (id INT PRIMARY KEY, v BIGINT)",
        "CREATE TABLE counted.other (id INT PRIMARY KEY AUTO_INCREMENT, v BIGINT)",
        "INSERT INTO counted.c VALUES (1, 0)",
    ] {
        root.run(statement)?;
    }
    let folder = Folder::new("follow")?;
    let port = free_port()?;
    let server = topology.servers.first().context("a primary")?;
    let _gateway = start(&folder, port, server.port())?;
    let is_over = AtomicBool::new(false);
    let writers: Vec<Client> = (0..arguments.writers)
        .map(|_| server.connect())
        .collect::<Result<_>>()?;
    let (mut all, written) = std::thread::scope(|scope| {
        let is_over = &is_over;
        let writers = writers.into_iter();
        let writers: Vec<_> = writers
            .map(|client| scope.spawn(move || write(client, is_over)))
            .collect();
        let measured = measure(&mut root, port, arguments.changes);
        is_over.store(true, Ordering::Relaxed);
        let mut written = 0;
        for writer in writers {
            written += writer.join().expect("a writer does not panic")?;
        }
        anyhow::Ok((measured?, written))
    })?;
    all.sort_by_key(|it| it.late);
    let late = |part: usize| {
        let place = (all.len() * part / 100).min(all.len().saturating_sub(1));
        all.get(place)
            .map_or(0.0, |it| it.late.as_secs_f64() * 1000.0)
    };
    let told_old = all.iter().filter(|it| 0 < it.old_answers).count();
    println!("| writers | changes by them | ms: half | 95 of 100 | most | told the old value |");
    println!("|--:|--:|--:|--:|--:|--:|");
    println!(
        "| {} | {written} | {:.2} | {:.2} | {:.2} | {told_old} of {} |",
        arguments.writers,
        late(50),
        late(95),
        late(100),
        all.len()
    );
    ensure!(0 < told_old, "nothing was kept, so nothing was measured");
    Ok(())
}

fn measure(root: &mut Client, port: u16, changes: usize) -> Result<Vec<Seen>> {
    let mut reader = Client::connect(&Login::root(port))?;
    let mut all = Vec::new();
    for round in 1..=changes {
        let until = SystemClock.now() + PAUSE;
        while SystemClock.now() < until {
            reader.value(READ)?;
        }
        root.run(&format!("UPDATE counted.c SET v = {round} WHERE id = 1"))?;
        let done = SystemClock.now();
        let mut old_answers = 0;
        while reader.value(READ)? != Some(round.to_string()) {
            old_answers += 1;
            ensure!(
                SystemClock.now().since(done) < SEEN_LIMIT,
                "change {round} is not seen"
            );
        }
        all.push(Seen {
            late: SystemClock.now().since(done),
            old_answers,
        });
    }
    Ok(all)
}

/// Changes another table until all is over. Returns how often.
fn write(mut client: Client, is_over: &AtomicBool) -> Result<u64> {
    let mut count = 0;
    // Relaxed: one change more does no harm.
    while !is_over.load(Ordering::Relaxed) {
        client.run("INSERT INTO counted.other (v) VALUES (1)")?;
        count += 1;
    }
    Ok(count)
}

fn start(folder: &Folder, port: u16, server: u16) -> Result<Process> {
    let data = folder.path().join("data");
    let text = format!(
        "listen = \"127.0.0.1:{port}\"\nsocket = \"\"\ndata = {data:?}\nlog = \"info\"\n\
         [[server]]\nname = \"db1\"\naddress = \"127.0.0.1:{server}\"\n\
         [[monitor]]\nuser = \"root\"\n\
         [[service]]\nname = \"all\"\ncache = \"c\"\n\
         [[cache]]\nname = \"c\"\nfollow = \"binary-log\"\n"
    );
    let file = folder.path().join("settings");
    fs::write(&file, text)?;
    let mut command = Command::new(plateau_program()?);
    command.arg("--config").arg(&file);
    let log = folder.path().join("log");
    let mut process = Process::start(&mut command, &log, "results are kept")?;
    process.wait_ready(READY_LIMIT)?;
    Ok(process)
}
