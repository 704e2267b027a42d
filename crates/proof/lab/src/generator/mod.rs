//! The bench's own load: many clients on few threads.
//!
//! sysbench gives each client a thread. At 4,096 clients it burns 58 us of processor time for each
//! query, and 11.8 us at 64, while the server's own share is 15 us; where both stand on two cores,
//! the curve that comes out is sysbench's. Here a statement costs the load a receive and a send
//! whatever the number of clients, so a curve that bends is the server's.
//!
//! Connections are made, and statements prepared, before the clock starts, and are kept from one
//! run to the next. A run has a ramp that is not counted, a window that is, and an end in which
//! each client finishes its transaction. The ramp lasts until each client has been served: what
//! thousands of clients cost at their first transaction, when all that is theirs is touched for the
//! first time, is not what they cost from then on, and would fill a window of some seconds.

mod connection;
mod draw;
mod event_loop;
mod mix;
mod reply;

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use env::linux::SystemClock;
use env::{Clock as _, Instant};
use metrics::HistogramSnapshot;
use sync::atomic::{AtomicU32, Ordering};

pub(crate) use self::connection::{Address, Protocol};
pub(crate) use self::draw::Distribution;

use self::connection::Connection;
use self::draw::Draw;
use self::event_loop::EventLoop;

/// What is sent, by how many.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) address: Address,
    /// A script of sysbench without `oltp_`.
    pub(crate) workload: String,
    pub(crate) client_count: u32,
    pub(crate) table_count: u32,
    pub(crate) row_count: u32,
    pub(crate) distribution: Distribution,
    pub(crate) protocol: Protocol,
    /// Threads that the clients are spread over.
    pub(crate) thread_count: u32,
    /// Says which rows and texts are drawn.
    pub(crate) seed: u64,
}

/// Logged-in clients, ready to run.
#[derive(Debug)]
pub(crate) struct Generator {
    /// One a thread.
    loops: Vec<EventLoop>,
}

/// Transactions that a client ends before it is warm: the first begins anywhere, and after one more
/// it has sent every statement.
const COLD_COUNT: u32 = 2;

/// How long the ramp waits for clients that are not warm: a server may leave some unserved.
pub(crate) const RAMP_MAX: Duration = Duration::from_secs(5);

/// When the threads of a run begin to count: at the same time, once all clients are warm.
#[derive(Debug)]
struct Ramp {
    /// Not before.
    least: Instant,
    /// Then at any rate.
    most: Instant,
    /// Clients that are not warm. Relaxed: a thread that sees it late begins a moment later.
    cold_count: AtomicU32,
    /// Of the window behind it.
    length: Duration,
    /// When that ends, once it has begun.
    window_end: OnceLock<Instant>,
}

impl Ramp {
    fn new(now: Instant, client_count: usize, least: Duration, length: Duration) -> Ramp {
        Ramp {
            least: now + least,
            most: now + least.max(RAMP_MAX),
            cold_count: AtomicU32::new(stdx::to_u32(client_count)),
            length,
            window_end: OnceLock::new(),
        }
    }

    /// A client has become warm.
    fn count_warm(&self) {
        self.cold_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// When the window ends, if it has begun by now.
    fn window_end(&self, now: Instant) -> Option<Instant> {
        let is_warm = || self.cold_count.load(Ordering::Relaxed) == 0;
        let is_over = self.least <= now && (is_warm() || self.most <= now);
        if self.window_end.get().is_none() && !is_over {
            return None;
        }
        Some(*self.window_end.get_or_init(|| now + self.length))
    }
}

/// A moment at which the caller may look at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Start,
    End,
}

/// What was counted.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Length of the window.
    pub(crate) seconds: f64,
    /// Statements answered.
    pub(crate) statement_count: u64,
    pub(crate) transaction_count: u64,
    /// Transactions begun again after a deadlock or a lock wait that took too long.
    pub(crate) restart_count: u64,
    /// Of transactions, restarts included.
    pub(crate) latency_us: HistogramSnapshot,
    /// The fewest transactions that one client finished.
    pub(crate) client_least: u64,
    /// The most.
    pub(crate) client_most: u64,
}

