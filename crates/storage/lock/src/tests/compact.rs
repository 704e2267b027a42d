//! Owners with more locks than they keep as objects.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::thread;

use sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::shards::QUEUE_SHARD_COUNT;
use crate::table::Compaction;

/// All but the newest locks become compact at once.
fn eager(newest_count: usize) -> Compaction {
    Compaction {
        newest_count,
        step_count: 1,
        print_mask: u32::MAX,
    }
}

fn eager_table(newest_count: usize) -> Arc<LockTable> {
    Arc::new(LockTable::with_compaction(u64::MAX, eager(newest_count)))
}

/// Names whose locks are in one shard, so that they meet if they have the same print.
fn neighbours() -> &'static [LockName] {
    static NAMES: LazyLock<Vec<LockName>> = LazyLock::new(|| {
        let names = (0..).map(|number| key(&format!("n{number}")));
        let mask = QUEUE_SHARD_COUNT as u64 - 1;
        let names = names.filter(|name| name.hash_code() & mask == 0);
        names.take(12).collect()
    });
    &NAMES
}

/// Locks names that are not used otherwise, until all others are compact.
fn make_compact(locks: &mut OwnerLocks, newest_count: usize) {
    for number in 0..=newest_count {
        let name = key(&format!("filler {} {number}", locks.owner().get()));
        granted(locks, &name, EXCLUSIVE);
    }
}

#[test]
fn a_compact_lock_is_waited_for_and_released_as_any_other() {
    let table = eager_table(2);
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("row"), EXCLUSIVE);
    let one = a.held_bytes();
    make_compact(&mut a, 2);
    assert_eq!((a.kept_count(), a.held_count()), (4, 4));
    assert!(a.held_bytes() < 4 * one);
    assert!(table.is_held(a.owner(), &key("row"), SHARED));
    assert!(table.is_record_locked(b.owner(), &key("row")));
    let again = a.acquire(ask(&key("row"), SHARED, PATIENT, 1), 0);
    assert!(matches!(again, Ok(Acquired::Held)));
    let busy = b.acquire(ask(&key("row"), SHARED, Duration::ZERO, 1), 0);
    assert_eq!(busy.unwrap_err(), LockError::Busy);
    assert!(table.waits(usize::MAX).is_empty());
    let mut wait = waits(&mut b, &key("row"), SHARED);
    let seen = table.waits(usize::MAX);
    let blocker = &seen[0].blockers[0];
    assert_eq!((blocker.owner.get(), blocker.kind), (1, EXCLUSIVE));
    assert!(!is_ready(&mut wait));
    a.release_all();
    assert!(is_ready(&mut wait));
    granted(&mut b, &key("row"), SHARED);
    b.release_all();
    assert!(table.is_empty());
}

/// A row is taken back whose name its writer has locked before, which is compact by now. Its waiter
/// goes on. Others still meet the compact lock, and no wait for it is lost.
#[test]
fn what_is_taken_back_is_left_to_its_waiter_under_a_compact_lock() {
    let table = eager_table(1);
    let (mut a, mut b, mut c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    granted(&mut a, &key("row"), EXCLUSIVE);
    make_compact(&mut a, 1);
    let mut wait = waits(&mut b, &key("row"), EXCLUSIVE);
    table.leave_record(a.owner(), &key("row"));
    assert!(is_ready(&mut wait));
    granted(&mut b, &key("row"), EXCLUSIVE);
    let mut later = waits(&mut c, &key("row"), SHARED);
    let blockers = &table.waits(usize::MAX)[0].blockers;
    let owners: Vec<_> = blockers.iter().map(|lock| lock.owner.get()).collect();
    assert_eq!(owners, [2, 1]);
    // The writer has no claim against the one that got the lock.
    let busy = a.acquire(ask(&key("row"), SHARED, Duration::ZERO, 1), 0);
    assert_eq!(busy.unwrap_err(), LockError::Busy);
    b.release_all();
    assert!(!is_ready(&mut later));
    a.release_all();
    assert!(is_ready(&mut later));
    granted(&mut c, &key("row"), SHARED);
    c.release_all();
    assert!(table.is_empty());
}

/// Whoever ends in steps has all its locks until the step that releases them.
#[test]
fn the_end_of_an_owner_with_compact_locks_has_steps() {
    let table = eager_table(1);
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("row"), EXCLUSIVE);
    make_compact(&mut a, 1);
    let mut wait = waits(&mut b, &key("row"), EXCLUSIVE);
    let mut step_count = 0;
    while a.release_some(800) {
        step_count += 1;
        assert!(!is_ready(&mut wait), "the list of others comes last");
    }
    assert_eq!(step_count, 1 + QUEUE_SHARD_COUNT / 100);
    assert!(is_ready(&mut wait));
    assert_eq!(a.held_bytes(), 0);
    granted(&mut a, &key("other"), EXCLUSIVE);
    b.release_all();
    a.release_all();
    assert!(table.is_empty());
}

