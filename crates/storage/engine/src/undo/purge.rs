//! Removing what no snapshot needs any more.
//!
//! Each worker purges its own undo segment in the order of writing, up to the oldest snapshot. (The
//! segments of former workers are distributed.) A record names what to check: a row that its
//! transaction has deleted, entries that only its older version had, a large value. Undone records
//! are skipped. An undo page that purge has finished is given back.
//!
//! (P1) A record is checked only when every snapshot sees how its transaction has ended: no
//! snapshot goes back beyond the version that it wrote.
//! (P2) Removals check the page, not the record. A row is removed if it still is the version that
//! the record was written for. An entry is removed if it is deleted and every snapshot sees its
//! last writer's end. So work that is repeated after a crash changes nothing, and the order of
//! records does not matter.
//!
//! **Long transactions** hold up no others. Purge waits for a transaction that has just begun,
//! because it will end soon. The records of one that is open for longer ([`PURGE_PATIENCE`]) are
//! skipped, and their pages kept; the pages around them are given back. When it has ended, purge
//! goes back to the kept pages. Recovery stays right, because it rolls back each transaction that
//! has an unsettled record and no end.
//! (P3) When purge leaves a page that it keeps, it settles all records there except the skipped
//! ones. The ends of their transactions may be given back before the page.
//! (P4) Purge does not pass the end of a transaction that it has skipped before it has gone back
//! and settled that transaction's records.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use btree::change::{Edit, payload};
use btree::lob;
use btree::space::Release;
use btree::{Tree, damaged};
use env::Instant;
use format::page_bytes::PageBytes;
use format::page_op::PageOp;
use format::row_header::RowHeader;
use format::undo::{self, PurgeItem, UndoKind, UndoRecord};
use format::{Lsn, PageId, PageNo, SpaceId, TxnId, UndoPointer};
use store::{Outcome, StoreError, Suspend};
use tracing::warn;
use txn::Visibility;

use crate::row::entries;
use crate::undo::rollback::UndoTable;
use crate::undo_log::{self, apply, page_of, settle, space_of};
use crate::worker::Worker;
#[cfg(doc)]
use crate::worker::WorkerOptions;
use crate::worker::purge_progress::Progress;

/// Failures in a row after which purge passes over what cannot be read, about a second each. The
/// disk may recover meanwhile, and if it does not, purge must come to an end.
const FAILURES_MAX: u32 = 60;

/// Records after which other tasks run: some 100 to 200 us of rows in memory.
const TURN_RECORDS_MIN: usize = 32;

/// A turn takes as many more records for each `DEBT_SHARE` transactions that purge is behind, with
/// a maximum. A busy worker writes hundreds of records between two turns of purge. What they leave
/// (the rows' versions, undo pages) slows it down until it is removed.
const DEBT_SHARE: u64 = 2048;
const TURN_RECORDS_MAX: usize = 512;

const _: () = assert!(TURN_RECORDS_MIN <= TURN_RECORDS_MAX);

/// Time after which other tasks run, however far purge is behind.
const TURN_MAX: Duration = Duration::from_micros(500);

/// How long purge waits for a transaction before it skips its records, which costs a write for each
/// kept page. Almost all transactions are shorter, unless a session has forgotten one. See
/// [`WorkerOptions::purge_patience`].
pub const PURGE_PATIENCE: Duration = Duration::from_millis(100);

/// The result of one step of purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A record or a page is done.
    Done,
    /// Nothing can be done now.
    Idle,
}

impl Worker {
    /// Purges up to `budget` records, after a purge of the worker that runs has ended. Returns how
    /// many were done.
    pub(crate) async fn purge(self: &Rc<Self>, budget: usize) -> Result<usize, StoreError> {
        let _purging = self.purge_turns.take().await;
        self.purge_segments(budget).await
    }

