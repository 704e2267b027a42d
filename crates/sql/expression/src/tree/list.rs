//! [`ListMembers`]: the members of a list, each an expression or all constants.

use std::rc::Rc;

use crate::constants::Constants;
use crate::tree::Expression;

/// The members of a list.
#[derive(Debug, Clone, PartialEq)]
pub enum ListMembers {
    /// Any expressions.
    Expressions(Vec<Expression>),
    /// Many constants. Clones of the list share them.
    Constants(Rc<Constants>),
}

impl ListMembers {
    /// How many members there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Expressions(list) => list.len(),
            Self::Constants(list) => list.len(),
        }
    }

    /// True if there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The members that are expressions, with parts of their own.
    pub fn expressions(&self) -> &[Expression] {
        match self {
            Self::Expressions(list) => list,
            Self::Constants(_) => &[],
        }
    }
}

impl Constants {
    /// The expression of a value that is not `DEFAULT`.
    pub fn expression(&self, place: usize) -> Expression {
        let (value, column_type) = self.value(place);
        Expression::constant(value.to_value(), column_type.clone())
    }
}
