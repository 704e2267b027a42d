//! `WITH RECURSIVE`: rows computed from rows, step by step.
//!
//! The first queries return the first rows. Each step runs the others over the rows of the former
//! step, which stand in a slot of their own. A step without rows is the last. A row is returned as
//! soon as it is computed.

use std::rc::Rc;

use errcode::{ClientError, ER_QUERY_RESULT_INCOMPLETE};
use expression::{Rows, Share, failure};
use planner::{Latest, Query, Recursive};
use value::Place;

use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::keep;
use crate::keys::Keys;
use crate::{Operator, Outcome, Rewind};

/// After this many steps a recursion ends with a warning (MariaDB's `max_recursive_iterations`).
const STEP_COUNT_MAX: u64 = 1000;

#[derive(Debug)]
pub(crate) struct RecursiveOperator {
    inputs: Vec<Input>,
    plan: Rc<Recursive>,
    /// The input that is being read.
    at: usize,
    holds_row: bool,
    seen: Keys,
    /// Rows of the current step.
    made: Rows,
    share: Share,
    /// Rows returned so far, for messages.
    row_count: u64,
    step_count: u64,
}

#[derive(Debug)]
struct Input {
    root: Box<dyn Operator>,
    query: Rc<Query>,
    dependents: Dependents,
}

impl RecursiveOperator {
    pub(crate) fn new(inputs: Vec<(Box<dyn Operator>, Rc<Query>)>, plan: Rc<Recursive>) -> Self {
        let inputs = inputs
            .into_iter()
            .map(|(root, query)| Input {
                dependents: Dependents::new(&query.dependent),
                root,
                query,
            })
            .collect();
        Self {
            inputs,
            made: Rows::new(plan.columns.len()),
            share: Share::default(),
            plan,
            at: 0,
            holds_row: false,
            seen: Keys::default(),
            row_count: 0,
            step_count: 0,
        }
    }

    /// Computes the row into the slot and keeps it for the next step. Returns false if it is a
    /// duplicate.
    fn take_row(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let slot = self.plan.slot;
        let query = &self.inputs[self.at].query;
        cx.frame.rows_mut(slot).clear();
        keep::push_row(cx, slot, &query.output)?;
        self.row_count += 1;
        self.seen.begin();
        let mut rules = cx.statement.store_rules();
        rules.strict = cx.statement.options.sql_mode.is_strict();
        for (column, (from, (name, to))) in query.output.iter().zip(&self.plan.columns).enumerate()
        {
            let value = cx.frame.rows(slot).get(0, column);
            if from.column_type != *to && !value.is_null() {
                let place = Place {
                    database: "",
                    table: &self.plan.name,
                    column: name,
                    row: self.row_count,
                };
                let mut warnings = cx.statement.diagnostics.warnings();
                let stored =
                    value::store_value(value, &from.column_type, to, place, &rules, &mut warnings)
                        .map_err(failure)?;
                drop(warnings);
                cx.frame.rows_mut(slot).set(0, column, stored.as_ref());
            }
            let value = cx.frame.rows(slot).get(0, column);
            if self.plan.is_distinct {
                self.seen.push(value, to, cx)?;
            }
        }
        if self.plan.is_distinct {
            let (_, is_new) = self.seen.insert(cx)?;
            if !is_new {
                return Ok(false);
            }
        }
        self.made.push_row_of(cx.frame.rows(slot), 0);
        let latest = cx.frame.rows(self.plan.latest_slot).memory_bytes();
        cx.keep(&mut self.share, self.made.memory_bytes() + latest)?;
        Ok(true)
    }

    /// Makes the rows of this step the latest. Returns false if there are none, or too many steps.
    fn step(&mut self, cx: &mut Context<'_>) -> bool {
        if self.made.is_empty() {
            return false;
        }
        if self.step_count == STEP_COUNT_MAX {
            let what = "max_recursive_iterations =";
            let warning = ClientError::new(ER_QUERY_RESULT_INCOMPLETE, &[&what, &STEP_COUNT_MAX]);
            cx.statement.warn(warning);
            return false;
        }
        self.step_count += 1;
        let latest = cx.frame.rows_mut(self.plan.latest_slot);
        std::mem::swap(latest, &mut self.made);
        self.made.clear();
        for input in &mut self.inputs[self.plan.anchor_count..] {
            input.root.rewind(Rewind::Fresh);
            input.dependents.rewind();
        }
        self.at = self.plan.anchor_count;
        true
    }
}

impl Operator for RecursiveOperator {
    fn rewind(&mut self, how: Rewind) {
        for input in &mut self.inputs {
            input.root.rewind(how);
            input.dependents.rewind();
        }
        self.at = 0;
        self.holds_row = false;
        self.seen.clear();
        self.made.clear();
        self.share.clear();
        self.row_count = 0;
        self.step_count = 0;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            if !self.holds_row {
                let has_row = match self.inputs.get_mut(self.at) {
                    Some(input) => input.root.next(cx)?,
                    None => return Ok(false),
                };
                if !has_row {
                    self.at += 1;
                    let is_over = self.at == self.plan.anchor_count || self.at == self.inputs.len();
                    if is_over && !self.step(cx) {
                        self.at = self.inputs.len();
                    }
                    continue;
                }
                self.holds_row = true;
            }
            self.inputs[self.at].dependents.run(cx)?;
            self.holds_row = false;
            if self.take_row(cx)? {
                cx.frame.slots[self.plan.slot].row = Some(0);
                return Ok(true);
            }
        }
    }
}

/// Reads the rows of the former step.
#[derive(Debug)]
pub(crate) struct LatestOperator {
    plan: Rc<Latest>,
    at: usize,
}

impl LatestOperator {
    pub(crate) fn new(plan: Rc<Latest>) -> Self {
        Self { plan, at: 0 }
    }
}

impl Operator for LatestOperator {
    fn rewind(&mut self, _how: Rewind) {
        self.at = 0;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let Latest { slot, latest_slot } = *self.plan;
        if self.at >= cx.frame.rows(latest_slot).len() {
            return Ok(false);
        }
        cx.charge(1)?;
        // The row is copied: joins and sorts may exchange the slot's content.
        let mut row = std::mem::take(cx.frame.rows_mut(slot));
        row.clear();
        row.push_row_of(cx.frame.rows(latest_slot), self.at);
        *cx.frame.rows_mut(slot) = row;
        cx.frame.slots[slot].row = Some(0);
        self.at += 1;
        Ok(true)
    }
}
