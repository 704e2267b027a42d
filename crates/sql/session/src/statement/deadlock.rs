//! The victim of a deadlock reports it, where the error ends: for SHOW ENGINE INNODB STATUS, and
//! once for the log (`innodb_print_all_deadlocks`). Then its table and clients still have names.

use errcode::ER_LOCK_DEADLOCK;
use store::{ClientId, ShownDeadlock};

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::server::engine_status::deadlock_report;
use crate::statement::virtual_store::process;

/// The last of these deadlocks whose victim was a transaction of `client`.
fn lost_by(deadlocks: &[ShownDeadlock], client: ClientId) -> Option<&ShownDeadlock> {
    let is_its = |it: &&ShownDeadlock| {
        let victim = it.members.get(it.victim);
        victim.is_some_and(|victim| victim.client == client)
    };
    deadlocks.iter().rev().find(is_its)
}

impl Session {
    /// The store has rolled the transaction back: reports the deadlock, if one was the reason and
    /// there are not too many.
    pub(crate) fn report_deadlock(&self, stop: &Stop) {
        let is_deadlock = matches!(stop, Stop::Error(error) if error.code == ER_LOCK_DEADLOCK);
        if !is_deadlock {
            return;
        }
        let worker = &self.state.worker;
        let server = &worker.server;
        let Some(left_out) = server.deadlock_reports.admit(worker.steady_us()) else {
            return;
        };
        let deadlocks = worker.store.deadlocks(self.state.reported_deadlock.get());
        let Some(lost) = lost_by(&deadlocks, ClientId(self.state.handle.id())) else {
            return;
        };
        let number = lost.number;
        self.state.reported_deadlock.set(number);
        let report = self.shown_deadlock(lost);
        if server.settings().is_on("innodb_print_all_deadlocks") {
            tracing::warn!(number, left_out, %report, "a deadlock was broken");
        }
        server.deadlock_reports.keep(number, report);
    }

    /// The report of the last deadlock. If its victim did not make one, it is made now, with what
    /// still has a name.
    pub(crate) fn last_deadlock_report(&self) -> Option<String> {
        let worker = &self.state.worker;
        let deadlocks = worker.store.deadlocks(0);
        let last = deadlocks.last()?;
        let kept = worker.server.deadlock_reports.of(last.number);
        Some(kept.unwrap_or_else(|| self.shown_deadlock(last)))
    }

    fn shown_deadlock(&self, deadlock: &ShownDeadlock) -> String {
        let worker = &self.state.worker;
        deadlock_report(deadlock, |client| {
            let handle = worker.server.clients.registry().find(client.0)?;
            Some(process(&handle, worker.steady_us()))
        })
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
