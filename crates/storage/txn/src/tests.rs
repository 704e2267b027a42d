//! Random transactions and snapshots of several workers on a tiny ring, against a naive twin.

use std::rc::Rc;
use std::sync::Arc;

use format::{Lsn, TxnId};
use proptest::prelude::*;

use crate::{Fate, Snapshot, TransactionSystem, TransactionWorker, Visibility};

const WORKER_COUNT: usize = 3;

fn id(number: u64) -> TxnId {
    TxnId::new(number).unwrap()
}

/// A system whose log is a counter.
struct World {
    system: Arc<TransactionSystem>,
    workers: Vec<Rc<TransactionWorker>>,
    position: u64,
}

impl World {
    fn new(ring_length: usize, losers: &[u64]) -> Self {
        let losers = losers.iter().map(|&loser| id(loser));
        let system = Arc::new(TransactionSystem::new(
            id(100),
            losers,
            WORKER_COUNT,
            ring_length,
        ));
        let workers = (0..WORKER_COUNT)
            .map(|index| TransactionWorker::new(Arc::clone(&system), index))
            .collect();
        Self {
            system,
            workers,
            position: 4096,
        }
    }

    fn commit(&mut self, transaction: TxnId) -> Lsn {
        self.position += 10;
        let position = self.position;
        self.system.commit(transaction, || Lsn(position))
    }

    /// Ends a transaction that has undone rows.
    fn undo(&mut self, transaction: TxnId) -> Lsn {
        self.position += 10;
        let position = Lsn(self.position);
        self.system.finish_undone(transaction, position);
        position
    }

    fn open(&self, worker_index: usize) -> Snapshot {
        Snapshot::open(&self.workers[worker_index], || Lsn(self.position))
    }

    fn maintain(&self) {
        for worker in &self.workers {
            worker.maintain(|| Lsn(self.position));
        }
    }

    /// Allocates a number, after as much maintenance as that needs.
    fn allocate(&self) -> TxnId {
        for _ in 0..8 {
            if let Some(transaction) = self.system.allocate() {
                return transaction;
            }
            self.maintain();
        }
        panic!("maintenance makes room");
    }
}

/// It is left to the next call: the thread may have been preempted between the transaction's mark
/// and its number.
#[test]
fn maintenance_does_not_wait_for_a_transaction_that_is_ending() {
    let mut world = World::new(64, &[]);
    let ending = world.allocate();
    world.system.commit(ending, || {
        world.maintain();
        assert_eq!(world.system.settled(), ending);
        Lsn(5000)
    });
    world.position = 5000;
    world.maintain();
    assert!(ending < world.system.settled());
}

#[test]
fn a_snapshot_sees_what_was_committed_before_it_and_its_own_changes() {
    let mut world = World::new(64, &[]);
    let (before, after, open) = (world.allocate(), world.allocate(), world.allocate());
    world.commit(before);
    let snapshot = world.open(0);
    world.commit(after);
    let later = world.allocate();
    world.commit(later);
    assert!(snapshot.sees(before, None).unwrap());
    assert!(!snapshot.sees(after, None).unwrap() && !snapshot.sees(open, None).unwrap());
    assert!(!snapshot.sees(later, None).unwrap());
    assert!(snapshot.sees(open, Some(open)).unwrap());
    assert!(world.open(1).sees(later, None).unwrap());
}

/// For any number of open snapshots: thousands of clients may be inside a transaction.
#[test]
fn a_conversion_looks_at_each_number_once() {
    let mut world = World::new(64, &[]);
    let mut open = Vec::new();
    for _ in 0..1000 {
        let transaction = world.allocate();
        world.commit(transaction);
        open.push(world.open(0));
    }
    let looked_count = world.workers[0].looked_count.get();
    assert!((900..=1000).contains(&looked_count), "{looked_count} looks");
    // What every snapshot sees is not looked at.
    open.clear();
    world.maintain();
    let before = world.workers[0].looked_count.get();
    for _ in 0..1000 {
        let transaction = world.allocate();
        world.commit(transaction);
        let _young = world.open(0);
        world.maintain();
    }
    assert_eq!(world.workers[0].looked_count.get(), before);
}

