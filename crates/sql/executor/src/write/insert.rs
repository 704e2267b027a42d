//! `INSERT` and `REPLACE`.
//!
//! ```text
//! Next --row computed--> Number --AUTO_INCREMENT filled--> Insert --done--> Pass --> Next
//! Insert --duplicate, REPLACE--> Delete --> Insert
//! Insert --duplicate by the last index, REPLACE--> Compare --same--> Pass
//! Compare --differs--> Rewrite --done--> Pass; --gone or another duplicate--> Insert
//! Insert --duplicate, ON DUPLICATE KEY UPDATE--> Find --changed--> Update --> Next
//! Update --the AUTO_INCREMENT column changed--> PassChanged --> Next
//! Pass, Find, Update, PassChanged --RETURNING--> Give --> Next
//! ```

use std::rc::Rc;

use errcode::{ClientError, ER_AUTOINC_READ_FAILED};
use expression::{Expression, ExpressionKind, Rows, Share};
use planner::{Insert, InsertSource, OnDuplicate, ValueRows};
use settings::SqlMode;
use store::{AutoIncrement, Inserted, Mutation, RowKey, RowLock, Table, Uniqueness};
use value::{ColumnType, ValueRef};

use super::assign::{
    self, NullRule, Target, assign, assign_default, assign_missing, assign_value, assigned,
    duplicate_entry, row_refs,
};
use super::check;
use super::row_change::{NewValues, RowChange, differs};
use super::update::{assigns, pass_number};
use crate::context::Context;
use crate::context::dependents::Dependents;
use crate::context::keep;
use crate::operator::build;
use crate::sink::give_row;
use crate::{Flow, HandlerCall, Operator, Outcome, Progress, Rewind, RowSink, Summary};

#[derive(Debug)]
pub(crate) struct InsertRunner {
    plan: Rc<Insert>,
    /// The SELECT's root, if rows come from one.
    root: Option<Box<dyn Operator>>,
    dependents: Dependents,
    /// The SELECT's row is not taken yet.
    holds_row: bool,
    /// Rows of a SELECT that reads the table itself, kept before the first insert.
    kept: Rows,
    share: Share,
    is_kept_complete: bool,
    state: State,
    /// Rows taken from the source.
    taken: usize,
    /// How many values the new row has, while what the next one needs has suspended.
    filled: Option<usize>,
    /// Rows that earlier runs have inserted for the same statement.
    earlier_rows: u64,
    /// Names the conflicting row.
    duplicate: Box<[u8]>,
    change: RowChange,
    /// Reserved numbers for later rows: the next, and how many.
    next_number: u64,
    numbers_left: u64,
    /// Value expressions read columns of the new row.
    reads_new_row: bool,
    /// The columns without a value from the source.
    missing: Vec<usize>,
    /// The counter assigned the number of the current row.
    is_generated: bool,
    summary: Summary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Next,
    Number,
    Insert,
    Compare,
    Rewrite,
    Delete,
    Find,
    Update,
    PassChanged,
    Pass,
    Give,
}

impl InsertRunner {
    pub(crate) fn new(plan: Rc<Insert>, tables: &[Rc<dyn Table>]) -> Self {
        let (root, dependent, width) = match &plan.source {
            InsertSource::Values { .. } => (None, [].as_slice(), 0),
            InsertSource::Query { query, .. } => {
                let root = build(&query.root, tables);
                (Some(root), query.dependent.as_slice(), query.output.len())
            }
        };
        let dependents = Dependents::new(dependent);
        Self {
            root,
            dependents,
            holds_row: false,
            kept: Rows::new(width),
            share: Share::default(),
            is_kept_complete: false,
            state: State::Next,
            taken: 0,
            filled: None,
            earlier_rows: 0,
            duplicate: Box::default(),
            change: RowChange::default(),
            next_number: 0,
            numbers_left: 0,
            reads_new_row: reads_slot(&plan, plan.new_slot),
            missing: missing_columns(&plan),
            is_generated: false,
            summary: Summary::default(),
            plan,
        }
    }

    pub(crate) fn rewind(&mut self) {
        if let Some(root) = &mut self.root {
            root.rewind(Rewind::Fresh);
        }
        self.dependents.rewind();
        self.holds_row = false;
        self.kept.clear();
        self.share.clear();
        self.is_kept_complete = false;
        self.state = State::Next;
        self.taken = 0;
        self.filled = None;
        self.numbers_left = 0;
        self.summary = Summary::default();
    }

