//! Work that no session waits for: settling transactions, purge, cleaning pages, checkpoints, and
//! the rollback of transactions whose sessions are gone.
//!
//! Each worker has several loops. *House-keeping* (cleaning, checkpoints, log segments) waits for
//! nothing but the disk. *Watching* the ring of transactions waits for nothing at all: if one
//! worker is late with it, the writers of all workers stop. *Purge* and the *rollback* of orphans
//! change pages. So they may wait for room in the log or for a frame, and thus for house-keeping. A
//! rollback may take minutes, or fail again and again, and must hold up no other loop. In one loop
//! they would all wait for each other.
//!
//! **An idle server sleeps.** Each loop has a timer only while it has something to do. Otherwise it
//! waits for a `sync::Notify`, which keeps a notification that comes early:
//!
//! * Watching sleeps when maintenance changes nothing. It is woken by the end of a transaction or
//!   of the oldest snapshot on this worker, and by another worker's maintenance that moved
//!   something.
//! * Purge sleeps when it found nothing to remove. Each round of watching wakes it.
//! * The rollback sleeps while there is no orphan. An orphan wakes it.
//! * The renewal of statistics sleeps while none is due. The change that makes one due wakes it.
//! * Orders to abort and the jobs of a group's write sets sleep while there are none. At the end
//!   the jobs are dropped: they may wait for another loop, or for the group.
//! * House-keeping sleeps when no log was written for a second and all of it is in the checkpoint.
//!   It is woken when a transaction of this worker begins or ends, and by callers that wait for a
//!   frame or for room in the log. The first worker's is also woken when any other is.
//!
//! A loop that was woken goes on with its timer until it has nothing to do again, so a busy server
//! is not woken for each transaction.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use btree::Pages;
use buffer::Shortage;
use format::{Lsn, SpaceId};
use store::{StoreError, Suspend};
use tracing::{error, warn};
use txn::Maintained;

use crate::engine::Engine;
use crate::schema::dictionary::SYSTEM_SPACE;
use crate::transaction::LOCKS_PER_TURN;
use crate::undo_log::TABLE_SPACES_START;
use crate::worker::{Orphan, Worker, WorkerOptions};

/// The payload of each checkpoint of the engine: it says that the system space is complete.
pub(crate) const CHECKPOINT_PAYLOAD: &[u8] = b"engine 1";

/// Between two rounds if the last one found nothing to do.
const IDLE_WAIT: Duration = Duration::from_millis(10);
/// Between two rounds if there is more to do.
const BUSY_WAIT: Duration = Duration::from_millis(1);
/// After a round that has failed: the cause seldom passes at once, and each failure is logged.
const FAILURE_WAIT: Duration = Duration::from_secs(1);
/// Undo records that purge looks at in a round, in turns (see there).
const PURGE_BUDGET: usize = 4096;
/// Pages that the cleaner writes in a round.
const CLEAN_BUDGET: u32 = 64;
/// Rounds between two checkpoints, at most.
const CHECKPOINT_ROUNDS: u32 = 500;
/// Rounds after which log that no session waits for is made durable, and a period of the pool ends.
/// That is about once a second, as promised for commits that do not wait.
const LOG_ROUNDS: u32 = 100;
/// Rounds of [`FAILURE_WAIT`] without a shortage before the log reports its end: about two seconds.
/// For a while one file may grow and another may not.
const ROOM_ROUNDS: u32 = 2;

/// Both shortages, and for each how many rounds it has been over, up to [`ROOM_ROUNDS`].
type Shortages = [(Shortage, u32); 2];

impl Engine {
    /// Runs the background work of this worker until `stop` is ready. Spawned once on each worker.
    pub async fn run_background(&self, stop: impl Future<Output = ()>) {
        let worker = &self.worker;
        let (is_over, is_idle) = (Cell::new(false), Cell::new(false));
        let ending = async {
            stop.await;
            is_over.set(true);
            worker.txns.note_end();
            worker.purge_due.notify();
            worker.orphans_due.notify();
            worker.wake_orders();
            worker.jobs.wake();
            worker.shared.statistics_due.due.notify();
            worker.pages.pool().news().call();
        };
        let tending = async {
            let changing = join(self.run_purge(&is_over), self.run_rollbacks(&is_over));
            let changing = join(changing, worker.run_statistics(&is_over));
            let obeying = worker.jobs.run(|| is_over.get());
            let changing = join(changing, join(self.obey_orders(&is_over), obeying));
            let telling = join(self.watch(&is_over), self.tell_news(&is_over));
            join(ending, join(telling, changing)).await;
            // Their last rounds may have waited for a clean page.
            is_idle.set(true);
            worker.pages.call_house();
        };
        let house = keep_house(&worker.pages, &worker.options, CHECKPOINT_PAYLOAD, &is_idle);
        join(tending, house).await;
    }

