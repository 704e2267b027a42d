//! Access paths: how one table is read.
//!
//! Each index is tried against the conditions on the table: equalities on its first parts, then a
//! range, a list or a LIKE prefix on the next. What remains cheapest by the estimates is taken.
//! Conditions that the index answers exactly are not tested again.

mod order;

use std::rc::Rc;

use errcode::ER_KEY_DOES_NOT_EXISTS;
use expression::{Class, ColumnPlace, CompareOperator, Expression, ExpressionKind, Test};
use store::{Direction, IndexDefinition, RowLock, TableDefinition, TableStatistics, Uniqueness};
use syntax::ast;
use value::{ColumnType, TypeKind};

use crate::PlanError;
use crate::bind::{Binder, error};
use crate::plan::{Access, Edge, KeyEqual, Node, RangePlan, Scan};

use self::order::OrderWeigher;
pub(crate) use self::order::{WantedOrder, WantedRows};

/// Rows that a table is thought to have when nothing is known.
const ROWS_UNKNOWN: f64 = 1000.0;

/// A lookup of the row behind a secondary index, against reading on in the same index.
const LOOKUP_COST: f64 = 2.0;

/// Which indexes a statement wants used.
#[derive(Debug, Default, Clone)]
pub(crate) struct Hints {
    /// Only these.
    only: Option<Vec<usize>>,
    ignored: Vec<usize>,
    is_forced: bool,
}

/// A way to read a table.
#[derive(Debug)]
pub(crate) struct AccessChoice {
    pub(crate) index: Option<usize>,
    pub(crate) access: Access,
    /// Rows that come out, roughly.
    pub(crate) rows: f64,
    /// What it costs to read them once, in rows of the table that are read one after the other.
    pub(crate) cost: f64,
    /// The conditions that the access answers, by place.
    covered: Vec<usize>,
    /// Parts bound by equality.
    equal_count: usize,
    pub(crate) is_ordered: bool,
    is_covering: bool,
    pub(crate) direction: Direction,
    /// The indexes that the conditions could narrow.
    possible: Vec<usize>,
}

impl AccessChoice {
    /// True if no condition narrows the scan.
    pub(crate) fn reads_all(&self) -> bool {
        matches!(self.access, Access::All)
    }
}

impl Hints {
    /// What the statement's hints say.
    pub(crate) fn of(
        hints: &[ast::IndexHint],
        definition: &TableDefinition,
    ) -> Result<Self, PlanError> {
        let mut all = Self::default();
        for hint in hints {
            let mut indexes = Vec::with_capacity(hint.indexes.len());
            for name in &hint.indexes {
                let is_named = |index: &IndexDefinition| name.is(&index.name);
                let Some(place) = definition.indexes.iter().position(is_named) else {
                    let table = &definition.name.table;
                    return Err(error(ER_KEY_DOES_NOT_EXISTS, &[&name.text, table]));
                };
                indexes.push(place);
            }
            match hint.kind {
                ast::IndexHintKind::Ignore => all.ignored.extend(indexes),
                ast::IndexHintKind::Use => all.only.get_or_insert_default().extend(indexes),
                ast::IndexHintKind::Force => {
                    all.only.get_or_insert_default().extend(indexes);
                    all.is_forced = true;
                }
            }
        }
        Ok(all)
    }

    fn allows(&self, index: usize) -> bool {
        !self.ignored.contains(&index)
            && self.only.as_ref().is_none_or(|only| only.contains(&index))
    }
}

