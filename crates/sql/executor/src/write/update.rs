//! `UPDATE`.
//!
//! ```text
//! Next --row found--> Row --computed--> Writing --number changed--> Passing --> Row
//! Row --all targets done--> Next --no more rows--> Late --written, where values were kept--> end
//! Row, Writing --the row was claimed: not written, or changed by another--> Confirming --> Row
//! Late --row read again--> Writing --> Late
//! ```

use std::rc::Rc;

use expression::Rows;
use planner::{Assignment, Update, UpdateTarget};
use store::{AutoIncrement, Mutation, RowKey, RowLock, Table};

use super::assign::{duplicate_entry, number_of};
use super::check;
use super::late_changes::LateChanges;
use super::row_change::{NewValues, RowChange};
use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::operator::build;
use crate::write::found_rows::RowFinder;
use crate::write::key_window::KeyWindow;
use crate::{HandlerCall, Interrupt, Outcome, Summary};

#[derive(Debug)]
pub(crate) struct UpdateRunner {
    plan: Rc<Update>,
    /// Of each target's assignments.
    dependents: Vec<Vec<Dependents>>,
    state: State,
    change: RowChange,
    /// The target that is being changed, of the current row.
    target: usize,
    finder: RowFinder,
    /// The late changes, if all values are computed before anything is written.
    late: LateChanges,
    /// The rows of late changes that are read ahead.
    window: KeyWindow,
    summary: Summary,
    /// Warnings before the present row was computed.
    warnings_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next row is wanted.
    Next,
    /// There is a current row.
    Row,
    /// The target's new row is computed and waits for the store.
    Writing,
    /// The current row was claimed, and that is not enough: it is locked.
    Confirming,
    /// All rows were found; the late changes are being written.
    Late,
    /// It is stored, and its number has to be reported to the AUTO_INCREMENT counter.
    Passing,
}

impl UpdateRunner {
    pub(crate) fn new(plan: Rc<Update>, tables: &[Rc<dyn Table>]) -> Self {
        let targets: Vec<usize> = plan.targets.iter().map(|target| target.slot).collect();
        Self {
            dependents: plan.targets.iter().map(dependents_of).collect(),
            state: State::Next,
            change: RowChange::default(),
            target: 0,
            finder: RowFinder::new(
                build(&plan.input, tables),
                plan.finding,
                &plan.kept,
                &targets,
            ),
            late: LateChanges::new(&plan.targets),
            window: KeyWindow::default(),
            summary: Summary::default(),
            warnings_before: 0,
            plan,
        }
    }

