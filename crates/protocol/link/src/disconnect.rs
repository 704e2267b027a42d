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
    /// Whether the peer closed the connection, in order or by a reset: what was sent last may not
    /// have arrived. A network that fails does not count, since the peer may be at work.
    pub fn is_peer_closing(&self) -> bool {
        match self {
            Disconnect::PeerClosed => true,
            // Only the system's own word: an earlier send that was given up has the same kind.
            Disconnect::Io(error) => error.raw_os_error().is_some() && is_reset(error.kind()),
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

/// Whether the socket of the other end is gone.
fn is_reset(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

impl From<ChannelError> for Disconnect {
    fn from(error: ChannelError) -> Disconnect {
        Disconnect::Protocol(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_peer_closes() {
        let of_system = |number: i32| Disconnect::Io(io::Error::from_raw_os_error(number));
        const BROKEN_PIPE: i32 = 32;
        const CONNECTION_RESET: i32 = 104;
        const TIMED_OUT: i32 = 110;
        const NO_ROUTE: i32 = 113;
        const NO_BUFFERS: i32 = 105;
        for (disconnect, expected) in [
            (Disconnect::PeerClosed, true),
            (of_system(BROKEN_PIPE), true),
            (of_system(CONNECTION_RESET), true),
            (of_system(TIMED_OUT), false),
            (of_system(NO_ROUTE), false),
            (of_system(NO_BUFFERS), false),
            (Disconnect::Io(io::ErrorKind::BrokenPipe.into()), false),
            (Disconnect::Idle, false),
            (Disconnect::WriteTimeout, false),
            (Disconnect::Engaged, false),
        ] {
            assert_eq!(disconnect.is_peer_closing(), expected, "{disconnect:?}");
        }
    }
}
