//! What a start does with data that contradicts itself, before it recovers.
//!
//! A start that was made to accept a loss of log leaves pages with changes of the lost part beside
//! older pages. Rows, indexes and undo may contradict each other then. Damaged pages of undo have
//! the same effect. The operator is told to dump the data, so all that can be read must be read:
//!
//! (L1) Ids come first. The next transaction is younger than each writer that a page names, since
//! nobody would see the rows of a younger one. The next id of tables, indexes and tablespaces is
//! above all that are in use.
//! (L2) Transactions without an end are rolled back as far as undo fits their rows.
//! (L3) Then all undo segments are made again. Their pages, chains and maps may contradict each
//! other, so nothing may be appended to them. All transactions count as ended. Deleted rows that
//! purge would have removed stay deleted. Changes of prepared transactions stay, and a node's place
//! in its group is forgotten.
//! (L4) Tablespaces that no table names, and half made copies of tables, stay until the next start.
//!
//! Until all of this is durable, each checkpoint says that pages are newer than the log. So after a
//! crash in between the next start begins again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use btree::Pages;
use buffer::{Seen, verify_space};
use format::page::PageHeader;
use format::slotted::TreePage;
use format::undo::UndoRecord;
use format::{PageType, TxnId, UndoPointer};
use stdx::CircleCheck;
use store::{StoreError, until_done};
use tracing::{error, warn};
use wal::LogLevel;

use crate::engine::Engine;
use crate::recovery::{
    EngineOptions, FoundRecords, Left, create_segments, for_each_entry, for_each_record_of, share,
};
use crate::schema::dictionary::Entry;
use crate::transaction::pending::UndoProgress;
use crate::undo_log::{TABLE_SPACES_START, read_record};
use crate::worker::{
    Worker, WorkerOptions, raise_counters, read_segment_count, write_segment_count,
};

/// Puts undo and ids right, so that recovery can follow. All pages are in their files.
pub(super) async fn salvage(
    pages: &Rc<Pages>,
    options: EngineOptions,
    worker: WorkerOptions,
) -> Result<(), StoreError> {
    assert!(
        pages.wal().has_newer_pages(),
        "after a crash in between the next start begins again"
    );
    let highest = Highest::read(pages).await?;
    until_done(|| raise_counters(pages, highest.txn, highest.id)).await?;
    let segments = until_done(|| read_segment_count(pages)).await?;
    match roll_back(pages, segments, options, worker).await {
        Err(failure) if failure.is_unreadable() => {
            error!(%failure, "transactions that had not committed cannot be rolled back");
        }
        rolled_back => rolled_back?,
    }
    until_done(|| write_segment_count(pages, 0)).await?;
    create_segments(pages, u32::from(options.worker_count)).await?;
    pages.wait_log(pages.reserved(), LogLevel::Durable).await
}

/// The highest ids that pages name.
#[derive(Debug, Default)]
struct Highest {
    txn: u64,
    /// Of tables, indexes and tablespaces, which have one counter.
    id: u32,
}

impl Highest {
    /// Reads all files (L1).
    async fn read(pages: &Pages) -> Result<Self, StoreError> {
        let (disk, pool) = (&**pages.disk(), pages.pool());
        let mut highest = Self::default();
        for space in pool.list_spaces(disk)? {
            if TABLE_SPACES_START <= space.0 {
                highest.see_id(u64::from(space.0));
            }
            let mut see = |_, seen: Seen<'_>| {
                if let Seen::Whole(header, bytes) = seen {
                    highest.see_page(header, bytes);
                }
            };
            let size = pool.options().page_size;
            let verified = verify_space(disk, pool.directory(), space, size, &mut see).await;
            verified.map_err(|error| StoreError::damaged(error.to_string()))?;
        }
        let mut see = |entry: Entry| {
            if let Entry::Table(table) = entry {
                highest.see_id(table.definition.id.0);
                highest.see_id(u64::from(table.space.0));
            }
            Ok(())
        };
        for_each_entry(pages, &mut see).await?;
        Ok(highest)
    }

    fn see_page(&mut self, header: PageHeader, bytes: &[u8]) {
        if !matches!(header.page_type, PageType::BtreeLeaf | PageType::BtreeInner) {
            return;
        }
        let Some(page) = TreePage::new(bytes) else {
            return;
        };
        self.see_id(page.index_id().unwrap_or(0));
        if header.page_type != PageType::BtreeLeaf {
            return;
        }
        let mut payload = Vec::new();
        for slot in 0..page.slot_count().unwrap_or(0) {
            payload.clear();
            let _ = page.append_payload(slot, &mut payload);
            // Rows and entries begin with their writer.
            if let Some(txn) = payload.first_chunk() {
                self.txn = self.txn.max(TxnId::from_bytes(*txn).get());
            }
        }
    }

    fn see_id(&mut self, id: u64) {
        self.id = self.id.max(u32::try_from(id).unwrap_or(0));
    }
}

