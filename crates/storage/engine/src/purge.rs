//! Removing what no snapshot needs any more.
//!
//! Each worker goes through its own undo segment in the order of writing (the segments of workers
//! that are no more are shared out), behind the oldest snapshot. A record says what to look at: a
//! row that its transaction has deleted, entries that only its older version had, a large value.
//! Whatever was undone is passed over. A page of undo that purge is through with is given back.
//!
//! (P1) A record is looked at only when its transaction's fate is settled: ended, and its commit
//! visible to every snapshot. So no snapshot goes back beyond the version that it wrote.
//! (P2) Removals ask the page, not the record: a row is removed if it still is the version that the
//! record was written for; an entry if it is deleted and its last writer is settled. So a crash
//! repeats what changes nothing.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use btree::change::{Edit, payload};
use btree::lob;
use btree::space::Release;
use btree::{Tree, damaged};
use env::Instant;
use format::page_op::PageOp;
use format::row_header::RowHeader;
use format::undo::{self, Remains, UndoKind, UndoRecord};
use format::{PageId, PageNo, SpaceId, TxnId, UndoPointer};
use store::{Outcome, StoreError, Suspend};
use tracing::warn;

use crate::entries;
use crate::rollback::UndoTable;
use crate::undo_log::{self, apply, page_of, settle, space_of};
use crate::worker::Worker;

/// How often a purge looks whether another one of the worker is through.
const TURN_WAIT: Duration = Duration::from_millis(1);

/// Failures in a row after which purge passes over what cannot be read, a second or so each: the
/// disk may be better then, and an end has to come where it will not.
const FAILURES_MAX: u32 = 60;

/// Records after which others have their turn: some 100 to 200 us of rows in memory.
const TURN_RECORDS_MIN: usize = 32;

/// As many more for each so many transactions that purge is behind, and so many at most: a busy
/// worker writes hundreds of records between two turns of purge, and what they leave behind (the
/// rows' versions, the pages of undo) makes it slower for as long as it is not removed.
const DEBT_SHARE: u64 = 2048;
const TURN_RECORDS_MAX: usize = 512;

/// However far behind, others have their turn after such a time.
const TURN_MAX: Duration = Duration::from_micros(500);

/// How far purge has come in the segments of a worker.
#[derive(Debug, Default)]
pub(crate) struct Purge {
    /// Somebody is at it.
    is_running: bool,
    /// Reads that have failed in a row.
    failures: u32,
    /// Transactions that have begun, and are settled, since that of the record looked at last.
    debt: u64,
    /// For each segment the next record.
    places: BTreeMap<u8, (PageNo, usize)>,
}

/// What one step of purge found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A record or a page is done.
    Done,
    /// Nothing can be done now.
    Idle,
}

impl Worker {
    /// Does up to `budget` records' worth of purge; how many were done.
    pub(crate) async fn purge(self: &Rc<Self>, budget: usize) -> Result<usize, StoreError> {
        while std::mem::replace(&mut self.purge.borrow_mut().is_running, true) {
            (self.options.sleep)(TURN_WAIT).await;
        }
        let _running = Running { worker: self };
        self.purge_segments(budget).await
    }

    async fn purge_segments(self: &Rc<Self>, budget: usize) -> Result<usize, StoreError> {
        let workers = self.pages.wal().options().worker_count;
        let mut done = 0;
        let (mut in_turn, mut turn_began) = (0_usize, self.options.clock.now());
        for segment in 0..self.shared.segment_count {
            let segment = u8::try_from(segment).expect("there are at most 255 workers");
            let owner = usize::from(segment) % workers;
            if owner != usize::from(self.options.index) {
                continue;
            }
            while done < budget {
                if self.purge_step(segment).await? == Step::Idle {
                    break;
                }
                done += 1;
                in_turn += 1;
                if in_turn.is_multiple_of(TURN_RECORDS_MIN)
                    && self.has_had_its_turn(in_turn, turn_began)
                {
                    Suspend::turn().await;
                    (in_turn, turn_began) = (0, self.options.clock.now());
                }
            }
        }
        Ok(done)
    }

    /// Whether others come now, after so many records.
    fn has_had_its_turn(&self, count: usize, began: Instant) -> bool {
        let debt = self.purge.borrow().debt;
        turn_records(debt) <= count || TURN_MAX <= self.options.clock.now().since(began)
    }