#[test]
fn the_horizon_is_held_by_the_oldest_snapshot_of_any_worker() {
    let mut world = World::new(64, &[]);
    let old = world.open(0);
    let transaction = world.allocate();
    world.commit(transaction);
    let young = world.open(1);
    let now = Lsn(world.position);
    assert!(world.system.horizon(|| now) <= old.lsn());
    drop(old);
    assert!(world.system.horizon(|| now) <= young.lsn());
    drop(young);
    assert_eq!(world.system.horizon(|| now), now);
}

/// Its commit record is not in the log yet: a writer that overwrote its rows now would commit
/// before it.
#[test]
fn a_transaction_is_active_until_it_has_its_commit_number() {
    let world = World::new(64, &[]);
    let transaction = world.allocate();
    world.system.commit(transaction, || {
        assert!(world.system.is_active(transaction));
        Lsn(world.position + 10)
    });
    assert!(!world.system.is_active(transaction));
}

#[test]
fn a_loser_is_active_until_its_rollback_is_reported() {
    let world = World::new(16, &[40, 90]);
    assert_eq!(world.system.fate(id(40)), Fate::Active);
    assert!(world.system.is_active(id(90)));
    assert_eq!(world.system.fate(id(39)), Fate::Settled);
    assert_eq!(world.system.fate(id(60)), Fate::Settled);
    world.system.finish_rollback(id(40));
    world.maintain();
    assert_eq!(world.system.settled(), id(90));
    world.system.finish_rollback(id(90));
    world.maintain();
    assert_eq!(world.system.settled(), id(100));
}

/// Else purge would wait for a prepared transaction that a crash has left. A rollback would restore
/// a deleted row whose large value purge has given back.
#[test]
fn a_loser_does_not_hide_what_has_ended_before_this_life() {
    let mut world = World::new(16, &[40]);
    let horizon = world.system.horizon(|| Lsn(world.position));
    let seen_by = |world: &World, number| world.system.visibility(id(number), horizon);
    assert_eq!(seen_by(&world, 40), Visibility::None);
    for ended in [39, 41, 99] {
        assert_eq!(seen_by(&world, ended), Visibility::All, "{ended}");
    }
    world.commit(id(40));
    assert_eq!(seen_by(&world, 40), Visibility::Some);
}

/// More transactions ended while it was open than could be checked one by one.
#[test]
fn what_an_old_loser_held_up_settles_at_once_when_it_ends() {
    let first = id(1 << 47);
    let losers = [id(7), id(1 << 40)];
    let system = TransactionSystem::new(first, losers, 1, 16);
    let young = system.allocate().unwrap();
    assert_eq!(young, first);
    for (loser, settled) in [(losers[0], losers[1]), (losers[1], first)] {
        assert_eq!(system.settled(), loser);
        system.maintain(|| Lsn(5000));
        assert_eq!(system.settled(), loser);
        system.finish_rollback(loser);
        system.maintain(|| Lsn(5000));
        assert_eq!(system.settled(), settled);
    }
    system.commit(young, || Lsn(5001));
    system.maintain(|| Lsn(5000));
    assert_eq!(system.settled(), first);
    system.maintain(|| Lsn(5001));
    assert_eq!(system.settled(), system.next());
}

