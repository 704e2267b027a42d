//! Entries of secondary indexes.
//!
//! An entry is never changed in place, except its header: a changed key means that the old entry is
//! marked deleted and another one is put. The writer always has the row locked, so entries need no
//! locks of their own for that. Unique checks and locking scans lock them, and a writer waits for
//! these locks.

use std::rc::Rc;

use btree::change::{Edit, fits, payload};
use btree::{Change, From, Place, Run, Spot, Tree, Wanted, damaged};
use format::page_op::PageOp;
use format::row_header::{ENTRY_BYTES, EntryHeader};
use format::slotted::{Splice, TreePage};
use format::undo::{PurgeItem, UndoKind, UndoRecord};
use format::{PageId, TableId, TxnId, UndoPointer};
use lock::{LockExtent, LockKind, LockMode, LockName, Term};
use store::{Interrupt, LockWait, Outcome, StoreError};

use crate::row::conflict::{Access, RowName, Stored, WantedLock};
use crate::schema::table_shape::{EntryKey, IndexShape};
use crate::transaction::EngineTransaction;
use crate::transaction::pending::LeftLock;
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
                        worker.make_undo_room()?;
                        continue;
                    }
                }
            }
            // Whoever has waited for an entry that a rollback has removed has its key's lock. So it
            // comes first.
            self.check_entry(tree, key, TxnId::NONE)?;
            let gap = self.check_gap(tree, &change, spot)?;
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
            self.split_gap(tree, key, gap);
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
        self.check_entry(tree, &entry.bytes, deleted.txn)?;
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
        let worker = Rc::clone(&self.worker);
        let check = |writer| self.check_entry(tree, &entry.bytes, writer);
        worker.mark_entry(tree, (&entry.bytes, id), Mark::Deleted, check)
    }

    /// A writer's check, with the entry's leaf latched: no other transaction has the entry locked.
    /// The row is the writer's already, so the last one who wrote the entry has ended, or has
    /// undone that.
    fn check_entry(&mut self, tree: Tree, key: &[u8], writer: TxnId) -> Outcome<()> {
        let is_own = self.id == Some(writer);
        let name = RowName {
            index: tree.index,
            key,
            writer: if is_own { writer } else { TxnId::NONE },
        };
        let access = self.check_write(name)?;
        assert!(access == Access::Granted, "there is no writer to end");
        Ok(())
    }

    /// Looks for another row with the entry's own part. Locks, in `mode`, the entries that it finds
    /// and the gaps before them, and returns the key of the row. Until the operation ends no other
    /// transaction looks for the same own part, so that none can add it meanwhile. After that the
    /// entry is there, and is its writer's.
    ///
    /// InnoDB locks the same entries. A deleted one does not end the search, and the entry after
    /// those with the own part is locked then, too. What is applied locks none of these gaps, so
    /// that it lets other write sets pass: the lock of the own part alone keeps the value unique.
    pub(crate) fn find_duplicate(
        &mut self,
        index: &IndexShape,
        entry: &EntryKey,
        mode: LockMode,
    ) -> Outcome<Option<Box<[u8]>>> {
        if !index.is_unique || entry.has_null {
            return Ok(None);
        }
        self.ensure_writer()?;
        check_key_length(&self.worker, entry)?;
        let own_part = LockName::key(index.tree.index, entry.own());
        let exclusive = LockKind::EXCLUSIVE_RECORD;
        self.acquire_for(Term::Operation, &own_part, exclusive, LockWait::Wait)?;
        loop {
            if let Searched::Found(key) = self.search_duplicate(index.tree, entry, mode)? {
                return Ok(key);
            }
        }
    }

    /// Looks through the entries with an own part, each of which it locks.
    fn search_duplicate(
        &mut self,
        tree: Tree,
        entry: &EntryKey,
        mode: LockMode,
    ) -> Outcome<Searched> {
        assert!(!entry.has_null, "NULL equals nothing");
        let locks_gaps = self.applied_seqno().is_none();
        let extent = match locks_gaps {
            true => LockExtent::NextKey,
            false => LockExtent::BareRecord,
        };
        let wanted = WantedLock::all(LockKind { mode, extent }, LockWait::Wait);
        let pages = Rc::clone(&self.worker);
        let pages = &pages.pages;
        let mut run = Run::new();
        let mut place = Place::new(From::AtLeast, entry.own());
        let (mut passed, mut has_deleted) = (Vec::new(), false);
        while place.from != From::Nothing {
            tree.read_run(pages, &place, CHECK_LIMIT, &mut run)?;
            for number in 0..run.len() {
                let (key, _) = run.entry(number);
                let is_match = key.starts_with(entry.own());
                let is_asked_for = is_match || has_deleted && locks_gaps;
                if !is_asked_for {
                    return Ok(Searched::Found(None));
                }
                let is_deleted = self.lock_entry((tree, Stored::Entry), key, wanted)?;
                if !tree.is_current(pages, &run) || !tree.are_current(pages, &passed) {
                    return Ok(Searched::Changed);
                }
                passed.clear();
                if !is_match {
                    return Ok(Searched::Found(None));
                }
                if is_deleted == Some(false) {
                    let row_key = key.get(entry.own_length..).unwrap_or_default();
                    return Ok(Searched::Found(Some(row_key.into())));
                }
                has_deleted = true;
            }
            passed.extend(run.leaf());
            std::mem::swap(&mut place, &mut run.next);
        }
        if has_deleted && locks_gaps {
            let gap = LockKind {
                mode,
                extent: LockExtent::Gap,
            };
            self.acquire(&LockName::supremum(tree.index), gap, LockWait::Wait)?;
            if !tree.are_current(pages, &passed) {
                return Ok(Searched::Changed);
            }
        }
        Ok(Searched::Found(None))
    }
}

