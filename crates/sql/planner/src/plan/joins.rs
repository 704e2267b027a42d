//! Joins: how the rows of two nodes are combined.

use expression::{Class, Expression};

use super::Dependent;

/// The rows that a join keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and left rows without a partner, joined with NULLs.
    Left,
    /// Left rows without a partner, joined with NULLs.
    Anti,
}

/// A nested-loop join.
#[derive(Debug)]
pub struct Join {
    /// Which rows are returned.
    pub kind: JoinKind,
    /// The part of the ON condition that the right side's own scan and filter do not test.
    pub on: Option<Expression>,
    /// Subqueries and calls to run for each pair before `on`.
    pub dependent: Vec<Dependent>,
    /// Slots of the left side: kept where several of its rows are looked up at once.
    pub left_slots: Vec<usize>,
    /// Slots of the right side, which become rows of NULLs.
    pub right_slots: Vec<usize>,
}

/// A hash join.
#[derive(Debug)]
pub struct HashJoin {
    /// Which rows are returned.
    pub kind: JoinKind,
    /// The equalities by which rows are looked up.
    pub keys: Vec<HashKey>,
    /// The rest of the ON condition.
    pub residual: Option<Expression>,
    /// Subqueries and calls to run for each pair before `residual`.
    pub dependent: Vec<Dependent>,
    /// Slots of the right side: kept while the table is built, NULLs for a left row alone.
    pub right_slots: Vec<usize>,
    /// How long the table of the right side is valid.
    pub holds: TableHolds,
}

/// How long the kept rows of a hash join's right side are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableHolds {
    /// Until a row around the join's query changes.
    Query,
    /// To the end of the execution: the right side reads no outer row.
    Execution,
}

/// An equality between the sides of a hash join.
#[derive(Debug)]
pub struct HashKey {
    /// The value of a row of the left side.
    pub left: Expression,
    /// The value of a row of the right side.
    pub right: Expression,
    /// The class to which both are converted for the comparison.
    pub class: Class,
    /// `<=>`: NULL matches NULL. Otherwise NULL matches nothing.
    pub null_safe: bool,
}
