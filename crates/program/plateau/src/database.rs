//! The storage engine in the runtime. It is opened on the first worker and joined on the others;
//! its log is flushed at the end of ticks; it is closed at shutdown.
//!
//! The order of shutdown: sessions finish (or are cut off) while the engine's background work goes
//! on, since they may need clean pages and room in the log. Then each worker ends that work and
//! reports it to [`Drain`]; the first worker's goes on until all have. Last, the first worker
//! closes the engine. If anything is cut off before that, recovery repairs it at the next start.

use std::cell::{Cell, RefCell};
use std::fs;
use std::future::poll_fn;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use buffer::{LogLoss, Pool, PoolOptions, RecoveryError, Redone, StartOptions};
use engine::{Engine, EngineOptions, PURGE_PATIENCE, Shared, Sleep, WorkerOptions};
use env::Clock;
use env::linux::SystemClock;
use format::PageId;
use runtime::Runtime;
use settings::Settings;
use store::StoreError;
use sync::Mutex;
use wal::{OnLogLoss, WalOptions};

/// Bytes of a page; a power of two that the format allows.
const PAGE_BYTES: u64 = 16 << 10;

/// Bytes of a block of the log.
const BLOCK_BYTES: u64 = 4096;

/// A segment is at most 32 MiB: large enough to be rare, small enough to be created quickly.
const SEGMENT_BLOCKS_MAX: u64 = 8192;

/// The log has at least this many segments, so that a checkpoint frees a part of it.
const SEGMENTS_MIN: u64 = 8;

/// The ring size of a busy server; a smaller log has a smaller ring.
const RING_BYTES_MAX: u64 = 64 << 20;

/// The open engine, for other threads.
#[derive(Debug)]
pub(crate) struct Database {
    /// The data directory was created by this start.
    pub(crate) is_new: bool,
    /// The numbers of the event loops, the engine and what it stands on.
    pub(crate) metrics: metrics::Registry,
    /// Locks out other processes while it lives.
    _lock: env::File,
}

/// What a start does if something is wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    /// For lost log, and for undo that is damaged.
    pub(crate) on_loss: OnLogLoss,
    pub(crate) engines: Engines,
}

/// Which workers get an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engines {
    /// Each, with an undo segment, which is created if there is none.
    Each,
    /// Only the first. The others get their pages: `runtime::local::<Pages>()`.
    First,
}

/// Pages that lack changes of the log, and are named in the server's log.
const UNFIT_TOLD_MAX: usize = 100;

/// What the first worker passes to the others.
struct Opened {
    pool: Arc<Pool>,
    shared: Arc<Shared>,
    is_new: bool,
    lock: env::File,
}

impl Database {
    /// Opens the data directory with recovery, and gives each worker its handle:
    /// `runtime::local::<Engine>()`.
    pub(crate) fn open(
        settings: &Settings,
        runtime: &Runtime,
        opening: Opening,
    ) -> Result<Database> {
        let worker_count = runtime.handle().worker_count();
        let options = start_options(settings, worker_count, opening.on_loss)?;
        let engine_count = match opening.engines {
            Engines::Each => worker_count,
            Engines::First => 1,
        };
        let engine_options = EngineOptions {
            worker_count: u8::try_from(engine_count).context("at most 255 workers")?,
            lock_bytes_max: settings.unsigned("lock_table_size"),
            on_loss: opening.on_loss,
            ..EngineOptions::default()
        };
        let name = options.directory.display().to_string();
        let is_other = fs::metadata(&options.directory).is_ok_and(|found| !found.is_dir());
        ensure!(!is_other, "`data` is {name}, which is no directory");
        let opened = runtime
            .block_on_worker(0, move || {
                open_first(options, engine_options, opening.engines)
            })
            .with_context(|| format!("cannot open the data directory {name}"))?;
        let drain = Arc::new(Drain::new(engine_count));
        for index in engine_count..worker_count {
            let pool = Arc::clone(&opened.pool);
            runtime.block_on_worker(index, move || async move {
                runtime::set_local(Rc::new(pool.pages(index, runtime::disk())));
            });
        }
        for index in 0..engine_count {
            let (pool, shared) = (Arc::clone(&opened.pool), Arc::clone(&opened.shared));
            let drain = Arc::clone(&drain);
            runtime
                .block_on_worker(index, move || start_worker(index, pool, shared, drain))
                .context("cannot start the engine on a worker")?;
        }
        let mut metrics = metrics::Registry::new();
        runtime.handle().register_metrics(&mut metrics);
        opened.pool.register_metrics(&mut metrics);
        opened.shared.register_metrics(&mut metrics);
        Ok(Database {
            is_new: opened.is_new,
            metrics,
            _lock: opened.lock,
        })
    }
}

