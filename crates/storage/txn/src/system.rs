//! The shared state of all workers: the ring, the stragglers, the horizon.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use format::{Lsn, TxnId};
use stdx::planted::{Mistake, is_planted};
use sync::atomic::{AtomicU64, Ordering, fence};
use sync::{CachePadded, CommitRing, MovedOut, Mutex, Notify, RingState};

/// Words of the ring: 8 MiB, which 50,000 writing transactions a second fill in twenty seconds.
pub const RING_LENGTH_DEFAULT: usize = 1 << 20;

/// Parts of the ring, each of which is recycled at a time. So often that writers never meet a full
/// ring, so seldom that the workers' acknowledgements cost nothing.
const PARTS_PER_RING: u64 = 16;

/// What a worker publishes when it has no snapshot open.
const NO_SNAPSHOT: u64 = u64::MAX;

/// A transaction's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs, waits or rolls back: its rows are locked by their number.
    Active,
    /// It is taking its commit number: see [`TransactionSystem::ended`].
    Ending,
    /// It has committed.
    Committed(Lsn),
    /// It has rolled back completely.
    RolledBack,
    /// It has ended so long ago that every snapshot sees it.
    Settled,
}

/// The transactions of a store. Shared by all workers.
#[derive(Debug)]
pub struct TransactionSystem {
    /// The words of young transactions.
    ring: CommitRing,
    /// All transactions below it have ended and are seen by every snapshot, open or to come.
    settled: CachePadded<AtomicU64>,
    /// Transactions that left the ring before they had ended (T1), with their commit number once
    /// they have one.
    stragglers: Mutex<BTreeMap<u64, Fate>>,
    /// The log's position when a transaction that had changed rows had undone them, while it is in
    /// the ring or a straggler. An older snapshot may have a copy of such a row, and must not take
    /// its writer for settled.
    rolled_back: Mutex<BTreeMap<u64, Lsn>>,
    /// One for each worker.
    workers: Box<[CachePadded<WorkerWords>]>,
    /// The target of `low`: workers convert their snapshots for the numbers below it (T2).
    recycle_target: CachePadded<AtomicU64>,
    /// The first transaction of this life of the server. Constant.
    first: TxnId,
    /// Held by the worker that settles and recycles.
    maintenance: Mutex<Maintenance>,
    /// Its parts, as of its last turn, because it may hold its mutex for long.
    parts: Mutex<Arc<[UnsettledPart]>>,
}

/// State between two maintenances.
#[derive(Debug, Default)]
struct Maintenance {
    /// Parts that left the ring unsettled, in order.
    parts: VecDeque<UnsettledPart>,
    /// Numbers whose words are being moved out (T1); empty if none are. It stops at a transaction
    /// that is just ending, and the next maintenance continues there.
    moving: Range<u64>,
    /// The horizon of the last one.
    horizon: Lsn,
    /// How often all that is kept of ended transactions was visited, for a test.
    visit_count: u64,
}

/// Transactions that were recycled after a conversion.
#[derive(Debug, Clone, Copy)]
struct UnsettledPart {
    /// The number after the last one.
    end: u64,
    /// A log position after all their commits, except those of stragglers.
    position: Lsn,
}

/// What a worker publishes.
#[derive(Debug)]
struct WorkerWords {
    /// A number not larger than that of its oldest open snapshot; `NO_SNAPSHOT` if there is none.
    oldest_snapshot: AtomicU64,
    /// It has converted its snapshots for all transactions below this.
    converted_below: AtomicU64,
    /// Where it sleeps while its turn at maintenance would change nothing.
    maintenance_due: Notify,
}

/// Which snapshots see how a transaction has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Every snapshot, open or to come: none needs the versions before its changes. Stays so.
    All,
    /// It has ended, but a snapshot may be older; or it is just ending.
    Some,
    /// It has not ended.
    None,
}

