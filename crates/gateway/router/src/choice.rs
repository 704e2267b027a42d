//! [`choose`]: the server for a statement, out of the monitor's map.

use std::cmp::Ordering;
use std::time::Duration;

use monitor::{ServerId, ServerMap, ServerState};

use crate::plan::Goal;
use crate::written::Written;

/// How busy a server is, as one worker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Statements that it was sent and has not answered.
    pub operations: u32,
    /// Statements that it has answered: of equals, who has done less is taken.
    pub answered: u64,
}

impl Load {
    fn compare(&self, other: &Load) -> Ordering {
        let key = |load: &Load| (load.operations, load.answered);
        key(self).cmp(&key(other))
    }
}

/// The server for a statement. `None` if no server may be asked.
///
/// A read goes to the replica with the least load that has what the session wrote, else to the
/// primary. Without a primary, what the session wrote is not waited for if it wrote nothing.
/// `without` is a server that has just failed. Servers without a load are not the session's.
pub fn choose(
    goal: Goal,
    map: &ServerMap,
    written: &Written,
    lag_max: Option<Duration>,
    without: Option<ServerId>,
    load: impl Fn(ServerId) -> Option<Load>,
) -> Option<ServerId> {
    let is_left = |it: &&ServerState| Some(it.id) != without && load(it.id).is_some();
    let primary = map.primary().filter(is_left).map(|it| it.id);
    let has_written = |it: &&ServerState| match written {
        Written::Nothing => true,
        Written::UpTo(position) => map.has_applied(it.id, position),
        Written::Somewhere => false,
    };
    match goal {
        Goal::Held(server) => {
            let is_reachable = map.server(server).is_some_and(ServerState::is_reachable);
            is_reachable
                .then_some(server)
                .filter(|it| Some(*it) != without)
        }
        Goal::Primary => primary,
        Goal::Replica => map
            .replicas(lag_max)
            .filter(is_left)
            .filter(has_written)
            .filter_map(|it| Some((load(it.id)?, it.id)))
            .min_by(|(left, _), (right, _)| left.compare(right))
            .map(|(_, id)| id)
            .or(primary),
    }
}

#[cfg(test)]
mod tests;
