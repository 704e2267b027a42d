//! What differs between two plays of one schedule.

/// Kinds of differences. "There" is MariaDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Differing {
    /// One of the two servers hangs or drops the connection.
    Broken,
    Rows,
    Affected,
    Error,
    Contents,
    /// A result behind a step in which sessions went on at once that were blocked. Either may have
    /// been first, so no server is proven wrong.
    Raced,
    /// A statement that has waited has other results. What it waited for may have differed before.
    AfterWait,
    /// A statement waits there, not here. Where it must not wait, it fails there.
    WaitsThere,
    WaitsHere,
    /// A waiter continues there and is blocked here.
    WakesThere,
    WakesHere,
    /// A deadlock (1213) there, none here.
    DeadlockThere,
    DeadlockHere,
    /// SKIP LOCKED leaves out other rows.
    Skips,
    /// The same deadlock has another victim.
    Victim,
}

impl Differing {
    pub(super) fn name(self) -> &'static str {
        match self {
            Differing::Broken => "broken",
            Differing::Rows => "rows",
            Differing::Affected => "affected",
            Differing::Error => "error",
            Differing::Contents => "contents",
            Differing::Raced => "raced",
            Differing::AfterWait => "after-wait",
            Differing::WaitsThere => "waits-there",
            Differing::WaitsHere => "waits-here",
            Differing::WakesThere => "wakes-there",
            Differing::WakesHere => "wakes-here",
            Differing::DeadlockThere => "deadlock-there",
            Differing::DeadlockHere => "deadlock-here",
            Differing::Skips => "skips",
            Differing::Victim => "victim",
        }
    }

    /// Whether both servers waited for the same and one of the results is wrong.
    pub(super) fn is_wrong(self) -> bool {
        self <= Differing::Contents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_results_come_first() {
        assert!(Differing::Contents.is_wrong() && Differing::Broken.is_wrong());
        assert!(!Differing::Raced.is_wrong() && !Differing::WaitsThere.is_wrong());
    }
}
