//! What is told of deadlocks and waits.

use super::*;

/// Says what each client does, and how often it was asked.
#[derive(Debug, Default)]
struct Statements {
    asked: Mutex<Vec<ClientId>>,
}

impl Witness for Statements {
    fn statement(&self, client: ClientId) -> Option<String> {
        self.asked.lock().push(client);
        (client.0 != 3).then(|| format!("UPDATE by {}", client.0))
    }
}

/// The report names both sides, what each has and wants, and whom it cost.
#[test]
fn a_deadlock_is_remembered_with_both_sides() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let witness = Arc::<Statements>::default();
    table.set_witness(Arc::clone(&witness) as Arc<dyn Witness>);
    let (mut one, mut two) = (owner(&table, 1), owner(&table, 2));
    let (a, b) = (key("a"), key("b"));
    assert!(one.acquire(ask(&a, EXCLUSIVE, PATIENT, 5), 10).is_ok());
    assert!(two.acquire(ask(&b, EXCLUSIVE, PATIENT, 1), 20).is_ok());
    assert!(matches!(
        one.acquire(ask(&b, EXCLUSIVE, PATIENT, 5), 30),
        Ok(Acquired::Wait(_))
    ));
    let waits = table.waits(usize::MAX);
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].wanted.owner.get(), waits[0].since_ns), (1, 30));
    assert_eq!(waits[0].blockers.len(), 1);
    assert!(waits[0].blockers[0].is_held && waits[0].blockers[0].owner.get() == 2);
    assert!(table.deadlocks(0).is_empty());
    let lost = two.acquire(ask(&a, EXCLUSIVE, PATIENT, 1), 40);
    assert!(matches!(lost, Err(LockError::Deadlock)));
    let seen = table.deadlocks(0);
    let [deadlock] = &seen[..] else {
        panic!("one deadlock, not {}", seen.len())
    };
    assert_eq!(
        (deadlock.number, deadlock.at_ns, deadlock.victim),
        (1, 40, 0)
    );
    let sides: Vec<_> = deadlock
        .members
        .iter()
        .map(|side| (side.client.0, side.statement.as_deref(), side.weight))
        .collect();
    // Each has one lock object.
    let expected = [(2, Some("UPDATE by 2"), 2), (1, Some("UPDATE by 1"), 6)];
    assert_eq!(sides, expected);
    assert_eq!(deadlock.members[0].wanted.name, a);
    let blocker = deadlock.members[0].blocker.as_ref().unwrap();
    assert_eq!((blocker.owner.get(), blocker.is_held), (1, true));
    assert!(table.deadlocks(1).is_empty());
    assert_eq!(witness.asked.lock().len(), 2, "each side is asked for once");
    two.release_all();
    one.release_all();
}

/// As MariaDB 10.11: among equals the one that closes the cycle, else the first after it.
#[test]
fn among_equals_the_victim_is_the_first_from_the_close_of_the_cycle() {
    for (order, works, victim) in [
        ([0, 1], [1, 1, 1], 2),
        ([0, 1], [1, 1, 2], 0),
        ([1, 0], [1, 1, 2], 0),
        ([0, 1], [2, 1, 2], 1),
    ] {
        let table = Arc::new(LockTable::new(u64::MAX));
        let mut owners = [1, 2, 3].map(|id| owner(&table, id));
        let names = ["a", "b", "c"].map(key);
        for (at, own) in owners.iter_mut().enumerate() {
            let held = own.acquire(ask(&names[at], EXCLUSIVE, PATIENT, works[at]), 0);
            assert!(matches!(held, Ok(Acquired::Granted)));
        }
        let mut wait = |at: usize| {
            let next = &names[(at + 1) % 3];
            let asked = ask(next, EXCLUSIVE, PATIENT, works[at]);
            owners[at].acquire(asked, 1).map(drop)
        };
        for at in order {
            assert_eq!(wait(at), Ok(()));
        }
        let closed = wait(2);
        let deadlock = &table.deadlocks(0)[0];
        let rolled_back = deadlock.members[deadlock.victim].client.0;
        assert_eq!(rolled_back, victim + 1, "{order:?} {works:?}");
        assert_eq!(closed.is_err(), victim == 2);
        owners.iter_mut().for_each(OwnerLocks::release_all);
    }
}

