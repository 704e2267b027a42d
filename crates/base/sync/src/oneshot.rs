//! One value, handed from a thread to a task.
//!
//! Invariants: a oneshot has one sender, which delivers once, and one receiver, which waits once.
//! (P1) A value that is delivered before the receiver polls is found by that poll; one that is
//! delivered later wakes it: both hold one lock. A sender that is dropped delivers nothing, and the
//! receiver then waits for ever, so the creator must make sure that it is used.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::Mutex;

/// Delivers the value. Any thread.
pub struct OneshotSender<T> {
    state: Arc<Mutex<ParcelState<T>>>,
}

/// Waits for the value.
pub struct OneshotReceiver<T> {
    state: Arc<Mutex<ParcelState<T>>>,
}

enum ParcelState<T> {
    /// No task waits yet.
    Empty,
    /// This task waits.
    Awaited(Waker),
    /// The value is here.
    Delivered(T),
}

/// Creates the two ends of an empty oneshot.
pub fn oneshot<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let state = Arc::new(Mutex::new(ParcelState::Empty));
    let sender = OneshotSender {
        state: Arc::clone(&state),
    };
    (sender, OneshotReceiver { state })
}

impl<T> OneshotSender<T> {
    /// Whether nobody will take the value: its receiver is gone.
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.state) == 1
    }

    /// Stores the value and wakes the waiter.
    pub fn deliver(self, value: T) {
        let before = std::mem::replace(&mut *self.state.lock(), ParcelState::Delivered(value));
        if let ParcelState::Awaited(waker) = before {
            waker.wake();
        }
    }
}

impl<T> OneshotReceiver<T> {
    /// Waits for the value.
    pub async fn receive(self) -> T {
        poll_fn(|context| {
            let awaited = ParcelState::Awaited(context.waker().clone());
            let before = std::mem::replace(&mut *self.state.lock(), awaited);
            match before {
                ParcelState::Delivered(value) => Poll::Ready(value),
                ParcelState::Empty | ParcelState::Awaited(_) => Poll::Pending,
            }
        })
        .await
    }
}

impl<T> fmt::Debug for OneshotSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneshotSender")
    }
}

impl<T> fmt::Debug for OneshotReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneshotReceiver")
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::pin::pin;
    use std::task::{Context, Wake};

    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    use super::*;

    /// Whether it was woken.
    struct Bell(AtomicBool);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// (P1)
    #[test]
    fn a_receiver_that_found_nothing_is_woken_and_then_finds_it() {
        loom::model(|| {
            let (sender, receiver) = oneshot();
            let thread = thread::spawn(move || sender.deliver(9));
            let bell = Arc::new(Bell(AtomicBool::new(false)));
            let waker = Waker::from(Arc::clone(&bell));
            let mut context = Context::from_waker(&waker);
            let mut receiving = pin!(receiver.receive());
            let mut early = receiving
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            if early.is_pending() {
                // The task has moved: the waker of its last poll counts.
                early = receiving.as_mut().poll(&mut context);
            }
            thread.join().unwrap();
            if early.is_pending() {
                assert!(bell.0.load(Ordering::Acquire), "nobody woke it");
                assert_eq!(receiving.as_mut().poll(&mut context), Poll::Ready(9));
            } else {
                assert_eq!(early, Poll::Ready(9));
            }
        });
    }
}
