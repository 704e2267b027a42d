//! The lock table: requests, conversions, inheritance, releases, and the memory that locks take.

mod compaction;

use std::sync::{Arc, OnceLock};
use std::task::Waker;

use format::{IndexId, TxnId};
use smallvec::SmallVec;
use store::Witness;
use sync::Mutex;
use sync::atomic::{AtomicU64, Ordering};

use crate::deadlock::{self, Watch};
use crate::queue::Grant;
use crate::report::{Deadlock, Remembered, Wait};
use crate::shards::{LockStatistics, OwnerShard, Shards};
use crate::waiter::{Request, Verdict, Waiter};
use crate::{LockExtent, LockKind, LockName};

use compaction::Looked;

pub(crate) use compaction::Compaction;

/// Memory of a lock, in bytes: its name, queue and grant in a map that is half full (80 bytes), and
/// its place on the owner's list, which grows by doubling (48 bytes). A long key is kept twice.
const LOCK_BYTES: u64 = 224;

/// One owner may hold this many times the memory that is left, and is refused more. So one owner
/// alone can hold seven eighths of the memory, and two owners seven fifteenths each. An owner that
/// holds little finds room until all of it is taken. The owner that fills the memory is the one
/// that is refused.
const HELD_PER_LEFT_MAX: u64 = 7;

/// All locks of a store. Shared by all workers.
#[derive(Debug)]
pub struct LockTable {
    /// Who holds what, and who waits for what.
    pub(crate) shards: Shards,
    /// Numbers waits.
    wait_sequence: Mutex<u64>,
    /// Memory of all locks, in bytes (see [`cost`]).
    bytes: AtomicU64,
    /// The limit of `bytes` for requests. Constant.
    bytes_max: u64,
    /// The last deadlocks.
    remembered: Remembered,
    /// Waits that were shown with a part of what blocked them. Relaxed: it orders nothing.
    cut_count: AtomicU64,
    /// Knows what the owners' clients do. Set once, at the start.
    witness: OnceLock<Arc<dyn Witness>>,
    /// Which locks become compact. Constant.
    pub(crate) compaction: Compaction,
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Requested {
    /// The owner already has the lock, or one that includes it.
    Held,
    /// The owner has the lock now: this part of it, if it had the rest.
    Granted(LockKind),
    /// The owner is in the queue.
    Waiting(Arc<Waiter>),
    /// Another owner has it, and this one would not wait.
    Busy,
    /// No other owner blocks it, but there is no memory for one more lock.
    Full,
    /// Waiting would close a cycle, and the owner is its victim. It is in no queue.
    Deadlock,
}

/// Which locks are inherited, and how.
#[derive(Debug, Clone, Copy)]
struct Inherited {
    is_inherited: fn(LockKind) -> bool,
    /// The owner whose exclusive lock of the record itself is not inherited.
    leaver: Option<TxnId>,
    /// The owner that takes its own onto its list: it calls, so it is not about to end.
    taker: Option<TxnId>,
}

/// The outcome of converting a holder's implicit lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Converted {
    /// The holder has it explicitly.
    Entered,
    /// The holder has ended: the row must be read again.
    Ended,
    /// There is no memory left for it.
    Full,
}

impl LockTable {
    /// Creates an empty table. It refuses a lock that would exceed `bytes_max`, and any lock of an
    /// owner that holds `HELD_PER_LEFT_MAX` times what is left. Locks that were waited for or
    /// inherited are counted but not refused. A waiter already pays for each such lock with a wait,
    /// and an inherited lock belongs to an owner that has locked a neighbour.
    pub fn new(bytes_max: u64) -> Self {
        Self::with_compaction(bytes_max, Compaction::default())
    }

    /// As [`new`](Self::new); tests choose which locks become compact.
    pub(crate) fn with_compaction(bytes_max: u64, compaction: Compaction) -> Self {
        Self {
            compaction,
            shards: Shards::default(),
            wait_sequence: Mutex::new(0),
            bytes: AtomicU64::new(0),
            bytes_max,
            remembered: Remembered::default(),
            cut_count: AtomicU64::new(0),
            witness: OnceLock::new(),
        }
    }

