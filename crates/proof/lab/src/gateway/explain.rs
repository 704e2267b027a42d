//! EXPLAIN ROUTE agrees with what happens: random sessions in many states over a primary and two
//! replicas, as the general logs of the servers show (`testkit::routes`).

use std::fs;
use std::process::Command;

use anyhow::Result;
use testkit::process::Process;
use testkit::routes::{Caches, Ports, Stage, Tally, logging};
use testkit::server::plateau_program;
use testkit::topology::Replicated;
use testkit::{Folder, free_port};

use super::READY_LIMIT;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How many pairs of a statement and a session's state are compared.
    #[arg(long, default_value_t = 10_000)]
    pairs: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Compares, half of them over services with caches of results, and prints what the pairs were; an
/// error at the first one that differs.
pub fn run(arguments: &Arguments) -> Result<()> {
    let without = arguments.pairs / 2;
    for (caches, pairs) in [
        (Caches::None, without),
        (Caches::Some, arguments.pairs - without),
    ] {
        let tally = compare(caches, pairs, arguments.seed)?;
        println!("caches: {caches:?}");
        print!("{tally}");
    }
    Ok(())
}

fn compare(caches: Caches, pairs: u64, seed: u64) -> Result<Tally> {
    let topology = Replicated::start_with(2, logging)?;
    Stage::prepare(&topology)?;
    let ports = Ports::free(caches)?;
    let folder = Folder::new("gateway")?;
    let text = format!(
        "listen = \"127.0.0.1:{}\"\nsocket = \"\"\nadmin_socket = \"\"\ndata = {:?}\n\
         log = \"info\"\n{}",
        free_port()?,
        folder.path().join("data"),
        ports.settings(&topology.servers)
    );
    let file = folder.path().join("settings");
    fs::write(&file, text)?;
    let mut command = Command::new(plateau_program()?);
    command.arg("--config").arg(&file);
    let log = folder.path().join("log");
    let mut gateway = Process::start(&mut command, &log, "a service is ready")?;
    gateway.wait_ready(READY_LIMIT)?;
    let mut stage = Stage::new(topology, ports, seed)?;
    stage.compare(pairs)
}
