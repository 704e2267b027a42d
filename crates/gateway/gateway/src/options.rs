//! [`Options`]: what a gateway is set to.

use std::sync::Arc;
use std::time::Duration;

use auth::ClientSecret;
use backend::Target;
use front::LoginRules;
use monitor::Rank;
use result_cache::{CacheOptions, REPLY_PART};
use router::{Balance, Rules};

use crate::query_log::QueryLogOptions;

/// A server, by its place in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub usize);

/// A service, by its place in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub usize);

/// A monitor, by its place in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorId(pub usize);

/// A cache of results, by its place in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheId(pub usize);

/// What a gateway is set to. It never changes; other options take its place.
#[derive(Debug)]
pub struct Options {
    /// All servers.
    pub servers: Vec<ServerOptions>,
    /// All monitors.
    pub monitors: Vec<MonitorOptions>,
    /// All services.
    pub services: Vec<ServiceOptions>,
    /// Where clients connect.
    pub listeners: Vec<ListenerOptions>,
    /// What is said about statements beyond that.
    pub rules: Arc<Rules>,
    /// Where results are kept.
    pub caches: Vec<ResultCacheOptions>,
    /// The query log, if there is one. The caller opens its file ([`crate::Gateway::log_into`]).
    pub query_log: Option<QueryLogOptions>,
    /// Which statements are traced, if any, and where their spans go. The caller starts the thread
    /// that sends them ([`spans::Spans::start`]).
    pub tracing: Option<TracingOptions>,
    /// Most clients with a session, of all services.
    pub max_connections: usize,
    /// What logins of clients go by.
    pub login_rules: LoginRules,
    /// How long a client may be silent.
    pub wait_timeout: Duration,
    /// How long the rest of a command may take to come.
    pub read_timeout: Duration,
}

/// What tracing is set to. Constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracingOptions {
    /// Which statements are traced.
    pub sampling: spans::Sampling,
    /// Where spans go.
    pub target: spans::Target,
}

/// A server.
#[derive(Debug)]
pub struct ServerOptions {
    /// By which messages name it.
    pub name: Arc<str>,
    /// Where it is.
    pub target: Target,
    /// How much it is preferred.
    pub rank: Rank,
    /// Most connections of its pool. Those of `read-connection` without multiplexing are none of
    /// it.
    pub connections_max: u32,
    /// By how many sessions may exceed that which hold other connections. `None`: by as many again.
    pub overflow: Option<u32>,
    /// Whether the best limit of the pool is searched, up to `connections_max`.
    pub is_adaptive: bool,
}

/// A place where clients connect.
#[derive(Debug)]
pub struct ListenerOptions {
    /// By which the settings name it; no other one has it.
    pub name: Arc<str>,
    /// The service that its clients get.
    pub service: ServiceId,
}

/// A watch over servers.
#[derive(Debug, Clone)]
pub struct MonitorOptions {
    /// Whom it watches. A server is watched by one monitor at the most.
    pub servers: Vec<ServerId>,
    /// The account that it logs in with. It also reads the servers' accounts.
    pub user: String,
    /// Its password.
    pub secret: ClientSecret,
    /// From the start of a round of checks to that of the next.
    pub interval: Duration,
    /// In which a server has to let the monitor in, and to answer it.
    pub timeout: Duration,
    /// By which the servers are judged.
    pub rules: monitor::Rules,
    /// The `server_id` of who follows the primary's binary log. `None`: one that is drawn.
    pub follower_number: Option<u32>,
}

impl MonitorOptions {
    /// A server's place in the monitor's map, if it is watched.
    pub(crate) fn place(&self, server: ServerId) -> Option<monitor::ServerId> {
        let place = self.servers.iter().position(|it| *it == server)?;
        u16::try_from(place).ok().map(monitor::ServerId)
    }
}

