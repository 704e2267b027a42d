//! A lock that many cores hold in shared mode almost for free, and one core rarely exclusively.
//!
//! It is for what every statement needs and hardly anything changes: the definition of a table. A
//! shared holder writes only a counter of its own slot (one slot a worker, a cache line each) and
//! reads one word that seldom changes. An exclusive holder pays for all. It sets that word, which
//! refuses new shared holders, and waits until each counter is 0. No call blocks a thread: `try_*`
//! returns whether it got the lock, and `poll_*` also registers a waker if it did not.
//!
//! Rules of the shared words:
//!
//! 1. `exclusive` is 1 from `announce_exclusive` to `unlock_exclusive`; changed by compare-and-swap
//!    from 0, so there is one exclusive owner at most.
//! 2. A shared holder adds 1 to its counter, passes a SeqCst fence, then reads `exclusive`. If it
//!    is 1 it takes its 1 back. An exclusive owner sets `exclusive`, passes a SeqCst fence, then
//!    reads the counters. One of the two sees the other (Dekker); a single word would make all
//!    shared holders share a line.
//! 3. A thread that decrements a counter passes a SeqCst fence and reads `exclusive`. If that is 1,
//!    it wakes the announced exclusive owner. A waiter registers first and checks again afterwards.
//!    Either the waiter sees the change or the changer sees the waiter: the list's mutex orders
//!    them. Waiters for the end of an exclusive owner are woken only by that owner. A failed shared
//!    try also decrements a counter, and would otherwise wake itself for ever.
//! 4. Counters are changed by read-modify-write, so a shared hold may end on another thread.

use std::fmt;
use std::task::Waker;

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::{CachePadded, Mutex};

/// See the module's head.
pub struct ShardedRwLock {
    /// Shared holders of each slot. Rules 2 and 4.
    shared_counts: Box<[CachePadded<AtomicU32>]>,
    /// 1 while an exclusive owner waits or holds. Rule 1.
    exclusive: CachePadded<AtomicU32>,
    /// Wakers to call when it may be worth trying again. Rule 3.
    waiters: Mutex<Waiters>,
}

/// Names a waker that [`ShardedRwLock::poll_shared`] or `poll_exclusive` has registered; start with
/// the default. Pass it to [`ShardedRwLock::cancel_wait`] if you stop waiting early.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct WaitKey(Option<u64>);

#[derive(Default)]
struct Waiters {
    /// The key that the next waiter gets.
    next_key: u64,
    /// Few: tasks that wait for a definition to change.
    waiting: Vec<Waiter>,
}

struct Waiter {
    key: u64,
    waits_for: WaitsFor,
    waker: Waker,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    /// The end of an exclusive hold or announcement.
    ExclusiveGone,
    /// The end of the last shared hold; the announced exclusive owner.
    SharedGone,
}

impl ShardedRwLock {
    /// A free lock with `slot_count` slots, one for each worker.
    ///
    /// # Panics
    /// If `slot_count` is 0.
    pub fn new(slot_count: usize) -> Self {
        assert!(0 < slot_count, "a lock has a slot for each worker");
        Self {
            shared_counts: (0..slot_count)
                .map(|_| CachePadded::new(AtomicU32::new(0)))
                .collect(),
            exclusive: CachePadded::new(AtomicU32::new(0)),
            waiters: Mutex::new(Waiters::default()),
        }
    }

    /// Takes a shared hold for `slot`. Returns `false` if an exclusive owner has announced itself.
    /// A slot may have many shared holds; each ends with [`Self::unlock_shared`].
    pub fn try_shared(&self, slot: usize) -> bool {
        let before = self.shared_counts[slot].fetch_add(1, Ordering::Relaxed);
        assert!(before < u32::MAX, "fewer shared holders than 2^32");
        // Pairs with the fence in `exclusive_is_ready` (rule 2).
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of `unlock_exclusive`, so that what it changed is seen.
        if self.exclusive.load(Ordering::Acquire) == 0 {
            return true;
        }
        self.unlock_shared(slot);
        false
    }

    /// Ends a shared hold that was taken with the same `slot`.
    pub fn unlock_shared(&self, slot: usize) {
        // Release: pairs with the Acquire of `exclusive_is_ready`; what was read under the hold was
        // read before the exclusive owner writes.
        let before = self.shared_counts[slot].fetch_sub(1, Ordering::Release);
        assert!(0 < before, "a shared hold is released once");
        // Rule 3.
        fence(Ordering::SeqCst);
        if self.exclusive.load(Ordering::Relaxed) != 0 {
            self.wake_waiters(|waiter| waiter.waits_for == WaitsFor::SharedGone);
        }
    }

