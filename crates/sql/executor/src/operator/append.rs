//! The rows of one input after those of another.

use crate::context::Context;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct AppendOperator {
    inputs: Vec<Box<dyn Operator>>,
    /// The input that is being read.
    at: usize,
}

impl AppendOperator {
    pub(crate) fn new(inputs: Vec<Box<dyn Operator>>) -> Self {
        Self { inputs, at: 0 }
    }
}

impl Operator for AppendOperator {
    fn rewind(&mut self, how: Rewind) {
        for input in &mut self.inputs {
            input.rewind(how);
        }
        self.at = 0;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            if input.next(cx)? {
                return Ok(true);
            }
            self.at += 1;
        }
        Ok(false)
    }
}