/// The result of a maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintained {
    /// There is nothing to do before a transaction ends or a snapshot is closed, on any worker.
    Idle,
    /// There may be more to do: call again.
    Busy,
}

impl TransactionSystem {
    /// Creates a system whose next transaction is `first`, for `worker_count` workers. `losers` are
    /// the transactions below `first` that recovery has found unfinished. They count as active
    /// until their rollback is reported.
    pub fn new(
        first: TxnId,
        losers: impl IntoIterator<Item = TxnId>,
        worker_count: usize,
        ring_length: usize,
    ) -> Self {
        assert!(0 < worker_count, "somebody runs the transactions");
        let stragglers: BTreeMap<_, _> = losers
            .into_iter()
            .map(|loser| (loser.get(), Fate::Active))
            .collect();
        assert!(
            stragglers.keys().all(|&loser| loser < first.get()),
            "losers are older"
        );
        let settled = stragglers.keys().next().copied().unwrap_or(first.get());
        let words = || WorkerWords {
            oldest_snapshot: AtomicU64::new(NO_SNAPSHOT),
            converted_below: AtomicU64::new(first.get()),
            maintenance_due: Notify::default(),
        };
        Self {
            ring: CommitRing::new(ring_length, first.get()),
            settled: CachePadded::new(AtomicU64::new(settled)),
            first,
            stragglers: Mutex::new(stragglers),
            rolled_back: Mutex::default(),
            workers: (0..worker_count)
                .map(|_| CachePadded::new(words()))
                .collect(),
            recycle_target: CachePadded::new(AtomicU64::new(first.get())),
            maintenance: Mutex::default(),
            parts: Mutex::new(Arc::from([])),
        }
    }

    /// Allocates a transaction's number at its first change. Returns `None` while the ring is full;
    /// the next maintenance makes room.
    pub fn allocate(&self) -> Option<TxnId> {
        let number = self.ring.allocate()?;
        Some(TxnId::new(number).expect("48 bits last for 89 years at 100,000 a second"))
    }

    /// The next number to be allocated, for checkpoints.
    pub fn next(&self) -> TxnId {
        TxnId::new(self.ring.next()).expect("48 bits last for 89 years at 100,000 a second")
    }

    /// Ends a transaction. From now on its rows are visible to snapshots that include its commit
    /// number, the end position of its commit record, which `reserve` takes. The call does not
    /// suspend.
    pub fn commit(&self, id: TxnId, reserve: impl FnOnce() -> Lsn) -> Lsn {
        assert!(self.settled() <= id, "an open transaction is not settled");
        let mut position = None;
        let mut reserve = Some(reserve);
        let mut take = || {
            let lsn = reserve.take().expect("a commit number is taken once")();
            position = Some(lsn);
            lsn
        };
        if !self.ring.commit(id.get(), || take().0) {
            // The map's mutex is held while the number is taken. So no reader finds a straggler
            // active whose commit number its snapshot includes.
            let mut stragglers = self.stragglers.lock();
            let lsn = take();
            let before = stragglers.insert(id.get(), Fate::Committed(lsn));
            assert_eq!(
                before,
                Some(Fate::Active),
                "a moved transaction is a straggler"
            );
        }
        position.expect("either branch took a number")
    }

    /// Ends a transaction that has undone its changes; `position` is after the last of them.
    pub fn finish_undone(&self, id: TxnId, position: Lsn) {
        self.rolled_back.lock().insert(id.get(), position);
        self.finish_rollback(id);
    }

    /// Ends a transaction that has changed nothing.
    pub fn finish_rollback(&self, id: TxnId) {
        assert!(self.settled() <= id, "an open transaction is not settled");
        if !self.ring.roll_back(id.get()) {
            let before = self.stragglers.lock().insert(id.get(), Fate::RolledBack);
            assert_eq!(
                before,
                Some(Fate::Active),
                "a moved transaction is a straggler"
            );
        }
    }

