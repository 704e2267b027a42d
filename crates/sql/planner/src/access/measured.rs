//! How many rows an access finds, as the store measures it.
//!
//! The ranges of an access are computed with the values that the statement has now: its constants,
//! and the parameters of its first execution. Where a bound needs a row of another table there is
//! no range to be measured, and kept statistics have to do.

use expression::{Expression, ExpressionKind, KeyClock};
use store::{IndexDefinition, KeyBound, KeyRange, Uniqueness};
use value::{Value, ValueRef};

use super::finder::Finder;
use crate::keys::RangePlan;
use crate::keys::{KeyCondition, KeySource, Reach, range_of, ranges_of};
use crate::names::GivenValues;

/// Ranges of one access that are measured; of more, so many are picked evenly.
const MEASURED_RANGES_MAX: usize = 16;

/// Conditions with more values are not made into ranges for an estimate.
const VALUE_COUNT_MAX: usize = 4096;

/// A bound's value is not known before the statement runs.
#[derive(Debug)]
enum Unknown {
    /// It needs a row, or more than a look.
    Value,
    /// The statement is to end; where its plan runs it is told so.
    End,
}

/// The values of one statement, as a source of keys.
struct Given<'f, 'a> {
    binder: &'f crate::bind::Binder<'a>,
    values: GivenValues<'f>,
}

impl KeySource for Given<'_, '_> {
    type Error = Unknown;

    fn value<'v>(&'v self, expression: &'v Expression) -> Result<ValueRef<'v>, Unknown> {
        match &expression.kind {
            ExpressionKind::Constant(value) => Ok(value.as_ref()),
            ExpressionKind::Parameter(number) => {
                self.binder.asked_values.set(true);
                let value = self.values.parameters.get(*number).ok_or(Unknown::Value)?;
                Ok(value.as_ref())
            }
            _ => Err(Unknown::Value),
        }
    }

    fn clock(&self) -> KeyClock<'_> {
        KeyClock {
            zone: self.values.zone,
            today: self.binder.settings.today,
        }
    }

    fn spend(&self, _bytes: usize) -> Result<(), Unknown> {
        self.binder.spend().map_err(|_| Unknown::End)
    }
}

impl Finder<'_, '_, '_> {
    /// Rows of an access by one range; `None` if the store cannot tell now.
    pub(super) fn measured_range(&self, plan: &RangePlan) -> Option<f64> {
        let source = self.given()?;
        let mut range = KeyRange::all();
        match range_of(plan, self.definition, self.index(), &source, &mut range) {
            Ok(true) => self.measured(&[range]),
            Ok(false) => Some(0.0),
            Err(Unknown::Value | Unknown::End) => None,
        }
    }

    /// Rows of an access by ranges of whole keys, likewise.
    pub(super) fn measured_keys(
        &self,
        conditions: &[KeyCondition<'_>],
        reach: &Reach,
    ) -> Option<f64> {
        let mut value_count = 0;
        for condition in conditions {
            condition.for_each_value(&mut |_| value_count += 1);
        }
        if VALUE_COUNT_MAX < value_count {
            return None;
        }
        let source = self.given()?;
        let place = (self.definition, self.index());
        // Cheap: the values are borrowed from the statement.
        let all = KeyCondition::All(conditions.to_vec());
        let ranges = ranges_of(&all, reach.depth, place, &source).ok()?;
        self.measured(&ranges)
    }

    fn given(&self) -> Option<Given<'_, '_>> {
        let values = self.binder.names.given_values()?;
        let binder = self.binder;
        Some(Given { binder, values })
    }

    /// Rows of ranges. Those of a unique index that name whole keys have one at most.
    fn measured(&self, ranges: &[KeyRange]) -> Option<f64> {
        let index = self.index();
        let is_long = |range: &&KeyRange| !is_one_key(range, index);
        let long: Vec<&KeyRange> = ranges.iter().filter(is_long).collect();
        let point_count = stdx::u64_to_f64(stdx::to_u64(ranges.len() - long.len()));
        if long.is_empty() {
            return Some(point_count);
        }
        let picked_count = long.len().min(MEASURED_RANGES_MAX);
        let picked = (0..picked_count).map(|place| long[place * long.len() / picked_count].clone());
        let picked: Vec<KeyRange> = picked.collect();
        let names = self.binder.names;
        let counts = names.range_rows(self.definition, self.index, picked)?;
        let sum: u64 = counts.iter().sum();
        let part = |count: usize| stdx::u64_to_f64(stdx::to_u64(count));
        let scale = part(long.len()) / part(picked_count);
        Some(stdx::u64_to_f64(sum) * scale + point_count)
    }
}

/// True if at most one row of the index can be in the range.
fn is_one_key(range: &KeyRange, index: &IndexDefinition) -> bool {
    let is_whole = |values: &[Value]| {
        let has_null = values.iter().any(|value| matches!(value, Value::Null));
        values.len() == index.parts.len() && !has_null
    };
    let has_prefix = index.parts.iter().any(|part| part.prefix_length.is_some());
    match (&range.lower, &range.upper) {
        (KeyBound::Inclusive(lower), KeyBound::Inclusive(upper)) => {
            let is_unique = index.uniqueness != Uniqueness::None && !has_prefix;
            is_unique && lower == upper && is_whole(lower)
        }
        _ => false,
    }
}
