//! What [`crate::Inside`] tells: plain values, a struct for each kind of thing.

use std::sync::Arc;
use std::time::Duration;

use monitor::{DownReason, Order, Role, Serves};
use result_cache::Counts;
use router::{Pin, Pins, Rule};

use crate::options::{ResultCacheOptions, Router};

/// A server, as its monitor and the workers see it.
#[derive(Debug, Clone)]
pub struct ServerView {
    /// By which the settings name it.
    pub name: Arc<str>,
    /// Where it is.
    pub address: String,
    /// The present configuration does not have it: only older sessions use it.
    pub is_removed: bool,
    /// What its monitor says; `None` if no monitor watches it.
    pub watched: Option<WatchedView>,
    /// How much it is preferred: the lowest is.
    pub rank: u16,
    /// The connections that sessions share.
    pub pool: pool::Numbers,
    /// Most of them, at present.
    pub connections_max: u32,
    /// Sessions that stay at it or have a connection to it.
    pub sessions: usize,
    /// Statements that it was sent and has not answered; those of sessions with a connection of
    /// their own are not seen.
    pub under_way: u64,
    /// Commands that it was sent.
    pub statements: u64,
}

/// A cache of results.
#[derive(Debug, Clone)]
pub struct CacheView {
    /// As the settings have it.
    pub options: ResultCacheOptions,
    /// It keeps results now: it knows the definitions of tables, if it asks for them, and follows
    /// a binary log, if it has to.
    pub keeps: bool,
    /// The places in the binary logs that it follows; `None` if it follows none now.
    pub follows: Option<String>,
    /// Bytes of memory in use.
    pub used_bytes: usize,
    /// Results that it has.
    pub results: usize,
    /// What has happened to it.
    pub counts: Counts,
}

/// A rule.
#[derive(Debug, Clone)]
pub struct RuleView {
    /// As the settings have it.
    pub rule: Rule,
    /// How many statements have met it.
    pub hits: u64,
}

/// What statements of a text and a user have cost.
#[derive(Debug, Clone)]
pub struct StatementView {
    /// The text, the user and the numbers.
    pub row: digests::Row,
    /// The servers that have answered, as far as they are known and told apart.
    pub servers: Vec<Arc<str>>,
}

/// What a monitor says of a server.
#[derive(Debug, Clone)]
pub struct WatchedView {
    /// Why it is down; `None` if it is not.
    pub down: Option<DownReason>,
    /// What an operator has ordered.
    pub wanted: Order,
    /// What it is among the others.
    pub role: Role,
    /// What it may be asked for, if nobody has taken it out.
    pub serves: Serves,
    /// How far it is behind.
    pub lag: Option<Duration>,
    /// What it has applied.
    pub position: Option<String>,
    /// As it tells it.
    pub version: Option<String>,
    /// The error that keeps it out.
    pub error: Option<Arc<str>>,
}

/// A service.
#[derive(Debug, Clone)]
pub struct ServiceView {
    /// By which the settings name it.
    pub name: Arc<str>,
    /// How statements find their server.
    pub router: Router,
    /// Its servers.
    pub servers: Vec<Arc<str>>,
    /// Its monitor's place in the settings.
    pub monitor: usize,
    /// Where writes may begin.
    pub primary: Option<Arc<str>>,
    /// How many of its servers can be used.
    pub reachable: usize,
    /// How many clients it has.
    pub sessions: usize,
}

/// A client's session.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// The number that the client has for KILL.
    pub number: u32,
    /// Who it is.
    pub user: String,
    /// Where the client is.
    pub host: String,
    /// Its service.
    pub service: Arc<str>,
    /// Its database, if it is known.
    pub database: Option<String>,
    /// What it is doing.
    pub state: SessionState,
    /// For how long.
    pub age: Duration,
    /// Why it must stay at a server, beside an open transaction.
    pub pins: Pins,
    /// Of these, those whose statement is known, with that: its text without literals.
    pub pinned_by: Vec<(Pin, String)>,
    /// Where it must stay.
    pub stays_at: Option<Arc<str>>,
    /// Whether a transaction is open.
    pub is_in_transaction: bool,
    /// The servers that it has connections to.
    pub connections: Vec<Arc<str>>,
}

impl SessionView {
    /// Each pin with the statement that has set it, as far as that is known.
    pub fn pinned_by_words(&self) -> Option<String> {
        let one = |(pin, text): &(Pin, String)| format!("{}: {text}", pin.name());
        let all: Vec<_> = self.pinned_by.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionState {
    /// It waits for a command.
    Idle,
    /// A command is under way.
    Running,
    /// It waits for a connection to this server.
    WaitsForConnection(Arc<str>),
    /// It waits until a server may take its command.
    WaitsForServer,
}

/// A worker.
#[derive(Debug, Clone, Copy)]
pub struct WorkerView {
    /// Which, from 0.
    pub index: usize,
    /// Clients of it that have a session.
    pub sessions: usize,
    /// Clients that got one since the start.
    pub sessions_begun: u64,
    /// Commands that it has sent to servers.
    pub statements: u64,
    /// Those under way, but for those of sessions with a connection of their own.
    pub under_way: u64,
    /// Connections to servers that could not be made.
    pub failed_connects: u64,
    /// Statements that it has ended on their servers.
    pub kills: u64,
}
