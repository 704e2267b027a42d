//! A statement from its text to its rows.
//!
//! Start at `dispatch` (from text to the function that answers) and `run` (the one loop that
//! awaits the store). `cached_query` answers what `worker::plan_cache` has seen before.

pub(crate) mod cached_query;
mod deadlock;
pub(crate) mod dispatch;
mod ends;
pub(crate) mod estimates;
pub(crate) mod gate;
mod lock_check;
pub(crate) mod run;
pub(crate) mod statement_run;
mod transaction_statement;
pub mod virtual_store;
pub(crate) mod wait;
mod xa_decision;
mod xa_statement;
