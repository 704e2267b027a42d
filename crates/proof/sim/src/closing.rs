//! The orderly end of a round: the sessions begin nothing more, and each must come to its end.
//!
//! Locks, log, pages and turns are waited for by tasks that somebody has to wake. A task that was
//! forgotten waits for ever, and so may all that wait for its locks. Some waits end by themselves
//! after a time (a lock wait after five seconds), so the sessions have less than that.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use env::Clock as _;

use store::Store as _;

use crate::model::{History, Round};
use crate::world::{Database, World};

/// Simulated time in which all sessions come to their ends. A page that could not be read is read
/// again after a second, by a rollback that others wait for.
const CLOSING_MAX: Duration = Duration::from_secs(4);

/// A session that has not ended.
#[derive(Debug)]
pub(crate) struct Running {
    history: Rc<RefCell<History>>,
}

impl Running {
    /// Counts a session until this is dropped.
    pub(crate) fn new(history: &Rc<RefCell<History>>) -> Self {
        history.borrow_mut().round.running_count += 1;
        Self {
            history: Rc::clone(history),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut history = self.history.borrow_mut();
        assert!(
            0 < history.round.running_count,
            "each session was counted once"
        );
        history.round.running_count -= 1;
    }
}

/// Lets the sessions end. The error tells that some do not.
pub(crate) fn close(world: &World, history: &Rc<RefCell<History>>) -> Result<(), String> {
    {
        let mut history = history.borrow_mut();
        history.round.is_closing = true;
        history.schema.borrow_mut().is_over = true;
    }
    let clock = world.executor.clock();
    let began = clock.now();
    let is_over = || {
        let history = history.borrow();
        let round = &history.round;
        let is_done = round.database.is_some() && round.running_count == 0;
        is_done || may_hang(round) || history.fault.is_some()
    };
    while !is_over() {
        let is_late = CLOSING_MAX < clock.now().since(began);
        if is_late || !world.executor.step() {
            return Err(describe(&history.borrow().round));
        }
    }
    let mut history = history.borrow_mut();
    history.tally.closings += u64::from(!may_hang(&history.round));
    Ok(())
}

/// Whether sessions wait with reason. Without its log a server ends, and nothing is written.
fn may_hang(round: &Round) -> bool {
    let has_log_failed = |it: &Database| it.has_log_failed();
    round.may_hang || round.database.as_ref().is_some_and(has_log_failed)
}

/// What is known of sessions that do not end.
fn describe(round: &Round) -> String {
    let count = round.running_count;
    let activity = round.database.as_ref().map(|it| it.engine.activity());
    format!("{count} sessions wait for ever: {activity:?}")
}
