//! Why a login failed, and whose it was.

use auth::Peer;
use errcode::ClientError;
use link::Disconnect;
use thiserror::Error;
use wire::Malformed;

/// A login that failed.
#[derive(Debug, Error)]
#[error("a client could not log in")]
pub struct FailedLogin {
    /// Where the client comes from, as far as it is known. `None`: it was gone before that.
    pub peer: Option<Peer>,
    /// Why.
    #[source]
    pub failure: LoginFailure,
}

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
    /// A header of the PROXY protocol came from elsewhere than `proxy_protocol_networks`.
    #[error("it began with a PROXY header, and is not in `proxy_protocol_networks`")]
    ForeignHeader,
    /// A header of the PROXY protocol contradicts itself or is too long.
    #[error("its PROXY header could not be read")]
    MalformedHeader(#[source] Malformed),
    /// The client may not come in.
    #[error("refused: {0}")]
    Refused(ClientError),
}
