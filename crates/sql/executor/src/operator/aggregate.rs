//! `GROUP BY` and aggregates.
//!
//! There are two ways. *Hashed*: a table from the groups' keys to their accumulators. At the end
//! the groups are finished and returned one by one, in the order of their first rows. *Ordered*:
//! rows with equal keys come side by side. Each change of the keys closes the groups from the first
//! changed key on, as `WITH ROLLUP` needs. Without keys there is one group, even without rows.

use std::rc::Rc;

use expression::{AggregateCall, Rows, Share};
use planner::Aggregate;
use stdx::ChunkedVec;
use value::ValueRef;

use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::keep;
use crate::kept_slots::KeptSlots;
use crate::keys::Keys;
use crate::{Operator, Outcome, Rewind};

mod accumulator;
mod group_concat;

use accumulator::Accumulator;

#[derive(Debug)]
pub(crate) struct AggregateOperator {
    input: Box<dyn Operator>,
    plan: Rc<Aggregate>,
    dependents: Dependents,
    state: State,
    holds_row: bool,
    /// The groups by their keys; hashed only.
    groups: Keys,
    /// The groups' keys: of all groups when hashed, of the open one when ordered.
    keys: Rows,
    /// The row's keys; scratch.
    row_keys: Rows,
    /// Accumulators, `plan.calls.len()` a group; ordered: a level of the rollup is a group, the
    /// one with all keys first.
    accumulators: ChunkedVec<Accumulator>,
    /// The first row of each group, where subqueries read it.
    first_rows: KeptSlots,
    /// Ordered: a group is open.
    is_open: bool,
    /// Memory of the values that accumulators keep.
    kept_bytes: usize,
    share: Share,
    /// The next row of the slot to return.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Reading,
    /// The input has ended; this hashed group is returned next.
    Giving(usize),
    /// The slot's rows are the last.
    Ended,
}

impl AggregateOperator {
    pub(crate) fn new(input: Box<dyn Operator>, plan: Rc<Aggregate>) -> Self {
        Self {
            input,
            dependents: Dependents::new(&plan.dependent),
            state: State::Start,
            holds_row: false,
            groups: Keys::default(),
            keys: Rows::new(plan.keys.len()),
            row_keys: Rows::new(plan.keys.len()),
            accumulators: ChunkedVec::new(),
            first_rows: KeptSlots::new(&plan.kept_slots),
            is_open: false,
            kept_bytes: 0,
            share: Share::default(),
            at: 0,
            plan,
        }
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.groups.clear();
        self.keys.clear();
        self.accumulators.clear();
        self.first_rows.start(cx.frame);
        self.is_open = false;
        self.kept_bytes = 0;
        self.share.clear();
        self.at = 0;
        cx.frame.rows_mut(self.plan.slot).clear();
        if self.plan.keys.is_empty() {
            self.open_group();
            self.is_open = true;
        }
        self.state = State::Reading;
    }

    fn open_group(&mut self) {
        self.accumulators
            .extend(self.plan.calls.iter().map(Accumulator::new));
    }

    /// Adds the input's row to its group.
    fn take_row(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        if self.plan.keys.is_empty() {
            if self.first_rows.is_empty() {
                self.first_rows.keep(cx.frame);
            }
            return self.accumulate(0, cx);
        }
        self.row_keys.clear();
        keep::push_values(cx, &mut self.row_keys, &self.plan.keys)?;
        if self.plan.is_ordered {
            self.take_ordered(cx)
        } else {
            self.take_hashed(cx)
        }
    }

    fn take_hashed(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.groups.begin();
        for (value, key) in self.row_keys.row(0).zip(&self.plan.keys) {
            self.groups.push(value, &key.column_type, cx)?;
        }
        let (group, is_new) = self.groups.insert(cx)?;
        if is_new {
            self.keys.push_row_of(&self.row_keys, 0);
            self.open_group();
            self.first_rows.keep(cx.frame);
            self.count_kept(cx)?;
        }
        self.accumulate(group, cx)
    }

    fn take_ordered(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        if self.is_open {
            if let Some(changed) = self.first_change(cx)? {
                self.close_levels(changed, cx)?;
                self.keys.clear();
                self.keys.push_row_of(&self.row_keys, 0);
            }
        } else {
            self.is_open = true;
            self.keys.push_row_of(&self.row_keys, 0);
            for _ in 0..self.level_count() {
                self.open_group();
            }
        }
        for level in 0..self.level_count() {
            self.accumulate(level, cx)?;
        }
        Ok(())
    }

