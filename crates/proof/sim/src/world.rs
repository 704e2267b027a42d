//! A disk, a clock and an executor that one seed controls, and engines in them.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use buffer::{PoolOptions, StartOptions, start};
use engine::{CheckReport, Engine, EngineOptions, PURGE_PATIENCE, Sleep, WorkerOptions};
use env::Disk;
use env::sim::{DiskOptions, SimClock, SimDisk, SimExecutor};
use format::{PageSize, SpaceId};
use store::StoreError;
use sync::atomic::{AtomicBool, Ordering};
use wal::{OnLogLoss, WalOptions};

/// The data directory.
pub(crate) const DIRECTORY: &str = "data";

/// The interval of checks for pending log writes.
const TICK: Duration = Duration::from_micros(100);

/// The configuration of an engine in the world.
#[derive(Debug, Clone, Copy)]
pub struct WorldOptions {
    /// Bytes of a page.
    pub page_size: PageSize,
    /// Pages in memory.
    pub frame_count: u32,
    /// Workers; all run in one thread and switch where they suspend.
    pub worker_count: u8,
    /// Memory for row locks, in bytes.
    pub lock_bytes_max: u64,
    /// What to do about lost log.
    pub on_loss: OnLogLoss,
    /// How long purge waits for an open transaction.
    pub purge_patience: Duration,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            page_size: PageSize::KiB4,
            frame_count: 64,
            worker_count: 1,
            lock_bytes_max: EngineOptions::default().lock_bytes_max,
            on_loss: OnLogLoss::Refuse,
            purge_patience: PURGE_PATIENCE,
        }
    }
}

/// A machine.
#[derive(Debug, Clone)]
pub struct World {
    /// Its disk.
    pub disk: SimDisk,
    /// Runs the tasks.
    pub executor: SimExecutor,
    /// The configuration of engines.
    options: WorldOptions,
}

/// An open engine, with its background work running.
#[derive(Debug, Clone)]
pub struct Database {
    /// The handle of a worker.
    pub engine: Engine,
    /// The handles of all workers.
    workers: Rc<[Engine]>,
    /// Tells the background work to end, and counts its workers.
    background: Rc<Background>,
    /// Time passes during the wait for that.
    clock: SimClock,
    /// Set when the log fails.
    log_failure: Arc<AtomicBool>,
}

/// The background work of a database.
#[derive(Debug, Default)]
struct Background {
    /// It has to end.
    is_over: Cell<bool>,
    /// Workers that still run it.
    worker_count: Cell<usize>,
}

impl Database {
    /// The same with another worker's handle; numbers beyond the last worker start over.
    #[must_use]
    pub fn on(&self, worker: usize) -> Self {
        let engine = self.workers[worker % self.workers.len()].clone();
        Self {
            engine,
            workers: Rc::clone(&self.workers),
            background: Rc::clone(&self.background),
            clock: self.clock.clone(),
            log_failure: Arc::clone(&self.log_failure),
        }
    }

    /// Whether the log has failed, which ends a server.
    pub fn has_log_failed(&self) -> bool {
        self.log_failure.load(Ordering::SeqCst)
    }

    /// Time passes.
    pub async fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration).await;
    }

    /// Ends the background work, then closes the engine. No other work may be running.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.background.is_over.set(true);
        while self.background.worker_count.get() != 0 {
            self.clock.sleep(TICK).await;
        }
        self.workers[0].close().await
    }

    /// Checks everything, after each worker has purged. No other work may be running.
    pub async fn check(&self) -> Result<CheckReport, StoreError> {
        for worker in &*self.workers {
            worker.purge_all().await?;
        }
        self.engine.check().await
    }
}

impl World {
    /// A machine with an empty disk.
    pub fn new(seed: u64, options: WorldOptions) -> Self {
        // An operation takes time, so that others run meanwhile.
        let delay = Duration::from_micros(1)..Duration::from_micros(60);
        Self::with_disk(
            seed,
            DiskOptions {
                seed,
                delay,
                ..DiskOptions::default()
            },
            options,
        )
    }

