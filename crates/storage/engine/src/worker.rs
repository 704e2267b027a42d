//! A worker's state for every operation, and the state that all workers share.

pub(crate) mod jobs;
pub(crate) mod open_slots;
pub(crate) mod order_box;
pub(crate) mod place;
pub(crate) mod purge_progress;
pub(crate) mod scan_count;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use btree::Pages;
use env::Clock;
use format::page_bytes::PageBytes;
use format::{Lsn, PAGE_HEADER_BYTES, PageId, PageNo, SpaceId, TableId, TxnId, UndoPointer};
use lock::{LockTable, OwnerLocks};
use stdx::planted::{Mistake, is_planted};
use store::replication::Provider;
use store::{Durability, Interrupt, Outcome, StoreError, Suspend, WaitReason, Witness, Xid};
use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, Mutex, Notify};
use txn::{TransactionSystem, TransactionWorker};
use wal::LogLevel;

use crate::counters::EngineCounters;
use crate::schema::dictionary::{Dictionary, SYSTEM_SPACE};
use crate::schema::statistics::StatisticsDue;
use crate::schema::table_shape::TableShape;
use crate::turns::Turns;
use crate::undo_log::{TABLE_SPACES_START, UndoLog, put};
use crate::worker::jobs::Jobs;
use crate::worker::open_slots::{FreeSlots, OpenSlot, SlotList};
use crate::worker::order_box::OrderBox;
use crate::worker::place::Note;
use crate::worker::purge_progress::Purge;
use crate::worker::scan_count::ScanCount;

/// The page of the counters.
pub(crate) const COUNTERS_PAGE: PageNo = PageNo(2);
const TXN_CEILING_AT: usize = PAGE_HEADER_BYTES;
const NEXT_ID_AT: usize = PAGE_HEADER_BYTES + 8;
const SEGMENTS_AT: usize = PAGE_HEADER_BYTES + 12;

/// Transaction ids that one write of the counters page covers; a crash skips at most this many.
const TXN_IDS_PER_WRITE: u64 = 1 << 16;

/// Sleeps for a duration, in the runtime or in a simulated one.
pub type Sleep = Rc<dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()>>>>;

/// What one worker's engine needs from outside.
#[derive(Clone)]
pub struct WorkerOptions {
    /// The worker's index, and so its undo segment.
    pub index: u8,
    /// For lock waits and creation times.
    pub clock: Rc<dyn Clock>,
    /// For lock wait timeouts and background work.
    pub sleep: Sleep,
    /// How long purge waits for an open transaction before it skips it.
    pub purge_patience: Duration,
}

impl fmt::Debug for WorkerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerOptions")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// The tablespaces of a worker that are left; see `ddl::left_space`.
pub(crate) type LeftSpaces = Rc<RefCell<Vec<SpaceId>>>;

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    /// Transactions and their outcomes.
    pub(crate) txns: Arc<TransactionSystem>,
    /// Explicit locks.
    pub(crate) locks: Arc<LockTable>,
    /// The present snapshot of the dictionary.
    pub(crate) dictionary: Mutex<Arc<Dictionary>>,
    /// The version of that snapshot, compared without a lock.
    pub(crate) schema_version: AtomicU64,
    /// Taken by the one schema change that is under way.
    pub(crate) schema_turns: Arc<Turns>,
    /// Raised when statistics have become others than plans were made by.
    pub(crate) statistics_version: AtomicU64,
    /// Prepared transactions of a former life that nobody has taken yet.
    pub(crate) left_prepared: Mutex<Vec<LeftUndo>>,
    /// Tables whose statistics are to be renewed.
    pub(crate) statistics_due: StatisticsDue,
    /// Transaction ids below it may be allocated; the counters page has it on disk.
    pub(crate) txn_ceiling: Mutex<u64>,
    /// Undo segments, those of former workers included. Constant.
    pub(crate) segment_count: u32,
    /// The first transaction of this life of the server. Constant.
    pub(crate) first_txn: TxnId,
    /// What each worker counts.
    pub(crate) counters: Box<[CachePadded<EngineCounters>]>,
    /// The open transactions of each worker.
    pub(crate) open_slots: Box<[SlotList]>,
    /// Who orders the transactions of a group. Set once, at the start.
    pub(crate) provider: OnceLock<Arc<dyn Provider>>,
    /// The last place in the group's order that was passed. Who passes one has its turn.
    pub(crate) note: Mutex<Option<Note>>,
    /// The orders to abort for each worker.
    pub(crate) order_boxes: Box<[OrderBox]>,
}

