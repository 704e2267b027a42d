//! Drops rows for which a predicate is not true.

use std::rc::Rc;

use planner::Filter;

use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::operator::{Collector, Confirmed};
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct FilterOperator {
    input: Box<dyn Operator>,
    plan: Rc<Filter>,
    dependents: Dependents,
    /// The input's row is not tested yet.
    holds_row: bool,
}

impl FilterOperator {
    pub(crate) fn new(mut input: Box<dyn Operator>, plan: Rc<Filter>) -> Self {
        input.expect_tests();
        let dependents = Dependents::new(&plan.dependent);
        Self {
            input,
            plan,
            dependents,
            holds_row: false,
        }
    }

    /// Tests the input's row. Returns false if it does not match.
    fn test(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            self.dependents.run(cx)?;
            let is_true = cx.is_true(&self.plan.predicate)?;
            cx.frame.recycle();
            if !is_true {
                self.input.release(cx);
                return Ok(false);
            }
            match self.input.confirm(cx)? {
                Confirmed::AsTested => return Ok(true),
                Confirmed::Newer => {}
                Confirmed::Gone => return Ok(false),
            }
        }
    }
}

impl Operator for FilterOperator {
    fn rewind(&mut self, how: Rewind) {
        self.input.rewind(how);
        self.dependents.rewind();
        self.holds_row = false;
    }

    fn collector(&mut self) -> Option<&mut dyn Collector> {
        self.input.collector()
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            if !self.holds_row {
                if !self.input.next(cx)? {
                    return Ok(false);
                }
                self.holds_row = true;
            }
            let is_match = self.test(cx)?;
            self.holds_row = false;
            if is_match {
                return Ok(true);
            }
        }
    }
}
