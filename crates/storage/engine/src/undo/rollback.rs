//! Undoing one change: by the transaction itself, by the worker for an orphan, or by recovery for a
//! loser.
//!
//! Each step is made of ordinary logged mini-transactions. The last of them restores the row and
//! settles the undo record together. So after a crash in between, repeated steps change nothing,
//! and a settled record is never undone again.
//!
//! A step needs the path to one leaf, and the last one also the page of the undo record.
//! [`UndoProgress`] keeps what was done while a step waits for a page. Otherwise all leaves of a
//! row's entries would have to be in memory at one time. With a smaller pool the undo would never
//! end. The row is its writer's until then, so no other transaction undoes its steps.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use btree::change::{fits, payload};
use btree::lob;
use btree::space::Release;
use btree::{Change, Spot, Tree, Wanted, damaged};
use format::page_op::PageOp;
use format::row_header::RowHeader;
use format::slotted::Splice;
use format::undo::{PurgeItem, UndoKind, UndoRecord};
use format::{PageId, PageNo, SpaceId, TableId, UndoPointer};
use store::{Interrupt, Outcome, StoreError, Suspend, WaitReason};
use txn::Visibility;

use crate::lob_memo::LobMemo;
use crate::row::entries::Mark;
use crate::row::read::restore_version;
use crate::schema::dictionary::{self, DICTIONARY_TABLE};
use crate::schema::table_shape::TableShape;
use crate::transaction::UNDONE_PER_TURN;
use crate::transaction::pending::{EntryStep, UndoProgress};
use crate::undo_log::{apply, page_of, read_record, settle};
use crate::worker::Worker;

/// An entry on a damaged page stays as it is. It cannot be read before the index is made again from
/// the rows, and that puts it right. If the undo failed instead, the
/// transaction would hold its table for ever, and the server would not start.
fn pass_over_damage(restored: Outcome<()>, tree: Tree) -> Outcome<()> {
    match restored {
        Err(Interrupt::Error(error)) if is_damage_in(&error, tree.space) => Ok(()),
        restored => restored,
    }
}

fn is_damage_in(error: &StoreError, space: SpaceId) -> bool {
    let StoreError::Damaged { page, .. } = error else {
        return false;
    };
    page.is_some_and(|page| page.space == space)
}

/// How often undoing, which must have room, checks for it on a full disk.
const ROOM_WAIT: Duration = Duration::from_millis(100);

impl Worker {
    /// Undoes the record at `pointer`; returns the record before it. On a full disk it takes the
    /// room that is reserved for it, and then waits for more. Half undone work can neither be
    /// reported nor left. A repeated call continues from `progress`.
    pub(crate) fn undo_one(
        &self,
        pointer: UndoPointer,
        progress: &mut UndoProgress,
    ) -> Outcome<UndoPointer> {
        assert!(!pointer.is_null(), "there is something to be undone");
        let _undoing = self.pages.undoing();
        self.await_room(self.undo_record(pointer, progress))
    }

    /// Undoes a transaction up to this record, if no session waits for it. If it is called again
    /// after an error, it passes over what is undone already. `note` gets the number of records
    /// that were undone since its last call.
    pub(crate) async fn undo_all(
        &self,
        last_undo: UndoPointer,
        note: &mut dyn FnMut(u64),
    ) -> Result<(), StoreError> {
        let (mut pointer, mut progress) = (last_undo, UndoProgress::default());
        let mut undone_count = 0_u64;
        while !pointer.is_null() {
            pointer = self
                .until_done(|| self.undo_one(pointer, &mut progress))
                .await?;
            undone_count += 1;
            if undone_count.is_multiple_of(UNDONE_PER_TURN) {
                note(UNDONE_PER_TURN);
                Suspend::turn().await;
            }
        }
        note(undone_count % UNDONE_PER_TURN);
        Ok(())
    }

