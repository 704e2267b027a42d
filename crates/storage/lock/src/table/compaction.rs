//! Compact locks: which locks become compact, and how others meet them.
//!
//! An owner keeps its newest locks as objects, since these may be released early (READ COMMITTED).
//! It moves older ones to the sets of `compact`, some hundred at a time, and keeps them until its
//! end. A set knows no waiters. So a compact lock is like the id in a row, which is a lock, too: a
//! request that conflicts with it first enters it in the queue for its owner, and then waits for
//! that. So the search for deadlocks, releases and reports see queues alone.
//!
//! (L1) Whoever waits for a name has entered each compact lock that conflicts with the wait. No
//! lock becomes compact whose queue has a waiter. So a queue's waiters can be granted without a
//! look at the sets. An entry that its owner leaves (`leave_record`) is gone from the index, so it
//! stands against those who wait no more, though the set still has its print.
//! (L2) An owner's end empties its sets first, shard by shard, and then takes the list of what
//! others have entered for it. Whoever enters a compact lock puts the name on that list first, and
//! enters it under the shard's mutex only while the set has it. So the list has what was entered.
//!
//! A print stands for several names (see `compact`), so a lock may seem to be held that is not:
//!
//! (L3) A lock does not become compact if the set of another, which conflicts with it, has its
//! print. So conflicting compact locks do not share a print.
//! (L4) An owner's own set answers a request only if no other lock or wait stands against it, and
//! its entry in a queue only if no other lock does. Else the request waits as if it had neither. A
//! true compact lock with a wait against it stands in the queue as well (L1), which is asked first.

use format::TxnId;
use sync::atomic::Ordering;

use super::{Converted, LockTable};
use crate::compact::CompactLocks;
use crate::name::Print;
use crate::queue::{Grant, Queue};
use crate::shards::{QUEUE_SHARD_COUNT, QueueShard};
use crate::waiter::Request;
use crate::{LockExtent, LockKind, LockName};

/// Which locks become compact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compaction {
    /// Locks that an owner keeps as objects: the newest.
    pub(crate) newest_count: usize,
    /// Locks that it moves at a time.
    pub(crate) step_count: usize,
    /// The bits of a hash that a print has.
    pub(crate) print_mask: u32,
}

impl Default for Compaction {
    /// A batch of rows that may be released early has 64 rows with up to three locks each. Sets
    /// with a few locks in each of the shards take more memory than objects. 4,096 objects are some
    /// 0.9 MB. A step takes some 100 us, as long as other work between two looks at the clock.
    fn default() -> Self {
        Self {
            newest_count: 4096,
            step_count: 256,
            print_mask: u32::MAX,
        }
    }
}

/// What compact locks mean for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    /// They do not stand against it. The owner must still ask for this part of it.
    Missing(LockKind),
    /// The owner has the lock.
    Held,
    /// This one conflicts with it and is in no queue.
    Rival(Grant),
}

impl LockTable {
    pub(super) fn print(&self, name: &LockName) -> Print {
        name.print(self.compaction.print_mask)
    }

    /// True if a compact lock of another stands against a request.
    pub(super) fn has_rival(
        &self,
        compact: &CompactLocks,
        owner: TxnId,
        name: &LockName,
        kind: LockKind,
    ) -> bool {
        if compact.is_empty() {
            return false;
        }
        let mut rivals = compact.rivals(owner, self.print(name), kind);
        rivals.next().is_some()
    }

    /// True if `owner` has a compact lock that includes this one, and nothing stands against it
    /// (L4).
    pub(super) fn is_held_compact(
        &self,
        shard: &QueueShard,
        owner: TxnId,
        name: &LockName,
        kind: LockKind,
    ) -> bool {
        let compact = &shard.compact;
        if compact.is_empty() || !compact.is_held(owner, self.print(name), kind) {
            return false;
        }
        let queue = shard.get(name);
        !queue.is_some_and(|queue| queue.must_wait(owner, kind))
            && !self.has_rival(compact, owner, name, kind)
    }

