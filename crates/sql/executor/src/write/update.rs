//! `UPDATE`.

use std::rc::Rc;

use planner::{Update, UpdateTarget};
use store::{Mutation, RowKey, Table};

use super::assign::duplicate_entry;
use super::check;
use super::row_change::RowChange;
use crate::context::{Context, Dependents};
use crate::operator::build;
use crate::write::found_rows::RowFinder;
use crate::{Outcome, Summary};

#[derive(Debug)]
pub(crate) struct UpdateRunner {
    plan: Rc<Update>,
    dependents: Dependents,
    state: State,
    change: RowChange,
    /// The target being changed, of the row at hand.
    target: usize,
    finder: RowFinder,
    summary: Summary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next row is wanted.
    Next,
    /// A row is at hand.
    Row,
    /// The target's new row is computed and waits for the store.
    Writing,
}

impl UpdateRunner {
    pub(crate) fn new(plan: Rc<Update>, tables: &[Rc<dyn Table>]) -> Self {
        let targets: Vec<usize> = plan.targets.iter().map(|target| target.slot).collect();
        Self {
            dependents: Dependents::new(&plan.dependent),
            state: State::Next,
            change: RowChange::default(),
            target: 0,
            finder: RowFinder::new(
                build(&plan.input, tables),
                plan.is_kept,
                &plan.kept,
                &targets,
            ),
            summary: Summary::default(),
            plan,
        }
    }

    pub(crate) fn rewind(&mut self) {
        self.finder.rewind();
        self.dependents.rewind();
        self.state = State::Next;
        self.target = 0;
        self.summary = Summary {
            is_update: true,
            ..Summary::default()
        };
    }

    pub(crate) fn run(&mut self, cx: &mut Context<'_>) -> Outcome<Summary> {
        loop {
            match self.state {
                State::Next => {
                    if !self.finder.next(cx)? {
                        return Ok(self.summary.clone());
                    }
                    self.target = 0;
                    self.state = State::Row;
                }
                State::Row => {
                    if self.target == self.plan.targets.len() {
                        self.state = State::Next;
                        continue;
                    }
                    self.dependents.run(cx)?;
                    self.state = if self.compute(cx)? {
                        State::Writing
                    } else {
                        State::Row
                    };
                    if self.state == State::Row {
                        self.target += 1;
                    }
                }
                State::Writing => {
                    self.write(cx)?;
                    self.target += 1;
                    self.state = State::Row;
                }
            }
        }
    }

    /// Computes the target's new row; false if there is nothing to write.
    fn compute(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let plan = self.plan.clone();
        let target = &plan.targets[self.target];
        // The target may be a row of NULLs (outer join), or was changed by an earlier pair.
        if cx.frame.slots[target.slot].row.is_none() || !self.finder.is_first(self.target) {
            return Ok(false);
        }
        let table = cx.tables[target.table].clone();
        let row_number = self.summary.matched_rows + 1;
        let is_changed = self.change.compute(
            cx,
            target.slot,
            table.definition(),
            &target.assignments,
            &target.defaults,
            row_number,
        )?;
        self.summary.matched_rows += 1;
        let (new, definition) = (&self.change.new, table.definition());
        Ok(is_changed && check::is_allowed(cx, new, definition, plan.is_ignore)?)
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let target: &UpdateTarget = &self.plan.targets[self.target];
        let table = &cx.tables[target.table];
        let row = cx.frame.slots[target.slot].row.expect("a row is at hand");
        let key: RowKey<'_> = cx.frame.batch(target.slot).key(row);
        match table.update(cx.txn, key, &self.change.refs())? {
            Mutation::Done => self.summary.affected_rows += 1,
            Mutation::Gone => {}
            Mutation::Duplicate { index, .. } => {
                // IGNORE passes over the row in silence, as MariaDB's does.
                if !self.plan.is_ignore {
                    let new = &self.change.new;
                    return Err(duplicate_entry(new, table.definition(), index).into());
                }
            }
        }
        Ok(())
    }
}
