//! The victim of a deadlock reports it to the log (`innodb_print_all_deadlocks`). So each report is
//! written once, where the error ends.

use store::{ClientId, ShownDeadlock};

use crate::connection::session::Session;
use crate::server::engine_status::deadlock_report;
use crate::statement::virtual_store::all_processes;

/// The last of these deadlocks whose victim was a transaction of `client`.
fn lost_by(deadlocks: &[ShownDeadlock], client: ClientId) -> Option<&ShownDeadlock> {
    let is_its = |it: &&ShownDeadlock| {
        let victim = it.members.get(it.victim);
        victim.is_some_and(|victim| victim.client == client)
    };
    deadlocks.iter().rev().find(is_its)
}

impl Session {
    /// The store has rolled the transaction back: writes the report of the deadlock that was the
    /// reason, if it is wanted.
    pub(crate) fn log_deadlock(&self) {
        let worker = &self.state.worker;
        let server = &worker.server;
        if !server.settings().is_on("innodb_print_all_deadlocks") {
            return;
        }
        let deadlocks = worker.store.deadlocks(self.state.logged_deadlock.get());
        let Some(lost) = lost_by(&deadlocks, ClientId(self.state.handle.id())) else {
            return;
        };
        self.state.logged_deadlock.set(lost.number);
        if let Some(left_out) = server.deadlock_log.admit(worker.steady_us()) {
            let report = deadlock_report(lost, &all_processes(&self.state));
            tracing::warn!(number = lost.number, left_out, %report, "a deadlock was broken");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_victim_finds_its_own_deadlock() {
        let lock = |transaction| store::ShownLock {
            id: String::new(),
            transaction,
            index: None,
            is_shared: false,
            extent: store::ShownExtent::Record,
            key: None,
            is_held: false,
        };
        let deadlock = |number, victim| ShownDeadlock {
            number,
            at_us: 0,
            members: [1, 2]
                .map(|id| store::ShownMember {
                    client: ClientId(id),
                    statement: None,
                    wanted: lock(id),
                    waited_us: 0,
                    blocker: None,
                    weight: 0,
                })
                .to_vec(),
            left_out_count: 0,
            victim,
        };
        let deadlocks = [deadlock(1, 0), deadlock(2, 0), deadlock(3, 1)];
        let number = |client| lost_by(&deadlocks, ClientId(client)).map(|it| it.number);
        assert_eq!((number(1), number(2), number(3)), (Some(2), Some(3), None));
    }
}
