//! Where one task sleeps until there is work for it, whichever thread makes the work.
//!
//! (N1) A notification stays until the task fetches it. So one that comes while the task works, or
//! before it sleeps, is not lost: the next [`Notify::notified`] is ready at once.
//! (N2) Fetching acquires what notifying released. The task sees the work of every maker whose
//! notification came before the fetch. Each notification is a read-modify-write of one release
//! sequence.
//! (N3) Only the maker that turns the word from clear to set looks for a waker. The task stores its
//! waker before it reads the word a second time. So one of them sees the other.
//!
//! Many notifications count as one: the task itself looks for work.

use std::future::Future;
use std::task::{Poll, Waker};

use crate::Mutex;
use crate::atomic::{AtomicBool, Ordering};

/// See the module's head.
#[derive(Debug)]
pub struct Notify {
    /// Whether there was a notification since the task fetched last (N1).
    is_set: AtomicBool,
    /// The task, while it sleeps.
    waker: Mutex<Option<Waker>>,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            is_set: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }
}

impl Notify {
    /// Notifies the task that there is work.
    pub fn notify(&self) {
        // Release: what was done before is seen by the task (N2).
        if self.is_set.swap(true, Ordering::AcqRel) {
            return;
        }
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// As [`notify`](Self::notify), for the thread that runs the task itself. If the word is set, a
    /// load is enough, because only this thread clears it.
    pub fn notify_own(&self) {
        // Relaxed: the task that clears the word runs on this thread.
        if !self.is_set.load(Ordering::Relaxed) {
            self.notify();
        }
    }

    /// Ready once there was a notification since this was last ready. One task at a time.
    pub fn notified(&self) -> impl Future<Output = ()> + use<'_> {
        std::future::poll_fn(|context| {
            if self.fetch() {
                return Poll::Ready(());
            }
            *self.waker.lock() = Some(context.waker().clone());
            // A notification may have come before the waker was there (N3).
            if self.fetch() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    }

    fn fetch(&self) -> bool {
        self.is_set.swap(false, Ordering::AcqRel)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    #[test]
    fn a_notification_stays_until_it_is_fetched() {
        let notify = Notify::default();
        let mut context = Context::from_waker(Waker::noop());
        notify.notify();
        notify.notify_own();
        assert!(pin!(notify.notified()).poll(&mut context).is_ready());
        assert!(pin!(notify.notified()).poll(&mut context).is_pending());
        notify.notify_own();
        assert!(pin!(notify.notified()).poll(&mut context).is_ready());
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::pin::pin;
    use std::task::{Context, Wake};

    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    use super::*;

    struct Bell(AtomicU32);

    impl Wake for Bell {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Two makers: the task either finds the work of both or is woken for what it has not seen.
    #[test]
    fn no_work_is_left_without_a_wake_up() {
        let mut model = loom::model::Builder::new();
        // Three threads: all schedules take minutes.
        model.preemption_bound = Some(3);
        model.check(|| {
            let notify = Arc::new(Notify::default());
            let work = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let makers: Vec<_> = (0..2)
                .map(|maker| {
                    let (notify, work) = (notify.clone(), work.clone());
                    thread::spawn(move || {
                        work[maker].store(1, Ordering::Relaxed);
                        notify.notify();
                    })
                })
                .collect();
            let bell = std::sync::Arc::new(Bell(AtomicU32::new(0)));
            let waker = Waker::from(std::sync::Arc::clone(&bell));
            let mut context = Context::from_waker(&waker);
            let sum = || {
                work.iter()
                    .map(|it| it.load(Ordering::Relaxed))
                    .sum::<u32>()
            };
            let mut seen = 0;
            while pin!(notify.notified()).poll(&mut context).is_ready() {
                seen = sum();
            }
            let is_asleep_with = seen;
            for maker in makers {
                maker.join().unwrap();
            }
            if is_asleep_with < 2 {
                assert!(0 < bell.0.load(Ordering::Acquire), "nobody woke it");
                assert!(pin!(notify.notified()).poll(&mut context).is_ready());
                assert_eq!(sum(), 2);
            }
        });
    }
}
