//! Entries of secondary indexes.
//!
//! An entry is never changed in place, except its header: a changed key means that the old entry is
//! marked deleted and another one is put. The writer always has the row locked, so entries need no
//! locks of their own. Only unique checks lock, by the index's own part of the key.

use std::rc::Rc;

use btree::change::{Edit, fits, payload};
use btree::{Change, From, Place, Run, Spot, Tree, Wanted, damaged};
use format::page_op::PageOp;
use format::row_header::{ENTRY_BYTES, EntryHeader, RowHeader};
use format::slotted::{Splice, TreePage};
use format::undo::{PurgeItem, UndoKind, UndoRecord};
use format::{PageId, TableId, TxnId, UndoPointer};
use lock::{LockKind, LockName};
use store::{Interrupt, LockWait, Outcome, StoreError};

use crate::row::conflict::{Access, RowName};
use crate::schema::table_shape::{EntryKey, IndexShape, TableShape};
use crate::transaction::EngineTransaction;
use crate::undo_log::apply;
use crate::worker::Worker;

/// Entries that a unique check reads at a time.
const CHECK_LIMIT: usize = 16;

impl EngineTransaction {
    /// Makes the entry of a new version: inserts it, or revives a deleted one.
    pub(crate) fn put_entry(
        &mut self,
        table: TableId,
        tree: Tree,
        entry: &EntryKey,
    ) -> Outcome<()> {
        let id = self.ensure_writer()?;
        let worker = Rc::clone(&self.worker);
        check_key_length(&worker, entry)?;
        let key = entry.bytes.as_slice();
        loop {
            let mut change = worker.pages.change()?;
            let Some(spot) = tree.latch(&worker.pages, &mut change, key)? else {
                continue;
            };
            assert_eq!(
                change.id(spot.leaf).space,
                tree.space,
                "an entry goes into its table's tablespace"
            );
            if spot.is_match {
                match self.revive_entry(&mut change, spot, (table, tree, id), entry)? {
                    Revived::Already => return Ok(()),
                    Revived::Done(pointer) => {
                        change.commit();
                        self.note_undo(pointer);
                        return Ok(());
                    }
                    Revived::UndoRoom => {
                        drop(change);
                        worker.undo.make_room(&worker.pages)?;
                        continue;
                    }
                }
            }
            let wanted = Wanted {
                key,
                payload_bytes: ENTRY_BYTES,
                is_new: true,
            };
            if !fits(change.bytes(spot.leaf), wanted) {
                drop(change);
                tree.make_room(&worker.pages, wanted)?;
                continue;
            }
            let header = EntryHeader {
                txn: id,
                own_length: own_length(entry),
                ..EntryHeader::default()
            };
            let payload = &header.encode();
            let op = PageOp::TreeInsert {
                slot: spot.slot_number(),
                key,
                payload,
            };
            apply(&mut change, spot.leaf, &op)?;
            debug_assert_eq!(
                entry_at(&change, spot),
                Some(header),
                "the entry stands where the next look-up finds it"
            );
            change.commit();
            return Ok(());
        }
    }

