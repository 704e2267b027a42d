//! A request in a queue, and the verdict that ends its wait.

use std::task::Waker;

use format::TxnId;
use store::ClientId;
use sync::Mutex;

use crate::footprint::Footprint;
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

/// A request for a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The owner that asks.
    pub(crate) owner: TxnId,
    /// Whose transaction it is.
    pub(crate) client: ClientId,
    /// The lock's name.
    pub(crate) name: &'a LockName,
    /// Mode and extent.
    pub(crate) kind: LockKind,
    /// The owner's work beside its locks.
    pub(crate) work: u64,
    /// The locks that it has.
    pub(crate) footprint: &'a Footprint,
    /// If false, fail rather than wait.
    pub(crate) may_wait: bool,
    /// Memory of the locks that the owner has asked for and got, in bytes.
    pub(crate) held_bytes: u64,
    /// The time, by the caller's clock.
    pub(crate) now_ns: u64,
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
    /// Whose transaction it is. Constant.
    pub(crate) client: ClientId,
    /// The owner's work beside its locks, when it began to wait. Constant.
    pub(crate) work: u64,
    /// The locks that it had then. Constant.
    pub(crate) footprint: Footprint,
    /// When the wait began, by the caller's clock. Constant.
    pub(crate) since_ns: u64,
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
    pub(crate) fn new(request: Request<'_>, sequence: u64) -> Self {
        Self {
            owner: request.owner,
            name: request.name.clone(),
            kind: request.kind,
            client: request.client,
            work: request.work,
            footprint: request.footprint.clone(),
            since_ns: request.now_ns,
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
