//! What the lock table shows of itself.

use std::sync::Arc;

use metrics::{Metric, Registry, Unit};

use crate::table::LockTable;

const WAITS: Metric = Metric::counter(
    "Innodb_row_lock_waits",
    Unit::Count,
    "Requests for row locks that had to wait.",
);
const WAITING: Metric = Metric::gauge(
    "Innodb_row_lock_current_waits",
    Unit::Count,
    "Requests for row locks that wait now.",
);
const DEADLOCKS: Metric = Metric::counter(
    "Innodb_deadlocks",
    Unit::Count,
    "Deadlocks that were broken: each has rolled back one transaction.",
);
const CANCELLED: Metric = Metric::counter(
    "Row_lock_waits_given_up",
    Unit::Count,
    "Waits for row locks that ended by time-out, KILL or the end of the client.",
);
const SEARCH_STEPS: Metric = Metric::counter(
    "Row_lock_search_steps",
    Unit::Count,
    "Waits and holders that searches for deadlocks have looked at.",
);
const CUT: Metric = Metric::counter(
    "Row_lock_waits_cut",
    Unit::Count,
    "Waits for row locks that were shown with a part of what blocked them.",
);
const BYTES: Metric = Metric::gauge(
    "Row_lock_bytes",
    Unit::Bytes,
    "Memory of all row locks, of `lock_table_size`.",
);

impl LockTable {
    /// Adds the table's numbers.
    pub fn register_metrics(self: &Arc<Self>, registry: &mut Registry) {
        registry.add_each(
            self,
            &[
                (WAITS, |table| table.statistics().wait_count),
                (WAITING, |table| table.statistics().waiting_count),
                (DEADLOCKS, |table| table.statistics().deadlock_count),
                (CANCELLED, |table| table.statistics().cancel_count),
                (SEARCH_STEPS, |table| table.statistics().search_step_count),
                (CUT, LockTable::cut_count),
                (BYTES, LockTable::bytes),
            ],
        );
    }
}
