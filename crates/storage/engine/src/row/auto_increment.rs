//! The AUTO_INCREMENT counter of a table on disk.
//!
//! Page 0 of the tablespace holds the number at which the counter begins after a restart: the
//! ceiling, below which numbers may have been used. Numbers are allocated in memory. The ceiling is
//! raised before them, by mini-transactions of its own. If a statement sets the counter, the
//! mini-transaction that commits the statement changes the ceiling, so a crash leaves both or
//! neither.

use std::sync::Arc;

use btree::Change;
use buffer::Latched;
use format::page_bytes::PageBytes;
use format::{Lsn, PageId, PageNo};
use store::Outcome;

use crate::schema::table_shape::{AutoCounter, LiveTable, TableShape};
use crate::undo::undo_log::put;
use crate::worker::Worker;

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

impl Worker {
    /// Writes the ceiling of a table's counter.
    pub(crate) fn raise_auto(&self, shape: &TableShape, ceiling: u64) -> Outcome<()> {
        self.write_auto(shape, ceiling, |auto| {
            let is_higher = auto.ceiling < ceiling;
            is_higher.then_some(AutoCounter { ceiling, ..auto })
        })
    }

    /// Sets the counter, in memory and on disk.
    pub(crate) fn set_auto(&self, shape: &TableShape, next: u64) -> Outcome<()> {
        let ceiling = next;
        self.write_auto(shape, ceiling, |_| Some(AutoCounter { next, ceiling }))
    }

    /// Writes the ceiling and replaces the counter by what `replace` returns, if it returns one.
    /// The counter's mutex is held over both: a worker in between would find the old ceiling and
    /// write a lower one over this.
    fn write_auto(
        &self,
        shape: &TableShape,
        ceiling: u64,
        replace: impl FnOnce(AutoCounter) -> Option<AutoCounter>,
    ) -> Outcome<()> {
        let mut change = self.pages.change()?;
        let header = change.latch(PageId::new(shape.space(), PageNo(0)))?;
        let mut auto = shape.live.auto.lock();
        let Some(replaced) = replace(*auto) else {
            return Ok(());
        };
        assert_eq!(
            replaced.ceiling, ceiling,
            "memory and disk have the same ceiling"
        );
        assert!(
            replaced.next <= replaced.ceiling,
            "no number is given out that a crash would give out again"
        );
        let bytes = ceiling.to_le_bytes();
        put(&mut change, header, btree::space::OWNER_AT, &bytes)?;
        change.commit();
        *auto = replaced;
        Ok(())
    }

    /// Reads the counter after a start.
    pub(crate) fn read_auto(&self, shape: &TableShape) -> Outcome<AutoCounter> {
        let id = PageId::new(shape.space(), PageNo(0));
        let page = self.pages.shared(id)?;
        let ceiling = page.bytes().u64_at(btree::space::OWNER_AT);
        let ceiling = ceiling
            .ok_or_else(|| btree::damaged(id, "no space header"))?
            .max(1);
        Ok(AutoCounter {
            next: ceiling,
            ceiling,
        })
    }
}
