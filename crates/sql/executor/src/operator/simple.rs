//! Operators without input: no row, and one row.

use crate::context::Context;
use crate::{Operator, Outcome, Rewind};

/// Returns no row.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Operator for Nothing {
    fn rewind(&mut self, _: Rewind) {}

    fn next(&mut self, _: &mut Context<'_>) -> Outcome<bool> {
        Ok(false)
    }
}

/// Returns one row without columns.
#[derive(Debug, Default)]
pub(crate) struct One {
    is_given: bool,
}

impl Operator for One {
    fn rewind(&mut self, _: Rewind) {
        self.is_given = false;
    }

    fn next(&mut self, _: &mut Context<'_>) -> Outcome<bool> {
        Ok(!std::mem::replace(&mut self.is_given, true))
    }
}
