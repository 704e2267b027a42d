//! Whether an access returns rows in the wanted order, and what that is worth.

use std::borrow::Cow;

use expression::{ColumnPlace, Expression, ExpressionKind};
use store::{Direction, IndexPart, TableDefinition};
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
    /// How many rows these are, roughly.
    pub(crate) row_count: f64,
}

/// How many rows in that order are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedRows {
    All,
    /// The first ones.
    Limited,
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

/// What part of its cost an access is taken to have if only its first rows are wanted.
const LIMITED_PART: f64 = 0.2;

impl AccessChoice<'_> {
    /// The cost of all rows of an access that was chosen for a wanted order.
    pub(crate) fn cost_of_all(&self, wanted: &WantedOrder) -> f64 {
        match self.is_ordered && wanted.rows == WantedRows::Limited {
            true => self.cost / LIMITED_PART,
            false => self.cost,
        }
    }
}

/// One table and the order wanted of it.
pub(super) struct OrderWeigher<'w> {
    pub(super) slot: usize,
    pub(super) definition: &'w TableDefinition,
    pub(super) wanted: Option<&'w WantedOrder>,
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
        let direction = self.direction(choice, index, wanted);
        if wanted.rows == WantedRows::Extreme {
            choice.is_ordered = false;
            if let Some(direction) = direction
                && self.answers_all(choice)
            {
                self.make_extreme(choice, direction, wanted);
            }
            return;
        }
        choice.is_ordered = direction.is_some();
        let Some(direction) = direction else {
            choice.cost += choice.rows * 0.5;
            return;
        };
        choice.direction = direction;
        if wanted.rows == WantedRows::Limited {
            choice.cost *= LIMITED_PART;
        }
    }

    /// The direction in which the rows come in the wanted order, or `None`.
    fn direction(
        &self,
        choice: &AccessChoice<'_>,
        index: Option<usize>,
        wanted: &WantedOrder,
    ) -> Option<Direction> {
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
        (is_unique || follows).then_some(match descending {
            true => Direction::Backward,
            false => Direction::Forward,
        })
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
