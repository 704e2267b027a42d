//! Opening the engine: a new data directory gets its system space, a used one is recovered.
//!
//! When this begins, redo has brought the pages to the state of the log. Recovery then finds the
//! transactions that have undo but no end, and reads the dictionary as the ended transactions left
//! it. Those that are prepared stay open, until somebody decides about them. It rolls the others
//! (losers) back, and removes tablespaces that no table names. All of it is logged like any other
//! work, so after a crash in between recovery begins again, with less to do.
//!
//! A table that cannot be read keeps nothing from starting: its statements fail. Data that
//! contradicts itself, after a loss of log that the operator has accepted, is first put right as
//! far as possible ([`salvage`]).

mod left_undo;
mod mended_dictionary;
mod mended_undo;
mod rollback_progress;
mod salvage;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use btree::space::{self, Reservation};
use btree::{From, Pages, Place, Run, Tree};
use buffer::{Started, missing_file};
use format::page_op::PageOp;
use format::row_header::RowHeader;
use format::slotted::TreePageShape;
use format::undo::{UndoKind, UndoRecord};
use format::{PageType, SpaceId, TxnId, UndoPointer};
use lock::LockTable;
use stdx::CircleCheck;
use store::{COPY_NAME_PREFIX, Outcome, StoreError, until_done};
use sync::atomic::AtomicU64;
use sync::{CachePadded, Mutex, Notify};
use tracing::{error, warn};
use txn::{TransactionSystem, TransactionWorker};
use wal::{LogLevel, OnLogLoss};

use crate::background::{CHECKPOINT_PAYLOAD, join, keep_house};
use crate::engine::Engine;
use crate::lob_memo::LobMemo;
use crate::recovery::left_undo::{LastRecords, Unended, find_unended};
use crate::recovery::rollback_progress::RollbackProgress;
use crate::row::read::restore_version;
use crate::schema::dictionary::{
    self, DICTIONARY_INDEX, DICTIONARY_ROOT, Dictionary, Entry, SYSTEM_SPACE, TableEntry,
};
use crate::schema::statistics::StatisticsDue;
use crate::schema::table_shape::{LiveTable, TableShape};
use crate::undo_log::{self, TABLE_SPACES_START, UndoLog, apply, space_of};
use crate::worker::jobs::Jobs;
use crate::worker::open_slots::SlotList;
use crate::worker::order_box::OrderBox;
use crate::worker::place::{Note, read_note};
use crate::worker::scan_count::ScanCount;
use crate::worker::{
    COUNTERS_PAGE, LeftSpaces, LeftUndo, Shared, Worker, WorkerOptions, counters_body,
    read_next_id, read_segment_count, read_txn_ceiling, write_segment_count,
};

/// Words of the ring of transactions' fates.
const RING_LENGTH: usize = 1 << 20;

/// Default memory for row locks.
const LOCK_BYTES_MAX: u64 = 4 << 30;

/// Options of the engine.
#[derive(Debug, Clone, Copy)]
pub struct EngineOptions {
    /// Workers that will have a handle.
    pub worker_count: u8,
    /// Words of the ring of transactions' fates, a power of two.
    pub ring_length: usize,
    /// Memory for row locks, in bytes.
    pub lock_bytes_max: u64,
    /// What to do if undo that is needed is damaged, or a tablespace is missing that has log.
    pub on_loss: OnLogLoss,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            worker_count: 1,
            ring_length: RING_LENGTH,
            lock_bytes_max: LOCK_BYTES_MAX,
            on_loss: OnLogLoss::Refuse,
        }
    }
}