    /// Turns the error that there is no room, or no file to make it in, into a wait for it.
    pub(crate) fn await_room<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        match outcome {
            Err(Interrupt::Error(StoreError::DiskFull | StoreError::NoDescriptor { .. })) => {
                let wait = (self.options.sleep)(ROOM_WAIT);
                Err(Suspend::new(WaitReason::LogSpace, wait).into())
            }
            outcome => outcome,
        }
    }

    /// The bytes of the record at `pointer`, which are read once for all of its undo.
    pub(crate) fn undo_bytes(
        &self,
        pointer: UndoPointer,
        progress: &mut UndoProgress,
    ) -> Outcome<Rc<[u8]>> {
        if progress.pointer != pointer {
            let mut bytes = Vec::new();
            read_record(&self.pages, pointer, &mut bytes)?;
            *progress = UndoProgress {
                pointer,
                bytes: bytes.into(),
                left: progress.left,
                ..UndoProgress::default()
            };
        }
        Ok(Rc::clone(&progress.bytes))
    }

    fn undo_record(
        &self,
        pointer: UndoPointer,
        progress: &mut UndoProgress,
    ) -> Outcome<UndoPointer> {
        let bytes = self.undo_bytes(pointer, progress)?;
        let record = UndoRecord::decode(&bytes)
            .ok_or_else(|| damaged(page_of(pointer), "no undo record"))?;
        if !record.is_settled {
            match record.kind {
                UndoKind::Insert => self.undo_insert(&record, progress)?,
                UndoKind::Update | UndoKind::Delete => self.undo_change(&record, progress)?,
                UndoKind::PageTaken => self.undo_page(pointer, &record)?,
                UndoKind::Prepared => self.settle_only(pointer)?,
                // Purge checks what it names in any case.
                UndoKind::PurgeItems | UndoKind::Commit | UndoKind::RolledBack => {}
            }
        }
        *progress = UndoProgress::default();
        Ok(record.previous)
    }

    fn undo_insert(&self, record: &UndoRecord<'_>, progress: &mut UndoProgress) -> Outcome<()> {
        assert_eq!(record.kind, UndoKind::Insert);
        let pointer = progress.pointer;
        if progress.is_removed {
            return Ok(());
        }
        let Some(table) = self.undo_table(record.table) else {
            return self.settle_only(pointer);
        };
        if table.has_entries() {
            self.undo_entries(&table, record, progress)?;
        }
        loop {
            let mut change = self.pages.change()?;
            let Some(spot) = table.tree.latch(&self.pages, &mut change, record.key)? else {
                continue;
            };
            let undo = change.latch(page_of(pointer))?;
            if self.is_version_of(&change, spot, pointer)? {
                let slot = spot.slot_number();
                let leaver = progress.left.leaver(record.txn);
                self.join_gap(table.tree, (&change, spot), record.key, leaver)?;
                apply(&mut change, spot.leaf, &PageOp::TreeRemove { slot })?;
                table.count_row(false);
            }
            settle(&mut change, undo, pointer)?;
            change.commit();
            progress.is_removed = true;
            self.leave_record(table.tree, record.key, record.txn);
            return self.join_leaf(table.tree, record.key);
        }
    }

    /// Joins a leaf that has lost an entry with a neighbour, because no later insert may ever fall
    /// between its fences. A neighbour that cannot be read does not stop the undo. One that is not
    /// in memory is waited for once.
    pub(crate) fn join_leaf(&self, tree: Tree, key: &[u8]) -> Outcome<()> {
        if self.keeps_pages.get() {
            return Ok(());
        }
        match tree.shrink_if_sparse(&self.pages, key) {
            Err(Interrupt::Error(_)) => Ok(()),
            joined => joined,
        }
    }

    fn undo_change(&self, record: &UndoRecord<'_>, progress: &mut UndoProgress) -> Outcome<()> {
        assert!(matches!(record.kind, UndoKind::Update | UndoKind::Delete));
        let pointer = progress.pointer;
        let Some(table) = self.undo_table(record.table) else {
            return self.settle_only(pointer);
        };
        if table.has_entries() {
            self.undo_entries(&table, record, progress)?;
        }
        loop {
            let mut change = self.pages.change()?;
            let Some(spot) = table.tree.latch(&self.pages, &mut change, record.key)? else {
                continue;
            };
            let undo = change.latch(page_of(pointer))?;
            let mut newer = Vec::new();
            if spot.is_match {
                payload(&change, spot, &mut newer)?;
            }
            let (header, older) = version_before(record, pointer, &newer)?;
            let slot = spot.slot_number();
            let is_gone = self.is_gone_for_all(record);
            if is_gone {
                let leaver = progress.left.leaver(record.txn);
                self.join_gap(table.tree, (&change, spot), record.key, leaver)?;
                apply(&mut change, spot.leaf, &PageOp::TreeRemove { slot })?;
            } else {
                let payload_bytes = older.len().saturating_sub(newer.len());
                let wanted = Wanted {
                    key: record.key,
                    payload_bytes,
                    is_new: false,
                };
                if !fits(change.bytes(spot.leaf), wanted) {
                    drop(change);
                    if self.keeps_pages.get() {
                        return Err(damaged(page_of(pointer), "no room for the older version"));
                    }
                    table.tree.make_room(&self.pages, wanted)?;
                    continue;
                }
                let splice = Splice {
                    offset: 0,
                    removed: newer.len(),
                    inserted: &older,
                };
                let op = PageOp::TreeSplice {
                    slot,
                    change: splice,
                };
                apply(&mut change, spot.leaf, &op)?;
                payload(&change, spot, &mut newer)?;
                assert_eq!(newer, older, "the row is what it was");
            }
            settle(&mut change, undo, pointer)?;
            change.commit();
            if is_gone {
                self.leave_record(table.tree, record.key, record.txn);
            }
            if header.is_deleted != record.old_header.is_deleted {
                table.count_row(header.is_deleted);
            }
            return Ok(());
        }
    }

    /// Whether a record leads back to a deleted row that no snapshot sees any more. Purge may have
    /// looked for that row already, while the newer version was in its place, and given back its
    /// large value. So the check is the same as purge's.
    fn is_gone_for_all(&self, record: &UndoRecord<'_>) -> bool {
        let is_seen = || {
            let horizon = self.horizon();
            self.visibility(record.old_header.txn, horizon) == Visibility::All
        };
        record.old_header.is_deleted && is_seen()
    }

    /// Restores the entries that the older version needs, one by one.
    fn undo_entries(
        &self,
        table: &UndoTable,
        record: &UndoRecord<'_>,
        progress: &mut UndoProgress,
    ) -> Outcome<()> {
        if progress.steps.is_none() {
            let steps = self.entry_steps(table, record, progress)?;
            progress.steps = Some(steps);
            progress.memo = LobMemo::default();
        }
        let left = progress.left;
        let steps = progress.steps.as_mut().expect("they were found just now");
        while let Some(step) = steps.front() {
            let restored = if step.is_put {
                self.take_back_entry(step.tree, &step.key, (record.txn, left))
            } else {
                let entry = (step.key.as_slice(), record.old_header.txn);
                self.mark_entry(step.tree, entry, Mark::Live, |_| Ok(()))
            };
            pass_over_damage(self.reported(restored), step.tree)?;
            steps.pop_front();
        }
        Ok(())
    }

    /// The steps for the entries of a record's row.
    fn entry_steps(
        &self,
        table: &UndoTable,
        record: &UndoRecord<'_>,
        progress: &mut UndoProgress,
    ) -> Outcome<VecDeque<EntryStep>> {
        let mut newer = Vec::new();
        let is_there = table.tree.get(&self.pages, record.key, &mut newer)?;
        let memo = &mut progress.memo;
        let mut entries = |version: &[u8]| -> Outcome<Vec<(Tree, Vec<u8>)>> {
            let mut row = Vec::new();
            self.row_of(table, version, &mut row, memo)?;
            table.entries(&row, record.key)
        };
        let (mut put, mut marked) = (Vec::new(), Vec::new());
        if record.kind != UndoKind::Insert {
            let (_, older) = version_before(record, progress.pointer, &newer)?;
            if record.kind == UndoKind::Update {
                put = entries(&newer)?;
            }
            if !record.old_header.is_deleted {
                marked = entries(&older)?;
            }
        } else if is_there {
            put = entries(&newer)?;
        }
        let is_new = |entry: &&(Tree, Vec<u8>)| !marked.contains(entry);
        let is_gone = |entry: &&(Tree, Vec<u8>)| !put.contains(entry);
        let step = |is_put| {
            move |(tree, key): &(Tree, Vec<u8>)| EntryStep {
                tree: *tree,
                key: key.clone(),
                is_put,
            }
        };
        let put_steps = put.iter().filter(is_new).map(step(true));
        let marked_steps = marked.iter().filter(is_gone).map(step(false));
        Ok(put_steps.chain(marked_steps).collect())
    }

    /// The row of a version, read from its own pages if it has them.
    fn row_of(
        &self,
        table: &UndoTable,
        version: &[u8],
        row: &mut Vec<u8>,
        memo: &mut LobMemo,
    ) -> Outcome<()> {
        let no_header = || {
            damaged(
                PageId::new(table.tree.space, table.tree.root),
                "no row header",
            )
        };
        let (header, body) = RowHeader::split(version).ok_or_else(no_header)?;
        row.clear();
        if header.is_spilled {
            return memo.read(&self.pages, table.tree.space, body, row);
        }
        row.extend_from_slice(body);
        Ok(())
    }

    /// Whether the row at the spot is the version that the record at `pointer` was written for.
    fn is_version_of(
        &self,
        change: &Change<'_>,
        spot: Spot,
        pointer: UndoPointer,
    ) -> Outcome<bool> {
        if !spot.is_match {
            return Ok(false);
        }
        let mut version = Vec::new();
        payload(change, spot, &mut version)?;
        Ok(RowHeader::split(&version).is_some_and(|(header, _)| header.undo == pointer))
    }

    fn undo_page(&self, pointer: UndoPointer, record: &UndoRecord<'_>) -> Outcome<()> {
        let Some(PurgeItem::Lob { space, first_page }) = PurgeItem::list(record.purge_list).next()
        else {
            return Err(damaged(
                page_of(pointer),
                "a page was taken that has no number",
            ));
        };
        let is_there = self
            .undo_table(record.table)
            .is_some_and(|table| table.tree.space == SpaceId(space));
        if !is_there {
            return self.settle_only(pointer);
        }
        assert_eq!(record.kind, UndoKind::PageTaken);
        let page = PageId::new(SpaceId(space), PageNo(first_page));
        match self.give_back_taken(pointer, page) {
            // It stays in use.
            Err(Interrupt::Error(error)) if is_damage_in(&error, page.space) => {
                self.settle_only(pointer)
            }
            given => given,
        }
    }

    /// Gives back the page that a transaction has taken.
    fn give_back_taken(&self, pointer: UndoPointer, page: PageId) -> Outcome<()> {
        let mut change = self.pages.change()?;
        let page = change.latch(page)?;
        lob::check_part(&change, page)?;
        let release = Release::make(&mut change, page)?;
        let undo = change.latch(page_of(pointer))?;
        release.give_back(&mut change)?;
        settle(&mut change, undo, pointer)?;
        change.commit();
        Ok(())
    }

    /// Settles a record whose table is gone, or whose page is damaged.
    pub(crate) fn settle_only(&self, pointer: UndoPointer) -> Outcome<()> {
        let mut change = self.pages.change()?;
        let undo = change.latch(page_of(pointer))?;
        settle(&mut change, undo, pointer)?;
        change.commit();
        Ok(())
    }

    /// The table of an undo record, or `None` if it was dropped.
    pub(crate) fn undo_table(&self, id: TableId) -> Option<UndoTable> {
        if id == DICTIONARY_TABLE {
            return Some(UndoTable {
                tree: dictionary::tree(),
                shape: None,
            });
        }
        let shape = self.table_shape(id)?;
        Some(UndoTable {
            tree: shape.clustered,
            shape: Some(shape),
        })
    }
}