    /// Messages count rows from here on.
    pub(crate) fn set_earlier_rows(&mut self, count: u64) {
        self.earlier_rows = count;
    }

    pub(crate) fn run(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut dyn RowSink,
    ) -> Outcome<Progress> {
        loop {
            match self.state {
                State::Next => {
                    if !self.next_row(cx)? {
                        return Ok(Progress::Done(self.finish()));
                    }
                    if self.is_allowed(cx)? {
                        self.state = State::Number;
                    }
                }
                State::Number => {
                    self.number(cx)?;
                    self.state = State::Insert;
                }
                State::Insert => self.insert(cx)?,
                State::Compare => self.compare(cx)?,
                State::Rewrite => self.rewrite(cx)?,
                State::Delete => {
                    let table = &cx.tables[self.plan.table];
                    let mutation = table.delete(cx.txn, RowKey(&self.duplicate))?;
                    assert_ne!(mutation, Mutation::Changed, "a duplicate is locked");
                    if mutation == Mutation::Done {
                        self.summary.affected_rows += 1;
                        self.summary.matched_rows += 1;
                    }
                    self.state = State::Insert;
                }
                State::Find => self.find(cx)?,
                State::Update => self.update(cx)?,
                State::Pass => {
                    self.pass(cx)?;
                    self.state = self.written();
                }
                State::PassChanged => {
                    let table = &cx.tables[self.plan.table];
                    pass_number(table.as_ref(), &self.change.new)?;
                    self.state = self.written();
                }
                State::Give => {
                    self.state = State::Next;
                    self.summary.returned_rows += 1;
                    let flow = give_row(&self.plan.returning, cx, sink)?;
                    cx.frame.recycle();
                    if flow == Flow::Pause {
                        return Ok(Progress::Paused);
                    }
                }
            }
        }
    }

    /// The state after a row is written.
    fn written(&self) -> State {
        if self.plan.returning.is_empty() {
            State::Next
        } else {
            State::Give
        }
    }

    fn finish(&mut self) -> Summary {
        let is_query = self.root.is_some();
        if is_query || self.taken > 1 {
            self.summary.records = Some(stdx::to_u64(self.taken));
        }
        self.summary.is_insert = true;
        self.summary.clone()
    }

    /// Computes the source's next row into the new slot. Returns false at the end.
    fn next_row(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let plan = self.plan.clone();
        match &plan.source {
            InsertSource::Values {
                rows: ValueRows::Expressions(rows),
                ..
            } => {
                let Some(row) = rows.get(self.taken) else {
                    return Ok(false);
                };
                cx.charge(1)?;
                self.make_row(cx, |column, _| row[column].as_ref().map(Source::Expression))?;
            }
            InsertSource::Values {
                rows: ValueRows::Constants { values, width },
                ..
            } => {
                let first = self.taken * width;
                if first == values.len() {
                    return Ok(false);
                }
                cx.charge(1)?;
                self.make_row(cx, |column, _| {
                    values.get(first + column).map(Source::Constant)
                })?;
            }
            InsertSource::Query {
                query,
                is_kept: false,
            } => {
                if !self.pull(cx)? {
                    return Ok(false);
                }
                self.make_row(cx, |column, _| {
                    Some(Source::Expression(&query.output[column]))
                })?;
            }
            InsertSource::Query {
                query,
                is_kept: true,
            } => {
                while !self.is_kept_complete {
                    if self.pull(cx)? {
                        let mut kept = std::mem::take(&mut self.kept);
                        let outcome = keep::push_values(cx, &mut kept, &query.output);
                        self.kept = kept;
                        outcome?;
                        cx.keep(&mut self.share, self.kept.memory_bytes())?;
                    } else {
                        self.is_kept_complete = true;
                    }
                }
                if self.taken == self.kept.len() {
                    return Ok(false);
                }
                cx.charge(1)?;
                self.make_row(cx, |column, taken| {
                    Some(Source::Kept {
                        row: taken,
                        column,
                        from: &query.output[column],
                    })
                })?;
            }
        }
        self.taken += 1;
        cx.frame.recycle();
        Ok(true)
    }

