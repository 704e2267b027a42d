//! From a syntax tree to an immutable plan: names, types, access paths, join order.
//!
//! Start reading at [`mod@plan`] (what the executor runs) and [`plan()`] (what makes it). A
//! statement is *bound* first (`bind`: names to places in the frame, types, conditions). Then its
//! tables get access paths and an order (`access`, `join`), and the nodes above them are built
//! (`query`).
//!
//! Nothing here reads rows or clocks: definitions and statistics come through [`Names`]. So a plan
//! can be made, and tested, with a fixed set of definitions.

#![forbid(unsafe_code)]

pub mod plan;

mod access;
mod bind;
mod condition;
mod default;
mod dml;
mod estimate;
mod explain;
mod from;
mod join;
mod keys;
mod limits;
mod names;
mod needed_privileges;
mod numbered;
mod output;
mod query;
mod settings;
mod statement;

use errcode::ClientError;
use syntax::ast;

pub use default::check_default;
pub use keys::{
    Edge, KeyCondition, KeyEqual, KeyPlan, KeySource, RANGE_COUNT_MAX, RangePlan, key_ranges,
    range_of, unique_range,
};
pub use names::{FixedNames, GivenValues, Names, is_reference_type, missing_table};
pub use plan::*;
pub use settings::{Settings, StatementLimits, StringRules};

/// The client's error if there is no plan.
pub type PlanError = Box<ClientError>;

/// Makes the plan of a statement: `SELECT`, `INSERT`, `REPLACE`, `UPDATE`, `DELETE`, `DO`, and
/// `EXPLAIN` of one of these. `source` is the text of the tree (for the names of result columns).
///
/// The plan is valid for the canonical text, the parameter types, the default database, the
/// settings, and the definitions. A cache is keyed by the first four and emptied when the store's
/// schema version changes. The plan also depends on the types of the user variables that it lists
/// ([`Plan::user_variables`]); a caller that finds it in a cache compares them.
///
/// # Errors
/// MySQL's error for the statement, or 1235 for what is not built.
pub fn plan(
    statement: &ast::Statement,
    source: &[u8],
    names: &dyn Names,
    settings: &Settings,
) -> Result<Plan, PlanError> {
    bind::Binder::new(source, names, settings).statement(statement)
}

/// Error 1235, which names what is not built.
pub(crate) fn not_supported(what: &str) -> PlanError {
    Box::new(ClientError::not_supported(&what))
}

/// The lock of the tables of a locking query.
pub(crate) fn select_lock(
    lock: &ast::RowLock,
) -> Result<(store::RowLock, store::LockWait), PlanError> {
    let row_lock = if lock.exclusive {
        store::RowLock::Exclusive
    } else {
        store::RowLock::Shared
    };
    let wait = match lock.wait {
        ast::LockWait::Default => store::LockWait::Wait,
        ast::LockWait::No | ast::LockWait::Seconds(0) => store::LockWait::NoWait,
        ast::LockWait::Skip => store::LockWait::SkipLocked,
        ast::LockWait::Seconds(_) => return Err(not_supported("WAIT n")),
    };
    Ok((row_lock, wait))
}
