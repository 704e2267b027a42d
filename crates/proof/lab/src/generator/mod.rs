//! The bench's own load: many clients on few threads.
//!
//! sysbench gives each client a thread. At 4,096 clients it burns 58 us of processor time for each
//! query, and 11.8 us at 64, while the server's own share is 15 us; where both stand on two cores,
//! the curve that comes out is sysbench's. Here a statement costs the load a receive and a send
//! whatever the number of clients, so a curve that bends is the server's.
//!
//! Connections are made, and statements prepared, before the clock starts. Then the clients are
//! warmed until each has been served: what thousands of clients cost at their first transaction,
//! when all that is theirs is touched for the first time, is not what they cost from then on, and
//! would fill seconds. A run may stop at any moment, and the next goes on where it stood; what time
//! passes in between is nobody's latency. So two servers can be measured by turns of a fraction of
//! a second, each standing still while the other runs.

mod arrivals;
mod clock;
mod connection;
mod descriptors;
mod draw;
mod event_loop;
mod mix;
mod reply;
mod shares;

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use metrics::HistogramSnapshot;

pub(crate) use self::connection::{Address, Protocol};
pub(crate) use self::descriptors::connections_max;
pub(crate) use self::draw::Distribution;
pub(crate) use self::shares::{JUDGED_MEAN, SHARE_LEAST, SHARE_MOST, Shares};

use self::connection::Connection;
use self::descriptors::ensure_fit;
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
    /// Says which rows and texts are drawn, and when transactions arrive.
    pub(crate) seed: u64,
}

/// Logged-in clients, ready to run.
#[derive(Debug)]
pub(crate) struct Generator {
    /// One a thread.
    loops: Vec<EventLoop>,
    /// Statements of a transaction.
    step_count: usize,
    /// As in [`Shape`].
    seed: u64,
}

/// Transactions that a client ends before it is warm: the first begins anywhere, and after one more
/// it has sent every statement.
const COLD_COUNT: u32 = 2;

/// How long is waited for clients that are not warm: a server may leave some unserved. 10,000
/// clients of read_write take seven seconds for [`COLD_COUNT`] transactions each.
pub(crate) const WARM_TIME_MAX: Duration = Duration::from_secs(10);

/// Between two looks at whether all clients are warm.
const WARM_STEP: Duration = Duration::from_millis(100);

/// What was counted.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Length of the runs.
    pub(crate) seconds: f64,
    /// Statements answered.
    pub(crate) statement_count: u64,
    /// Transactions begun again after a deadlock or a lock wait that took too long.
    pub(crate) restart_count: u64,
    /// Of transactions, restarts included.
    pub(crate) latency_us: HistogramSnapshot,
    /// The ages of transactions that had not ended when the last run did; in an open loop with
    /// those that waited for their client.
    pub(crate) unanswered_us: HistogramSnapshot,
    /// The longest wait of all: of those that ended, and by their age of those that had not when a
    /// run did.
    pub(crate) longest_us: u64,
    /// In an open loop, by how much the load itself was late.
    pub(crate) lateness_us: HistogramSnapshot,
}

impl Generator {
    /// Connects all clients and prepares their statements.
    pub(crate) fn connect(shape: &Shape) -> Result<Generator> {
        let steps = mix::transaction(&shape.workload)
            .with_context(|| format!("no load called {}", shape.workload))?;
        ensure_fit(shape.client_count)?;
        let thread_count = shape.thread_count.clamp(1, shape.client_count.max(1));
        let mut hands: Vec<Vec<Connection>> = Vec::new();
        hands.resize_with(stdx::to_usize(u64::from(thread_count)), Vec::new);
        for client in 0..shape.client_count {
            let connection = Connection::open(&shape.address, Some("sbtest"))
                .with_context(|| format!("connection {} of {}", client + 1, shape.client_count))?;
            let hand = hands.get_mut(dealt_to(client, thread_count));
            hand.context("a thread of the load")?.push(connection);
        }
        let of_thread = |thread: usize, mut connections: Vec<Connection>| {
            for connection in &mut connections {
                connection.prepare(&steps, shape.table_count, shape.protocol)?;
            }
            let seed = shape.seed + stdx::to_u64(thread);
            let draw = Draw::new(seed, u64::from(shape.row_count), shape.distribution);
            EventLoop::new(connections, &steps, shape.table_count, draw)
        };
        let loops = thread::scope(|scope| {
            let started: Vec<_> = (0..)
                .zip(hands)
                .map(|(thread, hand)| scope.spawn(move || of_thread(thread, hand)))
                .collect();
            let joined = started.into_iter().map(|thread| join(thread.join()));
            joined.collect::<Result<Vec<_>>>()
        })?;
        Ok(Generator {
            loops,
            step_count: steps.len(),
            seed: shape.seed,
        })
    }

    /// Statements of a transaction.
    pub(crate) fn step_count(&self) -> usize {
        self.step_count
    }

