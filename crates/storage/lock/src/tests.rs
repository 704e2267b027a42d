//! Stories of two or three transactions, and a random run against the rules in the head.

mod compact;
mod reports;

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use format::{IndexId, TxnId};
use proptest::prelude::*;
use store::{ClientId, Witness};
use sync::Mutex;

use crate::{
    Acquired, Ask, Converted, LockError, LockExtent, LockFuture, LockKind, LockMode, LockName,
    LockTable, OwnerLocks, Term,
};

const SHARED: LockKind = LockKind {
    mode: LockMode::Shared,
    extent: LockExtent::Record,
};
const EXCLUSIVE: LockKind = LockKind::EXCLUSIVE_RECORD;
const GAP: LockKind = LockKind {
    mode: LockMode::Shared,
    extent: LockExtent::Gap,
};
const NEXT_KEY: LockKind = LockKind {
    mode: LockMode::Exclusive,
    extent: LockExtent::NextKey,
};
const PATIENT: Duration = Duration::from_nanos(50);

fn owner(table: &Arc<LockTable>, id: u64) -> OwnerLocks {
    OwnerLocks::new(Arc::clone(table), TxnId::new(id).unwrap(), ClientId(id))
}

fn ask(name: &LockName, kind: LockKind, patience: Duration, work: u64) -> Ask<'_> {
    Ask {
        name,
        kind,
        term: Term::Transaction,
        patience,
        work,
    }
}

fn key(text: &str) -> LockName {
    LockName::key(IndexId(7), text.as_bytes())
}

fn granted(locks: &mut OwnerLocks, name: &LockName, kind: LockKind) {
    let answer = locks.acquire(ask(name, kind, PATIENT, 1), 0);
    assert!(matches!(answer, Ok(Acquired::Granted)), "{answer:?}");
}

fn waits(locks: &mut OwnerLocks, name: &LockName, kind: LockKind) -> LockFuture {
    match locks.acquire(ask(name, kind, PATIENT, 1), 0) {
        Ok(Acquired::Wait(future)) => future,
        other => panic!("expected a wait, got {other:?}"),
    }
}

fn is_ready(future: &mut LockFuture) -> bool {
    use std::future::Future;
    Pin::new(future)
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

#[test]
fn the_conflict_table_is_innodbs() {
    use LockExtent::{Gap, InsertIntention, NextKey, Record};
    let extents = [Record, Gap, NextKey, InsertIntention];
    let expected = ["x.x.", "....", "x.x.", ".xx."];
    for (asked, row) in extents.into_iter().zip(expected) {
        for (held, cell) in extents.into_iter().zip(row.chars()) {
            let kind = |extent| LockKind {
                mode: LockMode::Exclusive,
                extent,
            };
            assert_eq!(
                kind(asked).conflicts_with(kind(held)),
                cell == 'x',
                "{asked:?} {held:?}"
            );
        }
    }
    assert!(!SHARED.conflicts_with(SHARED));
    assert!(SHARED.conflicts_with(EXCLUSIVE) && EXCLUSIVE.conflicts_with(SHARED));
}

#[test]
fn readers_share_and_a_writer_waits_for_all_of_them() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b, mut c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    granted(&mut a, &key("k"), SHARED);
    granted(&mut b, &key("k"), SHARED);
    let mut wait = waits(&mut c, &key("k"), EXCLUSIVE);
    a.release_all();
    assert!(!is_ready(&mut wait));
    b.release_all();
    assert!(is_ready(&mut wait));
    granted(&mut c, &key("k"), EXCLUSIVE);
    c.release_all();
    assert!(table.is_empty());
}

#[test]
fn a_victim_that_asks_for_another_lock_learns_that_it_is_one() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    assert_eq!(b.leave_wait(0), Ok(()), "it has not waited");
    granted(&mut a, &key("k"), SHARED);
    granted(&mut a, &key("other"), EXCLUSIVE);
    let mut writer = waits(&mut b, &key("k"), EXCLUSIVE);
    let mut upgrade = waits(&mut a, &key("k"), EXCLUSIVE);
    assert!(is_ready(&mut writer) && is_ready(&mut upgrade));
    granted(&mut a, &key("k"), EXCLUSIVE);
    assert_eq!(b.leave_wait(0), Err(LockError::Deadlock));
    assert_eq!(b.leave_wait(0), Ok(()), "once");
    a.release_all();
    assert!(table.is_empty());
}

