//! Bound SQL expressions, the rows they read, and their evaluation.
//!
//! Reading order: `tree` (what an expression is), `frame` and `rows` (the current rows), and
//! `statement` (the session). Then `evaluate` (the values of expressions) and `domain` (conversion
//! of values to the class in which an operator works).
//!
//! The planner creates expressions and folds constant ones; the executor evaluates them over its
//! rows. Nothing here does I/O or suspends.

#![forbid(unsafe_code)]

mod constants;
mod convert;
mod digest;
mod domain;
mod evaluate;
mod frame;
mod key;
mod members;
mod memory;
mod rows;
mod statement;
mod tree;

pub use constants::Constants;
pub use convert::{convert_value, fits_as_is, now_for, store_value, zero_of};
pub use evaluate::Evaluator;
pub use frame::{Frame, Slot, SlotContent, SubqueryResult, clear_values};
pub use key::{
    KeyClock, KeyValue, append_class_key, append_group_key, compare_in, compare_metered,
    compare_values, compare_values_metered, key_value, like_prefix,
};
pub use members::{Lookup, LookupKind, Members};
pub use memory::{Memory, MemoryPool, ProcessLimit, Share};
pub use rows::Rows;
pub use statement::{Diagnostics, SessionContext, Statement, StatementOptions};
pub use tree::{
    AggregateCall, AggregateKind, Arithmetic, ArithmeticOperator, BitOperation, BitOperator, Call,
    Case, Class, ColumnPlace, Compare, CompareOperator, Expression, ExpressionKind, InList, InRows,
    Like, ListMembers, Quantified, SessionCall, StoredCall, StoredFunction, SystemVariable, Test,
    UserVariable,
};

/// Why an expression has no value.
pub type Failure = Box<errcode::ClientError>;

/// A condition of the value library as an error.
pub fn failure(condition: value::SqlCondition) -> Failure {
    Box::new(condition.into())
}

/// The client's error for a row that cannot be decoded.
pub fn damaged_row(error: &format::row::RowError) -> Failure {
    Box::new(errcode::ClientError::worded(
        errcode::WORDS_DAMAGED,
        &[error],
    ))
}