/// Sizes of log and pool from the settings.
fn start_options(
    settings: &Settings,
    worker_count: usize,
    on_loss: OnLogLoss,
) -> Result<StartOptions> {
    let log_bytes = settings.unsigned("log_size");
    let defaults = WalOptions::default();
    let segment_blocks = (log_bytes / BLOCK_BYTES / SEGMENTS_MIN).clamp(64, SEGMENT_BLOCKS_MAX);
    let mtr_bytes = u64::try_from(defaults.mtr_bytes_max)?;
    let ring_min = (u64::try_from(worker_count)? + 2) * mtr_bytes;
    // Room for a mini-transaction of each worker, however many there are.
    let ring_bytes = (log_bytes / 8).min(RING_BYTES_MAX).max(ring_min);
    let pages = settings.unsigned("buffer_pool_size") / PAGE_BYTES;
    Ok(StartOptions {
        directory: PathBuf::from(settings.text("data")),
        wal: WalOptions {
            ring_bytes: usize::try_from(ring_bytes.next_power_of_two())?,
            worker_count,
            segment_blocks: u32::try_from(segment_blocks)?,
            log_bytes_max: log_bytes,
            ..defaults
        },
        pool: PoolOptions {
            frame_count: u32::try_from(pages).context("`buffer_pool_size` is too large")?,
            ..PoolOptions::default()
        },
        on_loss,
    })
}

async fn open_first(
    options: StartOptions,
    engine_options: EngineOptions,
    engines: Engines,
) -> Result<Opened> {
    let on_loss = options.on_loss;
    let begun = SystemClock.now();
    let started = buffer::start(runtime::disk(), options, Box::new(die), &mut |_| {}).await?;
    // That would change what a check is to find, and it takes the undo segments of all workers.
    ensure!(
        engines == Engines::Each || !started.pool.wal().has_newer_pages(),
        "a start that accepted a loss of log did not come to its end; start the server once more"
    );
    tell_redone(started.redone, SystemClock.now().since(begun));
    match &started.loss {
        Some(loss) => tell_loss(loss),
        None if started.pool.wal().has_newer_pages() => tracing::error!(
            "a start that accepted a loss of log did not come to its end, and this one goes on \
             with it: {NEWER_PAGES}"
        ),
        None if on_loss == OnLogLoss::Accept => {
            tracing::warn!("this start loses no log, although --accept-log-loss is given");
        }
        None => {}
    }
    tell_unfit(&started.unfit);
    flush_log_after_ticks(&started.pool);
    let pages = started.pool.pages(0, runtime::disk());
    let worker = worker_options(0);
    let opened = Engine::open(pages, &started, engine_options, worker).await;
    tell_repaired(&started.repaired, opened.as_ref().ok());
    let engine = opened?;
    let shared = Arc::clone(engine.shared());
    runtime::set_local(Rc::new(engine));
    Ok(Opened {
        pool: started.pool,
        shared,
        is_new: started.is_new,
        lock: started.lock,
    })
}

/// Logs what was done with the log since the last checkpoint.
fn tell_redone(redone: Redone, taken: Duration) {
    let Redone {
        byte_count,
        mtr_count,
        torn_bytes,
        position,
    } = redone;
    let seconds = taken.as_secs_f64();
    if mtr_count != 0 {
        tracing::info!(
            log_bytes = byte_count,
            log_records = mtr_count,
            seconds,
            "applied the log since the last checkpoint"
        );
    }
    if torn_bytes != 0 {
        let position = position.0;
        tracing::info!(
            bytes = torn_bytes,
            position,
            "left out bytes at the log's end that are no whole record, as a kill leaves them"
        );
    }
}

/// Logs the pages that a crash has torn and the start has repaired. A crash can tear at most one
/// batch of writes, so the list is short. The engine, if it was opened, knows their tables.
fn tell_repaired(repaired: &[PageId], engine: Option<&Engine>) {
    for page in repaired {
        let file = format!("space_{}.pdb", page.space);
        let table = engine.and_then(|engine| engine.shared().table_in(page.space));
        tracing::warn!(
            %file,
            page = page.page.0,
            table = table.as_deref(),
            "a torn page was restored from the doublewrite file"
        );
    }
}

/// What newer pages mean.
const NEWER_PAGES: &str = "pages are newer than the log: rows and indexes may contradict each \
     other; run `plateau check`, dump the data and load it into a new directory";

/// Logs the loss that the start has accepted.
fn tell_loss(loss: &LogLoss) {
    let damage = loss.damage.as_ref().map(ToString::to_string);
    let position = loss.position.0;
    tracing::error!(
        damage,
        position,
        "a part of the log is lost, with all commits after this position"
    );
    if loss.newer_page_count != 0 {
        let spaces: Vec<u32> = loss.newer_spaces.iter().map(|space| space.0).collect();
        tracing::error!(pages = loss.newer_page_count, ?spaces, "{NEWER_PAGES}");
    }
}

/// Logs why pages lack changes of the log, which the operator has accepted.
fn tell_unfit(unfit: &[RecoveryError]) {
    for failure in unfit.iter().take(UNFIT_TOLD_MAX) {
        tracing::error!(%failure, "a page lacks changes of the log");
    }
    if UNFIT_TOLD_MAX < unfit.len() {
        let pages = unfit.len() - UNFIT_TOLD_MAX;
        tracing::error!(pages, "more pages lack changes of the log");
    }
}

