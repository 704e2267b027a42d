//! What can go wrong with the log.

use env::DiskError;
use format::control::ControlError;
use thiserror::Error;

use crate::damage::LogDamage;

/// Trouble of the log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WalError {
    /// An earlier write or sync failed; what became of later log is not known.
    #[error("the log is closed because a write to it failed")]
    Poisoned,
    /// A file could not be made, read or written.
    #[error("the log's files")]
    Disk(#[from] DiskError),
    /// The control file gives no checkpoint.
    #[error("the log's control file")]
    Control(#[from] ControlError),
    /// Log that was durable is not there any more.
    #[error(transparent)]
    Damaged(Box<LogDamage>),
}
