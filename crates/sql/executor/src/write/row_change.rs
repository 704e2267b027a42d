//! [`RowChange`]: what assignments make of an existing row.

use expression::{Expression, Rows, SlotContent, compare_values};
use planner::Assignment;
use smallvec::SmallVec;
use store::{RowBatch, TableDefinition};
use value::ValueRef;

use super::assign::{NullRule, assign, assign_default};
use crate::Outcome;
use crate::context::Context;

/// A row being changed; its buffer is reused.
#[derive(Debug, Default)]
pub(super) struct RowChange {
    /// The new row.
    pub(super) new: Rows,
    /// The stored row and its place, while an assignment reads the new one in its slot.
    stored: Option<(RowBatch, Option<usize>)>,
}

impl RowChange {
    /// Applies the assignments to the slot's current row. Each sees the columns as the ones
    /// before it left them, as in MySQL. True if the row differs afterwards.
    pub(super) fn compute(
        &mut self,
        cx: &mut Context<'_>,
        slot: usize,
        definition: &TableDefinition,
        assignments: &[Assignment],
        defaults: &[Option<Expression>],
        row_number: u64,
    ) -> Outcome<bool> {
        self.load(cx, slot, definition.columns.len())?;
        let reads_itself = assignments.len() > 1;
        for (place, assignment) in assignments.iter().enumerate() {
            // The first assignment reads the row as it is; later ones read what was assigned.
            let exchanged = reads_itself && place > 0;
            let mut rows = std::mem::take(&mut self.new);
            if exchanged {
                self.new = rows.clone();
                self.show_new(cx, slot);
            }
            let outcome = match &assignment.value {
                Some(value) => {
                    let rule = NullRule::Zero;
                    let column = assignment.column;
                    assign(cx, &mut rows, definition, column, value, row_number, rule)
                }
                None => {
                    let default = defaults.get(assignment.column).and_then(Option::as_ref);
                    let column = assignment.column;
                    assign_default(cx, &mut rows, definition, column, default, row_number)
                }
            };
            if exchanged {
                self.show_new(cx, slot);
            }
            self.new = rows;
            outcome?;
        }
        let is_changed = self.differs(cx, slot, definition)?;
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

    /// Exchanges the slot's stored row with the copy, or back.
    fn show_new(&mut self, cx: &mut Context<'_>, slot: usize) {
        let shown = &mut cx.frame.slots[slot];
        let new = SlotContent::Rows(std::mem::take(&mut self.new));
        match std::mem::replace(&mut shown.content, new) {
            SlotContent::Batch(batch) => {
                self.stored = Some((batch, shown.row));
                shown.row = Some(0);
            }
            SlotContent::Rows(_) => {
                let (batch, row) = self.stored.take().expect("the stored row stands aside");
                shown.content = SlotContent::Batch(batch);
                shown.row = row;
            }
        }
    }

    fn differs(
        &self,
        cx: &Context<'_>,
        slot: usize,
        definition: &TableDefinition,
    ) -> Outcome<bool> {
        for (column, column_definition) in definition.columns.iter().enumerate() {
            let old = cx.frame.column(slot, column)?;
            let new = self.new.get(0, column);
            let is_same = match (old, new) {
                // Equal in the collation is not the same: 'a' may become 'A'.
                (ValueRef::Bytes(old), ValueRef::Bytes(new)) => old == new,
                _ => compare_values(old, new, &column_definition.column_type).is_eq(),
            };
            if !is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets `ON UPDATE CURRENT_TIMESTAMP` columns that were not assigned.
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
