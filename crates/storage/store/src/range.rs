//! The part of an index that a scan reads.

use value::Value;

/// The direction of a scan in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// In the index's order.
    #[default]
    Forward,
    /// Against it.
    Backward,
}

/// One end of a range: values for the first parts of the index. A bound on fewer parts than the
/// index has stands for all keys that begin with them.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum KeyBound {
    /// From the first key, or to the last.
    #[default]
    Open,
    /// Keys that begin with these values belong to the range.
    Inclusive(Vec<Value>),
    /// Keys that begin with these values do not.
    Exclusive(Vec<Value>),
}

/// An interval of keys. Values already have the columns' types: the planner converts them, because
/// a comparison in another type cannot use the index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyRange {
    /// Lower end.
    pub lower: KeyBound,
    /// Upper end.
    pub upper: KeyBound,
}

impl KeyRange {
    /// The whole index.
    pub fn all() -> Self {
        Self::default()
    }

    /// All keys that begin with `values`.
    pub fn equal(values: Vec<Value>) -> Self {
        Self {
            lower: KeyBound::Inclusive(values.clone()),
            upper: KeyBound::Inclusive(values),
        }
    }
}
