//! The lock table between threads, each of whose steps `shuttle` draws.
//!
//! The leaf here is what the engine's is to gap locks: a latch with a version, and keys in order.
//! A reader enters its locks without the latch and then looks whether the leaf has changed
//! (`engine::row::cursor::locking`). An insert and a removal hold the latch (`engine::row::gaps`).
//! Each of these steps is left out once, and the phantom is found each time.

#![cfg(shuttle)]
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use format::{IndexId, TxnId};
use lock::{
    Acquired, Ask, Converted, LockError, LockExtent, LockKind, LockMode, LockName, LockTable,
    OwnerLocks, Term,
};
use shuttle::future::block_on;
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner, thread};
use store::ClientId;
use sync::atomic::{AtomicBool, Ordering};
use sync::{HybridLatch, LatchVersion, Mutex};

/// Schedules of a model that holds, of each kind.
const SCHEDULES: usize = 3_000;

/// Schedules until a step that is left out is found, at most. They are the same in each run.
const SCHEDULES_TO_FIND: usize = 20_000;
const SEED: u64 = 1;

const INDEX: IndexId = IndexId(7);
const SHARED_NEXT_KEY: LockKind = LockKind {
    mode: LockMode::Shared,
    extent: LockExtent::NextKey,
};
const SHARED_GAP: LockKind = LockKind {
    mode: LockMode::Shared,
    extent: LockExtent::Gap,
};

/// A step that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// The reader does not look again.
    LooksOnce,
    /// The insert does not look for locks.
    ChecksNoGap,
    /// The insert leaves its own half unlocked.
    SplitsNoGap,
    /// The removal leaves the joined gap unlocked.
    JoinsNoGap,
}

/// Keys in one leaf, and their locks.
struct Leaf {
    table: Arc<LockTable>,
    latch: HybridLatch,
    keys: Mutex<BTreeSet<u8>>,
    slip: Slip,
}

/// A transaction.
fn owner(table: &Arc<LockTable>, id: u64) -> OwnerLocks {
    let id = TxnId::new(id).expect("ids begin at one");
    OwnerLocks::new(Arc::clone(table), id, ClientId::NONE)
}

/// The name of a key, or of the end of the index.
fn name(key: Option<u8>) -> LockName {
    match key {
        Some(key) => LockName::key(INDEX, &[key]),
        None => LockName::supremum(INDEX),
    }
}

/// Asks for a lock, and waits for it. Returns false for the victim of a deadlock.
fn lock(locks: &mut OwnerLocks, name: &LockName, kind: LockKind) -> bool {
    loop {
        let ask = Ask {
            name,
            kind,
            term: Term::Transaction,
            patience: Duration::from_secs(1),
            work: 1,
        };
        match locks.acquire(ask, 0) {
            Ok(Acquired::Held | Acquired::Granted) => return true,
            Ok(Acquired::Wait(future)) => block_on(future),
            Err(LockError::Deadlock) => return false,
            Err(other) => panic!("no time and no room are short: {other:?}"),
        }
    }
}

impl Leaf {
    fn new(keys: &[u8], slip: Slip) -> Self {
        Self {
            table: Arc::new(LockTable::new(1 << 20)),
            latch: HybridLatch::new(),
            keys: Mutex::new(keys.iter().copied().collect()),
            slip,
        }
    }

    fn latch(&self) {
        while !self.latch.try_exclusive() {
            thread::yield_now();
        }
    }

    /// The keys from one on, and the version at which they were read.
    fn read(&self, from: u8) -> (Vec<u8>, LatchVersion) {
        loop {
            if let Some(version) = self.latch.optimistic() {
                let keys = self.keys.lock().range(from..).copied().collect();
                if self.latch.validate(version) {
                    return (keys, version);
                }
            }
            thread::yield_now();
        }
    }

    fn successor(&self, key: u8) -> Option<u8> {
        self.keys.lock().range(key + 1..).next().copied()
    }

