//! [`Parts`]: a transaction over several servers.
//!
//! A hint may send a statement of an open transaction to another server. The transaction then has a
//! part there. All parts end together, those on other servers before the one with which it began.
//! No server knows of the others, so a server that fails between two commits leaves one part
//! committed: the client is told which.

use monitor::ServerId;

/// The servers with parts of a transaction, but for the one where it was begun.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts(Vec<ServerId>);

/// What a statement does to the parts of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Stays,
    /// It may begin a part, if a hint names a server.
    MayJoin,
    /// It begins a part where it goes.
    Joins,
    /// They are committed before it runs.
    Commits,
    /// They are rolled back before it runs.
    RollsBack,
    /// It cannot be carried out while there are some.
    Refused,
}

impl Parts {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, server: ServerId) -> bool {
        self.0.contains(&server)
    }

    pub(crate) fn add(&mut self, server: ServerId) {
        if !self.has(server) {
            self.0.push(server);
        }
    }

    pub(crate) fn remove(&mut self, server: ServerId) {
        self.0.retain(|it| *it != server);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// In the order in which they were begun.
    pub(crate) fn servers(&self) -> &[ServerId] {
        &self.0
    }
}