#[test]
fn what_is_taken_back_is_left_to_whoever_waits_and_gaps_stay_locked() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("k"), GAP);
    let entered = table.convert_implicit(a.owner(), &key("k"), |_| true);
    assert_eq!(entered, Converted::Entered);
    let mut waiter = waits(&mut b, &key("k"), EXCLUSIVE);
    table.leave_record(a.owner(), &key("k"));
    assert!(is_ready(&mut waiter));
    granted(&mut b, &key("k"), EXCLUSIVE);
    assert!(table.is_held(a.owner(), &key("k"), GAP));
    assert!(table.is_gap_locked(b.owner(), &key("k")));
    // The owner may write under the name again.
    b.release_all();
    let again = table.convert_implicit(a.owner(), &key("k"), |_| true);
    assert_eq!(again, Converted::Entered);
    a.release_all();
    table.finish(a.owner());
    assert!(table.is_empty());
}

#[test]
fn a_reader_does_not_overtake_a_waiting_writer() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b, mut c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    granted(&mut a, &key("k"), SHARED);
    let mut writer = waits(&mut b, &key("k"), EXCLUSIVE);
    let mut reader = waits(&mut c, &key("k"), SHARED);
    a.release_all();
    assert!(is_ready(&mut writer) && !is_ready(&mut reader));
    b.cancel_wait(7_000);
    assert_eq!(b.take_waited(), Some(Duration::from_nanos(7_000)));
    b.release_all();
    assert!(is_ready(&mut reader));
}

#[test]
fn asking_again_for_what_is_included_takes_nothing_more() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let mut a = owner(&table, 1);
    granted(&mut a, &key("k"), NEXT_KEY);
    let bytes = table.bytes();
    for kind in [SHARED, GAP, NEXT_KEY] {
        let again = a.acquire(ask(&key("k"), kind, PATIENT, 1), 0);
        assert!(matches!(again, Ok(Acquired::Held)), "{kind:?}");
    }
    assert_eq!(table.bytes(), bytes);
    a.release_all();
    assert!(table.is_empty());
}

#[test]
fn patience_ends_at_its_limit_and_not_before() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("k"), EXCLUSIVE);
    assert!(matches!(
        b.acquire(ask(&key("k"), EXCLUSIVE, PATIENT, 1), 100),
        Ok(Acquired::Wait(_))
    ));
    assert!(matches!(
        b.acquire(ask(&key("k"), EXCLUSIVE, PATIENT, 1), 149),
        Ok(Acquired::Wait(_))
    ));
    let answer = b.acquire(ask(&key("k"), EXCLUSIVE, PATIENT, 1), 150);
    assert_eq!(answer.unwrap_err(), LockError::Timeout);
    a.release_all();
    assert!(table.is_empty());
}

#[test]
fn without_patience_a_busy_lock_is_an_error_at_once() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("k"), EXCLUSIVE);
    let answer = b.acquire(ask(&key("k"), SHARED, Duration::ZERO, 1), 0);
    assert_eq!(answer.unwrap_err(), LockError::Busy);
    assert_eq!(table.statistics().wait_count, 0);
}

#[test]
fn a_lock_that_came_at_the_last_moment_is_kept() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("k"), EXCLUSIVE);
    waits(&mut b, &key("k"), EXCLUSIVE);
    a.release_all();
    let answer = b.acquire(ask(&key("k"), EXCLUSIVE, PATIENT, 1), 1_000);
    assert!(matches!(answer, Ok(Acquired::Granted)));
    assert_eq!(b.held_count(), 1);
}