    /// A machine with a disk with these options.
    pub fn with_disk(seed: u64, disk: DiskOptions, options: WorldOptions) -> Self {
        let clock = SimClock::new();
        let disk = SimDisk::new(disk, clock.clone());
        Self {
            disk,
            executor: SimExecutor::new(seed, clock),
            options,
        }
    }

    fn disk(&self) -> Rc<dyn Disk> {
        Rc::new(self.disk.clone())
    }

    /// The log in memory: each worker may have reserved a mini-transaction of the largest size.
    fn ring_bytes(&self) -> usize {
        let reserved = (usize::from(self.options.worker_count) + 1) << 17;
        reserved.next_power_of_two().max(1 << 19)
    }

    fn start_options(&self) -> StartOptions {
        StartOptions {
            on_loss: self.options.on_loss,
            directory: PathBuf::from(DIRECTORY),
            wal: WalOptions {
                ring_bytes: self.ring_bytes(),
                mtr_bytes_max: 1 << 17,
                worker_count: usize::from(self.options.worker_count),
                segment_blocks: 256,
                segments_ahead: 1,
                log_bytes_max: 1 << 20,
                flush_bytes_max: 1 << 16,
            },
            pool: PoolOptions {
                page_size: self.options.page_size,
                frame_count: self.options.frame_count,
                clean_batch_pages: 8,
            },
        }
    }

    fn worker_options(&self, index: u8) -> WorkerOptions {
        let clock = self.executor.clock().clone();
        let sleeping = clock.clone();
        let sleep: Sleep = Rc::new(move |duration: Duration| {
            let clock = sleeping.clone();
            Box::pin(async move { clock.sleep(duration).await })
        });
        WorkerOptions {
            index,
            clock: Rc::new(clock),
            sleep,
            purge_patience: self.options.purge_patience,
        }
    }

    /// Opens the data directory, with recovery.
    pub async fn open(&self) -> Result<Database, StoreError> {
        let log_failure: Arc<AtomicBool> = Arc::default();
        let failing = Arc::clone(&log_failure);
        let poison: wal::OnPoison = Box::new(move |_| failing.store(true, Ordering::SeqCst));
        let started = start(self.disk(), self.start_options(), poison, &mut |_| {})
            .await
            .map_err(|error| StoreError::damaged(error.to_string()))?;
        let pages = started.pool.pages(0, self.disk());
        self.run_log(&started.pool);
        let options = EngineOptions {
            worker_count: self.options.worker_count,
            ring_length: 1 << 12,
            lock_bytes_max: self.options.lock_bytes_max,
            on_loss: self.options.on_loss,
        };
        let worker = self.worker_options(0);
        let engine = Engine::open(pages, &started, options, worker).await?;
        // As in a server: who joins may have to wait for a frame that this makes clean.
        let background: Rc<Background> = Rc::default();
        self.run_background(&engine, &background);
        let mut workers = vec![engine.clone()];
        for index in 1..self.options.worker_count {
            let pages = started.pool.pages(usize::from(index), self.disk());
            let (shared, worker) = (Arc::clone(engine.shared()), self.worker_options(index));
            let joined = Engine::join(shared, pages, worker).await?;
            self.run_background(&joined, &background);
            workers.push(joined);
        }
        Ok(Database {
            engine,
            workers: workers.into(),
            background,
            clock: self.executor.clock().clone(),
            log_failure,
        })
    }

    /// Begins a start, which a crash interrupts after some steps.
    pub(crate) fn crash_in_start(self, step_count: u64) -> Self {
        let opening = self.clone();
        self.executor.spawn(async move {
            let _ = opening.open().await;
        });
        self.executor.run_steps(step_count);
        self.crash()
    }

