//! What the monitor shows of itself.

use metrics::{Counter, Metric, Unit};

/// Numbers of a monitor. The worker that does the checks is their one writer.
#[derive(Debug, Default)]
pub struct Counters {
    /// Rounds that were judged.
    pub rounds: Counter,
    /// Checks that read nothing.
    pub failures: Counter,
    /// Logins to servers.
    pub logins: Counter,
    /// Maps that were published.
    pub maps: Counter,
    /// Rounds that came early because a session found a server dead.
    pub reports: Counter,
}

/// The numbers and where they are.
pub(crate) const NUMBERS: [metrics::Number<Counters>; 5] = [
    (
        Metric::counter(
            "Monitor_rounds",
            Unit::Count,
            "Rounds of checks of the servers.",
        ),
        |it| it.rounds.value(),
    ),
    (
        Metric::counter(
            "Monitor_failures",
            Unit::Count,
            "Checks of servers that failed.",
        ),
        |it| it.failures.value(),
    ),
    (
        Metric::counter(
            "Monitor_logins",
            Unit::Count,
            "Logins of monitors to servers.",
        ),
        |it| it.logins.value(),
    ),
    (
        Metric::counter(
            "Monitor_maps",
            Unit::Count,
            "Changes of what is known of the servers.",
        ),
        |it| it.maps.value(),
    ),
    (
        Metric::counter(
            "Monitor_reports",
            Unit::Count,
            "Rounds that came early because a session found a server dead.",
        ),
        |it| it.reports.value(),
    ),
];
