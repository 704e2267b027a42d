//! Why a session got no connection.

use std::sync::Arc;

use errcode::{Origin, Retry};

/// A session asked for a connection and got none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// All connections were in use until the session's time was over.
    #[error("no connection to {server} in time: its limit is {limit}, {waiting} sessions wait")]
    TimedOut {
        /// The server's name.
        server: Arc<str>,
        /// Its limit of connections.
        limit: u32,
        /// Sessions that wait for it, without this one.
        waiting: usize,
    },
    /// Too many sessions wait already.
    #[error("no connection to {server}: its limit is {limit}, and {waiting} sessions wait already")]
    QueueFull {
        /// The server's name.
        server: Arc<str>,
        /// Its limit of connections.
        limit: u32,
        /// Sessions that wait for it.
        waiting: usize,
    },
    /// The session holds a connection that an older session waits for, and waiting would close a
    /// cycle. It has to give back all that it holds, and its transaction may be tried again.
    #[error("no connection to {server}: an older session waits for one that this session holds")]
    Victim {
        /// The server's name.
        server: Arc<str>,
    },
    /// The server was removed while the session waited, or before.
    #[error("{server} was removed")]
    Removed {
        /// The server's name.
        server: Arc<str>,
    },
    /// There is no server of that id.
    #[error("the server is not known")]
    UnknownServer,
}

impl AcquireError {
    /// Who has to do something.
    pub fn origin(&self) -> Origin {
        Origin::Ourselves
    }

    /// Whether the statement may be tried again. It was not sent.
    pub fn retry(&self) -> Retry {
        match self {
            AcquireError::Victim { .. } => Retry::Now,
            AcquireError::TimedOut { .. }
            | AcquireError::QueueFull { .. }
            | AcquireError::Removed { .. }
            | AcquireError::UnknownServer => Retry::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_server_limit_and_waiters() {
        let server: Arc<str> = Arc::from("db1");
        let timed_out = AcquireError::TimedOut {
            server: Arc::clone(&server),
            limit: 5,
            waiting: 7,
        };
        assert_eq!(
            timed_out.to_string(),
            "no connection to db1 in time: its limit is 5, 7 sessions wait"
        );
        assert_eq!(timed_out.retry(), Retry::Never);
        let victim = AcquireError::Victim { server };
        assert_eq!(victim.retry(), Retry::Now);
        assert_eq!(victim.origin(), Origin::Ourselves);
    }
}
