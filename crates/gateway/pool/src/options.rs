//! What may be set for a server: its limits, and when its connections are closed.

use std::time::Duration;

use env::Instant;

/// How many connections a server may have, and how many sessions may wait for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections of all keys and workers together. With 0 there are none, and all sessions wait.
    pub limit: u32,
    /// Connections above the limit, for sessions that hold another connection.
    pub overflow: u32,
    /// Sessions that may wait; the next one is refused.
    pub waiting_max: u32,
}

impl Limits {
    /// The limit, as many above it, and a line of any practical length.
    pub fn new(limit: u32) -> Limits {
        Limits {
            limit,
            overflow: limit,
            waiting_max: WAITING_MAX_DEFAULT,
        }
    }
}

/// More sessions than a gateway has clients. A waiter takes some 200 bytes.
const WAITING_MAX_DEFAULT: u32 = 100_000;

/// When an idle connection is closed or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recycling {
    /// A connection that is open for this long is not used again.
    pub age_max: Duration,
    /// A connection that is idle for this long is not used again. It has to be less than the
    /// server's `wait_timeout`.
    pub idle_max: Duration,
    /// A connection that is idle for this long on one worker is offered to all.
    pub own_idle_max: Duration,
}

impl Default for Recycling {
    /// An hour; 10 minutes, where servers close after 8 hours; a second.
    fn default() -> Self {
        Recycling {
            age_max: Duration::from_secs(3_600),
            idle_max: Duration::from_secs(600),
            own_idle_max: Duration::from_secs(1),
        }
    }
}

impl Recycling {
    /// Whether a connection that was opened then is too old.
    pub(crate) fn is_aged(&self, opened_at: Instant, now: Instant) -> bool {
        self.age_max <= now.since(opened_at)
    }

    /// Whether a connection that is idle since then was idle for too long.
    pub(crate) fn is_idled(&self, since: Instant, now: Instant) -> bool {
        self.idle_max <= now.since(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overflow_is_the_limit_again() {
        let limits = Limits::new(7);
        assert_eq!((limits.limit, limits.overflow), (7, 7));
    }

    #[test]
    fn a_connection_is_recycled_at_its_limits_and_not_below() {
        let recycling = Recycling {
            age_max: Duration::from_nanos(10),
            idle_max: Duration::from_nanos(5),
            own_idle_max: Duration::from_nanos(1),
        };
        let at = Instant::from_nanos;
        let ages = [109, 110, 111].map(|now| recycling.is_aged(at(100), at(now)));
        assert_eq!(ages, [false, true, true]);
        let idles = [104, 105, 106].map(|now| recycling.is_idled(at(100), at(now)));
        assert_eq!(idles, [false, true, true]);
    }
}
