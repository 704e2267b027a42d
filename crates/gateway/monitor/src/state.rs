//! What is known of one server at one moment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backend::ServerVersion;
use runtime::Address;

use crate::gtid::GtidPosition;

/// A server's index in the configuration that a map was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u16);

/// Which servers are preferred: a lower rank is used as long as one of it is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Rank(pub u16);

/// Connections of an older epoch are never given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u64);

/// A server of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// Its name in the configuration; each has its own.
    pub name: Arc<str>,
    /// Where it is.
    pub address: Address,
    /// How much it is preferred.
    pub rank: Rank,
}

/// What an operator has ordered for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Use it as the checks say.
    #[default]
    Up,
    /// Leave it now.
    Maintenance,
    /// Begin nothing new on it.
    Drain,
}

/// Whether a server can be used at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It answers.
    Up,
    /// It does not.
    Down(DownReason),
    /// An operator has taken it out.
    Maintenance,
    /// It answers; sessions that use it go on, and no other begins.
    Draining,
}

/// Why a server counts as down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownReason {
    /// No check has ended yet.
    NotChecked,
    /// It cannot be connected to.
    Unreachable,
    /// It did not answer in time.
    TimedOut,
    /// It closed the connection in the middle of a check.
    Lost,
    /// It does not let the account in.
    LoginRefused,
    /// It takes no more connections, so it cannot be checked.
    Full,
    /// It answers what no server of these products says.
    Unreadable,
}

/// What a server is among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nothing that can be used: see [`Withheld`].
    Unknown,
    /// Takes the writes.
    Primary,
    /// Replicates from another server, and no server replicates from it.
    Replica,
    /// Replicates from another server, and others replicate from it.
    Relay,
    /// The member of a Galera cluster that takes the writes.
    GaleraWriter,
    /// Another member of the cluster.
    GaleraMember,
}

/// What a server that is up may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// Everything.
    ReadsAndWrites,
    /// Reads alone.
    Reads,
    /// Nothing.
    Nothing(Withheld),
}

/// Why a server serves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// It is down.
    Down,
    /// An operator has taken it out.
    Maintenance,
    /// It is writable, replicates from no listed server, and another one is the primary.
    SecondWritable,
    /// It is read-only and replicates from none.
    Standalone,
    /// A thread of its replication has stopped.
    Broken,
    /// The server that it replicates from gets no changes itself.
    BehindBroken,
    /// It replicates, and has not said yet how far it is behind.
    LagUnknown,
    /// It is behind by more than the limit.
    Lagging,
    /// The account may not ask how its replication does.
    Denied,
    /// It belongs to no Galera cluster, and the others do.
    NotMember,
    /// Its part of the Galera cluster is not the primary component.
    NonPrimaryComponent,
    /// It belongs to another Galera cluster, or to another half of a split one.
    OtherCluster,
    /// It is joining the Galera cluster, or not ready.
    NotReady,
    /// It sends its state to another member, or was desynchronized by hand.
    Desynced,
    /// `wsrep_reject_queries` is set.
    RejectsQueries,
}

/// What a member of a Galera cluster says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GaleraState {
    /// The cluster's UUID.
    pub cluster: Arc<str>,
    /// Members that it sees.
    pub size: u32,
    /// Counts the changes of membership.
    pub configuration: u64,
    /// Its place among the members.
    pub index: u32,
    /// Thousandths of the last interval in which flow control held it.
    pub paused_permille: u16,
}

/// See the module's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerState {
    /// Its index in the configuration.
    pub id: ServerId,
    /// Its entry in the configuration.
    pub entry: ServerEntry,
    /// What it is.
    pub role: Role,
    /// What an operator has ordered.
    pub order: Order,
    /// Why it does not answer; `None` if it does.
    pub down: Option<DownReason>,
    /// Whether it can be used: what follows from both.
    pub condition: Condition,
    /// What it may be asked for, if its condition allows it.
    pub serves: Serves,
    /// How far it is behind the primary; `None` if that is not known.
    pub lag: Option<Duration>,
    /// What it has applied, as of the last check.
    pub position: Option<GtidPosition>,
    /// Its product and version, as of the last login.
    pub version: Option<ServerVersion>,
    /// Rises when connections made before must not be used any more.
    pub epoch: Epoch,
    /// What it says of its Galera cluster.
    pub galera: Option<GaleraState>,
    /// The text of the error that keeps it out; for logs and operators.
    pub complaint: Option<Arc<str>>,
}

impl ServerState {
    /// Whether reads may begin here.
    pub fn serves_reads(&self) -> bool {
        self.condition == Condition::Up && !matches!(self.serves, Serves::Nothing(_))
    }

    /// Whether writes may begin here.
    pub fn serves_writes(&self) -> bool {
        self.condition == Condition::Up && self.serves == Serves::ReadsAndWrites
    }

    /// Whether it answers and an operator has not taken it out.
    pub fn is_reachable(&self) -> bool {
        matches!(self.condition, Condition::Up | Condition::Draining)
    }

    /// Whether it answers its monitor, whatever an operator has ordered.
    pub fn answers(&self) -> bool {
        self.down.is_none()
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Order::Up => "up",
            Order::Maintenance => "maintenance",
            Order::Drain => "drain",
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Unknown => "unknown",
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Relay => "relay",
            Role::GaleraWriter => "galera writer",
            Role::GaleraMember => "galera member",
        })
    }
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DownReason::NotChecked => "not checked yet",
            DownReason::Unreachable => "cannot be reached",
            DownReason::TimedOut => "does not answer in time",
            DownReason::Lost => "closed the connection",
            DownReason::LoginRefused => "refuses the monitor's account",
            DownReason::Full => "has too many connections",
            DownReason::Unreadable => "answers what cannot be read",
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Up => f.write_str("up"),
            Condition::Down(reason) => write!(f, "down: {reason}"),
            Condition::Maintenance => f.write_str("maintenance"),
            Condition::Draining => f.write_str("draining"),
        }
    }
}

impl fmt::Display for Serves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Serves::ReadsAndWrites => f.write_str("reads and writes"),
            Serves::Reads => f.write_str("reads"),
            Serves::Nothing(why) => write!(f, "nothing: {why}"),
        }
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Withheld::Down => "down",
            Withheld::Maintenance => "in maintenance",
            Withheld::SecondWritable => "writable, but not the primary",
            Withheld::Standalone => "read-only, and replicates from no server",
            Withheld::Broken => "its replication has stopped",
            Withheld::BehindBroken => "the server that it replicates from gets no changes",
            Withheld::LagUnknown => "its lag is not known yet",
            Withheld::Lagging => "its lag is over the limit",
            Withheld::Denied => "the monitor's account may not see its replication",
            Withheld::NotMember => "no member of the Galera cluster",
            Withheld::NonPrimaryComponent => "outside of the primary component",
            Withheld::OtherCluster => "in another Galera cluster",
            Withheld::NotReady => "not ready",
            Withheld::Desynced => "donor or desynchronized",
            Withheld::RejectsQueries => "rejects queries",
        })
    }
}
