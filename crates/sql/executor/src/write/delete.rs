//! `DELETE`.

use std::rc::Rc;

use planner::Delete;
use store::{Mutation, Table};

use crate::context::Context;
use crate::operator::build;
use crate::sink::give_row;
use crate::write::found_rows::RowFinder;
use crate::{Flow, HandlerCall, Outcome, Progress, RowSink, Summary};

#[derive(Debug)]
pub(crate) struct DeleteRunner {
    plan: Rc<Delete>,
    state: State,
    /// The target that is being deleted, of the current row.
    target: usize,
    finder: RowFinder,
    summary: Summary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next row is wanted.
    Next,
    /// There is a current row.
    Row,
    /// The current row was claimed and has changed: it is locked.
    Confirming,
}

impl DeleteRunner {
    pub(crate) fn new(plan: Rc<Delete>, tables: &[Rc<dyn Table>]) -> Self {
        let slots: Vec<usize> = plan.targets.iter().map(|&(_, slot)| slot).collect();
        Self {
            state: State::Next,
            target: 0,
            finder: RowFinder::new(
                build(&plan.input, tables),
                plan.finding,
                &plan.targets,
                &slots,
            ),
            summary: Summary::default(),
            plan,
        }
    }

    pub(crate) fn rewind(&mut self) {
        self.finder.rewind();
        self.state = State::Next;
        self.target = 0;
        self.summary = Summary::default();
    }

    pub(crate) fn run(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut dyn RowSink,
    ) -> Outcome<Progress> {
        loop {
            match self.state {
                State::Next => {
                    if !self.finder.next(cx)? {
                        return Ok(Progress::Done(self.summary.clone()));
                    }
                    self.target = 0;
                    self.state = State::Row;
                }
                State::Row => {
                    if let Some(&(table, slot)) = self.plan.targets.get(self.target) {
                        let is_new = self.finder.is_first(self.target);
                        let is_deleted = is_new && self.delete(cx, table, slot)?;
                        if self.state == State::Confirming {
                            continue;
                        }
                        self.target += 1;
                        if is_deleted && self.give(cx, sink)? == Flow::Pause {
                            return Ok(Progress::Paused);
                        }
                    } else {
                        self.state = State::Next;
                    }
                }
                State::Confirming => {
                    let is_there = self.finder.confirm(cx)?;
                    self.state = if is_there { State::Row } else { State::Next };
                }
            }
        }
    }

    /// Sends the deleted row, if RETURNING asks for it.
    fn give(&mut self, cx: &mut Context<'_>, sink: &mut dyn RowSink) -> Outcome<Flow> {
        if self.plan.returning.is_empty() {
            return Ok(Flow::More);
        }
        self.summary.returned_rows += 1;
        let flow = give_row(&self.plan.returning, cx, sink)?;
        cx.frame.recycle();
        Ok(flow)
    }

    /// Returns false if there is no row, or no longer one, or if it has to be confirmed.
    fn delete(&mut self, cx: &mut Context<'_>, table: usize, slot: usize) -> Outcome<bool> {
        let Some(row) = cx.frame.slots[slot].row else {
            return Ok(false);
        };
        let key = cx.frame.batch(slot).key(row);
        let mutation = cx.tables[table].delete(cx.txn, key)?;
        if mutation == Mutation::Changed {
            self.state = State::Confirming;
            return Ok(false);
        }
        let is_deleted = mutation == Mutation::Done;
        cx.handler.count(HandlerCall::Delete);
        if is_deleted {
            self.summary.affected_rows += 1;
            self.summary.matched_rows += 1;
        }
        Ok(is_deleted)
    }
}
