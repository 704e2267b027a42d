//! Conditions on the rows of a query in FROM, tested within that query.
//!
//! `SELECT .. FROM (SELECT k, SUM(v) FROM t GROUP BY k) d WHERE d.k = 777` reads the rows of one
//! group: the condition becomes one more of the inner WHERE, where an index of `k` answers it.
//! MariaDB calls this `condition_pushdown_for_derived`. So a query in FROM that is not merged is
//! planned once the conditions on its rows are known.
//!
//! A condition is moved if all columns that it reads are columns of the query's tables, and the
//! query returns the same rows in the end:
//! (P1) It reads nothing else but rows that stay while the query runs: those of outer queries, and,
//! where the query runs for each of them (`lateral`), of tables before it. A second evaluation
//! gives the same.
//! (P2) Of a query with groups it reads terms of GROUP BY alone. So the rows of a group are all
//! taken or all left. DISTINCT is a GROUP BY of all items.
//! (P3) Values that are grouped as equal may still differ (`'a'` and `'A'`). Where they can, the
//! condition compares them as the groups do.
//!
//! Aggregates without GROUP BY return a row also for no rows, and LIMIT takes the first rows of
//! all: no condition is moved below them. Nor below WITH ROLLUP, whose sums are of all groups.

use std::rc::Rc;

use expression::{Class, Expression, ExpressionKind, Test};
use value::{ColumnType, TypeKind};

use crate::PlanError;
use crate::bind::Binder;
use crate::from::{BoundDerived, BoundSelect, DerivedRows};
use crate::plan::{Derived, Node, Query};

impl Binder<'_> {
    /// The node of a query in FROM, with the conditions on its rows tested. It may read the rows in
    /// these slots before it.
    pub(super) fn derived_node(
        &mut self,
        rows: DerivedRows,
        derived: Derived,
        before: &[usize],
        conditions: Vec<Expression>,
    ) -> Result<Node, PlanError> {
        let place = (derived.slot, before);
        let (query, left) = self.derived_query_with(rows, place, conditions)?;
        let node = Node::Derived(query, Rc::new(derived));
        Ok(self.with_filter(node, left))
    }

    /// The query with those of the conditions that it tests itself, and the others.
    fn derived_query_with(
        &mut self,
        rows: DerivedRows,
        (slot, before): (usize, &[usize]),
        conditions: Vec<Expression>,
    ) -> Result<(Rc<Query>, Vec<Expression>), PlanError> {
        let mut bound = match rows {
            DerivedRows::Planned(query) => return Ok((query, conditions)),
            DerivedRows::Bound(bound) => Rc::unwrap_or_clone(bound),
        };
        let mut left = Vec::new();
        for condition in conditions {
            self.spend()?;
            match self.moved(&condition, (slot, before), &bound) {
                Some(moved) => bound.select.conditions.push(moved),
                None => left.push(condition),
            }
        }
        let (query, _) = self.apart(|binder| binder.planned_derived(bound));
        Ok((Rc::new(query?), left))
    }

    /// Plans a query in FROM, away from the blocks around it.
    pub(super) fn planned_derived(&mut self, bound: BoundDerived) -> Result<Query, PlanError> {
        self.blocks.push(bound.block);
        let planned = self.planned_select(bound.select);
        self.blocks.pop();
        Ok(planned?.query)
    }

    /// The condition as one on the rows of the query's tables, if it may be tested there.
    pub(super) fn moved(
        &self,
        condition: &Expression,
        (slot, before): (usize, &[usize]),
        bound: &BoundDerived,
    ) -> Option<Expression> {
        let BoundDerived { select, block } = bound;
        let in_reach: Vec<usize> = before.iter().copied().chain([slot]).collect();
        let is_of_rows = condition.slots().contains(&slot) && self.is_of_item(condition, &in_reach);
        let has_steps = !condition.subqueries().is_empty();
        if !is_of_rows || has_steps || condition.is_volatile() || self.varies(condition) {
            return None;
        }
        let is_grouped = !select.parts.keys.list().is_empty();
        let has_calls = !block.calls.list().is_empty();
        if select.with_rollup || select.limit.is_some() || (has_calls && !is_grouped) {
            return None;
        }
        let mut can_be = true;
        condition.walk(&mut |part| {
            if let ExpressionKind::Column(place) = part.kind
                && place.slot == slot
            {
                let item = &select.parts.output[place.column];
                can_be &= item.as_column().is_some()
                    && (!is_grouped || select.parts.keys.find(item).is_some())
                    && (is_same_for_group(select, item) || compares(condition, part, item));
            }
            can_be
        });
        can_be.then(|| {
            let mut moved = condition.clone();
            read_items(&mut moved, slot, &select.parts.output);
            moved
        })
    }
}

/// True if an item is the same in all rows that become one row.
fn is_same_for_group(select: &BoundSelect, item: &Expression) -> bool {
    let becomes_one = !select.parts.keys.list().is_empty() || select.is_distinct;
    !becomes_one || are_equal_alike(&item.column_type)
}

/// True if equal values of a type do not differ in anything.
fn are_equal_alike(column_type: &ColumnType) -> bool {
    use TypeKind as Kind;
    matches!(
        column_type.kind,
        Kind::TinyInt
            | Kind::SmallInt
            | Kind::MediumInt
            | Kind::Int
            | Kind::BigInt
            | Kind::Decimal
            | Kind::Bit
            | Kind::Year
            | Kind::Date
            | Kind::Time
            | Kind::DateTime
            | Kind::Timestamp
            | Kind::Enum
            | Kind::Set
    )
}

/// True if a condition compares a column with other values as the texts of an item are compared for
/// groups.
fn compares(condition: &Expression, column: &Expression, item: &Expression) -> bool {
    let is_other = |it: &Expression| !it.contains(&|part| part == column);
    let is_alike = |class: Class| class == Class::Text(item.column_type.collation);
    match &condition.kind {
        ExpressionKind::Compare(compare) => {
            let (left, right) = (&compare.left, &compare.right);
            let is_plain =
                (left == column && is_other(right)) || (is_other(left) && right == column);
            is_plain && is_alike(compare.class)
        }
        ExpressionKind::In(list) => {
            let are_others = list.list.expressions().iter().all(is_other);
            list.operand == *column && are_others && is_alike(list.class)
        }
        ExpressionKind::Is {
            operand,
            test: Test::Null,
            ..
        } => **operand == *column,
        _ => false,
    }
}

/// Makes an expression read the items in place of the columns that they become.
fn read_items(expression: &mut Expression, slot: usize, items: &[Expression]) {
    match expression.kind {
        ExpressionKind::Column(place) if place.slot == slot => {
            *expression = items[place.column].clone();
        }
        _ => expression.for_each_child_mut(&mut |child| read_items(child, slot, items)),
    }
}