#[test]
fn a_long_snapshot_and_a_long_transaction_do_not_fill_the_ring() {
    let mut world = World::new(16, &[]);
    let early = world.allocate();
    world.commit(early);
    let long = world.allocate();
    let unseen = world.allocate();
    let snapshot = world.open(2);
    world.commit(unseen);
    for _ in 0..500 {
        let transaction = world.allocate();
        world.commit(transaction);
        world.maintain();
    }
    assert!(snapshot.sees(early, None).unwrap());
    assert!(!snapshot.sees(unseen, None).unwrap() && !snapshot.sees(long, None).unwrap());
    assert_eq!(world.system.fate(long), Fate::Active);
    assert!(world.open(0).sees(unseen, None).unwrap());
    world.commit(long);
    assert!(!snapshot.sees(long, None).unwrap() && world.open(1).sees(long, None).unwrap());
    drop(snapshot);
    world.maintain();
    assert_eq!(world.system.settled(), world.system.next());
}

/// A slow reader has copied a row of a transaction that has been rolled back since.
#[test]
fn an_old_snapshot_never_sees_a_row_that_was_rolled_back() {
    let mut world = World::new(16, &[]);
    let undone = world.allocate();
    let snapshot = world.open(0);
    world.undo(undone);
    assert!(!snapshot.sees(undone, None).unwrap());
    for _ in 0..64 {
        let transaction = world.allocate();
        world.commit(transaction);
        world.maintain();
        assert!(!snapshot.sees(undone, None).unwrap());
    }
    assert_eq!(
        world.system.fate(undone),
        Fate::Settled,
        "it has left the ring"
    );
}

/// A busy worker does its maintenance a hundred times a second, however many have rolled back under
/// an old snapshot.
#[test]
fn maintenance_without_progress_visits_no_rollbacks() {
    let mut world = World::new(1024, &[]);
    let snapshot = world.open(0);
    world.maintain();
    let before = world.system.visit_count();
    for count in 1..=100 {
        let transaction = world.allocate();
        world.undo(transaction);
        world.maintain();
        assert_eq!(world.system.rolled_back_count(), count);
    }
    assert_eq!(world.system.visit_count(), before);
    drop(snapshot);
    world.maintain();
    assert!(before < world.system.visit_count());
    assert_eq!(world.system.rolled_back_count(), 0);
}

/// Their number is bounded by the ring, however long a snapshot is open.
#[test]
fn positions_of_rollbacks_go_with_their_words() {
    let mut world = World::new(16, &[]);
    let long = world.allocate();
    let snapshot = world.open(0);
    let horizon = world.system.horizon(|| Lsn(world.position));
    let mut undone = Vec::new();
    for _ in 0..500 {
        let transaction = world.allocate();
        world.undo(transaction);
        world.maintain();
        undone.push(transaction);
        assert!(world.system.rolled_back_count() <= 16);
    }
    // A straggler keeps its position: no part stands for it.
    world.undo(long);
    for _ in 0..16 {
        let transaction = world.allocate();
        world.commit(transaction);
        world.maintain();
    }
    for transaction in undone.into_iter().chain([long]) {
        assert!(!snapshot.sees(transaction, None).unwrap());
        let seen_by = world.system.visibility(transaction, horizon);
        assert_eq!(seen_by, Visibility::Some, "{transaction:?}");
    }
    drop(snapshot);
    world.maintain();
    world.maintain();
    assert_eq!(world.system.settled(), world.system.next());
    assert_eq!(world.system.rolled_back_count(), 0);
}

/// What happens next in a random run.
#[derive(Debug, Clone)]
enum Event {
    Begin,
    Commit(usize),
    RollBack(usize),
    Undo(usize),
    Open(usize),
    Close(usize),
    Maintain(usize),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Begin),
        5 => (0..64usize).prop_map(Event::Commit),
        1 => (0..64usize).prop_map(Event::RollBack),
        1 => (0..64usize).prop_map(Event::Undo),
        2 => (0..WORKER_COUNT).prop_map(Event::Open),
        1 => (0..64usize).prop_map(Event::Close),
        3 => (0..WORKER_COUNT).prop_map(Event::Maintain),
    ]
}

