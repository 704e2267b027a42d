//! What a gateway takes from outside beside the protocol, and what it keeps of that.

pub(crate) mod binary_log_events;
pub(crate) mod kept_results;
pub(crate) mod other_gateways;
pub(crate) mod query_log_line;
pub(crate) mod tracing;
