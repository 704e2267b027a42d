//! [`Statements`]: what clients execute, for the store's reports of deadlocks.
//!
//! The store asks in the middle of a search for deadlocks, when a client waits and its statement
//! cannot end. The answer comes from the process list, under its two small mutexes.

use std::sync::Arc;

use clients::Clients;
use store::{ClientId, Witness};

/// Longer statements are cut off in reports of deadlocks.
const STATEMENT_BYTES_MAX: usize = 1024;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Statements(pub(crate) Arc<Clients>);

impl Witness for Statements {
    fn statement(&self, client: ClientId) -> Option<String> {
        let handle = self.0.registry().find(client.0)?;
        let statement = handle.statement(STATEMENT_BYTES_MAX);
        Some(statement).filter(|text| !text.is_empty())
    }
}
