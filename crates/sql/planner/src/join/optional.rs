//! Outer joins of which WHERE wants the pairs alone, or the rows without a partner alone.
//!
//! `a LEFT JOIN b ON .. WHERE b.x = 1` returns no row whose `b` is made up of NULLs, since NULL
//! fails the condition. So it is an inner join, and `b` may be read first. The ON of such a join
//! may in turn refuse the NULLs of another one.
//!
//! `a LEFT JOIN b ON b.k = a.k WHERE b.k IS NULL` returns no pair, since `b.k` of a pair is equal
//! to something. So it is an anti join, which reads one partner of a row at most.

use expression::{ColumnPlace, CompareOperator, Expression, ExpressionKind, Test};

use crate::bind::Binder;
use crate::from::{From, Item, Source};
use crate::plan::{JoinKind, SlotShape};

impl Binder<'_> {
    /// Turns outer joins of a list into inner ones or anti joins, by the conditions on their rows.
    pub(crate) fn simplify_outer_joins(&self, from: &mut From, conditions: &mut Vec<Expression>) {
        self.find_inner_joins(from, conditions);
        for item in &mut from.items {
            if item.kind != JoinKind::Left || self.varies_within(item) {
                continue;
            }
            let refuses_pairs = |it: &Expression| self.refuses_pairs(it, item);
            for list in [&mut *conditions, &mut from.conditions] {
                if let Some(place) = list.iter().position(refuses_pairs) {
                    list.remove(place);
                    item.kind = JoinKind::Anti;
                    break;
                }
            }
        }
    }

    /// True if the condition is IS NULL of a column that is not NULL in any pair of the join.
    fn refuses_pairs(&self, condition: &Expression, item: &Item) -> bool {
        let ExpressionKind::Is {
            operand,
            test: Test::Null,
            negated: false,
        } = &condition.kind
        else {
            return false;
        };
        operand.as_column().is_some_and(|place| {
            let is_it = |it: ColumnPlace| it == place;
            let is_there = item.slots.contains(&place.slot);
            let is_refused = || item.on.iter().any(|on| refuses_nulls(on, &is_it));
            is_there && (self.is_never_null(place, item) || is_refused())
        })
    }

    /// True if a column is NOT NULL, and its table has a row in each pair of the join.
    fn is_never_null(&self, place: ColumnPlace, item: &Item) -> bool {
        let SlotShape::Table(table) = &self.slots[place.slot] else {
            return false;
        };
        let column = &self.tables[*table].definition.columns[place.column];
        !column.nullable && has_row_in_each_pair(item, place.slot)
    }

    /// Turns outer joins into inner ones if a condition refuses what they add.
    fn find_inner_joins(&self, from: &mut From, conditions: &[Expression]) {
        loop {
            let all = from.conditions.iter().chain(conditions);
            let is_refused = |item: &Item| {
                item.kind == JoinKind::Left
                    && !self.varies_within(item)
                    && all
                        .clone()
                        .any(|it| refuses_nulls(it, &|place| item.slots.contains(&place.slot)))
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

/// True if each pair of a join, or each row of an inner item, has a row of this slot.
fn has_row_in_each_pair(item: &Item, slot: usize) -> bool {
    match &item.source {
        Source::Group(group) => group
            .items
            .iter()
            .any(|it| it.kind == JoinKind::Inner && has_row_in_each_pair(it, slot)),
        Source::Table { .. } | Source::Derived { .. } | Source::Latest(_) => {
            item.slots.contains(&slot)
        }
    }
}

/// True if the condition does not hold where all these columns are NULL.
fn refuses_nulls(condition: &Expression, nulls: &dyn Fn(ColumnPlace) -> bool) -> bool {
    let is_null = |value: &Expression| is_null_with(value, nulls);
    match &condition.kind {
        ExpressionKind::And(list) => list.iter().any(|it| refuses_nulls(it, nulls)),
        ExpressionKind::Or(list) => list.iter().all(|it| refuses_nulls(it, nulls)),
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
            (Test::True, false) => refuses_nulls(operand, nulls),
            _ => false,
        },
        ExpressionKind::Not(inner) => is_null(inner),
        _ => is_null(condition),
    }
}

/// True if the value is NULL where all these columns are.
fn is_null_with(value: &Expression, nulls: &dyn Fn(ColumnPlace) -> bool) -> bool {
    let is_null = |value: &Expression| is_null_with(value, nulls);
    match &value.kind {
        ExpressionKind::Column(place) => nulls(*place),
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
