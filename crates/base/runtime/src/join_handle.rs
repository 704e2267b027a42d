//! [`JoinHandle`]: the result of a task, for the task that spawned it.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::shared::task::{Header, Kind};
use crate::worker::{self, Worker};

/// The future result of a task. Dropping it lets the task run on by itself.
pub struct JoinHandle<T> {
    state: Rc<RefCell<JoinState<T>>>,
    header: Arc<Header>,
}

struct JoinState<T> {
    value: Option<T>,
    waiting: Option<Waker>,
    is_finished: bool,
}

impl<T: 'static> JoinHandle<T> {
    /// Spawns `future` on `worker`.
    pub(crate) fn spawn(
        worker: &Worker,
        kind: Kind,
        future: impl Future<Output = T> + 'static,
    ) -> Self {
        let waiting = JoinState {
            value: None,
            waiting: None,
            is_finished: false,
        };
        let state = Rc::new(RefCell::new(waiting));
        let inner = state.clone();
        // Boxed first: else the block would have room for it twice, as captured and as awaited.
        let future = Box::pin(future);
        let task = async move {
            let value = future.await;
            let mut state = inner.borrow_mut();
            state.is_finished = true;
            // Without a handle the value can have no reader; it is dropped here.
            state.value = Some(value);
            if let Some(waker) = state.waiting.take() {
                waker.wake();
            }
        };
        let header = worker.insert_task(kind, Box::pin(task), None);
        Self { state, header }
    }

    /// Whether the task has come to its end.
    pub fn is_finished(&self) -> bool {
        self.state.borrow().is_finished
    }

    /// Drops the task's future. If it has given way in the middle of a poll, that poll ends first.
    /// The handle must not be awaited afterwards.
    pub fn cancel(&self) {
        worker::current().cancel_task(&self.header);
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    /// # Panics
    /// If it is polled again after it returned the value.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.state.borrow_mut();
        if let Some(value) = state.value.take() {
            return Poll::Ready(value);
        }
        assert!(!state.is_finished, "a task's result is taken once");
        state.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinHandle")
    }
}
