//! Maps a transaction's number to its outcome: one atomic word each, in a ring.
//!
//! Numbers are dense and grow. The ring holds the words of the numbers in `low..limit`. Numbers
//! from `next` on have not been allocated yet.
//!
//! A word goes `unused -> active` \[`allocate`], `active -> ending -> committed(n)` \[`commit`],
//! `active -> rolled back` \[`roll_back`], or `active -> moved` \[`move_out`]: the caller that
//! moved it keeps its state elsewhere from then on. A thread that needs the number of an ending
//! transaction turns the word from `ending` to `watched` \[`watch`], and its `commit` wakes the
//! watchers.
//!
//! Rules:
//! (R1) `commit` marks the word as ending before it takes its commit number, and stores the number
//! after. So a thread that has read a snapshot number not smaller than the commit number, and then
//! reads the word, finds it ending or committed, never active.
//! (R2) `recycle` raises `low`, then clears words with release stores, then raises `limit`. A
//! reader loads the word (acquire) and then `low`. If the word had been cleared or reused, it sees
//! the raised `low` and discards what it read.
//! (R3) A number is allocated only below `limit`, so a cleared word has one owner.
//! (R4) Until it commits, a word carries its transaction's number. So the owner of a number that
//! was moved out and recycled cannot mistake the word's next owner for itself.
//! (R5) A watcher is put on the list and the word is marked as watched under the list's mutex.
//! `commit` replaces the word and then takes the list if the word was marked. So a watcher either
//! finds the number in the word or is on the list when `commit` takes it.
//!
//! No thread spins here. The thread between its mark and its number may have been preempted, and
//! may need the very processor that a spinning thread would hold.

use std::task::Waker;

use crate::atomic::{AtomicU64, Ordering};
use crate::{CachePadded, Mutex};

/// A cleared word. Commit numbers are log positions and never 0.
const UNUSED: u64 = 0;
/// Words of transactions without a commit number carry a tag in the bits from here on, and the
/// transaction's number below (R4).
const TAG_SHIFT: u32 = 60;
const ACTIVE: u64 = 1 << TAG_SHIFT;
const ENDING: u64 = 2 << TAG_SHIFT;
const ROLLED_BACK: u64 = 3 << TAG_SHIFT;
const MOVED: u64 = 4 << TAG_SHIFT;
const WATCHED: u64 = 5 << TAG_SHIFT;
const NUMBER_MASK: u64 = ACTIVE - 1;

/// The state of a transaction's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingState {
    /// It runs, or waits, or rolls back.
    Active,
    /// It is taking its commit number: see [`CommitRing::watch`].
    Ending,
    /// It has committed with this number.
    Committed(u64),
    /// It has rolled back, and no row carries its number any more.
    RolledBack,
    /// The caller that moved it out keeps its state.
    Moved,
    /// Its number is below the ring.
    Recycled,
}

/// The result of moving a word out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedOut {
    /// It was active, and is moved now.
    Moved,
    /// It has ended, or was moved before.
    Ended,
    /// Its owner is in the middle of a few instructions: ask again later.
    Busy,
}

/// The words of the youngest transactions. Shared by all workers.
#[derive(Debug)]
pub struct CommitRing {
    /// The word of number `n` is at `n % length`; the length is a power of two.
    words: Box<[AtomicU64]>,
    /// The next number to be allocated.
    next: CachePadded<AtomicU64>,
    /// The lowest number whose word is in the ring.
    low: CachePadded<AtomicU64>,
    /// Numbers from here on may not be allocated yet.
    limit: CachePadded<AtomicU64>,
    /// Watchers of commit numbers, by transaction (R5). Mostly empty.
    watchers: Mutex<Vec<(u64, Waker)>>,
}

impl CommitRing {
    /// A ring of `length` words whose first number is `first`.
    ///
    /// # Panics
    /// If `length` is not a power of two, or `first` is 0 (which means "no transaction").
    pub fn new(length: usize, first: u64) -> Self {
        assert!(length.is_power_of_two(), "positions are taken by mask");
        assert!(0 < first, "number 0 means no transaction");
        Self {
            words: (0..length).map(|_| AtomicU64::new(UNUSED)).collect(),
            next: CachePadded::new(AtomicU64::new(first)),
            low: CachePadded::new(AtomicU64::new(first)),
            limit: CachePadded::new(AtomicU64::new(first + length as u64)),
            watchers: Mutex::new(Vec::new()),
        }
    }

    /// Number of words.
    pub fn length(&self) -> u64 {
        self.words.len() as u64
    }

