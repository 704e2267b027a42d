//! Hash join: reads the right side once into a table by its keys, then looks up each row of the
//! left.
//!
//! The right side's rows are kept in the shape of its own slots (`kept_slots.rs`), those of one key
//! as a list. Its operators do not run while rows are returned, and read no other slots of the
//! query; the planner ensures that. So the table is valid until the query starts again for another
//! outer row, or longer (`TableHolds`).

use std::rc::Rc;

use expression::{Expression, Share};
use planner::{HashJoin, HashKey, JoinKind, TableHolds};
use stdx::ChunkedVec;

use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::kept_slots::KeptSlots;
use crate::keys::Keys;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct HashJoinOperator {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    plan: Rc<HashJoin>,
    state: State,
    keys: Keys,
    /// The kept rows of each key, by its number.
    lists: ChunkedVec<List>,
    /// By kept row: the next of the same key, or [`NONE`].
    next_rows: ChunkedVec<u32>,
    kept: KeptSlots,
    share: Share,
    dependents: Dependents,
    /// The next row that matches the left row, or [`NONE`].
    at: u32,
    has_partner: bool,
}

/// Kept rows of one key.
#[derive(Debug, Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Building,
    Left,
    Matching,
    /// A pair waits for its test.
    Pair,
    End,
}

impl HashJoinOperator {
    pub(crate) fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        plan: Rc<HashJoin>,
    ) -> Self {
        let kept = KeptSlots::new(&plan.right_slots);
        let dependents = Dependents::new(&plan.dependent);
        Self {
            left,
            right,
            plan,
            state: State::Start,
            keys: Keys::default(),
            lists: ChunkedVec::new(),
            next_rows: ChunkedVec::new(),
            kept,
            share: Share::default(),
            dependents,
            at: NONE,
            has_partner: false,
        }
    }

    fn is_built(&self) -> bool {
        matches!(
            self.state,
            State::Left | State::Matching | State::Pair | State::End
        )
    }

    fn build(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        while self.right.next(cx)? {
            if !make_key(&mut self.keys, &self.plan, |key| &key.right, cx)? {
                continue;
            }
            let row = stdx::to_u32(self.kept.keep(cx.frame));
            self.next_rows.push(NONE);
            let (number, is_new) = self.keys.insert(cx)?;
            if is_new {
                let (first, last) = (row, row);
                self.lists.push(List { first, last });
            } else {
                let list = &mut self.lists[number];
                self.next_rows[list.last as usize] = row;
                list.last = row;
            }
            let lists = self.lists.memory_bytes() + self.next_rows.memory_bytes();
            cx.keep(&mut self.share, self.kept.memory_bytes() + lists)?;
        }
        self.state = State::Left;
        Ok(())
    }

    /// Finds the kept rows with the left row's key.
    fn look_up(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.at = NONE;
        self.has_partner = false;
        if make_key(&mut self.keys, &self.plan, |key| &key.left, cx)?
            && let Some(number) = self.keys.find()
        {
            self.at = self.lists[number].first;
        }
        Ok(())
    }
}

/// Builds a side's key. Returns false if a part is a NULL that equals nothing.
fn make_key(
    keys: &mut Keys,
    plan: &HashJoin,
    side: impl Fn(&HashKey) -> &Expression,
    cx: &mut Context<'_>,
) -> Outcome<bool> {
    keys.begin();
    for key in &plan.keys {
        let value = cx.evaluator().evaluate_as(side(key), key.class)?;
        if value.is_null() && !key.null_safe {
            return Ok(false);
        }
        keys.push_class(value, key.class, cx)?;
    }
    cx.frame.recycle();
    Ok(true)
}

impl Operator for HashJoinOperator {
    fn rewind(&mut self, how: Rewind) {
        let holds = match how {
            Rewind::Again => true,
            Rewind::Outer => self.plan.holds == TableHolds::Execution,
            Rewind::Fresh => false,
        };
        let is_kept = holds && self.is_built();
        self.left.rewind(how);
        self.right.rewind(how);
        self.dependents.rewind();
        self.at = NONE;
        self.state = if is_kept { State::Left } else { State::Start };
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            match self.state {
                State::Start => {
                    self.keys.clear();
                    self.lists.clear();
                    self.next_rows.clear();
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
                    if self.at == NONE {
                        self.state = State::Left;
                        if !self.has_partner && self.plan.kind != JoinKind::Inner {
                            self.kept.set(cx.frame, None);
                            return Ok(true);
                        }
                        continue;
                    }
                    cx.charge(1)?;
                    let row = self.at as usize;
                    self.at = self.next_rows[row];
                    self.kept.set(cx.frame, Some(row));
                    self.state = State::Pair;
                }
                State::Pair => {
                    self.dependents.run(cx)?;
                    self.state = State::Matching;
                    if let Some(residual) = &self.plan.residual
                        && !cx.is_true(residual)?
                    {
                        continue;
                    }
                    if self.plan.kind == JoinKind::Anti {
                        self.state = State::Left;
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
