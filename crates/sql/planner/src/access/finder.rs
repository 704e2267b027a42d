//! Matches one index with the conditions on its table.
//!
//! What a condition says of the index's parts becomes a [`KeyCondition`]. If these are plain
//! equalities on the first parts and one interval on the next, the access is a single range.
//! Otherwise it consists of ranges of whole keys ([`crate::keys`]). A condition that the ranges
//! answer exactly is not tested again.

use std::borrow::Cow;

use expression::{
    Class, ColumnPlace, Compare, CompareOperator, Expression, ExpressionKind, InList, InRows, Like,
    ListMembers, Test,
};
use store::{Direction, IndexDefinition, TableDefinition, TableStatistics, Uniqueness};
use value::{ColumnType, TypeKind, Warnings};

use super::{AccessChoice, Candidate};
use crate::bind::Binder;
use crate::keys::{Edge, KeyEqual, RangePlan};
use crate::keys::{KeyCondition, RANGE_COUNT_MAX, reach};

/// The cost of looking up the row behind a secondary index entry, relative to reading on in the
/// index.
const LOOKUP_COST: f64 = 2.0;

/// The most members of a `NOT IN` that are answered by the ranges between them. With more, the
/// ranges exclude too little.
const NOT_IN_MAX: usize = 16;

/// One index and the conditions.
pub(super) struct Finder<'f, 'a, 'e> {
    pub(super) binder: &'f Binder<'a>,
    pub(super) slot: usize,
    pub(super) definition: &'f TableDefinition,
    pub(super) index: usize,
    /// Its definition.
    pub(super) keys: &'f IndexDefinition,
    pub(super) conditions: &'f [&'e Expression],
}

/// What the conditions say of an index.
#[derive(Default)]
struct Told<'e> {
    /// What each of them says.
    conditions: Vec<KeyCondition<'e>>,
    /// Whether it says all of the condition.
    is_exact: Vec<bool>,
    /// The position of each among the table's conditions.
    places: Vec<usize>,
}

/// Equalities on the first parts, and an interval of the next.
#[derive(Default)]
struct Simple<'t, 'e> {
    equal: Vec<(&'t Cow<'e, Expression>, bool)>,
    lower: Option<(&'t Cow<'e, Expression>, Edge)>,
    upper: Option<(&'t Cow<'e, Expression>, Edge)>,
    /// Positions in [`Told`] of the conditions that it answers exactly.
    answered: Vec<usize>,
    /// No other condition narrows the index further.
    is_all: bool,
}