impl Engine {
    /// Opens the engine on the first worker, in the data directory that was started. The log's
    /// writer must run meanwhile; pages are cleaned here.
    pub async fn open(
        pages: Pages,
        started: &Started,
        options: EngineOptions,
        worker: WorkerOptions,
    ) -> Result<Self, StoreError> {
        assert!(0 < options.worker_count, "somebody works");
        let pages = Rc::new(pages);
        // The last checkpoint's payload; empty in a new directory.
        let payload = started.payload.as_slice();
        let disk = Rc::clone(pages.disk());
        for id in pages.pool().list_spaces(&*disk)? {
            pages.pool().open_space(&*disk, id)?;
        }
        if !started.missing.is_empty() {
            check_missing(&pages, &started.missing, options.on_loss).await?;
            pages.checkpoint(payload.to_vec()).await?;
        }
        let is_over = Cell::new(false);
        let recovering = async {
            let engine = Self::recover_or_salvage(&pages, payload, options, &worker).await;
            is_over.set(true);
            pages.call_house();
            engine
        };
        let house = keep_house(&pages, &worker, payload, &is_over);
        let (engine, ()) = join(recovering, house).await;
        let engine = engine?;
        let pages = &engine.worker.pages;
        if options.on_loss == OnLogLoss::Accept {
            // What was accepted is not met again, even if the server is killed now.
            pages.wait_log(pages.reserved(), LogLevel::Durable).await?;
        }
        pages.checkpoint(CHECKPOINT_PAYLOAD.to_vec()).await?;
        Ok(engine)
    }

    async fn recover_or_salvage(
        pages: &Rc<Pages>,
        payload: &[u8],
        options: EngineOptions,
        worker: &WorkerOptions,
    ) -> Result<Self, StoreError> {
        if payload.is_empty() {
            create_system(pages).await?;
            pages.wal().forget_newer_pages();
        } else if payload != CHECKPOINT_PAYLOAD {
            let what = "the engine's part of the checkpoint is of another version";
            return Err(StoreError::damaged(what));
        }
        if pages.wal().has_newer_pages() {
            salvage::salvage_all(pages, options, worker.clone()).await?;
            let engine = Self::recover(pages, options, worker.clone()).await?;
            engine.worker.set_orphans_aside()?;
            engine.worker.load_tables().await?;
            pages.wal().forget_newer_pages();
            return Ok(engine);
        }
        let recovered = match Self::recover(pages, options, worker.clone()).await {
            Err(failure) if options.on_loss == OnLogLoss::Accept && is_of_undo(&failure) => {
                mended_undo::mend_undo(pages, space_of_damage(&failure)).await?;
                Self::recover(pages, options, worker.clone()).await
            }
            recovered => recovered,
        };
        let engine = recovered?;
        engine.worker.remove_orphan_spaces().await?;
        engine.worker.remove_copies().await?;
        engine.worker.load_tables().await?;
        Ok(engine)
    }

    /// Opens an engine with what the transactions left that have ended.
    async fn recover(
        pages: &Rc<Pages>,
        options: EngineOptions,
        worker: WorkerOptions,
    ) -> Result<Self, StoreError> {
        create_segments(pages, u32::from(options.worker_count)).await?;
        let segments = until_done(|| read_segment_count(pages)).await?;
        assert!(
            u32::from(options.worker_count) <= segments,
            "each worker has a segment"
        );
        for segment in (0..segments).filter_map(|number| u8::try_from(number).ok()) {
            // If they were damaged, each change of this worker would fail later.
            until_done(|| space::check_maps(pages, space_of(segment))).await?;
        }
        let Unended {
            losers,
            loser_changes,
            prepared,
        } = find_unended(pages, segments).await?;
        let prepared_ids = prepared.iter().map(|it| it.id);
        let open: BTreeSet<TxnId> = losers.keys().copied().chain(prepared_ids).collect();
        let left = Left {
            open: open.clone(),
            prepared,
            segments,
            note: until_done(|| read_note(pages, segments)).await?,
        };
        let shared = share(pages, options, left).await?;
        let engine = Self::attach(shared, Rc::clone(pages), worker).await?;
        engine.worker.load_dictionary(&open).await?;
        engine
            .worker
            .roll_back_losers(losers, loser_changes, options.on_loss)
            .await?;
        let left_count = engine.worker.shared.left_prepared.lock().len();
        if left_count != 0 {
            // They hold locks until somebody ends them.
            warn!(
                transactions = left_count,
                "XA transactions are prepared: XA RECOVER lists them"
            );
        }
        Ok(engine)
    }

