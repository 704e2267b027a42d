//! The memory of a transaction with many locks, as the table and the allocator count it.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use format::{IndexId, TxnId};
use lock::{Acquired, Ask, LockKind, LockName, LockTable, OwnerLocks, Term};
use store::ClientId;
use tikv_jemalloc_ctl::{epoch, stats};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// What ten million locks may take, in proportion.
const BYTES_PER_10_LOCKS: u64 = 64;

/// The newest locks are objects.
const OBJECT_BYTES: u64 = 4 << 20;

/// What the allocator has given out.
fn allocated() -> u64 {
    epoch::advance().expect("it counts");
    stats::allocated::read().expect("it counts") as u64
}

fn name(row: u64) -> LockName {
    LockName::key(IndexId(7), &row.to_be_bytes())
}

fn lock(locks: &mut OwnerLocks, name: &LockName) -> bool {
    let ask = Ask {
        name,
        kind: LockKind::EXCLUSIVE_RECORD,
        term: Term::Transaction,
        patience: Duration::ZERO,
        work: 0,
    };
    matches!(locks.acquire(ask, 0), Ok(Acquired::Granted))
}

#[test]
fn a_transaction_with_many_locks_takes_some_bytes_for_each() {
    const LOCK_COUNT: u64 = 200_000;
    let table = Arc::new(LockTable::new(u64::MAX));
    let owner = |id| OwnerLocks::new(Arc::clone(&table), TxnId::new(id).unwrap(), ClientId::NONE);
    let before = allocated();
    let (mut locks, mut other) = (owner(1), owner(2));
    let granted = (0..LOCK_COUNT).filter(|row| lock(&mut locks, &name(*row)));
    // A lock is not granted if its name has the print of another: some 1 of 10 million here.
    assert!(LOCK_COUNT - 2 <= granted.count() as u64);
    let limit = OBJECT_BYTES + LOCK_COUNT * BYTES_PER_10_LOCKS / 10;
    let taken = allocated() - before;
    assert!(taken < limit, "{taken} of {limit}");
    assert!(
        locks.held_bytes() < limit,
        "{} of {limit}",
        locks.held_bytes()
    );
    // The table does not count the free places of its maps.
    let counted = table.bytes() + OBJECT_BYTES / 2;
    assert!(taken < counted, "{taken} of {counted}");
    assert!(
        (0..LOCK_COUNT)
            .step_by(97)
            .all(|row| !lock(&mut other, &name(row)))
    );
    assert!(lock(&mut other, &name(LOCK_COUNT)));
    let mut step_count = 0;
    while locks.release_some(512) {
        step_count += 1;
    }
    assert!(20 < step_count, "others have their turn: {step_count}");
    assert!(lock(&mut other, &name(0)));
    other.release_all();
    assert!(table.is_empty());
    let left = allocated().saturating_sub(before);
    assert!(left < OBJECT_BYTES * 3 / 4, "{left} bytes are left");
}