    /// Settles and recycles transactions until the end.
    async fn watch(&self, is_over: &Cell<bool>) {
        let worker = &self.worker;
        while !is_over.get() {
            let maintained = worker.txns.maintain(|| worker.pages.reserved());
            worker.purge_due.notify_own();
            if maintained == Maintained::Idle {
                worker.txns.maintenance_due().await;
            }
            (worker.options.sleep)(IDLE_WAIT).await;
        }
    }

    /// Reports in the server's log what an operator must know, until the end. One worker does it.
    async fn tell_news(&self, is_over: &Cell<bool>) {
        let worker = &self.worker;
        if worker.options.index != 0 {
            return;
        }
        let mut shortages: Shortages =
            [Shortage::Room, Shortage::Descriptors].map(|shortage| (shortage, ROOM_ROUNDS));
        while !is_over.get() {
            worker.tell_news(&mut shortages);
            if shortages.iter().all(|&(_, rounds)| rounds == ROOM_ROUNDS) {
                worker.pages.pool().news().called().await;
            } else {
                (worker.options.sleep)(FAILURE_WAIT).await;
            }
        }
    }

    /// Removes what no snapshot sees any more, until the end.
    async fn run_purge(&self, is_over: &Cell<bool>) {
        let worker = &self.worker;
        while !is_over.get() {
            // As far as possible: purge can remove only what is settled.
            let _ = worker.txns.maintain(|| worker.pages.reserved());
            let wait = match worker.purge(PURGE_BUDGET).await {
                Ok(0) => {
                    worker.purge_due.notified().await;
                    continue;
                }
                Ok(PURGE_BUDGET) => BUSY_WAIT,
                Ok(_) => IDLE_WAIT,
                Err(failure) => {
                    error!(%failure, "old versions of rows cannot be removed");
                    FAILURE_WAIT
                }
            };
            worker.pages.call_house();
            (worker.options.sleep)(wait).await;
        }
    }

    /// Takes orders to abort, until the end.
    async fn obey_orders(&self, is_over: &Cell<bool>) {
        while !is_over.get() {
            self.worker.obey_orders(&self.transactions);
            self.worker.orders_due().await;
        }
    }

    /// Rolls back orphans and removes left tablespaces, until the end.
    async fn run_rollbacks(&self, is_over: &Cell<bool>) {
        let worker = &self.worker;
        while !is_over.get() {
            let mut is_failing = false;
            if let Err(failure) = worker.roll_back_orphans().await {
                error!(%failure, "a transaction that was given up cannot be rolled back");
                is_failing = true;
            }
            if let Err(failure) = worker.remove_left_spaces().await {
                error!(%failure, "the file of a table that is gone cannot be removed");
                is_failing = true;
            }
            if is_failing {
                (worker.options.sleep)(FAILURE_WAIT).await;
            } else {
                worker.orphans_due.notified().await;
            }
        }
    }

    /// The end of an orderly run, on the first worker when no other works any more. Counters are
    /// written exactly, every page goes to its file, and the log is not needed any more.
    pub async fn close(&self) -> Result<(), StoreError> {
        let worker = &self.worker;
        let is_over = Cell::new(false);
        let resting = async {
            let outcome = self.come_to_rest().await;
            is_over.set(true);
            worker.pages.call_house();
            outcome
        };
        let house = keep_house(&worker.pages, &worker.options, CHECKPOINT_PAYLOAD, &is_over);
        let (rested, ()) = join(resting, house).await;
        rested?;
        worker.pages.close(CHECKPOINT_PAYLOAD.to_vec()).await
    }

    /// The part of the end that changes pages, and so needs house-keeping meanwhile.
    async fn come_to_rest(&self) -> Result<(), StoreError> {
        let worker = &self.worker;
        worker.roll_back_orphans().await?;
        worker.remove_left_spaces().await?;
        let tables: Vec<_> = worker.dictionary().tables.values().cloned().collect();
        for table in tables {
            let auto = *table.live.auto.lock();
            assert!(
                auto.next <= auto.ceiling,
                "no number was given out that a crash would give out again"
            );
            if auto.next < auto.ceiling {
                worker
                    .until_done(|| worker.set_auto(&table, auto.next))
                    .await?;
            }
        }
        // What sessions drop from here on is undone by the next start.
        Ok(())
    }
}

