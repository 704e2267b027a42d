//! Whether an access returns rows in the wanted order, and what that is worth.

use std::borrow::Cow;

use expression::{ColumnPlace, Expression, ExpressionKind};
use store::{Direction, IndexPart, TableDefinition, TableStatistics};
use value::ValueRef;

use super::{AccessChoice, Candidate};
use crate::bind::Binder;
use crate::keys::KeyCondition;
use crate::keys::{Edge, RangePlan};
use crate::plan::Limit;

/// The wanted order of rows.
#[derive(Debug)]
pub(crate) struct WantedOrder {
    pub(crate) columns: Vec<(ColumnPlace, bool)>,
    pub(crate) rows: WantedRows,
    /// How many rows or groups these are, roughly.
    pub(crate) row_count: f64,
}

/// How many rows in that order are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedRows {
    All,
    /// The first ones.
    Limited,
    /// Those of the first groups, whose rows are alike in all of these columns.
    Groups,
    /// One, for MIN or MAX: the first that is not NULL. Only for an index that answers all
    /// conditions; otherwise the scan could look up most of the rows in vain.
    Extreme,
}

/// The rows that a LIMIT is taken to ask for if its value is not known.
const LIMIT_UNKNOWN: f64 = 100.0;

impl Binder<'_> {
    /// How many rows are read for a LIMIT, those that are skipped included.
    pub(crate) fn rows_until(&self, limit: &Limit) -> f64 {
        let given = self.names.given_values();
        let count = |limit: &Expression| {
            let value = match &limit.kind {
                ExpressionKind::Constant(value) => Some(value),
                ExpressionKind::Parameter(number) => given
                    .as_ref()
                    .and_then(|given| given.parameters.get(*number)),
                _ => None,
            };
            match value.map(|value| value.as_ref()) {
                Some(ValueRef::Int(count)) => stdx::i64_to_f64(count),
                Some(ValueRef::UInt(count)) => stdx::u64_to_f64(count),
                _ => LIMIT_UNKNOWN,
            }
        };
        match limit.counts_all {
            true => f64::INFINITY,
            false => limit.count.iter().chain(&limit.offset).map(count).sum(),
        }
    }
}

/// What part of the rows the first ones are taken to be.
const LIMITED_PART: f64 = 0.2;

/// One table and the order wanted of it.
pub(super) struct OrderWeigher<'w> {
    pub(super) slot: usize,
    pub(super) definition: &'w TableDefinition,
    pub(super) wanted: Option<&'w WantedOrder>,
    pub(super) statistics: &'w TableStatistics,
    /// The rows of the table.
    pub(super) rows: f64,
    /// The conditions on the table.
    pub(super) condition_count: usize,
}

