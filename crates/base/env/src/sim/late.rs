//! Work that a helper thread has not done yet.

use std::fmt;

use sync::{OneshotSender, oneshot};

use super::disk::SimDisk;
use crate::disk::{DiskError, DiskWork, IoFuture};

/// Work that was passed to [`Disk::later`](crate::Disk::later), whether its task still waits or
/// not.
pub struct LateWork {
    disk: SimDisk,
    work: DiskWork,
    answer: OneshotSender<Result<(), DiskError>>,
}

impl LateWork {
    /// Creates the work, and the future for its caller.
    pub(super) fn new(disk: SimDisk, work: DiskWork) -> (Self, IoFuture<Result<(), DiskError>>) {
        let (answer, awaited) = oneshot();
        (Self { disk, work, answer }, Box::pin(awaited.receive()))
    }

    /// The helper thread does the work.
    pub fn run(self) -> Result<(), DiskError> {
        let outcome = (self.work)(&self.disk);
        self.answer.deliver(outcome.clone());
        outcome
    }
}

impl fmt::Debug for LateWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LateWork")
    }
}
