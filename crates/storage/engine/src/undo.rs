//! The undo log of each transaction; rollback, which reads it; and purge, which removes what no
//! snapshot needs.

pub(crate) mod purge;
pub(crate) mod purge_list;
pub(crate) mod reclaim;
pub(crate) mod rollback;
pub(crate) mod undo_log;
