//! A lock that many cores hold weakly at almost no cost, and one core rarely holds strongly.
//!
//! It is for what every statement needs and hardly anything changes: the definition of a table. A
//! weak holder writes only a counter of its own slot (one slot a worker, a cache line each) and
//! reads one word that seldom changes. A strong holder pays for all. It sets that word, which
//! refuses new weak holders, and waits until each counter is 0. No call blocks a thread: `try_*`
//! returns whether it got the lock, and `poll_*` also registers a waker if it did not.
//!
//! Rules of the shared words:
//!
//! 1. `strong` is 1 from `announce_strong` to `unlock_strong`; changed by compare-and-swap from 0,
//!    so there is one strong owner at most.
//! 2. A weak holder adds 1 to its counter, passes a SeqCst fence, then reads `strong`. If it is 1
//!    it takes its 1 back. A strong owner sets `strong`, passes a SeqCst fence, then reads the
//!    counters. One of the two sees the other (Dekker); a single word would make all weak holders
//!    share a line.
//! 3. A thread that decrements a counter passes a SeqCst fence and reads `strong`. If that is 1, it
//!    wakes the announced strong owner. A waiter registers first and checks again afterwards.
//!    Either the waiter sees the change or the changer sees the waiter: the list's mutex orders
//!    them. Waiters for the end of a strong owner are woken only by that owner. A failed weak try
//!    also decrements a counter, and would otherwise wake itself for ever.
//! 4. Counters are changed by read-modify-write, so a weak hold may end on another thread.

use std::fmt;
use std::task::Waker;

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::{CachePadded, Mutex};

/// See the module's head.
pub struct BigReaderLock {
    /// Weak holders of each slot. Rules 2 and 4.
    weak_counts: Box<[CachePadded<AtomicU32>]>,
    /// 1 while a strong owner waits or holds. Rule 1.
    strong: CachePadded<AtomicU32>,
    /// Wakers to call when it may be worth trying again. Rule 3.
    waiters: Mutex<Waiters>,
}

/// Names a waker that [`BigReaderLock::poll_weak`] or `poll_strong` has registered; start with the
/// default. Pass it to [`BigReaderLock::cancel_wait`] if you stop waiting early.
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
    /// The end of a strong hold or announcement.
    StrongGone,
    /// The end of the last weak hold; the announced strong owner.
    WeakGone,
}

impl BigReaderLock {
    /// A free lock with `slot_count` slots, one for each worker.
    ///
    /// # Panics
    /// If `slot_count` is 0.
    pub fn new(slot_count: usize) -> Self {
        assert!(0 < slot_count, "a lock has a slot for each worker");
        Self {
            weak_counts: (0..slot_count)
                .map(|_| CachePadded::new(AtomicU32::new(0)))
                .collect(),
            strong: CachePadded::new(AtomicU32::new(0)),
            waiters: Mutex::new(Waiters::default()),
        }
    }

    /// Takes a weak hold for `slot`. Returns `false` if a strong owner has announced itself. A slot
    /// may have many weak holds; each ends with [`Self::unlock_weak`].
    pub fn try_weak(&self, slot: usize) -> bool {
        let before = self.weak_counts[slot].fetch_add(1, Ordering::Relaxed);
        assert!(before < u32::MAX, "fewer weak holders than 2^32");
        // Pairs with the fence in `strong_is_ready` (rule 2).
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of `unlock_strong`, so that what it changed is seen.
        if self.strong.load(Ordering::Acquire) == 0 {
            return true;
        }
        self.unlock_weak(slot);
        false
    }

    /// Ends a weak hold that was taken with the same `slot`.
    pub fn unlock_weak(&self, slot: usize) {
        // Release: pairs with the Acquire of `strong_is_ready`; what was read under the hold was
        // read before the strong owner writes.
        let before = self.weak_counts[slot].fetch_sub(1, Ordering::Release);
        assert!(0 < before, "a weak hold is released once");
        // Rule 3.
        fence(Ordering::SeqCst);
        if self.strong.load(Ordering::Relaxed) != 0 {
            self.wake_waiters(|waiter| waiter.waits_for == WaitsFor::WeakGone);
        }
    }

