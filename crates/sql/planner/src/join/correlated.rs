//! The first table of a correlated subquery, read once for all outer rows.
//!
//! `(SELECT SUM(h.amount) FROM h WHERE h.customer = c.id)` without an index on `h.customer` would
//! read all of `h` for each row of `c`. If the table's other conditions read nothing from outside
//! the subquery, its rows are put into a hash table. The keys are the inner sides of the
//! equalities; each outer row looks up its partners. The table is valid for a whole execution
//! ([`TableHolds::Execution`]), so these conditions must not be volatile either.
//!
//! Not done if an index finds the rows for the outer row, nor for queries that were asked to lock:
//! they lock only the rows that they return. Queries of a change lock what they read in any case;
//! without an index that is the whole table for each outer row.

use std::rc::Rc;

use expression::{CompareOperator, Expression, ExpressionKind};

use crate::PlanError;
use crate::access::Hints;
use crate::bind::Binder;
use crate::from::{Item, Source};
use crate::plan::{HashJoin, HashKey, JoinKind, Node, TableHolds};

/// If a start reads fewer rows than this, a table is not worth it.
const READ_ROWS_MIN: f64 = 4.0;

/// A table of more rows is not built: it takes memory, and the outer query may have one row.
const BUILT_ROWS_MAX: f64 = 1_048_576.0;

impl Binder<'_> {
    /// The conditions, by position, whose inner sides are the best keys of a hash table for the
    /// block's first table. `None` if it is better to read the rows for each outer row.
    pub(super) fn try_kept_table(
        &self,
        item: &Item,
        conditions: &[&Expression],
    ) -> Option<Vec<usize>> {
        let Source::Table { table, slot, hints } = &item.source else {
            return None;
        };
        if self.blocks.len() < 2 || self.lock.0 != self.inner_lock {
            return None;
        }
        let is_key = |place: &usize| outer_key(conditions[*place], *slot).is_some();
        let keys: Vec<usize> = (0..conditions.len()).filter(is_key).collect();
        let is_better = !keys.is_empty() && self.is_kept_better(*table, *slot, hints, conditions);
        is_better.then_some(keys)
    }

    /// Compares reading the rows for each outer row with reading them once.
    fn is_kept_better(
        &self,
        table: usize,
        slot: usize,
        hints: &Hints,
        conditions: &[&Expression],
    ) -> bool {
        let started = self.choose_access(table, slot, hints, conditions, None);
        let reads_outer = |value: &Expression| self.slots_of(value).iter().any(|it| *it != slot);
        if started.rows < READ_ROWS_MIN || started.any_equal_value(&reads_outer) {
            return false;
        }
        let own = conditions.iter().copied().filter(|it| is_own(it, slot));
        let own: Vec<&Expression> = own.collect();
        let built = self.choose_access(table, slot, hints, &own, None);
        built.rows <= BUILT_ROWS_MAX && built.cost < started.cost * 4.0
    }

    /// The node that keeps the rows and looks them up; `keys` is from
    /// [`try_kept_table`](Self::try_kept_table).
    pub(super) fn kept_table(
        &mut self,
        item: Item,
        conditions: Vec<Expression>,
        keys: &[usize],
    ) -> Result<Node, PlanError> {
        let slots = item.slots.clone();
        let (mut own, mut residual) = (Vec::new(), Vec::new());
        let mut hash_keys = Vec::with_capacity(keys.len());
        for (place, condition) in conditions.into_iter().enumerate() {
            if keys.contains(&place) {
                let key = outer_key(&condition, slots[0]);
                hash_keys.push(key.expect("it was found before"));
            } else if is_own(&condition, slots[0]) {
                own.push(condition);
            } else {
                residual.push(condition);
            }
        }
        let (right, _) = self.item_node(item, own, false, None)?;
        let residual = Expression::all(residual);
        let dependent = self.dependents(residual.as_ref());
        let plan = HashJoin {
            kind: JoinKind::Inner,
            keys: hash_keys,
            residual,
            dependent,
            right_slots: slots,
            holds: TableHolds::Execution,
        };
        let (left, right) = (Box::new(Node::One), Box::new(right));
        Ok(Node::HashJoin(left, right, Rc::new(plan)))
    }
}

/// True if the condition reads only the slot, and always returns the same.
fn is_own(condition: &Expression, slot: usize) -> bool {
    let reads_slot_alone = condition.slots().iter().all(|it| *it == slot);
    reads_slot_alone && condition.subqueries().is_empty() && !condition.is_volatile()
}

/// The equality between the slot's row and outer rows.
fn outer_key(condition: &Expression, slot: usize) -> Option<HashKey> {
    let ExpressionKind::Compare(compare) = &condition.kind else {
        return None;
    };
    let null_safe = match compare.operator {
        CompareOperator::Equal => false,
        CompareOperator::NullSafeEqual => true,
        _ => return None,
    };
    let is_inner = |side: &Expression| !side.slots().is_empty() && is_own(side, slot);
    let is_outer = |side: &Expression| {
        let read = side.slots();
        let is_around = !read.is_empty() && !read.contains(&slot);
        is_around && side.subqueries().is_empty() && !side.is_volatile()
    };
    let (left, right) = match (&compare.left, &compare.right) {
        (left, right) if is_outer(left) && is_inner(right) => (left, right),
        (left, right) if is_inner(left) && is_outer(right) => (right, left),
        _ => return None,
    };
    Some(HashKey {
        left: left.clone(),
        right: right.clone(),
        class: compare.class,
        null_safe,
    })
}
