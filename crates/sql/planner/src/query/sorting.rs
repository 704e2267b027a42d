//! ORDER BY: what a sort keeps of each row, and what is computed behind it.

use std::rc::Rc;

use expression::{ColumnPlace, Expression, ExpressionKind};
use value::ColumnType;

use super::merged;
use crate::bind::Binder;
use crate::numbered::Numbered;
use crate::plan::{Dependent, Limit, Node, SlotShape, Sort, SortKey};

/// What a sort does beside sorting.
#[derive(Debug, Default)]
pub(super) struct SortWork {
    /// Only the first rows are wanted.
    pub(super) limit: Option<Limit>,
    /// Slots whose rows become current again with the sorted ones.
    pub(super) kept_slots: Vec<usize>,
    /// Subqueries and calls of the output, to run for each row.
    pub(super) dependent: Vec<Dependent>,
}

impl Binder<'_> {
    /// Sorts the rows. Expressions are computed after the sort if possible. So `@n := @n + 1`
    /// numbers the rows in output order, and rows that LIMIT drops cost nothing and cause no
    /// warnings.
    pub(super) fn sorted_rows(
        &mut self,
        input: Node,
        output: &mut [Expression],
        keys: &[(Expression, bool)],
        limit: Option<Limit>,
    ) -> Node {
        let is_late = |expression: &Expression| self.is_late(expression, keys, limit.as_ref());
        let are_late: Vec<bool> = output.iter().map(is_late).collect();
        let mut kept_slots = Vec::new();
        let mut read = Numbered::default();
        for (expression, is_late) in output.iter().zip(&are_late) {
            if *is_late {
                kept_slots = merged(kept_slots, self.rows_read(expression));
                expression.walk(&mut |part| {
                    if matches!(part.kind, ExpressionKind::Column(_)) {
                        read.place_of(part);
                    }
                    true
                });
            } else {
                read.place_of(expression);
            }
        }
        let mut sorted = read.list().to_vec();
        let work = SortWork {
            limit,
            kept_slots,
            dependent: Vec::new(),
        };
        let node = self.sorted(input, &mut sorted, keys, work);
        for (expression, is_late) in output.iter_mut().zip(are_late) {
            if is_late {
                read_columns(expression, &read, &sorted);
            } else {
                let place = read.find(expression).expect("it was put there");
                *expression = sorted[place].clone();
            }
        }
        node
    }

    /// Whether to compute an expression of the list after the sort. That applies to side effects
    /// and volatile values; before a LIMIT also to everything that reads no long values, since
    /// these should not be kept. It does not apply to sort keys. Where a sort key varies, all that
    /// does is computed with it, from left to right. A subquery that reads the row needs that row
    /// to be kept, so it is late only where few rows are.
    fn is_late(
        &self,
        expression: &Expression,
        keys: &[(Expression, bool)],
        limit: Option<&Limit>,
    ) -> bool {
        let is_ordered_by = |key: &Expression| key.contains(&|part| part == expression);
        if expression.as_column().is_some() || keys.iter().any(|(key, _)| is_ordered_by(key)) {
            return false;
        }
        let varies = self.varies(expression);
        let reads_row = |number: &usize| !self.subquery_slots[*number].is_empty();
        if expression.subqueries().iter().any(reads_row) {
            let are_few = limit.is_some_and(|limit| !limit.counts_all);
            let rows = self.rows_read(expression);
            return are_few && !varies && !rows.iter().any(|slot| self.has_long_values(*slot));
        }
        let reads_long = |part: &Expression| {
            matches!(part.kind, ExpressionKind::Column(_)) && part.column_type.kind.is_blob()
        };
        if varies {
            return !keys.iter().any(|(key, _)| self.varies(key));
        }
        expression.is_volatile()
            || expression.acts()
            || (limit.is_some() && !expression.contains(&reads_long))
    }

    /// The slots of the current query whose rows the subqueries of an expression read.
    fn rows_read(&self, expression: &Expression) -> Vec<usize> {
        let own_slots = self.blocks.last().map(|block| block.scope.slots());
        let numbers = expression.subqueries().into_iter();
        let read = numbers.flat_map(|number| self.subquery_slots[number].iter().copied());
        let is_own = |slot: &usize| own_slots.as_ref().is_some_and(|own| own.contains(slot));
        merged(Vec::new(), read.filter(is_own).collect())
    }

    /// True if a row of the slot may hold a long value that is read.
    fn has_long_values(&self, slot: usize) -> bool {
        let is_long = |column_type: &ColumnType| column_type.kind.is_blob();
        match &self.slots[slot] {
            SlotShape::Table(table) => {
                let columns = &self.tables[*table].definition.columns;
                let place = |column| ColumnPlace { slot, column };
                let mut used = self.used_columns.range(place(0)..=place(usize::MAX));
                used.any(|(place, _)| is_long(&columns[place.column].column_type))
            }
            SlotShape::Computed(types) => types.iter().any(is_long),
            SlotShape::Groups(_) => true,
        }
    }

    /// Adds a sort above a node; the outputs then read its slot.
    pub(super) fn sorted(
        &mut self,
        input: Node,
        output: &mut [Expression],
        keys: &[(Expression, bool)],
        work: SortWork,
    ) -> Node {
        let SortWork {
            limit,
            kept_slots,
            dependent,
        } = work;
        let mut kept = Numbered::default();
        let places: Vec<usize> = output
            .iter()
            .map(|expression| kept.place_of(expression))
            .collect();
        let keys: Vec<SortKey> = keys
            .iter()
            .map(|(key, descending)| SortKey {
                kept: kept.place_of(key),
                descending: *descending,
            })
            .collect();
        let mut kept = kept.into_list();
        self.evaluate_in_turn(&mut kept);
        let slot = self.computed_slot(&kept);
        let mut all_dependent = self.dependents(&kept);
        all_dependent.extend(
            dependent
                .into_iter()
                .filter(|it| !kept_has(&kept, it.number())),
        );
        for (expression, column) in output.iter_mut().zip(places) {
            let place = ColumnPlace { slot, column };
            *expression =
                Expression::column(place, expression.column_type.clone(), expression.nullable);
        }
        let counts_all = limit.as_ref().is_some_and(|limit| limit.counts_all);
        let sort_limit = if counts_all { None } else { limit.clone() };
        let sort = Sort {
            slot,
            kept,
            kept_slots,
            keys,
            limit: sort_limit,
            dependent: all_dependent,
        };
        let node = Node::Sort(Box::new(input), Rc::new(sort));
        match limit.filter(|_| counts_all) {
            Some(limit) => Node::Limit(Box::new(node), Rc::new(limit)),
            None => node,
        }
    }
}

/// True if one of the expressions uses the subquery.
fn kept_has(kept: &[Expression], number: usize) -> bool {
    kept.iter()
        .any(|expression| expression.subqueries().contains(&number))
}

/// Makes an expression read the columns where a sort has put them.
fn read_columns(expression: &mut Expression, read: &Numbered<Expression>, sorted: &[Expression]) {
    if let ExpressionKind::Column(_) = expression.kind {
        let place = read.find(expression).expect("all columns are kept");
        *expression = sorted[place].clone();
    } else {
        expression.for_each_child_mut(&mut |child| read_columns(child, read, sorted));
    }
}
