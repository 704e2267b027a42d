//! What the log shows of itself.

use std::sync::Arc;

use metrics::{Metric, Registry, Unit};

use crate::Wal;

const WRITTEN_BYTES: Metric = Metric::counter(
    "Innodb_os_log_written",
    Unit::Bytes,
    "Bytes written to the log's files.",
);
const WRITES: Metric = Metric::counter(
    "Innodb_log_writes",
    Unit::Count,
    "Writes to the log's files.",
);
const SYNCS: Metric = Metric::counter(
    "Innodb_os_log_fsyncs",
    Unit::Count,
    "Durable writes and syncs of the log's files.",
);
const WAITS: Metric = Metric::counter(
    "Innodb_log_waits",
    Unit::Count,
    "Waits for room in the log: `log_size` may be too small.",
);
const LSN: Metric = Metric::gauge(
    "Innodb_lsn_current",
    Unit::Bytes,
    "The position of the next change in the log.",
);
const LSN_FLUSHED: Metric = Metric::gauge(
    "Innodb_lsn_flushed",
    Unit::Bytes,
    "The position up to which the log is on disk.",
);
const CHECKPOINT_AGE: Metric = Metric::gauge(
    "Innodb_checkpoint_age",
    Unit::Bytes,
    "Log that a recovery would go through.",
);

impl Wal {
    /// Adds the log's numbers.
    pub fn register_metrics(self: &Arc<Self>, registry: &mut Registry) {
        registry.add_each(
            self,
            &[
                (WRITTEN_BYTES, |wal| {
                    wal.flush_counters().written_bytes.value()
                }),
                (WRITES, |wal| wal.flush_counters().writes.value()),
                (SYNCS, |wal| wal.flush_counters().syncs.value()),
                (WAITS, |wal| wal.room_waiters().wait_count()),
                (LSN, |wal| wal.reserved().0),
                (LSN_FLUSHED, |wal| wal.durable().0),
                (CHECKPOINT_AGE, |wal| {
                    wal.reserved().0.saturating_sub(wal.checkpoint().0)
                }),
            ],
        );
    }
}
