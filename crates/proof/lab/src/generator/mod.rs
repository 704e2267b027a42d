//! The bench's own load: many clients on few threads.
//!
//! sysbench has a thread for each client. It takes 58 us of processor time for each query at 4,096
//! clients, and 11.8 us at 64, while the server's share is 15 us. If both share two cores, the
//! resulting curve is sysbench's. Here a statement costs the load a receive and a send, whatever
//! the number of clients; so a bend in the curve is the server's.
//!
//! Connections are opened, and statements prepared, before the clock starts. Then the clients are
//! warmed until each has been served. The first transaction of thousands of clients touches all of
//! their memory for the first time; that cost is not typical and would fill seconds. A run may stop
//! at any moment, and the next continues there; the time between them counts as no client's
//! latency. So two servers can be measured in turns of a fraction of a second, one paused while the
//! other runs.

mod accounts;
mod arrivals;
mod clock;
mod connection;
mod descriptors;
mod draw;
mod event_loop;
mod mix;
mod reply;
mod shares;
mod tpcc;

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use metrics::HistogramSnapshot;

pub(crate) use self::accounts::{account, create_accounts};
pub(crate) use self::connection::{Address, Protocol};
pub(crate) use self::descriptors::connections_max;
pub(crate) use self::draw::Distribution;
pub(crate) use self::shares::{JUDGED_MEAN, SHARE_LEAST, SHARE_MOST, Shares};

use self::connection::Connection;
use self::descriptors::ensure_fit;
use self::draw::Draw;
use self::event_loop::EventLoop;
use self::mix::Step;

/// What is sent, and by how many clients.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) address: Address,
    /// A script of sysbench without `oltp_`, or [`TPCC`].
    pub(crate) workload: String,
    pub(crate) client_count: u32,
    /// Tables; warehouses of TPC-C.
    pub(crate) table_count: u32,
    pub(crate) row_count: u32,
    pub(crate) distribution: Distribution,
    pub(crate) protocol: Protocol,
    /// Accounts of [`create_accounts`] that clients log in as in turn; with none they are root.
    pub(crate) account_count: u32,
    /// What each client sets after its login.
    pub(crate) settings: &'static [&'static str],
    /// Errors that are counted as failures, and after which the client tries again. Only for
    /// transactions of one statement.
    pub(crate) failures: &'static [u16],
    /// Threads that share the clients.
    pub(crate) thread_count: u32,
    /// Determines rows and texts, and arrivals.
    pub(crate) seed: u64,
}

/// The workload of TPC-C's transactions.
pub(crate) const TPCC: &str = "tpcc";

/// What a transaction consists of.
#[derive(Clone, Debug)]
enum Work {
    /// The same steps each time.
    Steps(Vec<Step>),
    /// One of TPC-C's five, drawn when it begins out of statements with these texts.
    Tpcc(Vec<String>),
}

impl Work {
    /// Statements of a transaction, or of the mean one.
    fn step_count(&self) -> f64 {
        match self {
            Work::Steps(steps) => stdx::u64_to_f64(stdx::to_u64(steps.len())),
            Work::Tpcc(_) => tpcc::MEAN_STEPS,
        }
    }
}

/// Who may do all.
const ROOT: &str = "root";

impl Shape {
    fn user(&self, client: u32) -> String {
        match self.account_count {
            0 => ROOT.to_owned(),
            count => account(client % count),
        }
    }

    fn work(&self) -> Result<Work> {
        if self.workload == TPCC {
            return Ok(Work::Tpcc(tpcc::texts()));
        }
        let steps = mix::transaction(&self.workload);
        let steps = steps.with_context(|| format!("no load called {}", self.workload))?;
        Ok(Work::Steps(steps))
    }

