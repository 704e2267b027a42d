//! Why a login failed, and why a connection ended.

use std::io;

use errcode::ClientError;
use thiserror::Error;
use wire::Malformed;

use crate::channel::ChannelError;

/// Why a connection ended.
#[derive(Debug, Error)]
pub enum Disconnect {
    /// The client closed it.
    #[error("the client closed the connection")]
    PeerClosed,
    /// No command came within `wait_timeout`.
    #[error("no command came in time")]
    Idle,
    /// The client did not take a reply within `write_timeout`.
    #[error("the client did not take a reply in time")]
    WriteTimeout,
    /// The session was killed while the client took nothing of its reply, of which it may have
    /// got a part: it can be told nothing any more.
    #[error("it was killed while its client did not take a reply")]
    Killed,
    /// A packet was larger than `max_allowed_packet`; the client has been told.
    #[error("a packet was larger than max_allowed_packet")]
    TooLarge,
    /// There was no memory for a packet (`packet_memory_size`); the client has been told.
    #[error("there was no memory for a packet")]
    NoMemory,
    /// What came is not the protocol; the client has been told as far as it could be.
    #[error("what the client sent is not the protocol")]
    Protocol(#[source] ChannelError),
    /// The socket failed.
    #[error("the socket failed")]
    Io(#[from] io::Error),
}

impl From<ChannelError> for Disconnect {
    fn from(error: ChannelError) -> Disconnect {
        Disconnect::Protocol(error)
    }
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
    /// The client may not come in.
    #[error("refused: {0}")]
    Refused(ClientError),
}
