//! One transaction's locks: what it holds, and the one that it waits for.
//!
//! Belongs to the transaction's worker. Asking is restartable: [`OwnerLocks::acquire`] that answers
//! [`Acquired::Wait`] is called again with the same request once the future is ready, and tells
//! then what became of it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use format::TxnId;

use crate::table::{LockTable, Request, Requested};
use crate::waiter::{Verdict, Waiter};
use crate::{LockKind, LockName};

/// The locks of one transaction. Dropping it releases them.
#[derive(Debug)]
pub struct OwnerLocks {
    /// The table they are in. Constant.
    table: Arc<LockTable>,
    /// The transaction. Constant.
    owner: TxnId,
    /// Names with at least one granted lock, in the order of granting. One stands here as often as
    /// it was granted: shared and then exclusive, say.
    held: Vec<LockName>,
    /// Memory of these, in bytes.
    held_bytes: u64,
    /// The request that was answered by `Wait` last.
    pending: Option<Pending>,
}

/// A request that waits, or whose verdict has not been fetched.
#[derive(Debug)]
struct Pending {
    waiter: Arc<Waiter>,
    /// When the wait began, on the caller's clock.
    since_ns: u64,
}

/// The answer to a request that has not failed.
#[derive(Debug)]
pub enum Acquired {
    /// The owner has had the lock, or one that includes it.
    Held,
    /// The owner has the lock now; for an insert intention: nothing is in the way any more.
    Granted,
    /// Await it, at most as long as there is patience, then ask again.
    Wait(LockFuture),
}

/// Why a lock is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockError {
    /// It took longer than there was patience (1205).
    Timeout,
    /// The transaction is the victim of a deadlock and must roll back (1213).
    Deadlock,
    /// Somebody has it, and there was no patience at all.
    Busy,
    /// There is no memory for one more, and the transaction must roll back (1206).
    Full,
}

impl OwnerLocks {
    /// The locks of `owner`, none so far.
    pub fn new(table: Arc<LockTable>, owner: TxnId) -> Self {
        Self {
            table,
            owner,
            held: Vec::new(),
            held_bytes: 0,
            pending: None,
        }
    }

    /// The transaction that they belong to.
    pub fn owner(&self) -> TxnId {
        self.owner
    }

    /// Asks for a lock. `patience` is how long the owner may wait, from when it asked first; zero:
    /// it fails at once (`NOWAIT`, `SKIP LOCKED`, a lock wait timeout of 0). `weight` is how much a
    /// rollback of the owner would undo; `now_ns` is any steady clock.
    pub fn acquire(
        &mut self,
        name: &LockName,
        kind: LockKind,
        patience: Duration,
        weight: u64,
        now_ns: u64,
    ) -> Result<Acquired, LockError> {
        if let Some(answer) = self.answer_pending(name, kind, patience, now_ns)? {
            return Ok(answer);
        }
        let may_wait = !patience.is_zero();
        let request = Request {
            owner: self.owner,
            name,
            kind,
            weight,
            may_wait,
            held_bytes: self.held_bytes,
        };
        match self.table.request(request) {
            Requested::Held => Ok(Acquired::Held),
            Requested::Granted => {
                self.note_granted(name, kind);
                Ok(Acquired::Granted)
            }
            Requested::Waiting(waiter) => {
                let future = LockFuture {
                    waiter: Arc::clone(&waiter),
                };
                self.pending = Some(Pending {
                    waiter,
                    since_ns: now_ns,
                });
                Ok(Acquired::Wait(future))
            }
            Requested::Busy => Err(LockError::Busy),
            Requested::Full => Err(LockError::Full),
            Requested::Deadlock => Err(LockError::Deadlock),
        }
    }

