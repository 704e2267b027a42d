//! The granted locks and the waiters of one name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use format::TxnId;
use stdx::planted::{Mistake, is_planted};

use crate::waiter::{Verdict, Waiter};
use crate::{LockExtent, LockKind, LockMode};

/// All locks and waiters of one name. Removed when empty.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Granted locks, in the order of granting.
    granted: Vec<Grant>,
    /// Waiting requests, in the order of asking, which is the order of their numbers.
    waiting: VecDeque<Arc<Waiter>>,
    /// Number of waiting insert intentions, which record locks do not block.
    intention_count: usize,
}

/// One owner's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The holder.
    pub(crate) owner: TxnId,
    /// Mode and extent.
    pub(crate) kind: LockKind,
}

impl Queue {
    /// True if no lock is granted and no request waits.
    pub(crate) fn is_empty(&self) -> bool {
        assert!(self.intention_count <= self.waiting.len());
        self.granted.is_empty() && self.waiting.is_empty()
    }

    /// True if `owner` has this lock or one that includes it.
    pub(crate) fn is_held(&self, owner: TxnId, kind: LockKind) -> bool {
        self.granted
            .iter()
            .any(|grant| grant.owner == owner && grant.kind.includes(kind))
    }

    /// The part of a lock that `owner` must still ask for. The holder of an entry asks for the gap
    /// alone, and so passes those who wait for the entry, as in InnoDB. Otherwise two owners would
    /// wait for each other though one has the entry.
    pub(crate) fn missing(&self, owner: TxnId, kind: LockKind) -> LockKind {
        let part = |extent| LockKind { extent, ..kind };
        let has_record = || self.is_held(owner, part(LockExtent::Record));
        match kind.extent {
            LockExtent::NextKey if !self.is_held(owner, kind) && has_record() => {
                part(LockExtent::Gap)
            }
            _ => kind,
        }
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

    /// Adds a request after all others.
    pub(crate) fn enqueue(&mut self, waiter: Arc<Waiter>) {
        let last = self.waiting.back().map_or(0, |last| last.sequence);
        assert!(last < waiter.sequence, "waiters stand in their order");
        assert!(
            waiter.verdict().is_none(),
            "a wait that is over joins no queue"
        );
        assert!(
            self.must_wait(waiter.owner, waiter.kind),
            "nobody waits for nothing (I2)"
        );
        self.intention_count += usize::from(!waiter.kind.covers_record());
        self.waiting.push_back(waiter);
    }

    /// The position of `waiter`; `None` if it does not wait any more.
    fn position(&self, waiter: &Arc<Waiter>) -> Option<usize> {
        let position = self
            .waiting
            .binary_search_by_key(&waiter.sequence, |other| other.sequence)
            .ok()?;
        Arc::ptr_eq(&self.waiting[position], waiter).then_some(position)
    }

    /// Removes the waiter at a position.
    fn take(&mut self, position: usize) -> Arc<Waiter> {
        let waiter = self
            .waiting
            .remove(position)
            .expect("somebody stands there");
        let intention = usize::from(!waiter.kind.covers_record());
        assert!(
            intention <= self.intention_count,
            "each intention was counted"
        );
        self.intention_count -= intention;
        waiter
    }

    /// The owners that block `waiter`, in queue order; empty if it does not wait any more.
    pub(crate) fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<TxnId> {
        self.blocking(waiter).map(|(lock, _)| lock.owner).collect()
    }

    /// The locks that block `waiter`, in queue order, and whether each is held; none if it does not
    /// wait any more.
    pub(crate) fn blocking(&self, waiter: &Arc<Waiter>) -> impl Iterator<Item = (Grant, bool)> {
        let position = self.position(waiter);
        let granted_count = position.map_or(0, |_| self.granted.len());
        let granted = self.granted.iter().take(granted_count);
        let ahead = self.waiting.iter().take(position.unwrap_or(0));
        let ahead = ahead.map(|other| Grant {
            owner: other.owner,
            kind: other.kind,
        });
        let (owner, kind) = (waiter.owner, waiter.kind);
        granted
            .map(|grant| (*grant, true))
            .chain(ahead.map(|lock| (lock, false)))
            .filter(move |(lock, _)| lock.owner != owner && kind.conflicts_with(lock.kind))
    }

    /// Those of its [`blockers`](Self::blockers) from which the search for a deadlock goes on. A
    /// waiter for the exclusive entry needs no waiter before it, only the holders: it waits for
    /// whatever those waiters wait for. A waiter for the shared entry needs the last conflicting
    /// waiter before it.
    pub(crate) fn ways(&self, waiter: &Arc<Waiter>) -> Vec<TxnId> {
        let Some(position) = self.position(waiter) else {
            return Vec::new();
        };
        let mut ways: Vec<TxnId> = self
            .granted
            .iter()
            .filter(|grant| grant.owner != waiter.owner && waiter.kind.conflicts_with(grant.kind))
            .map(|grant| grant.owner)
            .collect();
        let mut ahead = self
            .waiting
            .iter()
            .take(position)
            .rev()
            .filter(|other| other.owner != waiter.owner && waiter.kind.conflicts_with(other.kind))
            .map(|other| other.owner);
        if !waiter.kind.covers_record() {
            ways.extend(ahead);
        } else if waiter.kind.mode == LockMode::Shared {
            ways.extend(ahead.next());
        }
        ways
    }

    /// A waiter before `waiter` that blocks it, and that is itself blocked by a lock of
    /// `waiter`'s owner.
    pub(crate) fn mutual_waiter(&self, waiter: &Arc<Waiter>) -> Option<Arc<Waiter>> {
        let is_own = |grant: &&Grant| grant.owner == waiter.owner;
        let own: Vec<LockKind> = self
            .granted
            .iter()
            .filter(is_own)
            .map(|grant| grant.kind)
            .collect();
        if own.is_empty() {
            return None;
        }
        let ahead = self.waiting.iter().take(self.position(waiter)?);
        let found = ahead
            .filter(|other| waiter.kind.conflicts_with(other.kind))
            .find(|other| own.iter().any(|&held| other.kind.conflicts_with(held)));
        assert!(found.is_none_or(|other| waiter.stands_behind(other)));
        found.cloned()
    }

    /// Removes a waiter and gives it `verdict`, if it still waits. Grants what it blocked.
    pub(crate) fn dismiss(
        &mut self,
        waiter: &Arc<Waiter>,
        verdict: Verdict,
        wakers: &mut Vec<Waker>,
    ) -> bool {
        assert!(
            verdict != Verdict::Granted,
            "a wait that is dismissed gets nothing"
        );
        let Some(position) = self.position(waiter) else {
            return false;
        };
        self.take(position);
        wakers.extend(waiter.decide(verdict));
        self.grant_waiters(wakers);
        true
    }

    /// Removes every lock of `owner`. Returns true if there was one.
    pub(crate) fn release(&mut self, owner: TxnId, wakers: &mut Vec<Waker>) -> bool {
        let count_before = self.granted.len();
        self.granted.retain(|grant| grant.owner != owner);
        let released = self.granted.len() < count_before;
        if released {
            self.grant_waiters(wakers);
        }
        released
    }

    /// Removes one lock of `owner`.
    pub(crate) fn release_kind(&mut self, owner: TxnId, kind: LockKind, wakers: &mut Vec<Waker>) {
        let grant = Grant { owner, kind };
        if let Some(position) = self.granted.iter().position(|other| *other == grant) {
            self.granted.remove(position);
            assert!(!self.granted.contains(&grant), "a lock is granted once");
            self.grant_waiters(wakers);
        }
    }

    /// True if a request waits for the lock.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The granted locks.
    pub(crate) fn grants(&self) -> &[Grant] {
        &self.granted
    }

    /// Grants, in order, whatever no longer conflicts with what is granted or waits before it. A
    /// waiter for the exclusive entry that stays blocked also blocks all after it except insert
    /// intentions. So of a thousand waiters for a row only the next is checked.
    fn grant_waiters(&mut self, wakers: &mut Vec<Waker>) {
        let mut position = 0;
        while position < self.waiting.len() {
            let waiter = &self.waiting[position];
            let granted = self.granted.iter().map(|grant| (grant.owner, grant.kind));
            let ahead = self.waiting.iter().take(position);
            let is_blocked = granted
                .chain(ahead.map(|other| (other.owner, other.kind)))
                .any(|(owner, held)| owner != waiter.owner && waiter.kind.conflicts_with(held));
            if !is_blocked {
                let waiter = self.take(position);
                self.grant_waiter(&waiter, wakers);
                continue;
            }
            if waiter.kind.is_exclusive_record() && self.intention_count == 0 {
                return;
            }
            position += 1;
        }
    }

    /// An insert intention leaves no lock behind: after its wait it tries the insert again.
    fn grant_waiter(&mut self, waiter: &Waiter, wakers: &mut Vec<Waker>) {
        let leaves_lock = waiter.kind.covers_record() || waiter.kind.covers_gap();
        if leaves_lock && !self.is_held(waiter.owner, waiter.kind) {
            self.grant(waiter.owner, waiter.kind);
        }
        let woken = waiter.decide(Verdict::Granted);
        let is_first = wakers.is_empty();
        wakers.extend(woken.filter(|_| is_first || !is_planted(Mistake::ForgetsLockWaiters)));
    }
}
