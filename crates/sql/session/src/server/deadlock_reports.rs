//! Reports of deadlocks: the last one, and how many are made.
//!
//! The session of the victim makes the report (`statement::deadlock`). A second has room for a
//! few; the next one in the log (`innodb_print_all_deadlocks`) says how many were left out.

use sync::Mutex;

/// Reports that are made in a second. More would hide what else the log has to say, and each lists
/// all sessions.
const REPORTS_PER_SECOND: u64 = 10;

const SECOND_US: u64 = 1_000_000;

/// The last report, and how many were made lately. One for the program.
#[derive(Debug, Default)]
pub(crate) struct DeadlockReports {
    window: Mutex<Window>,
    /// The number of a deadlock, and its report.
    last: Mutex<(u64, String)>,
}

#[derive(Debug, Default)]
struct Window {
    /// When it began, on the steady clock.
    since_us: u64,
    /// Reports that were made in it.
    made_count: u64,
    /// Reports that were left out since the last one.
    left_out_count: u64,
}

impl DeadlockReports {
    /// Whether one more report may be made now. If so, returns how many were left out since the
    /// last one.
    pub(crate) fn admit(&self, now_us: u64) -> Option<u64> {
        let mut window = self.window.lock();
        if window.since_us + SECOND_US <= now_us {
            (window.since_us, window.made_count) = (now_us, 0);
        }
        if window.made_count < REPORTS_PER_SECOND {
            window.made_count += 1;
            return Some(std::mem::take(&mut window.left_out_count));
        }
        window.left_out_count += 1;
        None
    }

    /// Keeps the report of a deadlock, if no later one has come.
    pub(crate) fn keep(&self, number: u64, report: String) {
        let mut last = self.last.lock();
        if last.0 < number {
            *last = (number, report);
        }
    }

    /// The report of a deadlock, if it was made and is the last one.
    pub(crate) fn of(&self, number: u64) -> Option<String> {
        let last = self.last.lock();
        (last.0 == number).then(|| last.1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_is_kept() {
        let reports = DeadlockReports::default();
        reports.keep(2, "two".to_owned());
        reports.keep(1, "one".to_owned());
        assert_eq!(reports.of(2).as_deref(), Some("two"));
        assert_eq!((reports.of(1), reports.of(3)), (None, None));
    }

    #[test]
    fn a_second_has_room_for_ten_reports() {
        let log = DeadlockReports::default();
        for _ in 0..10 {
            assert_eq!(log.admit(SECOND_US), Some(0));
        }
        assert_eq!(log.admit(SECOND_US + 5), None);
        assert_eq!(log.admit(2 * SECOND_US - 1), None);
        assert_eq!(log.admit(2 * SECOND_US), Some(2));
        assert_eq!(log.admit(2 * SECOND_US), Some(0));
    }
}
