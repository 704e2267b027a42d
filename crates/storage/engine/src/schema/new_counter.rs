//! [`NewCounter`]: an AUTO_INCREMENT counter that a commit sets.

use std::sync::Arc;

use btree::Change;
use buffer::Latched;
use format::{Lsn, PageId, PageNo};
use store::Outcome;

use crate::schema::table_shape::{AutoCounter, LiveTable, TableShape};
use crate::undo_log::put;

/// A table's counter as it will be once the transaction that holds this is committed.
#[derive(Debug)]
pub(crate) struct NewCounter {
    /// The table's counter now.
    live: Arc<LiveTable>,
    /// The page with the number at which the counter begins after a restart.
    page: PageId,
    /// The next number.
    next: u64,
}

impl NewCounter {
    /// The counter of `shape` continues with `next`.
    pub(crate) fn new(shape: &TableShape, next: u64) -> Self {
        Self {
            live: Arc::clone(&shape.live),
            page: PageId::new(shape.space(), PageNo(0)),
            next,
        }
    }

    /// Latches the counter's page for [`NewCounter::commit`].
    pub(crate) fn latch(&self, change: &mut Change<'_>) -> Outcome<Latched> {
        change.latch(self.page)
    }

    /// Writes the counter as part of `change`, commits that, and sets the counter in memory. The
    /// mutex is held over all of it, as in `write_auto`.
    pub(crate) fn commit(&self, mut change: Change<'_>, page: Latched) -> Lsn {
        let next = self.next;
        assert_eq!(change.id(page), self.page, "the counter's page is latched");
        put(
            &mut change,
            page,
            btree::space::OWNER_AT,
            &next.to_le_bytes(),
        )
        .expect("a page is larger than its header");
        let mut auto = self.live.auto.lock();
        let lsn = change.commit();
        let ceiling = next;
        *auto = AutoCounter { next, ceiling };
        lsn
    }
}
