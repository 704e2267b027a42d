//! What a start does with data that contradicts itself, before it recovers.
//!
//! A start that was made to accept a loss of log leaves pages with changes of the lost part beside
//! older pages. Rows, indexes and undo may contradict each other then. The operator is told to dump
//! the data, so all that can be read must be read ([`salvage_all`]):
//!
//! (L1) Ids come first. The next transaction is younger than each writer that a page names, since
//! nobody would see the rows of a younger one. The next id of tables, indexes and tablespaces is
//! above all that are in use.
//! (L2) The dictionary keeps what can be read of it ([`mend_dictionary`]).
//! (L3) Transactions without an end are rolled back as far as their undo fits the rows: a row must
//! still be the version that the record was written for. Undo of one may fit only once that of
//! another is done, since the ends of both may be lost. So it is tried again as long as any fits.
//! Pages of large values are not given back: they may be in other use.
//! (L4) Then all undo segments are made again. Their pages, chains and maps may contradict each
//! other, so nothing may be appended to them. All transactions count as ended. Deleted rows that
//! purge would have removed stay deleted. Changes of prepared transactions stay, and a node's place
//! in its group is forgotten.
//! (L5) Files that no table names are set aside. Half made copies of tables stay until the next
//! start.
//!
//! Until all of this is durable, each checkpoint says that pages are newer than the log. So after a
//! crash in between the next start begins again.
//!
//! If the log is whole and undo alone is damaged, see [`mended_undo`](super::mended_undo).

use std::collections::BTreeSet;
use std::rc::Rc;

use btree::Pages;
use buffer::{Seen, verify_space};
use format::page::PageHeader;
use format::row_header::RowHeader;
use format::slotted::TreePage;
use format::undo::{self, UndoKind, UndoRecord};
use format::{PageType, TxnId, UndoPointer};
use stdx::CircleCheck;
use store::{Outcome, StoreError, Suspend, until_done};
use tracing::{error, warn};
use wal::LogLevel;

use crate::engine::Engine;
use crate::recovery::left_undo::{FoundRecords, LastRecords, read_segment};
use crate::recovery::mended_dictionary::mend_dictionary;
use crate::recovery::{EngineOptions, Left, create_segments, for_each_entry, share};
use crate::schema::dictionary::Entry;
use crate::transaction::UNDONE_PER_TURN;
use crate::transaction::pending::UndoProgress;
use crate::undo_log::{TABLE_SPACES_START, UndoLog, read_record};
use crate::worker::{
    Worker, WorkerOptions, raise_counters, read_segment_count, write_segment_count,
};

/// Puts undo and ids right behind a loss of log, so that recovery can follow. All pages are in
/// their files.
pub(super) async fn salvage_all(
    pages: &Rc<Pages>,
    options: EngineOptions,
    worker: WorkerOptions,
) -> Result<(), StoreError> {
    assert!(
        pages.wal().has_newer_pages(),
        "after a crash in between the next start begins again"
    );
    mend_dictionary(pages).await?;
    let inventory = Inventory::read(pages).await?;
    let mut found = read_undo(pages).await?;
    // The end of a transaction may be in a page that the chain does not reach.
    found.ended.extend(&inventory.ended);
    let youngest = inventory.youngest.max(found.youngest);
    assert!(
        found.ended.iter().all(|id| *id <= youngest),
        "the next transaction is younger than all that have ended"
    );
    until_done(|| raise_counters(pages, youngest.get(), inventory.id)).await?;
    match roll_back(pages, found, options, worker).await {
        Err(failure) if failure.is_unreadable() => {
            error!(%failure, "transactions that had not committed cannot be rolled back");
        }
        rolled_back => rolled_back?,
    }
    // A rollback may have brought back rows whose pages are lost.
    mend_dictionary(pages).await?;
    until_done(|| write_segment_count(pages, 0)).await?;
    create_segments(pages, u32::from(options.worker_count)).await?;
    let segments = until_done(|| read_segment_count(pages)).await?;
    assert_eq!(
        segments,
        u32::from(options.worker_count),
        "each worker has a new segment"
    );
    pages.wait_log(pages.reserved(), LogLevel::Durable).await
}

/// What the pages of all files name (L1).
#[derive(Debug, Default)]
struct Inventory {
    youngest: TxnId,
    /// The highest id of tables, indexes and tablespaces, which have one counter.
    id: u32,
    /// The transactions whose end is in a page of undo.
    ended: BTreeSet<TxnId>,
}

