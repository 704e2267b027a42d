//! Who holds which lock and who waits for which: sharded, each shard with its own mutex, no global
//! latch.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

use foldhash::fast::FixedState;
use format::{IndexId, TxnId};
use sync::atomic::{AtomicU32, Ordering, fence};
use sync::{CachePadded, Mutex, MutexGuard};

use crate::compact::CompactLocks;
use crate::queue::Queue;
use crate::report::{Blocking, OwnedLock, Wait};
use crate::waiter::{Verdict, Waiter};
use crate::{LockKind, LockName};

/// Shards of the queues: 10,000 transactions with a few waits each seldom meet in one.
pub(crate) const QUEUE_SHARD_COUNT: usize = 1024;

/// Shards of what is kept by transaction; a commit locks one of them once.
const OWNER_SHARD_COUNT: usize = 256;

/// Counters of names by index: enough that few indexes share one.
const INDEX_COUNTER_COUNT: usize = 1024;

const _: () = assert!(QUEUE_SHARD_COUNT.is_power_of_two() && OWNER_SHARD_COUNT.is_power_of_two());
const _: () = assert!(INDEX_COUNTER_COUNT.is_power_of_two());

/// A map that iterates in the same order in every run.
pub(crate) type SeededMap<K, V> = HashMap<K, V, FixedState>;

/// The locks of the names with some hashes.
#[derive(Debug, Default)]
pub(crate) struct QueueShard {
    /// Queues by the name of their lock.
    pub(crate) queues: SeededMap<LockName, Queue>,
    /// Locks of owners that have many.
    pub(crate) compact: CompactLocks,
}

/// A request looks at one line of its shard: with two, a lock takes 40 % longer. A model has larger
/// mutexes.
#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Mutex<QueueShard>>() <= 64);

impl QueueShard {
    /// The queue of a name, if it has one.
    pub(crate) fn get(&self, name: &LockName) -> Option<&Queue> {
        self.queues.get(name)
    }

    /// As [`get`](Self::get).
    pub(crate) fn get_mut(&mut self, name: &LockName) -> Option<&mut Queue> {
        self.queues.get_mut(name)
    }
}

/// The state of all locks, by name and by owner.
#[derive(Debug)]
pub(crate) struct Shards {
    /// Locks by hash of their name.
    queues: Box<[CachePadded<Mutex<QueueShard>>]>,
    /// State of each owner, by its id.
    owners: Box<[CachePadded<Mutex<OwnerShard>>]>,
    /// Names that have a queue, and parts of compact locks, by a hash of their index. Written under
    /// a queue's mutex.
    counters: Box<[AtomicU32]>,
}

/// What the table keeps by transaction.
#[derive(Debug, Default)]
pub(crate) struct OwnerShard {
    /// Locks that others entered for a holder, until it ends (I1), and how often. It is a map
    /// because a list would be searched once for each row that one transaction has changed.
    pub(crate) converted: SeededMap<TxnId, SeededMap<LockName, u64>>,
    /// The one request that an owner waits for.
    pub(crate) waits: SeededMap<TxnId, Arc<Waiter>>,
    /// What has happened to these owners. Counted here because a wait comes here anyway: one count
    /// for the whole table would be written by all workers.
    pub(crate) statistics: LockStatistics,
}

/// Counts since the start, and the present waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LockStatistics {
    /// Requests that had to wait.
    pub wait_count: u64,
    /// Requests that wait at the moment.
    pub waiting_count: u64,
    /// Cycles that were broken.
    pub deadlock_count: u64,
    /// Waits that their owners cancelled.
    pub cancel_count: u64,
    /// Waits and holders that searches for deadlocks have visited.
    pub search_step_count: u64,
}

impl Default for Shards {
    fn default() -> Self {
        let queues = (0..QUEUE_SHARD_COUNT).map(|_| CachePadded::default());
        let owners = (0..OWNER_SHARD_COUNT).map(|_| CachePadded::default());
        Self {
            queues: queues.collect(),
            owners: owners.collect(),
            counters: (0..INDEX_COUNTER_COUNT)
                .map(|_| AtomicU32::new(0))
                .collect(),
        }
    }
}