    /// Locks the keys from `from` to `to` with their gaps, and what follows them. Returns what it
    /// has found; `None` for a victim.
    fn lock_range(&self, locks: &mut OwnerLocks, from: u8, to: u8) -> Option<Vec<u8>> {
        'read: loop {
            let (keys, version) = self.read(from);
            let inside = keys.iter().copied().take_while(|key| *key <= to).count();
            let (found, behind) = keys.split_at(inside);
            let end = (name(behind.first().copied()), SHARED_GAP);
            let wanted = found.iter().map(|key| (name(Some(*key)), SHARED_NEXT_KEY));
            for (name, kind) in wanted.chain([end]) {
                if !lock(locks, &name, kind) {
                    return None;
                }
                if !self.latch.validate(version) && self.slip != Slip::LooksOnce {
                    continue 'read;
                }
            }
            return Some(found.to_vec());
        }
    }

    /// Inserts a key; false for a victim.
    fn insert(&self, locks: &mut OwnerLocks, key: u8) -> bool {
        loop {
            self.latch();
            let gap = name(self.successor(key));
            let has_locks = self.table.has_locks(INDEX) && self.slip != Slip::ChecksNoGap;
            if has_locks && self.table.is_gap_locked(locks.owner(), &gap) {
                self.latch.unlock_exclusive();
                if !lock(locks, &gap, LockKind::INSERT_INTENTION) {
                    return false;
                }
                continue;
            }
            self.keys.lock().insert(key);
            if has_locks && self.slip != Slip::SplitsNoGap {
                locks.split_gap(&name(Some(key)), &gap);
            }
            self.latch.unlock_exclusive();
            return true;
        }
    }

    /// Removes a key that no snapshot sees, as purge does.
    fn remove(&self, key: u8) {
        self.latch();
        if self.table.has_locks(INDEX) && self.slip != Slip::JoinsNoGap {
            let gap = name(self.successor(key));
            self.table.join_gap(&name(Some(key)), &gap, None);
        }
        self.keys.lock().remove(&key);
        self.latch.unlock_exclusive();
    }
}

/// A reader of 3 to 6 beside one that inserts 5 and 4, and a removal of 7, which bounds the range.
fn read_beside_changes(slip: Slip) {
    let leaf = Arc::new(Leaf::new(&[2, 7, 9], slip));
    let reading = Arc::clone(&leaf);
    let reader = thread::spawn(move || {
        let mut locks = owner(&reading.table, 1);
        let Some(found) = reading.lock_range(&mut locks, 3, 6) else {
            return;
        };
        for _ in 0..3 {
            let (keys, _) = reading.read(3);
            let again: Vec<u8> = keys.into_iter().filter(|key| *key <= 6).collect();
            assert_eq!(found, again, "a locked range stays the same");
        }
    });
    let inserting = Arc::clone(&leaf);
    let inserter = thread::spawn(move || {
        for (id, key) in [(2, 5), (3, 4)] {
            let mut locks = owner(&inserting.table, id);
            assert!(inserting.insert(&mut locks, key), "it holds nothing");
        }
    });
    let removing = Arc::clone(&leaf);
    let remover = thread::spawn(move || removing.remove(7));
    for thread in [reader, inserter, remover] {
        thread.join().expect("no thread failed");
    }
    assert!(
        !leaf.table.has_locks(INDEX),
        "all locks end with their owners"
    );
}

/// A reader of 3 to 6 beside one that inserts 5 as the same owner that reads, so that it splits
/// the locked gap, and another that inserts 4 into its lower half.
fn split_beside_insert(slip: Slip) {
    let leaf = Arc::new(Leaf::new(&[2, 7], slip));
    let reading = Arc::clone(&leaf);
    let reader = thread::spawn(move || {
        let mut locks = owner(&reading.table, 1);
        let Some(mut found) = reading.lock_range(&mut locks, 3, 6) else {
            return;
        };
        if !reading.insert(&mut locks, 5) {
            return;
        }
        found.push(5);
        found.sort_unstable();
        for _ in 0..3 {
            let (keys, _) = reading.read(3);
            let again: Vec<u8> = keys.into_iter().filter(|key| *key <= 6).collect();
            assert_eq!(found, again, "a locked range stays the same");
        }
    });
    let inserting = Arc::clone(&leaf);
    let inserter = thread::spawn(move || {
        let mut locks = owner(&inserting.table, 2);
        assert!(inserting.insert(&mut locks, 4), "it holds nothing");
    });
    for thread in [reader, inserter] {
        thread.join().expect("no thread failed");
    }
    assert!(
        !leaf.table.has_locks(INDEX),
        "all locks end with their owners"
    );
}

