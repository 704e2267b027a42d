//! What a worker does beside its sessions: it reads from the servers, again and again, what these
//! need.

mod accounts;
mod definitions;

pub use accounts::keep_accounts;
pub use definitions::keep_definitions;
