//! [`Members`]: answers `IN`, `ANY` and `ALL` in place of a subquery's rows.
//!
//! `= ANY` and `<> ALL` look up a key of one or several columns. Any other operator of one column
//! compares with the least and the greatest value. A comparison with NULL is never certain. For one
//! column it suffices to know whether there is a NULL. A row of several columns with a NULL is kept
//! and compared if no key was found. All other rows are kept too, for left sides with a NULL. Equal
//! rows are kept once.

use stdx::{ChunkedVec, KeyTable};
use value::{Value, ValueRef};

use crate::tree::Class;

/// What is kept of a subquery's rows to answer a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The kind.
    pub kind: LookupKind,
    /// The class in which each column is compared.
    pub classes: Box<[Class]>,
}

/// How a comparison with all rows of a subquery is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupKind {
    /// `= ANY`, `<> ALL`: the keys of the rows.
    Keys,
    /// Any other operator of one column: the least and the greatest value.
    Extremes,
}

/// Answers a comparison with all rows of a subquery.
#[derive(Debug, Default)]
pub struct Members {
    /// The rows' keys in the classes of the comparison.
    pub(crate) keys: KeyTable,
    /// For several columns: the kept rows with a NULL.
    pub(crate) partial: ChunkedVec<u32>,
    /// The least and the greatest value that is not NULL.
    pub(crate) extremes: Option<(Value, Value)>,
    /// For one column: one of the values is NULL.
    pub(crate) has_null: bool,
}

impl Members {
    /// True if there was no row.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.extremes.is_none() && !self.has_null
    }

    /// Bytes of memory in use, without the kept rows.
    pub fn memory_bytes(&self) -> usize {
        let extremes = self.extremes.iter();
        self.keys.memory_bytes()
            + self.partial.memory_bytes()
            + extremes
                .map(|(a, b)| bytes_of(a) + bytes_of(b))
                .sum::<usize>()
    }

    /// The kept rows with a NULL.
    pub(crate) fn partial(&self) -> &ChunkedVec<u32> {
        &self.partial
    }

    /// The least and the greatest value.
    pub(crate) fn extremes(&self) -> Option<(ValueRef<'_>, ValueRef<'_>)> {
        let extremes = self.extremes.as_ref();
        extremes.map(|(least, greatest)| (least.as_ref(), greatest.as_ref()))
    }

    /// True if one of the values of the only column is NULL.
    pub(crate) fn has_null(&self) -> bool {
        self.has_null
    }
}

fn bytes_of(value: &Value) -> usize {
    let text = match value {
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Value>() + text
}
