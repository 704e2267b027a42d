//! Why a login failed.

use errcode::ClientError;
use link::Disconnect;
use thiserror::Error;
use wire::Malformed;

/// Why nobody is logged in. The client has been told what it may know.
#[derive(Debug, Error)]
pub enum LoginFailure {
    /// The connection ended before.
    #[error("the connection ended")]
    Disconnected(#[from] Disconnect),
    /// The login took longer than `connect_timeout`.
    #[error("the login took too long")]
    Timeout,
    /// A packet of the login was none, or one too many.
    #[error("a login packet could not be read")]
    Malformed(#[from] Malformed),
    /// The client may not come in.
    #[error("refused: {0}")]
    Refused(ClientError),
}
