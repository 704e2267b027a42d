//! Test fixtures: servers that are started and stopped, a small client, temporary folders, a store
//! in memory.
//!
//! Everything here except the store talks to real processes over loopback. Nothing waits by the
//! clock: readiness is a line that the server prints, and the end is that of its process.
//! Everything else is polled, with a limit ([`wait_until`]). Every process that a fixture starts is
//! ended, by its id, when the fixture is dropped.
#![forbid(unsafe_code)]

pub mod client;
pub mod definitions;
pub mod folder;
pub mod hostile;
pub mod naive_store;
pub mod process;
pub mod programs;
pub mod routes;
pub mod server;
pub mod spider;
pub mod statement_file;
pub mod topology;
pub mod wait;

pub use client::{Client, Login, Outcome, ServerError};
pub use folder::Folder;
pub use naive_store::NaiveStore;
pub use rustix::process::Signal;
pub use server::{Launch, Server, ServerKind, is_reference_asked, on_each_driver};
pub use wait::{wait_for, wait_until};

use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

/// Ports that this process was given.
static PORTS: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A port on loopback that was free a moment ago, and that nobody else in this process was given:
/// the kernel may name one again as soon as it is free. Once there are no others left, a port is
/// given again.
pub fn free_port() -> anyhow::Result<u16> {
    /// More than a kernel needs to come to a port that is new, while there are many.
    const TRIES: usize = 1000;
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let given = ports.get_or_insert_default();
    let mut port = 0;
    for _ in 0..TRIES {
        port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        if given.insert(port) {
            break;
        }
    }
    Ok(port)
}
