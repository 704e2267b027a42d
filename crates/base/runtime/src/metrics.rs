//! What the event loops show of themselves.

use std::sync::Arc;

use metrics::{Metric, Registry, Unit};

use crate::shared::{Mailbox, Shared};

const TURNS: Metric = Metric::counter(
    "Worker_turns",
    Unit::Count,
    "Turns of all workers' loops: each asks the kernel once.",
);
const POLLS: Metric = Metric::counter(
    "Worker_polls",
    Unit::Count,
    "Times that a worker has run a task until it waited or gave way.",
);
const REFUSED: Metric = Metric::counter(
    "Connection_errors_accept",
    Unit::Count,
    "Clients refused because the process had no file descriptor for them.",
);
const CONNECTIONS: Metric = Metric::gauge(
    "Worker_connections",
    Unit::Count,
    "Connections on all workers, also those that are logging in.",
);

/// What a worker's loop has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopNumbers {
    /// Turns: each asks the kernel once.
    pub turns: u64,
    /// Times that it has run a task.
    pub polls: u64,
}

impl Shared {
    /// What a worker's loop has done since its start.
    pub(crate) fn loop_numbers(&self, worker_index: usize) -> LoopNumbers {
        let counters = self.mailboxes.get(worker_index).map(|it| &it.counters);
        counters.map_or_else(LoopNumbers::default, |it| LoopNumbers {
            turns: it.turns.value(),
            polls: it.polls.value(),
        })
    }

    /// Adds the numbers of all workers' loops.
    pub(crate) fn register_metrics(self: &Arc<Self>, registry: &mut Registry) {
        registry.add_each(
            self,
            &[
                (TURNS, |shared| shared.sum(|it| it.counters.turns.value())),
                (POLLS, |shared| shared.sum(|it| it.counters.polls.value())),
                (REFUSED, |shared| {
                    shared.sum(|it| it.counters.refused.value())
                }),
                (CONNECTIONS, |shared| shared.sum(Mailbox::connection_count)),
            ],
        );
    }

    fn sum(&self, read: impl Fn(&Mailbox) -> u64) -> u64 {
        self.mailboxes.iter().map(|it| read(it)).sum()
    }
}
