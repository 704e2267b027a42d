//! Hash join: the right side is read once into a table by its keys, then each row of the left
//! looks up.
//!
//! The right side's rows are kept in the shape of its own slots (`kept_slots.rs`); its operators
//! do not run while the slots are exchanged. Of the query's slots they read no others (the planner
//! sees to it), so the table holds until the query is started afresh for another row around it.

use std::rc::Rc;

use expression::{Expression, Share, append_class_key};
use foldhash::{HashMap, HashMapExt};
use planner::{HashJoin, JoinKind};
use smallvec::SmallVec;

use super::distinct::KEY_BYTES;
use crate::context::Context;
use crate::kept_slots::KeptSlots;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct HashJoinOperator {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    plan: Rc<HashJoin>,
    state: State,
    table: HashMap<Box<[u8]>, SmallVec<[u32; 2]>>,
    kept: KeptSlots,
    /// Bytes of the table.
    key_bytes: usize,
    share: Share,
    /// The key being made; reused.
    key: Vec<u8>,
    /// Rows that match the left row, and the next of them to judge.
    matches: SmallVec<[u32; 2]>,
    at: usize,
    has_partner: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Building,
    Left,
    Matching,
    End,
}

impl HashJoinOperator {
    pub(crate) fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        plan: Rc<HashJoin>,
    ) -> Self {
        let kept = KeptSlots::new(&plan.right_slots);
        Self {
            left,
            right,
            plan,
            state: State::Start,
            table: HashMap::new(),
            kept,
            key_bytes: 0,
            share: Share::default(),
            key: Vec::new(),
            matches: SmallVec::new(),
            at: 0,
            has_partner: false,
        }
    }

    fn is_built(&self) -> bool {
        matches!(self.state, State::Left | State::Matching | State::End)
    }

    fn build(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        while self.right.next(cx)? {
            if !make_key(&mut self.key, &self.plan.right_keys, &self.plan, cx)? {
                continue;
            }
            let row = stdx::to_u32(self.kept.keep(cx.frame));
            match self.table.get_mut(self.key.as_slice()) {
                Some(rows) => rows.push(row),
                None => {
                    self.key_bytes += self.key.len() + 2 * KEY_BYTES;
                    let rows = SmallVec::from_slice(&[row]);
                    self.table.insert(self.key.as_slice().into(), rows);
                }
            }
            cx.keep(&mut self.share, self.kept.memory_bytes() + self.key_bytes)?;
        }
        self.kept.exchange(cx.frame);
        self.state = State::Left;
        Ok(())
    }

    /// Finds the kept rows with the left row's key.
    fn look_up(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.matches.clear();
        self.at = 0;
        self.has_partner = false;
        if make_key(&mut self.key, &self.plan.left_keys, &self.plan, cx)?
            && let Some(rows) = self.table.get(self.key.as_slice())
        {
            self.matches.extend_from_slice(rows);
        }
        Ok(())
    }
}

/// Makes a side's key; false if a part is NULL, which equals nothing.
fn make_key(
    key: &mut Vec<u8>,
    expressions: &[Expression],
    plan: &HashJoin,
    cx: &mut Context<'_>,
) -> Outcome<bool> {
    key.clear();
    for (expression, class) in expressions.iter().zip(&plan.classes) {
        let value = cx.evaluator().evaluate_as(expression, *class)?;
        if value.is_null() {
            return Ok(false);
        }
        cx.spend_on(value)?;
        append_class_key(value, *class, key);
    }
    cx.frame.recycle();
    Ok(true)
}

impl Operator for HashJoinOperator {
    fn rewind(&mut self, how: Rewind) {
        self.left.rewind(how);
        self.right.rewind(how);
        self.matches.clear();
        self.state = match how {
            Rewind::Again if self.is_built() => State::Left,
            // Contents that are still exchanged serve as working ones: they are cleared when
            // the right side's scans start.
            Rewind::Again | Rewind::Fresh => State::Start,
        };
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            match self.state {
                State::Start => {
                    self.table.clear();
                    self.key_bytes = 0;
                    self.share.clear();
                    self.kept.start(cx.frame);
                    self.state = State::Building;
                }
                State::Building => self.build(cx)?,
                State::Left => {
                    if !self.left.next(cx)? {
                        self.state = State::End;
                        continue;
                    }
                    self.look_up(cx)?;
                    self.state = State::Matching;
                }
                State::Matching => {
                    let Some(&row) = self.matches.get(self.at) else {
                        self.state = State::Left;
                        if !self.has_partner && self.plan.kind == JoinKind::Left {
                            self.kept.set(cx.frame, None);
                            return Ok(true);
                        }
                        continue;
                    };
                    cx.charge(1)?;
                    self.at += 1;
                    self.kept.set(cx.frame, Some(row as usize));
                    if let Some(residual) = &self.plan.residual
                        && !cx.is_true(residual)?
                    {
                        continue;
                    }
                    self.has_partner = true;
                    return Ok(true);
                }
                State::End => return Ok(false),
            }
        }
    }
}