/// What a condition says of one column.
enum Bound<'e> {
    Equal {
        value: &'e Expression,
        null_safe: bool,
    },
    IsNull,
    Lower(&'e Expression, Edge),
    Upper(&'e Expression, Edge),
    Prefix(&'e Expression),
    /// What [`Finder::are_values`] is to be asked of.
    List(&'e [Expression]),
}

impl Binder<'_> {
    /// The node that reads a table, and whether its rows come in the wanted order.
    pub(crate) fn table_node(
        &mut self,
        table: usize,
        slot: usize,
        hints: &Hints,
        conditions: Vec<Expression>,
        wanted: Option<&WantedOrder>,
    ) -> (Node, bool) {
        let visible: Vec<&Expression> = conditions.iter().collect();
        let choice = self.choose_access(table, slot, hints, &visible, wanted);
        let is_ordered = choice.is_ordered;
        let dependent = self.dependents(access_values(&choice.access));
        if self.lock.0 == RowLock::Exclusive {
            self.reads_for_update = true;
            self.tables[table].is_for_update = true;
        }
        let fetch_rows_max = match wanted.filter(|_| is_ordered).map(|wanted| wanted.rows) {
            Some(WantedRows::Extreme) => 1,
            // Each row that is fetched is locked, and kept from others, wanted or not.
            Some(WantedRows::Limited) if self.lock.0 != RowLock::None => 1,
            Some(WantedRows::Limited) => 16,
            Some(WantedRows::All) | None => 64,
        };
        let scan = Scan {
            slot,
            table,
            index: choice.index,
            access: choice.access,
            direction: choice.direction,
            lock: self.lock.0,
            wait: self.lock.1,
            columns: self.columns_of(table, slot),
            fetch_rows_max,
            dependent,
            rows_estimate: stdx::f64_to_u64(choice.rows.max(1.0)),
            is_covering: choice.is_covering,
            possible_indexes: choice.possible.into(),
        };
        let rest = conditions
            .into_iter()
            .enumerate()
            .filter(|(place, _)| !choice.covered.contains(place))
            .map(|(_, condition)| condition)
            .collect();
        (
            self.with_filter(Node::Scan(Rc::new(scan)), rest),
            is_ordered,
        )
    }

    /// The columns of a table that the statement reads; `None` for all.
    fn columns_of(&self, table: usize, slot: usize) -> Option<Rc<[usize]>> {
        if self.reads_whole_rows {
            return None;
        }
        let columns: Vec<usize> = self.used_columns_of(slot).collect();
        let is_all = columns.len() == self.tables[table].definition.columns.len();
        (!is_all).then(|| columns.into())
    }

    fn used_columns_of(&self, slot: usize) -> impl Iterator<Item = usize> {
        let place = |column| ColumnPlace { slot, column };
        let places = self.used_columns.range(place(0)..=place(usize::MAX));
        places.map(|place| place.column)
    }

    /// The cheapest way to read a table under the conditions; they read only slots that are
    /// placed, and the table's own.
    pub(crate) fn choose_access(
        &self,
        table: usize,
        slot: usize,
        hints: &Hints,
        conditions: &[&Expression],
        wanted: Option<&WantedOrder>,
    ) -> AccessChoice {
        let definition = &self.tables[table].definition;
        let statistics = self.names.statistics(definition);
        let rows = match statistics.row_count {
            0 => ROWS_UNKNOWN,
            count => stdx::u64_to_f64(count),
        };
        // Who is safe by a key gets the key, however few rows there are.
        let is_safe = self.settings.limits.safe_updates && self.lock.0 == RowLock::Exclusive;
        let avoids_all = hints.is_forced || is_safe;
        let mut best = AccessChoice {
            index: None,
            access: Access::All,
            rows,
            cost: if avoids_all {
                (rows + 1.0) * 1e6
            } else {
                rows + 1.0
            },
            covered: Vec::new(),
            equal_count: 0,
            is_ordered: wanted.is_none(),
            is_covering: false,
            direction: Direction::Forward,
            possible: Vec::new(),
        };
        let mut possible = Vec::new();
        let all_index = definition.primary_key().map(|_| 0);
        let weigher = OrderWeigher {
            slot,
            definition,
            wanted,
            condition_count: conditions.len(),
        };
        weigher.weigh(&mut best, all_index);
        for index in 0..definition.indexes.len() {
            if !hints.allows(index) {
                continue;
            }
            let finder = Finder {
                binder: self,
                slot,
                definition,
                index,
                conditions,
            };
            let mut candidates = vec![finder.narrowed(rows, &statistics)];
            if candidates.iter().any(Option::is_some) {
                possible.push(index);
            }
            if wanted.is_some() || hints.is_forced {
                candidates.push(Some(finder.whole(rows)));
            }
            for mut candidate in candidates.into_iter().flatten() {
                weigher.weigh(&mut candidate, Some(index));
                if candidate.cost < best.cost {
                    best = candidate;
                }
            }
        }
        best.possible = possible;
        best
    }
}

/// One index against the conditions.
struct Finder<'f, 'a> {
    binder: &'f Binder<'a>,
    slot: usize,
    definition: &'f TableDefinition,
    index: usize,
    conditions: &'f [&'f Expression],
}

impl<'f> Finder<'f, '_> {
    fn index(&self) -> &'f IndexDefinition {
        &self.definition.indexes[self.index]
    }

    /// All of the index, for its order.
    fn whole(&self, rows: f64) -> AccessChoice {
        let is_primary = self.index().uniqueness == Uniqueness::Primary;
        AccessChoice {
            index: Some(self.index),
            access: Access::All,
            rows,
            cost: rows * if is_primary { 1.0 } else { LOOKUP_COST } + 2.0,
            covered: Vec::new(),
            equal_count: 0,
            is_ordered: false,
            is_covering: self.is_covering(),
            direction: Direction::Forward,
            possible: Vec::new(),
        }
    }

    /// The part of the index that the conditions leave; `None` if they leave all of it.
    fn narrowed(&self, rows: f64, statistics: &TableStatistics) -> Option<AccessChoice> {
        let index = self.index();
        let mut covered = Vec::new();
        let mut equal = Vec::new();
        for part in &index.parts {
            let Some((place, bound)) = self.equality(part.column) else {
                break;
            };
            if part.prefix_length.is_none() {
                covered.push(place);
            }
            equal.push(bound);
            if part.prefix_length.is_some() {
                break;
            }
        }
        let equal_count = equal.len();
        let is_unique = index.uniqueness != Uniqueness::None;
        let is_plain = |equal: &KeyEqual| !equal.null_safe;
        let has_prefix = index.parts.iter().any(|part| part.prefix_length.is_some());
        if is_unique
            && equal_count == index.parts.len()
            && equal.iter().all(is_plain)
            && !has_prefix
        {
            let values = equal.into_iter().map(|equal| equal.value).collect();
            return Some(self.choice(Access::Unique(values), 1.0, covered, equal_count));
        }
        let mut estimate = self.equal_rows(rows, equal_count, statistics);
        let ranges = match index.parts.get(equal_count) {
            Some(part) => self.ranges(part.column, &equal, &mut covered, &mut estimate),
            None => None,
        };
        let ranges = match ranges {
            Some(ranges) => ranges,
            None if equal_count == 0 => return None,
            None => vec![RangePlan {
                equal,
                lower: None,
                upper: None,
            }],
        };
        Some(self.choice(Access::Ranges(ranges), estimate, covered, equal_count))
    }

    fn choice(
        &self,
        access: Access,
        rows: f64,
        covered: Vec<usize>,
        equal_count: usize,
    ) -> AccessChoice {
        let is_primary = self.index().uniqueness == Uniqueness::Primary;
        let factor = if is_primary || self.is_covering() {
            1.0
        } else {
            LOOKUP_COST
        };
        AccessChoice {
            index: Some(self.index),
            access,
            rows,
            cost: rows * factor,
            covered,
            equal_count,
            is_ordered: false,
            is_covering: self.is_covering(),
            direction: Direction::Forward,
            possible: Vec::new(),
        }
    }

    /// True if the index holds every column that is read.
    fn is_covering(&self) -> bool {
        let primary = self
            .definition
            .primary_key()
            .map_or(&[][..], |key| &key.parts);
        let parts = self.index().parts.iter().chain(primary);
        let held: Vec<usize> = parts
            .filter(|part| part.prefix_length.is_none())
            .map(|part| part.column)
            .collect();
        let mut used = self.binder.used_columns_of(self.slot);
        !self.binder.reads_whole_rows && used.all(|column| held.contains(&column))
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

    /// The condition that binds a column to one value.
    fn equality(&self, column: usize) -> Option<(usize, KeyEqual)> {
        self.conditions
            .iter()
            .enumerate()
            .find_map(|(place, condition)| {
                let equal = match self.bound(condition, column)? {
                    Bound::Equal { value, null_safe } => KeyEqual {
                        value: value.clone(),
                        null_safe,
                    },
                    Bound::IsNull => KeyEqual {
                        value: Expression::null(),
                        null_safe: true,
                    },
                    _ => return None,
                };
                Some((place, equal))
            })
    }

    /// The ranges of a column behind the parts bound by equality.
    fn ranges(
        &self,
        column: usize,
        equal: &[KeyEqual],
        covered: &mut Vec<usize>,
        rows: &mut f64,
    ) -> Option<Vec<RangePlan>> {
        let has_prefix = self.index().parts[equal.len()].prefix_length.is_some();
        let mut range = RangePlan {
            equal: equal.to_vec(),
            lower: None,
            upper: None,
        };
        for (place, condition) in self.conditions.iter().enumerate() {
            match self.bound(condition, column) {
                Some(Bound::Lower(value, edge)) if range.lower.is_none() => {
                    range.lower = Some(Box::new((value.clone(), edge)));
                    if !has_prefix {
                        covered.push(place);
                    }
                }
                Some(Bound::Upper(value, edge)) if range.upper.is_none() => {
                    range.upper = Some(Box::new((value.clone(), edge)));
                    if !has_prefix {
                        covered.push(place);
                    }
                }
                _ => {}
            }
        }
        match (&range.lower, &range.upper) {
            (Some(_), Some(_)) => *rows *= 0.05,
            (Some(_), None) | (None, Some(_)) => *rows *= 0.3,
            (None, None) => return self.other_ranges(column, equal, covered, rows),
        }
        Some(vec![range])
    }

    /// As [`Binder::spend`]: a statement that is to end is ended where its plan is to run.
    fn spend(&self) {
        let _ = self.binder.spend();
    }

    /// Lists, alternatives and LIKE prefixes.
    fn other_ranges(
        &self,
        column: usize,
        equal: &[KeyEqual],
        covered: &mut Vec<usize>,
        rows: &mut f64,
    ) -> Option<Vec<RangePlan>> {
        let has_prefix = self.index().parts[equal.len()].prefix_length.is_some();
        for (place, condition) in self.conditions.iter().enumerate() {
            match self.bound(condition, column) {
                Some(Bound::List(list)) if self.are_values(list) => {
                    if !has_prefix {
                        covered.push(place);
                    }
                    let count = stdx::u64_to_f64(stdx::to_u64(list.len()));
                    let is_unique = self.index().uniqueness != Uniqueness::None
                        && self.index().parts.len() == equal.len() + 1;
                    let each = if is_unique {
                        1.0
                    } else {
                        (*rows / 100.0).max(2.0)
                    };
                    *rows = rows.min(count * each);
                    return Some(self.points(equal, list).collect());
                }
                Some(Bound::Prefix(pattern)) => {
                    *rows *= 0.2;
                    let lower = Some(Box::new((pattern.clone(), Edge::Prefix)));
                    let upper = Some(Box::new((pattern.clone(), Edge::Prefix)));
                    return Some(vec![RangePlan {
                        equal: equal.to_vec(),
                        lower,
                        upper,
                    }]);
                }
                _ => {}
            }
            if let ExpressionKind::Or(list) = &condition.kind
                && let Some(ranges) = self.alternatives(list, column, equal)
            {
                let count = stdx::u64_to_f64(stdx::to_u64(ranges.len()));
                *rows = rows.min(count * (*rows * 0.1));
                return Some(ranges);
            }
        }
        None
    }

    /// True if the expression has one value while the table is read.
    fn is_value(&self, side: &Expression) -> bool {
        self.spend();
        matches!(side.kind, ExpressionKind::Constant(_))
            || !self.binder.slots_of(side).contains(&self.slot) && !side.is_volatile()
    }

    /// The same of all of a list, which may be long: asked once it is its turn.
    fn are_values(&self, list: &[Expression]) -> bool {
        list.iter().all(|value| self.is_value(value))
    }

    /// The ranges of a list.
    fn points(&self, equal: &[KeyEqual], list: &[Expression]) -> impl Iterator<Item = RangePlan> {
        list.iter().map(|value| {
            self.spend();
            point(equal, value)
        })
    }

    /// The ranges of alternatives that all bound the column.
    fn alternatives(
        &self,
        list: &[Expression],
        column: usize,
        equal: &[KeyEqual],
    ) -> Option<Vec<RangePlan>> {
        let mut ranges = Vec::with_capacity(list.len());
        for alternative in list {
            let parts = match &alternative.kind {
                ExpressionKind::And(parts) => parts.as_slice(),
                _ => std::slice::from_ref(alternative),
            };
            let mut range = RangePlan {
                equal: equal.to_vec(),
                lower: None,
                upper: None,
            };
            let mut is_bound = false;
            for part in parts {
                match self.bound(part, column) {
                    Some(Bound::Equal { value, null_safe }) => {
                        range = point(equal, value);
                        range.equal.last_mut().expect("a point ends it").null_safe = null_safe;
                        is_bound = true;
                        break;
                    }
                    Some(Bound::IsNull) => {
                        range = point(equal, &Expression::null());
                        range.equal.last_mut().expect("a point ends it").null_safe = true;
                        is_bound = true;
                        break;
                    }
                    Some(Bound::List(list)) if self.are_values(list) => {
                        ranges.extend(self.points(equal, list));
                        is_bound = true;
                    }
                    Some(Bound::Lower(value, edge)) => {
                        range.lower = Some(Box::new((value.clone(), edge)));
                        is_bound = true;
                    }
                    Some(Bound::Upper(value, edge)) => {
                        range.upper = Some(Box::new((value.clone(), edge)));
                        is_bound = true;
                    }
                    Some(Bound::List(_) | Bound::Prefix(_)) | None => {}
                }
            }
            if !is_bound {
                return None;
            }
            let is_list =
                range.equal.len() == equal.len() && range.lower.is_none() && range.upper.is_none();
            if !is_list {
                ranges.push(range);
            }
        }
        Some(ranges)
    }

    /// What a condition says of a column, where an index can answer it.
    fn bound<'e>(&self, condition: &'e Expression, column: usize) -> Option<Bound<'e>> {
        let place = ColumnPlace {
            slot: self.slot,
            column,
        };
        let column_type = &self.definition.columns[column].column_type;
        let is_column = |side: &Expression| side.as_column() == Some(place);
        let is_value = |side: &Expression| self.is_value(side);
        match &condition.kind {
            ExpressionKind::Compare(compare) => {
                if !is_usable(column_type, compare.class, compare.operator) {
                    return None;
                }
                if is_column(&compare.left) && is_value(&compare.right) {
                    comparison_bound(compare.operator, &compare.right)
                } else if is_column(&compare.right) && is_value(&compare.left) {
                    comparison_bound(compare.operator.mirrored(), &compare.left)
                } else {
                    None
                }
            }
            ExpressionKind::Is {
                operand,
                test: Test::Null,
                negated: false,
            } => is_column(operand).then_some(Bound::IsNull),
            ExpressionKind::In(list) => {
                let can_use = !list.negated
                    && is_column(&list.operand)
                    && is_usable(column_type, list.class, CompareOperator::Equal);
                can_use.then_some(Bound::List(&list.list))
            }
            ExpressionKind::Like(like) => {
                let can_use = !like.negated
                    && like.escape == Some(u32::from(b'\\'))
                    && is_column(&like.operand)
                    && column_type.kind.is_bytes()
                    && like.collation == column_type.collation
                    && is_value(&like.pattern);
                can_use.then_some(Bound::Prefix(&like.pattern))
            }
            _ => None,
        }
    }
}