    async fn purge_step(self: &Rc<Self>, segment: u8) -> Result<Step, StoreError> {
        let known = self.purge.borrow().places.get(&segment).copied();
        let (no, at) = match known {
            Some(place) => place,
            None => {
                let (tail, _) = self
                    .until_done(|| undo_log::ends(&self.pages, segment))
                    .await?;
                (tail, undo::UNDO_RECORDS_START)
            }
        };
        let mut bytes = Vec::new();
        let look = || self.look_at(segment, (no, at), &mut bytes);
        let next = match self.until_done(look).await? {
            Look::Record(pointer) => {
                let record = UndoRecord::decode(&bytes).ok_or_else(|| StoreError::Damaged {
                    what: format!("undo page {}", page_of(pointer)),
                })?;
                if !self.is_settled(record.txn) {
                    return Ok(Step::Idle);
                }
                let settled = self.shared.txns.settled();
                self.purge.borrow_mut().debt = settled.get() - record.txn.get();
                self.purge_record(pointer, &record).await?;
                (no, at + bytes.len())
            }
            Look::PageEnd(next) => {
                self.until_done(|| undo_log::drop_tail(&self.pages, segment))
                    .await?;
                (next, undo::UNDO_RECORDS_START)
            }
            Look::Nothing => return Ok(Step::Idle),
        };
        self.purge.borrow_mut().places.insert(segment, next);
        Ok(Step::Done)
    }

    fn look_at(
        &self,
        segment: u8,
        (no, at): (PageNo, usize),
        bytes: &mut Vec<u8>,
    ) -> Outcome<Look> {
        let id = PageId::new(space_of(segment), no);
        let page = self.pages.shared(id)?;
        let end = undo::used(page.bytes()).ok_or_else(|| damaged(id, "no undo page"))?;
        if at < end {
            undo::copy_record(page.bytes(), at, bytes)
                .ok_or_else(|| damaged(id, "no undo record"))?;
            let offset = u16::try_from(at).expect("an offset in a page");
            return Ok(Look::Record(UndoPointer::new(segment, no, offset)));
        }
        Ok(undo::next_page(page.bytes()).map_or(Look::Nothing, |next| Look::PageEnd(PageNo(next))))
    }

    /// Whether every snapshot, open or to come, sees how the transaction has ended (P1).
    fn is_settled(&self, id: TxnId) -> bool {
        id < self.shared.txns.settled()
    }

    async fn purge_record(
        self: &Rc<Self>,
        pointer: UndoPointer,
        record: &UndoRecord<'_>,
    ) -> Result<(), StoreError> {
        let has_work = match record.kind {
            UndoKind::Update | UndoKind::Delete => !record.is_settled,
            UndoKind::Remains => true,
            _ => false,
        };
        if !has_work {
            return Ok(());
        }
        // Each attempt looks the table up: it may have lost the index or its rows in between.
        for remains in Remains::list(record.remains) {
            if let Remains::Entry { index, key } = remains {
                let tree = || self.undo_table(record.table)?.entry_tree(index);
                let purge = || tree().map_or(Ok(()), |tree| self.purge_entry(tree, key));
                let purged = self.until_done(purge).await;
                self.tolerate_drop(tree().is_some(), purged)?;
            }
        }
        let table = || self.undo_table(record.table);
        if record.kind == UndoKind::Delete {
            let purge =
                || table().map_or(Ok(()), |table| self.purge_row(&table, record.key, pointer));
            let purged = self.until_done(purge).await;
            self.tolerate_drop(table().is_some(), purged)?;
        }
        let lob = Remains::list(record.remains).find_map(|remains| match remains {
            Remains::Lob { space, first_page } => Some((SpaceId(space), PageNo(first_page))),
            Remains::Entry { .. } => None,
        });
        if let Some((space, first)) = lob {
            let is_there = || table().is_some_and(|table| table.tree.space == space);
            let purge = || {
                if is_there() {
                    self.purge_lob(space, first, pointer)
                } else {
                    Ok(())
                }
            };
            let purged = self.until_done(purge).await;
            self.tolerate_drop(is_there(), purged)?;
        }
        Ok(())
    }

    /// What is looked at may be dropped meanwhile: then nothing is left to do. What cannot be read
    /// is left as it is: it is garbage, and the rest is not to wait for it.
    fn tolerate_drop(
        &self,
        is_there: bool,
        outcome: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match outcome {
            Err(_) if !is_there => Ok(()),
            Err(StoreError::Disk { .. }) if self.count_failure() < FAILURES_MAX => outcome,
            Err(failure @ (StoreError::Damaged { .. } | StoreError::Disk { .. })) => {
                warn!(%failure, "garbage was left where it cannot be read");
                Ok(())
            }
            outcome => {
                self.purge.borrow_mut().failures = 0;
                outcome
            }
        }
    }