#[test]
fn of_a_cycle_of_two_the_cheaper_one_is_the_victim() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("x"), EXCLUSIVE);
    granted(&mut b, &key("y"), EXCLUSIVE);
    let cheap = a.acquire(ask(&key("y"), EXCLUSIVE, PATIENT, 1), 0);
    assert!(matches!(cheap, Ok(Acquired::Wait(_))));
    let dear = b.acquire(ask(&key("x"), EXCLUSIVE, PATIENT, 9), 0);
    let Ok(Acquired::Wait(mut wait)) = dear else {
        panic!("b waits: {dear:?}")
    };
    let answer = a.acquire(ask(&key("y"), EXCLUSIVE, PATIENT, 1), 0);
    assert_eq!(answer.unwrap_err(), LockError::Deadlock);
    a.release_all();
    assert!(is_ready(&mut wait));
    assert_eq!(table.statistics().deadlock_count, 1);
}

#[test]
fn two_sharers_who_both_want_more_are_a_deadlock_found_by_the_second() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("k"), SHARED);
    granted(&mut b, &key("k"), SHARED);
    let mut wait = waits(&mut a, &key("k"), EXCLUSIVE);
    let answer = b.acquire(ask(&key("k"), EXCLUSIVE, PATIENT, 1), 0);
    assert_eq!(answer.unwrap_err(), LockError::Deadlock);
    b.release_all();
    assert!(is_ready(&mut wait));
}

#[test]
fn a_cycle_of_three_is_found() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let mut owners: Vec<_> = (1..=3).map(|id| owner(&table, id)).collect();
    let names = ["x", "y", "z"].map(key);
    for (locks, name) in owners.iter_mut().zip(&names) {
        granted(locks, name, EXCLUSIVE);
    }
    waits(&mut owners[0], &names[1], EXCLUSIVE);
    waits(&mut owners[1], &names[2], EXCLUSIVE);
    let answer = owners[2].acquire(ask(&names[0], EXCLUSIVE, PATIENT, 1), 0);
    assert_eq!(answer.unwrap_err(), LockError::Deadlock);
    assert_eq!(table.statistics().deadlock_count, 1);
}

/// Two owners share a row and both want to change it, with another writer between them.
#[test]
fn a_cycle_within_one_queue_is_found() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let mut owners: Vec<_> = (1..=3).map(|id| owner(&table, id)).collect();
    granted(&mut owners[0], &key("x"), SHARED);
    granted(&mut owners[1], &key("x"), SHARED);
    // With a lock of its own it has as much to lose as the others.
    granted(&mut owners[2], &key("own"), EXCLUSIVE);
    waits(&mut owners[2], &key("x"), EXCLUSIVE);
    let first = owners[0].acquire(ask(&key("x"), EXCLUSIVE, PATIENT, 1), 0);
    assert_eq!(first.unwrap_err(), LockError::Deadlock);
}

/// One wait closes a cycle with each owner that shares the row. That wait must find all of them,
/// because there is no later search.
#[test]
fn every_cycle_that_a_wait_closes_is_broken_by_it() {
    const SHARER_COUNT: u64 = 5;
    let table = Arc::new(LockTable::new(u64::MAX));
    let mut writer = owner(&table, 1);
    let mut sharers: Vec<_> = (2..2 + SHARER_COUNT).map(|id| owner(&table, id)).collect();
    granted(&mut writer, &key("own"), EXCLUSIVE);
    for sharer in &mut sharers {
        granted(sharer, &key("x"), SHARED);
        waits(sharer, &key("own"), SHARED);
    }
    let dear = writer.acquire(ask(&key("x"), EXCLUSIVE, PATIENT, 9), 0);
    let Ok(Acquired::Wait(mut wait)) = dear else {
        panic!("the writer has most to lose: {dear:?}");
    };
    assert!(!has_cycle(&table));
    assert_eq!(table.statistics().deadlock_count, SHARER_COUNT);
    for sharer in &mut sharers {
        let answer = sharer.acquire(ask(&key("own"), SHARED, PATIENT, 1), 0);
        assert_eq!(answer.unwrap_err(), LockError::Deadlock);
        sharer.release_all();
    }
    assert!(is_ready(&mut wait));
}

