//! Tells the server's log how far the rollback of a start is. The rollback may take minutes, and no
//! client can log in before its end. Without a word the operator would take it for a hang.

use std::time::Duration;

use env::Instant;

/// Between two lines of the log.
const TELL_EACH: Duration = Duration::from_secs(5);

/// The changes of all transactions that are rolled back.
#[derive(Debug)]
pub(super) struct RollbackProgress {
    /// Changes to be undone, at most: some may have been undone before the crash.
    pub(super) total: u64,
    /// Changes that were undone.
    pub(super) done: u64,
    told: Instant,
}

impl RollbackProgress {
    pub(super) fn new(total: u64, now: Instant) -> Self {
        Self {
            total,
            done: 0,
            told: now,
        }
    }

    /// Counts changes that were undone. Returns true if it is time for a line.
    pub(super) fn note(&mut self, count: u64, now: Instant) -> bool {
        self.done += count;
        let is_time = TELL_EACH <= now.since(self.told);
        if is_time {
            self.told = now;
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_each_five_seconds() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut progress = RollbackProgress::new(100, at(1_000));
        assert!(!progress.note(32, at(1_001)));
        assert!(!progress.note(32, at(5_999)));
        assert!(progress.note(32, at(6_000)));
        assert_eq!((progress.done, progress.total), (96, 100));
        assert!(!progress.note(4, at(10_999)));
        assert!(progress.note(0, at(20_000)));
    }
}