impl<'f, 'e> Finder<'f, '_, 'e> {
    pub(super) fn index(&self) -> &'f IndexDefinition {
        self.keys
    }

    /// The whole index, for its order.
    pub(super) fn whole(&self, rows: f64) -> AccessChoice<'e> {
        let choice = self.choice(Candidate::All, rows, Vec::new(), 0);
        AccessChoice {
            cost: choice.cost + 2.0,
            ..choice
        }
    }

    /// The part of the index that the conditions select, or `None` if that is all of it.
    pub(super) fn narrowed(
        &self,
        rows: f64,
        statistics: &TableStatistics,
    ) -> Option<AccessChoice<'e>> {
        let told = self.told();
        if told.conditions.is_empty() {
            return None;
        }
        let simple = self.simple(&told);
        let equal_count = simple.equal.len();
        let covered = |answered: &mut dyn Iterator<Item = usize>| {
            answered.map(|place| told.places[place]).collect::<Vec<_>>()
        };
        let mut answered = simple.answered.iter().copied();
        if self.is_one_row(&simple) {
            let values = simple.equal.iter().map(|(value, _)| match value {
                Cow::Borrowed(value) => *value,
                Cow::Owned(_) => unreachable!("only IS NULL has a value of its own"),
            });
            let access = Candidate::Unique(values.collect());
            return Some(self.choice(access, 1.0, covered(&mut answered), equal_count));
        }
        if !simple.is_all {
            let parts = self.index().parts.len();
            let reach = reach(&told.conditions, &told.is_exact, parts);
            if 0 < reach.depth && equal_count < reach.used_parts {
                let estimate = self
                    .measured_keys(&told.conditions, &reach)
                    .unwrap_or_else(|| self.keys_rows(&told.conditions, rows, statistics));
                let answered = reach.answered.iter().enumerate();
                let mut answered = answered.filter(|(_, is)| **is).map(|(place, _)| place);
                let covered = covered(&mut answered);
                let conditions = told.conditions;
                let access = Candidate::Keys { conditions, reach };
                return Some(self.choice(access, estimate, covered, equal_count));
            }
        }
        if equal_count == 0 && simple.lower.is_none() && simple.upper.is_none() {
            return None;
        }
        let mut estimate = self.equal_rows(rows, equal_count, statistics);
        let range = simple.range();
        estimate *= match (simple.lower, simple.upper) {
            (Some((_, Edge::Prefix)), _) => 0.2,
            (Some(_), Some(_)) => 0.05,
            (Some(_), None) | (None, Some(_)) => 0.3,
            (None, None) => 1.0,
        };
        let estimate = self.measured_range(&range).unwrap_or(estimate);
        let access = Candidate::Range(range);
        Some(self.choice(access, estimate, covered(&mut answered), equal_count))
    }

    fn choice(
        &self,
        access: Candidate<'e>,
        rows: f64,
        covered: Vec<usize>,
        equal_count: usize,
    ) -> AccessChoice<'e> {
        let is_covering = self.is_covering(&covered);
        let factor = if self.index().is_clustered() || is_covering {
            1.0
        } else {
            LOOKUP_COST
        };
        AccessChoice {
            index: Some(self.index),
            access,
            rows,
            // To find that there is none costs a look, too.
            cost: rows.max(1.0) * factor,
            wanted_part: 1.0,
            covered,
            equal_count,
            is_ordered: false,
            is_covering,
            direction: Direction::Forward,
            possible: Vec::new(),
        }
    }

    /// True if every column that is read comes from the index, which answers the conditions at
    /// these places. Rows lie in the clustered index; there it is true if its key has all columns,
    /// as MariaDB shows it.
    fn is_covering(&self, answered: &[usize]) -> bool {
        if self.binder.reads_whole_rows {
            return false;
        }
        let conditions = self.conditions.iter().enumerate();
        let tested = conditions.filter(|(place, _)| !answered.contains(place));
        let tested: Vec<&Expression> = tested.map(|(_, condition)| *condition).collect();
        let columns = self.binder.columns_read(self.slot, &tested);
        if self.index().is_clustered() {
            let parts = &self.index().parts;
            let is_part = |column: &usize| parts.iter().any(|part| part.column == *column);
            return columns.iter().all(is_part);
        }
        let names = &self.binder.names;
        names.covers(self.definition, self.index, &columns)
    }

    fn equal_rows(&self, rows: f64, equal_count: usize, statistics: &TableStatistics) -> f64 {
        if equal_count == 0 {
            return rows;
        }
        let known = statistics
            .distinct
            .get(self.index)
            .and_then(|d| d.get(equal_count - 1));
        match known {
            Some(&distinct) if distinct > 0 => rows / stdx::u64_to_f64(distinct),
            _ => {
                let power = i32::try_from(equal_count).unwrap_or(i32::MAX);
                (rows / 100f64.powi(power)).max(2.0)
            }
        }
    }

    /// The rows that satisfy all of these conditions.
    fn keys_rows(
        &self,
        conditions: &[KeyCondition<'_>],
        rows: f64,
        statistics: &TableStatistics,
    ) -> f64 {
        let fractions = conditions.iter();
        let product: f64 = fractions
            .map(|it| self.fraction(it, rows, statistics))
            .product();
        (rows * product).max(1.0)
    }

    /// The fraction of the rows that a condition keeps.
    fn fraction(
        &self,
        condition: &KeyCondition<'_>,
        rows: f64,
        statistics: &TableStatistics,
    ) -> f64 {
        let of = |it: &KeyCondition<'_>| self.fraction(it, rows, statistics);
        let fraction = match condition {
            KeyCondition::All(list) => list.iter().map(of).product(),
            KeyCondition::Any(list) => list.iter().map(of).sum(),
            KeyCondition::Equal { part, .. } => self.part_fraction(*part, rows, statistics),
            KeyCondition::Lower { .. } | KeyCondition::Upper { .. } => 0.3,
            KeyCondition::Rows {
                parts,
                width,
                values,
                ..
            } => {
                let each = parts.iter();
                let each: f64 = each
                    .map(|part| self.part_fraction(*part, rows, statistics))
                    .product();
                each * stdx::u64_to_f64(stdx::to_u64(values.len() / width))
            }
        };
        fraction.min(1.0)
    }

    /// The fraction of the rows with one value in a part of the index, given the parts before it.
    fn part_fraction(&self, part: usize, rows: f64, statistics: &TableStatistics) -> f64 {
        let before = self.equal_rows(rows, part, statistics).max(1.0);
        (self.equal_rows(rows, part + 1, statistics) / before).min(1.0)
    }

    /// True if the equalities select at most one row of a unique index.
    fn is_one_row(&self, simple: &Simple<'_, '_>) -> bool {
        let index = self.index();
        index.uniqueness != Uniqueness::None
            && simple.equal.len() == index.parts.len()
            && simple.equal.iter().all(|(_, null_safe)| !null_safe)
            && index.parts.iter().all(|part| part.prefix_length.is_none())
    }

    fn simple<'t>(&self, told: &'t Told<'e>) -> Simple<'t, 'e> {
        let mut simple = Simple::default();
        for (part, index_part) in self.index().parts.iter().enumerate() {
            let equal = told
                .conditions
                .iter()
                .enumerate()
                .find_map(|(place, it)| match it {
                    KeyCondition::Equal {
                        part: told_part,
                        value,
                        null_safe,
                    } if *told_part == part => Some((place, value, *null_safe)),
                    _ => None,
                });
            let Some((place, value, null_safe)) = equal else {
                break;
            };
            simple.equal.push((value, null_safe));
            simple
                .answered
                .extend(told.is_exact[place].then_some(place));
            if index_part.prefix_length.is_some() {
                break;
            }
        }
        simple.is_all = true;
        for (place, condition) in told.conditions.iter().enumerate() {
            simple.take_bound(condition, told.is_exact[place].then_some(place));
        }
        simple
    }

    /// What the conditions say of the index.
    fn told(&self) -> Told<'e> {
        let mut told = Told::default();
        for (place, condition) in self.conditions.iter().enumerate() {
            if let Some((condition, is_exact)) = self.condition(condition, false) {
                told.conditions.push(condition);
                told.is_exact.push(is_exact);
                told.places.push(place);
            }
        }
        told
    }

    /// As [`Binder::spend`]. If the statement has to end, it ends before its plan runs.
    fn spend(&self) {
        let _ = self.binder.spend();
    }

    /// True if the expression has one value during the scan.
    fn is_value(&self, side: &Expression) -> bool {
        self.spend();
        matches!(side.kind, ExpressionKind::Constant(_))
            || !self.binder.slots_of(side).contains(&self.slot)
                && !side.is_volatile()
                && !self.binder.varies(side)
    }

    /// The part of the index that a column is, the column's type, and whether the part holds whole
    /// values.
    fn part_of(&self, side: &Expression) -> Option<(usize, &'f ColumnType, bool)> {
        let ColumnPlace { slot, column } = side.as_column()?;
        let mut parts = self.index().parts.iter();
        let part = parts.position(|part| slot == self.slot && part.column == column)?;
        let is_whole = self.index().parts[part].prefix_length.is_none();
        Some((part, &self.definition.columns[column].column_type, is_whole))
    }

    /// What a condition, or its negation, says of the index, and whether that is all of it.
    pub(super) fn condition(
        &self,
        condition: &'e Expression,
        negated: bool,
    ) -> Option<(KeyCondition<'e>, bool)> {
        self.spend();
        match &condition.kind {
            ExpressionKind::And(list) if negated => self.any(list, negated),
            ExpressionKind::And(list) => self.all(list, negated),
            ExpressionKind::Or(list) if negated => self.all(list, negated),
            ExpressionKind::Or(list) => self.any(list, negated),
            ExpressionKind::Not(operand) => self.condition(operand, !negated),
            ExpressionKind::Constant(value) => {
                let truth = value.as_ref().to_bool(&mut Warnings::new(0));
                (truth.is_none_or(|truth| truth == negated))
                    .then(|| (KeyCondition::Any(Vec::new()), true))
            }
            ExpressionKind::Compare(compare) => {
                let operator = match negated {
                    true => compare.operator.opposite()?,
                    false => compare.operator,
                };
                self.comparison(compare, operator)
            }
            ExpressionKind::Is {
                operand,
                test: Test::Null,
                negated: is_not,
            } => self.null_test(operand, *is_not != negated),
            ExpressionKind::In(list) if list.negated != negated => self.not_in(list),
            ExpressionKind::In(list) => self.list(list),
            ExpressionKind::InRows(list) if list.negated == negated => self.rows(list),
            ExpressionKind::Like(like) if !negated => self.like(like),
            _ => None,
        }
    }

    fn null_test(&self, operand: &Expression, is_not: bool) -> Option<(KeyCondition<'e>, bool)> {
        let (part, _, is_whole) = self.part_of(operand)?;
        let value = Cow::Owned(Expression::null());
        let condition = match is_not {
            true => KeyCondition::Lower {
                part,
                value,
                edge: Edge::NotNull,
            },
            false => KeyCondition::Equal {
                part,
                value,
                null_safe: true,
            },
        };
        Some((condition, is_whole))
    }

    fn not_in(&self, list: &'e InList) -> Option<(KeyCondition<'e>, bool)> {
        let (part, column_type, is_whole) = self.part_of(&list.operand)?;
        let ListMembers::Expressions(members) = &list.list else {
            return None;
        };
        let can_use = members.len() <= NOT_IN_MAX
            && is_usable(column_type, list.class, CompareOperator::NotEqual)
            && members.iter().all(|value| self.is_value(value));
        let apart = || members.iter().map(|value| unlike(part, value)).collect();
        can_use.then(|| (KeyCondition::All(apart()), is_whole))
    }

    fn list(&self, list: &'e InList) -> Option<(KeyCondition<'e>, bool)> {
        let (part, column_type, is_whole) = self.part_of(&list.operand)?;
        if !is_usable(column_type, list.class, CompareOperator::Equal) {
            return None;
        }
        let values = self.members(&list.list)?;
        let condition = match &list.list {
            ListMembers::Expressions(members) if members.len() == 1 => {
                bound(part, CompareOperator::Equal, &members[0])
            }
            _ => KeyCondition::Rows {
                parts: [part].into(),
                places: [0].into(),
                width: 1,
                values,
            },
        };
        Some((condition, is_whole))
    }

    /// The members of a list, if they are values and not too many.
    fn members(&self, list: &'e ListMembers) -> Option<Cow<'e, [Expression]>> {
        match list {
            ListMembers::Expressions(members) => {
                let are_values = members.iter().all(|value| self.is_value(value));
                are_values.then(|| Cow::Borrowed(&members[..]))
            }
            ListMembers::Constants(members) if members.len() <= RANGE_COUNT_MAX => {
                let expressions = (0..members.len()).map(|place| {
                    self.spend();
                    members.expression(place)
                });
                Some(expressions.collect())
            }
            ListMembers::Constants(_) => None,
        }
    }

    /// The texts that share the pattern's prefix up to its first wildcard.
    fn like(&self, like: &'e Like) -> Option<(KeyCondition<'e>, bool)> {
        let (part, column_type, _) = self.part_of(&like.operand)?;
        let can_use = !like.negated
            && like.escape == Some(u32::from(b'\\'))
            && column_type.kind.is_bytes()
            && like.collation == column_type.collation
            && self.is_value(&like.pattern);
        let (value, edge) = (Cow::Borrowed(&like.pattern), Edge::Prefix);
        let condition = || {
            KeyCondition::All(vec![
                KeyCondition::Lower {
                    part,
                    value: value.clone(),
                    edge,
                },
                KeyCondition::Upper { part, value, edge },
            ])
        };
        can_use.then(|| (condition(), false))
    }

    /// What a list of rows says of the columns that are parts of the index.
    fn rows(&self, list: &'e InRows) -> Option<(KeyCondition<'e>, bool)> {
        let mut parts = Vec::with_capacity(list.operands.len());
        let mut is_exact = true;
        for (place, (operand, class)) in list.operands.iter().zip(&list.classes).enumerate() {
            let part = self.part_of(operand).filter(|(part, column_type, _)| {
                let is_new = parts.iter().all(|(known, _)| known != part);
                is_new && is_usable(column_type, *class, CompareOperator::Equal)
            });
            match part {
                Some((part, _, is_whole)) => {
                    parts.push((part, place));
                    is_exact &= is_whole;
                }
                None => is_exact = false,
            }
        }
        if parts.is_empty() || !list.rows.iter().all(|value| self.is_value(value)) {
            return None;
        }
        parts.sort_unstable();
        let (parts, places): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let condition = KeyCondition::Rows {
            parts: parts.into(),
            places: places.into(),
            width: list.operands.len(),
            values: Cow::Borrowed(&list.rows),
        };
        Some((condition, is_exact))
    }

    /// Of conditions that must all hold, those that say something of the index.
    fn all(&self, list: &'e [Expression], negated: bool) -> Option<(KeyCondition<'e>, bool)> {
        let mut all = Vec::with_capacity(list.len());
        let mut is_exact = true;
        for condition in list {
            match self.condition(condition, negated) {
                Some((condition, is_all)) => {
                    all.push(condition);
                    is_exact &= is_all;
                }
                None => is_exact = false,
            }
        }
        (!all.is_empty()).then_some((KeyCondition::All(all), is_exact))
    }

    /// Alternatives: one that says nothing of the index admits all keys.
    fn any(&self, list: &'e [Expression], negated: bool) -> Option<(KeyCondition<'e>, bool)> {
        let mut any = Vec::with_capacity(list.len());
        let mut is_exact = true;
        for condition in list {
            let (condition, is_all) = self.condition(condition, negated)?;
            any.push(condition);
            is_exact &= is_all;
        }
        Some((KeyCondition::Any(any), is_exact))
    }

    fn comparison(
        &self,
        compare: &'e Compare,
        operator: CompareOperator,
    ) -> Option<(KeyCondition<'e>, bool)> {
        let sides = [
            (&compare.left, &compare.right, operator),
            (&compare.right, &compare.left, operator.mirrored()),
        ];
        for (column, value, operator) in sides {
            let Some((part, column_type, is_whole)) = self.part_of(column) else {
                continue;
            };
            if !is_usable(column_type, compare.class, operator) {
                return None;
            }
            if self.is_value(value) {
                return Some((bound(part, operator, value), is_whole));
            }
        }
        None
    }
}

