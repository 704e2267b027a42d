//! MIN and MAX of columns, read by an index.
//!
//! The first row in the order of a column has its least value, the last one its greatest. So
//! `SELECT MIN(a), MAX(b) .. WHERE k = 1` reads two rows, one for each call, and aggregates these:
//! each is among the rows that the conditions keep, so neither changes the result of the other.
//! Texts may be equal and yet look different. Of these a call returns the first, which may be in
//! the row of another call, so there one call alone is read by an index.

use std::rc::Rc;

use expression::{AggregateCall, AggregateKind, ColumnPlace, Expression};
use value::{ColumnType, TypeKind, Value};

use crate::PlanError;
use crate::access::{WantedOrder, WantedRows};
use crate::bind::Binder;
use crate::from::{From, SelectParts, Source};
use crate::plan::{Limit, Node};

impl Binder<'_> {
    /// One row for each MIN or MAX of a column, if a SELECT asks for nothing else, and an index
    /// answers all conditions and gives the order of each. A locking SELECT locks these rows alone,
    /// as in MariaDB.
    pub(super) fn extreme_rows(
        &mut self,
        from: &From,
        conditions: &[Expression],
        (parts, calls, own_slots): (&SelectParts, &[AggregateCall], &[usize]),
    ) -> Result<Option<Node>, PlanError> {
        let orders = self.extreme_orders(parts, calls, own_slots);
        let can_be = match orders.as_slice() {
            [_] => true,
            _ => are_apart(from, conditions, calls),
        };
        if !can_be || !self.are_first_rows(from, conditions, &orders) {
            return Ok(None);
        }
        let sole_slot = self.sole_slot;
        let mut inputs = Vec::with_capacity(orders.len());
        for wanted in &orders {
            self.sole_slot = sole_slot;
            let (node, is_ordered) =
                self.plan_from(from.clone(), conditions.to_vec(), Some(wanted))?;
            inputs.push(match is_ordered {
                true => first_row(node),
                false => node,
            });
        }
        Ok(match inputs.len() {
            0 | 1 => inputs.pop(),
            _ => Some(Node::Append(inputs)),
        })
    }

    /// True if the sole table has an index for each of these orders.
    fn are_first_rows(
        &self,
        from: &From,
        conditions: &[Expression],
        orders: &[WantedOrder],
    ) -> bool {
        let [item] = from.items.as_slice() else {
            return false;
        };
        let Source::Table { table, slot, hints } = &item.source else {
            return false;
        };
        let all = from.conditions.iter().chain(conditions);
        let is_of_row = |it: &&Expression| !self.own_slots_read(it, &[*slot]).is_empty();
        let of_row: Vec<&Expression> = all.filter(is_of_row).collect();
        orders.iter().all(|wanted| {
            let access = self.choose_access(*table, *slot, hints, &of_row, Some(wanted));
            access.is_ordered
        })
    }

    /// The orders whose first rows are those of the calls, or none if another row is needed.
    fn extreme_orders(
        &self,
        parts: &SelectParts,
        calls: &[AggregateCall],
        own_slots: &[usize],
    ) -> Vec<WantedOrder> {
        let is_own = |place: &ColumnPlace| own_slots.contains(&place.slot);
        let reads_row = |expression: &Expression| {
            let read = self.slots_of(expression);
            read.iter().any(|slot| own_slots.contains(slot))
        };
        let order = parts.order.iter().map(|(key, _)| key);
        let mut above = parts.output.iter().chain(&parts.having).chain(order);
        if !parts.keys.list().is_empty() || above.any(reads_row) {
            return Vec::new();
        }
        let order_of = |call: &AggregateCall| {
            let is_descending = match call.function {
                AggregateKind::Min => false,
                AggregateKind::Max => true,
                _ => return None,
            };
            let place = call.arguments.first()?.as_column().filter(is_own)?;
            Some(WantedOrder {
                columns: vec![(place, is_descending)],
                rows: WantedRows::Extreme,
                row_count: 1.0,
            })
        };
        let orders: Option<Vec<WantedOrder>> = calls.iter().map(order_of).collect();
        orders.unwrap_or_default()
    }
}

/// True if several calls may each have a row of their own.
fn are_apart(from: &From, conditions: &[Expression], calls: &[AggregateCall]) -> bool {
    // Each row has a plan of its own, and a query runs in one place alone.
    let has_query = |it: &Expression| !it.subqueries().is_empty();
    let shows_equals_alike = |call: &AggregateCall| {
        let column_type = &call.column_type;
        !column_type.kind.is_bytes() || column_type.is_binary()
    };
    !from.conditions.iter().chain(conditions).any(has_query) && calls.iter().all(shows_equals_alike)
}

/// Only the first row of a node.
fn first_row(node: Node) -> Node {
    let one = Expression::constant(Value::Int(1), ColumnType::new(TypeKind::BigInt));
    let limit = Limit {
        count: Some(one),
        offset: None,
        counts_all: false,
    };
    Node::Limit(Box::new(node), Rc::new(limit))
}