impl Inventory {
    async fn read(pages: &Pages) -> Result<Self, StoreError> {
        let (disk, pool) = (&**pages.disk(), pages.pool());
        let mut inventory = Self::default();
        for space in pool.list_spaces(disk)? {
            if TABLE_SPACES_START <= space.0 {
                inventory.see_id(u64::from(space.0));
            }
            let mut see = |_, seen: Seen<'_>| {
                if let Seen::Whole(header, bytes) = seen {
                    inventory.see_page(header, bytes);
                }
            };
            let size = pool.options().page_size;
            let verified = verify_space(disk, pool.directory(), space, size, &mut see).await;
            verified.map_err(|error| StoreError::damaged(error.to_string()))?;
        }
        let mut see = |entry: Entry| {
            if let Entry::Table(table) = entry {
                inventory.see_id(table.definition.id.0);
                inventory.see_id(u64::from(table.space.0));
                for tree in &table.trees {
                    inventory.see_id(tree.index.0);
                }
            }
            Ok(())
        };
        for_each_entry(pages, &mut see).await?;
        Ok(inventory)
    }

    fn see_page(&mut self, header: PageHeader, bytes: &[u8]) {
        match header.page_type {
            PageType::BtreeLeaf | PageType::BtreeInner => {
                let _ = self.see_tree_page(bytes);
            }
            PageType::Undo => {
                let _ = self.see_undo_page(bytes);
            }
            _ => {}
        }
    }

    /// Returns `None` where the page makes no sense.
    fn see_tree_page(&mut self, bytes: &[u8]) -> Option<()> {
        let page = TreePage::new(bytes)?;
        self.see_id(page.index_id()?);
        if page.level()? != 0 {
            return Some(());
        }
        let mut payload = Vec::new();
        for slot in 0..page.slot_count()? {
            payload.clear();
            page.append_payload(slot, &mut payload)?;
            // Rows and entries begin with their writer.
            let txn = TxnId::from_bytes(*payload.first_chunk()?);
            self.youngest = self.youngest.max(txn);
        }
        Some(())
    }

    /// Returns `None` where the page makes no sense.
    fn see_undo_page(&mut self, bytes: &[u8]) -> Option<()> {
        undo::for_each_record(bytes, |_, record| {
            let record = UndoRecord::decode(record)?;
            self.youngest = self.youngest.max(record.txn).max(record.old_header.txn);
            if record.kind.is_end() {
                self.ended.insert(record.txn);
            }
            Some(())
        })
    }

    fn see_id(&mut self, id: u64) {
        self.id = self.id.max(u32::try_from(id).unwrap_or(0));
    }
}

/// Reads the records of all segments, of each up to what cannot be read.
async fn read_undo(pages: &Pages) -> Result<FoundRecords, StoreError> {
    let mut found = FoundRecords::default();
    for segment in 0..until_done(|| read_segment_count(pages)).await? {
        let mut records = FoundRecords::default();
        match read_segment(pages, segment, &mut records).await {
            Err(failure) if failure.is_unreadable() => {
                error!(
                    segment,
                    %failure,
                    "an undo segment can only be read in part: changes that had not committed may \
                     stay"
                );
            }
            read => drop(read?),
        }
        found.join(records);
    }
    Ok(found)
}

/// Rolls back the transactions without an end, as far as undo fits their rows (L3).
async fn roll_back(
    pages: &Rc<Pages>,
    found: FoundRecords,
    options: EngineOptions,
    worker: WorkerOptions,
) -> Result<(), StoreError> {
    let (losers, prepared) = found.unended();
    if !prepared.is_empty() {
        let transactions = prepared.len();
        error!(
            transactions,
            "the changes of prepared XA transactions stay as if they had committed"
        );
    }
    let open: BTreeSet<TxnId> = losers.keys().chain(prepared.keys()).copied().collect();
    if open.is_empty() {
        return Ok(());
    }
    let left = Left {
        open: open.clone(),
        prepared: Vec::new(),
        segments: until_done(|| read_segment_count(pages)).await?,
        note: None,
    };
    let shared = share(pages, options, left).await?;
    // Its own segment may be lost. A rollback adds nothing there.
    let undo = UndoLog::without_end(worker.index);
    let engine = Engine::attach_with(shared, Rc::clone(pages), worker, undo);
    match engine.worker.load_dictionary(&open).await {
        Err(failure) if failure.is_unreadable() => {
            // As it stands it may be read without undo.
            warn!(%failure, "changes of the schema that had not committed cannot be told");
            engine.worker.load_dictionary(&BTreeSet::new()).await?;
        }
        loaded => loaded?,
    }
    engine.worker.keeps_pages.set(true);
    engine.worker.roll_back_what_fits(losers).await
}

/// Whether a record of undo could be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// It was, or there was nothing to do.
    Done,
    /// Its row is another version, or cannot be read.
    No,
}

impl Worker {
    async fn roll_back_what_fits(&self, losers: LastRecords) -> Result<(), StoreError> {
        let transactions = losers.len();
        let (mut left, mut lost_count) = (Vec::new(), 0_u64);
        // The youngest first: most likely it wrote last.
        for (id, last_undo) in losers.into_iter().rev() {
            let is_whole = self.undo_what_fits(id, last_undo, &mut left).await?;
            lost_count += u64::from(!is_whole);
        }
        loop {
            let before = left.len();
            let mut still_left = Vec::new();
            for (id, pointer) in left {
                if self.undo_if_it_fits(id, pointer).await? == Fit::No {
                    still_left.push((id, pointer));
                }
                Suspend::turn().await;
            }
            left = still_left;
            assert!(left.len() <= before, "no change is added");
            if left.len() == before {
                break;
            }
        }
        let changes = left.len();
        if changes == 0 && lost_count == 0 {
            warn!(
                transactions,
                "rolled back the transactions that had not committed"
            );
        } else {
            error!(
                transactions,
                changes,
                unread = lost_count,
                "some changes of transactions that had not committed stay: their undo cannot be \
                 read, or does not fit their rows"
            );
        }
        Ok(())
    }

