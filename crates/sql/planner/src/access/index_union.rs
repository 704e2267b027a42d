//! OR over several indexes: each alternative finds its own rows.
//!
//! `WHERE a = 1 OR b = 2` reads the rows of `a = 1` by one index, then those of `b = 2` by another,
//! but for the ones that the first has found. MariaDB calls this a union of indexes.

use expression::{Expression, ExpressionKind, Test};
use store::RowLock;

use super::{Hints, WantedOrder, WantedRows};
use crate::bind::Binder;
use crate::condition::conjuncts;

/// Of more alternatives each would test those before it at a cost of its own.
const ALTERNATIVES_MAX: usize = 8;

/// What it costs to begin a scan, in rows.
const SCAN_COST: f64 = 2.0;

/// What a row costs that is sorted behind the scans, beside one that is read.
const SORT_COST: f64 = 0.5;

impl Binder<'_> {
    /// The conditions of the scans that find the rows of a table together, each row once. `None` if
    /// one scan is better.
    pub(super) fn index_union(
        &self,
        (table, slot, hints): (usize, usize, &Hints),
        conditions: &[Expression],
        wanted: Option<&WantedOrder>,
    ) -> Option<Vec<Vec<Expression>>> {
        let is_extreme = wanted.is_some_and(|wanted| wanted.rows == WantedRows::Extreme);
        let has_choice = conditions.iter().any(|it| alternatives(it).is_some());
        // A scan that locks would lock the rows of the others again.
        if !has_choice || is_extreme || self.lock.0 != RowLock::None {
            return None;
        }
        // A query runs in one place alone.
        let is_movable = |it: &Expression| it.subqueries().is_empty() && !self.varies(it);
        if !conditions.iter().all(is_movable) {
            return None;
        }
        let all: Vec<&Expression> = conditions.iter().collect();
        let whole = self.choose_access(table, slot, hints, &all, wanted);
        let mut best = (None, whole.cost);
        for (place, condition) in conditions.iter().enumerate() {
            let Some(alternatives) = alternatives(condition) else {
                continue;
            };
            let mut cost = 0.0;
            for alternative in alternatives {
                let mut tested = all.clone();
                tested.remove(place);
                add_parts(alternative, &mut tested);
                let access = self.choose_access(table, slot, hints, &tested, None);
                cost += match access.reads_all() {
                    true => f64::INFINITY,
                    false => SCAN_COST + access.cost,
                };
                cost += wanted.map_or(0.0, |_| access.rows * SORT_COST);
            }
            if cost < best.1 {
                best = (Some(place), cost);
            }
        }
        best.0.map(|place| scans(conditions, place))
    }
}

/// The alternatives of an OR, if they are few.
fn alternatives(condition: &Expression) -> Option<&[Expression]> {
    match &condition.kind {
        ExpressionKind::Or(list) if list.len() <= ALTERNATIVES_MAX => Some(list),
        _ => None,
    }
}

/// The parts of a condition that must all hold.
fn add_parts<'e>(condition: &'e Expression, parts: &mut Vec<&'e Expression>) {
    match &condition.kind {
        ExpressionKind::And(list) => list.iter().for_each(|it| add_parts(it, parts)),
        _ => parts.push(condition),
    }
}

/// The conditions of each alternative's scan: it leaves out what those before it find.
fn scans(conditions: &[Expression], place: usize) -> Vec<Vec<Expression>> {
    let mut others = conditions.to_vec();
    let chosen = others.remove(place);
    let ExpressionKind::Or(alternatives) = chosen.kind else {
        unreachable!("an OR was chosen");
    };
    let scan = |alternative: Expression| {
        let mut scan = others.clone();
        scan.extend(conjuncts(alternative.clone()));
        let is_not_true = ExpressionKind::Is {
            operand: Box::new(alternative),
            test: Test::True,
            negated: true,
        };
        others.push(Expression::condition(is_not_true, false));
        scan
    };
    alternatives.into_iter().map(scan).collect()
}