/// The last edge of a cycle may be a lock that one owner enters for another one, which waits.
#[test]
fn a_cycle_that_a_converted_lock_closes_is_broken_by_who_converts() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let mut owners: Vec<_> = (1..=3).map(|id| owner(&table, id)).collect();
    granted(&mut owners[0], &key("row"), SHARED);
    granted(&mut owners[1], &key("y"), EXCLUSIVE);
    waits(&mut owners[1], &key("row"), EXCLUSIVE);
    waits(&mut owners[2], &key("y"), EXCLUSIVE);
    assert_eq!(table.statistics().deadlock_count, 0);
    let converted = table.convert_implicit(owners[2].owner(), &key("row"), |_| true);
    assert_eq!(converted, Converted::Entered);
    assert!(!has_cycle(&table), "no other request comes to find it");
    assert_eq!(table.statistics().deadlock_count, 1);
}

/// A cycle of any length is found.
#[test]
fn a_cycle_of_five_thousand_is_found() {
    const OWNER_COUNT: u64 = 5_000;
    let table = Arc::new(LockTable::new(u64::MAX));
    let mut owners: Vec<_> = (1..=OWNER_COUNT).map(|id| owner(&table, id)).collect();
    let names: Vec<_> = (0..OWNER_COUNT).map(|row| key(&row.to_string())).collect();
    for (locks, name) in owners.iter_mut().zip(&names) {
        granted(locks, name, EXCLUSIVE);
    }
    // Backwards: each search goes no further than the next owner, except the last.
    for (locks, name) in owners[1..].iter_mut().zip(&names).rev() {
        waits(locks, name, EXCLUSIVE);
    }
    let last = names.last().unwrap();
    let answer = owners[0].acquire(ask(last, EXCLUSIVE, PATIENT, 1), 0);
    assert_eq!(answer.unwrap_err(), LockError::Deadlock);
}

/// Of all that wait for one row, the search visits only the holder.
#[test]
fn many_waiters_of_one_row_cost_a_search_no_more_than_one() {
    const WAITER_COUNT: u64 = 1000;
    let table = Arc::new(LockTable::new(u64::MAX));
    let mut holder = owner(&table, 1);
    granted(&mut holder, &key("x"), EXCLUSIVE);
    let mut owners: Vec<_> = (2..2 + WAITER_COUNT).map(|id| owner(&table, id)).collect();
    granted(&mut owners[0], &key("y"), EXCLUSIVE);
    let mut waiting: Vec<_> = owners
        .iter_mut()
        .map(|locks| waits(locks, &key("x"), EXCLUSIVE))
        .collect();
    let asked = table.statistics().search_step_count;
    assert!(asked <= 2 * WAITER_COUNT, "{asked}");
    let answer = holder.acquire(ask(&key("y"), EXCLUSIVE, PATIENT, 0), 0);
    assert_eq!(
        answer.unwrap_err(),
        LockError::Deadlock,
        "the cycle is found"
    );
    holder.release_all();
    assert!(is_ready(&mut waiting[0]) && !is_ready(&mut waiting[1]));
}

#[test]
fn an_implicit_lock_is_entered_for_its_holder_and_goes_with_it() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut holder, mut other) = (owner(&table, 1), owner(&table, 2));
    assert_eq!(
        table.convert_implicit(holder.owner(), &key("k"), |_| true),
        Converted::Entered
    );
    let mut wait = waits(&mut other, &key("k"), EXCLUSIVE);
    holder.release_all();
    assert!(is_ready(&mut wait));
    other.release_all();
    assert!(table.is_empty());
}

#[test]
fn an_ended_holder_is_not_converted() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let holder = owner(&table, 1);
    assert_eq!(
        table.convert_implicit(holder.owner(), &key("k"), |_| false),
        Converted::Ended
    );
    assert!(table.is_empty());
}

