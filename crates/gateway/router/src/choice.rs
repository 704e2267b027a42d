//! [`choose`]: the server for a statement, out of the monitor's map.

use std::time::Duration;

use env::Instant;
use monitor::{ServerId, ServerMap, ServerState};
use stdx::f64_to_u64;

use crate::plan::Goal;
use crate::written::Written;

/// How a replica is chosen for a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// By the fewest statements under way.
    Operations,
    /// By the time that it takes to answer, times the statements under way and this one.
    ResponseTime,
}

/// How busy a server is, as one worker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Statements that it was sent and has not answered.
    pub operations: u32,
    /// Statements that it has answered.
    pub answered: u64,
    /// What they took, if that is measured.
    pub response_time: ResponseTime,
}

/// The average time that a server takes to answer, in which later statements weigh more. It fades
/// while the server is not asked, so that one that was slow once is tried again. A statement weighs
/// by the time since the one before, so many at once do not weigh more than few.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ResponseTime {
    average_us: f64,
    /// When it was that.
    at: Instant,
}

/// In this time an average fades to a third: as long as a person waits for a server to recover.
const FADE_TIME: Duration = Duration::from_secs(10);

impl ResponseTime {
    /// A statement has taken this time.
    pub fn note(&mut self, took: Duration, now: Instant) {
        let took_us = took.as_secs_f64() * 1e6;
        self.average_us = match self.average_us == 0.0 {
            true => took_us,
            false => self.average_us(now) + took_us * (1.0 - self.rest(now)),
        };
        self.at = now;
    }

    /// The average, in microseconds; zero if nothing was measured.
    pub fn average_us(&self, now: Instant) -> f64 {
        self.average_us * self.rest(now)
    }

    /// What is left of the average since it was noted, as a part of it.
    fn rest(&self, now: Instant) -> f64 {
        let age = now.since(self.at).as_secs_f64() / FADE_TIME.as_secs_f64();
        (-age).exp()
    }
}

/// What a server is taken for: the least is taken, and of equals the one that has done less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// In a unit of the balance.
    work: u64,
    answered: u64,
}

impl Load {
    /// What the server is taken for.
    pub fn cost(&self, balance: Balance, now: Instant) -> Cost {
        let work = match balance {
            Balance::Operations => u64::from(self.operations),
            Balance::ResponseTime => {
                let each_us = self.response_time.average_us(now);
                f64_to_u64(each_us * f64::from(self.operations + 1))
            }
        };
        Cost {
            work,
            answered: self.answered,
        }
    }
}

/// The server for a statement. `None` if no server may be asked.
///
/// A read goes to the replica with the least cost that has what the session wrote, else to the
/// primary. Without a primary, what the session wrote is not waited for if it wrote nothing.
/// `without` is a server that has just failed. Servers without a cost are not the session's.
pub fn choose(
    goal: Goal,
    map: &ServerMap,
    written: &Written,
    lag_max: Option<Duration>,
    without: Option<ServerId>,
    cost: impl Fn(ServerId) -> Option<Cost>,
) -> Option<ServerId> {
    let is_left = |it: &&ServerState| Some(it.id) != without && cost(it.id).is_some();
    let primary = map.primary().filter(is_left).map(|it| it.id);
    let has_written = |it: &&ServerState| shows(map, it.id, written);
    let replica = || {
        map.replicas(lag_max)
            .filter(is_left)
            .filter(has_written)
            .filter_map(|it| Some((cost(it.id)?, it.id)))
            .min_by_key(|(cost, _)| *cost)
            .map(|(_, id)| id)
    };
    match goal {
        Goal::Held(server) => {
            let is_reachable = map.server(server).is_some_and(ServerState::is_reachable);
            is_reachable
                .then_some(server)
                .filter(|it| Some(*it) != without)
        }
        Goal::Primary => primary,
        Goal::PrimaryFirst => primary.or_else(replica),
        Goal::Replica => replica().or(primary),
    }
}

/// Whether a replica is known to have what a read has to see.
pub(crate) fn shows(map: &ServerMap, replica: ServerId, written: &Written) -> bool {
    match written {
        Written::Nothing => true,
        Written::UpTo(position) => map.has_applied(replica, position),
        Written::Somewhere => false,
    }
}

#[cfg(test)]
pub(crate) mod tests;
