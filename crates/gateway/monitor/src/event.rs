//! What changed between two maps, and the log line of each change.

use std::sync::Arc;

use crate::map::ServerMap;
use crate::notice::Notice;
use crate::state::{Condition, Epoch, Role, ServerId, ServerState, Serves};

/// A change between two maps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A server can be used again, or cannot, or an operator has ordered so.
    Condition {
        /// Which.
        server: ServerId,
        /// What it was.
        from: Condition,
        /// What it is.
        to: Condition,
        /// The error's text, of a server that is down.
        error: Option<Arc<str>>,
    },
    /// A server has another role.
    Role {
        /// Which.
        server: ServerId,
        /// What it was.
        from: Role,
        /// What it is.
        to: Role,
    },
    /// A server that is up serves more or less than before.
    Serves {
        /// Which.
        server: ServerId,
        /// What it served.
        from: Serves,
        /// What it serves.
        to: Serves,
        /// The text of the error that keeps it out.
        error: Option<Arc<str>>,
    },
    /// Connections made before are of no use.
    Epoch {
        /// Which server.
        server: ServerId,
        /// Its new epoch.
        epoch: Epoch,
    },
    /// Another server takes the writes.
    Primary {
        /// Which did.
        from: Option<ServerId>,
        /// Which does.
        to: ServerId,
    },
    /// Something is wrong with the servers together.
    Begun(Notice),
    /// That is over.
    Ended(Notice),
}

/// What changed from one map to the next of one configuration.
pub(crate) fn between(before: &ServerMap, after: &ServerMap) -> Vec<Event> {
    let mut events = Vec::new();
    for (old, new) in before.servers().zip(after.servers()) {
        of_server(old, new, &mut events);
    }
    if let Some(to) = after.primary
        && after.primary != before.primary
    {
        let from = before.primary.or(before.former_primary);
        events.push(Event::Primary { from, to });
    }
    let begun = after.notices.difference(&before.notices);
    events.extend(begun.map(|notice| Event::Begun(*notice)));
    let ended = before.notices.difference(&after.notices);
    events.extend(ended.map(|notice| Event::Ended(*notice)));
    events
}

fn of_server(old: &ServerState, new: &ServerState, events: &mut Vec<Event>) {
    let server = new.id;
    if old.condition != new.condition {
        events.push(Event::Condition {
            server,
            from: old.condition,
            to: new.condition,
            error: new.complaint.clone(),
        });
    }
    if old.epoch != new.epoch {
        let epoch = new.epoch;
        events.push(Event::Epoch { server, epoch });
    }
    if old.role != new.role {
        let (from, to) = (old.role, new.role);
        events.push(Event::Role { server, from, to });
    }
    // One that has gone down serves nothing for that reason; its condition has said so.
    if old.serves != new.serves && new.is_reachable() {
        events.push(Event::Serves {
            server,
            from: old.serves,
            to: new.serves,
            error: new.complaint.clone(),
        });
    }
}

/// Writes the log line of a change. `map` is the map after it.
pub(crate) fn log(event: &Event, map: &ServerMap) {
    let name = |id: &ServerId| map.server(*id).map_or("", |it| &*it.entry.name);
    match event {
        Event::Condition {
            server,
            from,
            to,
            error,
        } => {
            let (server, error) = (name(server), error.as_deref());
            match to {
                Condition::Down(_) => {
                    tracing::warn!(server, %from, %to, error, "server is down");
                }
                _ => tracing::info!(server, %from, %to, "server has another condition"),
            }
        }
        Event::Role { server, from, to } => {
            let server = name(server);
            tracing::info!(server, %from, %to, "server has another role");
        }
        Event::Serves {
            server,
            from,
            to,
            error,
        } => {
            let (server, error) = (name(server), error.as_deref());
            match to {
                Serves::Nothing(_) => {
                    tracing::warn!(server, %from, %to, error, "server serves nothing");
                }
                _ => tracing::info!(server, %from, %to, "server is in service"),
            }
        }
        Event::Epoch { server, epoch } => {
            let server = name(server);
            tracing::info!(
                server,
                epoch = epoch.0,
                "connections made before are no longer used"
            );
        }
        Event::Primary { from, to } => {
            let from = from.as_ref().map_or("none", name);
            tracing::info!(from, to = name(to), "writes go to another server");
        }
        Event::Begun(notice) => log_notice(notice, name),
        Event::Ended(notice) => {
            let (problem, server) = notice.shown();
            let server = server.as_ref().map(name);
            tracing::info!(problem, server, "problem of the servers has ended");
        }
    }
}

fn log_notice<'a>(notice: &Notice, name: impl Fn(&ServerId) -> &'a str) {
    match notice {
        Notice::NoPrimary => {
            tracing::error!("no server takes writes: none that is up is writable and a primary");
        }
        Notice::SecondWritable(server) => {
            let server = name(server);
            tracing::warn!(server, "second writable server: set read_only on it");
        }
        Notice::SourceNotListed(server) => {
            let server = name(server);
            tracing::warn!(server, "replicates from a server that is not listed");
        }
        Notice::SameNumber(one, other) => {
            let (one, other) = (name(one), name(other));
            tracing::warn!(one, other, "two servers have one server_id");
        }
        Notice::Denied(server) => {
            let server = name(server);
            let grant = "GRANT SLAVE MONITOR ON *.* (MariaDB) or REPLICATION CLIENT (MySQL)";
            tracing::error!(server, grant, "account may not see replication: grant it");
        }
        Notice::OtherCluster(server) => {
            let server = name(server);
            tracing::error!(
                server,
                "server is in another Galera cluster than the others"
            );
        }
        Notice::FlowControl(server) => {
            let server = name(server);
            tracing::warn!(server, "flow control holds the Galera cluster");
        }
    }
}
