//! [`Running`]: where a session's statement runs, and the connection whose number its client has
//! for KILL.
//!
//! A connection that a KILL aims at must not go to another session before the KILL is over. Who
//! kills counts itself first and then reads where to; a session that gives its connection away
//! takes its place away first and then reads the count ([`Running::leave`]). So one of both sees
//! the other: either the KILL finds nothing, or the connection is closed.
//!
//! A KILL also finds sessions of older configurations. So servers are known here by their names in
//! the pool, which are never given to another server. Service and places are those of the session's
//! own configuration, whose number it tells.

mod standing;

use std::sync::Arc;

use pool::ServerId;
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::options::ServiceId;

pub(crate) use standing::{Phase, Seen, Standing, Stay};

/// Connections of a session to servers. Its session writes, those who kill or list read.
#[derive(Debug)]
pub(crate) struct Running {
    /// What it used last; [`NOWHERE`] once it has given that away.
    last: AtomicU64,
    /// What CONNECTION_ID() names; [`NOWHERE`] if that is the number that the gateway has told.
    named: AtomicU64,
    /// What it does, for operators.
    pub(crate) standing: Standing,
    /// KILLs that aim at `last`.
    kills: AtomicU32,
    /// An operator has asked for the end of its statement, and the session has not seen it.
    is_kill_asked: AtomicBool,
    /// Its place in the session's configuration. Constant.
    service: u16,
}

/// No connection.
const NOWHERE: u64 = u64::MAX;

/// A KILL that is under way.
#[derive(Debug)]
pub(crate) struct Aim {
    running: Arc<Running>,
    /// The server, and its number of the connection; `None` if the session uses none.
    pub(crate) at: Option<(ServerId, u32)>,
}

impl Drop for Aim {
    fn drop(&mut self) {
        self.running.kills.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Running {
    /// Of a session of this configuration that uses no connection.
    pub(crate) fn nowhere(generation: u32, service: ServiceId) -> Running {
        Running {
            last: AtomicU64::new(NOWHERE),
            named: AtomicU64::new(NOWHERE),
            standing: Standing::of(generation),
            kills: AtomicU32::new(0),
            is_kill_asked: AtomicBool::new(false),
            service: u16::try_from(service.0).expect("there are few services"),
        }
    }

    /// The number of the session's configuration.
    pub(crate) fn generation(&self) -> u32 {
        self.standing.generation()
    }

    /// The service whose client it is, by its place there.
    pub(crate) fn service(&self) -> ServiceId {
        ServiceId(self.service.into())
    }

    /// An operator asks for the end of its statement. The session is woken afterwards.
    pub(crate) fn ask_kill(&self) {
        self.is_kill_asked.store(true, Ordering::Release);
    }

    /// Whether an operator has done so since the last time that this was asked.
    pub(crate) fn take_kill(&self) -> bool {
        self.is_kill_asked.swap(false, Ordering::Acquire)
    }

    /// CONNECTION_ID() has this number from now on.
    pub(crate) fn name(&self, server: ServerId, connection_id: u32) {
        self.named
            .store(packed(server, connection_id), Ordering::Relaxed);
    }

    /// Whether CONNECTION_ID() has this number.
    pub(crate) fn is_named(&self, server: ServerId, connection_id: u32) -> bool {
        self.named.load(Ordering::Relaxed) == packed(server, connection_id)
    }

    /// The session uses this connection from now on.
    pub(crate) fn set(&self, server: ServerId, connection_id: u32) {
        // Release: who reads it may wait for a KILL, but reads nothing else of the session.
        self.last
            .store(packed(server, connection_id), Ordering::Release);
    }

    /// The session gives its connection away. Returns `true` if no KILL aims at it.
    pub(crate) fn leave(&self) -> bool {
        self.last.store(NOWHERE, Ordering::SeqCst);
        self.kills.load(Ordering::SeqCst) == 0
    }

    /// Begins a KILL of what the session uses.
    pub(crate) fn aim(self: &Arc<Running>) -> Aim {
        self.kills.fetch_add(1, Ordering::SeqCst);
        Aim {
            at: unpacked(self.last.load(Ordering::SeqCst)),
            running: Arc::clone(self),
        }
    }

    /// The server of the connection that it used last.
    pub(crate) fn server(&self) -> Option<ServerId> {
        unpacked(self.last.load(Ordering::Relaxed)).map(|(server, _)| server)
    }
}

fn packed(server: ServerId, connection_id: u32) -> u64 {
    u64::from(server.number()) << 32 | u64::from(connection_id)
}

fn unpacked(packed: u64) -> Option<(ServerId, u32)> {
    if packed == NOWHERE {
        return None;
    }
    let server = u32::try_from(packed >> 32).expect("shifted");
    let connection_id = u32::try_from(packed & u64::from(u32::MAX)).expect("masked");
    Some((ServerId::of_number(server), connection_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The allocator has pieces of this size, and then of 80. An idle client has one, and the
    /// worker prefetches one line of it.
    const RUNNING_BYTES_MAX: usize = 64;

    fn server(number: u32) -> ServerId {
        ServerId::of_number(number)
    }

    #[test]
    fn it_is_one_line_of_memory() {
        let counts = 2 * size_of::<usize>();
        assert!(size_of::<Running>() + counts <= RUNNING_BYTES_MAX);
    }

    #[test]
    fn both_numbers_come_back() {
        let running = Arc::new(Running::nowhere(7, ServiceId(3)));
        assert_eq!((running.generation(), running.service()), (7, ServiceId(3)));
        assert_eq!(running.aim().at, None);
        running.set(server(0), 7);
        assert_eq!(running.aim().at, Some((server(0), 7)));
        running.set(server(255), u32::MAX);
        assert_eq!(running.aim().at, Some((server(255), u32::MAX)));
        assert_eq!(running.server(), Some(server(255)));
        assert!(!running.is_named(server(1), 8));
        running.name(server(1), 8);
        assert!(running.is_named(server(1), 8) && !running.is_named(server(0), 7));
    }

    #[test]
    fn a_connection_that_a_kill_aims_at_is_not_given_away() {
        let running = Arc::new(Running::nowhere(7, ServiceId(3)));
        running.set(server(0), 7);
        assert!(running.leave());
        running.set(server(0), 8);
        let aim = running.aim();
        assert!(!running.leave());
        assert_eq!(running.aim().at, None);
        drop(aim);
        assert!(running.leave());
    }
}
