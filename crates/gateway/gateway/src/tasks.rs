//! What a worker does beside its sessions: it reads from the servers what these need, and lends
//! connections to other workers.

mod accounts;
mod cluster;
mod definitions;
mod followers;
mod lend;

pub use accounts::keep_accounts;
pub use definitions::keep_definitions;
pub use followers::keep_followers;
pub use lend::keep_pool;
