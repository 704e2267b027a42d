//! Rollback, which reads the undo log of a transaction; and purge, which removes what no snapshot
//! needs.

pub(crate) mod purge;
pub(crate) mod reclaim;
pub(crate) mod rollback;
