//! What the pool counts of a server: plain numbers, written under the server's mutex.

/// Why a connection was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CloseReason {
    /// The limit was lowered.
    Limit,
    /// It was above the limit, and no session that holds another connection waits.
    Overflow,
    /// It had other capabilities than the session that was first in line.
    Replaced,
    /// It was open for longer than [`crate::Recycling::age_max`].
    Age,
    /// It was idle for longer than [`crate::Recycling::idle_max`].
    Idle,
    /// It was of an older version of its server.
    Version,
    /// Its server was removed.
    Removed,
    /// Its server had closed it, or had said something unasked, while it was idle.
    Stale,
    /// It failed in use, or could not be put right.
    Failed,
    /// It could not be moved to another worker.
    Unmoved,
    /// Its session ended without giving it back.
    Dropped,
}

impl CloseReason {
    /// All reasons, in the order of [`Numbers::closed`].
    pub const ALL: [CloseReason; 11] = [
        CloseReason::Limit,
        CloseReason::Overflow,
        CloseReason::Replaced,
        CloseReason::Age,
        CloseReason::Idle,
        CloseReason::Version,
        CloseReason::Removed,
        CloseReason::Stale,
        CloseReason::Failed,
        CloseReason::Unmoved,
        CloseReason::Dropped,
    ];

    /// The reason's place in [`CloseReason::ALL`].
    fn place(self) -> usize {
        self as usize
    }
}

/// The numbers of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Connections that a session took from its own worker's stacks.
    pub taken_own: u64,
    /// Connections that a session took from the shared stacks.
    pub taken_shared: u64,
    /// Connections that a session got after waiting for one.
    pub taken_waiting: u64,
    /// Rights to open a connection that were used.
    pub opened: u64,
    /// Connections that were turned to another account.
    pub turned: u64,
    /// Connections that were closed, by reason.
    closed: [u64; CloseReason::ALL.len()],
    /// Sessions that had to wait.
    pub waited: u64,
    /// Waits that ended by time-out.
    pub timed_out: u64,
    /// Waits that the session gave up for other reasons.
    pub given_up: u64,
    /// Sessions that were refused because too many waited.
    pub refused: u64,
    /// Connections above the limit that were granted to sessions that hold another.
    pub overflowed: u64,
    /// Sessions that were chosen to break a deadlock.
    pub victims: u64,
    /// Connections, open or being opened, now.
    pub open: u64,
    /// Of these, above the limit for sessions that hold another.
    pub open_above: u64,
    /// Of these, idle.
    pub idle: u64,
    /// Sessions that wait now.
    pub waiting: u64,
}

impl Numbers {
    /// How many connections were closed for `reason`.
    pub fn closed(&self, reason: CloseReason) -> u64 {
        self.closed[reason.place()]
    }

    /// How many connections were closed.
    pub fn closed_count(&self) -> u64 {
        self.closed.iter().sum()
    }

    pub(crate) fn count_closed(&mut self, reason: CloseReason) {
        self.closed[reason.place()] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_place() {
        for (place, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(reason.place(), place);
            let mut numbers = Numbers::default();
            numbers.count_closed(reason);
            assert_eq!(numbers.closed(reason), 1);
            assert_eq!(numbers.closed_count(), 1);
        }
    }
}
