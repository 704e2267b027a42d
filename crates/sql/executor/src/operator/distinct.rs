//! Returns each row once.
//!
//! Rows are computed into the slot. A set of their keys (equal values have equal keys) shows which
//! were returned before.

use std::rc::Rc;

use planner::Computed;

use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::keep;
use crate::keys::Keys;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct DistinctOperator {
    input: Box<dyn Operator>,
    plan: Rc<Computed>,
    dependents: Dependents,
    seen: Keys,
    holds_row: bool,
}

impl DistinctOperator {
    pub(crate) fn new(input: Box<dyn Operator>, plan: Rc<Computed>) -> Self {
        let dependents = Dependents::new(&plan.dependent);
        Self {
            input,
            plan,
            dependents,
            seen: Keys::default(),
            holds_row: false,
        }
    }
}

impl Operator for DistinctOperator {
    fn rewind(&mut self, how: Rewind) {
        self.input.rewind(how);
        self.dependents.rewind();
        self.seen.clear();
        self.holds_row = false;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            if !self.holds_row {
                if !self.input.next(cx)? {
                    return Ok(false);
                }
                self.holds_row = true;
            }
            self.dependents.run(cx)?;
            self.holds_row = false;
            cx.frame.rows_mut(self.plan.slot).clear();
            keep::push_row(cx, self.plan.slot, &self.plan.kept)?;
            self.seen.begin();
            let rows = cx.frame.rows(self.plan.slot);
            for (column, kept) in self.plan.kept.iter().take(self.plan.key_count).enumerate() {
                let value = rows.get(0, column);
                self.seen.push(value, &kept.column_type, cx)?;
            }
            let (_, is_new) = self.seen.insert(cx)?;
            if is_new {
                cx.frame.slots[self.plan.slot].row = Some(0);
                return Ok(true);
            }
        }
    }
}