/// The version of a row before a change, and the header of the present version after it.
fn version_before(
    record: &UndoRecord<'_>,
    pointer: UndoPointer,
    newer: &[u8],
) -> Outcome<(RowHeader, Vec<u8>)> {
    let damage = |what| damaged(page_of(pointer), what);
    let (header, _) = RowHeader::split(newer)
        .ok_or_else(|| damage("the row of an undo record is gone or has no header"))?;
    if header.undo != pointer {
        return Err(damage("an undo record is not its row's last"));
    }
    let mut older = newer.to_vec();
    restore_version(record, &mut older)
        .ok_or_else(|| damage("an undo record does not fit its row"))?;
    Ok((header, older))
}

/// A table for undo and purge; the dictionary table has no shape.
pub(crate) struct UndoTable {
    /// The tree of the rows.
    pub(crate) tree: Tree,
    /// The shape, except for the dictionary.
    pub(crate) shape: Option<Arc<TableShape>>,
}

impl UndoTable {
    /// Whether there are secondary indexes.
    pub(crate) fn has_entries(&self) -> bool {
        self.shape
            .as_ref()
            .is_some_and(|shape| !shape.secondary.is_empty())
    }

    /// The entries that a row has.
    fn entries(&self, row: &[u8], key: &[u8]) -> Outcome<Vec<(Tree, Vec<u8>)>> {
        let Some(shape) = self
            .shape
            .as_ref()
            .filter(|shape| !shape.secondary.is_empty())
        else {
            return Ok(Vec::new());
        };
        let keys = shape
            .entries_of(row, key)
            .map_err(|error: StoreError| Interrupt::Error(error))?;
        let trees = shape.secondary.iter().map(|index| index.tree);
        Ok(trees.zip(keys.into_iter().map(|key| key.bytes)).collect())
    }

    /// Adjusts the row count when a deletion (`true`: one row more) or an insert is undone.
    fn count_row(&self, is_back: bool) {
        if let Some(shape) = &self.shape {
            if is_back {
                shape.live.add_row()
            } else {
                shape.live.drop_row()
            }
        }
    }
}
