//! `UNION`: one query behind the other, converted to common types.

use std::rc::Rc;

use expression::{append_group_key, convert_value};
use planner::{Query, Union};

use super::distinct::Seen;
use crate::context::{Context, Dependents};
use crate::keep;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct UnionOperator {
    inputs: Vec<Input>,
    plan: Rc<Union>,
    at: usize,
    holds_row: bool,
    seen: Seen,
}

#[derive(Debug)]
struct Input {
    root: Box<dyn Operator>,
    query: Rc<Query>,
    dependents: Dependents,
}

impl UnionOperator {
    pub(crate) fn new(inputs: Vec<(Box<dyn Operator>, Rc<Query>)>, plan: Rc<Union>) -> Self {
        let inputs = inputs
            .into_iter()
            .map(|(root, query)| {
                let dependents = Dependents::new(&query.dependent);
                Input {
                    root,
                    query,
                    dependents,
                }
            })
            .collect();
        Self {
            inputs,
            plan,
            at: 0,
            holds_row: false,
            seen: Seen::new(),
        }
    }

    /// Computes the row into the slot; false if it was there before.
    fn take_row(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let slot = self.plan.slot;
        let query = &self.inputs[self.at].query;
        cx.frame.rows_mut(slot).clear();
        keep::push_row(cx, slot, &query.output)?;
        self.seen.key.clear();
        for (column, (from, to)) in query.output.iter().zip(&self.plan.types).enumerate() {
            if from.column_type != *to {
                let value = cx.frame.rows(slot).get(0, column);
                let converted = convert_value(value, &from.column_type, to, cx.statement)?;
                cx.frame.rows_mut(slot).set(0, column, converted.as_ref());
            }
            append_group_key(cx.frame.rows(slot).get(0, column), to, &mut self.seen.key);
        }
        // A plain UNION leaves out what any query before it gave; UNION ALL need not remember
        // unless a later one asks.
        let later_distinct = self.plan.distinct[self.at..]
            .iter()
            .any(|distinct| *distinct);
        if !later_distinct {
            return Ok(true);
        }
        let is_new = self.seen.insert();
        cx.check_kept(self.seen.memory_bytes())?;
        Ok(is_new || !self.plan.distinct[self.at])
    }
}

impl Operator for UnionOperator {
    fn rewind(&mut self, how: Rewind) {
        for input in &mut self.inputs {
            input.root.rewind(how);
            input.dependents.rewind();
        }
        self.at = 0;
        self.holds_row = false;
        self.seen.clear();
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            if !self.holds_row {
                if !input.root.next(cx)? {
                    self.at += 1;
                    continue;
                }
                self.holds_row = true;
            }
            input.dependents.run(cx)?;
            self.holds_row = false;
            if self.take_row(cx)? {
                cx.frame.slots[self.plan.slot].row = Some(0);
                return Ok(true);
            }
        }
        Ok(false)
    }
}
