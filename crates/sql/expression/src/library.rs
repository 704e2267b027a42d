//! Functions that expressions call, resolved by name when the plan is made.

use value::ValueRef;

use crate::tree::{Call, Expression};
use crate::{Evaluator, Failure};

/// A function, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// One that asks the session.
    Session(SessionFunction),
}

/// Functions of the session's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionFunction {
    /// `CONNECTION_ID()`.
    ConnectionId,
    /// `USER()`, `SESSION_USER()`, `SYSTEM_USER()`.
    User,
    /// `CURRENT_USER()`.
    CurrentUser,
    /// `CURRENT_ROLE()`.
    CurrentRole,
    /// `DATABASE()`, `SCHEMA()`.
    Database,
    /// `VERSION()`.
    Version,
    /// `LAST_INSERT_ID()`.
    LastInsertId,
    /// `ROW_COUNT()`.
    RowCount,
    /// `FOUND_ROWS()`.
    FoundRows,
}

/// The value of a call.
pub(crate) fn call<'a>(
    evaluator: &Evaluator<'a>,
    call: &'a Call,
    _: &'a Expression,
) -> Result<ValueRef<'a>, Failure> {
    match call.function {
        Function::Session(function) => {
            let value = evaluator.statement.session.session_function(function);
            Ok(evaluator.keep(value))
        }
    }
}
