//! The event loop under every session: workers, tasks, timers, messages, sockets and files.
//!
//! `N` pinned threads, the workers, each run one loop over io_uring or epoll. A task is a `!Send`
//! future that stays on the worker where it was spawned; so does everything it owns. Workers talk
//! by messages. Runnable tasks are served first come, first served; in cohorts if there are
//! too many of them to stay in the caches.
//!
//! # Starting
//!
//! ```text
//! let runtime = Runtime::start(Options::default(), || {
//!     // Runs once on each worker before anything else there.
//!     runtime::set_local(Rc::new(MyPerWorkerThing::new(runtime::worker_index())));
//! })?;                                            // Result<Runtime, StartError>
//! let listener = Listener::bind(&Address::Tcp(address))?;    // port 0: see listener.address()
//! runtime.serve(listener, |stream: Stream| async move { session(stream).await });
//! runtime.handle();                               // Handle: Clone + Send + Sync, see below
//! runtime.handle().shutdown(Duration::from_secs(5));   // ask; from any thread
//! let outcome = runtime.wait();                   // joins the workers: how many tasks were cut
//! ```
//!
//! `Terminations::install()?.wait()` blocks the main thread until SIGTERM, SIGINT, SIGQUIT
//! or SIGHUP.
//! `runtime.block_on_worker(index, || async { .. })` runs a future on a worker and returns its
//! result to the calling thread, which blocks: for start-up, tools and tests.
//!
//! # On a worker
//!
//! These functions find their worker by the calling thread, and panic on other threads.
//!
//! ```text
//! spawn(future) -> JoinHandle<T>        // await it for T; dropping it lets the task run on;
//!                                       // .cancel() drops the task's future
//! spawn_background(future)              // the same, but the end does not wait for it
//! yield_now().await                     // to the back of the run queue
//! give_way() -> WayGiven                // the same in the middle of a call, once it took 200 us
//! set_task_class(TaskClass)                // what the task waits for next: see the run queue
//! note_hot(place, &value)               // what the task reads at its next poll: prefetched
//! sleep(duration).await   sleep_until(instant).await
//! timeout(duration, future).await -> Result<T, Elapsed>
//! now() -> env::Instant                 // read once a tick
//! worker_index() -> usize   worker_count() -> usize
//! set_local(Rc<T>)   local::<T>() -> Option<Rc<T>>     // one value of each type a worker
//! send_to(worker, Box<dyn FnOnce() + Send>)            // runs there, on its loop
//! call_on(worker, || value).await -> T                 // the same with an answer
//! blocking(|| value).await -> T         // on a helper thread, for calls that block
//! on_tick_end(Box<dyn FnMut()>)         // after the runnable tasks, before the kernel is asked
//! disk() -> Rc<dyn env::Disk>           // this worker's handle on files
//! shutdown_requested() -> bool   shutdown().await      // the end is near: finish up
//! ```
//!
//! A [`std::task::Waker`] taken in a task is `Send`: waking from another thread puts the task into
//! its worker's inbox and pokes the worker if it sleeps.
//!
//! # Streams
//!
//! ```text
//! Stream::connect(&Address).await -> io::Result<Stream>
//! stream.receive().await -> io::Result<ReceivedBytes>  // Deref<[u8]>; empty: the peer has ended
//! stream.send(Vec<u8>).await -> io::Result<Vec<u8>>    // all of it; returns the emptied buffer
//! stream.send_by(Vec<u8>, SendMode::Post).await        // may leave the end of it to the worker
//! stream.send_many(Vec<Vec<u8>>).await -> io::Result<()>       // one after the other, chained
//! stream.hung_up().await                // the peer closed or reset; &self, takes no bytes
//! stream.shut_down_sending()            // half-close
//! stream.peer_address() -> Option<SocketAddr>          // None: a unix socket
//! stream.set_nodelay(bool) -> io::Result<()>           // on by default
//! stream.detach().await -> io::Result<DetachedStream>  // Send; for another worker to attach
//! ```
//!
//! `ReceivedBytes` is lent by the worker's buffer ring and goes back when dropped, so an idle
//! connection holds no buffer; copy out what must stay. `receive` may be cancelled (dropped) at any
//! point without losing bytes. `send` owns its buffer until the kernel is done with it; a `send`
//! that is dropped half-way closes the stream for further sending.
//! Dropping a stream closes it.

mod start;

pub mod options;

mod context;
mod counters;
mod join_handle;
mod listener;
mod metrics;
mod peer_watch;
mod stream;
mod termination;

mod coroutine;
mod hot_memory;
mod received;
mod reserve;
mod run_queue;
mod worker;

mod blocking;
mod driver;
mod shared;
mod timer;

#[cfg(test)]
mod tests;

pub use context::{
    Alarm, Elapsed, Sleep, blocking, call_on, disk, give_way, is_slice_over, local, note_hot, now,
    on_tick_end, send_to, set_local, set_task_class, shutdown, shutdown_requested, sleep,
    sleep_until, spawn, spawn_background, spent_buffer, timeout, worker_count, worker_index,
    yield_now,
};
pub use coroutine::WayGiven;
pub use driver::DriverKind;
pub use join_handle::JoinHandle;
pub use listener::{ListenError, Listener};
pub use metrics::LoopNumbers;
pub use options::{Address, Io, Options, Preemption, WORKER_COUNT_MAX};
pub use peer_watch::{PeerState, PeerWatch};
pub use received::ReceivedBytes;
pub use reserve::{Refusal, Shortage};
pub use run_queue::TaskClass;
pub use start::{DriverChoice, Handle, Outcome, Runtime, Serving, StartError};
pub use stream::{DetachedStream, SendMode, Stream};
pub use termination::{Termination, Terminations};
