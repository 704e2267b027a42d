//! Whether a task is queued to run: set by wakers on any thread, cleared by the worker that runs
//! it.
//!
//! 1. The waker that turns the flag from clear to set queues the task, and no other. So it is
//!    queued once.
//! 2. The runner clears the flag before it polls. A later wake-up queues the task again. An earlier
//!    one is seen by this poll, because clearing acquires what setting released. That holds for
//!    every setter: each is a read-modify-write of the same release sequence.

use crate::atomic::{AtomicBool, Ordering};

/// See the module's head.
#[derive(Debug, Default)]
pub struct WakeFlag {
    is_queued: AtomicBool,
}

impl WakeFlag {
    /// Not queued.
    pub fn new() -> Self {
        Self {
            is_queued: AtomicBool::new(false),
        }
    }

    /// Notes a wake-up. Returns `true` if the caller must queue the task.
    #[must_use = "who sets the flag has to queue the task"]
    pub fn set(&self) -> bool {
        // Release: pairs with the Acquire of `clear`.
        !self.is_queued.swap(true, Ordering::Release)
    }

    /// Notes that the task is about to be polled; called by the worker that took it from the queue.
    pub fn clear(&self) {
        // Acquire: pairs with the Release of each `set` since the last time. A swap, because a
        // plain store would read from no setter.
        self.is_queued.swap(false, Ordering::Acquire);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn is_queued_once_for_each_poll() {
        let flag = WakeFlag::new();
        assert!(flag.set());
        assert!(!flag.set());
        flag.clear();
        assert!(flag.set());
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    use super::*;
    use crate::Inbox;

    /// A poll that follows a wake-up sees its cause. There are no more polls than the task was
    /// queued.
    #[test]
    fn the_last_wake_up_is_followed_by_a_poll_that_sees_it() {
        loom::model(|| {
            let flag = Arc::new(WakeFlag::new());
            let queue = Arc::new(Inbox::new());
            let events = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let wakers: Vec<_> = (0..2)
                .map(|waker| {
                    let (flag, queue, events) = (flag.clone(), queue.clone(), events.clone());
                    thread::spawn(move || {
                        events[waker].store(1, Ordering::Relaxed);
                        if flag.set() {
                            let _ = queue.push(());
                        }
                    })
                })
                .collect();
            let mut seen = [0, 0];
            let mut poll = || {
                let mut queued = Vec::new();
                queue.take(&mut queued);
                assert!(queued.len() <= 1, "queued twice");
                for () in queued {
                    flag.clear();
                    seen = [0, 1].map(|waker| events[waker].load(Ordering::Relaxed));
                }
            };
            poll();
            for waker in wakers {
                waker.join().unwrap();
            }
            poll();
            assert_eq!(seen, [1, 1]);
        });
    }
}