fn comparison_bound(operator: CompareOperator, value: &Expression) -> Option<Bound<'_>> {
    Some(match operator {
        CompareOperator::Equal => Bound::Equal {
            value,
            null_safe: false,
        },
        CompareOperator::NullSafeEqual => Bound::Equal {
            value,
            null_safe: true,
        },
        CompareOperator::Less => Bound::Upper(value, Edge::Exclusive),
        CompareOperator::LessOrEqual => Bound::Upper(value, Edge::Inclusive),
        CompareOperator::Greater => Bound::Lower(value, Edge::Exclusive),
        CompareOperator::GreaterOrEqual => Bound::Lower(value, Edge::Inclusive),
        CompareOperator::NotEqual => return None,
    })
}

fn point(equal: &[KeyEqual], value: &Expression) -> RangePlan {
    // Of a long list there are many: they take the room that they need.
    let mut values = Vec::with_capacity(equal.len() + 1);
    values.extend_from_slice(equal);
    values.push(KeyEqual {
        value: value.clone(),
        null_safe: false,
    });
    RangePlan {
        equal: values,
        lower: None,
        upper: None,
    }
}

/// True if an index on the column answers the comparison: its order is the one in which the
/// comparison works, or equality is asked for and each value equals one key at most.
fn is_usable(column_type: &ColumnType, class: Class, operator: CompareOperator) -> bool {
    match (column_type.kind, class) {
        // Keys are the members' numbers, whose order says nothing of the texts.
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
        // Doubles tell sets of more than 53 members apart less well than keys do.
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

/// True of an ENUM with a member that is an empty text: the text of the number 0, which stands for
/// what is no member, equals it too.
fn has_empty_member(column_type: &ColumnType) -> bool {
    let is_empty = |name: &[u8]| column_type.collation.equal(name, b"");
    column_type.members().iter().any(|name| is_empty(name))
}

pub(crate) fn access_values(access: &Access) -> Vec<&Expression> {
    match access {
        Access::All => Vec::new(),
        Access::Unique(values) => values.iter().collect(),
        Access::Ranges(ranges) => ranges
            .iter()
            .flat_map(|range| {
                let bounds = range.lower.iter().chain(&range.upper).map(|bound| &bound.0);
                range.equal.iter().map(|equal| &equal.value).chain(bounds)
            })
            .collect(),
    }
}