impl OrderWeigher<'_> {
    /// Finds out whether the rows come in the wanted order, in which direction, and what that is
    /// worth. `index` is the index that gives their order.
    pub(super) fn weigh(&self, choice: &mut AccessChoice<'_>, index: Option<usize>) {
        let Some(wanted) = self.wanted else {
            choice.is_ordered = true;
            return;
        };
        let ordered = self.direction(choice, index, wanted);
        if wanted.rows == WantedRows::Extreme {
            choice.is_ordered = false;
            if let Some((direction, _)) = ordered
                && self.answers_all(choice)
            {
                self.make_extreme(choice, direction, wanted);
            }
            return;
        }
        choice.is_ordered = ordered.is_some();
        let Some((direction, depth)) = ordered else {
            choice.cost += choice.rows * 0.5;
            return;
        };
        choice.direction = direction;
        choice.wanted_part = match wanted.rows {
            WantedRows::Limited => LIMITED_PART,
            WantedRows::Groups => self.part_of_groups(choice, (index, depth), wanted),
            WantedRows::All | WantedRows::Extreme => 1.0,
        };
        choice.cost *= choice.wanted_part;
    }

    /// What part of the rows the wanted groups have, which that many parts of an index tell apart.
    fn part_of_groups(
        &self,
        choice: &AccessChoice<'_>,
        (index, depth): (Option<usize>, usize),
        wanted: &WantedOrder,
    ) -> f64 {
        let counts = index.and_then(|index| self.statistics.distinct.get(index));
        let count = counts.and_then(|it| it.get(depth.checked_sub(1)?).or(it.last()));
        let Some(count) = count.filter(|count| **count > 0) else {
            return LIMITED_PART;
        };
        let read_part = choice.rows / self.rows.max(1.0);
        let group_count = stdx::u64_to_f64(*count) * read_part.min(1.0);
        (wanted.row_count / group_count.max(1.0)).min(1.0)
    }

    /// The direction in which the rows come in the wanted order, and how many parts of the index
    /// are equal or give the order; `None` if they do not.
    fn direction(
        &self,
        choice: &AccessChoice<'_>,
        index: Option<usize>,
        wanted: &WantedOrder,
    ) -> Option<(Direction, usize)> {
        let parts = self.parts(index);
        let (bound, free) = parts.split_at(choice.equal_count.min(parts.len()));
        let is_bound = |place: &ColumnPlace| {
            place.slot == self.slot && bound.iter().any(|part| part.column == place.column)
        };
        let rest: Vec<&(ColumnPlace, bool)> = wanted
            .columns
            .iter()
            .filter(|(place, _)| !is_bound(place))
            .collect();
        let descending = rest.first().is_some_and(|(_, descending)| *descending);
        let follows = rest.len() <= free.len()
            && rest.iter().zip(free).all(|((place, desc), part)| {
                let is_part = place.slot == self.slot && place.column == part.column;
                is_part && part.prefix_length.is_none() && *desc == descending
            });
        let is_unique = matches!(choice.access, Candidate::Unique(_));
        let direction = match descending {
            true => Direction::Backward,
            false => Direction::Forward,
        };
        (is_unique || follows).then_some((direction, bound.len() + rest.len()))
    }

    /// The parts that order the entries of an index: its own, then those of the key that the rows
    /// are kept by.
    fn parts(&self, index: Option<usize>) -> Vec<IndexPart> {
        let Some(index) = index.map(|index| &self.definition.indexes[index]) else {
            return Vec::new();
        };
        let mut parts = index.parts.clone();
        if !index.is_clustered() {
            let row_key = self.definition.clustered_key();
            parts.extend(row_key.iter().flat_map(|key| &key.parts));
        }
        parts
    }

    /// True if the access answers all conditions.
    fn answers_all(&self, choice: &AccessChoice<'_>) -> bool {
        let all = 0..self.condition_count;
        choice.index.is_some() && all.into_iter().all(|place| choice.covered.contains(&place))
    }

    /// Turns the access into one of a single row.
    fn make_extreme(
        &self,
        choice: &mut AccessChoice<'_>,
        direction: Direction,
        wanted: &WantedOrder,
    ) {
        choice.is_ordered = true;
        choice.direction = direction;
        choice.rows = 1.0;
        choice.cost = 1.0;
        let parts = self.parts(choice.index);
        let is_wanted = |column: usize| wanted.columns.iter().any(|(it, _)| it.column == column);
        let has_null = parts.get(choice.equal_count).is_some_and(|part| {
            is_wanted(part.column) && self.definition.columns[part.column].nullable
        });
        // NULL is below all: a backward scan meets it after all values.
        if has_null && direction == Direction::Forward {
            leave_out_null(&mut choice.access, choice.equal_count);
        }
    }
}

/// Excludes NULL in the part after the equal ones, in ranges without a bound there.
fn leave_out_null(access: &mut Candidate<'_>, equal_count: usize) {
    if matches!(access, Candidate::All) {
        *access = Candidate::Range(RangePlan {
            equal: Vec::new(),
            lower: None,
            upper: None,
        });
    }
    match access {
        Candidate::All | Candidate::Unique(_) => {}
        Candidate::Range(range) => {
            let is_open = range.lower.is_none() && range.upper.is_none();
            if is_open && range.equal.len() == equal_count {
                range.lower = Some(Box::new((Expression::null(), Edge::NotNull)));
            }
        }
        Candidate::Keys { conditions, reach } => {
            conditions.push(KeyCondition::Lower {
                part: equal_count,
                value: Cow::Owned(Expression::null()),
                edge: Edge::NotNull,
            });
            reach.depth = reach.depth.max(equal_count + 1);
        }
    }
}
