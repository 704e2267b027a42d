//! What purge must check once no snapshot needs a version of a row: its large value, and the
//! entries that the next version lacks.
//!
//! A list of them stands in the undo record of the change that replaced the version. An undo record
//! must fit into a page. A row may have more entries than that, each as long as a key may be. So
//! what exceeds a quarter of a page stands in records of kind `PurgeItems` of their own, before the
//! change's. Purge reads a segment in the order of writing, and checks a transaction's records only
//! when its outcome is settled. So it does not matter which of them names an entry, nor that a
//! repeated operation names one twice.

use std::rc::Rc;

use format::TableId;
use format::page_op::PageOp;
use format::undo::{PurgeItem, UndoKind, UndoRecord};
use store::Outcome;

use crate::transaction::EngineTransaction;
use crate::undo_log::apply;

/// Share of a page that the list in one record may take, unless a single entry takes more. With a
/// key (a fifth of a page) and what a change removes from a row (a quarter), a record stays below
/// three quarters.
const PAGE_SHARE: usize = 4;

/// What only one version of a row needs.
#[derive(Debug, Default)]
pub(crate) struct PurgeList {
    /// For the undo record of the change.
    own: Vec<u8>,
    /// For records before it, one each.
    apart: Vec<Vec<u8>>,
}

impl PurgeList {
    /// The list for the undo record of the change itself, after
    /// [`EngineTransaction::note_purge_items`] has written the rest.
    pub(crate) fn own(&self) -> &[u8] {
        &self.own
    }

    /// Adds one. A large value comes before all entries, because the change's own record must name
    /// it: that is settled when the value's last page is given back.
    pub(crate) fn push(&mut self, item: &PurgeItem<'_>, page_bytes: usize) {
        let last = self.apart.last_mut().unwrap_or(&mut self.own);
        let is_value = matches!(item, PurgeItem::Lob { .. });
        let start = last.len();
        assert!(!is_value || start == 0, "a large value comes first");
        item.encode(last);
        if 0 < start && page_bytes / PAGE_SHARE < last.len() {
            let one = last.split_off(start);
            self.apart.push(one);
        }
    }
}

impl EngineTransaction {
    /// Writes the records that stand before the change's own. A repeated call continues where the
    /// last one stopped.
    pub(crate) fn note_purge_items(&mut self, table: TableId, list: &PurgeList) -> Outcome<()> {
        if list.apart.is_empty() {
            return Ok(());
        }
        let id = self.ensure_writer()?;
        let worker = Rc::clone(&self.worker);
        let noted = self.pending.purge_items_noted;
        assert!(
            noted <= list.apart.len(),
            "a repeated call has the same list"
        );
        while let Some(items) = list.apart.get(self.pending.purge_items_noted) {
            let mut change = worker.pages.change()?;
            let record = UndoRecord {
                kind: UndoKind::PurgeItems,
                table,
                purge_list: items,
                ..UndoRecord::end(UndoKind::Commit, id, self.last_undo)
            };
            let Some((place, bytes)) = self.append_undo(&mut change, &record)? else {
                drop(change);
                worker.make_undo_room()?;
                continue;
            };
            let op = PageOp::UndoAppend { record: &bytes };
            apply(&mut change, place.page, &op)?;
            change.commit();
            self.note_undo(place.pointer);
            self.pending.purge_items_noted += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_where_a_record_would_be_too_long() {
        let mut list = PurgeList::default();
        let value = PurgeItem::Lob {
            space: 7,
            first_page: 8,
        };
        let key = [9; 400];
        let entry = |index| PurgeItem::Entry { index, key: &key };
        list.push(&value, 4096);
        for index in 0..6 {
            list.push(&entry(index), 4096);
        }
        let long = [3; 2000];
        list.push(
            &PurgeItem::Entry {
                index: 6,
                key: &long,
            },
            4096,
        );
        let read = |bytes| PurgeItem::list(bytes).count();
        assert_eq!(read(list.own()), 3);
        let apart: Vec<_> = list.apart.iter().map(|bytes| read(bytes)).collect();
        assert_eq!(apart, [2, 2, 1]);
    }
}