#[test]
fn a_deadlock_over_compact_locks_is_found() {
    let table = eager_table(0);
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("a"), EXCLUSIVE);
    granted(&mut b, &key("b"), EXCLUSIVE);
    let _wait = waits(&mut a, &key("b"), EXCLUSIVE);
    let answer = b.acquire(ask(&key("a"), EXCLUSIVE, PATIENT, 0), 0);
    let victims = [answer.is_err(), a.take_waited().is_some()];
    assert_eq!(table.statistics().deadlock_count, 1, "{victims:?}");
    a.release_all();
    b.release_all();
    assert!(table.is_empty());
}

#[test]
fn gaps_of_compact_locks_are_split_and_joined() {
    let table = eager_table(0);
    let (mut a, b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("m"), NEXT_KEY);
    assert!(table.has_locks(IndexId(7)));
    assert!(table.is_gap_locked(b.owner(), &key("m")));
    assert!(!table.is_gap_locked(a.owner(), &key("m")));
    a.split_gap(&key("g"), &key("m"));
    assert!(table.is_gap_locked(b.owner(), &key("g")));
    let supremum = LockName::supremum(IndexId(7));
    table.join_gap(&key("m"), &supremum, None);
    assert!(table.is_gap_locked(b.owner(), &supremum));
    let bytes = table.bytes();
    table.join_gap(&key("m"), &supremum, None);
    assert_eq!(table.bytes(), bytes, "it is inherited once");
    // What is compact is not inherited as an object in addition.
    granted(&mut a, &key("z"), GAP);
    let bytes = table.bytes();
    a.split_gap(&key("z"), &key("m"));
    assert!(
        bytes < table.bytes(),
        "an exclusive gap is more than a shared one"
    );
    a.release_all();
    assert!(!table.has_locks(IndexId(7)));
    assert!(table.is_empty());
}

/// The holder of a compact entry asks for the gap alone, and so passes those who wait for it.
#[test]
fn the_holder_of_a_compact_entry_asks_for_the_gap_alone() {
    let table = eager_table(0);
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("row"), EXCLUSIVE);
    let _wait = waits(&mut b, &key("row"), EXCLUSIVE);
    granted(&mut a, &key("row"), NEXT_KEY);
    a.release_all();
    granted(&mut a, &key("other"), EXCLUSIVE);
    granted(&mut a, &key("other"), NEXT_KEY);
    assert!(table.is_gap_locked(b.owner(), &key("other")));
    let again = a.acquire(ask(&key("other"), NEXT_KEY, PATIENT, 1), 0);
    assert!(matches!(again, Ok(Acquired::Held)));
}