/// Whether the holder is active is asked again when the lock is in its queue (I1). The holder may
/// have taken its list before, and others may have put a name on it since then.
#[test]
fn a_lock_that_was_entered_for_an_ended_holder_is_taken_back() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut holder, row) = (owner(&table, 1), key("k"));
    let asked_count = Cell::new(0);
    let is_active = |_| asked_count.replace(asked_count.get() + 1) == 0;
    let converted = table.convert_implicit(holder.owner(), &row, is_active);
    assert_eq!((converted, asked_count.get()), (Converted::Ended, 2));
    assert!(!table.is_held(holder.owner(), &row, EXCLUSIVE));
    holder.release_all();
    assert!(table.is_empty());
}

/// What the holder has asked for itself stays until it releases it.
#[test]
fn an_ended_holder_keeps_its_own_lock_until_it_releases_it() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut holder, row) = (owner(&table, 1), key("k"));
    granted(&mut holder, &row, EXCLUSIVE);
    let asked_count = Cell::new(0);
    let is_active = |_| asked_count.replace(asked_count.get() + 1) == 0;
    let converted = table.convert_implicit(holder.owner(), &row, is_active);
    assert_eq!(converted, Converted::Ended);
    assert!(table.is_held(holder.owner(), &row, EXCLUSIVE));
    holder.release_all();
    assert!(table.is_empty());
}

#[test]
fn inserts_wait_for_gap_locks_and_each_half_of_a_split_gap_stays_locked() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("m"), GAP);
    assert!(!table.is_gap_locked(a.owner(), &key("m")));
    assert!(table.is_gap_locked(b.owner(), &key("m")));
    a.split_gap(&key("g"), &key("m"));
    assert_eq!(a.held_count(), 2, "its half is a lock of its own");
    assert!(table.is_gap_locked(b.owner(), &key("g")));
    let mut wait = waits(&mut b, &key("g"), LockKind::INSERT_INTENTION);
    a.release_all();
    assert!(is_ready(&mut wait));
    granted(&mut b, &key("g"), LockKind::INSERT_INTENTION);
    b.release_all();
    assert!(table.is_empty());
}

#[test]
fn a_removed_key_leaves_its_lock_to_the_gap_of_its_successor() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("g"), NEXT_KEY);
    table.join_gap(&key("g"), &LockName::supremum(IndexId(7)), None);
    assert!(table.is_gap_locked(b.owner(), &LockName::supremum(IndexId(7))));
    a.release_all();
    assert!(table.is_empty());
}

/// The writer of the removed key keeps its lock of it, so that nobody gets that before the removal,
/// and has no gap behind it. A reader's lock goes to the gap.
#[test]
fn the_lock_of_a_writer_may_leave_no_gap() {
    for is_left in [false, true] {
        let table = Arc::new(LockTable::new(u64::MAX));
        let (mut a, other) = (owner(&table, 1), owner(&table, 3));
        granted(&mut a, &key("g"), EXCLUSIVE);
        let leaver = is_left.then_some(a.owner());
        table.join_gap(&key("g"), &key("m"), leaver);
        assert_eq!(table.is_gap_locked(other.owner(), &key("m")), !is_left);
        assert!(table.is_held(a.owner(), &key("g"), EXCLUSIVE));
        let mut b = owner(&table, 2);
        granted(&mut b, &key("n"), NEXT_KEY);
        table.join_gap(&key("n"), &key("p"), leaver);
        assert!(table.is_gap_locked(other.owner(), &key("p")));
        a.release_all();
        b.release_all();
        assert!(table.is_empty());
    }
}

#[test]
fn under_read_committed_one_lock_can_go_early() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("x"), EXCLUSIVE);
    granted(&mut a, &key("y"), EXCLUSIVE);
    a.release_one(&key("x"), EXCLUSIVE);
    granted(&mut b, &key("x"), EXCLUSIVE);
    assert_eq!(a.held_count(), 1);
}

#[test]
fn an_operation_that_comes_back_with_another_wish_leaves_its_old_queue() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b) = (owner(&table, 1), owner(&table, 2));
    granted(&mut a, &key("x"), EXCLUSIVE);
    waits(&mut b, &key("x"), EXCLUSIVE);
    granted(&mut b, &key("y"), EXCLUSIVE);
    a.release_all();
    b.release_all();
    assert!(table.is_empty());
}