impl Shared {
    /// Workers that have a handle on the engine. A check has fewer of them than the pool has: its
    /// other workers only read pages, and purge no segment.
    pub(crate) fn worker_count(&self) -> usize {
        self.counters.len()
    }

    /// Which worker purges a segment and decides about what is prepared there. Segments of former
    /// workers are distributed.
    pub(crate) fn worker_of(&self, segment: u8) -> usize {
        usize::from(segment) % self.worker_count()
    }

    /// Sets whom reports of deadlocks ask for statements; only the first call counts.
    pub fn set_witness(&self, witness: Arc<dyn Witness>) {
        self.locks.set_witness(witness);
    }

    /// The name of the table whose pages are in this tablespace.
    pub fn table_in(&self, space: SpaceId) -> Option<String> {
        let present = Arc::clone(&self.dictionary.lock());
        let mut shapes = present.tables.values();
        let shape = shapes.find(|shape| shape.space() == space)?;
        Some(shape.entry.definition.name.to_string())
    }

    /// Replaces the present snapshot of the dictionary.
    pub(crate) fn replace_dictionary(&self, present: &mut Arc<Dictionary>, picture: Dictionary) {
        let version = picture.version;
        assert!(
            present.version < version,
            "workers tell snapshots by their versions"
        );
        *present = Arc::new(picture);
        // Release: a thread that sees the version finds the snapshot.
        self.schema_version.store(version, Ordering::Release);
    }
}

/// The undo of a prepared transaction that a former life of the server has left.
#[derive(Debug)]
pub(crate) struct LeftUndo {
    /// Its id.
    pub(crate) id: TxnId,
    /// Its name.
    pub(crate) xid: Xid,
    /// The record that it is prepared, which is its last one.
    pub(crate) last_undo: UndoPointer,
    /// Its records, that one included.
    pub(crate) undo_count: u64,
    /// The tables that it has changed.
    pub(crate) tables: BTreeSet<TableId>,
}

/// A transaction whose handle was dropped before its end, to be rolled back.
#[derive(Debug)]
pub(crate) struct Orphan {
    /// Its id.
    pub(crate) id: TxnId,
    /// The undo segment of its records.
    pub(crate) segment: u8,
    /// Its last undo record that is not undone.
    pub(crate) last_undo: UndoPointer,
    /// Whether undo of it is in the log.
    pub(crate) has_log: bool,
    /// Its locks, released at the end.
    pub(crate) locks: Option<OwnerLocks>,
    /// Keeps the definitions of its tables unchanged; dropped at the end.
    pub(crate) kept: Option<Box<dyn Any>>,
    /// Shows it to others until the end.
    pub(crate) open: Option<OpenSlot>,
}