/// Cleans pages, writes checkpoints and prepares log segments until the end; a round that has begun
/// is finished. Callers that wait for a frame or for room in the log wait for this, so this waits
/// for neither. Because it may sleep, the caller that ends it must call it (`Pages::call_house`).
pub(crate) async fn keep_house(
    pages: &Pages,
    options: &WorkerOptions,
    payload: &[u8],
    is_over: &Cell<bool>,
) {
    let mut house = House::new(pages, options.index);
    while !is_over.get() {
        let wait = match house.round(payload).await {
            // Each batch waits for the disk, so the next one may follow at once.
            Ok(()) if house.cleaned != 0 && pages.needs_cleaning_urgently() => {
                Suspend::turn().await;
                continue;
            }
            Ok(()) if house.has_more_to_do() => BUSY_WAIT,
            Ok(()) if house.has_come_to_rest() && house.lacks_segments() => {
                call_or_failure_wait(pages, options).await;
                // Statements that fail one after the other do not cause an attempt each.
                IDLE_WAIT
            }
            Ok(()) if house.has_come_to_rest() => {
                pages.house_called().await;
                continue;
            }
            Ok(()) => IDLE_WAIT,
            Err(failure) => {
                error!(%failure, "pages or log cannot be written");
                FAILURE_WAIT
            }
        };
        (options.sleep)(wait).await;
    }
}

/// Ready when house-keeping is called, and after [`FAILURE_WAIT`] at the latest.
async fn call_or_failure_wait(pages: &Pages, options: &WorkerOptions) {
    let mut timeout = (options.sleep)(FAILURE_WAIT);
    let mut called = pin!(pages.house_called());
    std::future::poll_fn(move |context| {
        if called.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        timeout.as_mut().poll(context)
    })
    .await;
}

/// The house-keeping of one worker.
struct House<'p> {
    pages: &'p Pages,
    /// The first worker's writes checkpoints and makes segments.
    worker: u8,
    /// Rounds so far.
    round: u32,
    /// Pages cleaned in the last round.
    cleaned: u32,
    /// The position of the clock in the last round, and whether it has moved since the one before.
    clock: u32,
    is_evicting: bool,
    /// The log's position in the last round, and for how many rounds it has been there.
    position: Lsn,
    still_rounds: u32,
    /// The log's position at the last checkpoint.
    checkpoint_position: Option<Lsn>,
}

impl<'p> House<'p> {
    fn new(pages: &'p Pages, worker: u8) -> Self {
        Self {
            pages,
            worker,
            round: 0,
            cleaned: 0,
            clock: pages.clock_position(),
            is_evicting: false,
            position: pages.reserved(),
            still_rounds: 0,
            checkpoint_position: None,
        }
    }

    /// Does what is due in this round.
    async fn round(&mut self, payload: &[u8]) -> Result<(), StoreError> {
        let pages = self.pages;
        let position = pages.reserved();
        assert!(self.position <= position, "the log only grows");
        self.still_rounds = match position == self.position {
            true => self.still_rounds.saturating_add(1),
            false => 0,
        };
        self.position = position;
        self.round = self.round.wrapping_add(1);
        let clock = pages.clock_position();
        self.is_evicting = std::mem::replace(&mut self.clock, clock) != clock;
        self.cleaned = 0;
        if pages.needs_cleaning() {
            self.cleaned = pages.clean(CLEAN_BUDGET).await?.pages;
        }
        if self.worker != 0 {
            return Ok(());
        }
        let prepared = if pages.wal().needs_segments() {
            pages.wal().prepare_segments(&**pages.disk()).await
        } else {
            Ok(())
        };
        if self.round.is_multiple_of(LOG_ROUNDS) {
            pages.wal().request_all();
            pages.end_period();
        }
        let is_due = self.round.is_multiple_of(CHECKPOINT_ROUNDS) || self.is_still();
        let is_new = self.checkpoint_position != Some(position);
        if is_due && is_new || pages.needs_checkpoint() {
            pages.checkpoint(payload.to_vec()).await?;
            self.checkpoint_position = Some(position);
        }
        if pages.wal().needs_segments() {
            pages.pool().news().call();
        }
        // Last: if no segment can be made, a checkpoint may free one.
        prepared.map_err(|_| StoreError::LogFailed)
    }