impl Generator {
    /// Connects all clients and prepares their statements.
    pub(crate) fn connect(shape: &Shape) -> Result<Generator> {
        let steps = mix::transaction(&shape.workload)
            .with_context(|| format!("no load called {}", shape.workload))?;
        let thread_count = shape.thread_count.clamp(1, shape.client_count.max(1));
        let of_thread = |thread: u32| -> Result<EventLoop> {
            // The first threads take one more where the division leaves a rest.
            let extra = u32::from(thread < shape.client_count % thread_count);
            let count = shape.client_count / thread_count + extra;
            let mut connections = Vec::new();
            for _ in 0..count {
                let mut connection = Connection::open(&shape.address, Some("sbtest"))?;
                connection.prepare(&steps, shape.table_count, shape.protocol)?;
                connections.push(connection);
            }
            let seed = shape.seed + u64::from(thread);
            let draw = Draw::new(seed, u64::from(shape.row_count), shape.distribution);
            EventLoop::new(connections, &steps, shape.table_count, draw)
        };
        let loops = thread::scope(|scope| {
            let started: Vec<_> = (0..thread_count)
                .map(|thread| scope.spawn(move || of_thread(thread)))
                .collect();
            let joined = started.into_iter().map(|thread| join(thread.join()));
            joined.collect::<Result<Vec<_>>>()
        })?;
        Ok(Generator { loops })
    }

    /// Runs all clients until they are warm, for `ramp` at least, and then, counting, for `length`.
    /// `at_edge` is called when the counting starts and when it ends, by the calling thread.
    pub(crate) fn run(
        &mut self,
        ramp: Duration,
        length: Duration,
        mut at_edge: impl FnMut(Edge) -> Result<()>,
    ) -> Result<Tally> {
        let client_count = self.loops.iter().map(EventLoop::client_count).sum();
        let ramp = Ramp::new(SystemClock.now(), client_count, ramp, length);
        let (first, others) = self.loops.split_first_mut().context("one loop at least")?;
        let tallies = thread::scope(|scope| {
            let others: Vec<_> = others
                .iter_mut()
                .map(|it| scope.spawn(|| it.run(&ramp, &mut |_| Ok(()))))
                .collect();
            let mut tallies = vec![first.run(&ramp, &mut at_edge)?];
            for other in others {
                tallies.push(join(other.join())?);
            }
            Ok::<_, anyhow::Error>(tallies)
        })?;
        let mut all = Tally::default();
        tallies.iter().for_each(|tally| all.merge(tally));
        Ok(all)
    }
}

/// Clients that log in and stay silent.
#[derive(Debug)]
pub(crate) struct IdleClients {
    _connections: Vec<Connection>,
}

impl IdleClients {
    pub(crate) fn connect(address: &Address, count: u32) -> Result<IdleClients> {
        let connections = (0..count).map(|index| {
            Connection::open(address, None).with_context(|| format!("connection {index}"))
        });
        Ok(IdleClients {
            _connections: connections.collect::<Result<_>>()?,
        })
    }
}

/// A thread's result; its panic goes on here.
fn join<T>(joined: thread::Result<Result<T>>) -> Result<T> {
    match joined {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Default for Tally {
    /// Nothing yet.
    fn default() -> Tally {
        Tally {
            seconds: 0.0,
            statement_count: 0,
            transaction_count: 0,
            restart_count: 0,
            latency_us: HistogramSnapshot::empty(),
            client_least: u64::MAX,
            client_most: 0,
        }
    }
}

impl Tally {
    /// Adds another thread's count of the same window.
    fn merge(&mut self, other: &Tally) {
        self.seconds = self.seconds.max(other.seconds);
        self.statement_count += other.statement_count;
        self.transaction_count += other.transaction_count;
        self.restart_count += other.restart_count;
        self.latency_us.merge(&other.latency_us);
        self.client_least = self.client_least.min(other.client_least);
        self.client_most = self.client_most.max(other.client_most);
    }

    /// Notes how many transactions one client finished.
    fn take_client(&mut self, transaction_count: u64) {
        self.client_least = self.client_least.min(transaction_count);
        self.client_most = self.client_most.max(transaction_count);
    }

    pub(crate) fn statements_per_second(&self) -> f64 {
        stdx::u64_to_f64(self.statement_count) / self.seconds.max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_begins_when_the_last_client_is_warm_or_the_ramp_has_lasted_too_long() {
        let (least, length) = (Duration::from_millis(300), Duration::from_secs(2));
        let now = Instant::default();
        let after = |ms| now + Duration::from_millis(ms);
        let ramp = Ramp::new(now, 2, least, length);
        ramp.count_warm();
        assert_eq!(ramp.window_end(after(4999)), None);
        ramp.count_warm();
        assert_eq!(ramp.window_end(after(299)), None);
        assert_eq!(ramp.window_end(after(300)), Some(after(2300)));
        // It is the same for who looks later, or looked at the clock a moment before.
        assert_eq!(ramp.window_end(after(299)), Some(after(2300)));
        assert_eq!(ramp.window_end(after(9000)), Some(after(2300)));
        let starved = Ramp::new(now, 1, least, length);
        assert_eq!(starved.window_end(after(5000)), Some(after(7000)));
    }
}