    fn database(&self) -> &'static str {
        match self.workload == TPCC {
            true => TPCC,
            false => "sbtest",
        }
    }

    /// Logs a client in.
    fn open(&self, client: u32) -> Result<Connection> {
        let opened = Connection::open(&self.address, &self.user(client), Some(self.database()));
        opened.with_context(|| format!("connection {} of {}", client + 1, self.client_count))
    }

    /// Has a client set and prepare what it needs.
    fn prepare(&self, connection: &mut Connection, work: &Work) -> Result<()> {
        connection.set(self.settings)?;
        connection.prepare(work, self.table_count, self.protocol)
    }
}

/// Logged-in clients, ready to run.
#[derive(Debug)]
pub(crate) struct Generator {
    /// One for each thread.
    loops: Vec<EventLoop>,
    /// Statements of a transaction.
    step_count: f64,
    /// As in [`Shape`].
    seed: u64,
}

/// Transactions of a client until it is warm. The first begins at a random step; after one more it
/// has sent every statement.
const COLD_COUNT: u32 = 2;

/// How long to wait for clients that are not warm: a server may leave some unserved. 10,000 clients
/// of read_write take seven seconds for [`COLD_COUNT`] transactions each.
pub(crate) const WARM_TIME_MAX: Duration = Duration::from_secs(10);

/// The interval of checks whether all clients are warm.
const WARM_STEP: Duration = Duration::from_millis(100);

/// The counts of a run.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// The length of the runs.
    pub(crate) seconds: f64,
    /// Statements answered, without failures, and without those of transactions that are restarted.
    pub(crate) statement_count: u64,
    /// Statements that ended with one of the shape's failures.
    pub(crate) failure_count: u64,
    /// Transactions restarted after a deadlock or a lock wait timeout.
    pub(crate) restart_count: u64,
    /// Of transactions, restarts and failures included.
    pub(crate) latency_us: HistogramSnapshot,
    /// The ages of transactions that were unfinished at the end of the last run; in an open loop
    /// also of queued ones.
    pub(crate) unanswered_us: HistogramSnapshot,
    /// The longest wait: of finished transactions, and by age of those unfinished at the end of a
    /// run.
    pub(crate) longest_us: u64,
    /// In an open loop, the lateness of the load itself.
    pub(crate) lateness_us: HistogramSnapshot,
}

impl Generator {
    /// Connects all clients and prepares their statements.
    pub(crate) fn connect(shape: &Shape) -> Result<Generator> {
        let work = shape.work()?;
        ensure_fit(shape.client_count)?;
        let thread_count = shape.thread_count.clamp(1, shape.client_count.max(1));
        let mut hands: Vec<Vec<Connection>> = Vec::new();
        hands.resize_with(stdx::to_usize(u64::from(thread_count)), Vec::new);
        for client in 0..shape.client_count {
            let connection = shape.open(client)?;
            let hand = hands.get_mut(dealt_to(client, thread_count));
            hand.context("a thread of the load")?.push(connection);
        }
        let of_thread = |thread: usize, mut connections: Vec<Connection>| {
            for connection in &mut connections {
                shape.prepare(connection, &work)?;
            }
            let seed = shape.seed + stdx::to_u64(thread);
            let draw = Draw::new(seed, u64::from(shape.row_count), shape.distribution);
            EventLoop::new(connections, &work, shape, draw)
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
            step_count: work.step_count(),
            seed: shape.seed,
        })
    }

    /// Statements of a transaction.
    pub(crate) fn step_count(&self) -> f64 {
        self.step_count
    }

    /// Opens the loop: from now on transactions arrive at that rate, each for a random client, and
    /// are queued while it is busy. Before, each client begins the next one when one ends.
    pub(crate) fn open(&mut self, per_second: f64) {
        let client_count: usize = self.loops.iter().map(EventLoop::client_count).sum();
        let number = |count| stdx::u64_to_f64(stdx::to_u64(count));
        for (thread, it) in (0..).zip(&mut self.loops) {
            let part = number(it.client_count()) / number(client_count);
            it.open(self.seed + thread, per_second * part);
        }
    }

    /// Runs all clients, uncounted, until they are warm: at least for `least`, and at most for
    /// [`WARM_TIME_MAX`] or `least`, whichever is longer.
    pub(crate) fn warm(&mut self, least: Duration) -> Result<()> {
        self.run_uncounted(least)?;
        let mut rest = WARM_TIME_MAX.saturating_sub(least);
        while !self.loops.iter().all(EventLoop::is_warm) && !rest.is_zero() {
            self.run_uncounted(rest.min(WARM_STEP))?;
            rest = rest.saturating_sub(WARM_STEP);
        }
        Ok(())
    }

    /// Runs all clients for this long without counting.
    pub(crate) fn run_uncounted(&mut self, length: Duration) -> Result<()> {
        self.run_loops(length, false).map(drop)
    }

    /// Runs all clients for this long, and counts.
    pub(crate) fn run(&mut self, length: Duration) -> Result<Tally> {
        self.run_loops(length, true)
    }

    /// How the transactions of all counted runs were distributed among the clients.
    pub(crate) fn shares(&self) -> Shares {
        Shares::of(self.loops.iter().flat_map(EventLoop::transaction_counts))
    }

    fn run_loops(&mut self, length: Duration, is_counting: bool) -> Result<Tally> {
        // Own threads, so that a run's settings of its thread end with the run.
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
            // They ran at the same time.
            all.seconds = all.seconds.max(tally.seconds);
        }
        Ok(all)
    }
}

