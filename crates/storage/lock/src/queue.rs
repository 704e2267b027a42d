//! The granted locks and the waiters of one name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use format::TxnId;

use crate::LockKind;
use crate::waiter::{Verdict, Waiter};

/// Everything about one name. Removed when empty.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Who has it, in the order of granting.
    granted: Vec<Grant>,
    /// Who wants it, in the order of asking.
    waiting: VecDeque<Arc<Waiter>>,
}

/// One owner's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Who has it.
    pub(crate) owner: TxnId,
    /// What.
    pub(crate) kind: LockKind,
}

impl Queue {
    /// True if nobody has or wants the lock.
    pub(crate) fn is_empty(&self) -> bool {
        self.granted.is_empty() && self.waiting.is_empty()
    }

    /// True if `owner` has this lock or one that includes it.
    pub(crate) fn is_held(&self, owner: TxnId, kind: LockKind) -> bool {
        self.granted
            .iter()
            .any(|grant| grant.owner == owner && grant.kind.includes(kind))
    }

    /// True if a new request must wait (I2).
    pub(crate) fn must_wait(&self, owner: TxnId, kind: LockKind) -> bool {
        let granted = self.granted.iter().map(|grant| (grant.owner, grant.kind));
        let waiting = self
            .waiting
            .iter()
            .map(|waiter| (waiter.owner, waiter.kind));
        granted
            .chain(waiting)
            .any(|(other, held)| other != owner && kind.conflicts_with(held))
    }

    /// Notes a lock as held.
    pub(crate) fn grant(&mut self, owner: TxnId, kind: LockKind) {
        assert!(!self.is_held(owner, kind), "a lock is granted once");
        self.granted.push(Grant { owner, kind });
    }

    /// Adds a request behind all others.
    pub(crate) fn enqueue(&mut self, waiter: Arc<Waiter>) {
        self.waiting.push_back(waiter);
    }

    /// The owners for whom `waiter` waits, in queue order; empty if it waits no longer.
    pub(crate) fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<TxnId> {
        let Some(position) = self
            .waiting
            .iter()
            .position(|other| Arc::ptr_eq(other, waiter))
        else {
            return Vec::new();
        };
        let granted = self.granted.iter().map(|grant| (grant.owner, grant.kind));
        let ahead = self
            .waiting
            .iter()
            .take(position)
            .map(|other| (other.owner, other.kind));
        granted
            .chain(ahead)
            .filter(|&(owner, held)| owner != waiter.owner && waiter.kind.conflicts_with(held))
            .map(|(owner, _)| owner)
            .collect()
    }

    /// Takes a waiter out and gives it `verdict`, if it still waits. What it held up may go on.
    pub(crate) fn dismiss(
        &mut self,
        waiter: &Arc<Waiter>,
        verdict: Verdict,
        wakers: &mut Vec<Waker>,
    ) -> bool {
        let Some(position) = self
            .waiting
            .iter()
            .position(|other| Arc::ptr_eq(other, waiter))
        else {
            return false;
        };
        self.waiting.remove(position);
        wakers.extend(waiter.decide(verdict));
        self.grant_waiters(wakers);
        true
    }

    /// Removes every lock of `owner`; true if there was one.
    pub(crate) fn release(&mut self, owner: TxnId, wakers: &mut Vec<Waker>) -> bool {
        let count_before = self.granted.len();
        self.granted.retain(|grant| grant.owner != owner);
        let released = self.granted.len() < count_before;
        if released {
            self.grant_waiters(wakers);
        }
        released
    }

    /// Who has the lock.
    pub(crate) fn grants(&self) -> &[Grant] {
        &self.granted
    }

    /// Grants, in order, whatever no longer conflicts with what is granted or waits before it.
    fn grant_waiters(&mut self, wakers: &mut Vec<Waker>) {
        let mut still_waiting: VecDeque<Arc<Waiter>> = VecDeque::new();
        for waiter in std::mem::take(&mut self.waiting) {
            let granted = self.granted.iter().map(|grant| (grant.owner, grant.kind));
            let ahead = still_waiting.iter().map(|other| (other.owner, other.kind));
            let blocked = granted
                .chain(ahead)
                .any(|(owner, held)| owner != waiter.owner && waiter.kind.conflicts_with(held));
            if blocked {
                still_waiting.push_back(waiter);
            } else {
                self.grant_waiter(&waiter, wakers);
            }
        }
        self.waiting = still_waiting;
    }

    /// An insert intention leaves no lock behind: it has waited, and tries its insert again.
    fn grant_waiter(&mut self, waiter: &Waiter, wakers: &mut Vec<Waker>) {
        let leaves_lock = waiter.kind.covers_record() || waiter.kind.covers_gap();
        if leaves_lock && !self.is_held(waiter.owner, waiter.kind) {
            self.grant(waiter.owner, waiter.kind);
        }
        wakers.extend(waiter.decide(Verdict::Granted));
    }
}