    /// Removes the deletion mark of an entry, and leaves purge a note that it was there.
    fn revive_entry(
        &mut self,
        change: &mut Change<'_>,
        spot: Spot,
        (table, tree, id): (TableId, Tree, TxnId),
        entry: &EntryKey,
    ) -> Outcome<Revived> {
        let mut old = Vec::new();
        payload(change, spot, &mut old)?;
        let deleted = decode(&old, change.id(spot.leaf))?;
        if !deleted.is_deleted {
            // Only a repeated call finds its own earlier work.
            return Ok(Revived::Already);
        }
        // A statement that was undone leaves the mark of its transaction, but not the row's.
        debug_assert!(
            deleted.txn == id
                || deleted.is_revived
                || !self.worker.shared.txns.is_active(deleted.txn),
            "the caller has the row of the entry locked"
        );
        let mut purge_list = Vec::new();
        PurgeItem::Entry {
            index: tree.index.0,
            key: &entry.bytes,
        }
        .encode(&mut purge_list);
        let record = UndoRecord {
            kind: UndoKind::PurgeItems,
            table,
            purge_list: &purge_list,
            ..UndoRecord::end(UndoKind::Commit, id, self.last_undo)
        };
        let Some((place, bytes)) = self.append_undo(change, &record)? else {
            return Ok(Revived::UndoRoom);
        };
        let own_length = own_length(entry);
        let header = EntryHeader {
            txn: id,
            is_deleted: false,
            is_revived: true,
            own_length,
        };
        let inserted = &header.encode();
        let splice = Splice {
            offset: 0,
            removed: ENTRY_BYTES,
            inserted,
        };
        let op = PageOp::TreeSplice {
            slot: spot.slot_number(),
            change: splice,
        };
        apply(change, spot.leaf, &op)?;
        debug_assert_eq!(
            entry_at(change, spot),
            Some(header),
            "the entry is live again"
        );
        apply(change, place.page, &PageOp::UndoAppend { record: &bytes })?;
        Ok(Revived::Done(place.pointer))
    }

    /// Marks the entry of a version that is not the newest any more.
    pub(crate) fn delete_entry(&mut self, tree: Tree, entry: &EntryKey) -> Outcome<()> {
        let id = self.ensure_writer()?;
        self.worker.mark_entry(tree, &entry.bytes, id, true)
    }

    /// Looks for another row with the entry's own part, and locks that part so that no other
    /// transaction can add one meanwhile. Locks the row that it finds, and returns its key.
    pub(crate) fn find_duplicate(
        &mut self,
        table: &TableShape,
        index: &IndexShape,
        entry: &EntryKey,
    ) -> Outcome<Option<Box<[u8]>>> {
        if !index.is_unique || entry.has_null {
            return Ok(None);
        }
        self.ensure_writer()?;
        check_key_length(&self.worker, entry)?;
        let name = LockName::key(index.tree.index, entry.own());
        self.acquire(&name, LockKind::EXCLUSIVE_RECORD, LockWait::Wait)?;
        let mut run = Run::new();
        let mut place = Place::new(From::AtLeast, entry.own());
        while place.from != From::Nothing {
            index
                .tree
                .read_run(&self.worker.pages, &place, CHECK_LIMIT, &mut run)?;
            for number in 0..run.len() {
                let (key, payload) = run.entry(number);
                if !key.starts_with(entry.own()) {
                    return Ok(None);
                }
                let root = PageId::new(index.tree.space, index.tree.root);
                let header = decode(payload, root)?;
                let row_key = key.get(entry.own_length..).unwrap_or_default();
                if self.is_duplicate(table, index, (header, key, row_key))? {
                    return Ok(Some(row_key.into()));
                }
            }
            place = run.next.clone();
        }
        Ok(None)
    }

    /// Whether an entry belongs to an existing row, which this transaction then has locked.
    fn is_duplicate(
        &mut self,
        table: &TableShape,
        index: &IndexShape,
        (header, key, row_key): (EntryHeader, &[u8], &[u8]),
    ) -> Outcome<bool> {
        let is_others =
            Some(header.txn) != self.id && self.worker.shared.txns.is_active(header.txn);
        if header.is_deleted && !is_others {
            return Ok(false);
        }
        self.lock_key(table, row_key)?;
        // The holder may have ended during the wait: check again.
        let mut payload = Vec::new();
        if !index.tree.get(&self.worker.pages, key, &mut payload)? {
            return Ok(false);
        }
        let root = PageId::new(index.tree.space, index.tree.root);
        Ok(!decode(&payload, root)?.is_deleted)
    }