/// What a random transaction does next.
#[derive(Debug, Clone)]
enum Action {
    Ask {
        owner: usize,
        name: u8,
        kind: LockKind,
    },
    End {
        owner: usize,
    },
    GiveUp {
        owner: usize,
    },
    /// Another transaction meets the owner's id in a row.
    Convert {
        owner: usize,
        name: u8,
    },
}

const OWNER_COUNT: usize = 5;

fn any_action() -> impl Strategy<Value = Action> {
    let kind = prop_oneof![
        Just(SHARED),
        Just(EXCLUSIVE),
        Just(GAP),
        Just(NEXT_KEY),
        Just(LockKind::INSERT_INTENTION)
    ];
    prop_oneof![
        6 => (0..OWNER_COUNT, 0..6u8, kind)
            .prop_map(|(owner, name, kind)| Action::Ask { owner, name, kind }),
        2 => (0..OWNER_COUNT).prop_map(|owner| Action::End { owner }),
        1 => (0..OWNER_COUNT).prop_map(|owner| Action::GiveUp { owner }),
        1 => (0..OWNER_COUNT, 4..6u8).prop_map(|(owner, name)| Action::Convert { owner, name }),
    ]
}

proptest! {
    /// No two owners ever hold conflicting locks, no wait lasts for ever, and nothing is left over.
    #[test]
    fn random_transactions_exclude_each_other_and_all_end(
        actions in proptest::collection::vec(any_action(), 1..120),
    ) {
        let table = Arc::new(LockTable::new(u64::MAX));
        let mut owners: Vec<_> =
            (0..OWNER_COUNT).map(|index| owner(&table, 1 + index as u64)).collect();
        let mut held: Vec<Vec<(u8, LockKind)>> = vec![Vec::new(); OWNER_COUNT];
        for action in actions {
            match action {
                Action::Ask { owner, name, kind } => {
                    let name_key = key(&name.to_string());
                    let answer = owners[owner].acquire(ask(&name_key, kind, PATIENT, 1), 0);
                    match answer {
                        Ok(Acquired::Granted) => held[owner].push((name, kind)),
                        Ok(Acquired::Held | Acquired::Wait(_)) => {}
                        Err(error) => {
                            prop_assert_eq!(error, LockError::Deadlock);
                            owners[owner].release_all();
                            held[owner].clear();
                        }
                    }
                }
                Action::End { owner } => {
                    owners[owner].release_all();
                    held[owner].clear();
                }
                Action::GiveUp { owner } => owners[owner].cancel_wait(0),
                Action::Convert { owner, name } => {
                    let name_key = key(&name.to_string());
                    let is_free = owners.iter().enumerate().all(|(other, locks)| {
                        other == owner || !table.is_held(locks.owner(), &name_key, SHARED)
                    });
                    if is_free {
                        table.convert_implicit(owners[owner].owner(), &name_key, |_| true);
                        held[owner].push((name, EXCLUSIVE));
                    }
                }
            }
            assert_exclusive(&held)?;
            prop_assert!(!has_cycle(&table), "each cycle is found when it closes");
        }
        owners.iter_mut().for_each(OwnerLocks::release_all);
        prop_assert!(table.is_empty());
    }
}

/// Whether an owner waits for itself, by all existing edges.
fn has_cycle(table: &LockTable) -> bool {
    let ids = || (1..=OWNER_COUNT as u64).map(|id| TxnId::new(id).unwrap());
    let waits_for = |owner| {
        let waiter = table.shards.wait_of(owner);
        waiter.map_or_else(Vec::new, |waiter| table.shards.blockers(&waiter))
    };
    ids().any(|start| {
        let mut reached = waits_for(start);
        let mut next = 0;
        while let Some(&owner) = reached.get(next) {
            let more = waits_for(owner);
            reached.extend(
                more.into_iter()
                    .filter(|owner| !reached.contains(owner))
                    .collect::<Vec<_>>(),
            );
            next += 1;
        }
        reached.contains(&start)
    })
}