async fn start_worker(
    index: usize,
    pool: Arc<Pool>,
    shared: Arc<Shared>,
    drain: Arc<Drain>,
) -> Result<(), StoreError> {
    if index != 0 {
        flush_log_after_ticks(&pool);
        let pages = pool.pages(index, runtime::disk());
        let engine = Engine::join(shared, pages, worker_options(index)).await?;
        runtime::set_local(Rc::new(engine));
    }
    runtime::set_local(Rc::new(Sessions::default()));
    let engine: Rc<Engine> = runtime::local().expect("set above, or by the first opening");
    // Not in the background: the end of the worker waits for it.
    runtime::spawn(tend(index, engine, drain));
    Ok(())
}

/// Does the engine's background work until this worker's sessions have ended; on the first worker
/// until those of all have. The first worker then closes the engine.
async fn tend(index: usize, engine: Rc<Engine>, drain: Arc<Drain>) {
    let sessions: Rc<Sessions> = runtime::local().expect("each worker has them");
    let ended = async {
        runtime::shutdown().await;
        sessions.ended().await;
        if index == 0 {
            drain.worker_ended();
            drain.all_ended().await;
        }
    };
    engine.run_background(ended).await;
    if index != 0 {
        drain.worker_ended();
    } else if let Err(failure) = engine.close().await {
        tracing::error!(%failure, "the engine was not closed; the next start recovers");
    }
}

fn worker_options(index: usize) -> WorkerOptions {
    let sleep: Sleep = Rc::new(|duration| Box::pin(runtime::sleep(duration)));
    WorkerOptions {
        index: u8::try_from(index).expect("opening refused more than 255 workers"),
        clock: Rc::new(SystemClock),
        sleep,
        purge_patience: PURGE_PATIENCE,
    }
}

/// Any worker can flush. A worker that finds waiters for the log at the end of its tick, and no
/// flush running, writes the log as a task. The worker's shutdown waits for that: a write that is
/// dropped halfway leaves the log in doubt, and aborts the server.
fn flush_log_after_ticks(pool: &Arc<Pool>) {
    let wal = Arc::clone(pool.wal());
    runtime::on_tick_end(Box::new(move || {
        if let Some(job) = wal.try_lead() {
            let disk = runtime::disk();
            runtime::spawn(async move { job.run(&*disk).await });
        }
    }));
}

/// After a failed write of the log no commit can be acknowledged any more: better dead than wrong.
fn die(failure: &wal::WalError) {
    let cause = std::error::Error::source(failure).map(ToString::to_string);
    let what = "the log cannot be written: the server stops, and recovers at its next start";
    tracing::error!(%failure, cause, "{what}");
    std::process::abort();
}

/// The sessions of one worker, counted so that shutdown can wait for them.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    count: Cell<u64>,
    waiting: RefCell<Option<Waker>>,
}

/// One session, while it lives.
pub(crate) struct SessionMark(Rc<Sessions>);

impl Sessions {
    /// Counts one more session until the mark is dropped.
    pub(crate) fn begin(self: &Rc<Self>) -> SessionMark {
        self.count.set(self.count.get() + 1);
        SessionMark(Rc::clone(self))
    }

    async fn ended(&self) {
        poll_fn(|context| {
            if self.count.get() == 0 {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for SessionMark {
    fn drop(&mut self) {
        self.0.count.set(self.0.count.get() - 1);
        if let Some(waker) = self.0.waiting.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// Workers that have not shut down yet.
struct Drain {
    /// How many, and the waker of the worker that waits for zero.
    state: Mutex<(usize, Option<Waker>)>,
}

impl Drain {
    fn new(worker_count: usize) -> Drain {
        Drain {
            state: Mutex::new((worker_count, None)),
        }
    }

    fn worker_ended(&self) {
        let mut state = self.state.lock();
        assert!(0 < state.0, "each worker ends once");
        state.0 -= 1;
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn all_ended(&self) {
        poll_fn(|context| {
            let mut state = self.state.lock();
            if state.0 == 0 {
                return Poll::Ready(());
            }
            state.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_settings() {
        let mut settings = Settings::default();
        let options = start_options(&settings, 2, OnLogLoss::Refuse).unwrap();
        assert_eq!(options.pool.frame_count, 8192);
        assert_eq!(options.wal.log_bytes_max, 96 << 20);
        assert_eq!(options.wal.segment_blocks, 3072);
        assert_eq!(options.wal.ring_bytes, 16 << 20);
        for log_size in ["32M", "96M", "3G"] {
            settings.set("log_size", log_size).unwrap();
            for workers in [1, 64, 126, 127, 200, 255] {
                let options = start_options(&settings, workers, OnLogLoss::Refuse).unwrap();
                assert!((workers + 2) * options.wal.mtr_bytes_max <= options.wal.ring_bytes);
                assert!(options.wal.ring_bytes.is_power_of_two());
            }
        }
    }
}