    /// Another worker's handle. The background work of the first worker must run by then: this
    /// reads pages, and recovery may have left each frame with a page that is not in its file yet.
    pub async fn join(
        shared: Arc<Shared>,
        pages: Pages,
        options: WorkerOptions,
    ) -> Result<Self, StoreError> {
        Self::attach(shared, Rc::new(pages), options).await
    }

    async fn attach(
        shared: Arc<Shared>,
        pages: Rc<Pages>,
        options: WorkerOptions,
    ) -> Result<Self, StoreError> {
        let segment = options.index;
        assert!(
            u32::from(segment) < shared.segment_count,
            "each worker has a segment"
        );
        let undo = until_done(|| UndoLog::open(&pages, segment)).await?;
        Ok(Self::attach_with(shared, pages, options, undo))
    }

    fn attach_with(
        shared: Arc<Shared>,
        pages: Rc<Pages>,
        options: WorkerOptions,
        undo: UndoLog,
    ) -> Self {
        let segment = options.index;
        assert_eq!(
            usize::from(segment),
            pages.worker(),
            "a worker has its own access to the pages"
        );
        let txns = TransactionWorker::new(Arc::clone(&shared.txns), usize::from(segment));
        let purge = RefCell::default();
        let (orphans, seen_dictionary) = (RefCell::default(), RefCell::default());
        let worker = Worker {
            pages,
            shared,
            txns,
            undo,
            options,
            orphans,
            undecided: RefCell::default(),
            free_slots: Rc::default(),
            left_spaces: LeftSpaces::default(),
            seen_dictionary,
            purge_turns: Arc::default(),
            purge,
            purge_due: Notify::default(),
            orphans_due: Rc::default(),
            jobs: Jobs::default(),
            scan_count: ScanCount::default(),
            keeps_pages: Cell::new(false),
        };
        Self {
            worker: Rc::new(worker),
            transactions: Rc::default(),
        }
    }
}

/// What earlier lives of the server have left.
struct Left {
    /// The transactions without an end.
    open: BTreeSet<TxnId>,
    /// Those of them that wait for a decision.
    prepared: Vec<LeftUndo>,
    /// The undo segments.
    segments: u32,
    /// The last place in a group's order.
    note: Option<Note>,
}

/// Makes what all workers will share.
async fn share(
    pages: &Pages,
    options: EngineOptions,
    left: Left,
) -> Result<Arc<Shared>, StoreError> {
    let first = until_done(|| read_txn_ceiling(pages)).await?;
    let youngest = left.open.last().copied();
    let first = first_txn_id(first, youngest)
        .map_err(|what| StoreError::damaged(format!("next transaction id {first}: {what}")))?;
    let workers = usize::from(options.worker_count);
    let txns = TransactionSystem::new(first, left.open, workers, options.ring_length);
    Ok(Arc::new(Shared {
        txns: Arc::new(txns),
        locks: Arc::new(LockTable::new(options.lock_bytes_max)),
        dictionary: Mutex::new(Arc::default()),
        schema_version: AtomicU64::new(0),
        schema_turns: Arc::default(),
        statistics_version: AtomicU64::new(0),
        left_prepared: Mutex::new(left.prepared),
        statistics_due: StatisticsDue::default(),
        txn_ceiling: Mutex::new(first.get()),
        segment_count: left.segments,
        first_txn: first,
        counters: (0..workers).map(|_| CachePadded::default()).collect(),
        open_slots: (0..workers).map(|_| SlotList::default()).collect(),
        provider: OnceLock::new(),
        note: Mutex::new(left.note),
        order_boxes: (0..workers).map(|_| OrderBox::default()).collect(),
    }))
}

