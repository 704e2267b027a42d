//! Threads for calls that block, and the way back for what they found.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// A few threads that take jobs in order.
pub(crate) struct Helpers {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Jobs and the wish to end, under one lock; the threads wait on the condition.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl Helpers {
    /// Starts the threads, called `name`-0 and so on.
    pub(crate) fn start(name: &str, count: usize) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let helpers = Self {
            queue,
            threads: Mutex::default(),
        };
        for index in 0..count {
            let queue = helpers.queue.clone();
            let thread = std::thread::Builder::new()
                .name(format!("{name}-{index}"))
                .spawn(move || queue.serve())?;
            helpers
                .threads
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(thread);
        }
        Ok(helpers)
    }

    /// Runs a call on one of the threads. It goes on though nobody waits for it any more.
    pub(crate) fn run<T: Send + 'static, C: FnOnce() -> T + Send + 'static>(
        &self,
        call: C,
    ) -> impl Future<Output = T> + use<T, C> {
        let parcel = Parcel::new();
        let reply = parcel.clone();
        let job: Job = Box::new(move || reply.deliver(call()));
        self.queue.lock().jobs.push_back(job);
        self.queue.changed.notify_one();
        parcel.receive()
    }

    /// Lets the threads finish what is queued and waits for their end.
    pub(crate) fn stop(&self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_all();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        loop {
            let mut state = self.lock();
            let job = loop {
                if let Some(job) = state.jobs.pop_front() {
                    break job;
                }
                if state.is_closed {
                    return;
                }
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            job();
        }
    }
}

/// A value on its way from another thread to a task.
pub(crate) struct Parcel<T> {
    state: Arc<sync::Mutex<ParcelState<T>>>,
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
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::new(sync::Mutex::new(ParcelState::Empty)),
        }
    }

    /// Puts the value in and wakes who waits. Any thread.
    pub(crate) fn deliver(&self, value: T) {
        let before = std::mem::replace(&mut *self.state.lock(), ParcelState::Delivered(value));
        if let ParcelState::Awaited(waker) = before {
            waker.wake();
        }
    }

    /// Waits for the value.
    pub(crate) async fn receive(self) -> T {
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

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Helpers")
    }
}
