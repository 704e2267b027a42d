//! [`LogError`]: why a stream cannot be read any further.

use thiserror::Error;
use wire::Malformed;

/// See the module's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LogError {
    /// An event ends early or contradicts itself.
    #[error("the binary log cannot be read")]
    Malformed(#[from] Malformed),
    /// An event is not what was written.
    #[error("an event of the binary log has another checksum")]
    Checksum,
    /// A checksum of another kind.
    #[error("the binary log has checksums of the unknown kind {0}")]
    UnknownChecksum(u8),
}