    /// Allocates the next number, active. Returns `None` while the ring is full.
    pub fn allocate(&self) -> Option<u64> {
        let mut number = self.next.load(Ordering::Relaxed);
        loop {
            // Acquire: pairs with the store in `recycle`, so that the word is seen cleared (R3).
            if self.limit.load(Ordering::Acquire) <= number {
                return None;
            }
            let claimed = self.next.compare_exchange_weak(
                number,
                number + 1,
                Ordering::SeqCst,
                Ordering::Relaxed,
            );
            match claimed {
                Ok(_) => break,
                Err(actual) => number = actual,
            }
        }
        let before = self.word(number).swap(ACTIVE | number, Ordering::Relaxed);
        assert_eq!(
            before, UNUSED,
            "a number is given out once, into a cleared word"
        );
        Some(number)
    }

    /// The next number to be allocated. SeqCst: a snapshot that loads its commit number first and
    /// this afterwards knows that later numbers commit after it.
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// The lowest number in the ring.
    pub fn low(&self) -> u64 {
        self.low.load(Ordering::Acquire)
    }

    /// Ends a transaction: marks it as ending, takes its commit number from `take_number`, and
    /// publishes it. Returns false, without calling `take_number`, if the word was moved out.
    ///
    /// # Panics
    /// If it is not active, or the number is 0 or has tag bits.
    pub fn commit(&self, number: u64, take_number: impl FnOnce() -> u64) -> bool {
        if !self.leave_active(number, ENDING) {
            return false;
        }
        let commit_number = take_number();
        assert!(
            0 < commit_number,
            "log positions begin behind the first block"
        );
        assert!(
            commit_number <= NUMBER_MASK,
            "log positions leave the tag bits alone"
        );
        // Release: a thread that sees the commit number sees what the transaction wrote before. A
        // swap, and Acquire, for the watchers (R5).
        let before = self.word(number).swap(commit_number, Ordering::AcqRel);
        if before == WATCHED | number {
            self.wake_watchers(number);
        } else {
            assert_eq!(before, ENDING | number, "nobody else ends a transaction");
        }
        true
    }

    #[cold]
    fn wake_watchers(&self, number: u64) {
        let woken: Vec<_> = {
            let mut watchers = self.watchers.lock();
            watchers
                .extract_if(.., |(watched, _)| *watched == number)
                .collect()
        };
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Wakes `waker` once an ending transaction has its commit number. Returns false if it is not
    /// ending: then its state shows its outcome.
    pub fn watch(&self, number: u64, waker: &Waker) -> bool {
        let mut watchers = self.watchers.lock();
        let is_ending = match self.replace(number, ENDING, WATCHED) {
            Ok(_) => true,
            Err(word) => word == WATCHED | number,
        };
        let is_listed =
            |(watched, other): &(u64, Waker)| *watched == number && other.will_wake(waker);
        if is_ending && !watchers.iter().any(is_listed) {
            watchers.push((number, waker.clone()));
        }
        is_ending
    }

    /// Ends a transaction whose changes are all undone. Returns false if the word was moved out.
    pub fn roll_back(&self, number: u64) -> bool {
        self.leave_active(number, ROLLED_BACK)
    }

    /// Marks an active transaction's word as moved.
    pub fn move_out(&self, number: u64) -> MovedOut {
        match self.replace(number, ACTIVE, MOVED) {
            Ok(_) => MovedOut::Moved,
            // Allocated but not marked yet, or between its mark and its number.
            Err(word) if word == UNUSED || word == ENDING | number || word == WATCHED | number => {
                MovedOut::Busy
            }
            Err(_) => MovedOut::Ended,
        }
    }

    /// The outcome of a transaction. See [`RingState`].
    pub fn state(&self, number: u64) -> RingState {
        let word = self.word(number).load(Ordering::Acquire);
        // After the word (R2).
        if number < self.low.load(Ordering::Acquire) {
            return RingState::Recycled;
        }
        match word & !NUMBER_MASK {
            ACTIVE => RingState::Active,
            ENDING | WATCHED => RingState::Ending,
            ROLLED_BACK => RingState::RolledBack,
            MOVED => RingState::Moved,
            _ if word == UNUSED => RingState::Active,
            _ => RingState::Committed(word),
        }
    }

    /// Drops the words below `new_low` and makes room for as many numbers. One caller at a time;
    /// none of the dropped transactions may be active.
    ///
    /// # Panics
    /// If `new_low` goes back or beyond the allocated numbers, or a dropped word is still active.
    pub fn recycle(&self, new_low: u64) {
        let low = self.low.load(Ordering::Relaxed);
        assert!(low <= new_low, "the ring moves forward");
        assert!(
            new_low <= self.next(),
            "only numbers that were given out are dropped"
        );
        self.low.store(new_low, Ordering::Release);
        for number in low..new_low {
            // Release: pairs with the acquire load in `state` (R2).
            let before = self.word(number).swap(UNUSED, Ordering::AcqRel);
            let has_ended =
                !matches!(before & !NUMBER_MASK, ACTIVE | ENDING | WATCHED) && before != UNUSED;
            assert!(
                has_ended,
                "a dropped transaction has ended or was moved out"
            );
        }
        self.limit.store(new_low + self.length(), Ordering::Release);
    }

    fn leave_active(&self, number: u64, to: u64) -> bool {
        match self.replace(number, ACTIVE, to) {
            Ok(_) => true,
            Err(word) if word == MOVED | number || number < self.low() => false,
            Err(word) => panic!("transaction {number} ends in word {word:#x}, not from active"),
        }
    }

    /// SeqCst on success: R1 needs the mark before the commit number in one order with the
    /// snapshot's load.
    fn replace(&self, number: u64, from: u64, to: u64) -> Result<u64, u64> {
        let (from, to) = (from | number, to | number);
        self.word(number)
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::Acquire)
    }

