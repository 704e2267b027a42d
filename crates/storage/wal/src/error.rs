//! What can go wrong with the log.

use env::DiskError;
use format::Lsn;
use format::control::ControlError;
use thiserror::Error;

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
    /// The blocks that the checkpoint points to do not lead to it.
    #[error("the log does not reach the checkpoint at {checkpoint}")]
    CheckpointUnreachable {
        /// LSN of the checkpoint.
        checkpoint: Lsn,
    },
    /// Log that was acknowledged is not there any more.
    #[error("the log ends at {found} but was durable up to {durable}")]
    LogLost {
        /// Where it breaks.
        found: Lsn,
        /// Up to where it was known to be durable.
        durable: Lsn,
    },
}
