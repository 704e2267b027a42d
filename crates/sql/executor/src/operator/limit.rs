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
    /// How many to leave out before.
    pub(crate) offset: u64,
}

impl LimitCounts {
    /// The numbers that a limit's expressions have in this execution.
    pub(crate) fn of(plan: &Limit, cx: &Context<'_>) -> Outcome<Self> {
        let count = number(plan.count.as_ref(), u64::MAX, cx)?;
        let offset = number(plan.offset.as_ref(), 0, cx)?;
        Ok(Self { count, offset })
    }

    /// How many rows of the input are looked at.
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
        // Parameters may be anything. A negative number is a very large one, as in MariaDB; no
        // number is none.
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
    /// What is left to leave out and to give; `None` before the first row.
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
