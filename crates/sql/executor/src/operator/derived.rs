//! A derived table: the rows of a query, computed into a slot.
//!
//! Rows pass through one at a time, or are kept once, so that the inner side of a join can read
//! them many times. A query that reads the row of the left side runs for each of them.

use std::rc::Rc;

use expression::Share;
use planner::{Derived, DerivedRun, Query};

use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::keep;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct DerivedOperator {
    root: Box<dyn Operator>,
    query: Rc<Query>,
    plan: Rc<Derived>,
    dependents: Dependents,
    holds_row: bool,
    /// Rows in the slot belong to this run.
    is_started: bool,
    /// All rows are kept.
    is_complete: bool,
    /// The next kept row.
    at: usize,
    share: Share,
}

impl DerivedOperator {
    pub(crate) fn new(root: Box<dyn Operator>, query: Rc<Query>, plan: Rc<Derived>) -> Self {
        let dependents = Dependents::new(&query.dependent);
        Self {
            root,
            query,
            plan,
            dependents,
            holds_row: false,
            is_started: false,
            is_complete: false,
            at: 0,
            share: Share::default(),
        }
    }

    /// Computes the query's next row into the slot, after those there.
    fn pull(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        if !self.holds_row {
            if !self.root.next(cx)? {
                return Ok(false);
            }
            self.holds_row = true;
        }
        self.dependents.run(cx)?;
        self.holds_row = false;
        if self.plan.run != DerivedRun::Kept {
            cx.frame.rows_mut(self.plan.slot).clear();
        }
        keep::push_row(cx, self.plan.slot, &self.query.output)?;
        Ok(true)
    }

    fn next_kept(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        if !self.is_started {
            cx.frame.rows_mut(self.plan.slot).clear();
            self.is_started = true;
        }
        while !self.is_complete {
            if self.pull(cx)? {
                let bytes = cx.frame.rows(self.plan.slot).memory_bytes();
                cx.keep(&mut self.share, bytes)?;
            } else {
                self.is_complete = true;
            }
        }
        if self.at >= cx.frame.rows(self.plan.slot).len() {
            return Ok(false);
        }
        cx.charge(1)?;
        cx.frame.slots[self.plan.slot].row = Some(self.at);
        self.at += 1;
        Ok(true)
    }
}

impl Operator for DerivedOperator {
    fn rewind(&mut self, how: Rewind) {
        self.at = 0;
        let how = match (how, self.plan.run) {
            (Rewind::Again, DerivedRun::Kept) if self.is_complete => return,
            (Rewind::Again, DerivedRun::EachRow) => Rewind::Outer,
            _ => how,
        };
        self.root.rewind(how);
        self.dependents.rewind();
        self.holds_row = false;
        self.is_started = false;
        self.is_complete = false;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        if self.plan.run == DerivedRun::Kept {
            return self.next_kept(cx);
        }
        if !self.pull(cx)? {
            return Ok(false);
        }
        cx.frame.slots[self.plan.slot].row = Some(0);
        Ok(true)
    }
}
