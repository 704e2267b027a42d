//! [`LoginLog`] and [`AbortLog`]: lines of the server's log about logins that have failed, and
//! about clients whose sessions ended without their asking.
//!
//! Anybody who can connect can cause such a line, so there are at most
//! [`LINES_PER_SECOND_MAX`] of each kind. The first line of a later second says how many were left
//! out.

use std::fmt::Display;

use front::Peer;
use sync::Mutex;

use crate::handle::SessionHandle;

/// Enough for people who mistype, and 60 kB of log a minute at most.
const LINES_PER_SECOND_MAX: u32 = 10;

const SECOND_NS: u64 = 1_000_000_000;

/// What was logged of failed logins of late, by all workers.
#[derive(Debug, Default)]
pub(crate) struct LoginLog {
    latest: Mutex<Latest>,
}

/// What was logged of aborted connections of late, by all workers.
#[derive(Debug, Default)]
pub(crate) struct AbortLog {
    latest: Mutex<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    /// The second of the latest line.
    second: u64,
    /// Lines in that second.
    line_count: u32,
    /// Failures since the latest line.
    left_out: u64,
}

impl LoginLog {
    /// Notes that a login failed. Its reason names the account, if the client came to name one.
    pub(crate) fn note(&self, connection_id: u64, peer: Peer, reason: &dyn Display, now_ns: u64) {
        let Some(left_out) = self.latest.lock().admit(now_ns / SECOND_NS) else {
            return;
        };
        let host = peer.host();
        if left_out == 0 {
            tracing::info!(connection_id, %host, %reason, "login failed");
        } else {
            tracing::info!(connection_id, %host, %reason, left_out, "login failed");
        }
    }
}

impl AbortLog {
    /// Notes that a session has ended, and the client did not ask for that.
    pub(crate) fn note(&self, session: &SessionHandle, reason: &str, now_ns: u64) {
        let Some(left_out) = self.latest.lock().admit(now_ns / SECOND_NS) else {
            return;
        };
        let line = session.line();
        let (connection_id, user, host) = (line.id, line.user, line.host);
        let database = line.database.unwrap_or_default();
        if left_out == 0 {
            tracing::info!(connection_id, %user, %host, %database, reason, "connection aborted");
        } else {
            tracing::info!(
                connection_id, %user, %host, %database, reason, left_out, "connection aborted"
            );
        }
    }
}

impl Latest {
    /// How many failures were left out before this one; `None` if this one is left out, too.
    fn admit(&mut self, second: u64) -> Option<u64> {
        if self.second != second {
            (self.second, self.line_count) = (second, 0);
        }
        if self.line_count == LINES_PER_SECOND_MAX {
            self.left_out += 1;
            return None;
        }
        self.line_count += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_failures_has_few_lines() {
        let mut latest = Latest::default();
        let lines = (0..1000).filter_map(|_| latest.admit(7)).count();
        assert_eq!(lines, 10);
        assert_eq!(latest.admit(8), Some(990));
        assert_eq!(latest.admit(8), Some(0));
    }
}
