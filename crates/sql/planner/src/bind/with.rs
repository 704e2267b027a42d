//! The queries of WITH that are in scope.

use syntax::ast;

use crate::plan::OutputColumn;

/// A query named by WITH.
#[derive(Debug, Clone)]
pub(crate) struct CommonTable {
    pub(crate) table: ast::CommonTable,
    /// It may read itself.
    pub(crate) is_recursive: bool,
}

/// A recursive table while its queries are being bound.
#[derive(Debug)]
pub(crate) struct Recursion {
    pub(crate) name: String,
    /// The slot of its latest rows, and its columns; `None` while the first rows are bound.
    pub(crate) open: Option<(usize, Vec<OutputColumn>)>,
    /// The current query reads it.
    pub(crate) is_read: bool,
}

impl Recursion {
    /// While its first rows are bound.
    pub(crate) fn closed(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            open: None,
            is_read: false,
        }
    }
}
