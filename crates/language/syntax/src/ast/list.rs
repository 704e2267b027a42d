//! Lists of expressions, of which some are very long: the members of an `IN`, the rows of `VALUES`.
//!
//! A tree of an expression takes a hundred bytes and more, its text two or three. So a long list of
//! constants alone is not kept as trees: it stays in the text, and is read again where its values
//! are wanted ([`crate::parse::read_constants`]), one tree at a time.

use super::Expr;
use crate::token::{Mode, Span};

/// Members of a list.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprList {
    /// Each is a tree.
    Trees(Vec<Expr>),
    /// Constants, and many.
    Constants(Constants),
}

/// Rows of `VALUES`.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueRows {
    /// Each value is a tree; `DEFAULT` is [`super::ExprKind::Default`] of none; a row may be empty.
    Trees(Vec<Vec<Expr>>),
    /// Rows of one width, of constants and `DEFAULT`, and many.
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
    pub mode: Mode,
    /// A digest of the text: lists compare by what they say.
    pub digest: u64,
}
