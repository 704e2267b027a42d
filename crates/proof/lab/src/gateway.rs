//! What the gateway costs and gives, measured before real servers.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use testkit::Folder;
use testkit::process::Process;
use testkit::server::plateau_program;

pub mod cache;
pub mod cost;
pub mod explain;
pub mod follow;
pub mod idle;
pub mod pairs;
pub mod programs;
pub mod servers;
pub mod sharing;
pub mod stale;
pub mod troubles;

mod relay;

/// How long a statement waits for a connection, in seconds.
const WAIT_SECONDS: u32 = 60;

/// A gateway that is not ready by then will not be.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Starts a gateway with `read-write-split` before these servers, which it calls `db1`, `db2`, ..,
/// with so many connections to each, and by how many that may be exceeded if not by as many again.
fn start(
    folder: &Folder,
    port: u16,
    servers: &[u16],
    limits: (u32, Option<u32>),
) -> Result<Process> {
    start_with(folder, port, servers, (limits, Kept::Nothing))
}

/// Whether the service has a cache of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Nothing,
    Results,
}

/// The same, with a cache or without one.
fn start_with(
    folder: &Folder,
    port: u16,
    servers: &[u16],
    ((connections, overflow), kept): ((u32, Option<u32>), Kept),
) -> Result<Process> {
    let data = folder.path().join("data");
    let mut text = format!(
        "listen = \"127.0.0.1:{port}\"\nsocket = \"\"\ndata = {data:?}\nlog = \"info\"\n\
         max_connections = 19000\n"
    );
    for (number, server) in (1..).zip(servers) {
        write!(
            text,
            "[[server]]\nname = \"db{number}\"\naddress = \"127.0.0.1:{server}\"\n\
             max_connections = {connections}\n"
        )?;
        if let Some(overflow) = overflow {
            writeln!(text, "overflow = {overflow}")?;
        }
    }
    write!(
        text,
        "[[monitor]]\nuser = \"root\"\ntimeout = 30\n\
         [[service]]\nname = \"all\"\nrouter = \"read-write-split\"\nwait = {WAIT_SECONDS}\n"
    )?;
    let ready = match kept {
        Kept::Nothing => "a service is ready",
        Kept::Results => {
            text += "cache = \"c\"\n[[cache]]\nname = \"c\"\n";
            "results are kept"
        }
    };
    let file = folder.path().join("settings");
    fs::write(&file, text)?;
    let mut command = Command::new(plateau_program()?);
    command.arg("--config").arg(&file);
    let log = folder.path().join("log");
    let mut process = Process::start(&mut command, &log, ready)?;
    process.wait_ready(READY_LIMIT)?;
    Ok(process)
}
