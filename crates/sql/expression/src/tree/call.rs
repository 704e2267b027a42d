//! [`Call`]: a call of the function library.

use builtin::Function;
use function::Bound;
use value::ColumnType;

use crate::tree::Expression;

/// A call of the function library.
#[derive(Debug, Clone)]
pub struct Call {
    /// The function, bound to the types of its arguments.
    pub bound: Bound,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// Which call of the statement it is, if two evaluations may differ; otherwise 0.
    pub occurrence: usize,
}

/// Calls of one function with equal arguments, results and kinds of values are equal. Two calls of
/// RAND() are not.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        let of = |call: &Self| -> (Function, ColumnType, bool) {
            let bound = &call.bound;
            (
                bound.function(),
                bound.column.clone(),
                bound.gives_moments(),
            )
        };
        let is_same = self.occurrence == other.occurrence && of(self) == of(other);
        is_same && self.arguments == other.arguments
    }
}

impl Call {
    /// True if two evaluations over the same rows may differ.
    pub fn is_volatile(&self) -> bool {
        self.bound.function().builtin().is_volatile
    }
}