/// The thread of a client. Clients connect one after the other, and a server that spreads them
/// evenly gives consecutive ones to different threads; here they go to the same thread. So each
/// thread of the load has equally many clients of each worker, if the server has as many workers as
/// the load has threads, as by default. If a few clients happened to be split exactly as the server
/// splits them, each pair of threads would be alone. Eight clients were then seen to get half as
/// many statements again as in other runs.
fn dealt_to(client: u32, thread_count: u32) -> usize {
    stdx::to_usize(u64::from(client / thread_count % thread_count))
}

/// Clients that log in and send nothing.
#[derive(Debug)]
pub(crate) struct IdleClients {
    _connections: Vec<Connection>,
}

impl IdleClients {
    /// Clients as those of a load, which have set and prepared the same.
    pub(crate) fn of(shape: &Shape) -> Result<IdleClients> {
        let work = shape.work()?;
        ensure_fit(shape.client_count)?;
        let connections = (0..shape.client_count).map(|index| {
            let mut connection = shape.open(index)?;
            shape.prepare(&mut connection, &work)?;
            Ok(connection)
        });
        Ok(IdleClients {
            _connections: connections.collect::<Result<_>>()?,
        })
    }

    pub(crate) fn connect(address: &Address, count: u32) -> Result<IdleClients> {
        ensure_fit(count)?;
        let connections = (0..count).map(|index| {
            Connection::open(address, ROOT, None).with_context(|| format!("connection {index}"))
        });
        Ok(IdleClients {
            _connections: connections.collect::<Result<_>>()?,
        })
    }
}

/// The result of a thread; a panic is passed on.
fn join<T>(joined: thread::Result<Result<T>>) -> Result<T> {
    match joined {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Default for Tally {
    /// No counts yet.
    fn default() -> Tally {
        Tally {
            seconds: 0.0,
            statement_count: 0,
            failure_count: 0,
            restart_count: 0,
            latency_us: HistogramSnapshot::empty(),
            unanswered_us: HistogramSnapshot::empty(),
            longest_us: 0,
            lateness_us: HistogramSnapshot::empty(),
        }
    }
}

impl Tally {
    /// Adds another count, except its time and its unanswered transactions.
    fn merge(&mut self, other: &Tally) {
        self.statement_count += other.statement_count;
        self.failure_count += other.failure_count;
        self.restart_count += other.restart_count;
        self.latency_us.merge(&other.latency_us);
        self.longest_us = self.longest_us.max(other.longest_us);
        self.lateness_us.merge(&other.lateness_us);
    }

    /// Adds a later run's count.
    pub(crate) fn append(&mut self, later: &Tally) {
        self.merge(later);
        // The earlier run's unanswered transactions were answered since, or are in the later count.
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