    /// Undoes what can be undone of a transaction, of which a record has failed.
    pub(super) async fn undo_the_rest(
        &self,
        id: TxnId,
        last_undo: UndoPointer,
    ) -> Result<(), StoreError> {
        let mut left = Vec::new();
        let is_whole = self.undo_what_fits(id, last_undo, &mut left).await?;
        let changes = left.len();
        error!(changes, is_whole, "changes that had not committed stay");
        Ok(())
    }

    /// Undoes the records of a transaction that fit their rows, and notes the others in `left`.
    /// Returns false if not all of its records can be read.
    async fn undo_what_fits(
        &self,
        id: TxnId,
        last_undo: UndoPointer,
        left: &mut Vec<(TxnId, UndoPointer)>,
    ) -> Result<bool, StoreError> {
        let (mut pointer, mut undone_count) = (last_undo, 0_u64);
        let mut circle = CircleCheck::new();
        while !pointer.is_null() {
            if circle.comes_back(pointer) {
                return Ok(false);
            }
            let before = match self.record_before(id, pointer).await {
                Err(failure) if failure.is_unreadable() => return Ok(false),
                before => before?,
            };
            if self.undo_if_it_fits(id, pointer).await? == Fit::No {
                left.push((id, pointer));
            }
            pointer = before;
            undone_count += 1;
            if undone_count.is_multiple_of(UNDONE_PER_TURN) {
                Suspend::turn().await;
            }
        }
        Ok(true)
    }

    async fn undo_if_it_fits(&self, id: TxnId, pointer: UndoPointer) -> Result<Fit, StoreError> {
        assert!(!pointer.is_null(), "there is something to be undone");
        assert!(id != TxnId::NONE, "a record of undo has its transaction");
        let mut progress = UndoProgress::default();
        let undo = || match self.fits(id, pointer)? {
            Fit::Done => self.undo_one(pointer, &mut progress).map(|_| Fit::Done),
            Fit::No => Ok(Fit::No),
        };
        match self.until_done(undo).await {
            Err(failure) if failure.is_unreadable() => Ok(Fit::No),
            undone => undone,
        }
    }

    /// Whether the row of a record still is the version that it was written for, or never came.
    fn fits(&self, id: TxnId, pointer: UndoPointer) -> Outcome<Fit> {
        let mut bytes = Vec::new();
        read_record(&self.pages, pointer, &mut bytes)?;
        let record = UndoRecord::decode(&bytes)
            .ok_or_else(|| StoreError::damaged("a record of undo cannot be read"))?;
        if record.is_settled {
            return Ok(Fit::Done);
        }
        match record.kind {
            UndoKind::Insert | UndoKind::Update | UndoKind::Delete => {}
            // Its page may be in other use, so it is lost.
            UndoKind::PageTaken => {
                self.settle_only(pointer)?;
                return Ok(Fit::Done);
            }
            UndoKind::PurgeItems | UndoKind::Prepared | UndoKind::Commit | UndoKind::RolledBack => {
                return Ok(Fit::Done);
            }
        }
        let Some(table) = self.undo_table(record.table) else {
            return Ok(Fit::Done);
        };
        let mut row = Vec::new();
        let is_there = table.tree.get(&self.pages, record.key, &mut row)?;
        let is_its = RowHeader::split(&row)
            .is_some_and(|(header, _)| header.undo == pointer && header.txn == id);
        let is_gone = record.kind == UndoKind::Insert && !is_there;
        if is_its || is_gone {
            Ok(Fit::Done)
        } else {
            Ok(Fit::No)
        }
    }

    /// The record before that at `pointer`, which must be this transaction's.
    async fn record_before(
        &self,
        id: TxnId,
        pointer: UndoPointer,
    ) -> Result<UndoPointer, StoreError> {
        let mut bytes = Vec::new();
        self.until_done(|| read_record(&self.pages, pointer, &mut bytes))
            .await?;
        UndoRecord::decode(&bytes)
            .filter(|record| record.txn == id)
            .map(|record| record.previous)
            .ok_or_else(|| StoreError::damaged("an undo record is of another transaction"))
    }

    /// Renames the files that no table names: one may be all that is left of a table (L5).
    pub(super) fn set_orphans_aside(&self) -> Result<(), StoreError> {
        for space in self.orphan_spaces()? {
            self.set_aside(space)?;
        }
        Ok(())
    }
}
