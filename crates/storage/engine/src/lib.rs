//! The transactional store: rows and their versions, undo, purge, recovery, the dictionary.
//!
//! Start with [`Engine`], one worker's handle, which implements [`store::Store`]. A statement goes
//! through the modules of `row`; `transaction` begins and ends; `undo` has rollback and purge, and
//! `schema` the tables' definitions. `background` runs beside the sessions, `recovery` once at the
//! start. `replication` is a transaction's part in a group of nodes.
//!
//! (E1) The newest version of a row is in the clustered index, with the id of its writer. Older
//! ones are reached by undo pointers. The id of an active transaction in a row is its lock.
//! (E2) A row's change and its undo record are one mini-transaction and one record of the log.
//! (E3) An entry of a secondary index is made after its row, and marked deleted after the row's
//! change. A reader that finds it in between checks the row.
//! (E4) An operation that suspends holds no latch. What it has done stands in its transaction's
//! `Pending`, and the repeated call continues there.
//! (E5) A commit's number is the end of its commit record in the log. The record also stands in the
//! undo segment, where recovery looks for transactions that have not ended.

#![forbid(unsafe_code)]

mod activity;
mod background;
mod check;
mod counters;
mod ddl;
mod engine;
mod lob_memo;
mod metrics;
mod recovery;
mod replication;
mod row;
mod sampling;
mod schema;
mod stages;
mod transaction;
mod turns;
mod undo;
mod undo_log;
mod worker;

pub use check::{CheckPlan, CheckProgress, CheckReport, check_files};
pub use engine::Engine;
pub use recovery::EngineOptions;
pub use replication::orders::OrderCounts;
pub use schema::dictionary::reencode_dictionary_entry;
pub use undo::purge::PURGE_PATIENCE;
pub use worker::{Shared, Sleep, WorkerOptions};