fn assert_exclusive(held: &[Vec<(u8, LockKind)>]) -> Result<(), TestCaseError> {
    for (index, mine) in held.iter().enumerate() {
        for theirs in held.iter().skip(index + 1) {
            for ((my_name, my_kind), (their_name, their_kind)) in mine
                .iter()
                .flat_map(|mine| theirs.iter().map(move |theirs| (*mine, *theirs)))
            {
                let both_record = my_kind.covers_record() && their_kind.covers_record();
                let exclusive =
                    my_kind.mode == LockMode::Exclusive || their_kind.mode == LockMode::Exclusive;
                prop_assert!(my_name != their_name || !both_record || !exclusive);
            }
        }
    }
    Ok(())
}

/// Each name counts as often as it is on a list, own or converted.
#[test]
fn memory_for_locks_has_a_limit() {
    let one = {
        let table = Arc::new(LockTable::new(u64::MAX));
        let mut locks = owner(&table, 1);
        granted(&mut locks, &key("a"), EXCLUSIVE);
        table.bytes()
    };
    let table = Arc::new(LockTable::new(3 * one));
    let (mut first, mut second) = (owner(&table, 1), owner(&table, 2));
    granted(&mut first, &key("a"), EXCLUSIVE);
    granted(&mut second, &key("b"), EXCLUSIVE);
    let convert = |name: &str| table.convert_implicit(first.owner(), &key(name), |_| true);
    assert_eq!(convert("c"), Converted::Entered);
    assert_eq!(table.bytes(), 3 * one);
    assert_eq!(convert("c"), Converted::Entered, "it is there already");
    assert_eq!(convert("d"), Converted::Full);
    let refused = |locks: &mut OwnerLocks, name: &str, kind| {
        let answer = locks.acquire(ask(&key(name), kind, PATIENT, 1), 0);
        matches!(answer, Err(LockError::Full))
    };
    assert!(refused(&mut second, "d", EXCLUSIVE) && refused(&mut second, "d", GAP));
    let again = second.acquire(ask(&key("b"), SHARED, PATIENT, 1), 0);
    assert!(matches!(again, Ok(Acquired::Held)));
    let mut wish = waits(&mut second, &key("a"), EXCLUSIVE);
    first.release_all();
    assert!(is_ready(&mut wish), "what is waited for comes in any case");
    granted(&mut second, &key("a"), EXCLUSIVE);
    granted(&mut second, &key("d"), EXCLUSIVE);
    assert!(refused(&mut second, "e", EXCLUSIVE));
    second.release_all();
    assert!(table.is_empty());
}

/// A repeated operation asks for its locks again, in order. Those that it holds cost it neither its
/// place in the queue nor its time.
#[test]
fn a_wait_outlives_requests_for_what_is_held() {
    let table = Arc::new(LockTable::new(u64::MAX));
    let (mut a, mut b, mut c) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    granted(&mut a, &key("row"), EXCLUSIVE);
    granted(&mut b, &key("own"), EXCLUSIVE);
    waits(&mut b, &key("row"), EXCLUSIVE);
    waits(&mut c, &key("row"), EXCLUSIVE);
    let again = b.acquire(ask(&key("own"), EXCLUSIVE, PATIENT, 1), 49);
    assert!(matches!(again, Ok(Acquired::Held)), "{again:?}");
    let answer = b.acquire(ask(&key("row"), EXCLUSIVE, PATIENT, 1), 49);
    assert!(matches!(answer, Ok(Acquired::Wait(_))), "{answer:?}");
    let again = b.acquire(ask(&key("own"), EXCLUSIVE, PATIENT, 1), 50);
    assert!(matches!(again, Ok(Acquired::Held)), "{again:?}");
    let answer = b.acquire(ask(&key("row"), EXCLUSIVE, PATIENT, 1), 50);
    assert_eq!(answer.unwrap_err(), LockError::Timeout);
    // A request for any other lock cancels the wait: another row blocks the operation now.
    waits(&mut b, &key("row"), EXCLUSIVE);
    granted(&mut b, &key("other"), EXCLUSIVE);
    a.release_all();
    granted(&mut c, &key("row"), EXCLUSIVE);
    b.release_all();
    c.release_all();
    assert!(table.is_empty());
}

