//! The granted locks and the waiters of one name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use format::TxnId;
use smallvec::SmallVec;
use stdx::planted::{Mistake, is_planted};

use crate::waiter::{Verdict, Waiter};
use crate::{LockExtent, LockKind, LockMode};

/// All locks and waiters of one name. Removed when empty. Most have one lock and no waiter, and are
/// made and removed once for each lock, so these need no memory of their own.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Granted locks, in the order of granting.
    granted: SmallVec<[Grant; 1]>,
    /// Waiting requests, if there ever were any.
    waits: Option<Box<Waits>>,
}

/// The requests that wait for a name.
#[derive(Debug, Default)]
struct Waits {
    /// In the order of asking, which is the order of their numbers.
    waiting: VecDeque<Arc<Waiter>>,
    /// Number of waiting insert intentions, which record locks do not block.
    intention_count: usize,
}

/// The waiters of a queue that has none.
static EMPTY: VecDeque<Arc<Waiter>> = VecDeque::new();

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
        self.granted.is_empty() && !self.is_waited_for()
    }

    /// The waiting requests, in their order.
    fn waiting(&self) -> impl DoubleEndedIterator<Item = &Arc<Waiter>> + ExactSizeIterator {
        let waits = self.waits.as_deref();
        let waiting = waits.map_or(&EMPTY, |waits| &waits.waiting);
        waiting.iter()
    }

    /// True if `owner` has this lock or one that includes it. A compact lock may be entered for a
    /// name that it only shares a print with. Another's lock that conflicts shows that, and then it
    /// is not held.
    pub(crate) fn is_held(&self, owner: TxnId, kind: LockKind) -> bool {
        let conflicts = |grant: &Grant| grant.owner != owner && kind.conflicts_with(grant.kind);
        self.has_including(owner, kind) && !self.granted.iter().any(conflicts)
    }

    /// True if this lock, or one that includes it, stands here for `owner`.
    pub(crate) fn has_including(&self, owner: TxnId, kind: LockKind) -> bool {
        let includes = |grant: &Grant| grant.owner == owner && grant.kind.includes(kind);
        self.granted.iter().any(includes)
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
        let waiting = self.waiting().map(|waiter| (waiter.owner, waiter.kind));
        granted
            .chain(waiting)
            .any(|(other, held)| other != owner && kind.conflicts_with(held))
    }

    /// Notes a lock as held.
    pub(crate) fn grant(&mut self, owner: TxnId, kind: LockKind) {
        assert!(!self.has_including(owner, kind), "a lock is granted once");
        self.granted.push(Grant { owner, kind });
    }

    /// Notes a compact lock as held. Its owner may have a stronger one, which may go earlier.
    pub(crate) fn enter(&mut self, grant: Grant) {
        assert!(!self.has(grant), "a lock is granted once");
        self.granted.push(grant);
    }

    /// Adds a request after all others.
    pub(crate) fn enqueue(&mut self, waiter: Arc<Waiter>) {
        let last = self.waiting().next_back();
        let last = last.map_or(0, |last| last.sequence);
        assert!(last < waiter.sequence, "waiters stand in their order");
        assert!(
            waiter.verdict().is_none(),
            "a wait that is over joins no queue"
        );
        assert!(
            self.must_wait(waiter.owner, waiter.kind),
            "nobody waits for nothing (I2)"
        );
        let waits = self.waits.get_or_insert_default();
        waits.intention_count += usize::from(!waiter.kind.covers_record());
        waits.waiting.push_back(waiter);
    }

    /// The position of `waiter`; `None` if it does not wait any more.
    fn position(&self, waiter: &Arc<Waiter>) -> Option<usize> {
        let waiting = &self.waits.as_deref()?.waiting;
        let position = waiting
            .binary_search_by_key(&waiter.sequence, |other| other.sequence)
            .ok()?;
        Arc::ptr_eq(&waiting[position], waiter).then_some(position)
    }

    /// Removes the waiter at a position.
    fn take(&mut self, position: usize) -> Arc<Waiter> {
        let waits = self.waits.as_deref_mut();
        let waits = waits.expect("somebody stands there");
        let waiter = waits.waiting.remove(position);
        let waiter = waiter.expect("somebody stands there");
        let intention = usize::from(!waiter.kind.covers_record());
        assert!(
            intention <= waits.intention_count,
            "each intention was counted"
        );
        waits.intention_count -= intention;
        assert!(waits.intention_count <= waits.waiting.len());
        waiter
    }

    /// The owners that block `waiter`, in the order of [`blocking`](Self::blocking).
    pub(crate) fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<TxnId> {
        self.blocking(waiter).map(|(lock, _)| lock.owner).collect()
    }

    /// The locks that block `waiter`, and whether each is held; empty if it does not wait any more.
    /// Those that are held come first, in the order of granting. Then come those that are waited
    /// for, the nearest first, as MariaDB goes through them.
    pub(crate) fn blocking(&self, waiter: &Arc<Waiter>) -> impl Iterator<Item = (Grant, bool)> {
        let position = self.position(waiter);
        let granted_count = position.map_or(0, |_| self.granted.len());
        let granted = self.granted.iter().take(granted_count);
        let ahead = self.waiting().take(position.unwrap_or(0)).rev();
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
            .waiting()
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
        let ahead = self.waiting().take(self.position(waiter)?);
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

    /// True if `owner` has exactly this lock.
    pub(crate) fn has(&self, grant: Grant) -> bool {
        self.granted.contains(&grant)
    }

    /// True if a request waits for the lock.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting().len() != 0
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
        while let Some(waits) = self.waits.as_deref()
            && let Some(waiter) = waits.waiting.get(position)
        {
            let granted = self.granted.iter().map(|grant| (grant.owner, grant.kind));
            let ahead = self.waiting().take(position);
            let is_blocked = granted
                .chain(ahead.map(|other| (other.owner, other.kind)))
                .any(|(owner, held)| owner != waiter.owner && waiter.kind.conflicts_with(held));
            if !is_blocked {
                let waiter = self.take(position);
                self.grant_waiter(&waiter, wakers);
                continue;
            }
            if waiter.kind.is_exclusive_record() && waits.intention_count == 0 {
                return;
            }
            position += 1;
        }
    }

    /// An insert intention leaves no lock behind: after its wait it tries the insert again.
    fn grant_waiter(&mut self, waiter: &Waiter, wakers: &mut Vec<Waker>) {
        let leaves_lock = waiter.kind.covers_record() || waiter.kind.covers_gap();
        if leaves_lock && !self.has_including(waiter.owner, waiter.kind) {
            self.grant(waiter.owner, waiter.kind);
        }
        let woken = waiter.decide(Verdict::Granted);
        let is_first = wakers.is_empty();
        wakers.extend(woken.filter(|_| is_first || !is_planted(Mistake::ForgetsLockWaiters)));
    }
}
