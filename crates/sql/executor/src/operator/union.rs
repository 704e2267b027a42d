//! `UNION`: one query after the other, converted to common types. `EXCEPT` and `INTERSECT`: the
//! rows of one query that another does not return, or returns too.
//!
//! The latter two read their second query first and count its rows by key. The count of its key
//! decides whether a row of the first query is returned; each row updates the count.

use std::rc::Rc;

use expression::{Share, convert_value};
use planner::{Query, SetOperation, Union};
use stdx::ChunkedVec;

use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::keep;
use crate::keys::Keys;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct UnionOperator {
    inputs: Vec<Input>,
    plan: Rc<Union>,
    /// The input that is being read.
    at: usize,
    holds_row: bool,
    seen: Keys,
    /// For EXCEPT and INTERSECT: how many rows of the second query have a key, by its number.
    counts: ChunkedVec<u64>,
    share: Share,
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
            at: first_input(plan.operation),
            plan,
            holds_row: false,
            seen: Keys::default(),
            counts: ChunkedVec::new(),
            share: Share::default(),
        }
    }

    /// Computes the row into the slot. Returns false if it is a duplicate.
    fn take_row(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let slot = self.plan.slot;
        let query = &self.inputs[self.at].query;
        cx.frame.rows_mut(slot).clear();
        keep::push_row(cx, slot, &query.output)?;
        self.seen.begin();
        for (column, (from, to)) in query.output.iter().zip(&self.plan.types).enumerate() {
            if from.column_type != *to {
                let value = cx.frame.rows(slot).get(0, column);
                let converted = convert_value(value, &from.column_type, to, cx.statement)?;
                cx.frame.rows_mut(slot).set(0, column, converted.as_ref());
            }
            let value = cx.frame.rows(slot).get(0, column);
            self.seen.push(value, to, cx)?;
        }
        if self.plan.operation != SetOperation::Union {
            return self.weigh_row(cx);
        }
        // A plain UNION skips what any query before it returned. UNION ALL need not remember rows
        // unless a later query is a plain UNION.
        if !self.plan.distinct[self.at] {
            return Ok(true);
        }
        let (_, is_new) = self.seen.insert(cx)?;
        Ok(is_new)
    }

    /// Counts a row of the second query. Returns whether a row of the first is passed on.
    fn weigh_row(&mut self, cx: &Context<'_>) -> Outcome<bool> {
        if self.at == 1 {
            let (number, _) = self.counted(cx)?;
            self.counts[number] += 1;
            return Ok(false);
        }
        let is_passed = match self.plan.operation {
            SetOperation::Except { all: false } => {
                // Counted, so that it is not returned again.
                let (_, is_new) = self.counted(cx)?;
                is_new
            }
            operation => {
                let number = self.seen.find();
                let count = number.map(|number| &mut self.counts[number]);
                let has_left = count.filter(|count| **count != 0);
                match (operation, has_left) {
                    (SetOperation::Except { .. }, Some(count)) => {
                        *count -= 1;
                        false
                    }
                    (SetOperation::Except { .. }, None) => true,
                    (SetOperation::Intersect { all }, Some(count)) => {
                        *count = if all { *count - 1 } else { 0 };
                        true
                    }
                    _ => false,
                }
            }
        };
        Ok(is_passed)
    }

    /// The number of the row's key, and whether the key is new; a new key has count 0.
    fn counted(&mut self, cx: &Context<'_>) -> Outcome<(usize, bool)> {
        let (number, is_new) = self.seen.insert(cx)?;
        if is_new {
            self.counts.push(0);
            cx.keep(&mut self.share, self.counts.memory_bytes())?;
        }
        Ok((number, is_new))
    }
}

/// EXCEPT and INTERSECT read their second query first.
fn first_input(operation: SetOperation) -> usize {
    usize::from(operation != SetOperation::Union)
}

impl Operator for UnionOperator {
    fn rewind(&mut self, how: Rewind) {
        for input in &mut self.inputs {
            input.root.rewind(how);
            input.dependents.rewind();
        }
        self.at = first_input(self.plan.operation);
        self.holds_row = false;
        self.seen.clear();
        self.counts.clear();
        self.share.clear();
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            if !self.holds_row {
                if !input.root.next(cx)? {
                    self.at = match (self.plan.operation, self.at) {
                        (SetOperation::Union, at) => at + 1,
                        (_, 1) => 0,
                        _ => self.inputs.len(),
                    };
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
