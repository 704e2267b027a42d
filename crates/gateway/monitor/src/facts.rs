//! What a check has read of a server.

use std::net::IpAddr;

use backend::ServerVersion;
use env::Instant;
use runtime::Address;

use crate::gtid::GtidPosition;
use crate::state::DownReason;

/// The outcome of one check.
#[derive(Debug, Clone)]
pub enum Observation {
    /// The server answered.
    Read(Box<Facts>),
    /// It did not.
    Failed(Failure),
}

/// Why a check has read nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Of what kind.
    pub reason: DownReason,
    /// The error's text.
    pub error: String,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// When it said so.
    pub read_at: Instant,
    /// Product and version.
    pub version: ServerVersion,
    /// Seconds since its start, by its own clock.
    pub uptime_s: Option<u64>,
    /// `server_id`.
    pub number: u32,
    /// `server_uid` of MariaDB or `server_uuid` of MySQL.
    pub uid: Option<String>,
    /// Whether ordinary accounts may write.
    pub access: Access,
    /// What it has applied, its own transactions included.
    pub position: Option<GtidPosition>,
    /// What it has applied of other servers, if it tells that apart from its own transactions.
    /// Those of a replica may be none of the primary's, though their numbers are higher.
    pub replicated: Option<GtidPosition>,
    /// From where it replicates.
    pub streams: Streams,
    /// Its Galera cluster, if `wsrep_on`.
    pub galera: Option<GaleraFacts>,
}

/// `read_only` and its kin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// All are off.
    Writable,
    /// One is on.
    ReadOnly,
}

/// From where a server replicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Streams {
    /// All of its streams; mostly none or one.
    Known(Vec<Stream>),
    /// The account may not ask.
    Denied,
    /// The server answered the other questions and not this one: a `STOP SLAVE` that waits holds
    /// the answer back.
    Unanswered,
}

/// Replication from one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stream {
    /// Where the source is, as the replica was told.
    pub source: SourceAddress,
    /// The source's `server_id`; 0 before the first contact.
    pub source_number: u32,
    /// The thread that fetches.
    pub receiver: Thread,
    /// The thread that applies.
    pub applier: Thread,
    /// How far it is behind, as the replica reckons.
    pub lag_s: Option<u64>,
    /// The last error of a thread; mostly empty.
    pub error: String,
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceAddress {
    /// A name or an address.
    pub host: String,
    /// A TCP port.
    pub port: u16,
}

/// A thread of replication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thread {
    /// It works.
    Running,
    /// It tries to reach the source.
    Connecting,
    /// It does not.
    #[default]
    Stopped,
}

/// What a Galera member says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GaleraFacts {
    /// `wsrep_ready`.
    pub is_ready: bool,
    /// `wsrep_cluster_status` is `Primary`.
    pub is_in_primary_component: bool,
    /// `wsrep_local_state`: 4 is synced, 2 is a donor or desynchronized.
    pub local_state: u32,
    /// `wsrep_reject_queries`, or a donor that rejects them.
    pub rejects_queries: bool,
    /// `wsrep_local_index`.
    pub index: u32,
    /// `wsrep_cluster_state_uuid`.
    pub cluster: String,
    /// `wsrep_cluster_size`.
    pub size: u32,
    /// `wsrep_cluster_conf_id`.
    pub configuration: u64,
    /// `wsrep_flow_control_paused_ns`: since the start, or since `FLUSH STATUS`.
    pub paused_ns: u64,
}

/// `wsrep_local_state` of a member that takes part.
pub const GALERA_SYNCED: u32 = 4;

/// `wsrep_local_state` of a donor and of a desynchronized member.
pub const GALERA_DONOR: u32 = 2;

impl Stream {
    /// Whether a thread works or tries to.
    pub fn is_active(&self) -> bool {
        self.receiver != Thread::Stopped || self.applier != Thread::Stopped
    }

    /// Whether a thread has stopped.
    pub fn is_broken(&self) -> bool {
        self.receiver == Thread::Stopped || self.applier == Thread::Stopped
    }
}

impl SourceAddress {
    /// Whether it is this address. A host name is not resolved: the source's number tells then.
    pub fn is(&self, address: &Address) -> bool {
        match address {
            Address::Tcp(address) => {
                let host = self.host.parse::<IpAddr>();
                self.port == address.port() && host == Ok(address.ip())
            }
            Address::Unix(_) => false,
        }
    }
}
