//! Starting and ending the workers.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use env::Clock as _;
use env::linux::SystemClock;
use rustix::process::{Resource, Rlimit};
use rustix::thread::CpuSet;
use sync::Notify;

use crate::blocking::Helpers;
use crate::context::spawn;
use crate::driver::{Driver, DriverKind, EpollDriver, UringDriver, probe_uring};
use crate::listener::{ListenError, Listener};
use crate::options::{Address, Io, Options, Preemption, WORKER_COUNT_MAX};
use crate::shared::{HelperSets, Message, Shared};
use crate::stream::Stream;
use crate::worker::Worker;

/// Threads for file I/O if the loops cannot drive it themselves: enough to keep a disk busy.
const TRANSFER_HELPER_COUNT: usize = 4;

/// Threads for calls on files that may take long: one file grows while another is renamed.
const FILE_CALL_HELPER_COUNT: usize = 2;

/// The running workers. Dropping it without [`Runtime::wait`] asks them to stop at once and waits.
pub struct Runtime {
    handle: Handle,
    threads: Vec<JoinHandle<io::Result<u64>>>,
}

/// What other threads, and the workers themselves, may ask of a runtime.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    driver: Arc<DriverChoice>,
    /// Files of unix sockets, to be removed at the end.
    socket_files: Arc<Mutex<Vec<PathBuf>>>,
}

/// A listener whose clients are served. Dropping it changes nothing.
#[derive(Debug)]
pub struct Serving {
    address: Address,
    /// Each ends the task of one worker.
    closed: Vec<Arc<Notify>>,
    socket_files: Arc<Mutex<Vec<PathBuf>>>,
}

/// Which kernel interface the loops use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverChoice {
    /// The one in use.
    pub kind: DriverKind,
    /// Why `Io::Auto` did not choose io_uring, if it did not.
    pub uring_lacks: Option<String>,
}

/// How a runtime ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Tasks that were dropped when `patience` was over.
    pub cut_count: u64,
}

/// The workers cannot be started, or one failed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `Io::Uring` was asked for, and this machine lacks something.
    #[error("io_uring cannot be used: {0}")]
    Uring(String),
    /// The kernel refused something that every driver needs.
    #[error("cannot start the workers")]
    Kernel(#[source] io::Error),
}

impl Runtime {
    /// Starts the workers. `setup` runs on each of them before anything else does. Raises this
    /// process' limit of open descriptors as far as the system allows.
    pub fn start(
        options: Options,
        setup: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        raise_descriptor_limit();
        let driver = choose_driver(options.io)?;
        let cores = allowed_cores();
        let worker_count = match options.worker_count {
            0 => cores.len().clamp(1, WORKER_COUNT_MAX),
            asked => asked,
        };
        let transfer_count = if driver.kind == DriverKind::Epoll {
            TRANSFER_HELPER_COUNT
        } else {
            0
        };
        let start = |name, count| Helpers::start(name, count).map_err(StartError::Kernel);
        let helpers = HelperSets {
            calls: start("helper", options.helper_count.max(1))?,
            file_calls: start("file", FILE_CALL_HELPER_COUNT)?,
            transfers: start("transfer", transfer_count)?,
        };
        let shared =
            Shared::new(worker_count, helpers).map_err(|error| StartError::Kernel(error.into()))?;
        let shared = Arc::new(shared);
        let handle = Handle {
            shared,
            driver: Arc::new(driver),
            socket_files: Arc::default(),
        };
        let mut runtime = Self {
            handle,
            threads: Vec::new(),
        };
        runtime.start_workers(&options, &cores, Arc::new(setup))?;
        Ok(runtime)
    }

    fn start_workers(
        &mut self,
        options: &Options,
        cores: &[usize],
        setup: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<(), StartError> {
        let (ready, readies) = mpsc::channel();
        let worker_count = self.handle.worker_count();
        for index in 0..worker_count {
            let core = cores.get(index % cores.len().max(1)).copied();
            let core = core.filter(|_| options.pin && worker_count <= cores.len());
            let seat = Seat {
                index,
                core,
                preemption: options.preemption,
            };
            let (shared, kind) = (self.handle.shared.clone(), self.handle.driver.kind);
            let (setup, ready) = (setup.clone(), ready.clone());
            let thread = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || run_worker(seat, shared, kind, &*setup, ready))
                .map_err(StartError::Kernel)?;
            self.threads.push(thread);
        }
        drop(ready);
        for _ in 0..worker_count {
            // A worker that panics drops its sender without a word.
            let panicked = || io::Error::other("a worker panicked in its setup");
            let result = readies.recv().map_err(|_| StartError::Kernel(panicked()))?;
            result.map_err(StartError::Kernel)?;
        }
        Ok(())
    }

