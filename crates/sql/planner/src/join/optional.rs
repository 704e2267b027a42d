//! Outer joins that are inner ones.
//!
//! `a LEFT JOIN b ON .. WHERE b.x = 1` returns no row whose `b` is made up of NULLs, since NULL
//! fails the condition. So it is an inner join, and `b` may be read first. The ON of such a join
//! may in turn refuse the NULLs of another one.

use expression::{CompareOperator, Expression, ExpressionKind, Test};

use crate::bind::Binder;
use crate::from::{From, Item, Source};
use crate::plan::JoinKind;

impl Binder<'_> {
    /// Turns outer joins of a list into inner ones if a condition refuses what they add.
    pub(crate) fn narrow_outer_joins(&self, from: &mut From, conditions: &[Expression]) {
        loop {
            let all = from.conditions.iter().chain(conditions);
            let is_refused = |item: &Item| {
                item.kind == JoinKind::Left
                    && !self.varies_within(item)
                    && all.clone().any(|it| refuses_nulls(it, &item.slots))
            };
            let Some(place) = from.items.iter().position(is_refused) else {
                return;
            };
            let item = from.items.remove(place);
            from.conditions.extend(item.on);
            match item.source {
                Source::Group(inner) if !inner.is_straight => {
                    from.items.splice(place..place, inner.items);
                    from.conditions.extend(inner.conditions);
                }
                source => {
                    let item = Item {
                        kind: JoinKind::Inner,
                        source,
                        on: Vec::new(),
                        slots: item.slots,
                    };
                    from.items.insert(place, item);
                }
            }
        }
    }

    /// True if a condition of an outer join varies, or one of the joins on its right side.
    fn varies_within(&self, item: &Item) -> bool {
        let inner = match &item.source {
            Source::Group(inner) => inner.conditions.as_slice(),
            Source::Table { .. } | Source::Derived { .. } | Source::Latest(_) => &[],
        };
        item.on.iter().chain(inner).any(|on| self.varies(on))
    }
}

/// True if the condition does not hold where all columns of these slots are NULL.
fn refuses_nulls(condition: &Expression, slots: &[usize]) -> bool {
    let is_null = |value: &Expression| is_null_with(value, slots);
    match &condition.kind {
        ExpressionKind::And(list) => list.iter().any(|it| refuses_nulls(it, slots)),
        ExpressionKind::Or(list) => list.iter().all(|it| refuses_nulls(it, slots)),
        ExpressionKind::Compare(compare) => {
            compare.operator != CompareOperator::NullSafeEqual
                && (is_null(&compare.left) || is_null(&compare.right))
        }
        ExpressionKind::In(list) => is_null(&list.operand),
        ExpressionKind::InRows(list) => !list.negated && list.operands.iter().any(is_null),
        ExpressionKind::Like(like) => is_null(&like.operand),
        ExpressionKind::Is {
            operand,
            test,
            negated,
        } => match (test, negated) {
            (Test::Null, true) => is_null(operand),
            (Test::True, false) => refuses_nulls(operand, slots),
            _ => false,
        },
        ExpressionKind::Not(inner) => is_null(inner),
        _ => is_null(condition),
    }
}

/// True if the value is NULL where all columns of these slots are.
fn is_null_with(value: &Expression, slots: &[usize]) -> bool {
    let is_null = |value: &Expression| is_null_with(value, slots);
    match &value.kind {
        ExpressionKind::Column(place) => slots.contains(&place.slot),
        ExpressionKind::Cast(inner)
        | ExpressionKind::Local(inner)
        | ExpressionKind::AsYear(inner, _)
        | ExpressionKind::Negate(inner)
        | ExpressionKind::Complement(inner)
        | ExpressionKind::Not(inner) => is_null(inner),
        ExpressionKind::Arithmetic(both) => is_null(&both.left) || is_null(&both.right),
        ExpressionKind::BitOperation(both) => is_null(&both.left) || is_null(&both.right),
        ExpressionKind::Compare(both) => {
            both.operator != CompareOperator::NullSafeEqual
                && (is_null(&both.left) || is_null(&both.right))
        }
        ExpressionKind::In(list) => is_null(&list.operand),
        ExpressionKind::Like(like) => is_null(&like.operand),
        _ => false,
    }
}