    /// As [`Self::try_weak`]. If it returns `false`, `waker` is woken once it is worth asking
    /// again.
    pub fn poll_weak(&self, slot: usize, key: &mut WaitKey, waker: &Waker) -> bool {
        if self.try_weak(slot) {
            self.cancel_wait(key);
            return true;
        }
        self.register(key, WaitsFor::StrongGone, waker);
        let acquired = self.try_weak(slot);
        if acquired {
            self.cancel_wait(key);
        }
        acquired
    }

    /// Takes the strong hold if there is no other hold of any kind; otherwise changes nothing.
    pub fn try_strong(&self) -> bool {
        if !self.announce_strong() {
            return false;
        }
        if self.strong_is_ready() {
            return true;
        }
        self.unlock_strong();
        false
    }

    /// Refuses new weak holders from now on. Returns `false` if there is another strong owner.
    /// After `true` the caller polls [`Self::poll_strong`] until the last weak hold has ended, or
    /// gives up; [`Self::unlock_strong`] ends both.
    pub fn announce_strong(&self) -> bool {
        self.strong
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// As [`Self::announce_strong`]. If it returns `false`, `waker` is woken once the present
    /// strong owner is gone.
    pub fn poll_announce_strong(&self, key: &mut WaitKey, waker: &Waker) -> bool {
        if !self.announce_strong() {
            self.register(key, WaitsFor::StrongGone, waker);
            if !self.announce_strong() {
                return false;
            }
        }
        self.cancel_wait(key);
        true
    }

    /// Whether the announced strong owner holds the lock: every weak hold has ended. If it returns
    /// `false`, `waker` is woken once it is worth asking again.
    pub fn poll_strong(&self, key: &mut WaitKey, waker: &Waker) -> bool {
        if !self.strong_is_ready() {
            self.register(key, WaitsFor::WeakGone, waker);
            if !self.strong_is_ready() {
                return false;
            }
        }
        self.cancel_wait(key);
        true
    }

    /// Whether the announced strong owner holds the lock: every weak hold has ended.
    pub fn strong_is_ready(&self) -> bool {
        assert_eq!(
            self.strong.load(Ordering::Relaxed),
            1,
            "the strong owner has announced itself"
        );
        // Pairs with the fences in `try_weak` and `unlock_weak` (rules 2 and 3).
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release of `unlock_weak`.
        self.weak_counts
            .iter()
            .all(|count| count.load(Ordering::Acquire) == 0)
    }

    /// Ends a strong hold or an announcement.
    pub fn unlock_strong(&self) {
        let before = self.strong.swap(0, Ordering::Release);
        assert_eq!(before, 1, "a strong hold is released once");
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

impl fmt::Debug for BigReaderLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BigReaderLock")
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
    fn weak_holds_share_and_a_strong_one_excludes() {
        let lock = BigReaderLock::new(2);
        assert!(lock.try_weak(0));
        assert!(lock.try_weak(1));
        assert!(lock.try_weak(1));
        assert!(!lock.try_strong());
        assert!(lock.try_weak(0), "a strong try that failed leaves no trace");
        for slot in [0, 0, 1, 1] {
            lock.unlock_weak(slot);
        }
        assert!(lock.try_strong());
        assert!(!lock.try_weak(0));
        assert!(!lock.try_strong());
        lock.unlock_strong();
        assert!(lock.try_weak(0));
    }

    #[test]
    fn waiters_are_told_and_may_leave() {
        let lock = BigReaderLock::new(2);
        let (strong_wakes, weak_wakes) =
            (Arc::new(Counting::default()), Arc::new(Counting::default()));
        let (strong_waker, weak_waker) = (strong_wakes.clone().into(), weak_wakes.clone().into());
        let (mut strong_key, mut weak_key) = (WaitKey::default(), WaitKey::default());
        assert!(lock.try_weak(0));
        assert!(lock.announce_strong());
        assert!(!lock.poll_strong(&mut strong_key, &strong_waker));
        lock.unlock_weak(0);
        assert_eq!(strong_wakes.0.load(Ordering::Relaxed), 1);
        assert!(lock.poll_strong(&mut strong_key, &strong_waker));
        assert!(!lock.poll_weak(1, &mut weak_key, &weak_waker));
        assert!(!lock.poll_weak(1, &mut weak_key, &weak_waker));
        lock.unlock_strong();
        assert!(0 < weak_wakes.0.load(Ordering::Relaxed));
        assert!(lock.poll_weak(1, &mut weak_key, &weak_waker));
        lock.unlock_weak(1);

        assert!(lock.try_strong());
        let before = weak_wakes.0.load(Ordering::Relaxed);
        assert!(!lock.poll_weak(0, &mut weak_key, &weak_waker));
        assert!(!lock.poll_weak(0, &mut weak_key, &weak_waker));
        assert_eq!(
            weak_wakes.0.load(Ordering::Relaxed),
            before,
            "no waiter wakes itself"
        );
        lock.cancel_wait(&mut weak_key);
        lock.unlock_strong();
        assert_eq!(
            weak_wakes.0.load(Ordering::Relaxed),
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
        lock: BigReaderLock,
        value: UnsafeCell<u32>,
    }

    // SAFETY: the model's whole point is that the lock orders accesses; loom checks that it does.
    unsafe impl Sync for Guarded {}
    // SAFETY: a number may move between threads.
    unsafe impl Send for Guarded {}

    fn guarded() -> Arc<Guarded> {
        Arc::new(Guarded {
            lock: BigReaderLock::new(2),
            value: UnsafeCell::new(0),
        })
    }

    #[test]
    fn weak_and_strong_never_meet() {
        loom::model(|| {
            let guarded = guarded();
            let reader = {
                let guarded = guarded.clone();
                thread::spawn(move || {
                    if guarded.lock.try_weak(0) {
                        // SAFETY: under a weak hold no thread writes.
                        guarded.value.with(|value| unsafe { *value });
                        guarded.lock.unlock_weak(0);
                    }
                })
            };
            if guarded.lock.try_strong() {
                // SAFETY: under the strong hold no other thread reads or writes.
                guarded.value.with_mut(|value| unsafe { *value += 1 });
                guarded.lock.unlock_strong();
            }
            reader.join().unwrap();
            assert!(guarded.lock.try_weak(1));
        });
    }

    #[test]
    fn a_strong_waiter_is_always_woken() {
        loom::model(|| {
            let guarded = guarded();
            assert!(guarded.lock.try_weak(0));
            let reader = {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.lock.unlock_weak(0))
            };
            assert!(guarded.lock.announce_strong());
            let mut key = WaitKey::default();
            block_on(poll_fn(|context| {
                match guarded.lock.poll_strong(&mut key, context.waker()) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            }));
            // SAFETY: under the strong hold no other thread reads or writes.
            guarded.value.with_mut(|value| unsafe { *value += 1 });
            guarded.lock.unlock_strong();
            reader.join().unwrap();
        });
    }

    #[test]
    fn a_weak_waiter_is_always_woken() {
        loom::model(|| {
            let guarded = guarded();
            assert!(guarded.lock.try_strong());
            let writer = {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.lock.unlock_strong())
            };
            let mut key = WaitKey::default();
            block_on(poll_fn(|context| {
                match guarded.lock.poll_weak(1, &mut key, context.waker()) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            }));
            guarded.lock.unlock_weak(1);
            writer.join().unwrap();
        });
    }
}