/// The outcome of a search for a row with the same key.
enum Searched {
    /// The row's key, or `None` if there is no such row.
    Found(Option<Box<[u8]>>),
    /// A leaf has changed meanwhile: search again.
    Changed,
}

/// What an entry is marked as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// It belongs to the newest version.
    Live,
    /// It belongs to older versions alone.
    Deleted,
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
    /// Sets or removes the deletion mark of an entry, if it is there and `check` lets it. The mark
    /// has the id of its writer. An entry whose mark is undone gets the id of the version that it
    /// belongs to again, as in InnoDB: the entry does not stay locked, and who sees that version
    /// sees the entry.
    pub(crate) fn mark_entry(
        &self,
        tree: Tree,
        (key, id): (&[u8], TxnId),
        mark: Mark,
        mut check: impl FnMut(TxnId) -> Outcome<()>,
    ) -> Outcome<()> {
        let root = PageId::new(tree.space, tree.root);
        tree.modify(&self.pages, key, |payload| {
            let Some(payload) = payload else {
                return Ok(Edit::Keep);
            };
            let old = decode(payload, root)?;
            if mark == Mark::Live && !old.is_deleted {
                // The undone change had not come to this entry.
                return Ok(Edit::Keep);
            }
            let is_revived = old.is_revived && old.txn == id;
            let new = EntryHeader {
                txn: id,
                is_deleted: mark == Mark::Deleted,
                is_revived,
                own_length: old.own_length,
            };
            if new == old {
                return Ok(Edit::Keep);
            }
            check(old.txn)?;
            Ok(Edit::Put(new.encode().to_vec()))
        })?;
        Ok(())
    }

    /// Undoes an entry that `id` has put: one that was there before is deleted again, a new one is
    /// removed. A deleted one was not put yet: the undone operation did not get that far, and older
    /// versions may need it.
    pub(crate) fn take_back_entry(
        &self,
        tree: Tree,
        key: &[u8],
        (id, left): (TxnId, LeftLock),
    ) -> Outcome<()> {
        let root = PageId::new(tree.space, tree.root);
        let mut is_gone = false;
        let decide = |payload: Option<&[u8]>| {
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
        };
        tree.modify_and(&self.pages, key, decide, |change, spot| {
            self.join_gap(tree, (change, spot), key, left.leaver(id))
        })?;
        if is_gone {
            self.leave_record(tree, key, id);
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