    /// Opens a pool without an engine, with one tablespace and the pool's background work.
    pub async fn open_pages(&self, space: SpaceId) -> Result<Rc<buffer::Pages>, StoreError> {
        let poison: wal::OnPoison = Box::new(|_| {});
        let started = start(self.disk(), self.start_options(), poison, &mut |_| {})
            .await
            .map_err(|error| StoreError::damaged(error.to_string()))?;
        let pages = Rc::new(started.pool.pages(0, self.disk()));
        if started.is_new {
            started.pool.create_space(&self.disk, space).await?;
        } else {
            started.pool.open_space(&self.disk, space)?;
        }
        self.run_log(&started.pool);
        let (cleaning, clock) = (Rc::clone(&pages), self.executor.clock().clone());
        self.executor.spawn(async move {
            loop {
                let is_late = 50 < cleaning.wal().age_percent();
                if cleaning.needs_cleaning() || is_late {
                    let _ = cleaning.clean(16).await;
                }
                if is_late {
                    let _ = cleaning.checkpoint(Vec::new()).await;
                }
                clock.sleep(TICK).await;
            }
        });
        Ok(pages)
    }

    /// The role of the log writer, which the runtime has in a server.
    fn run_log(&self, pool: &Arc<buffer::Pool>) {
        let (wal, disk) = (Arc::clone(pool.wal()), self.disk());
        let clock = self.executor.clock().clone();
        self.executor.spawn(async move {
            loop {
                if let Some(job) = wal.try_lead() {
                    job.run(&*disk).await;
                }
                if wal.is_poisoned() {
                    return;
                }
                if wal.needs_segments() {
                    // A full disk shows where log space is requested.
                    let _ = wal.prepare_segments(&*disk).await;
                }
                clock.sleep(TICK).await;
            }
        });
    }

    fn run_background(&self, engine: &Engine, background: &Rc<Background>) {
        let (engine, background) = (engine.clone(), Rc::clone(background));
        let clock = self.executor.clock().clone();
        let count = &background.worker_count;
        count.set(count.get() + 1);
        self.executor.spawn(async move {
            let over = async {
                while !background.is_over.get() {
                    clock.sleep(TICK).await;
                }
            };
            engine.run_background(over).await;
            let count = &background.worker_count;
            count.set(count.get() - 1);
        });
    }

    /// Runs a future to its end.
    ///
    /// # Panics
    /// If all tasks wait and nothing will wake them.
    pub fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        self.executor
            .block_on(future)
            .expect("nobody waits for ever")
    }

    /// The file of the table that was made last, for the disk.
    ///
    /// # Panics
    /// If there is no table.
    pub fn newest_table_file(&self) -> PathBuf {
        let of_space = |path: &PathBuf| path.to_string_lossy().contains("space_");
        let files = self.files().into_iter().filter(of_space);
        let last = files.max_by_key(|path| (path.as_os_str().len(), path.clone()));
        Path::new(DIRECTORY).join(last.expect("a table has a file"))
    }

    /// The files of the data directory.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.disk.list(Path::new(DIRECTORY));
        files.expect("a machine that runs has its directory")
    }

    /// Ends every task immediately and drops from the disk what was not durable.
    #[must_use]
    pub fn crash(self) -> Self {
        self.executor.clear();
        Self {
            disk: self.disk.crash(),
            executor: self.executor,
            options: self.options,
        }
    }

    /// Ends every task immediately, as the death of a process does: what it has written stays.
    #[must_use]
    pub fn kill(self) -> Self {
        self.executor.clear();
        Self {
            disk: self.disk.kill(),
            executor: self.executor,
            options: self.options,
        }
    }

    /// Another, independent machine with the same files.
    #[must_use]
    pub fn copy(&self, seed: u64) -> Self {
        let clock = SimClock::new();
        Self {
            disk: self.disk.copy(seed, clock.clone()),
            executor: SimExecutor::new(seed, clock),
            options: self.options,
        }
    }

    /// The configuration of this machine's engines.
    pub fn options(&self) -> WorldOptions {
        self.options
    }

    /// The same machine with other options, for the next engine that is opened.
    #[must_use]
    pub fn with_options(mut self, options: WorldOptions) -> Self {
        self.options = options;
        self
    }
}