/// The naive twin of a transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Twin {
    Active,
    Committed(Lsn),
    RolledBack,
    Undone(Lsn),
}

struct Run {
    world: World,
    fates: Vec<(TxnId, Twin)>,
    snapshots: Vec<Snapshot>,
}

impl Run {
    fn active(&self, choice: usize) -> Option<usize> {
        let active: Vec<_> = (0..self.fates.len())
            .filter(|&index| self.fates[index].1 == Twin::Active)
            .collect();
        (!active.is_empty()).then(|| active[choice % active.len()])
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Begin => {
                // A full ring is legal: its writer waits for the next maintenance.
                if let Some(transaction) = self.world.system.allocate() {
                    self.fates.push((transaction, Twin::Active));
                }
            }
            Event::Commit(choice) => {
                if let Some(index) = self.active(choice) {
                    let lsn = self.world.commit(self.fates[index].0);
                    self.fates[index].1 = Twin::Committed(lsn);
                }
            }
            Event::RollBack(choice) => {
                if let Some(index) = self.active(choice) {
                    self.world.system.finish_rollback(self.fates[index].0);
                    self.fates[index].1 = Twin::RolledBack;
                }
            }
            Event::Undo(choice) => {
                if let Some(index) = self.active(choice) {
                    let lsn = self.world.undo(self.fates[index].0);
                    self.fates[index].1 = Twin::Undone(lsn);
                }
            }
            Event::Open(worker) => self.snapshots.push(self.world.open(worker)),
            Event::Close(choice) if !self.snapshots.is_empty() => {
                let choice = choice % self.snapshots.len();
                self.snapshots.swap_remove(choice);
            }
            Event::Close(_) => {}
            Event::Maintain(worker) => {
                let position = Lsn(self.world.position);
                self.world.workers[worker].maintain(|| position);
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let now = Lsn(self.world.position);
        let horizon = self.world.system.horizon(|| now);
        for snapshot in &self.snapshots {
            prop_assert!(horizon <= snapshot.lsn());
            for &(transaction, twin) in &self.fates {
                // No row carries the number of a transaction that has rolled back, except those
                // that were copied before.
                let is_met = match twin {
                    Twin::RolledBack => false,
                    Twin::Undone(lsn) => snapshot.lsn() < lsn,
                    Twin::Active | Twin::Committed(_) => true,
                };
                if is_met {
                    let expected = matches!(twin, Twin::Committed(lsn) if lsn <= snapshot.lsn());
                    prop_assert_eq!(snapshot.sees(transaction, None).unwrap(), expected);
                }
            }
        }
        let settled = self.world.system.settled();
        for &(transaction, twin) in &self.fates {
            if transaction < settled {
                let everyone_sees = matches!(
                    twin,
                    Twin::Committed(lsn) | Twin::Undone(lsn) if lsn <= horizon
                );
                prop_assert!(
                    everyone_sees || twin == Twin::RolledBack,
                    "{transaction:?} {twin:?} settled {settled:?} horizon {horizon:?}"
                );
            }
            let is_active = self.world.system.is_active(transaction);
            prop_assert_eq!(is_active, twin == Twin::Active);
            // It may say later than the twin that every snapshot sees an end, never earlier.
            let visibility = self.world.system.visibility(transaction, horizon);
            prop_assert_eq!(visibility == Visibility::None, twin == Twin::Active);
            if let Twin::Committed(lsn) | Twin::Undone(lsn) = twin {
                prop_assert!(visibility != Visibility::All || lsn <= horizon);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Snapshots see exactly the commits up to their number, however often the ring wraps.
    #[test]
    fn snapshots_agree_with_the_naive_twin(
        events in proptest::collection::vec(any_event(), 1..400),
    ) {
        let mut run =
            Run { world: World::new(16, &[]), fates: Vec::new(), snapshots: Vec::new() };
        for event in events {
            run.step(event);
            run.check()?;
        }
    }
}
