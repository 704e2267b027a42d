//! One value, handed from a thread to a task.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::Mutex;

/// A value on its way from another thread to a task.
pub struct Parcel<T> {
    state: Arc<Mutex<ParcelState<T>>>,
}

enum ParcelState<T> {
    /// Nobody waits yet.
    Empty,
    /// This task waits.
    Awaited(Waker),
    /// Here it is.
    Delivered(T),
    /// It was taken.
    Taken,
}

impl<T> Parcel<T> {
    /// With nothing in it.
    pub fn new() -> Self {
        Self {
            state: Arc::new(Mutex::new(ParcelState::Empty)),
        }
    }

    /// Puts the value in and wakes who waits. Any thread.
    pub fn deliver(&self, value: T) {
        let before = std::mem::replace(&mut *self.state.lock(), ParcelState::Delivered(value));
        if let ParcelState::Awaited(waker) = before {
            waker.wake();
        }
    }

    /// Waits for the value.
    pub async fn receive(self) -> T {
        poll_fn(|context| {
            let mut state = self.state.lock();
            if matches!(*state, ParcelState::Delivered(_)) {
                let delivered = std::mem::replace(&mut *state, ParcelState::Taken);
                let ParcelState::Delivered(value) = delivered else {
                    unreachable!("just seen under the lock")
                };
                return Poll::Ready(value);
            }
            *state = ParcelState::Awaited(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl<T> Clone for Parcel<T> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
        }
    }
}

impl<T> Default for Parcel<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Parcel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parcel")
    }
}