    /// Whether the new row fulfils the conditions of its columns. If not, no state is left.
    fn is_allowed(&self, cx: &Context<'_>) -> Outcome<bool> {
        let rows = cx.frame.rows(self.plan.new_slot);
        let definition = cx.tables[self.plan.table].definition();
        check::is_allowed(cx, rows, definition, self.plan.is_ignore)
    }

    fn pull(&mut self, cx: &mut Context<'_>) -> Outcome<bool> {
        let root = self.root.as_mut().expect("rows come from a query");
        if !self.holds_row {
            if !root.next(cx)? {
                return Ok(false);
            }
            self.holds_row = true;
        }
        self.dependents.run(cx)?;
        self.holds_row = false;
        Ok(true)
    }

    /// Makes the new row from the source's values and defaults. What runs before a value sees those
    /// before it. Called again after a suspension, it continues.
    fn make_row<'p>(
        &mut self,
        cx: &mut Context<'_>,
        source: impl Fn(usize, usize) -> Option<Source<'p>>,
    ) -> Outcome<()> {
        let table = cx.tables[self.plan.table].clone();
        let definition = table.definition();
        let slot = self.plan.new_slot;
        let row_number = self.earlier_rows + stdx::to_u64(self.taken) + 1;
        let target = |column| Target {
            definition,
            column,
            row_number,
        };
        let filled = self.filled.take();
        if filled.is_none() {
            self.begin_row(cx, &target)?;
        }
        let plan = self.plan.clone();
        for (place, &column) in plan.columns.iter().enumerate().skip(filled.unwrap_or(0)) {
            self.run_dependents(cx, place, filled)?;
            let rule = self.null_rule(definition.columns[column].auto_increment);
            match source(place, self.taken) {
                Some(Source::Expression(value)) if self.reads_new_row && reads(value, slot) => {
                    let value = assigned(cx, target(column), value, rule)?;
                    let value = value.into_value();
                    cx.frame.rows_mut(slot).set(0, column, value.as_ref());
                }
                Some(Source::Expression(value)) => {
                    with_row(cx, slot, |cx, rows| {
                        assign(cx, rows, target(column), value, rule)
                    })?;
                }
                Some(Source::Constant((value, column_type))) => {
                    with_row(cx, slot, |cx, rows| {
                        assign_value(cx, rows, target(column), (value, column_type), rule)
                    })?;
                }
                Some(Source::Kept {
                    row,
                    column: kept_column,
                    from,
                }) => {
                    let value = self.kept.get(row, kept_column).to_value();
                    let value = Expression::constant(value, from.column_type.clone());
                    with_row(cx, slot, |cx, rows| {
                        assign(cx, rows, target(column), &value, rule)
                    })?;
                }
                None => {
                    let default = self.plan.defaults[column].as_ref();
                    with_row(cx, slot, |cx, rows| {
                        assign_default(cx, rows, target(column), default)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Makes a row of NULLs and of the defaults of the columns without a value.
    fn begin_row<'d>(
        &self,
        cx: &mut Context<'_>,
        target: &dyn Fn(usize) -> Target<'d>,
    ) -> Outcome<()> {
        let slot = self.plan.new_slot;
        cx.frame.slots[slot].row = Some(0);
        let rows = cx.frame.rows_mut(slot);
        rows.clear();
        rows.push_null_row();
        for &column in &self.missing {
            let default = self.plan.defaults[column].as_ref();
            with_row(cx, slot, |cx, rows| {
                assign_missing(cx, rows, target(column), default)
            })?;
        }
        Ok(())
    }

    /// Runs what a value of VALUES needs, from its start unless `filled` says that it was begun.
    fn run_dependents(
        &mut self,
        cx: &mut Context<'_>,
        place: usize,
        filled: Option<usize>,
    ) -> Outcome<()> {
        let InsertSource::Values { dependent, .. } = &self.plan.source else {
            return Ok(());
        };
        let Some(of_value) = dependent.get(&(self.taken, place)) else {
            return Ok(());
        };
        if filled != Some(place) {
            self.dependents = Dependents::new(of_value);
        }
        let ran = self.dependents.run(cx);
        if ran.is_err() {
            self.filled = Some(place);
        }
        ran
    }

    fn null_rule(&self, is_auto_increment: bool) -> NullRule {
        let is_single =
            matches!(&self.plan.source, InsertSource::Values { rows, .. } if rows.len() == 1);
        if is_auto_increment {
            NullRule::Keep
        } else if self.plan.is_load {
            NullRule::Load
        } else if is_single && !self.plan.is_ignore {
            NullRule::Refuse
        } else {
            NullRule::Zero
        }
    }

    /// Fills the AUTO_INCREMENT column if the row has no number of its own.
    fn number(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        self.is_generated = false;
        let table = cx.tables[self.plan.table].clone();
        let definition = table.definition();
        let Some(column) = definition.auto_increment_column() else {
            return Ok(());
        };
        let given = cx.frame.rows(self.plan.new_slot).get(0, column);
        let zero_generates = !cx
            .statement
            .options
            .sql_mode
            .has(SqlMode::NO_AUTO_VALUE_ON_ZERO);
        let generates = given.is_null() || (zero_generates && assign::number_of(given) == Some(0));
        if !generates {
            return Ok(());
        }
        let (step, offset) = (
            cx.statement.options.auto_increment_step,
            cx.statement.options.auto_increment_offset,
        );
        if self.numbers_left == 0
            && let Some(number) = cx.statement.options.insert_id
        {
            self.next_number = number;
            self.numbers_left = u64::MAX;
        }
        if self.numbers_left == 0 {
            let count = self.rows_to_come();
            let request = AutoIncrement::Take {
                count,
                step,
                offset,
            };
            self.next_number = table.take_auto_increment(request)?;
            self.numbers_left = count;
        }
        let number = self.next_number;
        let value = assign::value_of(number, &definition.columns[column])
            .ok_or_else(|| ClientError::new(ER_AUTOINC_READ_FAILED, &[]))?;
        self.next_number = number.saturating_add(step);
        self.numbers_left -= 1;
        self.is_generated = true;
        cx.frame
            .rows_mut(self.plan.new_slot)
            .set(0, column, value.as_ref());
        Ok(())
    }

    /// Rows from the current one to the last, if that is known.
    fn rows_to_come(&self) -> u64 {
        let total = match &self.plan.source {
            InsertSource::Values { rows, .. } => rows.len(),
            InsertSource::Query { is_kept: true, .. } => self.kept.len(),
            InsertSource::Query { .. } => self.taken,
        };
        stdx::to_u64(total - self.taken + 1)
    }

    fn insert(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let table = &cx.tables[self.plan.table];
        let rows = cx.frame.rows(self.plan.new_slot);
        let lock = match &self.plan.duplicate {
            OnDuplicate::Error | OnDuplicate::Ignore => RowLock::Shared,
            OnDuplicate::Replace | OnDuplicate::Update(_) => RowLock::Exclusive,
        };
        let inserted = table.insert(cx.txn, &row_refs(rows), lock)?;
        cx.handler.count(HandlerCall::Write);
        let Inserted::Duplicate { index, key } = inserted else {
            self.summary.affected_rows += 1;
            self.summary.matched_rows += 1;
            self.note_number(cx);
            self.state = State::Pass;
            return Ok(());
        };
        match &self.plan.duplicate {
            OnDuplicate::Error => {
                return Err(duplicate_entry(rows, table.definition(), index).into());
            }
            OnDuplicate::Ignore => {
                cx.statement
                    .warn(duplicate_entry(rows, table.definition(), index));
                self.give_number_back(cx);
                self.state = State::Next;
            }
            OnDuplicate::Replace => {
                let mut indexes = table.definition().indexes.iter();
                let last = indexes.rposition(|it| it.uniqueness != Uniqueness::None);
                self.state = if last == Some(index) {
                    State::Compare
                } else {
                    State::Delete
                };
            }
            OnDuplicate::Update(_) => self.state = State::Find,
        }
        self.duplicate = key;
        self.summary.duplicates += 1;
        Ok(())
    }

    /// Reads the row that REPLACE finds in its way in the last unique index. MariaDB updates such a
    /// row: it meets no other row, so it keeps its place. An identical one counts once and nothing
    /// is written.
    fn compare(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let plan = &self.plan;
        let table = cx.tables[plan.table].clone();
        let batch = cx.frame.batch_mut(plan.old_slot);
        batch.clear();
        let keys = [RowKey(&self.duplicate)];
        let mut is_same = false;
        table.lookup(cx.txn, &keys, RowLock::Exclusive, batch)?;
        let is_there = !batch.is_empty();
        cx.handler.count(HandlerCall::ReadKey);
        if is_there {
            cx.frame.slots[plan.old_slot].row = Some(0);
            let new = cx.frame.rows(plan.new_slot);
            is_same = !differs(cx, plan.old_slot, new, table.definition())?;
            cx.frame.recycle();
        }
        if is_same {
            self.summary.affected_rows += 1;
            self.summary.matched_rows += 1;
            self.note_number(cx);
            self.state = State::Pass;
        } else {
            self.state = match is_there {
                true => State::Rewrite,
                false => State::Insert,
            };
        }
        Ok(())
    }

    /// Puts the new row in the place of the one that was compared.
    fn rewrite(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let table = &cx.tables[self.plan.table];
        let row = row_refs(cx.frame.rows(self.plan.new_slot));
        let key = RowKey(&self.duplicate);
        let mutation = table.update(cx.txn, key, &row, RowLock::Exclusive)?;
        assert_ne!(mutation, Mutation::Changed, "a duplicate is locked");
        cx.handler.count(HandlerCall::Update);
        if mutation != Mutation::Done {
            self.state = State::Insert;
            return Ok(());
        }
        self.summary.affected_rows += 2;
        self.summary.matched_rows += 2;
        self.note_number(cx);
        self.state = State::Pass;
        Ok(())
    }

    /// Notes the row's number, and the first one that the counter assigned.
    fn note_number(&mut self, cx: &Context<'_>) {
        let definition = cx.tables[self.plan.table].definition();
        let Some(column) = definition.auto_increment_column() else {
            return;
        };
        let number = cx.frame.rows(self.plan.new_slot).get(0, column);
        self.summary.last_number = assign::number_of(number).unwrap_or(0);
        if self.is_generated && self.summary.last_insert_id == 0 {
            self.summary.last_insert_id = self.summary.last_number;
        }
    }

    /// Keeps the number of a row that was not inserted for the statement's next row.
    fn give_number_back(&mut self, cx: &Context<'_>) {
        if std::mem::take(&mut self.is_generated) {
            let step = cx.statement.options.auto_increment_step;
            self.next_number = self.next_number.saturating_sub(step);
            self.numbers_left = self.numbers_left.saturating_add(1);
        }
    }

    /// Reports a number to the counter that it did not assign: the row's own, or one after `SET
    /// insert_id`.
    fn pass(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        if self.is_generated && cx.statement.options.insert_id.is_none() {
            return Ok(());
        }
        let table = &cx.tables[self.plan.table];
        let row = cx.frame.rows(self.plan.new_slot);
        pass_number(table.as_ref(), row)?;
        let column = table.definition().auto_increment_column();
        if !self.is_generated
            && let Some(number) = column.and_then(|column| assign::number_of(row.get(0, column)))
        {
            self.skip_to(number, cx.statement.options.auto_increment_step);
        }
        Ok(())
    }

    /// Drops reserved numbers that are not above this one.
    fn skip_to(&mut self, number: u64, step: u64) {
        if self.numbers_left == 0 || number < self.next_number {
            return;
        }
        let skipped = (number - self.next_number) / step.max(1) + 1;
        let skipped = skipped.min(self.numbers_left);
        self.numbers_left -= skipped;
        let by = skipped.saturating_mul(step);
        self.next_number = self.next_number.saturating_add(by);
    }

    /// Reads the conflicting row and computes what happens to it.
    fn find(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let plan = self.plan.clone();
        let OnDuplicate::Update(assignments) = &plan.duplicate else {
            unreachable!("only ON DUPLICATE KEY UPDATE reads the row")
        };
        let table = cx.tables[plan.table].clone();
        let batch = cx.frame.batch_mut(plan.old_slot);
        batch.clear();
        let keys = [RowKey(&self.duplicate)];
        table.lookup(cx.txn, &keys, RowLock::Exclusive, batch)?;
        let is_there = !batch.is_empty();
        cx.handler.count(HandlerCall::ReadKey);
        if !is_there {
            // It is gone: the new row can be inserted.
            self.state = State::Insert;
            return Ok(());
        }
        cx.frame.slots[plan.old_slot].row = Some(0);
        let row_number = stdx::to_u64(self.taken);
        let is_changed = self.change.compute(
            cx,
            plan.old_slot,
            table.definition(),
            NewValues {
                assignments,
                dependents: &mut [],
                defaults: &plan.defaults,
            },
            row_number,
        )?;
        self.give_number_back(cx);
        let (new, definition) = (&self.change.new, table.definition());
        self.state = if is_changed {
            match check::is_allowed(cx, new, definition, plan.is_ignore)? {
                true => State::Update,
                false => State::Next,
            }
        } else {
            // A client that counts found rows counts this one, too.
            self.summary.matched_rows += 1;
            self.show_changed(cx);
            self.written()
        };
        Ok(())
    }

    /// Puts the conflicting row, in its current state, where RETURNING reads it.
    fn show_changed(&self, cx: &mut Context<'_>) {
        if self.plan.returning.is_empty() {
            return;
        }
        let rows = cx.frame.rows_mut(self.plan.new_slot);
        for (column, value) in self.change.refs().into_iter().enumerate() {
            rows.set(0, column, value);
        }
    }

    /// True if ON DUPLICATE KEY UPDATE assigns the column.
    fn changes(&self, column: usize) -> bool {
        match &self.plan.duplicate {
            OnDuplicate::Update(assignments) => assigns(assignments, column),
            _ => false,
        }
    }

    fn update(&mut self, cx: &mut Context<'_>) -> Outcome<()> {
        let table = &cx.tables[self.plan.table];
        let key = RowKey(&self.duplicate);
        let mutation = table.update(cx.txn, key, &self.change.refs(), RowLock::Exclusive)?;
        cx.handler.count(HandlerCall::Update);
        match mutation {
            Mutation::Done => {
                self.summary.affected_rows += 2;
                self.summary.matched_rows += 2;
                let column = table.definition().auto_increment_column();
                if let Some(column) = column {
                    let number = self.change.new.get(0, column);
                    self.summary.last_number = assign::number_of(number).unwrap_or(0);
                }
                let is_numbered = column.is_some_and(|column| self.changes(column));
                self.show_changed(cx);
                self.state = if is_numbered {
                    State::PassChanged
                } else {
                    self.written()
                };
                return Ok(());
            }
            Mutation::Gone => {}
            Mutation::Changed => unreachable!("the row is locked"),
            Mutation::Duplicate { index, .. } => {
                let error = duplicate_entry(&self.change.new, table.definition(), index);
                if !self.plan.is_ignore {
                    return Err(error.into());
                }
                cx.statement.warn(error);
            }
        }
        self.state = State::Next;
        Ok(())
    }
}

/// The source of a column's value.
enum Source<'p> {
    Expression(&'p Expression),
    Constant((ValueRef<'p>, &'p ColumnType)),
    Kept {
        row: usize,
        column: usize,
        from: &'p Expression,
    },
}

/// Runs `fill` on the slot's row, which `fill` does not read: the row is moved out of the frame
/// meanwhile.
fn with_row(
    cx: &mut Context<'_>,
    slot: usize,
    fill: impl FnOnce(&Context<'_>, &mut Rows) -> Outcome<()>,
) -> Outcome<()> {
    let mut rows = std::mem::take(cx.frame.rows_mut(slot));
    let outcome = fill(cx, &mut rows);
    *cx.frame.rows_mut(slot) = rows;
    outcome
}

/// True if a value of the source reads the slot.
fn reads_slot(plan: &Insert, slot: usize) -> bool {
    let InsertSource::Values { rows, .. } = &plan.source else {
        return false;
    };
    let mut values = rows.expressions().iter().flatten().flatten();
    values.any(|value| reads(value, slot))
}

fn reads(value: &Expression, slot: usize) -> bool {
    value
        .contains(&|part| matches!(&part.kind, ExpressionKind::Column(place) if place.slot == slot))
}

/// The columns without a value from the source.
fn missing_columns(plan: &Insert) -> Vec<usize> {
    let mut is_missing = vec![true; plan.defaults.len()];
    for &column in &plan.columns {
        is_missing[column] = false;
    }
    let columns = 0..is_missing.len();
    columns.filter(|&column| is_missing[column]).collect()
}
