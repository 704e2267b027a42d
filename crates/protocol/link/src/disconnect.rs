//! Why a connection ended.

use std::io;

use thiserror::Error;

use crate::channel::ChannelError;

/// Why a connection ended.
#[derive(Debug, Error)]
pub enum Disconnect {
    /// The peer closed it.
    #[error("the peer closed the connection")]
    PeerClosed,
    /// Nothing came in time.
    #[error("nothing came in time")]
    Idle,
    /// The peer did not take what was sent within the write timeout.
    #[error("the peer did not take what was sent in time")]
    WriteTimeout,
    /// The session was killed while the peer took nothing of its reply, of which it may have got a
    /// part: nothing more can be sent.
    #[error("it was killed while its peer did not take a reply")]
    Killed,
    /// A packet was larger than `max_allowed_packet`; a client has received the error.
    #[error("a packet was larger than max_allowed_packet")]
    TooLarge,
    /// There was no memory for a packet (`packet_memory_size`); a client has received the error.
    #[error("there was no memory for a packet")]
    NoMemory,
    /// What came is not the protocol; a client has received the error if it could be sent.
    #[error("what the peer sent is not the protocol")]
    Protocol(#[source] ChannelError),
    /// A command on it was not brought to its end, so what comes next could be its reply's rest.
    #[error("a command on it was not brought to its end")]
    Engaged,
    /// The socket failed.
    #[error("the socket failed")]
    Io(#[from] io::Error),
}

impl Disconnect {
    /// Whether the peer or the network ended the connection: what was sent last may not have
    /// arrived.
    pub fn is_by_peer(&self) -> bool {
        match self {
            Disconnect::PeerClosed | Disconnect::Io(_) => true,
            Disconnect::Idle
            | Disconnect::WriteTimeout
            | Disconnect::Killed
            | Disconnect::TooLarge
            | Disconnect::NoMemory
            | Disconnect::Protocol(_)
            | Disconnect::Engaged => false,
        }
    }
}

impl From<ChannelError> for Disconnect {
    fn from(error: ChannelError) -> Disconnect {
        Disconnect::Protocol(error)
    }
}
