//! A request in a queue, and the verdict that ends its wait.

use std::task::Waker;

use format::TxnId;
use sync::Mutex;

use crate::{LockKind, LockName};

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The lock is held now.
    Granted,
    /// The owner was chosen to break a deadlock; it must roll back.
    Deadlock,
    /// The owner cancelled: time-out, kill, or its request has changed.
    Cancelled,
}

/// A request that waits in the queue of its lock.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// The owner that waits. Constant.
    pub(crate) owner: TxnId,
    /// The lock's name. Constant.
    pub(crate) name: LockName,
    /// Mode and extent. Constant.
    pub(crate) kind: LockKind,
    /// Changes that a rollback of the owner would undo, when it began to wait; the cheapest
    /// member of a cycle is its victim. Constant.
    pub(crate) weight: u64,
    /// Grows with each wait. So it shows which of two waits began later, and which stands first in
    /// a queue. Constant.
    pub(crate) sequence: u64,
    /// The verdict, once there is one, and the waker. Written under the shard's mutex (I3). Its own
    /// mutex is for the owner, which polls without the shard's.
    ending: Mutex<Ending>,
}

/// The changing part of a waiter.
#[derive(Debug, Default)]
struct Ending {
    /// Given once.
    verdict: Option<Verdict>,
    /// The task that last polled.
    waker: Option<Waker>,
}

impl Waiter {
    /// A request that has just joined its queue.
    pub(crate) fn new(
        owner: TxnId,
        name: LockName,
        kind: LockKind,
        weight: u64,
        sequence: u64,
    ) -> Self {
        Self {
            owner,
            name,
            kind,
            weight,
            sequence,
            ending: Mutex::new(Ending::default()),
        }
    }

    /// True if it waits for `other`, which stands before it in the same queue.
    pub(crate) fn stands_behind(&self, other: &Self) -> bool {
        other.sequence < self.sequence
            && self.name == other.name
            && self.kind.conflicts_with(other.kind)
    }

    /// The verdict, or `None` while it waits.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        self.ending.lock().verdict
    }

    /// Returns the verdict, or `None` after storing the waker for it.
    pub(crate) fn verdict_or_wake(&self, waker: &Waker) -> Option<Verdict> {
        let mut ending = self.ending.lock();
        if ending.verdict.is_none() {
            ending.waker = Some(waker.clone());
        }
        ending.verdict
    }

    /// Ends the wait. Call under the shard's mutex; wake what is returned after releasing it.
    ///
    /// # Panics
    /// If there is a verdict already: only waiters without one are in a queue.
    pub(crate) fn decide(&self, verdict: Verdict) -> Option<Waker> {
        let mut ending = self.ending.lock();
        assert!(ending.verdict.is_none(), "a wait ends once");
        ending.verdict = Some(verdict);
        ending.waker.take()
    }
}
