//! [`DatabaseHold`]: a database that a statement keeps from being dropped.
//!
//! It outlives the transactions that the statement commits on its way, so it is no hold of theirs.
//! The session notes it beside those: who waits for a table meanwhile says so, and a DROP DATABASE
//! that waits for this session, while this session waits for it, is found to be a deadlock.

use std::rc::Rc;

use crate::metadata::WeakHold;
use crate::state::State;

/// A database that is kept from being dropped until this is.
pub(crate) struct DatabaseHold {
    hold: WeakHold,
    /// Where it is noted.
    state: Rc<State>,
}

impl DatabaseHold {
    /// Notes what the session has taken.
    pub(crate) fn new(hold: WeakHold, state: Rc<State>) -> Self {
        state.held_databases.borrow_mut().push(hold.table());
        Self { hold, state }
    }
}

impl Drop for DatabaseHold {
    fn drop(&mut self) {
        let mut noted = self.state.held_databases.borrow_mut();
        let own = self.hold.table();
        let at = noted.iter().position(|id| *id == own);
        noted.swap_remove(at.expect("a hold is noted as long as it is there"));
    }
}
