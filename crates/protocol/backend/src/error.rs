//! Why there is no connection to a server, and why a request failed.

use std::error::Error as _;
use std::io;

use auth::ClientAuthError;
use errcode::{ClientError, Origin, Retry};
use link::{Disconnect, Link};
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
    /// The server closed the connection during the login, behind a header of the PROXY protocol.
    #[error(
        "the connection ended behind the PROXY header, which the server may not take from here"
    )]
    HeaderUnanswered(#[source] Disconnect),
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

impl ConnectError {
    /// Who caused it.
    pub fn origin(&self) -> Origin {
        match self {
            ConnectError::Refused(error) => error.origin,
            ConnectError::Unreachable(_)
            | ConnectError::Timeout
            | ConnectError::Link(_)
            | ConnectError::HeaderUnanswered(_)
            | ConnectError::Malformed(_)
            | ConnectError::NoTls
            | ConnectError::TooManyPackets => Origin::Server,
            ConnectError::UnknownPlugin { .. } | ConnectError::Authentication(_) => {
                Origin::Ourselves
            }
        }
    }

    /// What it is and what has caused it, in one line.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

    /// Whether another attempt may end otherwise. No statement has been sent yet.
    pub fn retry(&self) -> Retry {
        match self {
            ConnectError::Refused(error) => error.retry,
            ConnectError::Unreachable(_)
            | ConnectError::Timeout
            | ConnectError::Link(_)
            | ConnectError::HeaderUnanswered(_) => Retry::Now,
            ConnectError::Malformed(_)
            | ConnectError::NoTls
            | ConnectError::UnknownPlugin { .. }
            | ConnectError::Authentication(_)
            | ConnectError::TooManyPackets => Retry::Never,
        }
    }
}

impl From<Disconnect> for ConnectError {
    fn from(disconnect: Disconnect) -> ConnectError {
        match disconnect {
            Disconnect::Idle => ConnectError::Timeout,
            other => ConnectError::Link(other),
        }
    }
}

impl From<RequestError> for ConnectError {
    fn from(error: RequestError) -> ConnectError {
        match error {
            RequestError::Refused(error) => ConnectError::Refused(error),
            RequestError::Link(end) | RequestError::Unanswered(end) => end.into(),
            RequestError::Malformed(malformed) => malformed.into(),
            RequestError::Engaged => ConnectError::Link(Disconnect::Engaged),
            RequestError::Unasked => NOT_ASKED.into(),
            RequestError::TooLarge { .. } => TOO_LARGE.into(),
        }
    }
}

const NOT_ASKED: Malformed = Malformed {
    what: "packet that was not asked for",
};

const TOO_LARGE: Malformed = Malformed {
    what: "result that is too large",
};

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
    /// The server closed the connection, and nothing of a reply has come.
    #[error("the server closed the connection and did not answer")]
    Unanswered(#[source] Disconnect),
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

impl RequestError {
    /// Who caused it.
    pub fn origin(&self) -> Origin {
        match self {
            RequestError::Refused(error) => error.origin,
            RequestError::Unasked
            | RequestError::Link(_)
            | RequestError::Unanswered(_)
            | RequestError::Malformed(_) => Origin::Server,
            RequestError::Engaged | RequestError::TooLarge { .. } => Origin::Ourselves,
        }
    }

    /// Whether the request may be sent again.
    pub fn retry(&self) -> Retry {
        match self {
            RequestError::Refused(error) => error.retry,
            // It was not sent: what had come before was the server's last word.
            RequestError::Unasked => Retry::Now,
            RequestError::Unanswered(_) => Retry::IfRead,
            RequestError::Engaged
            | RequestError::Link(_)
            | RequestError::Malformed(_)
            | RequestError::TooLarge { .. } => Retry::Never,
        }
    }

    /// The connection ended before a packet of the reply was taken.
    pub(crate) fn before_reply(disconnect: Disconnect, link: &Link) -> RequestError {
        match disconnect.is_peer_closing() && !link.has_begun_packet() {
            true => RequestError::Unanswered(disconnect),
            false => RequestError::Link(disconnect),
        }
    }
}

#[cfg(test)]
mod tests {
    use errcode::ER_LOCK_DEADLOCK;

    use super::*;

    #[test]
    fn what_a_server_did_not_answer_is_sent_again_if_it_reads() {
        let unanswered = RequestError::Unanswered(Disconnect::PeerClosed);
        assert_eq!(unanswered.origin(), Origin::Server);
        assert_eq!(unanswered.retry(), Retry::IfRead);
        assert_eq!(RequestError::Unasked.retry(), Retry::Now);
        let torn = RequestError::Link(Disconnect::PeerClosed);
        assert_eq!(
            (torn.origin(), torn.retry()),
            (Origin::Server, Retry::Never)
        );
        assert_eq!(RequestError::Engaged.origin(), Origin::Ourselves);
    }

    #[test]
    fn the_errors_of_a_server_keep_their_retry() {
        let code = ER_LOCK_DEADLOCK;
        let refusal = || ClientError::of_server(code, code.sqlstate(), "again");
        let request = RequestError::Refused(refusal());
        assert_eq!(
            (request.origin(), request.retry()),
            (Origin::Server, Retry::Now)
        );
        let connect = ConnectError::Refused(refusal());
        assert_eq!(
            (connect.origin(), connect.retry()),
            (Origin::Server, Retry::Now)
        );
    }

    #[test]
    fn a_connection_that_failed_is_tried_again_unless_it_would_fail_again() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(ConnectError::Unreachable(refused).retry(), Retry::Now);
        assert_eq!(ConnectError::from(Disconnect::Idle).retry(), Retry::Now);
        assert_eq!(ConnectError::NoTls.retry(), Retry::Never);
        let plugin = String::from("dialog");
        let unknown = ConnectError::UnknownPlugin { plugin };
        assert_eq!(unknown.origin(), Origin::Ourselves);
        assert_eq!(unknown.retry(), Retry::Never);
    }
}
