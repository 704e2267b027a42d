//! What SHOW STATUS has of admission.

use std::sync::Arc;

use metrics::{Counter, HistogramSnapshot, Metric, Registry, Unit, sum_of};

use crate::numbers::GateNumbers;
use crate::shared::Admission;

const LIMIT: Metric = Metric::gauge(
    "Admission_limit",
    Unit::Count,
    "Transactions that may be inside the engine at a time; 0: no limit.",
);
const DECISION: Metric = Metric::gauge(
    "Admission_decision",
    Unit::Count,
    "What sets the limit: 0 nothing (off), 1 a fixed number, 2 auto and no one waits, 3 auto and \
     searching, 4 auto and found, 5 auto and lowered because of the log or dirty pages.",
);
const INSIDE: Metric = Metric::gauge(
    "Admission_inside",
    Unit::Count,
    "Transactions inside the engine that count against the limit.",
);
const WAITING: Metric = Metric::gauge(
    "Admission_waiting",
    Unit::Count,
    "Transactions that wait for admission now.",
);
const BLOCKED: Metric = Metric::gauge(
    "Admission_blocked",
    Unit::Count,
    "Transactions inside the engine that wait for row locks now.",
);
const ADMITTED: Metric = count(
    "Admission_admitted",
    "Transactions that were admitted while there was a limit.",
);
const QUEUED: Metric = count(
    "Admission_waits",
    "Transactions that had to wait for admission.",
);
const ESCAPES: Metric = count(
    "Admission_escapes",
    "Transactions that needed no admission while there was a limit: reads that are their own \
     transaction, sessions with locks, administrators.",
);
const OVERDUE: Metric = count(
    "Admission_overdue",
    "Transactions that were admitted above the limit because they had waited too long.",
);
const WAITED: Metric = Metric::histogram(
    "Admission_wait_us",
    Unit::Microseconds,
    "How long waits for admission took.",
);

const fn count(name: &'static str, help: &'static str) -> Metric {
    Metric::counter(name, Unit::Count, help)
}

/// A counter, and where each gate has its part.
type Sum = (Metric, fn(&GateNumbers) -> &Counter);

impl Admission {
    /// Adds the numbers of admission to those of the program.
    pub fn register_metrics(self: &Arc<Self>, registry: &mut Registry) {
        registry.add_each(
            self,
            &[
                (LIMIT, |shared| shared.limit().map_or(0, u64::from)),
                (DECISION, |shared| shared.decision_number()),
                (INSIDE, |shared| shared.sum(|it| &it.inside)),
                (WAITING, |shared| shared.sum(|it| &it.waiting)),
                (BLOCKED, |shared| shared.sum(|it| &it.blocked)),
            ],
        );
        let sums: [Sum; 4] = [
            (ADMITTED, |it| &it.admitted),
            (QUEUED, |it| &it.queued),
            (ESCAPES, |it| &it.escapes),
            (OVERDUE, |it| &it.overdue),
        ];
        for (metric, pick) in sums {
            registry.add(metric, sum_of(self.numbers(), pick));
        }
        let all = Arc::clone(self.numbers());
        registry.add_histogram(WAITED, move || {
            let mut sum = HistogramSnapshot::empty();
            for numbers in all.iter() {
                sum.merge(&numbers.waited_us.snapshot());
            }
            sum
        });
    }
}
