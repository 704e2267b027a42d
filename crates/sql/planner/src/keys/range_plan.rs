//! [`RangePlan`]: one range of an index, before values are known.

use expression::Expression;

/// One range of an index.
#[derive(Debug, Clone)]
pub struct RangePlan {
    /// The first parts equal these.
    pub equal: Vec<KeyEqual>,
    /// The part after them is at least (or above) this.
    pub lower: Option<Box<(Expression, Edge)>>,
    /// The part after them is at most (or below) this.
    pub upper: Option<Box<(Expression, Edge)>>,
}

/// The one value of a key part.
#[derive(Debug, Clone)]
pub struct KeyEqual {
    /// The value.
    pub value: Expression,
    /// `<=>` or `IS NULL`: NULL matches NULL. Otherwise NULL matches nothing.
    pub null_safe: bool,
}

/// Whether the end of a range belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It does.
    Inclusive,
    /// It does not.
    Exclusive,
    /// Not a value but a LIKE pattern: all strings with its prefix up to the first wildcard.
    Prefix,
    /// The value is ignored: all but NULL. Only as a lower end.
    NotNull,
}
