//! [`Needs`]: what a session needs on a connection.

use std::sync::Arc;

use crate::command_list::CommandList;

/// What a login decides of a session beside the account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The database that is in use before the session's commands.
    pub database: Option<String>,
    /// By which the server knows the character set.
    pub collation: u8,
}

/// What a session needs on a connection.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// What its login decides.
    pub origin: &'a Arc<Origin>,
    /// What it has run since.
    pub commands: &'a CommandList,
    /// The server has this role now.
    pub role: Role,
    /// What its next statement reads of earlier ones.
    pub reads: Reads,
}

/// What a server is, as far as its connections are set up for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A member of a Galera cluster that is read from: it waits for what others have written.
    GaleraReader,
    /// Any other.
    Other,
}

/// What a statement reads that a connection may have of another session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    /// Warnings, of which its session has none.
    pub warnings: bool,
    /// LAST_INSERT_ID(), which is this in its session.
    pub insert_id: Option<u64>,
}
