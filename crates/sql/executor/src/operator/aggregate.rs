//! `GROUP BY` and aggregates.
//!
//! Two ways. *Hashed*: a table from the groups' keys to their accumulators, given at the end in
//! the order in which groups were first seen. *Ordered*: rows come with equal keys side by side;
//! each change of the keys closes the groups behind the first key that changed, which is also
//! what `WITH ROLLUP` needs. Without keys there is one group, even without rows.

use std::rc::Rc;

use expression::{AggregateCall, Rows, Share, append_group_key};
use foldhash::{HashMap, HashMapExt};
use planner::Aggregate;
use value::ValueRef;

use super::distinct::KEY_BYTES;
use crate::context::{Context, Dependents};
use crate::keep;
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
    /// From a key to the group's number; hashed only.
    groups: HashMap<Box<[u8]>, usize>,
    /// The groups' keys: of all groups when hashed, of the open one when ordered.
    keys: Rows,
    /// The row's keys; scratch.
    row_keys: Rows,
    /// Accumulators, `plan.calls.len()` a group; ordered: a level of the rollup is a group, the
    /// one with all keys first.
    accumulators: Vec<Accumulator>,
    /// Ordered: a group is open.
    is_open: bool,
    kept_bytes: usize,
    share: Share,
    key: Vec<u8>,
    /// The next row of the slot to give.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Reading,
    /// The input has ended; the slot's rows are the last.
    Ended,
}

impl AggregateOperator {
    pub(crate) fn new(input: Box<dyn Operator>, plan: Rc<Aggregate>) -> Self {
        Self {
            input,
            dependents: Dependents::new(&plan.dependent),
            state: State::Start,
            holds_row: false,
            groups: HashMap::new(),
            keys: Rows::new(plan.keys.len()),
            row_keys: Rows::new(plan.keys.len()),
            accumulators: Vec::new(),
            is_open: false,
            kept_bytes: 0,
            share: Share::default(),
            key: Vec::new(),
            at: 0,
            plan,
        }
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.groups.clear();
        self.keys.clear();
        self.accumulators.clear();
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

    /// Takes the input's row into its group.
    fn take_row(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        if self.plan.keys.is_empty() {
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
        self.key.clear();
        for (value, key) in self.row_keys.row(0).zip(&self.plan.keys) {
            cx.spend_on(value)?;
            append_group_key(value, &key.column_type, &mut self.key);
        }
        let group = match self.groups.get(self.key.as_slice()) {
            Some(&group) => group,
            None => {
                let group = self.groups.len();
                self.groups.insert(self.key.as_slice().into(), group);
                self.keys.push_row_of(&self.row_keys, 0);
                self.open_group();
                let calls = self.plan.calls.len() * size_of::<Accumulator>();
                self.kept_bytes += self.key.len() + KEY_BYTES + calls;
                cx.keep(&mut self.share, self.kept_bytes + self.keys.memory_bytes())?;
                group
            }
        };
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

    /// How many groups are open at a time: one for each rollup and one for all keys.
    fn level_count(&self) -> usize {
        if self.plan.with_rollup {
            self.plan.keys.len() + 1
        } else {
            1
        }
    }

    /// Gives the groups whose keys are over: all that hold the key `changed`.
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
            let result = self.accumulators[place].finish(call, cx.statement)?;
            cx.frame.rows_mut(self.plan.slot).push(result.as_ref());
        }
        Ok(())
    }

    fn accumulate(&mut self, group: usize, cx: &Context<'_>) -> Outcome<()> {
        let call_count = self.plan.calls.len();
        for (call, place) in self.plan.calls.iter().zip(group * call_count..) {
            self.accumulators[place].add(call, cx)?;
        }
        Ok(())
    }

    /// Gives all groups that are left when the input has ended.
    fn finish(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        if self.plan.keys.is_empty() {
            return self.give_group(0, 0, 0, cx);
        }
        if self.plan.is_ordered {
            if self.is_open {
                self.close_levels(0, cx)?;
                if self.plan.with_rollup {
                    self.give_group(self.plan.keys.len(), 0, 0, cx)?;
                }
            }
            return Ok(());
        }
        for group in 0..self.groups.len() {
            cx.statement.spend(GROUP_COST)?;
            self.give_group(group, self.plan.keys.len(), group, cx)?;
        }
        Ok(())
    }

    /// The next finished group, if one stands in the slot.
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
            if !self.holds_row {
                if !self.input.next(cx)? {
                    self.finish(cx)?;
                    self.state = State::Ended;
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

/// What giving a group costs, in bytes looked at.
const GROUP_COST: usize = 64;

/// True if every argument of the call is there; a call leaves out rows where one is NULL.
fn arguments_are_there(call: &AggregateCall, cx: &Context<'_>) -> Outcome<bool> {
    for argument in &call.arguments {
        if cx.evaluate(argument)?.is_null() {
            return Ok(false);
        }
    }
    Ok(true)
}