impl Shards {
    /// The shard of the lock with this name.
    pub(crate) fn queue(&self, name: &LockName) -> MutexGuard<'_, QueueShard> {
        let mask = stdx::to_u64(QUEUE_SHARD_COUNT - 1);
        self.queues[stdx::to_usize(name.hash_code() & mask)].lock()
    }

    /// The shards at some positions, each locked while the caller looks at it.
    pub(crate) fn queues(
        &self,
        positions: Range<usize>,
    ) -> impl Iterator<Item = MutexGuard<'_, QueueShard>> {
        assert!(positions.end <= QUEUE_SHARD_COUNT, "there are no more");
        self.queues[positions].iter().map(|shard| shard.lock())
    }

    fn counter(&self, index: IndexId) -> &AtomicU32 {
        &self.counters[stdx::to_usize(index.0) & (INDEX_COUNTER_COUNT - 1)]
    }

    /// True if a lock of this index may be held or waited for. A writer asks with its leaf latched.
    /// A reader first enters its lock and then looks whether the leaf has changed. The fences order
    /// these two pairs: either the writer finds the lock, or the reader finds the leaf latched.
    pub(crate) fn has_locks(&self, index: IndexId) -> bool {
        fence(Ordering::SeqCst);
        self.counter(index).load(Ordering::Relaxed) != 0
    }

    /// The queue of this name in its shard, which is locked, and the shard's compact locks. Makes a
    /// queue if there is none.
    pub(crate) fn queue_of<'q>(
        &self,
        queues: &'q mut QueueShard,
        name: &LockName,
    ) -> (&'q mut Queue, &'q CompactLocks) {
        let queue = queues.queues.entry(name.clone()).or_insert_with(|| {
            self.count_in(name.index());
            Queue::default()
        });
        (queue, &queues.compact)
    }

    /// Counts a queue or a part of compact locks. Call it with the shard locked.
    pub(crate) fn count_in(&self, index: IndexId) {
        let before = self.counter(index).fetch_add(1, Ordering::Relaxed);
        assert!(before < u32::MAX, "memory ends before the counter");
        fence(Ordering::SeqCst);
    }

    /// Takes back one that was counted.
    pub(crate) fn count_out(&self, index: IndexId) {
        let before = self.counter(index).fetch_sub(1, Ordering::Relaxed);
        assert!(0 < before, "each one was counted");
    }

    /// Removes the queue of this name if it has no lock and no waiter.
    pub(crate) fn remove_if_empty(&self, queues: &mut QueueShard, name: &LockName) {
        if queues.get(name).is_some_and(Queue::is_empty) {
            self.remove(queues, name);
        }
    }

    /// Removes the queue of this name, which has no lock and no waiter.
    pub(crate) fn remove(&self, queues: &mut QueueShard, name: &LockName) {
        let removed = queues.queues.remove(name);
        assert!(removed.is_some_and(|queue| queue.is_empty()), "it is empty");
        self.count_out(name.index());
    }

    /// The shard of this owner.
    pub(crate) fn owner(&self, owner: TxnId) -> MutexGuard<'_, OwnerShard> {
        let mask = stdx::to_u64(OWNER_SHARD_COUNT - 1);
        self.owners[stdx::to_usize(owner.get() & mask)].lock()
    }

    /// The shards of all owners, each locked while the caller looks at it.
    pub(crate) fn owners(&self) -> impl Iterator<Item = MutexGuard<'_, OwnerShard>> {
        self.owners.iter().map(|shard| shard.lock())
    }

    /// True if no lock is held or waited for.
    pub(crate) fn is_empty(&self) -> bool {
        let mut queues = self.queues(0..QUEUE_SHARD_COUNT);
        queues.all(|shard| shard.queues.is_empty() && shard.compact.is_empty())
            && self
                .owners()
                .all(|shard| shard.waits.is_empty() && shard.converted.is_empty())
    }

    /// Ends a wait with `verdict`, if it has none yet.
    pub(crate) fn dismiss(&self, waiter: &Arc<Waiter>, verdict: Verdict) -> bool {
        let mut wakers = Vec::new();
        let dismissed = {
            let mut queues = self.queue(&waiter.name);
            let dismissed = queues
                .get_mut(&waiter.name)
                .is_some_and(|queue| queue.dismiss(waiter, verdict, &mut wakers));
            self.remove_if_empty(&mut queues, &waiter.name);
            dismissed
        };
        self.forget_wait(waiter);
        wakers.into_iter().for_each(Waker::wake);
        dismissed
    }

    /// Removes the wait from the owners' map, unless the owner already waits for another lock.
    fn forget_wait(&self, waiter: &Arc<Waiter>) {
        let mut shard = self.owner(waiter.owner);
        let is_this = shard
            .waits
            .get(&waiter.owner)
            .is_some_and(|wait| Arc::ptr_eq(wait, waiter));
        if is_this {
            shard.waits.remove(&waiter.owner);
        }
    }

    /// The wait of `owner`, or `None` if it does not wait.
    pub(crate) fn wait_of(&self, owner: TxnId) -> Option<Arc<Waiter>> {
        self.owner(owner).waits.get(&owner).cloned()
    }

    /// See [`Queue::ways`].
    pub(crate) fn ways(&self, waiter: &Arc<Waiter>) -> Vec<TxnId> {
        let queues = self.queue(&waiter.name);
        queues
            .get(&waiter.name)
            .map(|queue| queue.ways(waiter))
            .unwrap_or_default()
    }

    /// See [`Queue::mutual_waiter`].
    pub(crate) fn mutual_waiter(&self, waiter: &Arc<Waiter>) -> Option<Arc<Waiter>> {
        let queues = self.queue(&waiter.name);
        queues.get(&waiter.name)?.mutual_waiter(waiter)
    }

    /// All waits, in no order.
    fn waiters(&self) -> Vec<Arc<Waiter>> {
        let of_shard =
            |shard: MutexGuard<'_, OwnerShard>| shard.waits.values().cloned().collect::<Vec<_>>();
        self.owners().flat_map(of_shard).collect()
    }

    /// The waits at the moment, in the order in which they began, with `edges_max` blockers at most
    /// or one each (R3). Also returns how many waits have more blockers than are listed.
    pub(crate) fn waits(&self, edges_max: usize) -> (Vec<Wait>, u64) {
        let mut waiters = self.waiters();
        waiters.retain(|waiter| waiter.verdict().is_none());
        waiters.sort_by_key(|waiter| waiter.sequence);
        let (mut waits, mut cut_count, mut room) = (Vec::new(), 0, edges_max);
        for (position, waiter) in waiters.iter().enumerate() {
            // Equal shares. What one does not need is left to those after it.
            let share = room / (waiters.len() - position);
            let Blocking { locks, is_cut } = self.blocking_locks(waiter, share.max(1));
            room = room.saturating_sub(locks.len());
            cut_count += u64::from(is_cut);
            // A wait that nothing blocks any more has just been granted.
            if !locks.is_empty() {
                waits.push(Wait {
                    wanted: OwnedLock::wanted_by(waiter),
                    since_ns: waiter.since_ns,
                    blockers: locks,
                });
            }
        }
        (waits, cut_count)
    }

    /// The locks that block `waiter`, with their owners; the first `count_max` of them.
    pub(crate) fn blocking_locks(&self, waiter: &Arc<Waiter>, count_max: usize) -> Blocking {
        let queues = self.queue(&waiter.name);
        let Some(queue) = queues.get(&waiter.name) else {
            return Blocking::default();
        };
        let mut blocking = queue.blocking(waiter);
        let locks = blocking.by_ref().take(count_max);
        let locks = locks.map(|(grant, is_held)| OwnedLock {
            owner: grant.owner,
            name: waiter.name.clone(),
            kind: grant.kind,
            is_held,
        });
        Blocking {
            locks: locks.collect(),
            is_cut: blocking.next().is_some(),
        }
    }

    /// The locks that others have entered for `owner`, at most `count` of them.
    pub(crate) fn converted_locks(&self, owner: TxnId, count: usize) -> Vec<(LockName, LockKind)> {
        let names: Vec<LockName> = match self.owner(owner).converted.get(&owner) {
            Some(names) => names.keys().take(count).cloned().collect(),
            None => return Vec::new(),
        };
        let kinds_of = |name: LockName| {
            let queues = self.queue(&name);
            let grants = queues.get(&name).map(|queue| queue.grants().to_vec());
            drop(queues);
            let own = grants.unwrap_or_default().into_iter();
            own.filter(move |grant| grant.owner == owner)
                .map(move |grant| (name.clone(), grant.kind))
        };
        names.into_iter().flat_map(kinds_of).collect()
    }

    /// The owners that block `waiter`.
    pub(crate) fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<TxnId> {
        let queues = self.queue(&waiter.name);
        queues
            .get(&waiter.name)
            .map(|queue| queue.blockers(waiter))
            .unwrap_or_default()
    }
}
