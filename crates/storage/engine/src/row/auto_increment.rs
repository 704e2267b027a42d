//! The AUTO_INCREMENT counter of a table on disk.
//!
//! Page 0 of the tablespace holds the number at which the counter begins after a restart: the
//! ceiling, below which numbers may have been used. Numbers are allocated in memory. The ceiling is
//! raised before them, by mini-transactions of its own. If a statement sets the counter, the
//! mini-transaction that commits the statement changes the ceiling, so a crash leaves both or
//! neither.

use format::page_bytes::PageBytes;
use format::{PageId, PageNo};
use store::Outcome;

use crate::schema::table_shape::{AutoCounter, TableShape};
use crate::undo_log::put;
use crate::worker::Worker;

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

/// The first number of the sequence that is not below `next`.
pub(crate) fn first_number(next: u64, step: u64, offset: u64) -> Option<u64> {
    let step = step.max(1);
    let offset = if step < offset { 1 } else { offset.max(1) };
    if next <= offset {
        return Some(offset);
    }
    let behind = (next - offset) % step;
    if behind == 0 {
        Some(next)
    } else {
        next.checked_add(step - behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_step_and_offset() {
        assert_eq!(first_number(1, 1, 1), Some(1));
        assert_eq!(first_number(5, 1, 1), Some(5));
        assert_eq!(first_number(5, 10, 3), Some(13));
        assert_eq!(first_number(3, 10, 3), Some(3));
        assert_eq!(first_number(1, 10, 3), Some(3));
        assert_eq!(first_number(u64::MAX, 10, 1), None);
    }
}
