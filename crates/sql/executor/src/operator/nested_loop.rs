//! Nested-loop join: for each row of the left side, the right side from its beginning.
//!
//! The right side's scan computes its range from the left side's columns, so this is also the index
//! lookup join.

use std::rc::Rc;

use planner::{Join, JoinKind};

use crate::context::{Context, Dependents};
use crate::{Operator, Outcome, Rewind};

#[derive(Debug)]
pub(crate) struct NestedLoopOperator {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    plan: Rc<Join>,
    dependents: Dependents,
    state: State,
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
        Self {
            left,
            right,
            plan,
            dependents,
            state: State::Left,
        }
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
        self.right.rewind(how);
        self.dependents.rewind();
        self.state = State::Left;
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        loop {
            match self.state {
                State::Left => {
                    if !self.left.next(cx)? {
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
                    if !has_partner && self.plan.kind == JoinKind::Left {
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
