//! [`StoredCall`]: a call of a function that is written in SQL.
//!
//! Evaluation does not run it: a body takes as long as it takes, waits, reads and writes tables.
//! Like a subquery it is run before the expression around it is evaluated, by whoever holds the
//! rows that its arguments read, and its value then stands in the frame under its number.

use std::rc::Rc;

use value::ColumnType;

use crate::tree::Expression;

/// What a plan knows of a stored function.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFunction {
    /// Its database.
    pub database: String,
    /// Its name.
    pub name: String,
    /// What its values are.
    pub returns: ColumnType,
    /// How many arguments it takes.
    pub parameter_count: usize,
    /// It says that equal arguments give equal values.
    pub is_deterministic: bool,
}

/// A call of a stored function.
#[derive(Debug, Clone)]
pub struct StoredCall {
    /// Its number among the statement's subqueries and calls.
    pub number: usize,
    /// The function.
    pub function: Rc<StoredFunction>,
    /// Its arguments.
    pub arguments: Vec<Expression>,
}

/// Calls of a deterministic function with equal arguments are the same expression, whatever their
/// numbers; another call may give another value.
impl PartialEq for StoredCall {
    fn eq(&self, other: &Self) -> bool {
        let is_same = self.number == other.number || self.function.is_deterministic;
        is_same && self.function == other.function && self.arguments == other.arguments
    }
}
