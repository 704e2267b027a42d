//! What operators see of the table: who waits for whom now, and the last deadlocks.
//!
//! (R1) A deadlock is noted from copies, before its victim has its verdict. So all its members
//! still wait, and the statements that the [`Witness`] returns are those that wait.
//! (R2) No mutex of the table is held while the witness is asked. A page may be latched.
//! (R3) A list of waits has a limit of edges, as a row's waiters have the square of their number.
//! A wait lists the holders of the lock first, and then the waiters before it, the nearest first.
//!
//! A list of waits is read shard by shard, as the search for deadlocks does. So it may show an edge
//! that has just gone, and never one that has not been.

use std::collections::VecDeque;
use std::sync::Arc;

use format::TxnId;
use store::ClientId;
use sync::Mutex;

use crate::waiter::Waiter;
use crate::{LockKind, LockName};

/// Deadlocks that are remembered. A log that is written once a second shows that many.
const REMEMBERED_MAX: usize = 16;

/// A lock and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnedLock {
    /// Who has it, or waits for it.
    pub owner: TxnId,
    /// What is locked.
    pub name: LockName,
    /// Mode and extent.
    pub kind: LockKind,
    /// Whether it is held; if not, it is waited for.
    pub is_held: bool,
}

impl OwnedLock {
    /// The lock that a waiter waits for.
    pub(crate) fn wanted_by(waiter: &Waiter) -> Self {
        Self {
            owner: waiter.owner,
            name: waiter.name.clone(),
            kind: waiter.kind,
            is_held: false,
        }
    }
}

/// A wait, and what it waits for.
#[derive(Debug, Clone)]
pub struct Wait {
    /// The lock that is waited for.
    pub wanted: OwnedLock,
    /// When the wait began, by the caller's clock, in nanoseconds.
    pub since_ns: u64,
    /// Locks that stand before it in the queue and conflict with it, at least one. Those that are
    /// held come first, and then those that are waited for, the nearest first.
    pub blockers: Vec<OwnedLock>,
}

/// Locks that block a wait.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    /// In the order of [`Wait::blockers`].
    pub(crate) locks: Vec<OwnedLock>,
    /// There are more.
    pub(crate) is_cut: bool,
}

/// A cycle of waits that was broken.
#[derive(Debug, Clone)]
pub struct Deadlock {
    /// Counts deadlocks since the start: the first is 1.
    pub number: u64,
    /// When its last wait began, by the caller's clock, in nanoseconds.
    pub at_ns: u64,
    /// Each waits for the next, and the last for the first. The first has closed the cycle.
    pub members: Vec<DeadlockMember>,
    /// Members that are not noted, of a very long cycle.
    pub left_out_count: usize,
    /// The position of the one that was rolled back.
    pub victim: usize,
}

/// One side of a deadlock.
#[derive(Debug, Clone)]
pub struct DeadlockMember {
    /// Whose transaction it is.
    pub client: ClientId,
    /// The text of the statement that waits, if the witness knows it.
    pub statement: Option<String>,
    /// The lock that it waits for.
    pub wanted: OwnedLock,
    /// When the wait began, by the caller's clock, in nanoseconds.
    pub since_ns: u64,
    /// The lock of the next member that blocks it.
    pub blocker: Option<OwnedLock>,
    /// Its work, as the victim is chosen by it.
    pub weight: u64,
}

/// The last deadlocks.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    /// Deadlocks since the start.
    count: u64,
    /// The last ones, in their order.
    last: VecDeque<Arc<Deadlock>>,
}

impl Remembered {
    /// Keeps a deadlock, which gets its number.
    pub(crate) fn keep(&self, deadlock: Deadlock) {
        assert!(
            deadlock.victim < deadlock.members.len(),
            "the victim is one of those that are noted"
        );
        let mut recent = self.recent.lock();
        recent.count += 1;
        let number = recent.count;
        if recent.last.len() == REMEMBERED_MAX {
            recent.last.pop_front();
        }
        recent
            .last
            .push_back(Arc::new(Deadlock { number, ..deadlock }));
    }

    /// The deadlocks with a higher number than `after`, as far as they are remembered.
    pub(crate) fn newer_than(&self, after: u64) -> Vec<Arc<Deadlock>> {
        let recent = self.recent.lock();
        let newer = recent.last.iter().filter(|it| after < it.number);
        newer.cloned().collect()
    }
}