    /// Sets whom reports of deadlocks ask for statements; only the first call counts.
    pub fn set_witness(&self, witness: Arc<dyn Witness>) {
        let _first_wins = self.witness.set(witness);
    }

    /// Enters the exclusive lock that `holder`, whose id is in the row, has implicitly. `is_active`
    /// returns whether the holder has not ended. Call it with the row's page latched, so that the
    /// id is the row's.
    pub fn convert_implicit(
        &self,
        holder: TxnId,
        name: &LockName,
        is_active: impl Fn(TxnId) -> bool,
    ) -> Converted {
        let mut shard = self.shards.owner(holder);
        if !is_active(holder) {
            return Converted::Ended;
        }
        if !self.note_if_room(&mut shard, holder, name) {
            return Converted::Full;
        }
        drop(shard);
        self.enter_converted(holder, name, is_active)
    }

    /// Grants `holder` the converted lock, whose name is on its list. The holder may have drained
    /// its list since then, and have found nothing in the queue. Then the lock is taken back (I1).
    fn enter_converted(
        &self,
        holder: TxnId,
        name: &LockName,
        is_active: impl Fn(TxnId) -> bool,
    ) -> Converted {
        let mut queues = self.shards.queue(name);
        let (queue, _) = self.shards.queue_of(&mut queues, name);
        let is_new = !queue.has_including(holder, LockKind::EXCLUSIVE_RECORD);
        if is_new {
            queue.grant(holder, LockKind::EXCLUSIVE_RECORD);
        }
        let adds_edges = is_new && queue.is_waited_for();
        drop(queues);
        if !is_active(holder) {
            if is_new {
                self.release_kind(holder, name, LockKind::EXCLUSIVE_RECORD);
            }
            return Converted::Ended;
        }
        if adds_edges {
            self.break_cycles_through(holder);
        }
        Converted::Entered
    }

    /// Releases what others entered for `owner`. Called once at its end, after it is no longer
    /// active for `convert_implicit`.
    pub fn finish(&self, owner: TxnId) {
        self.finish_around(owner, || {});
    }

    /// As [`finish`](Self::finish). `between` stands for what others do after a list was taken and
    /// before it is released. A thread that still finds the owner on one of its names may enter
    /// another for it (`inherit_gap`), so the list is taken until it is empty. That ends: once all
    /// names are released, no thread finds the owner.
    fn finish_around(&self, owner: TxnId, mut between: impl FnMut()) {
        loop {
            let converted = self.shards.owner(owner).converted.remove(&owner);
            let Some(names) = converted else {
                return;
            };
            between();
            self.release(owner, names.keys());
            self.discharge(names.keys());
        }
    }