/// Refuses to open if the log has changes on a tablespace whose file is missing, unless no table
/// has that tablespace, or the operator has accepted its loss. Changes nothing.
async fn check_missing(
    pages: &Pages,
    missing: &[SpaceId],
    on_loss: OnLogLoss,
) -> Result<(), StoreError> {
    let is_needed = |space: SpaceId| match on_loss {
        OnLogLoss::Refuse => space.0 < TABLE_SPACES_START,
        OnLogLoss::Accept => space == SYSTEM_SPACE,
    };
    if let Some(&space) = missing.iter().find(|space| is_needed(**space)) {
        return Err(missing_file(space));
    }
    let mut see = |entry: Entry| match entry {
        Entry::Table(table) if missing.contains(&table.space) => {
            if on_loss == OnLogLoss::Refuse {
                return Err(missing_file(table.space));
            }
            let (table, space) = (table.definition.name.to_string(), table.space.0);
            error!(%table, space, "the file of a table is missing, with changes from the log");
            Ok(())
        }
        _ => Ok(()),
    };
    match for_each_entry(pages, &mut see).await {
        // A loss of log was accepted, so the dictionary is mended before it is needed.
        Err(failure)
            if on_loss == OnLogLoss::Accept
                && pages.wal().has_newer_pages()
                && failure.is_unreadable() =>
        {
            Ok(())
        }
        seen => seen,
    }
}

