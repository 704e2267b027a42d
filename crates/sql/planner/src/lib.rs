//! From a syntax tree to an immutable plan: names, types, access paths, join order.
//!
//! Start reading at [`mod@plan`] (what the executor runs) and [`plan()`] (what makes it). A
//! statement is *bound* first (`bind`: names to places in the frame, types, conditions), then its
//! tables are given access paths and an order (`access`, `join`), then the nodes above them are
//! put together (`query`).
//!
//! Nothing here reads rows or clocks: definitions and statistics come through [`Names`], so a plan
//! can be made, and tested, over a fixed set of definitions.

#![forbid(unsafe_code)]

pub mod plan;

mod access;
mod bind;
mod default;
mod dml;
mod estimate;
mod explain;
mod join;
mod keys;
mod limits;
mod load;
mod names;
mod numbered;
mod output;
mod query;
mod right;
mod settings;

use errcode::ClientError;
use syntax::ast;

pub use default::check_default;
pub use keys::{
    KeyCondition, KeyPlan, KeySource, RANGE_COUNT_MAX, key_ranges, range_of, unique_range,
};
pub use names::{FixedNames, Names, is_reference_type, missing_table};
pub use plan::*;
pub use settings::{Settings, StatementLimits, StringRules};

/// Why there is no plan: what the client is told.
pub type PlanError = Box<ClientError>;

/// Makes the plan of a statement: `SELECT`, `INSERT`, `REPLACE`, `UPDATE`, `DELETE`, `DO`, and
/// `EXPLAIN` of one of these. `source` is the text that the tree was made of (for the names of
/// result columns).
///
/// The plan holds for the canonical text, the types of the parameters, the default database, the
/// settings, and the definitions: a cache is keyed by the first four and emptied when the store's
/// schema version moves. It also holds for the types of the user variables that it names
/// ([`Plan::user_variables`]): who has found it in a cache compares them.
///
/// # Errors
/// What MySQL says of the statement, or 1235 naming what is not built.
pub fn plan(
    statement: &ast::Statement,
    source: &[u8],
    names: &dyn Names,
    settings: &Settings,
) -> Result<Plan, PlanError> {
    bind::Binder::new(source, names, settings).statement(statement)
}

/// Error 1235 naming what is not built.
pub(crate) fn not_supported(what: &str) -> PlanError {
    Box::new(ClientError::not_supported(&what))
}

/// How the tables of a query that says so are locked.
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
