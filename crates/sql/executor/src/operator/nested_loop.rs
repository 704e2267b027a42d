//! Nested-loop join: for each row of the left side, the right side from its beginning.
//!
//! The right side's scan computes its range from the left side's columns, so this is also the index
//! lookup join. If the right side's table is remote, left rows are kept until there are enough of
//! them for one lookup ([`LeftRows`]). Each left row then becomes current again, in its order.

use std::rc::Rc;

use expression::Share;
use planner::{Join, JoinKind};

use super::collected::rows_after;
use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::operator::Collector;
use crate::kept_slots::KeptSlots;
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct NestedLoopOperator {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    plan: Rc<Join>,
    dependents: Dependents,
    state: State,
    /// Set if the right side collects.
    left_rows: Option<LeftRows>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next left row is wanted.
    Left,
    /// The next right row is wanted; whether the left row has a partner already.
    Right { has_partner: bool },
    /// A pair waits for its test.
    Pair { has_partner: bool },
    /// There are no more left rows.
    End,
}

impl NestedLoopOperator {
    pub(crate) fn new(left: Box<dyn Operator>, right: Box<dyn Operator>, plan: Rc<Join>) -> Self {
        let dependents = Dependents::new(&plan.dependent);
        let mut join = Self {
            left,
            right,
            plan,
            dependents,
            state: State::Left,
            left_rows: None,
        };
        if join.right.collector().is_some() {
            join.left_rows = Some(LeftRows::new(&join.plan.left_slots));
        }
        join
    }

    /// Makes the next left row current. Returns false if there is none.
    fn next_left(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let (Some(rows), Some(right)) = (&mut self.left_rows, self.right.collector()) else {
            return self.left.next(cx);
        };
        rows.next(&mut *self.left, right, cx)
    }

    /// Makes the right side a row of NULLs.
    fn set_right_null(&self, cx: &mut Context<'_>) {
        for &slot in &self.plan.right_slots {
            cx.frame.slots[slot].row = None;
        }
    }
}

impl Operator for NestedLoopOperator {
    fn rewind(&mut self, how: Rewind) {
        self.left.rewind(how);
        if let Some(rows) = &mut self.left_rows {
            rows.rewind();
            // What was looked up was for the left rows of before.
            if let Some(right) = self.right.collector() {
                right.begin();
            }
        }
        self.right.rewind(how);
        self.dependents.rewind();
        self.state = State::Left;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            match self.state {
                State::Left => {
                    if !self.next_left(cx)? {
                        self.state = State::End;
                        continue;
                    }
                    self.right.rewind(Rewind::Again);
                    self.state = State::Right { has_partner: false };
                }
                State::Right { has_partner } => {
                    if self.right.next(cx)? {
                        self.state = State::Pair { has_partner };
                        continue;
                    }
                    self.state = State::Left;
                    if !has_partner && self.plan.kind != JoinKind::Inner {
                        self.set_right_null(cx);
                        return Ok(true);
                    }
                }
                State::Pair { has_partner } => {
                    cx.charge(1)?;
                    self.dependents.run(cx)?;
                    let matches = match &self.plan.on {
                        Some(on) => cx.is_true(on)?,
                        None => true,
                    };
                    cx.frame.recycle();
                    if matches && self.plan.kind == JoinKind::Anti {
                        self.state = State::Left;
                        continue;
                    }
                    self.state = State::Right {
                        has_partner: has_partner || matches,
                    };
                    if matches {
                        return Ok(true);
                    }
                }
                State::End => return Ok(false),
            }
        }
    }
}

/// Left rows that are looked up at once.
#[derive(Debug)]
struct LeftRows {
    kept: KeptSlots,
    share: Share,
    /// How many are kept, and how many of them were current.
    count: usize,
    given: usize,
    /// How many are kept before they are looked up.
    wanted: usize,
    state: Filling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filling {
    /// Nothing was kept yet.
    Start,
    /// The next left row is wanted.
    Left,
    /// A left row is current, and was not collected yet.
    Collect,
    /// The kept rows become current, one after the other.
    Giving,
    /// So do these, which are the last.
    GivingLast,
}

impl LeftRows {
    fn new(slots: &[usize]) -> Self {
        Self {
            kept: KeptSlots::new(slots),
            share: Share::default(),
            count: 0,
            given: 0,
            wanted: 0,
            state: Filling::Start,
        }
    }

    fn rewind(&mut self) {
        self.state = Filling::Start;
        (self.count, self.given, self.wanted) = (0, 0, 0);
    }

    /// Makes the next row current. Returns false if there is none.
    fn next(
        &mut self,
        left: &mut dyn Operator,
        right: &mut dyn Collector,
        cx: &mut Context<'_>,
    ) -> Outcome<bool> {
        loop {
            match self.state {
                Filling::Start => {
                    self.kept.start(cx.frame);
                    self.begin(right);
                }
                Filling::Left => {
                    if self.wanted <= self.count || right.is_full() {
                        self.state = Filling::Giving;
                    } else if left.next(cx)? {
                        self.state = Filling::Collect;
                    } else {
                        self.state = Filling::GivingLast;
                    }
                }
                Filling::Collect => {
                    right.collect(cx)?;
                    self.state = Filling::Left;
                    self.kept.keep(cx.frame);
                    self.count += 1;
                    cx.keep(&mut self.share, self.kept.memory_bytes())?;
                }
                Filling::Giving | Filling::GivingLast if self.given < self.count => {
                    self.kept.set(cx.frame, Some(self.given));
                    self.given += 1;
                    return Ok(true);
                }
                Filling::Giving => {
                    self.kept.resume(cx.frame);
                    self.begin(right);
                }
                Filling::GivingLast => return Ok(false),
            }
        }
    }

    fn begin(&mut self, right: &mut dyn Collector) {
        right.begin();
        self.share.clear();
        self.wanted = rows_after(self.wanted);
        (self.count, self.given) = (0, 0);
        self.state = Filling::Left;
    }
}