    /// From now on the loop is open: transactions arrive at that rate and for any client, who
    /// queues them while it is busy. Until then each client begins the next when one ends.
    pub(crate) fn open(&mut self, per_second: f64) {
        let client_count: usize = self.loops.iter().map(EventLoop::client_count).sum();
        let number = |count| stdx::u64_to_f64(stdx::to_u64(count));
        for (thread, it) in (0..).zip(&mut self.loops) {
            let part = number(it.client_count()) / number(client_count);
            it.open(self.seed + thread, per_second * part);
        }
    }

    /// Runs all clients, uncounted, until they are warm: for `least`, and for [`WARM_TIME_MAX`]
    /// or `least`, whichever is longer, at most.
    pub(crate) fn warm(&mut self, least: Duration) -> Result<()> {
        self.run_uncounted(least)?;
        let mut rest = WARM_TIME_MAX.saturating_sub(least);
        while !self.loops.iter().all(EventLoop::is_warm) && !rest.is_zero() {
            self.run_uncounted(rest.min(WARM_STEP))?;
            rest = rest.saturating_sub(WARM_STEP);
        }
        Ok(())
    }

    /// Runs all clients for that long, and leaves it out of every count.
    pub(crate) fn run_uncounted(&mut self, length: Duration) -> Result<()> {
        self.run_loops(length, false).map(drop)
    }

    /// Runs all clients for that long, and counts.
    pub(crate) fn run(&mut self, length: Duration) -> Result<Tally> {
        self.run_loops(length, true)
    }

    /// How the transactions of all runs that count fell on the clients.
    pub(crate) fn shares(&self) -> Shares {
        Shares::of(self.loops.iter().flat_map(EventLoop::transaction_counts))
    }

    fn run_loops(&mut self, length: Duration, is_counting: bool) -> Result<Tally> {
        // Threads of their own, so that what a run sets for its thread ends with the run.
        let tallies = thread::scope(|scope| {
            let running: Vec<_> = self
                .loops
                .iter_mut()
                .map(|it| scope.spawn(move || it.run(length, is_counting)))
                .collect();
            let joined = running.into_iter().map(|thread| join(thread.join()));
            joined.collect::<Result<Vec<_>>>()
        })?;
        let mut all = Tally::default();
        for tally in &tallies {
            all.merge(tally);
            all.unanswered_us.merge(&tally.unanswered_us);
            // They have run beside each other.
            all.seconds = all.seconds.max(tally.seconds);
        }
        Ok(all)
    }
}

/// Which thread has the client. They connect one after the other, and a server that spreads them
/// evenly gives each of so many in a row to another of its own threads; here they go to the same.
/// So each thread of the load has as many clients of one worker as of the others, if the server has
/// as many workers as the load has threads, as by default. Where few clients happen to be split as
/// the server splits them, each pair of threads is alone with itself, and eight clients were seen
/// to get half as many statements again as in other runs.
fn dealt_to(client: u32, thread_count: u32) -> usize {
    stdx::to_usize(u64::from(client / thread_count % thread_count))
}

/// Clients that log in and stay silent.
#[derive(Debug)]
pub(crate) struct IdleClients {
    _connections: Vec<Connection>,
}

impl IdleClients {
    pub(crate) fn connect(address: &Address, count: u32) -> Result<IdleClients> {
        ensure_fit(count)?;
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
            restart_count: 0,
            latency_us: HistogramSnapshot::empty(),
            unanswered_us: HistogramSnapshot::empty(),
            longest_us: 0,
            lateness_us: HistogramSnapshot::empty(),
        }
    }
}

impl Tally {
    /// Adds another count, but for its time and for what it left unanswered.
    fn merge(&mut self, other: &Tally) {
        self.statement_count += other.statement_count;
        self.restart_count += other.restart_count;
        self.latency_us.merge(&other.latency_us);
        self.longest_us = self.longest_us.max(other.longest_us);
        self.lateness_us.merge(&other.lateness_us);
    }

    /// Adds a later run's count.
    pub(crate) fn append(&mut self, later: &Tally) {
        self.merge(later);
        // What the earlier run left unanswered has been answered since, or is in the later one's.
        self.unanswered_us = later.unanswered_us.clone();
        self.seconds += later.seconds;
    }

    pub(crate) fn statements_per_second(&self) -> f64 {
        stdx::u64_to_f64(self.statement_count) / self.seconds.max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_load_share_each_worker_of_the_server() {
        let threads: Vec<usize> = (0..10).map(|client| dealt_to(client, 2)).collect();
        assert_eq!(threads, [0, 0, 1, 1, 0, 0, 1, 1, 0, 0]);
        for client_count in [8, 64, 512, 4096] {
            let mut counts = [[0_u32; 2]; 2];
            for client in 0..client_count {
                let worker = stdx::to_usize(u64::from(client % 2));
                counts[dealt_to(client, 2)][worker] += 1;
            }
            assert_eq!(counts, [[client_count / 4; 2]; 2]);
        }
    }
}