/// Locks count, also those that others have entered for a transaction.
#[test]
fn the_victim_is_chosen_by_locks_too() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut one, mut two) = (owner(&table, 1), owner(&table, 2));
    let (a, b, c) = (key("a"), key("b"), key("c"));
    assert!(one.acquire(ask(&a, EXCLUSIVE, PATIENT, 1), 0).is_ok());
    assert!(two.acquire(ask(&b, EXCLUSIVE, PATIENT, 1), 0).is_ok());
    // The second has a gap in addition, which makes it heavier, though it closes the cycle.
    table.convert_implicit(TxnId::new(2).unwrap(), &c, |_| true);
    assert!(two.acquire(ask(&c, GAP, PATIENT, 1), 0).is_ok());
    assert!(matches!(
        one.acquire(ask(&b, EXCLUSIVE, PATIENT, 1), 0),
        Ok(Acquired::Wait(_))
    ));
    assert!(matches!(
        two.acquire(ask(&a, EXCLUSIVE, PATIENT, 1), 0),
        Ok(Acquired::Wait(_))
    ));
    let waited = one.acquire(ask(&b, EXCLUSIVE, PATIENT, 1), 0);
    assert!(matches!(waited, Err(LockError::Deadlock)));
    let weights: Vec<_> = table.deadlocks(0)[0]
        .members
        .iter()
        .map(|it| it.weight)
        .collect();
    assert_eq!(weights, [3, 2], "the entered lock is of a kind that it has");
    one.release_all();
    two.release_all();
}

/// Old reports make room for new ones, and numbers go on.
#[test]
fn few_deadlocks_are_remembered() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (a, b) = (key("a"), key("b"));
    for _ in 0..40 {
        let (mut one, mut two) = (owner(&table, 1), owner(&table, 2));
        assert!(one.acquire(ask(&a, EXCLUSIVE, PATIENT, 1), 0).is_ok());
        assert!(two.acquire(ask(&b, EXCLUSIVE, PATIENT, 1), 0).is_ok());
        assert!(one.acquire(ask(&b, EXCLUSIVE, PATIENT, 1), 0).is_ok());
        assert!(two.acquire(ask(&a, EXCLUSIVE, PATIENT, 1), 0).is_err());
    }
    let numbers: Vec<_> = table.deadlocks(30).iter().map(|it| it.number).collect();
    assert_eq!(numbers, (31..=40).collect::<Vec<_>>());
    assert_eq!(table.deadlocks(0).len(), 16);
}

/// A thousand waiters of one row have half a million edges. What is shown grows with their number.
/// Each lists the holder, and the waiter that came just before it.
#[test]
fn many_waiters_of_one_row_show_a_part_of_their_edges() {
    const WAITERS: u64 = 1000;
    const EDGES_MAX: usize = 16_384;
    let table = Arc::new(LockTable::new(u64::MAX));
    let row = key("row");
    let mut owners: Vec<_> = (1..=WAITERS + 1).map(|id| owner(&table, id)).collect();
    granted(&mut owners[0], &row, EXCLUSIVE);
    let asked = owners[1..].iter_mut();
    let futures: Vec<_> = asked.map(|own| waits(own, &row, EXCLUSIVE)).collect();
    let shown = table.waits(EDGES_MAX);
    let edge_count: usize = shown.iter().map(|wait| wait.blockers.len()).sum();
    assert_eq!(shown.len(), futures.len());
    assert!(
        (EDGES_MAX / 2..=EDGES_MAX).contains(&edge_count),
        "{edge_count}"
    );
    for wait in &shown {
        let blockers = wait.blockers.iter();
        let blockers: Vec<_> = blockers.map(|it| (it.owner.get(), it.is_held)).collect();
        let nearest = wait.wanted.owner.get() - 1;
        assert_eq!(blockers[0], (1, true));
        assert!(nearest == 1 || blockers[1] == (nearest, false));
    }
    assert!((900..WAITERS).contains(&table.cut_count()));
    // Without room each wait shows who has the lock, and with enough room all that blocks it.
    let alone = table.waits(0);
    assert!(alone.iter().all(|wait| wait.blockers.len() == 1));
    let before = table.cut_count();
    let whole = table.waits(usize::MAX);
    let edge_count: usize = whole.iter().map(|wait| wait.blockers.len()).sum();
    assert_eq!(edge_count, 1000 * 1001 / 2);
    assert_eq!(table.cut_count(), before);
    owners.iter_mut().rev().for_each(OwnerLocks::release_all);
    assert!(table.is_empty());
}
