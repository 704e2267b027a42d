//! Threads for calls that block.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// A few threads that take jobs in order.
pub(crate) struct Helpers {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Jobs and the stop flag, under one lock. The threads wait on the condition.
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

    /// Runs a call on one of the threads. Once begun it runs to its end, even if its future is
    /// dropped; if the future is dropped before, it does not run at all. So the queue is never
    /// longer than the number of tasks that wait.
    pub(crate) fn run<T: Send + 'static, C: FnOnce() -> T + Send + 'static>(
        &self,
        call: C,
    ) -> impl Future<Output = T> + use<T, C> {
        let (reply, awaited) = oneshot();
        let job: Job = Box::new(move || {
            if !reply.is_abandoned() {
                reply.deliver(call());
            }
        });
        self.queue.lock().jobs.push_back(job);
        self.queue.changed.notify_one();
        awaited.receive()
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

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Helpers")
    }
}
