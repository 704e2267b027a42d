//! What can go wrong with the log.

use env::DiskError;
use format::control::ControlError;
use thiserror::Error;

use crate::damage::LogDamage;

/// An error of the log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WalError {
    /// An earlier write or sync failed; the state of later log is unknown.
    #[error("the log is closed because a write to it failed")]
    Poisoned,
    /// A file could not be made, read or written.
    #[error("the log's files")]
    Disk(#[from] DiskError),
    /// The control file has no valid checkpoint.
    #[error("the log's control file")]
    Control(#[from] ControlError),
    /// Log that was durable is lost.
    #[error(transparent)]
    Damaged(Box<LogDamage>),
}