/// One worker's part of the engine.
pub(crate) struct Worker {
    /// Access to the pool.
    pub(crate) pages: Rc<Pages>,
    /// What all share.
    pub(crate) shared: Arc<Shared>,
    /// Its snapshots.
    pub(crate) txns: Rc<TransactionWorker>,
    /// Its undo segment.
    pub(crate) undo: UndoLog,
    /// Clock, sleep and index.
    pub(crate) options: WorkerOptions,
    /// The dictionary snapshot that this worker has seen last.
    #[expect(
        clippy::redundant_allocation,
        reason = "counting the inner one would write to a line that all workers share"
    )]
    pub(crate) seen_dictionary: RefCell<Rc<Arc<Dictionary>>>,
    /// Transactions to be rolled back in the background.
    pub(crate) orphans: RefCell<Vec<Orphan>>,
    /// Locks of prepared transactions whose handles were dropped. Nobody ends these in this life of
    /// the server, so nobody may have their rows.
    pub(crate) undecided: RefCell<Vec<OwnerLocks>>,
    /// Slots that show transactions to others.
    pub(crate) free_slots: Rc<FreeSlots>,
    /// Tablespaces to be removed in the background.
    pub(crate) left_spaces: LeftSpaces,
    /// Taken by the purge that runs.
    pub(crate) purge_turns: Arc<Turns>,
    /// How far purge has come.
    pub(crate) purge: RefCell<Purge>,
    /// Where purge sleeps while it has nothing to do.
    pub(crate) purge_due: Notify,
    /// Where the rollback of orphans sleeps while there are none.
    pub(crate) orphans_due: Rc<Notify>,
    /// Work for a group of nodes.
    pub(crate) jobs: Jobs,
    /// Numbers its scans.
    pub(crate) scan_count: ScanCount,
    /// Undo neither takes pages nor gives any back, since the maps of tablespaces may be older than
    /// their pages; see `recovery::salvage`.
    pub(crate) keeps_pages: Cell<bool>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.options.index)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// What this worker counts.
    pub(crate) fn counters(&self) -> &EngineCounters {
        let counters = self.shared.counters.get(usize::from(self.options.index));
        counters.expect("each worker has its counters")
    }

    /// Adds a page to this worker's undo segment.
    pub(crate) fn make_undo_room(&self) -> Outcome<()> {
        self.undo.make_room(&self.pages)?;
        self.counters().undo_pages_taken.increment();
        Ok(())
    }

    /// Counts the end of a transaction that purge will come to. Those of former lives are not
    /// counted when it does.
    pub(crate) fn note_end_written(&self, id: TxnId) {
        if self.shared.first_txn <= id {
            self.counters().ends_written.increment();
        }
    }

    /// The present dictionary snapshot. Writes nothing shared while it is the one that this worker
    /// has seen last.
    #[expect(
        clippy::redundant_allocation,
        reason = "counting the inner one would write to a line that all workers share"
    )]
    pub(crate) fn dictionary(&self) -> Rc<Arc<Dictionary>> {
        let mut seen = self.seen_dictionary.borrow_mut();
        // Acquire: pairs with the release in `replace_dictionary`.
        if seen.version != self.shared.schema_version.load(Ordering::Acquire) {
            *seen = Rc::new(Arc::clone(&self.shared.dictionary.lock()));
        }
        Rc::clone(&seen)
    }

    /// The table of that id, or `None` after its drop.
    pub(crate) fn table_shape(&self, id: TableId) -> Option<Arc<TableShape>> {
        self.dictionary().tables.get(&id).cloned()
    }

    /// A new transaction id.
    pub(crate) fn allocate_txn_id(&self) -> Outcome<TxnId> {
        let ceiling = *self.shared.txn_ceiling.lock();
        if ceiling <= self.shared.txns.next().get() + 256 {
            self.raise_txn_ceiling()?;
        }
        match self.shared.txns.allocate() {
            Some(id) => {
                assert!(
                    id.get() < ceiling || id.get() < *self.shared.txn_ceiling.lock(),
                    "no id is given out that a crash would give out again"
                );
                // Changes will follow.
                self.pages.call_house();
                Ok(id)
            }
            None => {
                let _ = self.txns.maintain(|| self.pages.reserved());
                Err(Suspend::turn().into())
            }
        }
    }

    /// Writes a higher ceiling of transaction ids. A worker may be late by as many ids as the
    /// others take meanwhile; the caller's margin covers that.
    fn raise_txn_ceiling(&self) -> Outcome<()> {
        let mut change = self.pages.change()?;
        let page = change.latch(PageId::new(SYSTEM_SPACE, COUNTERS_PAGE))?;
        let next = self.shared.txns.next().get();
        let mut ceiling = self.shared.txn_ceiling.lock();
        if next + 256 < *ceiling {
            return Ok(());
        }
        let raised = next + TXN_IDS_PER_WRITE;
        put(&mut change, page, TXN_CEILING_AT, &raised.to_le_bytes())?;
        change.commit();
        *ceiling = raised;
        Ok(())
    }

    /// Wakes all loops that have work after the end of a transaction, whose outcome was published.
    pub(crate) fn note_end(&self) {
        self.txns.note_end();
        self.pages.call_house();
    }

    /// A new id for a table or an index, unique over these and tablespaces. A file names it durably
    /// only after the log that allocated it is durable.
    pub(crate) fn allocate_id(&self) -> Outcome<u32> {
        self.take_id().map(|(id, _)| id)
    }

    /// A new id for a tablespace, durably allocated. A file's name becomes durable independently of
    /// the log. If a crash left a file but not this, the id would be allocated again. Redo, which
    /// meets the drop of the left one in the log, would then remove the new one's file.
    pub(crate) async fn allocate_space(&self) -> Result<SpaceId, StoreError> {
        let (id, end) = self.until_done(|| self.take_id()).await?;
        assert!(
            TABLE_SPACES_START <= id,
            "the spaces below have their owners"
        );
        self.pages.wait_log(end, LogLevel::Durable).await?;
        Ok(SpaceId(id))
    }

    fn take_id(&self) -> Outcome<(u32, Lsn)> {
        let mut change = self.pages.change()?;
        let id = PageId::new(SYSTEM_SPACE, COUNTERS_PAGE);
        let page = change.latch(id)?;
        let next = change.bytes(page).u32_at(NEXT_ID_AT);
        let next = next.ok_or_else(|| btree::damaged(id, "no counters"))?;
        // The spaces below have their owners.
        if next < TABLE_SPACES_START {
            return Err(btree::damaged(id, "an id below those of tables"));
        }
        let following = next.checked_add(1);
        let following = following.ok_or_else(|| btree::damaged(id, "no id is left"))?;
        put(&mut change, page, NEXT_ID_AT, &following.to_le_bytes())?;
        let written = change.bytes(page).u32_at(NEXT_ID_AT);
        assert_eq!(written, Some(following), "an id is taken once");
        Ok((next, change.commit()))
    }

    /// Waits until the log below `lsn` is as durable as asked.
    pub(crate) fn wait_durable(&self, lsn: Lsn, durability: Durability) -> Outcome<()> {
        let wal = self.pages.wal();
        let level = match durability {
            Durability::Lazy => return Ok(()),
            Durability::Written => LogLevel::Written,
            Durability::Durable => LogLevel::Durable,
        };
        if lsn <= wal.reached(level) || is_planted(Mistake::AnswersBeforeFlush) {
            return Ok(());
        }
        if wal.is_poisoned() {
            return Err(StoreError::LogFailed.into());
        }
        let wait = self.pages.wait_log(lsn, level);
        let wait = async move {
            // The repeated call meets a failure again.
            let _ = wait.await;
        };
        Err(Suspend::new(WaitReason::Durability, wait).into())
    }

    /// Notes the end of a commit that is about to be published.
    pub(crate) fn note_commit(&self, lsn: Lsn) {
        // Release: who sees the end sees that the log was reserved up to it.
        let last = &self.counters().last_commit;
        last.store(lsn.0, Ordering::Release);
    }

    /// Suspends until each commit is durable that a read on this worker could have seen by now.
    pub(crate) fn seen_is_durable(&self) -> Outcome<()> {
        let counters = self.shared.counters.iter();
        // Acquire: pairs with `note_commit`. The end of a commit stands here before its outcome is
        // published.
        let ends = counters.map(|it| it.last_commit.load(Ordering::Acquire));
        let last = Lsn(ends.max().unwrap_or(0));
        assert!(last <= self.pages.reserved(), "what was seen is in the log");
        self.wait_durable(last, Durability::Durable)
    }

    /// Removes a tablespace that no table names any more. Purge of another worker may be in the
    /// middle of a change there; the second note follows whatever it still writes.
    pub(crate) async fn remove_space(&self, id: SpaceId) -> Result<(), StoreError> {
        assert!(
            TABLE_SPACES_START <= id.0,
            "dictionary and undo keep their tablespaces"
        );
        assert!(
            self.dictionary().tables.values().all(|it| it.space() != id),
            "no table has the tablespace that is removed"
        );
        let note = || {
            let mut change = self.pages.change()?;
            change.note_space_drop(id);
            Ok(change.commit())
        };
        let lsn = self.until_done(note).await?;
        self.pages.wait_log(lsn, LogLevel::Durable).await?;
        self.pages.remove_space(id).await?;
        self.until_done(note).await?;
        Ok(())
    }

    /// The present time, for lock waits.
    pub(crate) fn now_ns(&self) -> u64 {
        self.options.clock.now().nanos()
    }

    /// See [`store::until_done`].
    pub(crate) async fn until_done<T>(
        &self,
        mut operation: impl FnMut() -> Outcome<T>,
    ) -> Result<T, StoreError> {
        self.pages.forget_wait_failure();
        store::until_done(|| self.reported(operation())).await
    }

    /// Returns the outcome. If it is damage, reports that for the server's log. The outcome of each
    /// call from outside passes here, and that of each task of the background.
    pub(crate) fn reported<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        if let Err(Interrupt::Error(error)) = &outcome {
            self.pages.pool().news().note_error(error);
        }
        outcome
    }
}