    /// The outcome of a transaction whose number stands in a row.
    pub fn fate(&self, id: TxnId) -> Fate {
        if id.get() < self.settled.load(Ordering::Acquire) {
            return Fate::Settled;
        }
        self.fate_in_ring(id)
            .unwrap_or_else(|| self.fate_outside(id))
    }

    /// The outcome of a transaction whose word is in the ring; `None` if it has left.
    fn fate_in_ring(&self, id: TxnId) -> Option<Fate> {
        match self.ring.state(id.get()) {
            RingState::Active => Some(Fate::Active),
            RingState::Ending => Some(Fate::Ending),
            RingState::Committed(number) => Some(Fate::Committed(Lsn(number))),
            RingState::RolledBack => Some(Fate::RolledBack),
            RingState::Moved | RingState::Recycled => None,
        }
    }

    /// Ready once the transaction is not [`Fate::Ending`] any more.
    pub fn ended(self: &Arc<Self>, id: TxnId) -> impl Future<Output = ()> + use<> {
        let system = Arc::clone(self);
        std::future::poll_fn(move |context| {
            if system.ring.watch(id.get(), context.waker()) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
    }

    /// As [`fate`](Self::fate), for a number that has left the ring.
    fn fate_outside(&self, id: TxnId) -> Fate {
        self.stragglers
            .lock()
            .get(&id.get())
            .copied()
            .unwrap_or(Fate::Settled)
    }

    /// True until the transaction has ended: its rows are locked by their number.
    /// `lock::LockTable::convert_implicit` asks this. A transaction that is taking its commit
    /// number counts as active. A writer that overwrote its row now could be acknowledged with a
    /// commit that precedes the one it is built on, or that is built on one that fails. It releases
    /// its locks only after its number is published. So a caller that finds it active under the
    /// mutex of its list can still add to that list.
    pub fn is_active(&self, id: TxnId) -> bool {
        id.get() >= self.settled.load(Ordering::Acquire)
            && match self.ring.state(id.get()) {
                RingState::Active | RingState::Ending => true,
                RingState::Committed(_) | RingState::RolledBack => false,
                RingState::Moved | RingState::Recycled => self.fate_outside(id) == Fate::Active,
            }
    }

    /// All transactions below this have ended and are visible to every snapshot.
    pub fn settled(&self) -> TxnId {
        TxnId::new(self.settled.load(Ordering::Acquire)).expect("it is at most the next number")
    }

    /// Which snapshots see how a transaction has ended, by an earlier horizon. Unlike in
    /// [`settled`](Self::settled), a long open transaction does not hold back others here.
    pub fn visibility(&self, id: TxnId, horizon: Lsn) -> Visibility {
        if id < self.settled() {
            return Visibility::All;
        }
        let mut fate = self.unsettled_fate(id);
        let mut undone_at = None;
        if fate == Fate::RolledBack {
            undone_at = self.rolled_back_at(id.get());
            if undone_at.is_none() {
                // Its position may have gone because its word has left the ring meanwhile. Then its
                // part has one that is not older.
                fate = self.unsettled_fate(id);
            }
        }
        let is_seen = match fate {
            Fate::Active => return Visibility::None,
            Fate::Ending => false,
            Fate::Settled => true,
            Fate::Committed(lsn) => lsn <= horizon,
            Fate::RolledBack => undone_at.is_none_or(|position| position <= horizon),
        };
        if is_seen {
            Visibility::All
        } else {
            Visibility::Some
        }
    }

    /// The outcome of a transaction that may not be settled.
    fn unsettled_fate(&self, id: TxnId) -> Fate {
        self.fate_in_ring(id)
            .unwrap_or_else(|| self.fate_in_parts(id))
    }

    /// The outcome of a transaction that has left the ring and may not be settled. If it is no
    /// straggler, it has ended before its part left.
    fn fate_in_parts(&self, id: TxnId) -> Fate {
        if let Some(&fate) = self.stragglers.lock().get(&id.get()) {
            return fate;
        }
        // Before this life, or before all snapshots of it.
        if id < self.first || id < self.settled() {
            return Fate::Settled;
        }
        let parts = Arc::clone(&self.parts.lock());
        let at = parts.partition_point(|part| part.end <= id.get());
        // A part that is not published yet; the next maintenance knows it.
        parts
            .get(at)
            .map_or(Fate::Ending, |part| Fate::Committed(part.position))
    }

    fn publish_parts(&self, parts: &VecDeque<UnsettledPart>) {
        let mut published = self.parts.lock();
        let ends = |part: &UnsettledPart| part.end;
        let is_same =
            published.len() == parts.len() && published.last().map(ends) == parts.back().map(ends);
        if !is_same {
            *published = parts.iter().copied().collect();
        }
    }

    /// The oldest commit number for which a snapshot may still need older versions. A version that
    /// was replaced by a commit not above it is not needed. `position` loads the log's reserved
    /// position, and is called first (H2).
    pub fn horizon(&self, position: impl FnOnce() -> Lsn) -> Lsn {
        let now = position();
        // SeqCst: pairs with the fence in `publish_oldest` (H1).
        fence(Ordering::SeqCst);
        let oldest =
            |worker: &CachePadded<WorkerWords>| worker.oldest_snapshot.load(Ordering::Acquire);
        let oldest_published = self.workers.iter().map(oldest).min().unwrap_or(NO_SNAPSHOT);
        if is_planted(Mistake::PurgesEarly) {
            return now;
        }
        Lsn(now.0.min(oldest_published))
    }

    /// Settles what can be settled, and keeps room in the ring. One worker at a time does the work.
    /// `position` as in [`horizon`](Self::horizon). Its changes may mean work for each worker
    /// (purge, snapshots to convert), so it wakes all of them.
    pub fn maintain(&self, position: impl FnOnce() -> Lsn) -> Maintained {
        let Some(mut maintenance) = self.maintenance.try_lock() else {
            // The worker that holds it may have checked before the caller's reason arose.
            return Maintained::Busy;
        };
        let now = position();
        let horizon = self.horizon(|| now);
        let before = self.progress(&maintenance);
        self.settle(horizon, &mut maintenance.parts);
        self.recycle(now, &mut maintenance);
        maintenance.horizon = horizon;
        self.publish_parts(&maintenance.parts);
        let after = self.progress(&maintenance);
        let is_recycling = after.1 < after.2 || !maintenance.moving.is_empty();
        if before != after {
            self.forget_ended(horizon);
            maintenance.visit_count += 1;
        }
        drop(maintenance);
        if before != after {
            for worker in &self.workers {
                worker.maintenance_due.notify();
            }
        }
        if before != after || is_recycling {
            Maintained::Busy
        } else {
            Maintained::Idle
        }
    }

    /// What maintenance moves: `settled`, `low` and its target, and the horizon.
    fn progress(&self, maintenance: &Maintenance) -> (u64, u64, u64, Lsn) {
        let settled = self.settled.load(Ordering::Relaxed);
        let target = self.recycle_target.load(Ordering::Relaxed);
        (settled, self.ring.low(), target, maintenance.horizon)
    }

    /// True if a transaction may be waiting for the horizon, to be settled or purged.
    pub(crate) fn is_behind(&self) -> bool {
        self.settled.load(Ordering::Relaxed) < self.ring.next()
    }

    /// Where a worker sleeps while its maintenance is [`Maintained::Idle`].
    pub(crate) fn maintenance_due(&self, worker_index: usize) -> &Notify {
        &self.workers[worker_index].maintenance_due
    }

    /// Moves `settled` over every transaction that has ended and is visible to all.
    fn settle(&self, horizon: Lsn, parts: &mut VecDeque<UnsettledPart>) {
        let (low, next) = (self.ring.low(), self.ring.next());
        let mut settled = self.settled.load(Ordering::Relaxed);
        while settled < next {
            while parts.front().is_some_and(|part| part.end <= settled) {
                parts.pop_front();
            }
            let end = match settled < low {
                true => self.end_of_equals(settled, low, parts),
                false => settled + 1,
            };
            if !self.is_settled(settled, horizon, parts) {
                break;
            }
            settled = end;
        }
        assert!(settled <= next, "nobody is settled before it began");
        // Release: a reader of it need not look at the words below.
        self.settled.store(settled, Ordering::Release);
    }

    /// Drops what is not needed any more of transactions that have ended. It visits all of it, so
    /// it is called only after progress: an old snapshot may hold everything back for hours.
    ///
    /// A rollback's position is not needed once every snapshot is younger, however long other
    /// transactions are open. It is not needed either once the word has left the ring, except for a
    /// straggler: then the snapshots have their exceptions (T2), and the part has a position that
    /// is not older. So there are at most as many positions as words and stragglers.
    fn forget_ended(&self, horizon: Lsn) {
        let low = self.ring.low();
        let settled = self.settled.load(Ordering::Relaxed);
        let kept: BTreeSet<u64> = {
            let mut stragglers = self.stragglers.lock();
            stragglers.retain(|&number, _| settled <= number);
            stragglers.keys().copied().collect()
        };
        assert!(
            kept.last()
                .is_none_or(|&straggler| straggler < self.ring.next()),
            "a straggler has its number"
        );
        let is_needed = |number: u64, position: Lsn| {
            let is_noted = number < low && !kept.contains(&number);
            settled <= number && horizon < position && !is_noted
        };
        self.rolled_back
            .lock()
            .retain(|&number, &mut position| is_needed(number, position));
    }

    /// The number after those that left the ring together with `number` without a note of their
    /// own. After a transaction that was open for long there are too many of them to check one by
    /// one.
    fn end_of_equals(&self, number: u64, low: u64, parts: &VecDeque<UnsettledPart>) -> u64 {
        let part_end = parts.front().map_or(low, |part| part.end);
        let stragglers = self.stragglers.lock();
        let straggler = stragglers.range(number..).next();
        match straggler.map_or(low, |(&straggler, _)| straggler) {
            straggler if straggler == number => number + 1,
            straggler => straggler.min(part_end).min(low),
        }
    }

    fn is_settled(&self, number: u64, horizon: Lsn, parts: &VecDeque<UnsettledPart>) -> bool {
        let fate = match self.ring.state(number) {
            // The next maintenance looks again at one that is ending.
            RingState::Active | RingState::Ending => Fate::Active,
            RingState::Committed(number) => Fate::Committed(Lsn(number)),
            RingState::RolledBack => Fate::RolledBack,
            RingState::Moved | RingState::Recycled => {
                let position = parts.front().map_or(Lsn(0), |part| part.position);
                let straggler = self.stragglers.lock().get(&number).copied();
                straggler.unwrap_or(Fate::Committed(position))
            }
        };
        match fate {
            Fate::Active | Fate::Ending => false,
            Fate::Committed(lsn) => lsn <= horizon,
            Fate::RolledBack => {
                let position = self.rolled_back.lock().get(&number).copied();
                position.is_none_or(|position| position <= horizon)
            }
            Fate::Settled => true,
        }
    }

    /// Recycles a part of the ring when it fills up: at once if its transactions are settled, after
    /// every worker's acknowledgement if not.
    fn recycle(&self, now: Lsn, maintenance: &mut Maintenance) {
        if !maintenance.moving.is_empty() {
            self.request_conversion(&mut maintenance.moving);
            return;
        }
        let low = self.ring.low();
        let part = (self.ring.length() / PARTS_PER_RING).max(1);
        let settled = self.settled.load(Ordering::Relaxed);
        let target = self.recycle_target.load(Ordering::Relaxed);
        if low < target {
            let is_converted = |worker: &CachePadded<WorkerWords>| {
                target <= worker.converted_below.load(Ordering::Acquire)
            };
            if self.workers.iter().all(is_converted) {
                let last = maintenance.parts.back();
                assert!(last.is_none_or(|last| last.end < target && last.position <= now));
                maintenance.parts.push_back(UnsettledPart {
                    end: target,
                    position: now,
                });
                self.ring.recycle(target);
            }
            return;
        }
        if low + part <= settled {
            let new_low = settled - (settled - low) % part;
            assert!(
                low < new_low && new_low <= settled,
                "whole parts of what is settled"
            );
            self.recycle_target.store(new_low, Ordering::Release);
            self.ring.recycle(new_low);
            return;
        }
        let used = self.ring.next() - low;
        if self.ring.length() - used < self.ring.length() / 4 && low + part <= self.ring.next() {
            maintenance.moving = low..low + part;
            self.request_conversion(&mut maintenance.moving);
        }
    }

    /// Moves active transactions out (T1) and asks the workers to convert their snapshots (T2).
    /// Leaves in `moving` what could not be moved yet.
    fn request_conversion(&self, moving: &mut Range<u64>) {
        while !moving.is_empty() {
            // Under the mutex: a transaction that finds itself moved finds its entry.
            let mut stragglers = self.stragglers.lock();
            match self.ring.move_out(moving.start) {
                MovedOut::Moved => {
                    let before = stragglers.insert(moving.start, Fate::Active);
                    assert!(before.is_none(), "a transaction is moved out once");
                }
                MovedOut::Ended => {}
                MovedOut::Busy => return,
            }
            moving.start += 1;
        }
        // Release: a worker that sees the target sees each word of the part ended or moved.
        self.recycle_target.store(moving.end, Ordering::Release);
    }

    /// The part that a worker must convert, or `None` if it has converted it.
    pub(crate) fn conversion_due(&self, worker_index: usize) -> Option<Range<u64>> {
        let target = self.recycle_target.load(Ordering::Acquire);
        let done = self.workers[worker_index]
            .converted_below
            .load(Ordering::Relaxed);
        (done < target).then_some(done..target)
    }

    /// Notes that a worker's snapshots do not need words below `target` any more.
    pub(crate) fn acknowledge_conversion(&self, worker_index: usize, target: u64) {
        assert!(target <= self.recycle_target.load(Ordering::Relaxed));
        // Release: the exceptions were noted before.
        self.workers[worker_index]
            .converted_below
            .store(target, Ordering::Release);
    }

    /// The ring's state of a transaction.
    pub(crate) fn ring_state(&self, number: u64) -> RingState {
        self.ring.state(number)
    }

    /// The log's position when a transaction had undone its changes. `None` if it had none, if
    /// every snapshot is younger, or if it has left the ring (see `forget_ended`).
    pub(crate) fn rolled_back_at(&self, number: u64) -> Option<Lsn> {
        self.rolled_back.lock().get(&number).copied()
    }

    /// The next number, for a snapshot that has just loaded its commit number.
    pub(crate) fn next_number(&self) -> u64 {
        self.ring.next()
    }

    /// Publishes a lower bound of the worker's oldest snapshot (H1).
    pub(crate) fn publish_oldest(&self, worker_index: usize, lsn: Option<Lsn>) {
        let word = lsn.map_or(NO_SNAPSHOT, |lsn| lsn.0);
        self.workers[worker_index]
            .oldest_snapshot
            .store(word, Ordering::Release);
    }
}

#[cfg(test)]
impl TransactionSystem {
    /// Rollbacks whose positions are kept.
    pub(crate) fn rolled_back_count(&self) -> usize {
        self.rolled_back.lock().len()
    }

    /// How often maintenance has visited them.
    pub(crate) fn visit_count(&self) -> u64 {
        self.maintenance.lock().visit_count
    }
}
