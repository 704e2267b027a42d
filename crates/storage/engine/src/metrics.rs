//! What the engine shows of itself and of what it stands on.

use std::sync::Arc;

use metrics::{Counter, HistogramSnapshot, Metric, Registry, Unit};

use crate::counters::EngineCounters;
use crate::worker::Shared;

const HISTORY: Metric = Metric::gauge(
    "Innodb_history_list_length",
    Unit::Count,
    "Transactions that have ended since the start and whose old versions purge has not removed.",
);
const PURGED: Metric = Metric::counter(
    "Purged_undo_records",
    Unit::Count,
    "Records of undo that purge is through with.",
);
const UNDO_PAGES: Metric = Metric::gauge(
    "Undo_pages",
    Unit::Pages,
    "Pages of undo that were taken since the start and not given back.",
);
const LOCK_WAITS: Metric = Metric::histogram(
    "Row_lock_wait_us",
    Unit::Microseconds,
    "How long waits for row locks took.",
);
const LOCK_TIME: Metric = Metric::counter(
    "Innodb_row_lock_time",
    Unit::Milliseconds,
    "Time of all waits for row locks together.",
);
const LOCK_TIME_AVERAGE: Metric = Metric::gauge(
    "Innodb_row_lock_time_avg",
    Unit::Milliseconds,
    "Average time of a wait for a row lock.",
);
const LOCK_TIME_MAX: Metric = Metric::gauge(
    "Innodb_row_lock_time_max",
    Unit::Milliseconds,
    "Time of the longest wait for a row lock.",
);

/// Microseconds in a millisecond.
const MILLISECOND_US: u64 = 1000;

impl Shared {
    /// Adds the numbers of the engine, its locks and its transactions. Those of the pool are added
    /// by [`buffer::Pool::register_metrics`].
    pub fn register_metrics(self: &Arc<Self>, registry: &mut Registry) {
        self.locks.register_metrics(registry);
        self.txns.register_metrics(registry);
        registry.add_each(
            self,
            &[
                (HISTORY, Shared::history_length),
                (PURGED, |shared| shared.sum(|it| &it.records_purged)),
                (UNDO_PAGES, Shared::undo_pages),
                (LOCK_TIME, |shared| {
                    shared.lock_waits_us().sum() / MILLISECOND_US
                }),
                (LOCK_TIME_AVERAGE, |shared| {
                    let waits = shared.lock_waits_us();
                    waits.sum().checked_div(waits.count()).unwrap_or(0) / MILLISECOND_US
                }),
                (LOCK_TIME_MAX, |shared| {
                    shared.lock_waits_us().max() / MILLISECOND_US
                }),
            ],
        );
        let shared = Arc::clone(self);
        registry.add_histogram(LOCK_WAITS, move || shared.lock_waits_us());
    }

    /// Purge also passes ends from before this start, so it may be ahead for a while.
    fn history_length(&self) -> u64 {
        let purged = self.sum(|it| &it.ends_purged);
        self.sum(|it| &it.ends_written).saturating_sub(purged)
    }

    /// Purge also gives pages from before this start back.
    fn undo_pages(&self) -> u64 {
        let dropped = self.sum(|it| &it.undo_pages_dropped);
        self.sum(|it| &it.undo_pages_taken).saturating_sub(dropped)
    }

    fn lock_waits_us(&self) -> HistogramSnapshot {
        let mut all = HistogramSnapshot::empty();
        for counters in &self.counters {
            all.merge(&counters.lock_waits_us.snapshot());
        }
        all
    }

    pub(crate) fn sum(&self, pick: impl Fn(&EngineCounters) -> &Counter) -> u64 {
        let values = self.counters.iter().map(|it| pick(it).value());
        values.sum()
    }
}