impl Simple<'_, '_> {
    fn range(&self) -> RangePlan {
        let bound = |(value, edge): (&Cow<'_, Expression>, Edge)| {
            Box::new((value.clone().into_owned(), edge))
        };
        let equal = self.equal.iter().map(|(value, null_safe)| KeyEqual {
            value: (*value).clone().into_owned(),
            null_safe: *null_safe,
        });
        RangePlan {
            equal: equal.collect(),
            lower: self.lower.map(bound),
            upper: self.upper.map(bound),
        }
    }
}

impl<'t, 'e> Simple<'t, 'e> {
    /// Takes a bound on the part after the equalities. `answered`: its position, if a range answers
    /// it exactly.
    fn take_bound(&mut self, condition: &'t KeyCondition<'e>, answered: Option<usize>) {
        let equal_count = self.equal.len();
        match condition {
            KeyCondition::Equal { part, .. } => self.is_all &= *part != equal_count,
            KeyCondition::Lower { part, value, edge } if *part == equal_count => {
                self.is_all &= self.lower.is_none();
                if self.lower.is_none() {
                    self.lower = Some((value, *edge));
                    self.answered.extend(answered);
                }
            }
            KeyCondition::Upper { part, value, edge } if *part == equal_count => {
                self.is_all &= self.upper.is_none();
                if self.upper.is_none() {
                    self.upper = Some((value, *edge));
                    self.answered.extend(answered);
                }
            }
            KeyCondition::Lower { .. } | KeyCondition::Upper { .. } => {}
            KeyCondition::All(list)
                if let [
                    KeyCondition::Lower {
                        edge: Edge::Prefix, ..
                    },
                    upper,
                ] = &list[..]
                    && self.lower.is_none()
                    && self.upper.is_none() =>
            {
                self.take_bound(&list[0], None);
                self.take_bound(upper, None);
            }
            KeyCondition::All(_) | KeyCondition::Any(_) | KeyCondition::Rows { .. } => {
                self.is_all = false;
            }
        }
    }
}