/// READ COMMITTED: a lock that was shared before stays when a stronger one goes early.
#[test]
fn a_lock_that_goes_early_leaves_the_compact_one_below_it() {
    let table = eager_table(1);
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("row"), SHARED);
    granted(&mut a, &key("filler"), EXCLUSIVE);
    granted(&mut a, &key("row"), EXCLUSIVE);
    let mut wait = waits(&mut b, &key("row"), EXCLUSIVE);
    a.release_one(&key("row"), EXCLUSIVE);
    assert!(!is_ready(&mut wait), "the shared lock is left");
    a.release_one(&key("row"), SHARED);
    assert!(!is_ready(&mut wait), "a compact lock stays until the end");
    a.release_all();
    assert!(is_ready(&mut wait));
}

/// A lock with a waiter stays an object; when its waiter is gone it becomes compact.
#[test]
fn a_lock_that_is_waited_for_stays_an_object() {
    let table = eager_table(1);
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("row"), EXCLUSIVE);
    let wait = waits(&mut b, &key("row"), EXCLUSIVE);
    granted(&mut a, &key("1"), EXCLUSIVE);
    assert_eq!(a.since(0).count(), 2);
    drop(wait);
    b.cancel_wait(0);
    granted(&mut a, &key("2"), EXCLUSIVE);
    assert_eq!(a.since(0).count(), 1);
    assert_eq!(a.kept_count(), 3);
    assert_eq!(a.since(2).count(), 1);
    assert_eq!(a.since(3).count(), 0);
}

/// A request that would have to enter a compact lock fails if there is no memory for that.
#[test]
fn a_compact_lock_that_cannot_be_entered_is_an_error() {
    let table = Arc::new(LockTable::with_compaction(1 << 13, eager(0)));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("row"), EXCLUSIVE);
    let mut others: Vec<_> = (3..100).map(|id| owner(&table, id)).collect();
    let full = others.iter_mut().position(|other| {
        let name = LockName::supremum(IndexId(other.owner().get()));
        other.acquire(ask(&name, GAP, PATIENT, 1), 0).is_err()
    });
    assert!(full.is_some());
    let answer = b.acquire(ask(&key("row"), SHARED, PATIENT, 1), 0);
    assert_eq!(answer.unwrap_err(), LockError::Full);
    let busy = b.acquire(ask(&key("row"), SHARED, Duration::ZERO, 1), 0);
    assert_eq!(busy.unwrap_err(), LockError::Busy);
    others.clear();
    waits(&mut b, &key("row"), SHARED);
    a.release_all();
    b.release_all();
    assert!(table.is_empty());
}

/// With a print for all names: what one transaction has locked is locked for all others, and
/// nothing that it was granted is lost.
#[test]
fn names_with_one_print_are_locked_together() {
    let compaction = Compaction {
        print_mask: 0,
        ..eager(0)
    };
    let table = Arc::new(LockTable::with_compaction(u64::MAX, compaction));
    let names = neighbours();
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    let mut c = owner(&table, 3);
    // An object of another comes first, so the second name is not the first one's.
    table.convert_implicit(b.owner(), &names[1], |_| true);
    granted(&mut a, &names[0], EXCLUSIVE);
    let mine = a.acquire(ask(&names[2], EXCLUSIVE, PATIENT, 1), 0);
    assert!(matches!(mine, Ok(Acquired::Held)), "the print is locked");
    let mut false_wait = waits(&mut c, &names[2], SHARED);
    // It is not, where another has a lock (L4).
    let mut true_wait = waits(&mut a, &names[1], NEXT_KEY);
    assert!(!table.is_held(a.owner(), &names[1], EXCLUSIVE));
    b.release_all();
    assert!(is_ready(&mut true_wait));
    granted(&mut a, &names[1], NEXT_KEY);
    assert!(!is_ready(&mut false_wait));
    a.release_all();
    assert!(is_ready(&mut false_wait));
    c.release_all();
    assert!(table.is_empty());
}