/// Rolls back the transactions without an end, as far as undo fits their rows (L2).
async fn roll_back(
    pages: &Rc<Pages>,
    segments: u32,
    options: EngineOptions,
    worker: WorkerOptions,
) -> Result<(), StoreError> {
    let mut found = FoundRecords::default();
    for segment in 0..segments {
        let note = |record| found.note(record);
        match for_each_record_of(pages, segment, note).await {
            Err(failure) if failure.is_unreadable() => {
                error!(segment, %failure, "an undo segment can only be read in part");
            }
            read => read?,
        }
    }
    let (losers, prepared) = found.unended();
    if !prepared.is_empty() {
        let transactions = prepared.len();
        error!(transactions, "the changes of prepared XA transactions stay");
    }
    let open: BTreeSet<TxnId> = losers.keys().chain(prepared.keys()).copied().collect();
    if open.is_empty() {
        return Ok(());
    }
    let left = Left {
        open: open.clone(),
        prepared: Vec::new(),
        segments,
        note: None,
    };
    let shared = share(pages, options, left).await?;
    let engine = Engine::attach(shared, Rc::clone(pages), worker).await?;
    match engine.worker.load_dictionary(&open).await {
        Err(failure) if failure.is_unreadable() => {
            // As it stands it may be read without undo.
            warn!(%failure, "changes of the schema that had not committed cannot be told");
            engine.worker.load_dictionary(&BTreeSet::new()).await?;
        }
        loaded => loaded?,
    }
    engine.worker.roll_back_what_fits(losers).await
}

impl Worker {
    async fn roll_back_what_fits(
        self: &Rc<Self>,
        losers: BTreeMap<TxnId, UndoPointer>,
    ) -> Result<(), StoreError> {
        let transactions = losers.len();
        let mut left_count = 0_u64;
        for (id, last_undo) in losers {
            left_count += self.undo_what_fits(id, last_undo).await?;
        }
        if left_count == 0 {
            warn!(
                transactions,
                "rolled back the transactions that had not committed"
            );
        } else {
            error!(
                transactions,
                changes = left_count,
                "some changes of transactions that had not committed stay: their undo does not \
                 fit their rows"
            );
        }
        Ok(())
    }

    /// Undoes the records of a transaction that fit their rows. Returns how many do not.
    async fn undo_what_fits(&self, id: TxnId, last_undo: UndoPointer) -> Result<u64, StoreError> {
        let (mut pointer, mut left_count) = (last_undo, 0);
        let mut circle = CircleCheck::new();
        while !pointer.is_null() && !circle.comes_back(pointer) {
            let before = match self.record_before(id, pointer).await {
                Err(failure) if failure.is_unreadable() => {
                    // What is before it in the chain is lost, too.
                    return Ok(left_count + 1);
                }
                before => before?,
            };
            let mut progress = UndoProgress::default();
            let undone = self.until_done(|| self.undo_one(pointer, &mut progress));
            match undone.await {
                Err(failure) if failure.is_unreadable() => left_count += 1,
                undone => {
                    undone?;
                }
            }
            pointer = before;
        }
        Ok(left_count)
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
}

/// Tells what a start leaves that would remove it otherwise (L4).
pub(super) fn tell_left(engine: &Engine) -> Result<(), StoreError> {
    let worker = &engine.worker;
    let files: Vec<String> = worker
        .orphan_spaces()?
        .into_iter()
        .map(|space| format!("space_{space}.pdb"))
        .collect();
    if !files.is_empty() {
        warn!(
            ?files,
            "no table names these files. The next start removes them: copy them if a table is lost"
        );
    }
    Ok(())
}
