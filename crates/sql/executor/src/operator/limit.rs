//! `LIMIT` and `OFFSET`.

use std::rc::Rc;

use expression::Expression;
use planner::Limit;
use value::number::Integer;
use value::{ValueRef, Warnings};

use crate::context::Context;
use crate::{Operator, Outcome, Rewind};

/// A limit's numbers, once they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitCounts {
    /// How many rows.
    pub(crate) count: u64,
    /// How many rows to skip first.
    pub(crate) offset: u64,
}

impl LimitCounts {
    /// Computes the numbers of the limit for this execution.
    pub(crate) fn of(plan: &Limit, cx: &Context<'_>) -> Outcome<Self> {
        let count = number(plan.count.as_ref(), u64::MAX, cx)?;
        let offset = number(plan.offset.as_ref(), 0, cx)?;
        Ok(Self { count, offset })
    }

    /// How many rows of the input are read.
    pub(crate) fn total(self) -> u64 {
        self.count.saturating_add(self.offset)
    }
}

fn number(expression: Option<&Expression>, absent: u64, cx: &Context<'_>) -> Outcome<u64> {
    let Some(expression) = expression else {
        return Ok(absent);
    };
    Ok(match cx.evaluate(expression)? {
        ValueRef::UInt(number) => number,
        // Parameters may have any value. A negative number is a very large one, as in MariaDB; a
        // value that is no number is 0.
        value => {
            let number = value.to_integer(&mut Warnings::new(0));
            number.map_or(0, Integer::bits)
        }
    })
}

#[derive(Debug)]
pub(crate) struct LimitOperator {
    input: Box<dyn Operator>,
    plan: Rc<Limit>,
    /// How many rows are left to skip and to return; `None` before the first row.
    left: Option<LimitCounts>,
    /// Rows of the input so far.
    found_rows: u64,
}

impl LimitOperator {
    pub(crate) fn new(input: Box<dyn Operator>, plan: Rc<Limit>) -> Self {
        Self {
            input,
            plan,
            left: None,
            found_rows: 0,
        }
    }
}

impl Operator for LimitOperator {
    fn rewind(&mut self, how: Rewind) {
        self.input.rewind(how);
        self.left = None;
        self.found_rows = 0;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        if self.left.is_none() {
            self.left = Some(LimitCounts::of(&self.plan, cx)?);
        }
        let left = self.left.as_mut().expect("set above");
        while left.count > 0 || self.plan.counts_all {
            if !self.input.next(cx)? {
                break;
            }
            self.found_rows += 1;
            if left.offset > 0 {
                left.offset -= 1;
            } else if left.count > 0 {
                left.count -= 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn found_rows(&self) -> Option<u64> {
        self.plan.counts_all.then_some(self.found_rows)
    }
}
