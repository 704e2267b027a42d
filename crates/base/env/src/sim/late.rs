//! Work of a helper thread that has not come to it yet.

use std::fmt;

use sync::{ParcelSender, parcel};

use super::disk::SimDisk;
use crate::disk::{DiskError, DiskWork, IoFuture};

/// What a task has asked of [`Disk::later`](crate::Disk::later), whether it still waits or not.
pub struct LateWork {
    disk: SimDisk,
    work: DiskWork,
    answer: ParcelSender<Result<(), DiskError>>,
}

impl LateWork {
    /// The work, and what its asker waits for.
    pub(super) fn new(disk: SimDisk, work: DiskWork) -> (Self, IoFuture<Result<(), DiskError>>) {
        let (answer, awaited) = parcel();
        (Self { disk, work, answer }, Box::pin(awaited.receive()))
    }

    /// The thread comes to it.
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