    pub(crate) fn rewind(&mut self) {
        self.finder.rewind();
        self.late.clear();
        self.window.clear();
        self.change.rewind();
        let dependents = self.dependents.iter_mut().flatten();
        dependents.for_each(Dependents::rewind);
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
                    let is_found = self.finder.next(cx)?;
                    self.target = 0;
                    self.state = if is_found { State::Row } else { State::Late };
                }
                State::Row => {
                    if self.target == self.plan.targets.len() {
                        self.state = State::Next;
                        continue;
                    }
                    self.state = self.compute_or_lock(cx)?;
                    if self.state == State::Row {
                        self.target += 1;
                    }
                }
                State::Confirming => {
                    let is_there = self.finder.confirm(cx)?;
                    self.state = if is_there { State::Row } else { State::Next };
                }
                State::Writing => {
                    self.state = self.write(cx)?;
                }
                State::Passing => {
                    self.pass(cx)?;
                    self.state = self.written();
                }
                State::Late => {
                    let Some(is_changed) = self.take_late(cx)? else {
                        return Ok(self.summary.clone());
                    };
                    self.state = if is_changed {
                        State::Writing
                    } else {
                        self.written()
                    };
                }
            }
        }
    }

    /// The state after a target's row is written.
    fn written(&mut self) -> State {
        if self.plan.is_late {
            self.late.pass();
            State::Late
        } else {
            self.target += 1;
            State::Row
        }
    }

    /// Reads a row again and applies its late values. Returns whether they change it, or `None`
    /// after the last.
    fn take_late(&mut self, cx: &mut Context<'_>) -> Outcome<Option<bool>> {
        let plan = self.plan.clone();
        let Some(place) = self.late.next() else {
            return Ok(None);
        };
        self.target = place;
        let target = &plan.targets[place];
        cx.charge(1)?;
        let of = (target.table, target.slot);
        if !self.window.next(cx, of, self.late.keys())? {
            return Ok(Some(false));
        }
        let table = cx.tables[target.table].clone();
        let (definition, slot) = (table.definition(), target.slot);
        let assignments = &target.assignments;
        let is_changed = self
            .change
            .take(cx, slot, definition, assignments, self.late.values())?;
        let new = &self.change.new;
        let is_written = is_changed && check::is_allowed(cx, new, definition, plan.is_ignore)?;
        Ok(Some(is_written))
    }

    /// Computes the target's new row. Returns what follows: a claimed row that is not written has
    /// to be locked nevertheless, and is computed again.
    fn compute_or_lock(&mut self, cx: &mut Context<'_>) -> Outcome<State> {
        let is_claimed = RowFinder::is_claimed(cx, self.plan.targets[self.target].slot);
        self.warnings_before = cx.statement.diagnostics.warnings().count();
        match self.compute(cx) {
            Ok(true) => Ok(State::Writing),
            Ok(false) if is_claimed => Ok(self.take_back(cx)),
            Err(Interrupt::Error(_)) if is_claimed => Ok(self.take_back(cx)),
            Ok(false) => Ok(State::Row),
            Err(interrupt) => Err(interrupt),
        }
    }

    /// Takes back what the present row has counted, before it is computed again.
    fn take_back(&mut self, cx: &Context<'_>) -> State {
        assert!(
            self.summary.matched_rows <= 1,
            "a claimed row is the only one"
        );
        self.summary.matched_rows = 0;
        let mut warnings = cx.statement.diagnostics.warnings();
        warnings.return_to(self.warnings_before);
        State::Confirming
    }

    /// Computes the target's new row. Returns false if there is nothing to write.
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
            NewValues {
                assignments: &target.assignments,
                dependents: &mut self.dependents[self.target],
                defaults: &target.defaults,
            },
            row_number,
        )?;
        self.summary.matched_rows += 1;
        let (new, definition) = (&self.change.new, table.definition());
        if plan.is_late {
            if is_changed {
                let row = cx.frame.slots[target.slot].row.expect("a row is at hand");
                let key = cx.frame.batch(target.slot).key(row).0;
                let assignments = &target.assignments;
                self.late.keep(cx, self.target, key, assignments, new)?;
            }
            return Ok(false);
        }
        Ok(is_changed && check::is_allowed(cx, new, definition, plan.is_ignore)?)
    }

    /// Writes the target's new row. Returns what follows.
    fn write(&mut self, cx: &mut Context<'_>) -> Outcome<State> {
        let target: &UpdateTarget = &self.plan.targets[self.target];
        let table = &cx.tables[target.table];
        let row = cx.frame.slots[target.slot].row.expect("a row is at hand");
        let key: RowKey<'_> = cx.frame.batch(target.slot).key(row);
        let mutation = table.update(cx.txn, key, &self.change.refs(), RowLock::Shared)?;
        if mutation == Mutation::Changed {
            return Ok(self.take_back(cx));
        }
        cx.handler.count(HandlerCall::Update);
        match mutation {
            Mutation::Done => {
                self.summary.affected_rows += 1;
                let column = table.definition().auto_increment_column();
                let has_number = column.is_some_and(|column| assigns(&target.assignments, column));
                if has_number {
                    return Ok(State::Passing);
                }
            }
            Mutation::Gone | Mutation::Changed => {}
            Mutation::Duplicate { index, .. } => {
                // IGNORE skips the row without a warning, as in MariaDB.
                if !self.plan.is_ignore {
                    let new = &self.change.new;
                    return Err(duplicate_entry(new, table.definition(), index).into());
                }
            }
        }
        Ok(self.written())
    }

    /// Later rows get numbers above the one that was assigned to this row.
    fn pass(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let table = &cx.tables[self.plan.targets[self.target].table];
        pass_number(table.as_ref(), &self.change.new)
    }
}

/// What runs before each assignment of a target.
fn dependents_of(target: &UpdateTarget) -> Vec<Dependents> {
    let assignments = target.assignments.iter();
    assignments
        .map(|it| Dependents::new(&it.dependent))
        .collect()
}

/// True if an assignment is to the column.
pub(super) fn assigns(assignments: &[Assignment], column: usize) -> bool {
    let mut assigned = assignments.iter().map(|assignment| assignment.column);
    assigned.any(|assigned| assigned == column)
}

/// Reports a row's own number to the table's counter.
pub(super) fn pass_number(table: &dyn Table, row: &Rows) -> Outcome<()> {
    let Some(column) = table.definition().auto_increment_column() else {
        return Ok(());
    };
    if let Some(number) = number_of(row.get(0, column)).filter(|&number| number > 0) {
        table.take_auto_increment(AutoIncrement::Pass(number))?;
    }
    Ok(())
}
