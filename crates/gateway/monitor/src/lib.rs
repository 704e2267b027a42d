//! What stands behind a service at each moment: which servers are up, what each is among the
//! others, how far replicas are behind, which transactions they have.
//!
//! ```text
//! let monitor = Monitor::start(options, resources, &[]); // on the worker that does the checks
//! let mut reader = monitor.reader();               // one a worker
//! let map = reader.map();                          // &Arc<ServerMap>, once a statement
//! map.primary(); map.replicas(lag_max); map.has_applied(id, &gtid);
//! monitor.changed(map_version).await;              // no primary: wait for another map
//! monitor.report_failure(id);                      // a session found a server dead
//! monitor.order(id, Order::Drain); // an operator
//! ```
//!
//! The core is pure. `probe.rs` turns the replies of one server into [`Facts`], [`judge`] turns a
//! map and the facts of a round into the next map and a list of events. `watch.rs` does the rest:
//! connections, time, publishing, log lines.
//!
//! The account needs no right to see variables and status. It needs SLAVE MONITOR (MariaDB) or
//! REPLICATION CLIENT (MySQL) to see how replication does.

#![forbid(unsafe_code)]

pub mod gtid;

mod state;

mod facts;
mod rules;

mod map;
mod notice;

mod event;

mod galera;
mod judge;
mod replication;

mod counters;
mod options;

mod answer;
mod probe;
mod publication;
mod watch;

#[cfg(test)]
mod scene;

pub use counters::Counters;
pub use event::Event;
pub use facts::{
    Access, Facts, Failure, GALERA_DONOR, GALERA_SYNCED, GaleraFacts, Observation, SourceAddress,
    Stream, Streams, Thread,
};
pub use judge::{Verdict, judge, order};
pub use map::{SERVERS_MAX, ServerMap};
pub use notice::Notice;
pub use options::{Options, RandomSource};
pub use publication::{MapReader, Published};
pub use rules::{Kind, Rules};
pub use state::{
    Condition, DownReason, Epoch, GaleraState, Order, Rank, Role, ServerEntry, ServerId,
    ServerState, Serves, Withheld,
};
pub use watch::{Monitor, ROUND_GAP_MIN};
