//! Work that a worker does beside its loops, one future each, until all are done.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use sync::Notify;

type Job = Pin<Box<dyn Future<Output = ()>>>;

/// The jobs that were added and not begun.
#[derive(Default)]
pub(crate) struct Jobs {
    added: RefCell<Vec<Job>>,
    due: Notify,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

impl Jobs {
    /// Adds one. It runs beside the others.
    pub(crate) fn add(&self, job: impl Future<Output = ()> + 'static) {
        self.added.borrow_mut().push(Box::pin(job));
        self.due.notify_own();
    }

    /// Runs all jobs, until `is_over` is true and none is left.
    pub(crate) async fn run(&self, is_over: impl Fn() -> bool) {
        let mut running: Vec<Job> = Vec::new();
        let mut notified = Box::pin(self.due.notified());
        std::future::poll_fn(move |context| {
            loop {
                running.append(&mut self.added.borrow_mut());
                running.retain_mut(|job| job.as_mut().poll(context).is_pending());
                if is_over() && running.is_empty() && self.added.borrow().is_empty() {
                    return Poll::Ready(());
                }
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
