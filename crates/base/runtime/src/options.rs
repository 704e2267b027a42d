//! What a runtime is started with, and what it can listen on or connect to.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The most workers that start by default. Code that numbers workers has one byte for the index.
pub const WORKER_COUNT_MAX: usize = 255;

/// How to start a runtime.
#[derive(Debug, Clone)]
pub struct Options {
    /// Worker threads. 0 means one for each core that the process may use, [`WORKER_COUNT_MAX`] at
    /// most.
    pub worker_count: usize,
    /// Which kernel interface the loops use.
    pub io: Io,
    /// Whether a worker that wakes up takes its core from another program.
    pub preemption: Preemption,
    /// Binds each worker to a core. Off in tests, which share their cores.
    pub pin: bool,
    /// Threads for `blocking` calls, shared by all workers.
    pub helper_count: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            worker_count: 0,
            io: Io::Auto,
            preemption: Preemption::Always,
            pin: true,
            helper_count: 2,
        }
    }
}

/// Whether a worker that wakes up takes its core from another program that runs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preemption {
    /// It does.
    Always,
    /// It does while it serves few tasks. With many it waits for the other program's time slice to
    /// end, and finds more to do: for a worker that has little to do for each wake-up.
    WhileFewAreServed,
}

/// The kernel interface of the loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Io {
    /// io_uring if a probe at start finds all that is needed, else epoll.
    #[default]
    Auto,
    /// io_uring, or an error that names what is missing.
    Uring,
    /// epoll, with a few threads for files.
    Epoll,
}

/// The address that a stream connects to or a listener binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A unix stream socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
