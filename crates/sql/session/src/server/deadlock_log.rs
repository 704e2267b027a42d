//! Reports of deadlocks in the server's log (`innodb_print_all_deadlocks`).
//!
//! The session of the victim writes the report (`statement::deadlock`). A second has room for a
//! few; the next line that is written says how many were left out before it.

use sync::Mutex;

/// Reports that are written in a second. More would hide what else the log has to say.
const REPORTS_PER_SECOND: u64 = 10;

const SECOND_US: u64 = 1_000_000;

/// How many reports were written lately. One for the program.
#[derive(Debug, Default)]
pub(crate) struct DeadlockLog {
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    /// When it began, on the steady clock.
    since_us: u64,
    /// Reports that were written in it.
    written_count: u64,
    /// Reports that were left out since the last one.
    left_out_count: u64,
}

impl DeadlockLog {
    /// Whether one more report may be written now. If so, returns how many were left out since the
    /// last one.
    pub(crate) fn admit(&self, now_us: u64) -> Option<u64> {
        let mut window = self.window.lock();
        if window.since_us + SECOND_US <= now_us {
            (window.since_us, window.written_count) = (now_us, 0);
        }
        if window.written_count < REPORTS_PER_SECOND {
            window.written_count += 1;
            return Some(std::mem::take(&mut window.left_out_count));
        }
        window.left_out_count += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_room_for_ten_reports() {
        let log = DeadlockLog::default();
        for _ in 0..10 {
            assert_eq!(log.admit(SECOND_US), Some(0));
        }
        assert_eq!(log.admit(SECOND_US + 5), None);
        assert_eq!(log.admit(2 * SECOND_US - 1), None);
        assert_eq!(log.admit(2 * SECOND_US), Some(2));
        assert_eq!(log.admit(2 * SECOND_US), Some(0));
    }
}