    /// As [`Self::try_shared`]. If it returns `false`, `waker` is woken once it is worth asking
    /// again.
    pub fn poll_shared(&self, slot: usize, key: &mut WaitKey, waker: &Waker) -> bool {
        if self.try_shared(slot) {
            self.cancel_wait(key);
            return true;
        }
        self.register(key, WaitsFor::ExclusiveGone, waker);
        let acquired = self.try_shared(slot);
        if acquired {
            self.cancel_wait(key);
        }
        acquired
    }

    /// Takes the exclusive hold if there is no other hold of any kind; otherwise changes nothing.
    pub fn try_exclusive(&self) -> bool {
        if !self.announce_exclusive() {
            return false;
        }
        if self.exclusive_is_ready() {
            return true;
        }
        self.unlock_exclusive();
        false
    }

    /// Refuses new shared holders from now on. Returns `false` if there is another exclusive owner.
    /// After `true` the caller polls [`Self::poll_exclusive`] until the last shared hold has ended,
    /// or gives up; [`Self::unlock_exclusive`] ends both.
    pub fn announce_exclusive(&self) -> bool {
        self.exclusive
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// As [`Self::announce_exclusive`]. If it returns `false`, `waker` is woken once the present
    /// exclusive owner is gone.
    pub fn poll_announce_exclusive(&self, key: &mut WaitKey, waker: &Waker) -> bool {
        if !self.announce_exclusive() {
            self.register(key, WaitsFor::ExclusiveGone, waker);
            if !self.announce_exclusive() {
                return false;
            }
        }
        self.cancel_wait(key);
        true
    }

    /// Whether the announced exclusive owner holds the lock: every shared hold has ended. If it
    /// returns `false`, `waker` is woken once it is worth asking again.
    pub fn poll_exclusive(&self, key: &mut WaitKey, waker: &Waker) -> bool {
        if !self.exclusive_is_ready() {
            self.register(key, WaitsFor::SharedGone, waker);
            if !self.exclusive_is_ready() {
                return false;
            }
        }
        self.cancel_wait(key);
        true
    }

    /// Whether the announced exclusive owner holds the lock: every shared hold has ended.
    pub fn exclusive_is_ready(&self) -> bool {
        assert_eq!(
            self.exclusive.load(Ordering::Relaxed),
            1,
            "the exclusive owner has announced itself"
        );
        // Pairs with the fences in `try_shared` and `unlock_shared` (rules 2 and 3).
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of `unlock_shared`.
        self.shared_counts
            .iter()
            .all(|count| count.load(Ordering::Acquire) == 0)
    }

    /// Ends an exclusive hold or an announcement.
    pub fn unlock_exclusive(&self) {
        let before = self.exclusive.swap(0, Ordering::Release);
        assert_eq!(before, 1, "an exclusive hold is released once");
        self.wake_waiters(|_| true);
    }

    /// Removes the waker registered under `key`, if there is one.
    pub fn cancel_wait(&self, key: &mut WaitKey) {
        if let Some(key) = key.0.take() {
            self.waiters
                .lock()
                .waiting
                .retain(|waiter| waiter.key != key);
        }
    }

    fn register(&self, key: &mut WaitKey, waits_for: WaitsFor, waker: &Waker) {
        let mut waiters = self.waiters.lock();
        if let Some(waiter) = waiters.waiting.iter_mut().find(|it| Some(it.key) == key.0) {
            waiter.waits_for = waits_for;
            waiter.waker.clone_from(waker);
            return;
        }
        let fresh = waiters.next_key;
        waiters.next_key += 1;
        waiters.waiting.push(Waiter {
            key: fresh,
            waits_for,
            waker: waker.clone(),
        });
        *key = WaitKey(Some(fresh));
    }

    fn wake_waiters(&self, is_due: impl Fn(&Waiter) -> bool) {
        let mut waiters = self.waiters.lock();
        let woken: Vec<Waiter> = waiters
            .waiting
            .extract_if(.., |waiter| is_due(waiter))
            .collect();
        // Woken outside the mutex: a waker may do anything.
        drop(waiters);
        for waiter in woken {
            waiter.waker.wake();
        }
    }
}

impl fmt::Debug for ShardedRwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShardedRwLock")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn shared_holds_share_and_a_exclusive_one_excludes() {
        let lock = ShardedRwLock::new(2);
        assert!(lock.try_shared(0));
        assert!(lock.try_shared(1));
        assert!(lock.try_shared(1));
        assert!(!lock.try_exclusive());
        assert!(
            lock.try_shared(0),
            "an exclusive try that failed leaves no trace"
        );
        for slot in [0, 0, 1, 1] {
            lock.unlock_shared(slot);
        }
        assert!(lock.try_exclusive());
        assert!(!lock.try_shared(0));
        assert!(!lock.try_exclusive());
        lock.unlock_exclusive();
        assert!(lock.try_shared(0));
    }

    #[test]
    fn waiters_are_told_and_may_leave() {
        let lock = ShardedRwLock::new(2);
        let (exclusive_wakes, shared_wakes) =
            (Arc::new(Counting::default()), Arc::new(Counting::default()));
        let (exclusive_waker, shared_waker) =
            (exclusive_wakes.clone().into(), shared_wakes.clone().into());
        let (mut exclusive_key, mut shared_key) = (WaitKey::default(), WaitKey::default());
        assert!(lock.try_shared(0));
        assert!(lock.announce_exclusive());
        assert!(!lock.poll_exclusive(&mut exclusive_key, &exclusive_waker));
        lock.unlock_shared(0);
        assert_eq!(exclusive_wakes.0.load(Ordering::Relaxed), 1);
        assert!(lock.poll_exclusive(&mut exclusive_key, &exclusive_waker));
        assert!(!lock.poll_shared(1, &mut shared_key, &shared_waker));
        assert!(!lock.poll_shared(1, &mut shared_key, &shared_waker));
        lock.unlock_exclusive();
        assert!(0 < shared_wakes.0.load(Ordering::Relaxed));
        assert!(lock.poll_shared(1, &mut shared_key, &shared_waker));
        lock.unlock_shared(1);

        assert!(lock.try_exclusive());
        let before = shared_wakes.0.load(Ordering::Relaxed);
        assert!(!lock.poll_shared(0, &mut shared_key, &shared_waker));
        assert!(!lock.poll_shared(0, &mut shared_key, &shared_waker));
        assert_eq!(
            shared_wakes.0.load(Ordering::Relaxed),
            before,
            "no waiter wakes itself"
        );
        lock.cancel_wait(&mut shared_key);
        lock.unlock_exclusive();
        assert_eq!(
            shared_wakes.0.load(Ordering::Relaxed),
            before,
            "who left is not woken"
        );
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::cell::UnsafeCell;
    use loom::future::block_on;
    use loom::sync::Arc;
    use loom::thread;
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    struct Guarded {
        lock: ShardedRwLock,
        value: UnsafeCell<u32>,
    }

    // SAFETY: the model's whole point is that the lock orders accesses; loom checks that it does.
    unsafe impl Sync for Guarded {}
    // SAFETY: a number may move between threads.
    unsafe impl Send for Guarded {}

    fn guarded() -> Arc<Guarded> {
        Arc::new(Guarded {
            lock: ShardedRwLock::new(2),
            value: UnsafeCell::new(0),
        })
    }

    #[test]
    fn shared_and_exclusive_never_meet() {
        loom::model(|| {
            let guarded = guarded();
            let reader = {
                let guarded = guarded.clone();
                thread::spawn(move || {
                    if guarded.lock.try_shared(0) {
                        // SAFETY: under a shared hold no thread writes.
                        guarded.value.with(|value| unsafe { *value });
                        guarded.lock.unlock_shared(0);
                    }
                })
            };
            if guarded.lock.try_exclusive() {
                // SAFETY: under the exclusive hold no other thread reads or writes.
                guarded.value.with_mut(|value| unsafe { *value += 1 });
                guarded.lock.unlock_exclusive();
            }
            reader.join().unwrap();
            assert!(guarded.lock.try_shared(1));
        });
    }

    #[test]
    fn a_exclusive_waiter_is_always_woken() {
        loom::model(|| {
            let guarded = guarded();
            assert!(guarded.lock.try_shared(0));
            let reader = {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.lock.unlock_shared(0))
            };
            assert!(guarded.lock.announce_exclusive());
            let mut key = WaitKey::default();
            block_on(poll_fn(|context| {
                match guarded.lock.poll_exclusive(&mut key, context.waker()) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            }));
            // SAFETY: under the exclusive hold no other thread reads or writes.
            guarded.value.with_mut(|value| unsafe { *value += 1 });
            guarded.lock.unlock_exclusive();
            reader.join().unwrap();
        });
    }

    #[test]
    fn a_shared_waiter_is_always_woken() {
        loom::model(|| {
            let guarded = guarded();
            assert!(guarded.lock.try_exclusive());
            let writer = {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.lock.unlock_exclusive())
            };
            let mut key = WaitKey::default();
            block_on(poll_fn(|context| {
                match guarded.lock.poll_shared(1, &mut key, context.waker()) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            }));
            guarded.lock.unlock_shared(1);
            writer.join().unwrap();
        });
    }
}