/// A service.
#[derive(Debug)]
pub struct ServiceOptions {
    /// By which messages name it.
    pub name: Arc<str>,
    /// Its servers, in the order in which equal ones are preferred.
    pub servers: Vec<ServerId>,
    /// Who watches all of them.
    pub monitor: MonitorId,
    /// How statements find their server.
    pub router: Router,
    /// How long a statement waits for a server that may take it, and for a connection to it.
    pub wait: Duration,
    /// Its sessions give their connections back between transactions, for others to use.
    pub multiplexes: bool,
    /// How long a statement may run, if no rule says it.
    pub statement_time_max: Option<Duration>,
    /// How long a client may be silent in a transaction.
    pub idle_transaction_max: Option<Duration>,
    /// Where results are kept, if no rule says it.
    pub cache: Option<CacheId>,
}

/// A cache of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultCacheOptions {
    /// By which messages name it.
    pub name: Arc<str>,
    /// Who finds what others have kept.
    pub sharing: Sharing,
    /// Which replies are kept, and how long they are good.
    pub trust: Trust,
    /// Changes past the gateway are learned from the primary's binary log. While that is not
    /// followed, nothing is kept.
    pub follows: bool,
    /// All of its memory, and the rest.
    pub cache: CacheOptions,
}

impl ResultCacheOptions {
    /// The part of each of so many workers. A reply may be as long as it may be for all of them
    /// together, or as a cache of that part allows.
    pub(crate) fn of_worker(&self, worker_count: usize) -> CacheOptions {
        let all = self.cache;
        let bytes_max = all.bytes_max / worker_count;
        CacheOptions {
            bytes_max,
            reply_bytes_max: all.reply_bytes_max.min(bytes_max / REPLY_PART),
            ..all
        }
    }
}

/// Who finds what others have kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// The sessions of the same worker. Each worker has its part of the memory.
    Worker,
    /// All sessions.
    All,
}

/// Which replies are kept, and how long they are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Those of queries that are known to have one answer, until one of their tables is changed.
    Verified,
    /// Those of all queries, by the operator's word, until their time is over.
    Vouched,
}

/// How statements find their server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Router {
    /// All statements of a client go to one server, of those with this role.
    ReadConnection(Role),
    /// Writes go to the primary, reads to replicas.
    ReadWriteSplit(SplitOptions),
}

/// What a read-write split is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitOptions {
    /// How far a replica may be behind that is read from.
    pub lag_max: Option<Duration>,
    /// How a replica is chosen for a read.
    pub balance: Balance,
    /// Which writes a read on a replica is sure to see.
    pub causal_reads: CausalReads,
    /// How long a read waits on a replica for these writes before it goes to the primary.
    pub causal_wait: Option<Duration>,
}

/// Which writes a read on a replica is sure to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CausalReads {
    /// None.
    Off,
    /// Those of its session.
    Session,
    /// Those of all sessions of the service.
    Service,
}

/// Which servers of a service clients of `read-connection` are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Each that answers, whatever it is among the others.
    Any,
    /// The primary.
    Primary,
    /// Replicas, and the primary if there is none.
    Replica,
}

#[cfg(test)]
mod tests {
    use result_cache::Lifetime;

    use super::*;

    #[test]
    fn a_worker_has_its_part_of_the_memory_and_keeps_replies_as_long_as_all() {
        let megabyte = 1 << 20;
        let mut options = ResultCacheOptions {
            name: "c".into(),
            sharing: Sharing::Worker,
            trust: Trust::Verified,
            follows: false,
            cache: CacheOptions {
                bytes_max: 64 * megabyte,
                reply_bytes_max: megabyte,
                lifetime: Lifetime {
                    hard: None,
                    soft: None,
                },
            },
        };
        for (workers, bytes, reply_bytes) in [
            (1, 64 * megabyte, megabyte),
            (2, 32 * megabyte, megabyte),
            (8, 8 * megabyte, megabyte),
            (16, 4 * megabyte, megabyte / 2),
        ] {
            let part = options.of_worker(workers);
            let limits = (part.bytes_max, part.reply_bytes_max);
            assert_eq!(limits, (bytes, reply_bytes), "{workers}");
        }
        options.cache.reply_bytes_max = 1000;
        assert_eq!(options.of_worker(16).reply_bytes_max, 1000);
    }
}
