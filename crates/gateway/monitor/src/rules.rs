//! The thresholds by which servers are judged.

use std::time::Duration;

/// How the servers of a service belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Galera if one of the servers has `wsrep_on`, else replication.
    #[default]
    Auto,
    /// A primary and its replicas.
    Replication,
    /// A Galera cluster.
    Galera,
}

/// See the module's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How the servers belong together.
    pub kind: Kind,
    /// Failed checks in succession after which a server is down. A refused connection counts at
    /// once.
    pub failures_max: u32,
    /// A replica that is behind by more serves nothing; it returns at half of it. `None`: routers
    /// alone decide.
    pub lag_max: Option<Duration>,
    /// From this share of the time on, flow control is reported, in thousandths.
    pub paused_permille_max: u16,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            kind: Kind::Auto,
            failures_max: 1,
            lag_max: None,
            // A cluster that stands still half of the time has a member that cannot follow.
            paused_permille_max: 500,
        }
    }
}
