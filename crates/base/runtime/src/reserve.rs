//! The descriptor that is kept for the moment when the process has no other.
//!
//! Without a descriptor a client can be neither accepted nor refused: it would wait for its
//! greeting as long as others keep theirs. So one descriptor is kept. When accepting fails, a
//! listener closes it, accepts clients in its place, one after the other, answers and closes each,
//! and opens the reserve again.
//!
//! (R1) One listener at a time has the reserve. The others pause meanwhile.
//! (R2) A round ends when no client waits, or after [`ROUND_CLIENTS_MAX`]. A listener pauses after
//! each round, so it never spins.
//! (R3) Another thread may take the descriptor between its closing and the accept. If that thread
//! accepts a client, it refuses the client and opens the reserve in its place. So the reserve is
//! never lost to a client.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::Duration;

use env::Instant;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, SocketFlags};
use rustix::process::{Resource, getrlimit};
use sync::Mutex;

/// Clients refused in one round: some milliseconds of a worker.
const ROUND_CLIENTS_MAX: u64 = 64;

/// How often the shortage is reported while it lasts.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// What happens to clients that the process has no descriptor for.
pub struct Refusal {
    /// What such a client reads before its connection is closed.
    pub reply: Vec<u8>,
    /// Reports the shortage: at its begin, and each minute while it lasts.
    pub report: Box<dyn Fn(Shortage) + Send + Sync>,
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Refusal");
        shown.field("reply", &self.reply).finish_non_exhaustive()
    }
}

/// The process has no descriptor left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// How many it may have; `None` if there is no limit and the system has none left.
    pub limit: Option<u64>,
    /// Clients refused since the last report.
    pub refused_count: u64,
}

/// Shared by the listeners of all workers.
#[derive(Default)]
pub(crate) struct Reserve {
    /// `None` while a listener has it, or when it could not be opened again.
    descriptor: Mutex<Option<OwnedFd>>,
    /// Set once, before clients are accepted.
    refusal: OnceLock<Refusal>,
    reports: Mutex<Reports>,
}

#[derive(Debug, Default)]
struct Reports {
    last_at: Option<Instant>,
    refused_count: u64,
}

impl Reserve {
    /// Says what happens to refused clients. The first call counts.
    pub(crate) fn set_refusal(&self, refusal: Refusal) {
        let _first_counts = self.refusal.set(refusal);
    }

    /// Opens the reserve, unless it is open. False if there is no descriptor for it.
    pub(crate) fn fill(&self) -> bool {
        if self.descriptor.lock().is_some() {
            return true;
        }
        let Ok(descriptor) = eventfd(0, EventfdFlags::CLOEXEC) else {
            return false;
        };
        let second = self.descriptor.lock().replace(descriptor);
        drop(second);
        true
    }

    /// Takes an accepted client in, or refuses it because its descriptor is the last (R3). Returns
    /// it if it may stay.
    pub(crate) fn admit(&self, client: OwnedFd, now: Instant) -> Option<OwnedFd> {
        if self.fill() {
            return Some(client);
        }
        self.refuse(&client);
        drop(client);
        self.fill();
        self.report(1, now);
        None
    }

    /// Refuses the clients that wait at a listener. Returns how many.
    pub(crate) fn refuse_waiting(&self, listener: &OwnedFd, now: Instant) -> u64 {
        let reserve = self.descriptor.lock().take();
        let mut refused_count = 0;
        // Closed before the first client is accepted in its place.
        if reserve.map(drop).is_some() {
            while refused_count < ROUND_CLIENTS_MAX && self.refuse_next(listener) {
                refused_count += 1;
            }
        }
        self.fill();
        self.report(refused_count, now);
        refused_count
    }

    /// Refuses one client; false if none waits, or another thread took the descriptor.
    fn refuse_next(&self, listener: &OwnedFd) -> bool {
        // The ring wants sockets that block, and no worker may wait in an accept.
        let mut waiting = [PollFd::new(listener, PollFlags::IN)];
        if rustix::event::poll(&mut waiting, Some(&Timespec::default())) != Ok(1) {
            return false;
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match rustix::net::accept_with(listener, flags) {
            Ok(client) => {
                self.refuse(&client);
                true
            }
            // The client went before it was accepted.
            Err(Errno::CONNABORTED | Errno::INTR) => true,
            Err(_) => false,
        }
    }

    fn refuse(&self, client: &OwnedFd) {
        if let Some(refusal) = self.refusal.get() {
            // A new socket has room for a short reply. A client that has gone needs none.
            let _ = rustix::net::send(client, &refusal.reply, SendFlags::NOSIGNAL);
        }
        let _ = rustix::net::shutdown(client, Shutdown::Write);
    }

    fn report(&self, refused_count: u64, now: Instant) {
        let shortage = {
            let mut reports = self.reports.lock();
            reports.refused_count += refused_count;
            let is_due = |last| REPORT_INTERVAL <= now.since(last);
            // A listener without clients says nothing: its worker may be idle.
            if reports.refused_count == 0 || !reports.last_at.is_none_or(is_due) {
                return;
            }
            reports.last_at = Some(now);
            Shortage {
                limit: getrlimit(Resource::Nofile).current,
                refused_count: std::mem::take(&mut reports.refused_count),
            }
        };
        if let Some(refusal) = self.refusal.get() {
            (refusal.report)(shortage);
        }
    }
}
