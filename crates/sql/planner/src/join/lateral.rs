//! A query in FROM that runs for each row before it.
//!
//! `customers c JOIN (SELECT customer, SUM(total) FROM orders GROUP BY customer) t ON t.customer =
//! c.id WHERE c.email = ..` reads the orders of one customer, not of all: the equality becomes a
//! condition of the inner query (`condition_pushdown`), which finds its rows by an index. MariaDB
//! calls this a lateral derived table. It is chosen if an index answers the equality, and if so
//! many look-ups cost less than to run the query once and to look its rows up in a hash table.

use expression::Expression;

use super::semi_join::lookup_cost;
use crate::PlanError;
use crate::bind::Binder;
use crate::estimate::rows_given;
use crate::from::{BoundDerived, DerivedRows, Item, Source};
use crate::plan::{Derived, DerivedRun, JoinKind, Node};

impl Binder<'_> {
    /// True if it is better to run the query of an item for each row of the left side than once.
    pub(super) fn is_lateral_better(
        &self,
        left: &Node,
        item: &Item,
        conditions: &[Expression],
        placed: &[usize],
    ) -> bool {
        let Source::Derived {
            slot,
            rows: DerivedRows::Bound(bound),
            ..
        } = &item.source
        else {
            return false;
        };
        let conditions = conditions.iter();
        let moved = conditions.filter_map(|it| self.moved(it, (*slot, placed), bound));
        let moved: Vec<Expression> = moved.collect();
        let reads_left = |it: &Expression| it.slots().iter().any(|slot| placed.contains(slot));
        // A stored function is called as often as the query reads rows when it runs once.
        if !moved.iter().any(reads_left) || !self.functions.is_empty() {
            return false;
        }
        let is_cheaper = |inner: &Item| {
            let costs = self.lookup_costs(inner, bound, &moved, placed);
            costs.is_some_and(|(each, all)| lookup_cost(rows_given(left), each) < all)
        };
        let inner = &bound.select.from.items;
        let found = inner.iter().position(is_cheaper);
        found.is_some_and(|found| {
            let mut others = inner
                .iter()
                .enumerate()
                .filter(|(place, _)| *place != found);
            others.all(|(_, other)| self.is_looked_up(other, bound))
        })
    }

    /// What it costs to find the rows of an inner table for one row of the left side, by the moved
    /// conditions, and to read those that the query reads otherwise. `None` if no index finds them.
    fn lookup_costs(
        &self,
        inner: &Item,
        bound: &BoundDerived,
        moved: &[Expression],
        placed: &[usize],
    ) -> Option<(f64, f64)> {
        let Source::Table { table, slot, hints } = &inner.source else {
            return None;
        };
        let own = self.conditions_within(bound, &[*slot]);
        let reads_slot = |it: &&Expression| it.slots().contains(slot);
        let mut with_moved = own.clone();
        with_moved.extend(moved.iter().filter(reads_slot));
        let each = self.choose_access(*table, *slot, hints, &with_moved, None);
        let reads_left = |value: &Expression| value.slots().iter().any(|it| placed.contains(it));
        let is_found = inner.kind == JoinKind::Inner && each.any_equal_value(&reads_left);
        let all = self.choose_access(*table, *slot, hints, &own, None);
        is_found.then_some((each.cost, all.cost))
    }

    /// True if an index finds the rows of an inner table for those of the others. Otherwise it
    /// would be read to its end in each run.
    fn is_looked_up(&self, inner: &Item, bound: &BoundDerived) -> bool {
        let Source::Table { table, slot, hints } = &inner.source else {
            return false;
        };
        let slots = bound.select.from.slots();
        let mut visible = self.conditions_within(bound, &slots);
        visible.extend(&inner.on);
        visible.retain(|it| it.slots().contains(slot));
        let reads_other = |value: &Expression| {
            value
                .slots()
                .iter()
                .any(|it| it != slot && slots.contains(it))
        };
        let access = self.choose_access(*table, *slot, hints, &visible, None);
        access.any_equal_value(&reads_other)
    }

    /// The conditions of a query that read nothing but these of its slots.
    fn conditions_within<'b>(
        &self,
        bound: &'b BoundDerived,
        slots: &[usize],
    ) -> Vec<&'b Expression> {
        let all = bound.select.from.conditions.iter();
        let is_within =
            |it: &&Expression| self.slots_of(it).iter().all(|read| slots.contains(read));
        all.chain(&bound.select.conditions)
            .filter(is_within)
            .collect()
    }

    /// The node of an item whose query runs for each of the placed rows.
    pub(super) fn lateral_node(
        &mut self,
        item: Item,
        conditions: Vec<Expression>,
        placed: &[usize],
    ) -> Result<Node, PlanError> {
        let Source::Derived {
            slot, rows, origin, ..
        } = item.source
        else {
            unreachable!("only a query in FROM is better so");
        };
        let run = DerivedRun::EachRow;
        let derived = Derived { slot, run, origin };
        self.derived_node(rows, derived, placed, conditions)
    }
}