/// The first body of the counters page.
pub(crate) fn counters_body(next_id: u32) -> Vec<u8> {
    let mut body = 1u64.to_le_bytes().to_vec();
    body.extend_from_slice(&next_id.to_le_bytes());
    body
}

/// Raises the counters above these ids, if they are not.
pub(crate) fn raise_counters(pages: &Pages, txn: u64, id: u32) -> Outcome<()> {
    let page_id = PageId::new(SYSTEM_SPACE, COUNTERS_PAGE);
    let mut change = pages.change()?;
    let page = change.latch(page_id)?;
    let bytes = change.bytes(page);
    let read = || Some((bytes.u64_at(TXN_CEILING_AT)?, bytes.u32_at(NEXT_ID_AT)?));
    let (ceiling, next) = read().ok_or_else(|| btree::damaged(page_id, "no counters"))?;
    if txn < ceiling && id < next {
        return Ok(());
    }
    let no_id = || btree::damaged(page_id, "no id is left");
    let ceiling = ceiling.max(txn.checked_add(1).ok_or_else(no_id)?);
    let next = next.max(id.checked_add(1).ok_or_else(no_id)?);
    put(&mut change, page, TXN_CEILING_AT, &ceiling.to_le_bytes())?;
    put(&mut change, page, NEXT_ID_AT, &next.to_le_bytes())?;
    let written = change.bytes(page).u64_at(TXN_CEILING_AT);
    assert!(written.is_some_and(|it| txn < it), "its ids are used");
    let written = change.bytes(page).u32_at(NEXT_ID_AT);
    assert!(written.is_some_and(|it| id < it), "its ids are used");
    change.commit();
    Ok(())
}

