//! [`Running`]: where a session's statement runs, and the connection whose number its client was
//! told, for KILL.

use sync::atomic::{AtomicU64, Ordering};

use crate::options::ServerId;

/// Connections of a session to servers. Its session writes, those who kill read.
#[derive(Debug)]
pub(crate) struct Running {
    /// What it used last.
    last: AtomicU64,
    /// What CONNECTION_ID() names.
    named: AtomicU64,
}

impl Running {
    pub(crate) fn on(server: ServerId, connection_id: u32) -> Running {
        let packed = packed(server, connection_id);
        Running {
            last: AtomicU64::new(packed),
            named: AtomicU64::new(packed),
        }
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
        // Relaxed: a KILL that comes with a change may meet either connection.
        self.last
            .store(packed(server, connection_id), Ordering::Relaxed);
    }

    /// The server, and its number of the connection.
    pub(crate) fn get(&self) -> (ServerId, u32) {
        let packed = self.last.load(Ordering::Relaxed);
        let server = usize::try_from(packed >> 32).expect("it was one");
        let connection_id = u32::try_from(packed & u64::from(u32::MAX)).expect("masked");
        (ServerId(server), connection_id)
    }
}

fn packed(server: ServerId, connection_id: u32) -> u64 {
    let server = u32::try_from(server.0).expect("there are few servers");
    u64::from(server) << 32 | u64::from(connection_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_come_back() {
        let running = Running::on(ServerId(0), 7);
        assert_eq!(running.get(), (ServerId(0), 7));
        running.set(ServerId(255), u32::MAX);
        assert_eq!(running.get(), (ServerId(255), u32::MAX));
        assert!(running.is_named(ServerId(0), 7));
        running.name(ServerId(1), 8);
        assert!(running.is_named(ServerId(1), 8) && !running.is_named(ServerId(0), 7));
    }
}