    fn word(&self, number: u64) -> &AtomicU64 {
        let position = usize::try_from(number % self.length());
        &self.words[position.expect("a position in the ring is a usize")]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_out_until_the_ring_is_full_and_again_after_recycling() {
        let ring = CommitRing::new(4, 10);
        let numbers: Vec<_> = (0..4).map(|_| ring.allocate()).collect();
        assert_eq!(numbers, [Some(10), Some(11), Some(12), Some(13)]);
        assert_eq!(ring.allocate(), None);
        assert!(ring.commit(10, || 100));
        assert!(ring.roll_back(11));
        ring.recycle(12);
        assert_eq!(ring.state(10), RingState::Recycled);
        assert_eq!(ring.allocate(), Some(14));
        assert_eq!(ring.allocate(), Some(15));
        assert_eq!(ring.allocate(), None);
    }

    #[test]
    fn states_follow_the_life_of_a_transaction() {
        let ring = CommitRing::new(8, 1);
        let number = ring.allocate().unwrap();
        assert_eq!(ring.state(number), RingState::Active);
        assert!(ring.commit(number, || {
            assert_eq!(ring.state(number), RingState::Ending);
            77
        }));
        assert_eq!(ring.state(number), RingState::Committed(77));
    }

    #[test]
    fn a_moved_transaction_is_told_so_when_it_ends() {
        let ring = CommitRing::new(2, 1);
        let number = ring.allocate().unwrap();
        assert_eq!(ring.move_out(number), MovedOut::Moved);
        assert_eq!(ring.state(number), RingState::Moved);
        ring.recycle(2);
        assert!(!ring.commit(number, || unreachable!("no number is taken")));
        assert!(!ring.roll_back(number));
        let other = ring.allocate().unwrap();
        let reuser = ring.allocate().unwrap();
        assert!(!ring.commit(number, || unreachable!("the word is another's now")));
        assert!(ring.commit(reuser, || 9) && ring.commit(other, || 8));
        assert_eq!(ring.move_out(other), MovedOut::Ended);
    }

    /// Counts how often it was woken.
    struct Bell(AtomicU64);

    impl std::task::Wake for Bell {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A thread that is stopped between its mark and its number holds up no other thread. A thread
    /// that needs the number is woken, and a thread that moves words out tries again later.
    #[test]
    fn nobody_stands_still_for_a_transaction_that_is_ending() {
        let ring = CommitRing::new(4, 1);
        let (number, other) = (ring.allocate().unwrap(), ring.allocate().unwrap());
        let bell = std::sync::Arc::new(Bell(AtomicU64::new(0)));
        let waker = Waker::from(std::sync::Arc::clone(&bell));
        assert!(!ring.watch(number, &waker), "it is active");
        assert!(ring.commit(number, || {
            assert_eq!(ring.move_out(number), MovedOut::Busy);
            assert!(ring.watch(number, &waker) && ring.watch(number, &waker));
            assert_eq!(ring.state(number), RingState::Ending);
            assert_eq!(ring.move_out(number), MovedOut::Busy);
            assert!(ring.commit(other, || 76));
            assert_eq!(
                bell.0.load(Ordering::SeqCst),
                0,
                "the other's end is not waited for"
            );
            77
        }));
        assert_eq!(bell.0.load(Ordering::SeqCst), 1);
        assert_eq!(ring.state(number), RingState::Committed(77));
        assert!(!ring.watch(number, &waker), "it has its number");
        assert_eq!(ring.move_out(number), MovedOut::Ended);
    }

    #[test]
    #[should_panic(expected = "a dropped transaction has ended")]
    fn an_active_transaction_is_never_dropped() {
        let ring = CommitRing::new(4, 1);
        ring.allocate().unwrap();
        ring.recycle(2);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// R1: the log's position stands for the snapshot number.
    #[test]
    fn a_snapshot_that_includes_a_commit_number_never_finds_it_active() {
        loom::model(|| {
            let ring = Arc::new(CommitRing::new(2, 1));
            let position = Arc::new(AtomicU64::new(10));
            let number = ring.allocate().unwrap();
            let committer = {
                let (ring, position) = (ring.clone(), position.clone());
                thread::spawn(move || {
                    ring.commit(number, || position.fetch_add(10, Ordering::AcqRel) + 10);
                })
            };
            let snapshot = position.load(Ordering::SeqCst);
            let state = ring.state(number);
            match state {
                RingState::Active => assert!(snapshot < 20),
                RingState::Ending | RingState::Committed(20) => {}
                other => panic!("{other:?}"),
            }
            committer.join().unwrap();
        });
    }

    /// R2: never the state of the word's next owner.
    #[test]
    fn a_reader_of_a_recycled_word_learns_that_it_is_gone() {
        loom::model(|| {
            let ring = Arc::new(CommitRing::new(1, 1));
            let first = ring.allocate().unwrap();
            assert!(ring.commit(first, || 50));
            let recycler = {
                let ring = ring.clone();
                thread::spawn(move || {
                    ring.recycle(2);
                    let second = ring.allocate().unwrap();
                    assert!(ring.commit(second, || 60));
                })
            };
            let state = ring.state(first);
            assert!(
                matches!(state, RingState::Committed(50) | RingState::Recycled),
                "{state:?}"
            );
            recycler.join().unwrap();
        });
    }

    /// A row's lock is its writer's number, and a thread that finds it held puts itself on the
    /// writer's list. The writer takes that list after its commit and releases the threads on it;
    /// none is added later. A thread that passes the lock comes after the commit.
    #[test]
    fn who_waits_for_a_committer_is_found_and_who_does_not_comes_after_it() {
        loom::model(|| {
            let ring = Arc::new(CommitRing::new(2, 1));
            let position = Arc::new(AtomicU64::new(10));
            let waiting = Arc::new(loom::sync::Mutex::new(false));
            let number = ring.allocate().unwrap();
            let committer = {
                let (ring, position, waiting) = (ring.clone(), position.clone(), waiting.clone());
                thread::spawn(move || {
                    ring.commit(number, || position.fetch_add(10, Ordering::AcqRel) + 10);
                    std::mem::take(&mut *waiting.lock().unwrap())
                })
            };
            let is_held = {
                let mut waiting = waiting.lock().unwrap();
                let state = ring.state(number);
                *waiting = matches!(state, RingState::Active | RingState::Ending);
                *waiting
            };
            if !is_held {
                let own = position.fetch_add(10, Ordering::AcqRel) + 10;
                assert!(20 < own, "it stands behind what it is built on");
            }
            assert_eq!(committer.join().unwrap(), is_held);
        });
    }

    #[test]
    fn a_transaction_either_commits_in_the_ring_or_learns_that_it_was_moved() {
        loom::model(|| {
            let ring = Arc::new(CommitRing::new(1, 1));
            let number = ring.allocate().unwrap();
            let mover = {
                let ring = ring.clone();
                thread::spawn(move || ring.move_out(number))
            };
            let committed = ring.commit(number, || 50);
            let moved = mover.join().unwrap();
            assert_eq!(!committed, moved == MovedOut::Moved);
        });
    }

    struct Bell(loom::sync::atomic::AtomicBool);

    impl std::task::Wake for Bell {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// R5: two watchers, of which each finds the number or is woken.
    #[test]
    fn a_watcher_finds_the_number_or_is_woken() {
        let mut model = loom::model::Builder::new();
        // Three threads: all schedules take minutes.
        model.preemption_bound = Some(3);
        model.check(|| {
            let ring = Arc::new(CommitRing::new(1, 1));
            let number = ring.allocate().unwrap();
            let committer = {
                let ring = ring.clone();
                thread::spawn(move || ring.commit(number, || 50))
            };
            let watch = move |ring: &CommitRing| {
                let bell = std::sync::Arc::new(Bell(loom::sync::atomic::AtomicBool::new(false)));
                let waker = Waker::from(std::sync::Arc::clone(&bell));
                let is_watching = ring.watch(number, &waker);
                (bell, is_watching)
            };
            let other = {
                let ring = ring.clone();
                thread::spawn(move || watch(&ring))
            };
            let watchers = [watch(&ring), other.join().unwrap()];
            committer.join().unwrap();
            assert_eq!(ring.state(number), RingState::Committed(50));
            for (bell, is_watching) in watchers {
                assert_eq!(bell.0.load(Ordering::Acquire), is_watching);
            }
        });
    }
}