/// A compact lock may be entered beside another's lock, by a third who waits for that. It does not
/// make its owner the holder (L4).
#[test]
fn an_entered_lock_that_is_not_one_is_not_relied_on() {
    let compaction = Compaction {
        print_mask: 0,
        ..eager(0)
    };
    let table = Arc::new(LockTable::with_compaction(u64::MAX, compaction));
    let names = neighbours();
    let (mut a, mut b, mut c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    table.convert_implicit(b.owner(), &names[0], |_| true);
    granted(&mut a, &names[1], NEXT_KEY);
    let _third = waits(&mut c, &names[0], NEXT_KEY);
    let blockers = table.waits(usize::MAX).remove(0).blockers;
    assert_eq!(blockers.len(), 2, "the true holder and the false one");
    assert!(!table.is_held(a.owner(), &names[0], EXCLUSIVE));
    let mut wait = waits(&mut a, &names[0], EXCLUSIVE);
    b.release_all();
    assert!(is_ready(&mut wait));
}

/// What a random transaction does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Ask(usize, LockKind),
    /// Releases the newest lock early.
    Release,
    Convert(usize),
    GiveUp,
    /// Ends at once, or by so many releases.
    End,
    Begin,
    Split(usize, usize),
    Join(usize, usize),
}

const NAME_COUNT: usize = 6;

fn any_step() -> impl Strategy<Value = (usize, Step)> {
    let kind = prop_oneof![
        Just(SHARED),
        Just(EXCLUSIVE),
        Just(GAP),
        Just(NEXT_KEY),
        Just(LockKind::INSERT_INTENTION)
    ];
    let pair = || (0..NAME_COUNT, 1..NAME_COUNT).prop_map(|(a, d)| (a, (a + d) % NAME_COUNT));
    let step = prop_oneof![
        10 => (0..NAME_COUNT, kind).prop_map(|(name, kind)| Step::Ask(name, kind)),
        2 => Just(Step::Release),
        1 => (0..NAME_COUNT).prop_map(Step::Convert),
        1 => Just(Step::GiveUp),
        1 => Just(Step::End),
        2 => Just(Step::Begin),
        1 => pair().prop_map(|(a, b)| Step::Split(a, b)),
        1 => pair().prop_map(|(a, b)| Step::Join(a, b)),
    ];
    (0..OWNER_COUNT, step)
}

/// A transaction of the model: what it may rely on.
struct Player {
    locks: OwnerLocks,
    /// Names that were granted to it, or that it was told it has; and whether it was granted.
    has: Vec<(usize, LockKind, bool)>,
    /// It has published its end, and has not released all.
    is_ending: bool,
}

impl Player {
    fn end(&mut self) {
        self.has.clear();
        self.locks.release_all();
        self.is_ending = false;
    }

    /// One more step of its end.
    fn end_some(&mut self) {
        self.has.clear();
        self.is_ending = self.locks.release_some(2_000);
    }

    fn ask(&mut self, (name, lock): (usize, &LockName), kind: LockKind) -> Option<LockError> {
        match self.locks.acquire(ask(lock, kind, PATIENT, 1), 0) {
            Ok(Acquired::Granted) => self.has.push((name, kind, true)),
            Ok(Acquired::Held) => self.has.push((name, kind, false)),
            Ok(Acquired::Wait(_)) => {}
            Err(error) => {
                self.end();
                return Some(error);
            }
        }
        None
    }

    /// The newest lock, unless it relies on it otherwise.
    fn release(&mut self, names: &[LockName]) {
        if let Some(&(name, kind, true)) = self.has.last()
            && kind == EXCLUSIVE
            && self.has.iter().filter(|it| it.0 == name).count() == 1
        {
            self.locks.release_one(&names[name], kind);
            self.has.pop();
        }
    }
}

