//! Work that a store does in place of the caller: conditions, a limit, groups.
//!
//! A planner makes an [`Offer`] of what it knows before values are known. The table answers what it
//! will do (`Table::take`). The scan is then opened with exactly that ([`Pushed`]), and the caller
//! does the rest. A store may answer otherwise only for another version of the definition.
//!
//! A store in this process takes nothing: its rows are near, and the caller tests them as they are
//! read. Refused: to offer conditions as text or as a tree of SQL's functions. Each store would
//! have to know what SQL means by each of them. Ranges of a column mean the same everywhere.

use std::rc::Rc;
use std::sync::Arc;

use format::row::RowLayout;

use crate::KeyRange;

/// A condition on the columns of a row. `T` is the test of a column: nothing in an offer, ranges
/// when the scan starts.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition<T> {
    /// All of these hold.
    All(Vec<Condition<T>>),
    /// One of these holds.
    Any(Vec<Condition<T>>),
    /// The test of a column holds.
    Column {
        /// Position in the definition's columns.
        column: usize,
        /// What is tested.
        test: T,
    },
}

/// The ranges of a column of which one has the value. They are ascending and disjoint. Values are
/// of the column's type, and compare as in an index on the whole column.
pub type ColumnRanges = Vec<KeyRange>;

impl<T> Condition<T> {
    /// The same condition with other tests, made from these.
    ///
    /// # Errors
    /// The first of `make`.
    pub fn try_map<'c, U, E>(
        &'c self,
        make: &mut impl FnMut(&'c T) -> Result<U, E>,
    ) -> Result<Condition<U>, E> {
        let mut mapped = |list: &'c [Self]| -> Result<Vec<_>, E> {
            list.iter().map(|it| it.try_map(make)).collect()
        };
        Ok(match self {
            Self::All(list) => Condition::All(mapped(list)?),
            Self::Any(list) => Condition::Any(mapped(list)?),
            Self::Column { column, test } => Condition::Column {
                column: *column,
                test: make(test)?,
            },
        })
    }

    /// The condition without what is tested.
    pub fn shape(&self) -> Condition<()> {
        let shaped = self.try_map(&mut |_| Ok::<_, std::convert::Infallible>(()));
        shaped.unwrap_or_else(|never| match never {})
    }
}

/// What a caller offers to leave to the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Each of these must hold for a row.
    pub conditions: Vec<Condition<()>>,
    /// Only the first rows of the scan are wanted, in its order.
    pub is_limited: bool,
    /// Only groups of the rows are wanted. All conditions are among those offered.
    pub grouping: Option<Rc<Grouping>>,
}

/// What the store takes of an offer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// For each condition, whether rows for which it is not true are left out.
    pub conditions: Vec<bool>,
    /// No more rows come than are wanted.
    pub limit: bool,
    /// Groups come in place of rows, if the store takes all conditions.
    pub grouping: bool,
}

/// What a scan does in place of its caller: what was taken of an offer, with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Pushed {
    /// The conditions that were taken.
    pub conditions: Vec<Condition<ColumnRanges>>,
    /// The most rows after each [`Cursor::seek`](crate::Cursor::seek).
    pub limit: Option<u64>,
    /// The groups. They have no keys that name rows.
    pub grouping: Option<Rc<Grouping>>,
}

/// Groups of the rows of all ranges that are sought.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// Columns whose values are equal within a group. Without any, all rows are one group, which
    /// exists even if there is no row.
    pub keys: Vec<usize>,
    /// What is computed of each group.
    pub aggregates: Vec<Aggregate>,
    /// How a group is encoded: a value of each key, then each aggregate.
    pub layout: Arc<RowLayout>,
}

/// A value of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// How many rows there are.
    CountRows,
    /// How many rows have a value in the column.
    Count(usize),
    /// The sum of the column's values; NULL if there is none.
    Sum(usize),
    /// The least value; NULL if there is none.
    Min(usize),
    /// The greatest value; NULL if there is none.
    Max(usize),
}