/// Calls `each` for the newest version of each row of the dictionary.
async fn for_each_entry(
    pages: &Pages,
    each: &mut dyn FnMut(Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let tree = dictionary::tree();
    let (mut place, mut run) = (Place::first(), Run::new());
    while place.from != From::Nothing {
        until_done(|| tree.read_run(pages, &place, 16, &mut run)).await?;
        for number in 0..run.len() {
            let (header, body) =
                RowHeader::split(run.entry(number).1).ok_or_else(damaged_dictionary)?;
            if header.is_deleted {
                continue;
            }
            let row = dictionary_row(pages, header, body).await?;
            each(dictionary::decode(&row).map_err(|_| damaged_dictionary())?)?;
        }
        std::mem::swap(&mut place, &mut run.next);
    }
    Ok(())
}

/// A row of the dictionary, fetched from its own pages if it has them.
async fn dictionary_row(
    pages: &Pages,
    header: RowHeader,
    body: &[u8],
) -> Result<Vec<u8>, StoreError> {
    if !header.is_spilled {
        return Ok(body.to_vec());
    }
    let (mut row, mut memo) = (Vec::new(), LobMemo::default());
    until_done(|| {
        row.clear();
        memo.read(pages, dictionary::tree().space, body, &mut row)
    })
    .await?;
    Ok(row)
}

fn damaged_dictionary() -> StoreError {
    StoreError::damaged("a row of the dictionary cannot be read")
}

/// Makes the system space: counters and an empty dictionary. Overwrites what an unfinished attempt
/// has left.
async fn create_system(pages: &Pages) -> Result<(), StoreError> {
    make_space_file(pages, SYSTEM_SPACE).await?;
    until_done(|| space::create(pages, SYSTEM_SPACE)).await?;
    until_done(|| {
        let mut change = pages.change()?;
        let types = [PageType::Meta, PageType::BtreeLeaf];
        let taken = Reservation::make(&mut change, SYSTEM_SPACE, &types)?
            .expect("a new space has room for its first pages");
        let ((counters_no, counters), (root_no, root)) = (taken.page(0), taken.page(1));
        assert!(
            counters_no == COUNTERS_PAGE,
            "a new space gives its pages in order"
        );
        assert!(
            root_no == DICTIONARY_ROOT,
            "a new space gives its pages in order"
        );
        taken.take(&mut change)?;
        let body = counters_body(TABLE_SPACES_START);
        apply(&mut change, counters, &PageOp::BodyFill { bytes: &body })?;
        let index_id = DICTIONARY_INDEX.0;
        let shape = TreePageShape {
            level: 0,
            index_id,
            lower: &[],
            upper: None,
        };
        apply(&mut change, root, &PageOp::TreeInit(shape))?;
        change.commit();
        Ok(())
    })
    .await?;
    create_segments(pages, 1).await?;
    pages.checkpoint(CHECKPOINT_PAYLOAD.to_vec()).await?;
    Ok(())
}

/// Makes the undo segments that are missing.
async fn create_segments(pages: &Pages, count: u32) -> Result<(), StoreError> {
    let have = until_done(|| read_segment_count(pages)).await?;
    for number in have..count {
        let segment = u8::try_from(number).expect("there are at most 255 workers");
        make_space_file(pages, space_of(segment)).await?;
        until_done(|| space::create(pages, space_of(segment))).await?;
        until_done(|| UndoLog::create(pages, segment)).await?;
        until_done(|| write_segment_count(pages, number + 1)).await?;
    }
    Ok(())
}

async fn make_space_file(pages: &Pages, space: SpaceId) -> Result<(), StoreError> {
    if pages.pool().has_space(space) {
        return Ok(());
    }
    let disk = &**pages.disk();
    pages.pool().create_space(disk, space).await
}

impl Worker {
    /// Reads the dictionary as it was without the changes of open transactions.
    async fn load_dictionary(&self, open: &BTreeSet<TxnId>) -> Result<(), StoreError> {
        let (mut tables, mut databases) = (BTreeMap::new(), BTreeMap::new());
        let mut statistics = Vec::new();
        let tree = dictionary::tree();
        let (mut place, mut run) = (Place::first(), Run::new());
        while place.from != From::Nothing {
            self.until_done(|| tree.read_run(&self.pages, &place, 16, &mut run))
                .await?;
            for number in 0..run.len() {
                let mut version = run.entry(number).1.to_vec();
                let Some(bytes) = self.settled_row(&mut version, open).await? else {
                    continue;
                };
                let entry = dictionary::decode(&bytes).map_err(|_| damaged_dictionary())?;
                match entry {
                    Entry::Database { name, collation } => {
                        databases.insert(name, collation);
                    }
                    Entry::Statistics(entry) => statistics.push(entry),
                    Entry::Table(entry) => {
                        tables.insert(entry.definition.id, check_entry(entry)?);
                    }
                }
            }
            std::mem::swap(&mut place, &mut run.next);
        }
        for kept in statistics {
            let table: Option<&Arc<TableShape>> = tables.get(&kept.table);
            if let Some(table) = table {
                table.live.set_row_count(kept.rows);
                table.live.set_statistics(kept.rows, kept.indexes.into());
            }
        }
        let version = self.dictionary().version + 1;
        let picture = Dictionary::new(version, tables, databases);
        self.shared
            .replace_dictionary(&mut self.shared.dictionary.lock(), picture);
        Ok(())
    }

    /// Returns the newest version of a dictionary row that no open transaction wrote.
    async fn settled_row(
        &self,
        version: &mut Vec<u8>,
        open: &BTreeSet<TxnId>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let damage = damaged_dictionary;
        let mut bytes = Vec::new();
        let mut circle = CircleCheck::new();
        loop {
            let (header, body) = RowHeader::split(version).ok_or_else(damage)?;
            if !open.contains(&header.txn) {
                if header.is_deleted {
                    return Ok(None);
                }
                return dictionary_row(&self.pages, header, body).await.map(Some);
            }
            let pointer = header.undo;
            if pointer.is_null() || circle.comes_back(pointer) {
                return Err(damage());
            }
            self.until_done(|| undo_log::read_record(&self.pages, pointer, &mut bytes))
                .await?;
            let record = UndoRecord::decode(&bytes).ok_or_else(damage)?;
            if record.kind == UndoKind::Insert {
                return Ok(None);
            }
            restore_version(&record, version).ok_or_else(damage)?;
        }
    }

    /// Rolls back what had not committed.
    async fn roll_back_losers(
        self: &Rc<Self>,
        losers: LastRecords,
        changes: u64,
        on_loss: OnLogLoss,
    ) -> Result<(), StoreError> {
        let transactions = losers.len();
        if transactions == 0 {
            return Ok(());
        }
        warn!(
            transactions,
            changes,
            "rolling back the transactions that had not committed, before anybody can log in"
        );
        let mut progress = RollbackProgress::new(changes, self.options.clock.now());
        for (id, last_undo) in losers {
            self.roll_back_loser((id, last_undo), on_loss, &mut progress)
                .await?;
            assert!(
                !self.shared.txns.is_active(id),
                "a loser ends before others work"
            );
        }
        // As loud as the beginning, which the operator has seen.
        warn!(
            transactions,
            "rolled back the transactions that had not committed"
        );
        Ok(())
    }

    async fn roll_back_loser(
        self: &Rc<Self>,
        (id, last_undo): (TxnId, UndoPointer),
        on_loss: OnLogLoss,
        progress: &mut RollbackProgress,
    ) -> Result<(), StoreError> {
        let mut note = |count| {
            if progress.note(count, self.options.clock.now()) {
                let (undone, changes) = (progress.done, progress.total);
                warn!(undone, changes, "still rolling back");
            }
        };
        match self.undo_all(last_undo, &mut note).await {
            Err(failure) if on_loss == OnLogLoss::Accept && is_of_table(&failure) => {
                error!(%failure, "a change that had not committed stays, on a page that is lost");
                self.undo_the_rest(id, last_undo).await?;
            }
            undone => undone?,
        }
        self.until_done(|| self.write_rolled_back(id, last_undo.segment()))
            .await
    }

    /// Removes tablespaces that no row of the dictionary names: of a table that was being made, or
    /// one whose drop is committed.
    async fn remove_orphan_spaces(&self) -> Result<(), StoreError> {
        let next = self.until_done(|| read_next_id(&self.pages)).await?;
        for id in self.orphan_spaces()? {
            if id.0 < next {
                self.remove_space(id).await?;
            } else {
                self.set_aside(id)?;
            }
        }
        Ok(())
    }

    /// Renames the file of a tablespace that no table names. An id is allocated durably before its
    /// file is made, so a higher one is not this server's work, or log was lost. If its drop was
    /// logged, a start behind a crash would remove a newer table of that id.
    fn set_aside(&self, id: SpaceId) -> Result<(), StoreError> {
        let file = self.pages.pool().set_aside(&**self.pages.disk(), id)?;
        warn!(file, "no table names this file: it was renamed");
        Ok(())
    }

    /// The tablespaces that no row of the dictionary names.
    fn orphan_spaces(&self) -> Result<Vec<SpaceId>, StoreError> {
        let dictionary = self.dictionary();
        let tables = dictionary.tables.values();
        let named: BTreeSet<SpaceId> = tables.map(|table| table.space()).collect();
        let mut spaces = self.pages.pool().list_spaces(&**self.pages.disk())?;
        spaces.retain(|id| TABLE_SPACES_START <= id.0 && !named.contains(id));
        Ok(spaces)
    }

    /// Removes the copies of tables whose ALTER was interrupted by a crash.
    async fn remove_copies(self: &Rc<Self>) -> Result<(), StoreError> {
        let definitions = Arc::clone(&self.dictionary().definitions);
        for definition in definitions.iter() {
            if definition.name.table.starts_with(COPY_NAME_PREFIX) {
                self.drop_table(definition.id).await?;
            }
        }
        Ok(())
    }

    /// Reads the counters of all tables. A table that cannot be read is left as it is.
    async fn load_tables(&self) -> Result<(), StoreError> {
        let tables: Vec<_> = self.dictionary().tables.values().cloned().collect();
        for table in tables {
            match self.load_table(&table).await {
                Err(failure) if failure.is_unreadable() => {
                    let table = &table.entry.definition.name;
                    error!(%table, %failure, "a table cannot be read");
                }
                loaded => loaded?,
            }
        }
        Ok(())
    }

    async fn load_table(&self, table: &TableShape) -> Result<(), StoreError> {
        let auto = self.until_done(|| self.read_auto(table)).await?;
        *table.live.auto.lock() = auto;
        self.reclaim_trees(table).await?;
        // Kept statistics tell it better: at most a tenth of the rows have changed since.
        if table.live.statistics().is_empty() {
            let estimate = || estimate_rows(&self.pages, table.clustered);
            match self.until_done(estimate).await {
                // A statement that reads that page gets the error. Others can be carried out.
                Err(failure) if failure.is_unreadable() => {
                    warn!(%failure, "the rows of a table cannot be estimated");
                }
                rows => table.live.set_row_count(rows?),
            }
        }
        Ok(())
    }
}

/// Whether a page of an undo segment is damaged, or contradicts another.
fn is_of_undo(failure: &StoreError) -> bool {
    let space = space_of_damage(failure);
    space.is_some_and(|space| space != SYSTEM_SPACE && space.0 < TABLE_SPACES_START)
}

/// Whether a page of a table is damaged, or its file is missing.
fn is_of_table(failure: &StoreError) -> bool {
    space_of_damage(failure).is_some_and(|space| TABLE_SPACES_START <= space.0)
}

fn space_of_damage(failure: &StoreError) -> Option<SpaceId> {
    let StoreError::Damaged { page, .. } = failure else {
        return None;
    };
    page.map(|page| page.space)
}

fn check_entry(entry: TableEntry) -> Result<Arc<TableShape>, StoreError> {
    let definition = &entry.definition;
    let clustered = usize::from(definition.clustered_key().is_some());
    let columns = definition.columns.len();
    let is_whole = entry.trees.len() == 1 + definition.indexes.len() - clustered
        && !definition
            .indexes
            .iter()
            .skip(1)
            .any(|it| it.is_clustered())
        && definition
            .indexes
            .iter()
            .all(|index| index.parts.iter().all(|part| part.column < columns));
    if !is_whole {
        let what = format!("the dictionary's row of table {}", definition.name);
        return Err(StoreError::damaged(what));
    }
    Ok(Arc::new(TableShape::new(
        entry,
        Arc::<LiveTable>::default(),
    )))
}

/// Estimates the entries of a tree from the pages on the way to its first leaf.
pub(crate) fn estimate_rows(pages: &Pages, tree: Tree) -> Outcome<u64> {
    let fanouts = tree.fanouts(pages)?;
    Ok(fanouts
        .into_iter()
        .fold(1, |product: u64, count| product.saturating_mul(count)))
}

/// Returns the first id to allocate, by the counters page, or what is wrong with that page.
/// `youngest` is the youngest transaction that was open.
fn first_txn_id(next: u64, youngest: Option<TxnId>) -> Result<TxnId, &'static str> {
    let next = TxnId::new(next).ok_or("the ids are used up")?;
    if next == TxnId::NONE {
        return Err("it means no transaction");
    }
    match youngest {
        Some(youngest) if next <= youngest => Err("a transaction that was open has a later one"),
        _ => Ok(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_id_is_above_none_within_48_bits_and_younger_than_all() {
        let id = |number| TxnId::new(number).unwrap();
        let open = Some(id(7));
        assert!(first_txn_id(0, None).is_err());
        assert_eq!(first_txn_id(1, None), Ok(id(1)));
        assert!(first_txn_id(7, open).is_err());
        assert_eq!(first_txn_id(8, open), Ok(id(8)));
        assert_eq!(first_txn_id((1 << 48) - 1, open), Ok(TxnId::MAX));
        assert!(first_txn_id(1 << 48, None).is_err());
    }
}