/// The next id of tables, indexes and tablespaces.
pub(crate) fn read_next_id(pages: &Pages) -> Outcome<u32> {
    let id = PageId::new(SYSTEM_SPACE, COUNTERS_PAGE);
    let page = pages.shared(id)?;
    page.bytes()
        .u32_at(NEXT_ID_AT)
        .ok_or_else(|| btree::damaged(id, "no counters"))
}

/// How many undo segments there are.
pub(crate) fn read_segment_count(pages: &Pages) -> Outcome<u32> {
    let id = PageId::new(SYSTEM_SPACE, COUNTERS_PAGE);
    let page = pages.shared(id)?;
    page.bytes()
        .u32_at(SEGMENTS_AT)
        .ok_or_else(|| btree::damaged(id, "no counters"))
}

/// Notes how many undo segments there are.
pub(crate) fn write_segment_count(pages: &Pages, count: u32) -> Outcome<()> {
    let mut change = pages.change()?;
    let page = change.latch(PageId::new(SYSTEM_SPACE, COUNTERS_PAGE))?;
    put(&mut change, page, SEGMENTS_AT, &count.to_le_bytes())?;
    change.commit();
    Ok(())
}

/// The transaction ids that may have been allocated, by the counters page: all below this.
pub(crate) fn read_txn_ceiling(pages: &Pages) -> Outcome<u64> {
    let id = PageId::new(SYSTEM_SPACE, COUNTERS_PAGE);
    let page = pages.shared(id)?;
    page.bytes()
        .u64_at(TXN_CEILING_AT)
        .ok_or_else(|| btree::damaged(id, "no counters"))
}

/// A suspension until a lock is decided or `patience` is over.
pub(crate) fn lock_suspend(sleep: &Sleep, future: lock::LockFuture, patience: Duration) -> Suspend {
    let mut timeout = sleep(patience);
    let mut future = Box::pin(future);
    let either = std::future::poll_fn(move |context| {
        if future.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(());
        }
        timeout.as_mut().poll(context)
    });
    Suspend::new(WaitReason::RowLock, either)
}