    async fn purge_segments(self: &Rc<Self>, budget: usize) -> Result<usize, StoreError> {
        self.sample_age();
        let horizon = self.horizon();
        let mut done = 0;
        let (mut in_turn, mut turn_began) = (0_usize, self.options.clock.now());
        for segment in 0..self.shared.segment_count {
            let segment = u8::try_from(segment).expect("there are at most 255 workers");
            if self.shared.worker_of(segment) != usize::from(self.options.index) {
                continue;
            }
            let mut progress = self.purge_progress(segment).await?;
            self.return_to_skipped(segment, &mut progress, horizon)
                .await?;
            while done < budget {
                if self.purge_step(segment, &mut progress, horizon).await? == Step::Idle {
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
            self.purge.borrow_mut().segments.insert(segment, progress);
        }
        Ok(done)
    }

    /// Where purge continues in a segment.
    async fn purge_progress(self: &Rc<Self>, segment: u8) -> Result<Progress, StoreError> {
        let known = self.purge.borrow_mut().segments.remove(&segment);
        if let Some(progress) = known {
            return Ok(progress);
        }
        let (tail, _) = self
            .until_done(|| undo_log::ends(&self.pages, segment))
            .await?;
        Ok(Progress {
            kept: Vec::new(),
            skipped: BTreeSet::new(),
            no: tail,
            at: undo::UNDO_RECORDS_START,
            has_skipped: false,
        })
    }

    /// Samples the age of transactions.
    fn sample_age(&self) {
        let mut purge = self.purge.borrow_mut();
        let (next, at) = purge.sample;
        let now = self.options.clock.now();
        if self.options.purge_patience <= now.since(at) {
            purge.old_below = next;
            purge.sample = (self.shared.txns.next().get(), now);
        }
    }

    /// Whether other tasks run now, after `count` records.
    fn has_had_its_turn(&self, count: usize, began: Instant) -> bool {
        let debt = self.purge.borrow().debt;
        turn_records(debt) <= count || TURN_MAX <= self.options.clock.now().since(began)
    }

    async fn purge_step(
        self: &Rc<Self>,
        segment: u8,
        progress: &mut Progress,
        horizon: Lsn,
    ) -> Result<Step, StoreError> {
        let mut bytes = Vec::new();
        let look = || self.look_at(segment, (progress.no, progress.at), &mut bytes);
        match self.until_done(look).await? {
            Look::Record(pointer) => {
                let record = decode(pointer, &bytes)?;
                let next = self.shared.txns.next().get();
                self.purge.borrow_mut().debt = next.saturating_sub(record.txn.get());
                match self.visibility(record.txn, horizon) {
                    Visibility::All => {
                        // (P4)
                        if progress.skipped.contains(&record.txn) {
                            self.return_to_skipped(segment, progress, horizon).await?;
                        }
                        assert!(!progress.skipped.contains(&record.txn));
                        self.purge_record(pointer, &record).await?;
                        self.note_purged(&record);
                    }
                    Visibility::None if self.is_skipped(progress, &record) => {
                        progress.skipped.insert(record.txn);
                        progress.has_skipped = true;
                    }
                    Visibility::None | Visibility::Some => return Ok(Step::Idle),
                }
                assert!(!bytes.is_empty(), "purge goes on with each record");
                progress.at += bytes.len();
            }
            Look::PageEnd(next) => {
                self.leave_page(segment, progress).await?;
                (progress.no, progress.at) = (next, undo::UNDO_RECORDS_START);
            }
            Look::Nothing => return Ok(Step::Idle),
        }
        Ok(Step::Done)
    }

    /// Counts a record that purge is through with.
    fn note_purged(&self, record: &UndoRecord<'_>) {
        let counters = self.counters();
        counters.records_purged.increment();
        if record.kind.is_end() && self.shared.first_txn <= record.txn {
            counters.ends_purged.increment();
        }
    }

    /// Whether purge skips a record of an open transaction.
    fn is_skipped(&self, progress: &Progress, record: &UndoRecord<'_>) -> bool {
        let is_old = || record.txn.get() < self.purge.borrow().old_below;
        !record.kind.is_end() && (progress.skipped.contains(&record.txn) || is_old())
    }

    /// Gives back the page whose end was reached, or keeps it for skipped records.
    async fn leave_page(
        self: &Rc<Self>,
        segment: u8,
        progress: &mut Progress,
    ) -> Result<(), StoreError> {
        let (no, before) = (progress.no, progress.kept.last().copied());
        if !std::mem::take(&mut progress.has_skipped) {
            return self.drop_undo_page(segment, before, no).await;
        }
        self.until_done(|| self.settle_page(segment, no, &progress.skipped))
            .await?;
        assert!(progress.kept.last() != Some(&no), "a page is kept once");
        progress.kept.push(no);
        Ok(())
    }

    /// Gives back a page of the chain; `before` is the page before it.
    async fn drop_undo_page(
        self: &Rc<Self>,
        segment: u8,
        before: Option<PageNo>,
        no: PageNo,
    ) -> Result<(), StoreError> {
        let drop = || undo_log::drop_page(&self.pages, segment, before, no);
        self.until_done(drop).await?;
        self.counters().undo_pages_dropped.increment();
        Ok(())
    }

    /// Settles the records of a page that purge has finished, except the skipped ones (P3).
    fn settle_page(&self, segment: u8, no: PageNo, skipped: &BTreeSet<TxnId>) -> Outcome<()> {
        let mut change = self.pages.change()?;
        let page = change.latch(PageId::new(space_of(segment), no))?;
        let records = read_page(change.bytes(page), segment, no)?;
        for (pointer, bytes) in &records {
            let record = decode(*pointer, bytes)?;
            let is_due = !record.kind.is_end() && !record.is_settled;
            if is_due && !skipped.contains(&record.txn) {
                settle(&mut change, page, *pointer)?;
            }
        }
        change.commit();
        Ok(())
    }

    /// Goes back to the records of skipped transactions whose ends every snapshot sees now, and
    /// gives back the pages that were kept only for them.
    async fn return_to_skipped(
        self: &Rc<Self>,
        segment: u8,
        progress: &mut Progress,
        horizon: Lsn,
    ) -> Result<(), StoreError> {
        let is_over = |txn: &TxnId| self.visibility(*txn, horizon) == Visibility::All;
        let ended: BTreeSet<TxnId> = progress.skipped.iter().copied().filter(is_over).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let left: BTreeSet<TxnId> = progress.skipped.difference(&ended).copied().collect();
        let mut kept = Vec::new();
        for &no in &progress.kept {
            let end = usize::MAX;
            if self.purge_ended(segment, (no, end), &ended, &left).await? {
                self.until_done(|| self.settle_page(segment, no, &left))
                    .await?;
                kept.push(no);
            } else {
                let before = kept.last().copied();
                self.drop_undo_page(segment, before, no).await?;
            }
        }
        let present = (progress.no, progress.at);
        progress.has_skipped = self.purge_ended(segment, present, &ended, &left).await?;
        (progress.kept, progress.skipped) = (kept, left);
        let has_page = !progress.kept.is_empty() || progress.has_skipped;
        assert!(
            progress.skipped.is_empty() || has_page,
            "whoever is skipped has a page that is kept"
        );
        Ok(())
    }

    /// Purges the records of ended transactions in a page, up to an offset. Returns whether records
    /// of other skipped transactions are left.
    async fn purge_ended(
        self: &Rc<Self>,
        segment: u8,
        (no, end): (PageNo, usize),
        ended: &BTreeSet<TxnId>,
        left: &BTreeSet<TxnId>,
    ) -> Result<bool, StoreError> {
        let id = PageId::new(space_of(segment), no);
        let read = || {
            let page = self.pages.shared(id)?;
            read_page(page.bytes(), segment, no)
        };
        let mut is_kept = false;
        for (count, (pointer, bytes)) in self.until_done(read).await?.into_iter().enumerate() {
            if end <= usize::from(pointer.offset()) {
                break;
            }
            let record = decode(pointer, &bytes)?;
            is_kept |= left.contains(&record.txn);
            if ended.contains(&record.txn) {
                self.purge_record(pointer, &record).await?;
            }
            if count % TURN_RECORDS_MIN == TURN_RECORDS_MIN - 1 {
                Suspend::turn().await;
            }
        }
        Ok(is_kept)
    }

    fn look_at(
        &self,
        segment: u8,
        (no, at): (PageNo, usize),
        bytes: &mut Vec<u8>,
    ) -> Outcome<Look> {
        assert!(
            undo::UNDO_RECORDS_START <= at,
            "records stand behind the page's head"
        );
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

    /// The horizon by which [`visibility`](Self::visibility) is judged; its results stay true.
    pub(crate) fn horizon(&self) -> Lsn {
        self.shared.txns.horizon(|| self.pages.reserved())
    }

    /// Which snapshots see how a transaction has ended (P1).
    pub(crate) fn visibility(&self, id: TxnId, horizon: Lsn) -> Visibility {
        self.shared.txns.visibility(id, horizon)
    }

    async fn purge_record(
        self: &Rc<Self>,
        pointer: UndoPointer,
        record: &UndoRecord<'_>,
    ) -> Result<(), StoreError> {
        let has_work = match record.kind {
            UndoKind::Update | UndoKind::Delete => !record.is_settled,
            UndoKind::PurgeItems => true,
            _ => false,
        };
        if !has_work {
            return Ok(());
        }
        debug_assert_eq!(
            self.visibility(record.txn, self.horizon()),
            Visibility::All,
            "no snapshot needs the version before (P1)"
        );
        // Each attempt looks the table up, because it may have lost the index or its rows in
        // between.
        for item in PurgeItem::list(record.purge_list) {
            if let PurgeItem::Entry { index, key } = item {
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
        let lob = PurgeItem::list(record.purge_list).find_map(|item| match item {
            PurgeItem::Lob { space, first_page } => Some((SpaceId(space), PageNo(first_page))),
            PurgeItem::Entry { .. } => None,
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

    /// The table may be dropped meanwhile: then nothing is left to do. What cannot be read is left
    /// as garbage, and must not hold up the rest.
    fn tolerate_drop(
        &self,
        is_there: bool,
        outcome: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match outcome {
            Err(_) if !is_there => Ok(()),
            Err(StoreError::Disk { .. }) if self.count_failure() < FAILURES_MAX => outcome,
            Err(failure) if failure.is_unreadable() => {
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

    /// Removes an entry that belongs to no visible version.
    fn purge_entry(&self, tree: Tree, key: &[u8]) -> Outcome<()> {
        let root = PageId::new(tree.space, tree.root);
        let horizon = self.horizon();
        let decide = |payload: Option<&[u8]>| {
            let Some(payload) = payload else {
                return Ok(Edit::Keep);
            };
            let header = entries::decode(payload, root)?;
            let is_seen = self.visibility(header.txn, horizon) == Visibility::All;
            let is_garbage = header.is_deleted && is_seen;
            Ok(if is_garbage { Edit::Remove } else { Edit::Keep })
        };
        let removed = tree.modify_and(&self.pages, key, decide, |change, spot| {
            self.join_gap(tree, (change, spot), key, None)
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
            self.join_gap(table.tree, (&change, spot), key, None)?;
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

    /// Gives back the pages of a large value. The first one is released together with the record's
    /// mark, so that it is not given back twice.
    fn purge_lob(&self, space: SpaceId, first: PageNo, pointer: UndoPointer) -> Outcome<()> {
        lob::give_back_rest(&self.pages, space, first)?;
        let mut change = self.pages.change()?;
        let page = change.latch(PageId::new(space, first))?;
        lob::check_part(&change, page)?;
        let release = Release::make(&mut change, page)?;
        let undo = change.latch(page_of(pointer))?;
        release.give_back(&mut change)?;
        settle(&mut change, undo, pointer)?;
        change.commit();
        Ok(())
    }
}

fn decode(pointer: UndoPointer, bytes: &[u8]) -> Result<UndoRecord<'_>, StoreError> {
    let page = page_of(pointer);
    let damaged = || StoreError::damaged_page(page, format!("undo page {page}"));
    UndoRecord::decode(bytes).ok_or_else(damaged)
}

/// All records of an undo page, copied out.
fn read_page<P: PageBytes + ?Sized>(
    page: &P,
    segment: u8,
    no: PageNo,
) -> Outcome<Vec<(UndoPointer, Vec<u8>)>> {
    let id = PageId::new(space_of(segment), no);
    undo::used(page).ok_or_else(|| damaged(id, "no undo page"))?;
    let mut records = Vec::new();
    undo::for_each_record(page, |at, record| {
        let offset = u16::try_from(at).expect("an offset in a page");
        records.push((UndoPointer::new(segment, no, offset), record.to_vec()));
        Some(())
    })
    .ok_or_else(|| damaged(id, "no undo record"))?;
    Ok(records)
}

/// Records that are checked before other tasks run, if purge is `debt` transactions behind.
fn turn_records(debt: u64) -> usize {
    let shares = usize::try_from(debt / DEBT_SHARE).unwrap_or(usize::MAX);
    let more = shares.saturating_mul(TURN_RECORDS_MIN);
    TURN_RECORDS_MIN.saturating_add(more).min(TURN_RECORDS_MAX)
}

/// What is at a place of a segment.
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