    /// Counts one more read that has failed.
    fn count_failure(&self) -> u32 {
        let mut purge = self.purge.borrow_mut();
        purge.failures += 1;
        purge.failures
    }

    /// Removes an entry that belongs to no version that can be seen.
    fn purge_entry(&self, tree: Tree, key: &[u8]) -> Outcome<()> {
        let root = PageId::new(tree.space, tree.root);
        let removed = tree.modify(&self.pages, key, |payload| {
            let Some(payload) = payload else {
                return Ok(Edit::Keep);
            };
            let header = entries::decode(payload, root)?;
            let is_garbage = header.is_deleted && self.is_settled(header.txn);
            Ok(if is_garbage { Edit::Remove } else { Edit::Keep })
        })?;
        if removed {
            tree.shrink(&self.pages, key)
        } else {
            Ok(())
        }
    }

    /// Removes a row whose newest version is the deletion that `pointer` records.
    fn purge_row(&self, table: &UndoTable, key: &[u8], pointer: UndoPointer) -> Outcome<()> {
        loop {
            let mut change = self.pages.change()?;
            let Some(spot) = table.tree.latch(&self.pages, &mut change, key)? else {
                continue;
            };
            if !spot.is_match {
                return Ok(());
            }
            let mut version = Vec::new();
            payload(&change, spot, &mut version)?;
            let is_it = RowHeader::split(&version)
                .is_some_and(|(header, _)| header.is_deleted && header.undo == pointer);
            if !is_it {
                return Ok(());
            }
            apply(
                &mut change,
                spot.leaf,
                &PageOp::TreeRemove {
                    slot: spot.slot_number(),
                },
            )?;
            change.commit();
            return table.tree.shrink(&self.pages, key);
        }
    }

    /// Gives back the pages of a large value; the first one together with the record's mark, so
    /// that it is not given back twice.
    fn purge_lob(&self, space: SpaceId, first: PageNo, pointer: UndoPointer) -> Outcome<()> {
        lob::give_back_rest(&self.pages, space, first)?;
        let mut change = self.pages.change()?;
        let page = change.latch(PageId::new(space, first))?;
        let release = Release::make(&mut change, page)?;
        let undo = change.latch(page_of(pointer))?;
        release.give_back(&mut change)?;
        settle(&mut change, undo, pointer)?;
        change.commit();
        Ok(())
    }
}

/// A purge of the worker; over when this is dropped, be it in the middle: a step that is not done
/// is done again (P2).
struct Running<'a> {
    worker: &'a Worker,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.worker.purge.borrow_mut().is_running = false;
    }
}

/// How many records are looked at before others have their turn, where purge is so many
/// transactions behind.
fn turn_records(debt: u64) -> usize {
    let shares = usize::try_from(debt / DEBT_SHARE).unwrap_or(usize::MAX);
    let more = shares.saturating_mul(TURN_RECORDS_MIN);
    TURN_RECORDS_MIN.saturating_add(more).min(TURN_RECORDS_MAX)
}

/// What stands at a place of a segment.
enum Look {
    /// A record, copied out.
    Record(UndoPointer),
    /// The end of a page that another follows.
    PageEnd(PageNo),
    /// The end of the segment.
    Nothing,
}

impl UndoTable {
    /// The tree of a secondary index.
    fn entry_tree(&self, index: u64) -> Option<Tree> {
        let shape = self.shape.as_ref()?;
        let found = shape
            .secondary
            .iter()
            .find(|other| other.tree.index.0 == index);
        found.map(|index| index.tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_behind_has_longer_turns() {
        assert_eq!(turn_records(0), TURN_RECORDS_MIN);
        assert_eq!(turn_records(DEBT_SHARE - 1), TURN_RECORDS_MIN);
        assert_eq!(turn_records(DEBT_SHARE), 2 * TURN_RECORDS_MIN);
        let shares = (TURN_RECORDS_MAX - TURN_RECORDS_MIN) / TURN_RECORDS_MIN;
        let most = u64::try_from(shares).unwrap() * DEBT_SHARE;
        assert_eq!(turn_records(most - 1), TURN_RECORDS_MAX - TURN_RECORDS_MIN);
        assert_eq!(turn_records(most), TURN_RECORDS_MAX);
        assert_eq!(turn_records(u64::MAX), TURN_RECORDS_MAX);
    }
}
