//! Files that a gateway reads and writes.

pub(crate) mod other_gateways;
pub(crate) mod query_log_line;