    /// What the compact locks of a shard mean for a request that its queue does not answer.
    pub(super) fn look_at_compact(
        &self,
        queue: &Queue,
        compact: &CompactLocks,
        request: Request<'_>,
    ) -> Looked {
        let (owner, print) = (request.owner, self.print(request.name));
        let rival = |kind| {
            let mut rivals = compact.rivals(owner, print, kind);
            rivals.find(|grant| !queue.has(*grant))
        };
        let is_own = |kind| {
            compact.is_held(owner, print, kind)
                && !queue.must_wait(owner, kind)
                && rival(kind).is_none()
        };
        let mut missing = queue.missing(owner, request.kind);
        let part = |extent| LockKind { extent, ..missing };
        let (record, gap) = (part(LockExtent::Record), part(LockExtent::Gap));
        if missing.extent == LockExtent::NextKey && !is_own(missing) && is_own(record) {
            missing = gap;
        }
        if queue.is_held(owner, missing) || is_own(missing) {
            return Looked::Held;
        }
        rival(missing).map_or(Looked::Missing(missing), Looked::Rival)
    }

    /// Enters a compact lock in the queue of a name for its owner (L2).
    pub(super) fn enter_compact(&self, rival: Grant, name: &LockName) -> Converted {
        if !self.note_if_room(&mut self.shards.owner(rival.owner), rival.owner, name) {
            return Converted::Full;
        }
        let mut shard = self.shards.queue(name);
        let print = self.print(name);
        let (queue, compact) = self.shards.queue_of(&mut shard, name);
        let is_there = compact.grants(print).any(|grant| grant == rival);
        let is_new = is_there && !queue.has(rival);
        if is_new {
            queue.enter(rival);
        }
        let adds_edges = is_new && queue.is_waited_for();
        self.shards.remove_if_empty(&mut shard, name);
        drop(shard);
        if !is_there {
            self.forget_converted(rival.owner, name);
            return Converted::Ended;
        }
        if adds_edges {
            self.break_cycles_through(rival.owner);
        }
        Converted::Entered
    }

    /// Makes a lock compact that `owner` has as an object. Returns the memory that it takes now, in
    /// bytes, or `None` if it must stay an object (L1, L3).
    pub(crate) fn compact(&self, owner: TxnId, name: &LockName, kind: LockKind) -> Option<u64> {
        let (grant, print) = (Grant { owner, kind }, self.print(name));
        let mut shard = self.shards.queue(name);
        let QueueShard { queues, compact } = &mut *shard;
        let queue = queues.get_mut(name)?;
        let is_opposed = compact.rivals(owner, print, kind).next().is_some();
        if queue.is_waited_for() || is_opposed || !queue.has(grant) {
            return None;
        }
        let added = compact.add(print, grant);
        if added.is_new_part {
            // Counted before the queue goes: a writer must not find the index without locks.
            self.shards.count_in(name.index());
        }
        let mut wakers = Vec::new();
        queue.release_kind(owner, kind, &mut wakers);
        assert!(wakers.is_empty(), "the queue has no waiter");
        self.shards.remove_if_empty(&mut shard, name);
        self.bytes.fetch_add(added.bytes, Ordering::Relaxed);
        Some(added.bytes)
    }

    /// Releases the compact locks of an owner in `count` shards from a position on. Returns the
    /// next position, or `None` behind the last, and the memory that was freed, in bytes.
    pub(crate) fn release_compact(
        &self,
        owner: TxnId,
        first: usize,
        count: usize,
    ) -> (Option<usize>, u64) {
        assert!(0 < count && first < QUEUE_SHARD_COUNT, "there is work");
        let end = first.saturating_add(count).min(QUEUE_SHARD_COUNT);
        let mut freed = 0;
        for mut shard in self.shards.queues(first..end) {
            let removed = shard.compact.remove(owner);
            for index in removed.indexes {
                self.shards.count_out(index);
            }
            freed += removed.bytes;
        }
        let before = self.bytes.fetch_sub(freed, Ordering::Relaxed);
        assert!(freed <= before, "what is given back was counted");
        ((end < QUEUE_SHARD_COUNT).then_some(end), freed)
    }
}