/// Whether a model fails in some schedule.
fn is_found(model: fn(Slip), slip: Slip) -> bool {
    let scheduler = RandomScheduler::new_from_seed(SEED, SCHEDULES_TO_FIND);
    let run = || Runner::new(scheduler, Config::new()).run(move || model(slip));
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

#[test]
fn locked_ranges_stay_the_same() {
    shuttle::check_random(|| read_beside_changes(Slip::Nothing), SCHEDULES);
    shuttle::check_pct(|| read_beside_changes(Slip::Nothing), SCHEDULES, 3);
    shuttle::check_random(|| split_beside_insert(Slip::Nothing), SCHEDULES);
}

#[test]
fn each_step_that_is_left_out_is_found() {
    for slip in [Slip::LooksOnce, Slip::ChecksNoGap, Slip::JoinsNoGap] {
        assert!(is_found(read_beside_changes, slip), "{slip:?}");
    }
    assert!(is_found(split_beside_insert, Slip::SplitsNoGap));
}

/// A holder ends while another enters its implicit lock and waits for it: the waiter is woken, and
/// no lock is left.
#[test]
fn the_end_of_a_holder_wakes_who_converts_its_lock() {
    let model = || {
        let table = Arc::new(LockTable::new(1 << 20));
        let is_active = Arc::new(AtomicBool::new(true));
        let row = name(Some(1));
        let (held, ending) = (Arc::clone(&table), Arc::clone(&is_active));
        let holder = thread::spawn(move || {
            let locks = owner(&held, 1);
            // The outcome is published before anything is released (I1).
            ending.store(false, Ordering::SeqCst);
            drop(locks);
        });
        let waiters = [2, 3].map(|id| {
            let (table, row) = (Arc::clone(&table), row.clone());
            let is_active = Arc::clone(&is_active);
            thread::spawn(move || {
                let mut locks = owner(&table, id);
                let holder = TxnId::new(1).expect("ids begin at one");
                let is_active = |_| is_active.load(Ordering::SeqCst);
                let converted = table.convert_implicit(holder, &row, is_active);
                assert!(converted != Converted::Full, "there is room");
                assert!(lock(&mut locks, &row, LockKind::EXCLUSIVE_RECORD));
            })
        });
        holder.join().expect("no thread failed");
        for waiter in waiters {
            waiter.join().expect("no thread failed");
        }
        assert!(!table.has_locks(INDEX), "all locks end with their owners");
    };
    shuttle::check_random(model, SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, 3);
}

/// A holder ends while one thread enters its implicit lock. A removal has another thread enter a
/// gap for it and take that back, so its list comes and goes once more. No lock is left.
#[test]
fn a_list_made_again_for_an_ended_holder_keeps_no_lock() {
    let model = || {
        let table = Arc::new(LockTable::new(1 << 20));
        let is_active = Arc::new(AtomicBool::new(true));
        let [removed, row, gap] = [1, 2, 3].map(|key| name(Some(key)));
        let mut locks = owner(&table, 1);
        let holder = locks.owner();
        assert!(lock(&mut locks, &removed, SHARED_NEXT_KEY), "it is alone");
        let ending = Arc::clone(&is_active);
        let end = thread::spawn(move || {
            ending.store(false, Ordering::SeqCst);
            drop(locks);
        });
        let joining = Arc::clone(&table);
        let join = thread::spawn(move || joining.join_gap(&removed, &gap, None));
        let converting = Arc::clone(&table);
        let convert = thread::spawn(move || {
            let is_active = |_| is_active.load(Ordering::SeqCst);
            let converted = converting.convert_implicit(holder, &row, is_active);
            assert!(converted != Converted::Full, "there is room");
        });
        for thread in [end, join, convert] {
            thread.join().expect("no thread failed");
        }
        assert!(!table.has_locks(INDEX), "all locks end with their owners");
        assert!(table.is_empty(), "so do their lists");
    };
    shuttle::check_random(model, SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, 5);
}

/// Two owners lock two rows against each other's order: at most one is a victim, and both end.
#[test]
fn a_cycle_has_one_victim() {
    let model = || {
        let table = Arc::new(LockTable::new(1 << 20));
        let threads = [(1, [1, 2]), (2, [2, 1])].map(|(id, keys)| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let mut locks = owner(&table, id);
                let mut rows = keys.map(|key| name(Some(key))).into_iter();
                rows.all(|row| lock(&mut locks, &row, LockKind::EXCLUSIVE_RECORD))
            })
        });
        let ended = threads.map(|thread| thread.join().expect("no thread failed"));
        assert!(ended.contains(&true), "one of them goes on");
        assert!(!table.has_locks(INDEX), "all locks end with their owners");
    };
    shuttle::check_random(model, SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, 3);
}