fn assert_apart(players: &[Player]) -> Result<(), TestCaseError> {
    let all = players.iter().enumerate();
    let all = all.flat_map(|(player, it)| it.has.iter().map(move |has| (player, has)));
    let all: Vec<_> = all.collect();
    for (player, (name, kind, _)) in &all {
        for (other, (its_name, its_kind, _)) in &all {
            let is_conflict = player != other && name == its_name && kind.conflicts_with(*its_kind);
            let is_over = kind.extent == LockExtent::InsertIntention;
            prop_assert!(!is_conflict || is_over, "{player} {other} {name}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// As for objects alone, also if prints stand for several names: nobody relies on what another
    /// relies on, no cycle of waits lasts, and nothing is left.
    #[test]
    fn random_transactions_with_compact_locks_exclude_each_other(
        steps in proptest::collection::vec(any_step(), 1..150),
        newest_count in 0..3_usize,
        print_mask in prop_oneof![Just(0), Just(1), Just(u32::MAX)],
    ) {
        let compaction = Compaction { print_mask, ..eager(newest_count) };
        let table = Arc::new(LockTable::with_compaction(u64::MAX, compaction));
        let names = neighbours();
        let mut players: Vec<_> = (1..=OWNER_COUNT as u64)
            .map(|id| Player { locks: owner(&table, id), has: Vec::new(), is_ending: false })
            .collect();
        for (at, step) in steps {
            let player = &mut players[at];
            if player.is_ending {
                player.end_some();
                continue;
            }
            match step {
                Step::Ask(name, kind) => {
                    let error = player.ask((name, &names[name]), kind);
                    prop_assert!(error.is_none_or(|error| error == LockError::Deadlock));
                }
                Step::Release => player.release(names),
                Step::Convert(name) => {
                    let own = player.locks.owner();
                    let is_free = players.iter().enumerate().all(|(other, it)| {
                        other == at || it.has.iter().all(|has| has.0 != name)
                    });
                    if is_free && !table.is_record_locked(own, &names[name]) {
                        table.convert_implicit(own, &names[name], |_| true);
                        players[at].has.push((name, EXCLUSIVE, false));
                    }
                }
                Step::GiveUp => player.locks.cancel_wait(0),
                Step::End => player.end_some(),
                Step::Begin => player.end(),
                Step::Split(new, next) => player.locks.split_gap(&names[new], &names[next]),
                Step::Join(old, next) => table.join_gap(&names[old], &names[next], None),
            }
            assert_apart(&players)?;
            prop_assert!(!has_cycle(&table), "each cycle is found when it closes");
        }
        players.iter_mut().for_each(Player::end);
        prop_assert!(table.is_empty());
    }
}

/// Threads lock names of one shard with two prints, exclusively. Each name has one user at a time.
#[test]
fn threads_with_compact_locks_exclude_each_other() {
    const THREAD_COUNT: u64 = 4;
    const ROUNDS: u64 = 200;
    let compaction = Compaction {
        print_mask: 1,
        ..eager(1)
    };
    let table = Arc::new(LockTable::with_compaction(u64::MAX, compaction));
    let names = neighbours();
    let users: Vec<_> = names.iter().map(|_| AtomicU64::new(0)).collect();
    let play = |thread: u64| {
        let mut random = thread;
        for round in 0..ROUNDS {
            let id = 1 + thread + round * THREAD_COUNT;
            let mut locks = owner(&table, id);
            let mut mine = BTreeSet::new();
            for _ in 0..6 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let at = usize::try_from(random >> 33).unwrap() % names.len();
                let answer = loop {
                    match locks.acquire(ask(&names[at], EXCLUSIVE, PATIENT, 1), 0) {
                        Ok(Acquired::Wait(_)) => thread::yield_now(),
                        answer => break answer,
                    }
                };
                if answer.is_err() {
                    break;
                }
                if mine.insert(at) {
                    let before = users[at].swap(id, Ordering::SeqCst);
                    assert_eq!(before, 0, "a name has one user");
                }
            }
            for at in mine {
                assert_eq!(users[at].swap(0, Ordering::SeqCst), id);
            }
            locks.release_all();
        }
    };
    let play = &play;
    thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            scope.spawn(move || play(thread));
        }
    });
    assert!(table.is_empty());
}
