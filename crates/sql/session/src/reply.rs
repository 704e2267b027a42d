//! What a statement leaves for its last packet, and what stops one.

use errcode::ClientError;
use front::Disconnect;
use wire::StatusFlags;

/// How a command's reply ends.
#[derive(Debug)]
pub(crate) enum Reply {
    /// With an OK packet.
    Ok(Done),
    /// Rows have been written; with the packet that ends them.
    Rows(Done),
    /// Everything has been written.
    Nothing,
    /// With the session (`COMMIT RELEASE`).
    End,
}

/// What an OK packet says.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Rows that were changed.
    pub(crate) affected_rows: u64,
    /// The first number that AUTO_INCREMENT gave, or 0.
    pub(crate) last_insert_id: u64,
    /// It is the list of warnings itself, which counts none.
    pub(crate) tells_warnings: bool,
    /// Text for people.
    pub(crate) info: String,
    /// Flags beside those of the session.
    pub(crate) status: StatusFlags,
}

/// Why a statement has no reply of its own.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It failed.
    Error(Box<ClientError>),
    /// The client is gone.
    Disconnect(Box<Disconnect>),
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Error(Box::new(error))
    }
}

impl From<Box<ClientError>> for Stop {
    fn from(error: Box<ClientError>) -> Self {
        Self::Error(error)
    }
}

impl From<Disconnect> for Stop {
    fn from(disconnect: Disconnect) -> Self {
        Self::Disconnect(Box::new(disconnect))
    }
}

impl From<store::StoreError> for Stop {
    fn from(error: store::StoreError) -> Self {
        Self::from(executor::client_error(&error))
    }
}
