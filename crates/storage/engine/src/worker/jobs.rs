//! Work that a worker does beside its loops, one future each.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use sync::Notify;

type Job = Pin<Box<dyn Future<Output = ()>>>;

/// The jobs of a worker.
#[derive(Default)]
pub(crate) struct Jobs {
    /// Those that were added and not begun.
    added: RefCell<Vec<Job>>,
    due: Notify,
    /// The worker has ended, and does no job any more.
    is_over: Cell<bool>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

impl Jobs {
    /// Adds one. It runs beside the others. Drops it if the worker has ended.
    pub(crate) fn add(&self, job: impl Future<Output = ()> + 'static) {
        if self.is_over.get() {
            return;
        }
        self.added.borrow_mut().push(Box::pin(job));
        self.due.notify_own();
    }

    /// Runs all jobs, until `is_over` is true. What is not done then is dropped. A job may wait for
    /// a group that this node has left, or for locks that nothing releases before the end.
    pub(crate) async fn run(&self, is_over: impl Fn() -> bool) {
        let mut running: Vec<Job> = Vec::new();
        let mut notified = Box::pin(self.due.notified());
        std::future::poll_fn(move |context| {
            loop {
                if is_over() {
                    // First, so that no job leaves another behind.
                    self.is_over.set(true);
                    drop(self.added.take());
                    running.clear();
                    return Poll::Ready(());
                }
                running.append(&mut self.added.borrow_mut());
                running.retain_mut(|job| job.as_mut().poll(context).is_pending());
                match notified.as_mut().poll(context) {
                    Poll::Ready(()) => notified = Box::pin(self.due.notified()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }

    /// Wakes the task that runs them.
    pub(crate) fn wake(&self) {
        self.due.notify();
    }
}
