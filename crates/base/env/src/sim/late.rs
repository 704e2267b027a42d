//! Work of a helper thread that has not come to it yet.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use sync::Mutex;

use super::disk::SimDisk;
use crate::disk::{DiskError, DiskWork, IoFuture};

/// What a task has asked of [`Disk::later`](crate::Disk::later), whether it still waits or not.
pub struct LateWork {
    disk: SimDisk,
    work: DiskWork,
    answer: Arc<Mutex<Answer>>,
}

#[derive(Default)]
struct Answer {
    outcome: Option<Result<(), DiskError>>,
    /// Who waits.
    waker: Option<Waker>,
}

impl LateWork {
    /// The work, and what its asker waits for.
    pub(super) fn new(disk: SimDisk, work: DiskWork) -> (Self, IoFuture<Result<(), DiskError>>) {
        let answer = Arc::<Mutex<Answer>>::default();
        let awaited = Arc::clone(&answer);
        let wait = poll_fn(move |context| {
            let mut answer = awaited.lock();
            if let Some(outcome) = answer.outcome.take() {
                return Poll::Ready(outcome);
            }
            answer.waker = Some(context.waker().clone());
            Poll::Pending
        });
        (Self { disk, work, answer }, Box::pin(wait))
    }

    /// The thread comes to it.
    pub fn run(self) -> Result<(), DiskError> {
        let outcome = (self.work)(&self.disk);
        let waker = {
            let mut answer = self.answer.lock();
            answer.outcome = Some(outcome.clone());
            answer.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        outcome
    }
}

impl fmt::Debug for LateWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LateWork")
    }
}
