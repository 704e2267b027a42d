//! The gate of admission, before BEGIN or the first statement of a transaction.
//!
//! It is asked before the statement takes any lock, also those of definitions. So a transaction
//! that waits for entry holds nothing that others could want.
//!
//! These are not asked:
//!
//! * a transaction that is admitted already, whatever became of the limit;
//! * a read that is its own transaction and locks no rows: it is in no one's way, and a limit would
//!   cost it more than it does;
//! * a session that holds what others may wait for: locked tables, named locks, definitions; and a
//!   statement within another one;
//! * what uses no tables: SHOW, KILL, SET, and the server's own tasks.
//!
//! Administrators wait as others do, but a few of them may enter above the limit.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use admission::controller::PERIOD_US;
use admission::{Debt, Entry, Visitor};
use catalog::Privilege;
use clients::wait::{Either, first_of};
use planner::Plan;
use store::{Store, WaitReason};

use crate::connection::reply::Stop;
use crate::connection::session::Session;
use crate::statement::statement_run::{Part, StatementRun};
use crate::worker::Worker;

impl Session {
    /// Whether a plan has to pass the gate before it may use the store.
    pub(crate) fn needs_admission(&mut self, plan: &Plan, run: &StatementRun) -> bool {
        if self.transaction.is_admitted() || self.state.worker.gate.is_open() {
            return false;
        }
        let uses_tables = !plan.tables.is_empty() || !plan.functions.is_empty();
        uses_tables && !self.escapes_read(plan) && run.part == Part::Whole && self.is_at_gate()
    }

    /// Whether the session's next use of the store has to pass the gate.
    pub(crate) fn is_at_gate(&mut self) -> bool {
        if self.transaction.is_admitted() || self.state.worker.gate.is_open() {
            return false;
        }
        let holds = self.locked.are_on()
            || self.state.named_lock_count() != 0
            || self.transaction.held_tables().next().is_some()
            || self.programs.is_in_function();
        if holds {
            self.state.worker.gate.note_escape();
            self.transaction.admit(None);
        }
        !holds
    }

    /// Whether a plan is a read that is its own transaction and locks no rows.
    fn escapes_read(&self, plan: &Plan) -> bool {
        let escapes = !plan.is_write()
            && !plan.locks_rows
            && plan.functions.is_empty()
            && !self.transaction.is_begun()
            && self.state.variables.borrow().active().autocommit;
        if escapes {
            self.state.worker.gate.note_escape();
        }
        escapes
    }

    /// Passes the gate. KILL, the statement's time and the client's disconnect end the wait.
    pub(crate) async fn admit(&mut self) -> Result<(), Stop> {
        let worker = Rc::clone(&self.state.worker);
        let entry = worker.gate.enter(|| self.visitor(), || worker.steady_us());
        if worker.gate.begin_ticking() {
            runtime::spawn_background(tick(Rc::clone(&worker)));
        }
        let pass = match entry {
            Entry::Free => None,
            Entry::Inside(pass) => Some(pass),
            Entry::Queued(queued) => {
                let entered = queued.entered(|| worker.steady_us());
                // Boxed: most statements never wait here, and all would be larger for it.
                let waited = Box::pin(self.wait_in_time(WaitReason::Admission, entered));
                Some(waited.await?)
            }
        };
        self.transaction.admit(pass);
        Ok(())
    }

    fn visitor(&self) -> Visitor {
        let global = self.state.privileges().global();
        if global.has(Privilege::ConnectionAdmin) {
            Visitor::Administrator
        } else {
            Visitor::Client
        }
    }
}

/// Tells a worker's gate the time, each period, and when it has got quota, until it needs that no
/// more.
async fn tick(worker: Rc<Worker>) {
    loop {
        let mut period = pin!(runtime::sleep(Duration::from_micros(PERIOD_US)));
        while let Either::Right(()) = first_of(period.as_mut(), pin!(worker.gate.called())).await {
            worker.gate.follow();
        }
        let debt = share_of_debt(&*worker.store);
        if !worker.gate.tick(worker.steady_us(), debt) {
            return;
        }
    }
}

/// The store's debt as the controller takes it. Purge has no room that could be full.
fn share_of_debt(store: &dyn Store) -> Debt {
    let debt = store.debt();
    Debt {
        log: stdx::u64_to_f64(debt.log_percent) / 100.0,
        dirty: stdx::u64_to_f64(debt.dirty_percent) / 100.0,
        purge: 0.0,
    }
}
