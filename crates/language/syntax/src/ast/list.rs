//! Lists of expressions, which may be very long: the members of an `IN`, the rows of `VALUES`.
//!
//! The tree of an expression takes a hundred bytes and more, its text two or three. So a long list
//! of only constants is not kept as trees. It stays in the text, and is read again when its values
//! are needed ([`crate::parse::read_constants`]), one tree at a time.

use settings::SqlMode;

use super::Expr;
use crate::token::Span;

/// The members of a list.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprList {
    /// Each is a tree.
    Trees(Vec<Expr>),
    /// Many constants.
    Constants(Constants),
}

/// Rows of `VALUES`.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueRows {
    /// Each value is a tree; `DEFAULT` is [`super::ExprKind::Default`] with `None`; a row may be
    /// empty.
    Trees(Vec<Vec<Expr>>),
    /// Many rows of equal width, of constants and `DEFAULT`.
    Constants {
        /// The values, row after row.
        values: Constants,
        /// Values of a row; at least one.
        width: u32,
    },
}

/// Constants that were left in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constants {
    /// From the first to the last, without the parentheses around all of them.
    pub span: Span,
    /// How many there are.
    pub count: u32,
    /// How their text is read.
    pub mode: SqlMode,
    /// A digest of the text: lists are equal if their texts are.
    pub digest: u64,
}