    /// Locks a row by its key, exclusively.
    fn lock_key(&mut self, table: &TableShape, row_key: &[u8]) -> Outcome<()> {
        let worker = Rc::clone(&self.worker);
        loop {
            let access = table
                .clustered
                .read_latched(&worker.pages, row_key, |payload| {
                    let header = payload.and_then(RowHeader::split).map(|(header, _)| header);
                    let writer = header.map_or(TxnId::NONE, |header| header.txn);
                    let row = RowName {
                        index: table.clustered.index,
                        key: row_key,
                        writer,
                    };
                    self.lock_row(row, LockKind::EXCLUSIVE_RECORD, LockWait::Wait)
                })?;
            if access == Access::Granted {
                return Ok(());
            }
        }
    }
}

/// The outcome for an existing entry.
enum Revived {
    /// It was not deleted.
    Already,
    /// It is revived; the change must be committed, with this undo record.
    Done(UndoPointer),
    /// The undo segment needs a page first.
    UndoRoom,
}

/// The header of the entry at a spot.
fn entry_at(change: &Change<'_>, spot: Spot) -> Option<EntryHeader> {
    let page = change.bytes(spot.leaf);
    let extent = TreePage::new(page)?.payload(spot.slot)?;
    EntryHeader::decode(page.get(extent.offset..extent.offset + extent.length)?)
}

pub(crate) fn own_length(entry: &EntryKey) -> u16 {
    assert!(
        entry.own_length <= entry.bytes.len(),
        "an entry begins with its own part"
    );
    u16::try_from(entry.own_length).expect("a key is shorter than a page")
}

impl Worker {
    /// Sets the deletion mark of an entry, if it is there.
    pub(crate) fn mark_entry(
        &self,
        tree: Tree,
        key: &[u8],
        id: TxnId,
        is_deleted: bool,
    ) -> Outcome<()> {
        let root = PageId::new(tree.space, tree.root);
        tree.modify(&self.pages, key, |payload| {
            let Some(payload) = payload else {
                return Ok(Edit::Keep);
            };
            let old = decode(payload, root)?;
            let is_revived = old.is_revived && old.txn == id;
            let new = EntryHeader {
                txn: id,
                is_deleted,
                is_revived,
                own_length: old.own_length,
            };
            Ok(if new == old {
                Edit::Keep
            } else {
                Edit::Put(new.encode().to_vec())
            })
        })?;
        Ok(())
    }

    /// Undoes an entry that `id` has put: one that was there before is deleted again, a new one is
    /// removed. A deleted one was not put yet: the undone operation did not get that far, and older
    /// versions may need it.
    pub(crate) fn take_back_entry(&self, tree: Tree, key: &[u8], id: TxnId) -> Outcome<()> {
        let root = PageId::new(tree.space, tree.root);
        let mut is_gone = false;
        tree.modify(&self.pages, key, |payload| {
            is_gone = false;
            let Some(payload) = payload else {
                return Ok(Edit::Keep);
            };
            let old = decode(payload, root)?;
            if old.txn != id || old.is_deleted {
                return Ok(Edit::Keep);
            }
            if !old.is_revived {
                is_gone = true;
                return Ok(Edit::Remove);
            }
            let new = EntryHeader {
                is_deleted: true,
                ..old
            };
            Ok(Edit::Put(new.encode().to_vec()))
        })?;
        if is_gone {
            self.join_leaf(tree, key)
        } else {
            Ok(())
        }
    }
}

fn check_key_length(worker: &Worker, entry: &EntryKey) -> Outcome<()> {
    let limit = btree::key_bytes_max(worker.pages.page_bytes());
    let bytes = entry.bytes.len();
    if limit < bytes {
        Err(StoreError::KeyTooLarge { bytes, limit }.into())
    } else {
        Ok(())
    }
}

/// The header of an entry.
pub(crate) fn decode(payload: &[u8], page: PageId) -> Outcome<EntryHeader> {
    EntryHeader::decode(payload)
        .ok_or_else(|| -> Interrupt { damaged(page, "an index entry without a header") })
}
