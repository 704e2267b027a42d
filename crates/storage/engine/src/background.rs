//! Work that no session waits for: settling transactions, purge, cleaning pages, checkpoints, and
//! the rollback of transactions whose sessions are gone.
//!
//! Two loops a worker. *Upkeep* (cleaning, checkpoints, log segments) waits for nothing but the
//! disk; everything else changes pages, may wait for room in the log or for a frame, and so for
//! upkeep. In one loop they would wait for each other.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use store::StoreError;
use tracing::error;

use crate::engine::Engine;
use crate::read::LobMemo;
use crate::recovery::CHECKPOINT_PAYLOAD;
use crate::worker::{Orphan, Worker};

/// Between two rounds where the last one found nothing to do.
const IDLE_WAIT: Duration = Duration::from_millis(10);
/// Between two rounds where more is to be done.
const BUSY_WAIT: Duration = Duration::from_millis(1);
/// Undo records that purge looks at in a round.
const PURGE_BUDGET: usize = 256;
/// Pages that the cleaner writes in a round.
const CLEAN_BUDGET: u32 = 64;
/// Rounds between two checkpoints, at least.
const CHECKPOINT_ROUNDS: u32 = 500;
/// Rounds after which log that nobody waits for is made durable: about once a second, as commits
/// that do not wait are promised.
const LOG_ROUNDS: u32 = 100;
/// Rounds between two searches for deadlocks that closed after the last wait began.
const DEADLOCK_ROUNDS: u32 = 5;

impl Engine {
    /// Runs the background work of this worker until `stop` is ready. Spawned once on each worker.
    pub async fn run_background(&self, stop: impl Future<Output = ()>) {
        let (is_over, is_idle) = (Cell::new(false), Cell::new(false));
        let mut stop = pin!(stop);
        let work = self.run_rounds(&is_over, async |round| self.background_round(round).await);
        let upkeep = self.run_rounds(&is_idle, async |round| self.upkeep_round(round).await);
        let (mut work, mut upkeep) = (pin!(work), pin!(upkeep));
        std::future::poll_fn(|context| {
            // Looked at first, so that the loop sees it; a round that has begun is finished.
            if !is_over.get() && stop.as_mut().poll(context).is_ready() {
                is_over.set(true);
            }
            // The last round of work may still wait for upkeep.
            if !is_idle.get() && work.as_mut().poll(context).is_ready() {
                is_idle.set(true);
            }
            upkeep.as_mut().poll(context)
        })
        .await;
    }

    /// Calls `work` round after round, soon again where it says that more is to be done.
    async fn run_rounds(
        &self,
        is_over: &Cell<bool>,
        work: impl AsyncFn(u32) -> Result<bool, StoreError>,
    ) {
        let mut round = 0;
        while !is_over.get() {
            let is_busy = work(round).await.unwrap_or_else(|failure| {
                error!(%failure, "background work of the engine failed");
                false
            });
            round = round.wrapping_add(1);
            let wait = if is_busy { BUSY_WAIT } else { IDLE_WAIT };
            (self.worker.options.sleep)(wait).await;
        }
    }

    /// One round of settling, rollback and purge; true if more is to be done.
    pub async fn background_round(&self, round: u32) -> Result<bool, StoreError> {
        let worker = &self.worker;
        worker.txns.maintain(|| worker.pages.reserved());
        worker.roll_back_orphans().await?;
        if round.is_multiple_of(DEADLOCK_ROUNDS) && worker.options.index == 0 {
            worker.shared.locks.search_deadlocks();
        }
        let purged = worker.purge(PURGE_BUDGET).await?;
        Ok(purged == PURGE_BUDGET)
    }

    /// One round of cleaning, checkpoints and log segments; true if more is to be done.
    pub async fn upkeep_round(&self, round: u32) -> Result<bool, StoreError> {
        let pages = &self.worker.pages;
        if pages.needs_cleaning() {
            pages.clean(CLEAN_BUDGET).await?;
        }
        if self.worker.options.index == 0 {
            if pages.wal().needs_segments() {
                let prepared = pages.wal().prepare_segments(&**pages.disk()).await;
                prepared.map_err(|_| StoreError::LogFailed)?;
            }
            if round.is_multiple_of(LOG_ROUNDS) {
                pages.wal().request_all();
            }
            let is_due = round % CHECKPOINT_ROUNDS == CHECKPOINT_ROUNDS - 1;
            if is_due || pages.needs_checkpoint() {
                pages.checkpoint(CHECKPOINT_PAYLOAD.to_vec()).await?;
            }
        }
        Ok(pages.needs_cleaning())
    }

    /// The end of an orderly life, on the first worker when no other works any more: counters are
    /// written down exactly, every page goes to its file, and the log is not needed any more.
    pub async fn close(&self) -> Result<(), StoreError> {
        let worker = &self.worker;
        worker.roll_back_orphans().await?;
        let tables: Vec<_> = worker.dictionary().tables.values().cloned().collect();
        for table in tables {
            let auto = *table.live.auto.lock();
            if auto.next < auto.ceiling {
                worker
                    .until_done(|| worker.set_auto(&table, auto.next))
                    .await?;
            }
        }
        worker.pages.clean_all().await?;
        worker.pages.checkpoint(CHECKPOINT_PAYLOAD.to_vec()).await?;
        Ok(())
    }
}

impl Worker {
    /// Rolls back transactions that were dropped before their end.
    pub(crate) async fn roll_back_orphans(self: &Rc<Self>) -> Result<(), StoreError> {
        loop {
            let Some(orphan) = self.orphans.borrow_mut().pop() else {
                return Ok(());
            };
            self.roll_back_orphan(orphan).await?;
        }
    }

    async fn roll_back_orphan(self: &Rc<Self>, orphan: Orphan) -> Result<(), StoreError> {
        let Orphan {
            id,
            last_undo,
            has_log,
            locks,
        } = orphan;
        let mut pointer = last_undo;
        let mut memo = LobMemo::default();
        while !pointer.is_null() {
            pointer = self
                .until_done(|| self.undo_one(pointer, &mut memo))
                .await?;
        }
        if has_log {
            self.until_done(|| self.write_rolled_back(id, last_undo))
                .await?;
        } else {
            self.shared.txns.finish_rollback(id);
        }
        if let Some(mut locks) = locks {
            locks.release_all();
        }
        Ok(())
    }
}
