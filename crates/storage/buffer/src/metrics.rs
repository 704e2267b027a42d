//! What the pool shows of itself.

use std::sync::Arc;

use metrics::{Counter, Metric, Registry, Unit};

use crate::counters::PageCounters;
use crate::pool::Pool;

const REQUESTS: Metric = Metric::counter(
    "Innodb_buffer_pool_read_requests",
    Unit::Count,
    "Pages asked for, in memory or not.",
);
const READS: Metric = Metric::counter(
    "Innodb_buffer_pool_reads",
    Unit::Count,
    "Pages that had to be read from a file.",
);
const FILE_READS: Metric = Metric::counter(
    "Innodb_data_reads",
    Unit::Count,
    "Reads of files; one may bring in several pages.",
);
const READS_AHEAD_CUT: Metric = Metric::counter(
    "Read_ahead_cut",
    Unit::Count,
    "Reads ahead of scans that were cut short: all of them together have an eighth of the pool \
     at most. `buffer_pool_size` may be too small for so many scans at once.",
);
const FRAME_WAITS: Metric = Metric::counter(
    "Innodb_buffer_pool_wait_free",
    Unit::Count,
    "Pages that had to wait until others were written: `buffer_pool_size` may be too small.",
);
const WRITES: Metric = Metric::counter(
    "Innodb_pages_written",
    Unit::Pages,
    "Pages written to files.",
);
const TOTAL: Metric = Metric::gauge(
    "Innodb_buffer_pool_pages_total",
    Unit::Pages,
    "Pages that the pool has room for.",
);
const FREE: Metric = Metric::gauge(
    "Innodb_buffer_pool_pages_free",
    Unit::Pages,
    "Room of the pool that has never been used or was given back.",
);
const DATA: Metric = Metric::gauge(
    "Innodb_buffer_pool_pages_data",
    Unit::Pages,
    "Pages in memory.",
);
const DIRTY: Metric = Metric::gauge(
    "Innodb_buffer_pool_pages_dirty",
    Unit::Pages,
    "Pages in memory that were changed and not yet written, and some that were written just now.",
);
const PAGE_SIZE: Metric = Metric::gauge("Innodb_page_size", Unit::Bytes, "Size of a page.");

impl Pool {
    /// Adds the numbers of the pool and of the log behind it.
    pub fn register_metrics(self: &Arc<Self>, registry: &mut Registry) {
        registry.add_each(
            self,
            &[
                (REQUESTS, |pool| pool.sum(|counters| &counters.requests)),
                (READS, Pool::pages_read),
                (FILE_READS, Pool::reads),
                (READS_AHEAD_CUT, Pool::reads_ahead_cut),
                (FRAME_WAITS, |pool| {
                    pool.sum(|counters| &counters.frame_waits)
                }),
                (WRITES, Pool::pages_written),
                (TOTAL, |pool| u64::from(pool.frames.count())),
                (FREE, Pool::free_pages),
                (DATA, |pool| {
                    u64::from(pool.frames.count()).saturating_sub(pool.free_pages())
                }),
                (DIRTY, |pool| stdx::to_u64(pool.dirty_pages())),
                (PAGE_SIZE, |pool| {
                    stdx::to_u64(pool.options.page_size.bytes())
                }),
            ],
        );
        self.wal.register_metrics(registry);
    }

    /// Frames without a page that are in nobody's hands.
    fn free_pages(&self) -> u64 {
        self.shares.iter().map(|share| share.free_count()).sum()
    }

    fn sum(&self, pick: impl Fn(&PageCounters) -> &Counter) -> u64 {
        self.counters
            .iter()
            .map(|counters| pick(counters).value())
            .sum()
    }
}