/// What a comparison says of a part.
fn bound(part: usize, operator: CompareOperator, value: &Expression) -> KeyCondition<'_> {
    let equal = |null_safe| KeyCondition::Equal {
        part,
        value: Cow::Borrowed(value),
        null_safe,
    };
    let lower = |edge| KeyCondition::Lower {
        part,
        value: Cow::Borrowed(value),
        edge,
    };
    let upper = |edge| KeyCondition::Upper {
        part,
        value: Cow::Borrowed(value),
        edge,
    };
    match operator {
        CompareOperator::Equal => equal(false),
        CompareOperator::NullSafeEqual => equal(true),
        CompareOperator::Less => upper(Edge::Exclusive),
        CompareOperator::LessOrEqual => upper(Edge::Inclusive),
        CompareOperator::Greater => lower(Edge::Exclusive),
        CompareOperator::GreaterOrEqual => lower(Edge::Inclusive),
        CompareOperator::NotEqual => unlike(part, value),
    }
}

/// The part is below or above the value.
fn unlike(part: usize, value: &Expression) -> KeyCondition<'_> {
    let value = Cow::Borrowed(value);
    let edge = Edge::Exclusive;
    KeyCondition::Any(vec![
        KeyCondition::Upper {
            part,
            value: value.clone(),
            edge,
        },
        KeyCondition::Lower { part, value, edge },
    ])
}