/// Locks rows until one is refused. Returns the number of granted locks.
fn fill(locks: &mut OwnerLocks, prefix: &str) -> u64 {
    let mut count = 0;
    loop {
        let name = key(&format!("{prefix}{count:06}"));
        match locks.acquire(ask(&name, EXCLUSIVE, PATIENT, 1), 0) {
            Ok(_) => count += 1,
            Err(error) => {
                assert_eq!(error, LockError::Full);
                return count;
            }
        }
    }
}

/// An owner that fills the memory is refused at seven eighths of it. An owner that holds little is
/// served to the last byte.
#[test]
fn who_fills_the_memory_is_the_one_that_is_refused() {
    const ROOM: u64 = 800;
    let one = {
        let table = Arc::new(LockTable::new(u64::MAX));
        let mut locks = owner(&table, 1);
        granted(&mut locks, &key("a000000"), EXCLUSIVE);
        table.bytes()
    };
    let table = Arc::new(LockTable::new(ROOM * one));
    let mut hog = owner(&table, 1);
    assert_eq!(fill(&mut hog, "a"), ROOM * 7 / 8);
    let mut small: Vec<_> = (2..102).map(|id| owner(&table, id)).collect();
    for (number, locks) in small.iter_mut().enumerate() {
        granted(locks, &key(&format!("b{number:06}")), EXCLUSIVE);
    }
    assert_eq!(table.bytes(), ROOM * one, "the last byte");
    let answer = small[0].acquire(ask(&key("c000000"), EXCLUSIVE, PATIENT, 1), 0);
    assert_eq!(answer.unwrap_err(), LockError::Full, "one more is too many");
    hog.release_all();
    small.iter_mut().for_each(OwnerLocks::release_all);
    assert!(table.is_empty());
}

/// A second transaction that takes much leaves room for small ones, too.
#[test]
fn two_who_hold_much_leave_room() {
    let table = Arc::new(LockTable::new(1 << 20));
    let (mut first, mut second, mut third) = (owner(&table, 1), owner(&table, 2), owner(&table, 3));
    let first_count = fill(&mut first, "a");
    let second_count = fill(&mut second, "b");
    assert!(second_count < first_count);
    granted(&mut third, &key("c"), EXCLUSIVE);
    let answer = first.acquire(ask(&key("d"), EXCLUSIVE, PATIENT, 1), 0);
    assert_eq!(
        answer.unwrap_err(),
        LockError::Full,
        "it still holds the most"
    );
    second.release_all();
}

/// Otherwise the holder would wait for one that waits for it.
#[test]
fn the_holder_of_an_entry_asks_for_the_gap_alone() {
    let table = Arc::new(LockTable::new(1 << 20));
    let (mut holder, mut other) = (owner(&table, 1), owner(&table, 2));
    let name = key("a");
    granted(&mut holder, &name, EXCLUSIVE);
    let wait = waits(&mut other, &name, SHARED);
    granted(&mut holder, &name, NEXT_KEY);
    let again = holder.acquire(ask(&name, NEXT_KEY, PATIENT, 1), 0);
    assert!(matches!(again, Ok(Acquired::Held)), "{again:?}");
    assert!(table.is_gap_locked(other.owner(), &name));
    assert_eq!(holder.kept_count(), 2);
    // A shared entry is not enough for an exclusive one.
    let name = key("b");
    granted(&mut holder, &name, SHARED);
    granted(&mut other, &name, SHARED);
    let answer = holder.acquire(ask(&name, NEXT_KEY, Duration::ZERO, 1), 0);
    assert_eq!(answer.unwrap_err(), LockError::Busy);
    drop(wait);
    other.release_all();
    holder.release_all();
    assert!(table.is_empty());
}
