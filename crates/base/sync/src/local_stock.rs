//! What each worker keeps for itself, and whether somebody else wants it.
//!
//! Workers keep things in stacks of their own, which no other thread may touch. A thread that
//! wants one sets a word of demand and asks the workers that have some. What the word means is the
//! owner's to say; the owner changes it under a mutex of its own, so it has one writer at a time.
//!
//! (L1) A worker publishes its count before it reads the demand ([`LocalStock::keep`]).
//! (L2) The owner publishes the demand before it reads the counts ([`LocalStock::keepers`]).
//! (L3) A sequentially consistent fence stands between the two steps on both sides. So one of them
//! sees the other: either the worker sees the new demand and gives up what it has just kept, or the
//! owner sees a count that is not zero and asks that worker.
//! (L4) A worker that takes from its own stack lowers its count without a fence. A count that is
//! read too high costs a vain question and nothing else.
//!
//! To keep costs a store to a line of the worker's own, a fence, and a load of a line that all
//! workers share for reading. To take costs the load and the store.

use crate::CachePadded;
use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// See the module's head.
#[derive(Debug)]
pub struct LocalStock {
    /// What the owner wants. Written by the owner, under its mutex.
    demand: CachePadded<AtomicU64>,
    /// How much each worker keeps. Written by that worker alone.
    counts: Box<[CachePadded<AtomicU32>]>,
}

impl LocalStock {
    /// Nothing is kept by any of `worker_count` workers.
    pub fn new(worker_count: usize, demand: u64) -> Self {
        Self {
            demand: CachePadded::new(AtomicU64::new(demand)),
            counts: (0..worker_count)
                .map(|_| CachePadded::new(AtomicU32::new(0)))
                .collect(),
        }
    }

    /// The demand. A worker reads it before it takes from its stack.
    #[inline]
    pub fn demand(&self) -> u64 {
        // Acquire: pairs with the Release of `set_demand`, so that what was done before is seen.
        self.demand.load(Ordering::Acquire)
    }

    /// Worker `worker` now keeps `count`, one more than before. Returns the demand: if it is not
    /// what the worker expects, the worker gives up what it has just kept (L1).
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    pub fn keep(&self, worker: usize, count: u32) -> u64 {
        // Relaxed: the fence orders it before the load (L3).
        self.counts[worker].store(count, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.demand()
    }

    /// Worker `worker` now keeps `count`, fewer than before (L4).
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    pub fn take(&self, worker: usize, count: u32) {
        // Relaxed: see L4.
        self.counts[worker].store(count, Ordering::Relaxed);
    }

    /// Publishes a demand. For the owner alone.
    pub fn set_demand(&self, demand: u64) {
        // Release: pairs with `demand`.
        self.demand.store(demand, Ordering::Release);
    }

    /// The workers to ask after a change of the demand (L2). For the owner alone.
    pub fn keepers(&self) -> impl Iterator<Item = usize> + use<'_> {
        fence(Ordering::SeqCst);
        let keeps = |it: &CachePadded<AtomicU32>| 0 < it.load(Ordering::Relaxed);
        let counts = self.counts.iter().enumerate();
        counts
            .filter(move |it| keeps(it.1))
            .map(|(worker, _)| worker)
    }

    /// How much all workers keep together; a moment old.
    pub fn kept_count(&self) -> u64 {
        let counts = self.counts.iter();
        counts.map(|it| u64::from(it.load(Ordering::Relaxed))).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_and_demand_are_seen() {
        let stock = LocalStock::new(3, 7);
        assert_eq!(stock.demand(), 7);
        assert_eq!(stock.keepers().count(), 0);
        assert_eq!(stock.keep(2, 1), 7);
        assert_eq!(stock.keep(0, 4), 7);
        stock.set_demand(8);
        assert_eq!(stock.keepers().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(stock.kept_count(), 5);
        stock.take(0, 0);
        assert_eq!(stock.keep(2, 2), 8);
        assert_eq!(stock.keepers().collect::<Vec<_>>(), [2]);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::{Mutex, WakeFlag};

    /// One keeper and one thread that wants: one of them sees the other, also if the keeper takes
    /// and keeps again.
    #[test]
    fn who_keeps_and_who_wants_do_not_miss_each_other() {
        loom::model(|| {
            let stock = Arc::new(LocalStock::new(1, 0));
            let wanting = {
                let stock = stock.clone();
                thread::spawn(move || {
                    stock.set_demand(1);
                    stock.keepers().count() == 1
                })
            };
            let mut sees_demand = stock.keep(0, 1) == 1;
            if !sees_demand {
                stock.take(0, 0);
                sees_demand = stock.keep(0, 1) == 1;
            }
            assert!(wanting.join().unwrap() || sees_demand, "both missed");
        });
    }

    /// Two workers and a queue under a mutex: a waiter is served by what comes back, or its
    /// question reaches the worker that has kept it. Nothing rests while it waits.
    #[test]
    fn nothing_rests_while_somebody_waits() {
        loom::model(|| {
            let stock = Arc::new(LocalStock::new(2, 0));
            let waiting = Arc::new(Mutex::new(0_u32));
            let asked = Arc::new([WakeFlag::new(), WakeFlag::new()]);
            let waiter = {
                let (stock, waiting, asked) = (stock.clone(), waiting.clone(), asked.clone());
                thread::spawn(move || {
                    let mut waiting = waiting.lock();
                    *waiting += 1;
                    stock.set_demand(1);
                    for worker in stock.keepers() {
                        let _ = asked[worker].set();
                    }
                })
            };
            // This is worker 1. It gives up what it keeps if it sees the demand.
            let mut kept = 1;
            if stock.keep(1, 1) == 1 {
                kept = 0;
                stock.take(1, 0);
                let mut waiting = waiting.lock();
                *waiting -= 1;
                stock.set_demand(0);
            }
            waiter.join().unwrap();
            // `set` returns false if the question is there already.
            let is_asked = !asked[1].set();
            assert!(*waiting.lock() == 0 || kept == 0 || is_asked);
        });
    }

    /// A worker that reads no demand and then takes has read before it was set. One that reads it
    /// sees what the owner did before.
    #[test]
    fn the_demand_brings_what_was_done_before() {
        loom::model(|| {
            let stock = Arc::new(LocalStock::new(1, 0));
            let done = Arc::new(AtomicU32::new(0));
            let owner = {
                let (stock, done) = (stock.clone(), done.clone());
                thread::spawn(move || {
                    done.store(1, Ordering::Relaxed);
                    stock.set_demand(1);
                })
            };
            if stock.demand() == 1 {
                assert_eq!(done.load(Ordering::Relaxed), 1);
            }
            owner.join().unwrap();
        });
    }
}
