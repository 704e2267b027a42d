//! [`RowChange`]: applies assignments to an existing row.

use expression::{Expression, Rows, SlotContent, compare_values};
use planner::Assignment;
use smallvec::SmallVec;
use store::{RowBatch, TableDefinition};
use value::ValueRef;

use super::assign::{Assigned, NullRule, Target, assign, assign_default, assigned};
use crate::Outcome;
use crate::context::Context;
use crate::context::dependents::Dependents;

/// A row that is being changed; its buffer is reused.
#[derive(Debug, Default)]
pub(super) struct RowChange {
    /// The new row.
    pub(super) new: Rows,
    /// The stored row and its place, while an assignment reads the new one in its slot.
    stored: Option<(RowBatch, Option<usize>)>,
    /// How many assignments are done, while what the next one needs has suspended.
    done: Option<usize>,
}

/// What a row is to become.
#[derive(Debug)]
pub(super) struct NewValues<'v> {
    pub(super) assignments: &'v [Assignment],
    /// What runs before each assignment; none if all has run.
    pub(super) dependents: &'v mut [Dependents],
    /// `DEFAULT` of each column that has an expression for it.
    pub(super) defaults: &'v [Option<Expression>],
}

impl RowChange {
    /// Drops a half-done change.
    pub(super) fn rewind(&mut self) {
        self.done = None;
    }

    /// Applies the assignments to the slot's current row. Each, with what runs before it, sees the
    /// results of those before it, as in MySQL. Called again after a suspension, it continues.
    /// Returns true if the row differs afterwards.
    pub(super) fn compute(
        &mut self,
        cx: &mut Context<'_>,
        slot: usize,
        definition: &TableDefinition,
        values: NewValues<'_>,
        row_number: u64,
    ) -> Outcome<bool> {
        let NewValues {
            assignments,
            dependents,
            defaults,
        } = values;
        let done = self.done.take();
        if done.is_none() {
            self.load(cx, slot, definition.columns.len())?;
        }
        for (place, assignment) in assignments.iter().enumerate().skip(done.unwrap_or(0)) {
            if let Some(own) = dependents.get_mut(place).filter(|it| !it.is_empty()) {
                self.show_new(cx, slot);
                let ran = own.run(cx);
                self.hide_new(cx, slot);
                if ran.is_err() {
                    self.done = Some(place);
                }
                ran?;
            }
            let column = assignment.column;
            let target = Target {
                definition,
                column,
                row_number,
            };
            match &assignment.value {
                Some(value) if assignment.reads_assigned => {
                    self.show_new(cx, slot);
                    let value = assigned(cx, target, value, NullRule::Zero);
                    let value = value.map(Assigned::into_value);
                    self.hide_new(cx, slot);
                    self.new.set(0, column, value?.as_ref());
                }
                Some(value) => assign(cx, &mut self.new, target, value, NullRule::Zero)?,
                None => {
                    let default = defaults.get(column).and_then(Option::as_ref);
                    assign_default(cx, &mut self.new, target, default)?;
                }
            }
        }
        let is_changed = differs(cx, slot, &self.new, definition)?;
        if is_changed {
            self.touch(cx, definition, assignments)?;
        }
        cx.frame.recycle();
        Ok(is_changed)
    }

    /// Assigns values computed earlier to the slot's current row. Returns true if it differs
    /// afterwards.
    pub(super) fn take(
        &mut self,
        cx: &mut Context<'_>,
        slot: usize,
        definition: &TableDefinition,
        assignments: &[Assignment],
        (values, row): (&Rows, usize),
    ) -> Outcome<bool> {
        self.load(cx, slot, definition.columns.len())?;
        for (place, assignment) in assignments.iter().enumerate() {
            self.new.set(0, assignment.column, values.get(row, place));
        }
        let is_changed = differs(cx, slot, &self.new, definition)?;
        if is_changed {
            self.touch(cx, definition, assignments)?;
        }
        cx.frame.recycle();
        Ok(is_changed)
    }

    /// Copies the slot's current row.
    fn load(&mut self, cx: &Context<'_>, slot: usize, width: usize) -> Outcome<()> {
        if self.new.width() != width {
            self.new = Rows::new(width);
        }
        self.new.clear();
        for column in 0..width {
            self.new.push(cx.frame.column(slot, column)?);
        }
        Ok(())
    }

    /// Puts the new row in the slot in place of the stored one, for a value that reads it.
    fn show_new(&mut self, cx: &mut Context<'_>, slot: usize) {
        let shown = &mut cx.frame.slots[slot];
        let new = SlotContent::Rows(std::mem::take(&mut self.new));
        let SlotContent::Batch(batch) = std::mem::replace(&mut shown.content, new) else {
            unreachable!("the slot holds rows of a table");
        };
        self.stored = Some((batch, shown.row.replace(0)));
    }

    /// Restores the stored row.
    fn hide_new(&mut self, cx: &mut Context<'_>, slot: usize) {
        let shown = &mut cx.frame.slots[slot];
        let (batch, row) = self.stored.take().expect("the stored row stands aside");
        let stored = SlotContent::Batch(batch);
        let SlotContent::Rows(new) = std::mem::replace(&mut shown.content, stored) else {
            unreachable!("the slot shows the new row");
        };
        shown.row = row;
        self.new = new;
    }

    /// Sets the `ON UPDATE CURRENT_TIMESTAMP` columns that were not assigned.
    fn touch(
        &mut self,
        cx: &Context<'_>,
        definition: &TableDefinition,
        assignments: &[Assignment],
    ) -> Outcome<()> {
        for (column, column_definition) in definition.columns.iter().enumerate() {
            if column_definition.on_update_now
                && assignments
                    .iter()
                    .all(|assignment| assignment.column != column)
            {
                let now = expression::now_for(&column_definition.column_type, cx.statement);
                self.new.set(0, column, now.as_ref());
            }
        }
        Ok(())
    }

    /// The new row, as the store takes it.
    pub(super) fn refs(&self) -> SmallVec<[ValueRef<'_>; 16]> {
        self.new.row(0).collect()
    }
}

/// True if the slot's current row differs from the first of `new`.
pub(super) fn differs(
    cx: &Context<'_>,
    slot: usize,
    new: &Rows,
    definition: &TableDefinition,
) -> Outcome<bool> {
    for (column, column_definition) in definition.columns.iter().enumerate() {
        let old = cx.frame.column(slot, column)?;
        let new = new.get(0, column);
        let is_same = match (old, new) {
            // Equal in the collation is not identical: 'a' may become 'A'.
            (ValueRef::Bytes(old), ValueRef::Bytes(new)) => old == new,
            _ => compare_values(old, new, &column_definition.column_type).is_eq(),
        };
        if !is_same {
            return Ok(true);
        }
    }
    Ok(false)
}
