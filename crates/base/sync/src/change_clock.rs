//! When each of many things was changed last, for those who keep copies of them.
//!
//! A clock counts changes. A writer moves it before its change can be seen and again once it is
//! over, and notes the time in the slots of what it changes. Who makes a copy takes the time before
//! it reads. The copy is good as long as no slot that it was read from has a later time.
//!
//! ```text
//! writer:  begin: writers + 1, clock + 1 -> changed_at | change | end: clock + 1 -> changed_at,
//!          writers - 1
//! copier:  now -> stamp, not is_changing | read | is_unchanged(stamp): kept
//! user:    is_unchanged(stamp of the copy)
//! ```
//!
//! (C1) A copier reads the clock before it looks for writers, and a writer is counted before it
//! moves the clock. So one of them sees the other.
//! (C2) A copy that is used was made after each change that somebody has seen before the use. The
//! end of a change need not be noted before it is told: no copy is made while it is under way.
//! (C3) All accesses are sequentially consistent, since (C1) is about two places in memory. A load
//! costs no more for that. Changes are rare beside uses.

use crate::CachePadded;
use crate::atomic::{AtomicU32, AtomicU64, Ordering};

/// See the module's head.
#[derive(Debug)]
pub struct ChangeClock {
    time: CachePadded<AtomicU64>,
    slots: Box<[Slot]>,
}

#[derive(Debug)]
struct Slot {
    changed_at: AtomicU64,
    /// Changes under way.
    writers: AtomicU32,
}

/// A moment on a [`ChangeClock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ChangeTime(u64);

impl ChangeClock {
    /// A clock with so many slots, none of which was ever changed.
    pub fn new(slot_count: usize) -> Self {
        let slot = |_| Slot {
            changed_at: AtomicU64::new(0),
            writers: AtomicU32::new(0),
        };
        Self {
            time: CachePadded::new(AtomicU64::new(0)),
            slots: (0..slot_count).map(slot).collect(),
        }
    }

    /// The present moment.
    #[inline]
    pub fn now(&self) -> ChangeTime {
        ChangeTime(self.time.load(Ordering::SeqCst))
    }

    /// Whether a slot was not changed after a moment.
    ///
    /// # Panics
    /// If there is no such slot. So do the others.
    #[inline]
    pub fn is_unchanged(&self, slot: usize, since: ChangeTime) -> bool {
        self.slots[slot].changed_at.load(Ordering::SeqCst) <= since.0
    }

    /// Whether a change of a slot is under way.
    #[inline]
    pub fn is_changing(&self, slot: usize) -> bool {
        self.slots[slot].writers.load(Ordering::SeqCst) != 0
    }

    /// A change of these slots begins: nothing of it can be seen yet.
    pub fn begin(&self, slots: impl Iterator<Item = usize> + Clone) {
        for slot in slots.clone() {
            self.slots[slot].writers.fetch_add(1, Ordering::SeqCst);
        }
        self.note(slots);
    }

    /// A change that was begun is over: all of it can be seen.
    pub fn end(&self, slots: impl Iterator<Item = usize> + Clone) {
        self.note(slots.clone());
        for slot in slots {
            self.slots[slot].writers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// These slots have changed.
    pub fn note(&self, slots: impl Iterator<Item = usize>) {
        let time = self.time.fetch_add(1, Ordering::SeqCst) + 1;
        for slot in slots {
            self.slots[slot]
                .changed_at
                .fetch_max(time, Ordering::SeqCst);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn is_kept(clock: &ChangeClock, slot: usize, stamp: ChangeTime) -> bool {
        clock.is_unchanged(slot, stamp) && !clock.is_changing(slot)
    }

    #[test]
    fn a_change_makes_copies_void_at_its_begin_and_at_its_end() {
        let clock = ChangeClock::new(3);
        let before = clock.now();
        assert!(is_kept(&clock, 0, before));
        clock.begin([0, 1].into_iter());
        assert!(clock.is_changing(0) && clock.is_changing(1) && !clock.is_changing(2));
        assert!(!clock.is_unchanged(0, before) && clock.is_unchanged(2, before));
        let meanwhile = clock.now();
        assert!(clock.is_unchanged(0, meanwhile));
        clock.begin([0].into_iter());
        clock.end([0].into_iter());
        assert!(clock.is_changing(0), "the first one is under way");
        clock.end([0, 1].into_iter());
        assert!(!clock.is_unchanged(1, meanwhile));
        assert!(is_kept(&clock, 0, clock.now()));
        let after = clock.now();
        clock.note([2].into_iter());
        assert!(clock.is_unchanged(0, after) && !clock.is_unchanged(2, after));
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::Mutex;

    /// A value, a copy of it in a cache, and the last value whose change was told.
    struct World {
        clock: ChangeClock,
        value: AtomicU64,
        cache: Mutex<Option<(u64, ChangeTime)>>,
        told: AtomicU64,
    }

    impl World {
        fn new() -> Arc<World> {
            Arc::new(World {
                clock: ChangeClock::new(1),
                value: AtomicU64::new(0),
                cache: Mutex::new(None),
                told: AtomicU64::new(0),
            })
        }

        fn change(&self, value: u64) {
            self.clock.begin([0].into_iter());
            self.value.store(value, Ordering::SeqCst);
            self.told.store(value, Ordering::SeqCst);
            self.clock.end([0].into_iter());
        }

        fn copy(&self) {
            let stamp = self.clock.now();
            if self.clock.is_changing(0) {
                return;
            }
            let value = self.value.load(Ordering::SeqCst);
            if self.clock.is_unchanged(0, stamp) {
                *self.cache.lock() = Some((value, stamp));
            }
        }

        /// Uses the copy, if it is good: it is no older than what was told before.
        fn check(&self) {
            let told = self.told.load(Ordering::SeqCst);
            let copy = *self.cache.lock();
            if let Some((value, stamp)) = copy
                && self.clock.is_unchanged(0, stamp)
            {
                assert!(told <= value, "the copy is older than what was told");
            }
        }
    }

    #[test]
    fn a_copy_is_never_older_than_what_was_told() {
        loom::model(|| {
            let world = World::new();
            let copier = {
                let world = world.clone();
                thread::spawn(move || world.copy())
            };
            let writer = {
                let world = world.clone();
                thread::spawn(move || world.change(1))
            };
            world.check();
            copier.join().unwrap();
            writer.join().unwrap();
            world.check();
            assert!(world.clock.is_unchanged(0, world.clock.now()));
        });
    }

    /// The same with two changes, one behind the other, and a copy that is made beside the second.
    #[test]
    fn neither_beside_a_later_change() {
        loom::model(|| {
            let world = World::new();
            let writer = {
                let world = world.clone();
                thread::spawn(move || {
                    world.change(1);
                    world.change(2);
                })
            };
            world.copy();
            world.check();
            writer.join().unwrap();
            world.check();
        });
    }
}