/// True if an index on the column answers the comparison. Either the index has the order of the
/// comparison, or it is an equality and each value equals at most one key.
fn is_usable(column_type: &ColumnType, class: Class, operator: CompareOperator) -> bool {
    match (column_type.kind, class) {
        // Keys are the members' numbers, whose order differs from that of the texts.
        (TypeKind::Enum, Class::Text(collation)) => {
            let is_equality = matches!(
                operator,
                CompareOperator::Equal | CompareOperator::NullSafeEqual
            );
            is_equality && collation == column_type.collation && !has_empty_member(column_type)
        }
        (kind, Class::Text(collation)) => kind.is_bytes() && collation == column_type.collation,
        (kind, Class::DateTime) => {
            matches!(
                kind,
                TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp
            )
        }
        (kind, Class::Time) => kind == TypeKind::Time,
        // Doubles cannot distinguish all sets of more than 53 members, but keys can.
        (TypeKind::Set, Class::Double) => false,
        (kind, Class::Integer | Class::Decimal | Class::Double) => {
            let is_other = matches!(
                kind,
                TypeKind::Year
                    | TypeKind::Bit
                    | TypeKind::Decimal
                    | TypeKind::Double
                    | TypeKind::Enum
                    | TypeKind::Set
            );
            kind.is_integer() || is_other
        }
    }
}

/// True of an ENUM with a member that is the empty text. The number 0, which stands for an invalid
/// member, has the empty text too.
fn has_empty_member(column_type: &ColumnType) -> bool {
    let is_empty = |name: &[u8]| column_type.collation.equal(name, b"");
    column_type.members().iter().any(|name| is_empty(name))
}