    /// The first key in which the row differs from the open group.
    fn first_change(&self, cx: &Context<'_>) -> Outcome<Option<usize>> {
        for (key, expression) in self.plan.keys.iter().enumerate() {
            let (old, new) = (self.keys.get(0, key), self.row_keys.get(0, key));
            let evaluator = cx.evaluator();
            if !evaluator
                .compare_values(old, new, &expression.column_type)?
                .is_eq()
            {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// How many groups are open at a time: one for each rollup level and one for all keys.
    fn level_count(&self) -> usize {
        if self.plan.with_rollup {
            self.plan.keys.len() + 1
        } else {
            1
        }
    }

    /// Finishes the groups that end: all that contain the key `changed`.
    fn close_levels(&mut self, changed: usize, cx: &mut Context<'_>) -> Outcome<()> {
        let closing = if self.plan.with_rollup {
            self.plan.keys.len() - changed
        } else {
            1
        };
        for level in 0..closing {
            self.give_group(level, self.plan.keys.len() - level, 0, cx)?;
            let call_count = self.plan.calls.len();
            for (call, place) in self.plan.calls.iter().zip(level * call_count..) {
                self.accumulators[place] = Accumulator::new(call);
            }
        }
        Ok(())
    }

    /// Computes the row of a group into the slot: its first `key_count` keys, NULL for the others,
    /// and the results.
    fn give_group(
        &mut self,
        group: usize,
        key_count: usize,
        key_row: usize,
        cx: &mut Context<'_>,
    ) -> Outcome<()> {
        let rows = cx.frame.rows_mut(self.plan.slot);
        for key in 0..self.plan.keys.len() {
            let value = if key < key_count {
                self.keys.get(key_row, key)
            } else {
                ValueRef::Null
            };
            rows.push(value);
        }
        let call_count = self.plan.calls.len();
        for (call, place) in self.plan.calls.iter().zip(group * call_count..) {
            let accumulator = &mut self.accumulators[place];
            let result = accumulator.finish(call, cx.statement, &mut self.kept_bytes)?;
            cx.frame.rows_mut(self.plan.slot).push(result.as_ref());
        }
        Ok(())
    }

    fn accumulate(&mut self, group: usize, cx: &Context<'_>) -> Outcome<()> {
        let call_count = self.plan.calls.len();
        let before = self.kept_bytes;
        for (call, place) in self.plan.calls.iter().zip(group * call_count..) {
            self.accumulators[place].add(call, cx, &mut self.kept_bytes)?;
        }
        if self.kept_bytes != before {
            self.count_kept(cx)?;
        }
        Ok(())
    }

    /// Reports how much is kept of all groups.
    fn count_kept(&mut self, cx: &Context<'_>) -> Outcome<()> {
        let groups = self.keys.memory_bytes() + self.accumulators.memory_bytes();
        let first_rows = self.first_rows.memory_bytes();
        cx.keep(&mut self.share, groups + first_rows + self.kept_bytes)
    }

    /// Finishes the groups that are open at the end of the input; hashed ones are left.
    fn finish(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.state = State::Ended;
        self.row_keys.clear();
        if self.plan.keys.is_empty() {
            let first_row = (!self.first_rows.is_empty()).then_some(0);
            self.first_rows.set(cx.frame, first_row);
            return self.give_group(0, 0, 0, cx);
        }
        if !self.plan.is_ordered {
            self.state = State::Giving(0);
            return Ok(());
        }
        if self.is_open {
            self.close_levels(0, cx)?;
            if self.plan.with_rollup {
                self.give_group(self.plan.keys.len(), 0, 0, cx)?;
            }
        }
        Ok(())
    }

    /// Moves to the next finished group, if there is one in the slot.
    fn give(&mut self, cx: &mut Context<'_>) -> bool {
        let slot = &mut cx.frame.slots[self.plan.slot];
        let expression::SlotContent::Rows(rows) = &slot.content else {
            unreachable!("groups are computed rows")
        };
        if self.at == rows.len() {
            return false;
        }
        slot.row = Some(self.at);
        self.at += 1;
        true
    }
}

impl Operator for AggregateOperator {
    fn rewind(&mut self, how: Rewind) {
        self.input.rewind(how);
        self.dependents.rewind();
        self.state = State::Start;
        self.holds_row = false;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        if self.state == State::Start {
            self.start(cx);
        }
        loop {
            if self.give(cx) {
                return Ok(true);
            }
            if self.state == State::Ended {
                return Ok(false);
            }
            if self.at > 0 {
                cx.frame.rows_mut(self.plan.slot).clear();
                self.at = 0;
            }
            match self.state {
                State::Giving(group) if group < self.groups.len() => {
                    cx.charge(1)?;
                    self.state = State::Giving(group + 1);
                    self.first_rows.set(cx.frame, Some(group));
                    self.give_group(group, self.plan.keys.len(), group, cx)?;
                    continue;
                }
                State::Giving(_) => {
                    self.state = State::Ended;
                    return Ok(false);
                }
                State::Start | State::Reading | State::Ended => {}
            }
            if !self.holds_row {
                if !self.input.next(cx)? {
                    self.finish(cx)?;
                    continue;
                }
                self.holds_row = true;
            }
            self.dependents.run(cx)?;
            self.holds_row = false;
            self.take_row(cx)?;
            cx.frame.recycle();
        }
    }
}

/// True if no argument of the call is NULL; a call skips rows with a NULL argument.
fn arguments_are_there(call: &AggregateCall, cx: &Context<'_>) -> Outcome<bool> {
    for argument in &call.arguments {
        if cx.evaluate(argument)?.is_null() {
            return Ok(false);
        }
    }
    Ok(true)
}
