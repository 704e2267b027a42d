//! A statement from its text to its rows.
//!
//! Start at `dispatch` (from text to the function that answers) and `run` (the one loop that
//! awaits the store). `cached_query` answers what `plan_cache` has seen before.

pub(crate) mod cached_query;
pub(crate) mod clock_hand;
pub(crate) mod dispatch;
pub(crate) mod draft;
pub(crate) mod estimates;
pub(crate) mod kept_rows;
mod lock_check;
pub mod plan_cache;
pub mod row_encoder;
pub(crate) mod run;
pub mod sink;
pub(crate) mod source;
pub(crate) mod statement_run;
pub mod transaction;
mod transaction_statement;
pub mod virtual_store;
pub(crate) mod wait;
