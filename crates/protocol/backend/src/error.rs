//! Why there is no connection to a server, and why a request failed.

use std::io;

use auth::ClientAuthError;
use errcode::ClientError;
use link::Disconnect;
use thiserror::Error;
use wire::Malformed;

/// Why nobody is logged in.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The server cannot be reached.
    #[error("the server cannot be reached")]
    Unreachable(#[source] io::Error),
    /// Connecting or logging in took too long.
    #[error("the server did not let the client in in time")]
    Timeout,
    /// The server said why not.
    #[error("the server refused: {0}")]
    Refused(ClientError),
    /// The connection ended in the middle of it.
    #[error("the connection ended during the login")]
    Link(#[source] Disconnect),
    /// The server's packet is none of a login.
    #[error("the server's login packet cannot be read")]
    Malformed(#[from] Malformed),
    /// TLS is asked for, and the server does not offer it.
    #[error("the server does not offer TLS")]
    NoTls,
    /// The server asks for a method that is not spoken here.
    #[error("the server asks for the authentication plugin {plugin}, which is not supported")]
    UnknownPlugin {
        /// Its name.
        plugin: String,
    },
    /// The secret does not fit what the server asks for.
    #[error("the server's challenge cannot be answered")]
    Authentication(#[from] ClientAuthError),
    /// The login went on and on.
    #[error("the server sent too many packets of a login")]
    TooManyPackets,
}

impl From<Disconnect> for ConnectError {
    fn from(disconnect: Disconnect) -> ConnectError {
        match disconnect {
            Disconnect::Idle => ConnectError::Timeout,
            other => ConnectError::Link(other),
        }
    }
}

/// Why a request has no answer, or none that can be read.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The reply to an earlier command was not read to its end.
    #[error("the reply to an earlier command was not read to its end")]
    Engaged,
    /// The server has sent something between two commands. That is its last word, mostly.
    #[error("the server sent something that it was not asked for")]
    Unasked,
    /// The connection ended.
    #[error("the connection to the server ended")]
    Link(#[from] Disconnect),
    /// The reply cannot be read.
    #[error("the server's reply cannot be read")]
    Malformed(#[from] Malformed),
    /// The server answered with an error.
    #[error("the server answered: {0}")]
    Refused(ClientError),
    /// A result is larger than the caller has allowed.
    #[error("the result has more than {limit} bytes")]
    TooLarge {
        /// What was allowed.
        limit: usize,
    },
}
