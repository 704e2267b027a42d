//! A session that waits, as the sessions of other workers see it.
//!
//! ```text
//!            promise               decide
//! Waiting ------------> Promised ----------> Decided --- poll, give_up --> Over
//!    |  \------------------ decide -------------^                           ^
//!    +---------------------- give_up, also when Promised -------------------+
//! ```
//!
//! (W1) `promise` and `decide` are called under the server's mutex, by whoever took the waiter out
//! of the queue, and so is `give_up`. A waiter that was in the queue until then has not given up.
//! (W2) A verdict that comes after the waiter has given up returns to its maker, who serves the
//! next one.

use std::task::Waker;

use sync::Mutex;

use crate::state::Grant;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Waiter<C> {
    /// The worker of the session. Constant.
    pub(crate) worker: usize,
    /// Names the wait on its worker. Constant.
    pub(crate) ticket: u64,
    stage: Mutex<Stage<C>>,
}

#[derive(Debug)]
enum Stage<C> {
    Waiting(Option<Waker>),
    /// A connection is on its way from another worker.
    Promised(Option<Waker>),
    Decided(Verdict<C>),
    Over,
}

/// How a wait ended.
#[derive(Debug)]
pub(crate) enum Verdict<C> {
    /// The session has a slot.
    Granted(Grant<Place<C>>),
    /// The session was chosen to break a deadlock.
    Victim,
    /// The server was removed.
    Removed,
}

/// Where a granted connection is.
#[derive(Debug)]
pub(crate) enum Place<C> {
    /// With the session's worker, under the wait's ticket.
    Own,
    /// Here, moved from another worker or taken from the shared stacks.
    Moved(C),
}

impl<C> Waiter<C> {
    pub(crate) fn new(worker: usize, ticket: u64) -> Self {
        Self {
            worker,
            ticket,
            stage: Mutex::new(Stage::Waiting(None)),
        }
    }

    /// Whether the session still waits, without a connection on its way.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Waiting(_))
    }

    /// A connection is on its way (W1).
    pub(crate) fn promise(&self) {
        let mut stage = self.stage.lock();
        let Stage::Waiting(waker) = &mut *stage else {
            unreachable!("only one that waits is promised a connection");
        };
        let waker = waker.take();
        *stage = Stage::Promised(waker);
    }

    /// Ends the wait (W1). Returns the waker to call after the server's mutex was released, or the
    /// verdict if the session has given up (W2).
    pub(crate) fn decide(&self, verdict: Verdict<C>) -> Result<Option<Waker>, Verdict<C>> {
        let mut stage = self.stage.lock();
        match &mut *stage {
            Stage::Waiting(waker) | Stage::Promised(waker) => {
                let waker = waker.take();
                *stage = Stage::Decided(verdict);
                Ok(waker)
            }
            Stage::Over => Err(verdict),
            Stage::Decided(_) => unreachable!("a wait ends once"),
        }
    }

    /// Takes the verdict, or stores the waker for it.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Verdict<C>> {
        let mut stage = self.stage.lock();
        match &mut *stage {
            Stage::Waiting(stored) | Stage::Promised(stored) => {
                if !stored.as_ref().is_some_and(|it| it.will_wake(waker)) {
                    *stored = Some(waker.clone());
                }
                None
            }
            Stage::Decided(_) => match std::mem::replace(&mut *stage, Stage::Over) {
                Stage::Decided(verdict) => Some(verdict),
                Stage::Waiting(_) | Stage::Promised(_) | Stage::Over => None,
            },
            Stage::Over => None,
        }
    }

    /// The session waits no more (W1). Returns a verdict that it has not taken, or its waker. With
    /// that a task may go, so it is dropped after the server's mutex was released.
    pub(crate) fn give_up(&self) -> (Option<Verdict<C>>, Option<Waker>) {
        match std::mem::replace(&mut *self.stage.lock(), Stage::Over) {
            Stage::Decided(verdict) => (Some(verdict), None),
            Stage::Waiting(waker) | Stage::Promised(waker) => (None, waker),
            Stage::Over => unreachable!("a wait ends once"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_taken_once() {
        let waiter = Waiter::<()>::new(0, 0);
        assert!(waiter.poll(Waker::noop()).is_none());
        assert!(waiter.is_waiting());
        let waker = waiter.decide(Verdict::Victim).unwrap();
        assert!(waker.is_some());
        assert!(!waiter.is_waiting());
        let taken = waiter.poll(Waker::noop());
        assert!(matches!(taken, Some(Verdict::Victim)));
        assert!(waiter.poll(Waker::noop()).is_none());
    }

    #[test]
    fn a_verdict_after_the_end_returns_to_its_maker() {
        let waiter = Waiter::<()>::new(0, 0);
        waiter.promise();
        assert!(!waiter.is_waiting());
        assert!(matches!(waiter.give_up(), (None, None)));
        let refused = waiter.decide(Verdict::Removed);
        assert!(matches!(refused, Err(Verdict::Removed)));
    }

    #[test]
    fn a_verdict_that_was_not_taken_is_given_back() {
        let waiter = Waiter::<()>::new(0, 0);
        assert!(waiter.decide(Verdict::Removed).unwrap().is_none());
        let given_up = waiter.give_up();
        assert!(matches!(given_up, (Some(Verdict::Removed), None)));
    }
}
