//! [`StoredCall`]: a call of a function that is written in SQL.
//!
//! Evaluation does not run it, since a body may take long, wait, and read and write tables. Like a
//! subquery it runs before the expression that contains it, by the operator that has the rows of
//! its arguments. Its value is then in the frame under its number.

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
    /// The type of its values.
    pub returns: ColumnType,
    /// How many arguments it takes.
    pub parameter_count: usize,
    /// It is declared to return equal values for equal arguments.
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

/// Calls of a deterministic function with equal arguments are equal, whatever their numbers. Calls
/// of other functions may return different values.
impl PartialEq for StoredCall {
    fn eq(&self, other: &Self) -> bool {
        let is_same = self.number == other.number || self.function.is_deterministic;
        is_same && self.function == other.function && self.arguments == other.arguments
    }
}