    /// True if the next round should come soon: while pages are evicted, the reserve of clean ones
    /// may soon be short.
    fn has_more_to_do(&self) -> bool {
        self.is_evicting || self.pages.needs_cleaning()
    }

    /// True if nothing was written for so long that all log has been asked to be durable.
    fn is_still(&self) -> bool {
        LOG_ROUNDS <= self.still_rounds
    }

    /// True if the log waits for a segment that could not be made: it is tried again.
    fn lacks_segments(&self) -> bool {
        self.worker == 0 && self.pages.wal().needs_segments()
    }

    /// True if the next round would do nothing unless another task writes or waits.
    fn has_come_to_rest(&self) -> bool {
        let is_in_checkpoint = self.checkpoint_position == Some(self.pages.reserved());
        self.is_still() && (self.worker != 0 || is_in_checkpoint)
    }
}

/// Runs both futures to their ends.
pub(crate) async fn join<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> (A, B) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut first_done, mut second_done) = (None, None);
    std::future::poll_fn(|context| {
        if first_done.is_none()
            && let Poll::Ready(done) = first.as_mut().poll(context)
        {
            first_done = Some(done);
        }
        if second_done.is_none()
            && let Poll::Ready(done) = second.as_mut().poll(context)
        {
            second_done = Some(done);
        }
        let is_done = first_done.is_some() && second_done.is_some();
        if is_done {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    (
        first_done.expect("it is done"),
        second_done.expect("it is done"),
    )
}

impl Worker {
    /// Reports in the server's log what an operator must know: each page that could not be read or
    /// contradicts another, once, and shortages and their ends. Tries for a descriptor meanwhile.
    fn tell_news(&self, shortages: &mut Shortages) {
        assert_eq!(self.options.index, 0, "one worker reports for all");
        let pool = self.pages.pool();
        while let Some((page, failure)) = pool.news().next_damage() {
            let Some(page) = page else {
                error!(%failure, "data contradict each other");
                continue;
            };
            let (file, owner) = (
                format!("space_{}.pdb", page.space),
                self.owner_of(page.space),
            );
            let page = page.page.0;
            error!(%file, page, %owner, %failure, "a page cannot be used");
        }
        pool.try_descriptor(&**self.pages.disk());
        for (shortage, rounds) in shortages {
            self.tell_shortage(*shortage, rounds);
        }
    }

    /// Reports a shortage when it begins, and its end when it has been over for a while. The end of
    /// a full disk shows when a file grows again.
    fn tell_shortage(&self, shortage: Shortage, rounds: &mut u32) {
        assert!(*rounds <= ROOM_ROUNDS, "the end is reported once");
        let pool = self.pages.pool();
        let is_short =
            pool.news().is_short_of(shortage) || pool.wal().is_stopped_by(shortage.kind());
        let before = *rounds;
        *rounds = if is_short {
            0
        } else {
            ROOM_ROUNDS.min(before + 1)
        };
        match (shortage, before == ROOM_ROUNDS, *rounds == ROOM_ROUNDS) {
            (_, true, true) | (_, false, false) => {}
            (Shortage::Room, true, false) => {
                error!("the disk is full: statements that need room fail until there is some");
            }
            (Shortage::Room, false, true) => warn!("the disk has room again"),
            (Shortage::Descriptors, true, false) => error!(
                "no file descriptor is left: statements that need a file fail until there is one"
            ),
            (Shortage::Descriptors, false, true) => warn!("there are file descriptors again"),
        }
    }

    /// The owner of a tablespace, for people.
    fn owner_of(&self, space: SpaceId) -> String {
        if space == SYSTEM_SPACE {
            return "the dictionary".to_owned();
        }
        let dictionary = self.dictionary();
        let mut tables = dictionary.tables.values();
        match tables.find(|table| table.space() == space) {
            Some(table) => format!("table {}", table.entry.definition.name),
            None if space.0 < TABLE_SPACES_START => "old versions of rows".to_owned(),
            None => "no table".to_owned(),
        }
    }

    /// Rolls back transactions that were dropped before their end. One that fails stays in the
    /// list, and its next call passes over what is undone already, which is marked. Returns the
    /// error of the last one that failed.
    pub(crate) async fn roll_back_orphans(self: &Rc<Self>) -> Result<(), StoreError> {
        let orphans = self.orphans.take();
        let mut outcome = Ok(());
        for mut orphan in orphans {
            if let Err(failure) = self.roll_back_orphan(&mut orphan).await {
                self.orphans.borrow_mut().push(orphan);
                outcome = Err(failure);
            }
        }
        outcome
    }

    async fn roll_back_orphan(self: &Rc<Self>, orphan: &mut Orphan) -> Result<(), StoreError> {
        let Orphan {
            id,
            segment,
            last_undo,
            has_log,
            ..
        } = *orphan;
        self.undo_all(last_undo, &mut |_| {}).await?;
        if has_log {
            self.until_done(|| self.write_rolled_back(id, segment))
                .await?;
        } else {
            self.shared.txns.finish_rollback(id);
        }
        assert!(
            !self.shared.txns.is_active(id),
            "locks are released behind the end"
        );
        self.note_end();
        if let Some(mut locks) = orphan.locks.take() {
            while locks.release_some(LOCKS_PER_TURN) {
                Suspend::turn().await;
            }
        }
        orphan.kept = None;
        orphan.open = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use buffer::{PoolOptions, StartOptions};
    use env::sim::{DiskOptions, SimClock, SimDisk, SimExecutor};
    use env::{Clock, Disk};
    use format::PageSize;
    use format::log::OpKind;
    use wal::{OnLogLoss, WalOptions};

    use super::*;

    fn start_options() -> StartOptions {
        StartOptions {
            on_loss: OnLogLoss::Refuse,
            directory: PathBuf::from("data"),
            wal: WalOptions {
                ring_bytes: 1 << 16,
                mtr_bytes_max: 1 << 13,
                worker_count: 1,
                segment_blocks: 64,
                segments_ahead: 1,
                log_bytes_max: 1 << 20,
                flush_bytes_max: 1 << 14,
            },
            pool: PoolOptions {
                page_size: PageSize::KiB4,
                frame_count: 16,
                clean_batch_pages: 4,
            },
        }
    }

    /// Writes log until there is no room, or `count` times.
    async fn write(pages: &Pages, count: u32) -> Result<(), StoreError> {
        for _ in 0..count {
            store::until_done(|| {
                let mut change = pages.change()?;
                change.note(OpKind(77), &[7; 4000]);
                Ok(change.commit())
            })
            .await?;
        }
        Ok(())
    }

    /// House-keeping that has come to rest without a segment tries again when a statement needs
    /// one, and not only after a second.
    #[test]
    fn a_segment_is_made_when_it_is_asked_for() {
        let clock = SimClock::new();
        let disk = SimDisk::new(DiskOptions::default(), clock.clone());
        let executor = SimExecutor::new(1, clock.clone());
        let (starting, flushing) = (disk.clone(), executor.clone());
        let ended = executor.block_on(async move {
            let on_poison = Box::new(|_: &_| {});
            let shared: Rc<dyn Disk> = Rc::new(starting.clone());
            let started =
                buffer::start(Rc::clone(&shared), start_options(), on_poison, &mut |_| {})
                    .await
                    .expect("the directory is empty");
            let pages = Rc::new(started.pool.pages(0, Rc::clone(&shared)));
            let (wal, sleeping) = (Arc::clone(pages.wal()), clock.clone());
            flushing.spawn(async move {
                loop {
                    if let Some(job) = wal.try_lead() {
                        job.run(&*shared).await;
                    }
                    sleeping.sleep(BUSY_WAIT).await;
                }
            });
            let (keeping, sleeping) = (Rc::clone(&pages), clock.clone());
            flushing.spawn(async move {
                let options = WorkerOptions {
                    index: 0,
                    clock: Rc::new(sleeping.clone()),
                    sleep: Rc::new(move |duration| {
                        let clock = sleeping.clone();
                        Box::pin(async move { clock.sleep(duration).await })
                    }),
                    purge_patience: Duration::ZERO,
                };
                keep_house(&keeping, &options, CHECKPOINT_PAYLOAD, &Cell::new(false)).await;
            });
            // At several moments of the second in which it sleeps.
            for quarter in 0..4 {
                starting.take_descriptors();
                let refused = write(&pages, 1 << 10).await;
                assert!(matches!(refused, Err(StoreError::NoDescriptor { .. })));
                clock
                    .sleep(FAILURE_WAIT * 10 + FAILURE_WAIT / 4 * quarter)
                    .await;
                starting.give_descriptors();
                let begun = clock.now();
                assert_eq!(write(&pages, 1).await, Ok(()));
                let waited = clock.now().since(begun);
                assert!(waited < FAILURE_WAIT / 4, "{waited:?}");
            }
        });
        assert!(ended.is_ok(), "house-keeping has a timer");
    }
}
