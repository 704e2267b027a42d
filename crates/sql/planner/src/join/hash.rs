//! The choice between a hash join and a nested loop, by cost.
//!
//! A nested loop starts the right side again for each row of the left. It is best if the left row
//! finds its partners through an index: it keeps nothing, returns its first row at once and locks
//! only what it returns. The index may instead be narrowed only by a condition on the right side
//! (`b.id < 10`), or by a range from the left row. Then that part would be read for each left row.
//! The hash join reads the right side once, through an index if one narrows it, and looks up by the
//! equalities.

use std::rc::Rc;

use expression::{CompareOperator, Expression, ExpressionKind};

use crate::PlanError;
use crate::access::{AccessChoice, Hints};
use crate::bind::Binder;
use crate::estimate::rows_given;
use crate::from::{From, Item, Source};
use crate::plan::{HashJoin, HashKey, JoinKind, Node, TableHolds};

/// The cost of each start of a nested loop's right side, in addition to the rows read there.
pub(super) const START_COST: f64 = 2.0;

/// Building reads a row and keeps it with its key; a lookup builds a key and finds it.
const BUILD_COST: f64 = 2.0;

/// An index lookup into a group of tables costs as much as reading this many of the group's rows.
/// Estimates of a group are of its first table alone.
const GROUP_ROWS: f64 = 20.0;

impl Binder<'_> {
    /// The conditions, by position, whose two sides are the best keys for a hash join of an item.
    /// `None` if a nested loop is better.
    pub(super) fn try_hash_join(
        &self,
        left: &Node,
        item: &Item,
        conditions: &[Expression],
        placed: &[usize],
    ) -> Option<Vec<usize>> {
        let is_key = |condition: &Expression| self.hash_key(condition, &item.slots, placed);
        let equal: Vec<usize> = conditions
            .iter()
            .enumerate()
            .filter(|(_, condition)| is_key(condition).is_some())
            .map(|(place, _)| place)
            .collect();
        if equal.is_empty() {
            return None;
        }
        let left_rows = rows_given(left);
        let is_better = match &item.source {
            Source::Table { table, slot, hints } => {
                self.is_hash_better(left_rows, (*table, *slot, hints), conditions)
            }
            Source::Group(from) => self.is_group_hash_better(left_rows, from, item, conditions),
            Source::Derived { .. } | Source::Latest(_) => true,
        };
        is_better.then_some(equal)
    }

    /// Compares the two ways to join a table.
    fn is_hash_better(
        &self,
        left_rows: f64,
        (table, slot, hints): (usize, usize, &Hints),
        conditions: &[Expression],
    ) -> bool {
        let visible: Vec<&Expression> = conditions.iter().collect();
        let looped = self.choose_access(table, slot, hints, &visible, None);
        if looped.reads_all() {
            return true;
        }
        if self.is_lookup(&looped, &[slot]) {
            return false;
        }
        let own: Vec<&Expression> = conditions
            .iter()
            .filter(|condition| self.is_of_item(condition, &[slot]))
            .collect();
        let built = self.choose_access(table, slot, hints, &own, None);
        let hash_cost = built.cost + built.rows * (BUILD_COST - 1.0) + left_rows;
        hash_cost < left_rows * (START_COST + looped.cost)
    }

    /// As [`Binder::is_hash_better`], for several tables that are first joined with each other.
    fn is_group_hash_better(
        &self,
        left_rows: f64,
        from: &From,
        item: &Item,
        conditions: &[Expression],
    ) -> bool {
        let mut rows = 0.0;
        let mut is_found = false;
        for part in &from.items {
            let Source::Table { table, slot, hints } = &part.source else {
                continue;
            };
            let reads_slot = |condition: &&Expression| {
                let read = self.slots_of(condition);
                read.iter().all(|it| it == slot || !item.slots.contains(it))
            };
            let visible: Vec<&Expression> = conditions.iter().filter(reads_slot).collect();
            let access = self.choose_access(*table, *slot, hints, &visible, None);
            is_found |= part.kind == JoinKind::Inner && self.is_lookup(&access, &item.slots);
            rows += self.choose_access(*table, *slot, hints, &[], None).rows;
        }
        !is_found || rows < left_rows * GROUP_ROWS
    }

    /// True if an access finds rows by a value from rows of other tables of the query.
    fn is_lookup(&self, choice: &AccessChoice<'_>, item: &[usize]) -> bool {
        choice.any_equal_value(&|value| !self.is_of_item(value, item))
    }

    /// True if the condition reads, of this query's tables, only the item's. It must not read those
    /// placed before it, nor, if the item is in a group, those outside the group, whose rows change
    /// while the hash table stays.
    pub(super) fn is_of_item(&self, condition: &Expression, item: &[usize]) -> bool {
        let block = self.blocks.last().expect("a block is bound");
        let own = block.scope.slots();
        let is_of_query = |slot: &usize| own.contains(slot) || block.set_slots.contains(slot);
        let read = self.slots_of(condition);
        read.iter()
            .all(|slot| item.contains(slot) || !is_of_query(slot))
    }

    /// The equality between placed slots and the item's own. The placed side may also read rows
    /// outside the query or the group, since they do not change during a lookup.
    fn hash_key(&self, condition: &Expression, own: &[usize], placed: &[usize]) -> Option<HashKey> {
        let ExpressionKind::Compare(compare) = &condition.kind else {
            return None;
        };
        let null_safe = match compare.operator {
            CompareOperator::Equal => false,
            CompareOperator::NullSafeEqual => true,
            _ => return None,
        };
        if !condition.subqueries().is_empty() {
            return None;
        }
        let is_left = |side: &Expression| {
            let read = side.slots();
            read.iter().any(|slot| placed.contains(slot))
                && !read.iter().any(|slot| own.contains(slot))
        };
        let is_right = |side: &Expression| {
            side.slots().iter().any(|slot| own.contains(slot)) && self.is_of_item(side, own)
        };
        let (left, right) = (&compare.left, &compare.right);
        let (left, right) = match (is_left(left), is_right(right)) {
            (true, true) => (left, right),
            _ if is_left(right) && is_right(left) => (right, left),
            _ => return None,
        };
        Some(HashKey {
            left: left.clone(),
            right: right.clone(),
            class: compare.class,
            null_safe,
        })
    }

    pub(super) fn hash_joined(
        &mut self,
        left: Node,
        item: Item,
        conditions: Vec<Expression>,
        placed: &[usize],
        equal: &[usize],
    ) -> Result<Node, PlanError> {
        let kind = item.kind;
        let slots = item.slots.clone();
        let (mut own, mut residual) = (Vec::new(), Vec::new());
        let mut keys = Vec::with_capacity(equal.len());
        for (place, condition) in conditions.into_iter().enumerate() {
            if equal.contains(&place) {
                let key = self.hash_key(&condition, &slots, placed);
                keys.push(key.expect("it was found before"));
            } else if self.is_of_item(&condition, &slots) {
                own.push(condition);
            } else {
                residual.push(condition);
            }
        }
        let (right, _) = self.item_node(item, own, false, None)?;
        let residual = Expression::all(residual);
        let dependent = self.dependents(residual.as_ref());
        let plan = HashJoin {
            kind,
            keys,
            residual,
            dependent,
            right_slots: slots,
            holds: TableHolds::Query,
        };
        Ok(Node::HashJoin(
            Box::new(left),
            Box::new(right),
            Rc::new(plan),
        ))
    }
}