    /// The answer that a pending request of this kind gives, or `None` if there is no such request.
    ///
    /// An operation that is repeated asks again for all the locks that it needs, in order. Those
    /// that it holds already leave the pending request as it is: it keeps its place in the queue,
    /// and its time. A request for any other lock gives it up: the operation was restarted and
    /// found another row in its way.
    fn answer_pending(
        &mut self,
        name: &LockName,
        kind: LockKind,
        patience: Duration,
        now_ns: u64,
    ) -> Result<Option<Acquired>, LockError> {
        let Some(pending) = self.pending.take() else {
            return Ok(None);
        };
        let is_same = pending.waiter.name == *name && pending.waiter.kind == kind;
        if !is_same && self.table.is_held(self.owner, name, kind) {
            self.pending = Some(pending);
            return Ok(Some(Acquired::Held));
        }
        if !is_same {
            return self.settle(&pending.waiter).map(|()| None);
        }
        if pending.waiter.verdict().is_none() && !is_over(&pending, patience, now_ns) {
            let future = LockFuture {
                waiter: Arc::clone(&pending.waiter),
            };
            self.pending = Some(pending);
            return Ok(Some(Acquired::Wait(future)));
        }
        match self.verdict_of(&pending.waiter) {
            Verdict::Granted => Ok(Some(Acquired::Granted)),
            Verdict::Deadlock => Err(LockError::Deadlock),
            Verdict::Cancelled => Err(LockError::Timeout),
        }
    }

    /// Ends a wait, whatever its state, and notes the lock if it came with it.
    fn verdict_of(&mut self, waiter: &Arc<Waiter>) -> Verdict {
        let verdict = self.table.cancel(waiter);
        if verdict == Verdict::Granted {
            self.note_granted(&waiter.name, waiter.kind);
        }
        verdict
    }

    fn settle(&mut self, waiter: &Arc<Waiter>) -> Result<(), LockError> {
        match self.verdict_of(waiter) {
            Verdict::Granted | Verdict::Cancelled => Ok(()),
            Verdict::Deadlock => Err(LockError::Deadlock),
        }
    }

    fn note_granted(&mut self, name: &LockName, kind: LockKind) {
        if kind.covers_record() || kind.covers_gap() {
            self.held_bytes += self.table.charge(name);
            self.held.push(name.clone());
        }
    }

    /// Gives up a wait, for an owner that is killed or whose statement ends otherwise. A deadlock
    /// verdict that came meanwhile is forgotten with it: the cycle is open once the wait is over.
    pub fn cancel_wait(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.verdict_of(&pending.waiter);
        }
    }

    /// Releases one lock before the transaction's end: a row that did not match, under READ
    /// COMMITTED. Must not be used for a row that the owner has changed, nor for a lock that was
    /// held before ([`Acquired::Held`]).
    pub fn release_one(&mut self, name: &LockName) {
        if let Some(position) = self.held.iter().rposition(|held| held == name) {
            self.held.swap_remove(position);
            self.held_bytes -= self.table.discharge(std::iter::once(name));
            if !self.held.contains(name) {
                self.table.release(self.owner, std::iter::once(name));
            }
        }
    }

    /// How many locks were granted; not exact where a name was locked twice.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// Releases everything. The owner must have been marked as ended for `convert_implicit`.
    pub fn release_all(&mut self) {
        let is_more = self.release_some(usize::MAX);
        assert!(!is_more, "nobody holds so many");
    }

    /// The same for at most so many of the locks that it has asked for; true if there are more.
    pub fn release_some(&mut self, count: usize) -> bool {
        self.cancel_wait();
        let rest = self.held.len().saturating_sub(count);
        let (_, released) = self.held.split_at(rest);
        self.table.release(self.owner, released.iter());
        self.held_bytes -= self.table.discharge(released.iter());
        self.held.truncate(rest);
        if rest == 0 {
            assert_eq!(self.held_bytes, 0, "who holds nothing has no memory");
            self.table.finish(self.owner);
        }
        rest != 0
    }
}

impl Drop for OwnerLocks {
    fn drop(&mut self) {
        self.release_all();
    }
}

fn is_over(pending: &Pending, patience: Duration, now_ns: u64) -> bool {
    patience <= Duration::from_nanos(now_ns.saturating_sub(pending.since_ns))
}

/// Ready when the wait has its verdict. Dropping it does not give up the wait: that is the owner's.
pub struct LockFuture {
    waiter: Arc<Waiter>,
}

impl Future for LockFuture {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.waiter.verdict_or_wake(context.waker()) {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    }
}

impl fmt::Debug for LockFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockFuture")
            .field("name", &self.waiter.name)
            .finish_non_exhaustive()
    }
}