    /// Releases the named locks of `owner` and grants what they blocked.
    pub fn release<'a>(&self, owner: TxnId, names: impl Iterator<Item = &'a LockName>) {
        let mut wakers = Vec::new();
        for name in names {
            let mut queues = self.shards.queue(name);
            if let Some(queue) = queues.get_mut(name) {
                queue.release(owner, &mut wakers);
                if queue.is_empty() {
                    self.shards.remove(&mut queues, name);
                }
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// True if a lock of this index may be held or waited for. Takes no mutex. Call it with the
    /// leaf latched exclusively. A reader that locks a gap without a latch looks afterwards whether
    /// the leaves around it have changed.
    pub fn has_locks(&self, index: IndexId) -> bool {
        self.shards.has_locks(index)
    }

    /// True if an insert before `successor` by `owner` must wait for a gap lock. Cheap: takes no
    /// place in any queue. Call it with the leaf latched exclusively.
    pub fn is_gap_locked(&self, owner: TxnId, successor: &LockName) -> bool {
        self.must_wait(owner, successor, LockKind::INSERT_INTENTION)
    }

    /// True if a write of the named entry by `owner` must wait for another's explicit lock. Cheap:
    /// takes no place in any queue. Call it with the leaf latched exclusively.
    pub fn is_record_locked(&self, owner: TxnId, name: &LockName) -> bool {
        self.must_wait(owner, name, LockKind::EXCLUSIVE_RECORD)
    }

    fn must_wait(&self, owner: TxnId, name: &LockName, kind: LockKind) -> bool {
        let shard = self.shards.queue(name);
        let queue = shard.get(name);
        queue.is_some_and(|queue| queue.must_wait(owner, kind))
            || self.has_rival(&shard.compact, owner, name, kind)
    }

    /// An insert has put `new_key` before `successor`. Each owner that has locked the gap before
    /// the successor has both halves locked from now on. Call it with the leaf latched exclusively.
    ///
    /// The locks of `inserter` on the new half are not entered on the list of what others have
    /// entered for it: it adds them to its own list. They are returned.
    pub(crate) fn split_gap(
        &self,
        inserter: TxnId,
        new_key: &LockName,
        successor: &LockName,
    ) -> SmallVec<[LockKind; 2]> {
        assert!(new_key != successor, "a gap is split between its ends");
        let inherited = Inherited {
            is_inherited: LockKind::covers_gap,
            leaver: None,
            taker: Some(inserter),
        };
        self.inherit_gap(successor, new_key, inherited, |_| {})
    }

    /// `removed` is removed. Each owner that has locked it, or the gap before it, has the joined
    /// gap before `successor` locked from now on, except for a bare record. The exclusive lock of
    /// the record that `leaver` has, its writer, leaves nothing either. Call it with the leaf
    /// latched exclusively.
    pub fn join_gap(&self, removed: &LockName, successor: &LockName, leaver: Option<TxnId>) {
        assert!(removed != successor, "a gap is joined with the next one");
        let inherited = Inherited {
            is_inherited: LockKind::outlives_record,
            leaver,
            taker: None,
        };
        self.inherit_gap(removed, successor, inherited, |_| {});
    }

    /// Gives the owners of locks on `from` gap locks on `to`. Returns those of the owner that takes
    /// them itself. Any other heir may be about to end. It releases its own list first and what
    /// others entered for it last. So an heir that still has `from` after `to` was entered will
    /// find `to`. From any other heir the lock is taken back here. `between` stands for what an
    /// heir does after the gap lock was entered for it.
    fn inherit_gap(
        &self,
        from: &LockName,
        to: &LockName,
        inherited: Inherited,
        mut between: impl FnMut(TxnId),
    ) -> SmallVec<[LockKind; 2]> {
        let mut taken = SmallVec::new();
        let is_inherited = |grant: &Grant| {
            let is_left =
                grant.kind == LockKind::EXCLUSIVE_RECORD && inherited.leaver == Some(grant.owner);
            !is_left && (inherited.is_inherited)(grant.kind)
        };
        for grant in self.grants(from).into_iter().filter(is_inherited) {
            let kind = LockKind {
                mode: grant.kind.mode,
                extent: LockExtent::Gap,
            };
            let (is_new, adds_edges) = {
                let mut queues = self.shards.queue(to);
                let (queue, compact) = self.shards.queue_of(&mut queues, to);
                let is_new = !queue.has_including(grant.owner, kind)
                    && !compact.is_held(grant.owner, self.print(to), kind);
                if is_new {
                    queue.grant(grant.owner, kind);
                }
                let adds_edges = is_new && queue.is_waited_for();
                self.shards.remove_if_empty(&mut queues, to);
                (is_new, adds_edges)
            };
            if !is_new {
                continue;
            }
            if inherited.taker == Some(grant.owner) {
                taken.push(kind);
                if adds_edges {
                    self.break_cycles_through(grant.owner);
                }
                continue;
            }
            self.note_converted(&mut self.shards.owner(grant.owner), grant.owner, to);
            between(grant.owner);
            if !self.grants(from).contains(&grant) {
                self.take_back(grant.owner, to, kind);
            } else if adds_edges {
                self.break_cycles_through(grant.owner);
            }
        }
        taken
    }

    /// Takes back one lock that was entered for `owner`. The owner may live on and keeps all
    /// others: it has released a single one early.
    fn take_back(&self, owner: TxnId, name: &LockName, kind: LockKind) {
        self.forget_converted(owner, name);
        self.release_kind(owner, name, kind);
    }

    /// Puts a name on the list of what others have entered for an owner. Each call counts, also
    /// for a name that is there. Who takes its own entry back leaves those of others.
    fn note_converted(&self, shard: &mut OwnerShard, owner: TxnId, name: &LockName) {
        let names = shard.converted.entry(owner).or_default();
        if let Some(count) = names.get_mut(name) {
            assert!(0 < *count, "a name that nobody has entered is not there");
            *count += 1;
            return;
        }
        names.insert(name.clone(), 1);
        self.charge(name);
    }

    /// As [`note_converted`](Self::note_converted), for whoever is about to wait. Returns false if
    /// there is no room.
    fn note_if_room(&self, shard: &mut OwnerShard, owner: TxnId, name: &LockName) -> bool {
        let names = shard.converted.get(&owner);
        let is_known = names.is_some_and(|names| names.contains_key(name));
        let has_room = is_known || self.has_room(name, 0);
        if has_room {
            self.note_converted(shard, owner, name);
        }
        has_room
    }

    /// Takes back what was put once on the list of what others have entered for `owner`.
    fn forget_converted(&self, owner: TxnId, name: &LockName) {
        let converted = &mut self.shards.owner(owner).converted;
        let Some(names) = converted.get_mut(&owner) else {
            return;
        };
        if let Some(count) = names.get_mut(name) {
            assert!(0 < *count, "a lock that was counted is given back");
            *count -= 1;
            if *count == 0 {
                names.remove(name);
                self.discharge(std::iter::once(name));
            }
        }
        if names.is_empty() {
            converted.remove(&owner);
        }
    }

    /// `owner` has taken back what it had written under this name, and goes on. Who waits for that
    /// alone gets the lock, and finds it gone. The name stays on the list of what others have
    /// entered for the owner, which may have other locks of it. A compact one stays, too: requests
    /// that come later enter it again.
    pub fn leave_record(&self, owner: TxnId, name: &LockName) {
        assert!(owner != TxnId::NONE, "what is taken back has a writer");
        self.release_kind(owner, name, LockKind::EXCLUSIVE_RECORD);
    }

    /// Releases one lock of `owner`, who keeps all others of this name.
    pub(crate) fn release_kind(&self, owner: TxnId, name: &LockName, kind: LockKind) {
        let mut wakers = Vec::new();
        {
            let mut queues = self.shards.queue(name);
            if let Some(queue) = queues.get_mut(name) {
                queue.release_kind(owner, kind, &mut wakers);
            }
            self.shards.remove_if_empty(&mut queues, name);
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The granted locks of this name.
    fn grants(&self, name: &LockName) -> Vec<Grant> {
        let shard = self.shards.queue(name);
        let queue = shard.get(name);
        let mut grants = queue.map_or_else(Vec::new, |queue| queue.grants().to_vec());
        if !shard.compact.is_empty() {
            grants.extend(shard.compact.grants(self.print(name)));
        }
        grants
    }

    /// Asks for a lock. A request that must wait searches for a deadlock first.
    pub(crate) fn request(&self, request: Request<'_>) -> Requested {
        let waiter = loop {
            let mut queues = self.shards.queue(request.name);
            let (queue, compact) = self.shards.queue_of(&mut queues, request.name);
            let mut missing = queue.missing(request.owner, request.kind);
            if queue.is_held(request.owner, missing) {
                return Requested::Held;
            }
            if !compact.is_empty() {
                match self.look_at_compact(queue, compact, request) {
                    Looked::Missing(rest) => missing = rest,
                    Looked::Held => {
                        self.shards.remove_if_empty(&mut queues, request.name);
                        return Requested::Held;
                    }
                    Looked::Rival(rival) => {
                        self.shards.remove_if_empty(&mut queues, request.name);
                        drop(queues);
                        if !request.may_wait {
                            return Requested::Busy;
                        }
                        if self.enter_compact(rival, request.name) == Converted::Full {
                            return Requested::Full;
                        }
                        continue;
                    }
                }
            }
            if !queue.must_wait(request.owner, missing) {
                let leaves_lock = missing.covers_record() || missing.covers_gap();
                let has_room = !leaves_lock || self.has_room(request.name, request.held_bytes);
                if leaves_lock && has_room {
                    queue.grant(request.owner, missing);
                } else {
                    self.shards.remove_if_empty(&mut queues, request.name);
                }
                return if has_room {
                    Requested::Granted(missing)
                } else {
                    Requested::Full
                };
            }
            if !request.may_wait {
                self.shards.remove_if_empty(&mut queues, request.name);
                return Requested::Busy;
            }
            let waiter = Arc::new(self.new_waiter(request));
            queue.enqueue(Arc::clone(&waiter));
            break waiter;
        };
        {
            let mut shard = self.shards.owner(request.owner);
            let waited = shard.waits.insert(request.owner, Arc::clone(&waiter));
            assert!(
                waited.is_none_or(|before| before.verdict().is_some()),
                "an owner waits for one lock at a time"
            );
            shard.statistics.wait_count += 1;
        }
        self.break_cycles(&waiter);
        // The cycle may have opened before the verdict, and then even the victim may have been
        // granted its lock: the verdict decides.
        if waiter.verdict() == Some(Verdict::Deadlock) {
            Requested::Deadlock
        } else {
            Requested::Waiting(waiter)
        }
    }

    /// Breaks every cycle through a wait. The victims find their verdicts.
    fn break_cycles(&self, waiter: &Arc<Waiter>) {
        let watch = Watch {
            witness: self.witness.get().map(|witness| &**witness),
            remembered: &self.remembered,
        };
        let searched = deadlock::break_cycles(&self.shards, watch, waiter);
        let statistics = &mut self.shards.owner(waiter.owner).statistics;
        statistics.search_step_count += searched.step_count;
        statistics.deadlock_count += searched.broken_count;
    }

    /// Breaks the cycles that were closed by a lock entered for `owner`: others wait for it from
    /// now on, and it may wait itself.
    fn break_cycles_through(&self, owner: TxnId) {
        if let Some(waiter) = self.shards.wait_of(owner) {
            self.break_cycles(&waiter);
        }
    }

    fn new_waiter(&self, request: Request<'_>) -> Waiter {
        let mut sequence = self.wait_sequence.lock();
        *sequence += 1;
        Waiter::new(request, *sequence)
    }

    /// Cancels a wait. Returns its verdict, which is another one if the call came too late.
    pub(crate) fn cancel(&self, waiter: &Arc<Waiter>) -> Verdict {
        if self.shards.dismiss(waiter, Verdict::Cancelled) {
            self.shards.owner(waiter.owner).statistics.cancel_count += 1;
        }
        waiter
            .verdict()
            .expect("a wait that is in no queue has its verdict")
    }

    /// True if `owner` has been given a lock that includes this one.
    pub fn is_held(&self, owner: TxnId, name: &LockName, kind: LockKind) -> bool {
        let shard = self.shards.queue(name);
        let queue = shard.get(name);
        queue.is_some_and(|queue| queue.is_held(owner, kind))
            || self.is_held_compact(&shard, owner, name, kind)
    }

    /// Counts since the start, and the present waits.
    pub fn statistics(&self) -> LockStatistics {
        let mut sum = LockStatistics::default();
        for shard in self.shards.owners() {
            let counted = shard.statistics;
            sum.wait_count += counted.wait_count;
            sum.waiting_count += stdx::to_u64(shard.waits.len());
            sum.deadlock_count += counted.deadlock_count;
            sum.cancel_count += counted.cancel_count;
            sum.search_step_count += counted.search_step_count;
        }
        sum
    }

    /// The owners that block a wait.
    pub(crate) fn blockers(&self, waiter: &Arc<Waiter>) -> Vec<TxnId> {
        self.shards.blockers(waiter)
    }

    /// The waits at the moment, in the order in which they began. They show at most `edges_max`
    /// blockers together, or one each. Waits that have more are counted.
    pub fn waits(&self, edges_max: usize) -> Vec<Wait> {
        let (waits, cut_count) = self.shards.waits(edges_max);
        self.cut_count.fetch_add(cut_count, Ordering::Relaxed);
        waits
    }

    /// Waits that were shown with a part of what blocked them.
    pub(crate) fn cut_count(&self) -> u64 {
        self.cut_count.load(Ordering::Relaxed)
    }

    /// The deadlocks with a higher number than `after`, as far as they are remembered.
    pub fn deadlocks(&self, after: u64) -> Vec<Arc<Deadlock>> {
        self.remembered.newer_than(after)
    }

    /// True if one more lock may be made for an owner that holds `held_bytes`. Several concurrent
    /// requests may each take the last room.
    fn has_room(&self, name: &LockName, held_bytes: u64) -> bool {
        let all = self.bytes();
        assert!(held_bytes <= all, "what an owner holds is a part of all");
        let left = self.bytes_max.saturating_sub(all);
        let cost = cost(name);
        cost <= left && held_bytes.saturating_add(cost) <= left.saturating_mul(HELD_PER_LEFT_MAX)
    }

    /// Counts the memory of a lock that was put on a list. Returns its size.
    pub(crate) fn charge(&self, name: &LockName) -> u64 {
        let bytes = cost(name);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        bytes
    }

    /// Takes back the memory counted for these locks. Returns its size.
    pub(crate) fn discharge<'a>(&self, names: impl Iterator<Item = &'a LockName>) -> u64 {
        let bytes = names.map(cost).sum();
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(bytes <= before, "what is given back was counted");
        bytes
    }

    /// Memory of all locks, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// True if no lock is held or waited for: what must hold when no transaction is open.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty() && self.bytes() == 0
    }
}

/// The counted size of a lock of this name, in bytes.
fn cost(name: &LockName) -> u64 {
    LOCK_BYTES + 2 * stdx::to_u64(name.key_memory())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::ClientId;

    use super::*;
    use crate::footprint::Footprint;
    use crate::{Ask, LockMode, OwnerLocks, Term};

    const GAP: LockKind = LockKind {
        mode: LockMode::Exclusive,
        extent: LockExtent::Gap,
    };

    fn id(number: u64) -> TxnId {
        TxnId::new(number).unwrap()
    }

    fn name(text: &str) -> LockName {
        LockName::key(IndexId(1), text.as_bytes())
    }

    fn ask(name: &LockName) -> Ask<'_> {
        Ask {
            name,
            kind: GAP,
            term: Term::Transaction,
            patience: Duration::ZERO,
            work: 0,
        }
    }

    fn request<'a>(owner: u64, name: &'a LockName, footprint: &'a Footprint) -> Request<'a> {
        Request {
            owner: id(owner),
            client: ClientId::NONE,
            name,
            kind: LockKind::EXCLUSIVE_RECORD,
            work: owner,
            footprint,
            may_wait: true,
            held_bytes: 0,
            now_ns: 0,
        }
    }

    /// Between the search and the verdict the first member of the cycle returns its lock, so the
    /// other gets it. The other must then see the grant, or the lock stays for ever.
    #[test]
    fn a_victim_that_was_granted_meanwhile_is_none() {
        let table = LockTable::new(u64::MAX);
        let (a, b) = (name("a"), name("b"));
        let nothing = Footprint::default();
        let request = |owner, name| request(owner, name, &nothing);
        let is_granted = |requested| matches!(requested, Requested::Granted(_));
        assert!(is_granted(table.request(request(2, &a))));
        assert!(is_granted(table.request(request(1, &b))));
        let Requested::Waiting(older) = table.request(request(2, &b)) else {
            panic!("1 has it");
        };
        let asking = Arc::new(table.new_waiter(request(1, &a)));
        table
            .shards
            .queue(&a)
            .get_mut(&a)
            .unwrap()
            .enqueue(Arc::clone(&asking));
        let waits = |owner, waiter| {
            table
                .shards
                .owner(id(owner))
                .waits
                .insert(id(owner), waiter)
        };
        waits(1, Arc::clone(&asking));
        let cycle = deadlock::find_cycle(&table.shards, &asking, &mut 0);
        let cycle = cycle.expect("each waits for the other");
        let victim = cycle.victim(&table.shards);
        assert!(Arc::ptr_eq(victim.waiter(), &asking));
        // A thread that finds the cycle from the other side chooses the same victim.
        let cycle = deadlock::find_cycle(&table.shards, &older, &mut 0);
        let victim = cycle.expect("it is the same").victim(&table.shards);
        assert!(Arc::ptr_eq(victim.waiter(), &asking));
        table.release(id(2), std::iter::once(&a));
        assert!(!table.shards.dismiss(victim.waiter(), Verdict::Deadlock));
        assert_eq!(asking.verdict(), Some(Verdict::Granted));
        table.break_cycles(&asking);
        assert_eq!(table.statistics().deadlock_count, 0);
        assert!(table.deadlocks(0).is_empty(), "there was none to be noted");
    }

    /// Under READ COMMITTED a lock may be released before its owner's end, just when it is
    /// inherited. The owner's other locks must stay.
    #[test]
    fn an_heir_that_lives_on_keeps_what_it_has() {
        let table = Arc::new(LockTable::new(u64::MAX));
        let names = ["a", "b", "row"].map(name);
        let mut owner = OwnerLocks::new(Arc::clone(&table), id(1), ClientId::NONE);
        let held = owner.acquire(ask(&names[0]), 0);
        assert!(matches!(held, Ok(crate::Acquired::Granted)));
        for converted in &names[1..] {
            assert_eq!(
                table.convert_implicit(id(1), converted, |_| true),
                Converted::Entered
            );
        }
        let heir = &mut owner;
        let inherited = Inherited {
            is_inherited: |_| true,
            leaver: None,
            taker: None,
        };
        let release = |_| heir.release_one(&names[0], GAP);
        let taken = table.inherit_gap(&names[0], &names[1], inherited, release);
        assert!(taken.is_empty());
        assert!(
            !table.is_held(id(1), &names[1], GAP),
            "nothing was left to inherit"
        );
        for converted in &names[1..] {
            assert!(table.is_held(id(1), converted, LockKind::EXCLUSIVE_RECORD));
        }
        owner.release_all();
        assert!(table.is_empty());
    }

    /// A waiter enters a lock under a name whose inherited gap is taken back just then. The lock
    /// stays on its owner's list, else nothing would ever release it.
    #[test]
    fn what_a_waiter_has_entered_outlives_an_inheritance_that_is_taken_back() {
        let table = Arc::new(LockTable::new(u64::MAX));
        let names = ["from", "to", "other"].map(name);
        let mut owner = OwnerLocks::new(Arc::clone(&table), id(1), ClientId::NONE);
        let held = owner.acquire(ask(&names[0]), 0);
        assert!(matches!(held, Ok(crate::Acquired::Granted)));
        let convert = |name| table.convert_implicit(id(1), name, |_| true);
        assert_eq!(convert(&names[2]), Converted::Entered);
        let inherited = Inherited {
            is_inherited: |_| true,
            leaver: None,
            taker: None,
        };
        let heir = &mut owner;
        let meanwhile = |_| {
            assert_eq!(convert(&names[1]), Converted::Entered);
            heir.release_one(&names[0], GAP);
        };
        table.inherit_gap(&names[0], &names[1], inherited, meanwhile);
        assert!(!table.is_held(id(1), &names[1], GAP));
        assert!(table.is_held(id(1), &names[1], LockKind::EXCLUSIVE_RECORD));
        owner.release_all();
        assert!(table.is_empty());
    }

    /// One transaction has changed many rows, and another passes them by (SKIP LOCKED). The time
    /// must grow with their number, not with its square, which would be minutes here.
    #[test]
    fn many_locks_are_entered_for_one_holder() {
        let table = LockTable::new(u64::MAX);
        let names: Vec<_> = (0..50_000).map(|row| name(&format!("{row:08}"))).collect();
        for _ in 0..2 {
            for row in &names {
                assert_eq!(
                    table.convert_implicit(id(1), row, |_| true),
                    Converted::Entered
                );
            }
        }
        assert!(table.is_held(id(1), &names[7], LockKind::EXCLUSIVE_RECORD));
        table.finish(id(1));
        assert!(table.is_empty());
    }

    /// Purge lets a lock be inherited that it has entered itself, while the owner releases its
    /// locks.
    #[test]
    fn an_ending_owner_leaves_no_inherited_lock() {
        let table = Arc::new(LockTable::new(u64::MAX));
        let names = ["a", "b", "c"].map(name);
        let mut owner = OwnerLocks::new(Arc::clone(&table), id(1), ClientId::NONE);
        let held = owner.acquire(ask(&names[0]), 0);
        assert!(matches!(held, Ok(crate::Acquired::Granted)));
        table.join_gap(&names[0], &names[1], None);
        owner.release_one(&names[0], GAP);
        let mut is_first = true;
        table.finish_around(id(1), || {
            if std::mem::take(&mut is_first) {
                table.join_gap(&names[1], &names[2], None);
            }
        });
        assert!(table.is_empty());
    }
}
