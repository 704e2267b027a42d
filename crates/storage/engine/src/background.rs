//! Work that no session waits for: settling transactions, purge, cleaning pages, checkpoints, and
//! the rollback of transactions whose sessions are gone.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
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
/// Rounds between two searches for deadlocks that closed after the last wait began.
const DEADLOCK_ROUNDS: u32 = 5;

impl Engine {
    /// Runs the background work of this worker until `stop` is ready. Spawned once on each worker.
    pub async fn run_background(&self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut round = 0;
        loop {
            let is_busy = self
                .background_round(round)
                .await
                .unwrap_or_else(|failure| {
                    error!(%failure, "background work of the engine failed");
                    false
                });
            round = round.wrapping_add(1);
            let wait = if is_busy { BUSY_WAIT } else { IDLE_WAIT };
            let mut sleep = (self.worker.options.sleep)(wait);
            let is_over = std::future::poll_fn(|context| {
                if stop.as_mut().poll(context).is_ready() {
                    return Poll::Ready(true);
                }
                sleep.as_mut().poll(context).map(|()| false)
            });
            if is_over.await {
                return;
            }
        }
    }

    /// One round of background work; true if more is to be done.
    pub async fn background_round(&self, round: u32) -> Result<bool, StoreError> {
        let worker = &self.worker;
        worker.txns.maintain(|| worker.pages.reserved());
        worker.roll_back_orphans().await?;
        if round.is_multiple_of(DEADLOCK_ROUNDS) && worker.options.index == 0 {
            worker.shared.locks.search_deadlocks();
        }
        let purged = worker.purge(PURGE_BUDGET).await?;
        let mut is_busy = purged == PURGE_BUDGET;
        if worker.pages.needs_cleaning() {
            worker.pages.clean(CLEAN_BUDGET).await?;
            is_busy |= worker.pages.needs_cleaning();
        }
        let is_checkpoint = round % CHECKPOINT_ROUNDS == CHECKPOINT_ROUNDS - 1;
        if worker.options.index == 0 && is_checkpoint {
            worker.pages.checkpoint(CHECKPOINT_PAYLOAD.to_vec()).await?;
        }
        Ok(is_busy)
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