    /// A handle for other threads.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// As [`Handle::serve`], until the runtime is asked to stop.
    pub fn serve<F>(
        &self,
        listener: Listener,
        serve: impl Fn(Stream) -> F + Send + Sync + 'static,
    ) -> Result<(), ListenError>
    where
        F: Future<Output = ()> + 'static,
    {
        self.handle.serve(listener, serve).map(drop)
    }

    /// As [`Handle::block_on_worker`].
    pub fn block_on_worker<F: Future<Output: Send + 'static> + 'static>(
        &self,
        worker_index: usize,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> F::Output {
        self.handle.block_on_worker(worker_index, make)
    }

    /// Waits until the workers have ended, for which [`Handle::shutdown`] must be called. They also
    /// end, all of them, when the kernel fails one.
    ///
    /// # Panics
    /// With a worker's panic.
    pub fn wait(mut self) -> io::Result<Outcome> {
        self.join()
    }

    fn join(&mut self) -> io::Result<Outcome> {
        let mut cut_count = 0;
        let mut first_error = None;
        for thread in std::mem::take(&mut self.threads) {
            match thread.join() {
                Ok(Ok(count)) => cut_count += count,
                Ok(Err(error)) => first_error = first_error.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        self.handle.shared.helpers.stop();
        for file in std::mem::take(&mut *files_of(&self.handle.socket_files)) {
            // The file is gone already, or we may not remove it: nothing depends on it.
            let _ = rustix::fs::unlink(&file);
        }
        first_error.map_or(Ok(Outcome { cut_count }), Err)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.threads.is_empty() && !std::thread::panicking() {
            self.handle.shutdown(Duration::ZERO);
            // A caller that drops the runtime does not want the outcome.
            let _ = self.join();
        }
    }
}

impl Handle {
    /// Number of workers.
    pub fn worker_count(&self) -> usize {
        self.shared.mailboxes.len()
    }

    /// Which kernel interface the loops use.
    pub fn driver(&self) -> &DriverChoice {
        &self.driver
    }

    /// Says what happens to clients that come when the process has no descriptor left. Without it
    /// they are closed without a reply. To be called once, before clients are served.
    pub fn set_refusal(&self, refusal: crate::reserve::Refusal) {
        self.shared.reserve.set_refusal(refusal);
    }

    /// Adds the numbers of all workers' loops.
    pub fn register_metrics(&self, registry: &mut metrics::Registry) {
        self.shared.register_metrics(registry);
    }

    /// Connections that are placed on a worker.
    pub fn connection_count(&self, worker_index: usize) -> u64 {
        self.shared.connection_count(worker_index)
    }

    /// What a worker's loop has done since its start.
    pub fn loop_numbers(&self, worker_index: usize) -> crate::LoopNumbers {
        self.shared.loop_numbers(worker_index)
    }

    /// Runs `job` on a worker, on its loop, soon.
    pub fn send_to(&self, worker_index: usize, job: Box<dyn FnOnce() + Send>) {
        self.shared.send(worker_index, Message::Run(job));
    }

    /// Serves a listener's clients: each on one worker, as a task of `serve`.
    pub fn serve<F>(
        &self,
        listener: Listener,
        serve: impl Fn(Stream) -> F + Send + Sync + 'static,
    ) -> Result<Serving, ListenError>
    where
        F: Future<Output = ()> + 'static,
    {
        let address = listener.address().clone();
        if let Address::Unix(path) = &address {
            files_of(&self.socket_files).push(path.clone());
        }
        Ok(Serving {
            address,
            closed: listener.serve(&self.shared, serve)?,
            socket_files: Arc::clone(&self.socket_files),
        })
    }

    /// Asks the workers to stop. Listeners close and [`shutdown`](crate::shutdown) resolves. The
    /// workers end when all tasks have ended or `patience` is over. Any thread; may be repeated.
    pub fn shutdown(&self, patience: Duration) {
        self.shared.stop(SystemClock.now(), patience);
    }

    /// Runs a future on a worker and blocks this thread until it is done.
    ///
    /// # Panics
    /// If the runtime ends first. On a worker it would wait for itself: do not.
    pub fn block_on_worker<F: Future<Output: Send + 'static> + 'static>(
        &self,
        worker_index: usize,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> F::Output {
        let (sender, receiver) = mpsc::channel();
        let job = move || {
            let future = make();
            spawn(async move {
                let value = future.await;
                // The other side waits for exactly this.
                let _ = sender.send(value);
            });
        };
        self.send_to(worker_index, Box::new(job));
        receiver
            .recv()
            .expect("the runtime outlives what it is asked to run")
    }
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Closes the listener, soon. Clients that were accepted stay.
    pub fn close(self) {
        if let Address::Unix(path) = &self.address {
            files_of(&self.socket_files).retain(|it| it != path);
            // The file is gone already, or we may not remove it: nothing depends on it.
            let _ = rustix::fs::unlink(path);
        }
        self.closed.iter().for_each(|it| it.notify());
    }
}

/// The list, whoever has panicked with it.
fn files_of(files: &Mutex<Vec<PathBuf>>) -> MutexGuard<'_, Vec<PathBuf>> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("driver", &self.driver)
            .finish()
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("handle", &self.handle)
            .finish()
    }
}

/// What one worker is started with.
struct Seat {
    index: usize,
    /// The core that it is bound to.
    core: Option<usize>,
    preemption: Preemption,
}

fn run_worker(
    seat: Seat,
    shared: Arc<Shared>,
    kind: DriverKind,
    setup: &(dyn Fn() + Send + Sync),
    ready: mpsc::Sender<io::Result<()>>,
) -> io::Result<u64> {
    let Seat {
        index,
        core,
        preemption,
    } = seat;
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core);
        // A container may forbid it; the worker then runs on any core.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
    let driver = match make_driver(kind, &shared, index) {
        Ok(driver) => driver,
        Err(error) => {
            // The starter waits for this.
            let _ = ready.send(Err(error));
            return Ok(0);
        }
    };
    let mut guard = StopTheOthers {
        shared: shared.clone(),
        is_armed: true,
    };
    let worker = Rc::new(Worker::new(index, shared, driver, preemption));
    worker.enter();
    setup();
    // The starter may have given up because of another worker; then it has asked to stop as well.
    let _ = ready.send(Ok(()));
    drop(ready);
    let outcome = worker.run();
    guard.is_armed = outcome.is_err();
    outcome
}

/// A worker that fails takes its sessions with it, and others may wait for these. So all workers
/// end, and [`Runtime::wait`] returns the error.
struct StopTheOthers {
    shared: Arc<Shared>,
    is_armed: bool,
}

impl Drop for StopTheOthers {
    fn drop(&mut self) {
        if self.is_armed {
            self.shared.stop(SystemClock.now(), Duration::ZERO);
        }
    }
}

fn make_driver(kind: DriverKind, shared: &Arc<Shared>, index: usize) -> io::Result<Rc<dyn Driver>> {
    match kind {
        DriverKind::Epoll => Ok(Rc::new(EpollDriver::new(shared.clone(), index)?)),
        DriverKind::Uring => Ok(Rc::new(UringDriver::new(shared.clone(), index)?)),
    }
}

fn choose_driver(io: Io) -> Result<DriverChoice, StartError> {
    let choice = |kind, uring_lacks| DriverChoice { kind, uring_lacks };
    match (io, probe_uring()) {
        (Io::Epoll, _) => Ok(choice(DriverKind::Epoll, None)),
        (Io::Auto | Io::Uring, Ok(())) => Ok(choice(DriverKind::Uring, None)),
        (Io::Auto, Err(lacks)) => Ok(choice(DriverKind::Epoll, Some(lacks))),
        (Io::Uring, Err(lacks)) => Err(StartError::Uring(lacks)),
    }
}

/// Raises the limit of descriptors to what the system allows. The usual soft limit of 1024 is meant
/// for programs that use `select`.
fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // A container may forbid it. The limit then stays, and clients are refused when it is reached.
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

/// The cores that this process may use.
fn allowed_cores() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect()
}
