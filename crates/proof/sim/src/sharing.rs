//! Sessions that share connections: [`pool`] and [`router`] together, under one seed.
//!
//! Clients of several workers run short programs: reads and writes, variables, transactions over
//! one server or several, locks that pin them. `router` says where each statement goes, by a map
//! that the monitor's judge makes of what checks have seen. `pool` gives the connections, and
//! `connection_state` says what puts each right. Servers stop,
//! start and change roles, clients leave while they wait, waits end by their time, connections
//! move late or never. One thread runs all of it, in an order that the seed decides.
//!
//! After each step:
//!
//! * (S1) A server has at most as many connections as its limit and its overflow say.
//! * (S2) The sessions of a worker that wait for a server get connections in the order in which
//!   they came. One that holds a connection may be before those that hold none; one whose
//!   connection is on its way may be served later.
//! * (S3) All statements of a transaction run on the connection where it was begun, or those of
//!   its parts. No session gets a connection with a transaction or a lock of another one.
//! * (S4) A session that reads on a replica sees what it wrote. (It may not see it on a server that
//!   has ceased to be the primary since the last check.)
//!
//! * (S8) Each statement runs as its session's account, and with the variable that the session has
//!   set, whichever session had the connection before.
//!
//! Whenever all that is under way has arrived:
//!
//! * (S5) Each session that waits is in the pool's line. No connection is idle and no place is
//!   free for it.
//!
//! At the end, when servers run and no client gives up:
//!
//! * (S6) All programs end in a number of rounds that their statements bound.
//! * (S7) Each connection is idle, no transaction is open, nobody waits, no slot is lost.
//!
//! [`Mistake`] has what may be planted in the world around both crates, to see that it is found.
//!
//! Modules: `cluster` (the servers), `bell` (wakers), `program` (what clients do), `world`
//! (all of them, and what happens to them), `player` (what a session does), `observer` (S1, S2, S5,
//! S7).

mod bell;
mod cluster;
mod observer;
mod player;
mod program;
mod world;

use std::sync::Arc;

use env::Random;
use pool::{Front, Limits, Pool, Recycling, ServerId as PoolId};

use world::{AtRest, Own, World};

/// Servers: a primary and its replicas.
const SERVER_COUNT: usize = 3;

/// Sessions of all workers.
const SESSION_COUNT: usize = 12;

/// Random steps before the end.
const STEP_COUNT: usize = 1_500;

/// What differs between simulations.
#[derive(Debug, Clone, Copy)]
pub struct SharingOptions {
    /// Workers.
    pub worker_count: usize,
    /// Connections to each server.
    pub limit: u32,
    /// And above that.
    pub overflow: u32,
    /// What is wrong with the world.
    pub mistake: Option<Mistake>,
}

impl SharingOptions {
    /// Those of a seed: two workers and one connection as often as anything else.
    pub fn of_seed(seed: u64) -> SharingOptions {
        let mut random = Random::new(!seed);
        let limit = [1, 1, 2, 5][random.index(4)];
        SharingOptions {
            worker_count: 2 + random.index(3),
            limit,
            overflow: [0, 1, limit][random.index(3)],
            mistake: None,
        }
    }
}

/// A mistake of what stands around pool and router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Some sessions are not polled when they are woken.
    LosesWakeUps,
    /// Some connections that were asked for by another worker are never delivered.
    LosesOrders,
    /// A worker does not offer what others ask for.
    AnswersNobody,
    /// A session opens one connection more than it has slots.
    OpensOneMore,
    /// A session keeps its connection when it is at rest.
    KeepsConnections,
    /// A session gives a connection back in the middle of its transaction.
    GivesBackEarly,
    /// A statement goes elsewhere than its transaction.
    LeavesItsServer,
    /// A read goes to any replica.
    ReadsTooEarly,
    /// Of two sessions of a worker that wait, the later one has the place of the earlier one.
    Overtakes,
    /// What puts a connection right is not sent.
    PutsNothingRight,
}

impl Mistake {
    /// Each of them.
    pub const ALL: [Mistake; 10] = [
        Mistake::LosesWakeUps,
        Mistake::LosesOrders,
        Mistake::AnswersNobody,
        Mistake::OpensOneMore,
        Mistake::KeepsConnections,
        Mistake::GivesBackEarly,
        Mistake::LeavesItsServer,
        Mistake::ReadsTooEarly,
        Mistake::Overtakes,
        Mistake::PutsNothingRight,
    ];
}

/// What has happened. Each rare branch has a count, so that a test sees that it was reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharingTally {
    /// Statements that were answered.
    pub answered: u64,
    /// Transactions that had parts on other servers and were committed.
    pub spread: u64,
    /// Reads outside of transactions on a replica, of sessions that have written.
    pub replica_reads: u64,
    /// Waits for a connection.
    pub waited: u64,
    /// Connections that moved to another worker.
    pub moved: u64,
    /// Connections above a limit.
    pub overflowed: u64,
    /// Sessions that were rolled back for others.
    pub victims: u64,
    /// Waits that ended by their time.
    pub timed_out: u64,
    /// Clients that went while they waited.
    pub gone: u64,
    /// Sessions that ended with their server.
    pub lost: u64,
    /// Statements that were sent again, to another server.
    pub repeated: u64,
    /// Servers that took the writes.
    pub primaries: u64,
    /// Moments at which nothing was under way (S5).
    pub still: u64,
    /// Connections that got another state than they had.
    pub put_right: u64,
}

impl SharingTally {
    /// Adds the events of another simulation.
    pub fn add(&mut self, other: SharingTally) {
        self.answered += other.answered;
        self.spread += other.spread;
        self.replica_reads += other.replica_reads;
        self.waited += other.waited;
        self.moved += other.moved;
        self.overflowed += other.overflowed;
        self.victims += other.victims;
        self.timed_out += other.timed_out;
        self.gone += other.gone;
        self.lost += other.lost;
        self.repeated += other.repeated;
        self.primaries += other.primaries;
        self.still += other.still;
        self.put_right += other.put_right;
    }
}

/// Runs a simulation.
///
/// # Errors
/// What was wrong, and after which step.
pub fn run(seed: u64, options: SharingOptions) -> Result<SharingTally, String> {
    let pool: Arc<Pool<AtRest>> = Pool::new(options.worker_count);
    let limits = Limits {
        limit: options.limit,
        overflow: options.overflow,
        waiting_max: u32::MAX,
    };
    let add = |place| pool.add_server(cluster::name(place), limits, Recycling::default());
    let ids: Vec<PoolId> = (0..SERVER_COUNT).map(add).collect();
    let front = |worker| Front::new(Arc::clone(&pool), worker);
    let fronts: Vec<Front<Own, AtRest>> = (0..options.worker_count).map(front).collect();
    let mut world = World::new(seed, options, &fronts, ids);
    for step in 0..STEP_COUNT {
        world.step();
        world.observe();
        if world.random.chance(20) {
            world.arrive();
        }
        world.sound(|| format!("step {step}"))?;
    }
    world.end()?;
    let tally = world.tally;
    let cluster = world.cluster();
    drop(world);
    drop(fronts);
    drop(pool);
    let left: u64 = (0..SERVER_COUNT).map(|it| cluster.borrow().count(it)).sum();
    match left {
        0 => Ok(tally),
        _ => Err(format!("{left} connections are left behind the pool")),
    }
}
