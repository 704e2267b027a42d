//! Computes ranges from values.
//!
//! The values that bound a range are computed when the scan starts. They are converted to the
//! columns' types, which may round. A bound between two possible keys becomes the correct side of
//! the nearer one, so that a range never loses a row.

use std::cmp::Ordering;

use expression::{Expression, KeyClock, KeyValue, compare_values, key_value, like_prefix};
use stdx::{ChunkedVec, merge_sort};
use store::{ColumnDefinition, IndexDefinition, KeyBound, KeyRange, TableDefinition};
use value::{ColumnType, Value, ValueRef};

use super::condition::{KeyCondition, KeyPlan};
use super::range_plan::{Edge, KeyEqual, RangePlan};
use super::set::{Algebra, Cut, Flattener, KeySet};

/// Where the values of conditions come from.
pub trait KeySource {
    /// The error if there is no value.
    type Error;

    /// The value of an expression.
    ///
    /// # Errors
    /// If it cannot be computed.
    fn value<'v>(&'v self, expression: &'v Expression) -> Result<ValueRef<'v>, Self::Error>;

    /// What dates depend on.
    fn clock(&self) -> KeyClock<'_>;

    /// Counts work, in bytes read; others may run before it returns.
    ///
    /// # Errors
    /// If the statement has to end.
    fn spend(&self, bytes: usize) -> Result<(), Self::Error>;
}

/// The cost of making a range, in bytes read.
const RANGE_COST: usize = 64;

/// The cost of comparing a text with the name of a member, in bytes read.
const MEMBER_COST: usize = 8;

/// An index and where values come from.
struct Builder<'a, S> {
    definition: &'a TableDefinition,
    index: &'a IndexDefinition,
    source: &'a S,
}

/// The result of computing a bound.
enum Bound {
    /// The range ends here.
    Set(Cut),
    /// No key satisfies the bound.
    Nothing,
}

/// The ranges of an access, ascending and disjoint.
///
/// # Errors
/// Those of the values.
pub fn key_ranges<S: KeySource>(
    plan: &KeyPlan,
    definition: &TableDefinition,
    index: &IndexDefinition,
    source: &S,
) -> Result<Vec<KeyRange>, S::Error> {
    ranges_of(&plan.condition, plan.depth, (definition, index), source)
}

/// The ranges of keys that satisfy a condition, by the first `depth` parts of an index.
pub(crate) fn ranges_of<S: KeySource>(
    condition: &KeyCondition<'_>,
    depth: usize,
    (definition, index): (&TableDefinition, &IndexDefinition),
    source: &S,
) -> Result<Vec<KeyRange>, S::Error> {
    let builder = Builder {
        definition,
        index,
        source,
    };
    let types = builder.types();
    let spend = |bytes: usize| source.spend(bytes);
    let algebra = || Algebra {
        types: &types,
        spend: &spend,
    };
    let set = builder.set(condition, depth, &algebra())?;
    let mut flattener = Flattener::new(algebra(), depth);
    flattener.flatten(&set)?;
    Ok(flattener.ranges)
}

/// The range of a one-range plan, in the buffers of `range`. Returns false if no key is in it.
///
/// # Errors
/// Those of the values.
pub fn range_of<S: KeySource>(
    plan: &RangePlan,
    definition: &TableDefinition,
    index: &IndexDefinition,
    source: &S,
    range: &mut KeyRange,
) -> Result<bool, S::Error> {
    let builder = Builder {
        definition,
        index,
        source,
    };
    let mut lower = emptied(&mut range.lower);
    let mut upper = emptied(&mut range.upper);
    for (part, equal) in plan.equal.iter().enumerate() {
        let Some(key) = builder.equal_key(part, equal)? else {
            return Ok(false);
        };
        upper.push(key.clone());
        lower.push(key);
    }
    let (mut lower_cut, mut upper_cut) = (Cut::Open, Cut::Open);
    if plan.lower.is_some() || plan.upper.is_some() {
        let part = plan.equal.len();
        let (Bound::Set(low), Bound::Set(high)) = (
            builder.lower_cut(part, pair(plan.lower.as_deref()))?,
            builder.upper_cut(part, pair(plan.upper.as_deref()))?,
        ) else {
            return Ok(false);
        };
        (lower_cut, upper_cut) = (low, high);
    }
    range.lower = match lower_cut {
        Cut::Behind(value) => {
            lower.push(value);
            KeyBound::Exclusive(lower)
        }
        cut => {
            lower.extend(cut.into_value());
            match lower.is_empty() {
                true => KeyBound::Open,
                false => KeyBound::Inclusive(lower),
            }
        }
    };
    range.upper = match upper_cut {
        Cut::Before(value) => {
            upper.push(value);
            KeyBound::Exclusive(upper)
        }
        cut => {
            upper.extend(cut.into_value());
            match upper.is_empty() {
                true => KeyBound::Open,
                false => KeyBound::Inclusive(upper),
            }
        }
    };
    Ok(true)
}

fn pair(bound: Option<&(Expression, Edge)>) -> Option<(&Expression, Edge)> {
    bound.map(|(value, edge)| (value, *edge))
}

/// The range of one row of a unique index, in the buffers of `range`. Returns false if no key can
/// match.
///
/// # Errors
/// Those of the values.
pub fn unique_range<S: KeySource>(
    values: &[Expression],
    definition: &TableDefinition,
    index: &IndexDefinition,
    source: &S,
    range: &mut KeyRange,
) -> Result<bool, S::Error> {
    let builder = Builder {
        definition,
        index,
        source,
    };
    let mut lower = emptied(&mut range.lower);
    let mut upper = emptied(&mut range.upper);
    for (part, expression) in values.iter().enumerate() {
        let value = source.value(expression)?;
        if value.is_null() {
            return Ok(false);
        }
        let KeyValue::Exact(key) = builder.key(value, expression, part)? else {
            return Ok(false);
        };
        upper.push(key.clone());
        lower.push(key);
    }
    range.lower = KeyBound::Inclusive(lower);
    range.upper = KeyBound::Inclusive(upper);
    Ok(true)
}

/// The buffer of a bound, empty.
fn emptied(bound: &mut KeyBound) -> Vec<Value> {
    match std::mem::take(bound) {
        KeyBound::Open => Vec::new(),
        KeyBound::Inclusive(mut values) | KeyBound::Exclusive(mut values) => {
            values.clear();
            values
        }
    }
}

impl<S: KeySource> Builder<'_, S> {
    fn column(&self, part: usize) -> &ColumnDefinition {
        &self.definition.columns[self.index.parts[part].column]
    }

    fn types(&self) -> Vec<&ColumnType> {
        let parts = 0..self.index.parts.len();
        parts.map(|part| &self.column(part).column_type).collect()
    }

    /// The keys that satisfy a condition, by the first `depth` parts.
    fn set(
        &self,
        condition: &KeyCondition<'_>,
        depth: usize,
        algebra: &Algebra<'_, S::Error>,
    ) -> Result<KeySet, S::Error> {
        self.source.spend(RANGE_COST)?;
        match condition {
            KeyCondition::All(list) => {
                let mut all = KeySet::Everything;
                for condition in list {
                    let set = self.set(condition, depth, algebra)?;
                    all = algebra.and(&all, &set)?;
                    if matches!(all, KeySet::Nothing) {
                        break;
                    }
                }
                Ok(all)
            }
            KeyCondition::Any(list) => {
                let mut sets = Vec::with_capacity(list.len());
                for condition in list {
                    sets.push(self.set(condition, depth, algebra)?);
                }
                algebra.any(sets)
            }
            KeyCondition::Rows { .. } => self.rows(condition, depth, algebra),
            KeyCondition::Equal { part, .. }
            | KeyCondition::Lower { part, .. }
            | KeyCondition::Upper { part, .. }
                if depth <= *part =>
            {
                Ok(KeySet::Everything)
            }
            KeyCondition::Equal {
                part,
                value,
                null_safe,
            } => {
                let key = self.key_equal_to(*part, value, *null_safe)?;
                Ok(key.map_or(KeySet::Nothing, |key| {
                    KeySet::point(*part, key, KeySet::Everything)
                }))
            }
            KeyCondition::Lower { part, value, edge } => {
                match self.lower_cut(*part, Some((value, *edge)))? {
                    Bound::Set(cut) => Ok(KeySet::between(*part, cut, Cut::Open)),
                    Bound::Nothing => Ok(KeySet::Nothing),
                }
            }
            KeyCondition::Upper { part, value, edge } => {
                let lower = self.lower_cut(*part, None)?;
                let upper = self.upper_cut(*part, Some((value, *edge)))?;
                match (lower, upper) {
                    (Bound::Set(lower), Bound::Set(upper)) => {
                        Ok(KeySet::between(*part, lower, upper))
                    }
                    _ => Ok(KeySet::Nothing),
                }
            }
        }
    }

    /// The keys that equal one of many rows. The rows are sorted; those with the same first value
    /// become one interval with a level below it.
    fn rows(
        &self,
        condition: &KeyCondition<'_>,
        depth: usize,
        algebra: &Algebra<'_, S::Error>,
    ) -> Result<KeySet, S::Error> {
        let KeyCondition::Rows {
            parts,
            places,
            width,
            values,
        } = condition
        else {
            unreachable!("called for rows");
        };
        let used = parts.iter().take_while(|part| **part < depth).count();
        let (parts, places) = (&parts[..used], &places[..used]);
        if used == 0 {
            return Ok(KeySet::Everything);
        }
        let mut keys: Vec<Value> = Vec::with_capacity(values.len() / width * used);
        for row in values.chunks(*width) {
            let start = keys.len();
            for (part, place) in parts.iter().zip(places) {
                let Some(key) = self.key_equal_to(*part, &row[*place], false)? else {
                    keys.truncate(start);
                    break;
                };
                keys.push(key);
            }
        }
        let types: Vec<&ColumnType> = parts
            .iter()
            .map(|part| &self.column(*part).column_type)
            .collect();
        let order = self.sorted(&keys, &types)?;
        let list = SortedRows {
            keys: &keys,
            order: &order,
            parts,
            types: &types,
            spend: algebra.spend,
        };
        list.set(0, 0, order.len())
    }

    /// The numbers of the rows in ascending order.
    fn sorted(&self, keys: &[Value], types: &[&ColumnType]) -> Result<ChunkedVec<u32>, S::Error> {
        let width = types.len();
        let mut order = ChunkedVec::new();
        for row in 0..keys.len() / width {
            order.push(stdx::to_u32(row));
        }
        let spend = |count: usize| self.source.spend(RANGE_COST * count);
        let row = |number: u32| {
            let start = stdx::to_usize(number) * width;
            &keys[start..start + width]
        };
        let compare = |a: u32, b: u32| {
            spend(1)?;
            Ok::<_, S::Error>(compare_rows(row(a), row(b), types))
        };
        merge_sort(&mut order, compare, spend)?;
        Ok(order)
    }

    /// The value of an expression that is not NULL, as a key of a part.
    fn key(
        &self,
        value: ValueRef<'_>,
        expression: &Expression,
        part: usize,
    ) -> Result<KeyValue, S::Error> {
        let target = &self.column(part).column_type;
        // The names of an ENUM are compared one by one.
        self.source.spend(MEMBER_COST * target.members().len())?;
        let clock = self.source.clock();
        Ok(key_value(value, &expression.column_type, target, &clock))
    }

    fn equal_key(&self, part: usize, equal: &KeyEqual) -> Result<Option<Value>, S::Error> {
        self.key_equal_to(part, &equal.value, equal.null_safe)
    }

    /// The key that equals a value; `None` if no key can.
    fn key_equal_to(
        &self,
        part: usize,
        expression: &Expression,
        null_safe: bool,
    ) -> Result<Option<Value>, S::Error> {
        let value = self.source.value(expression)?;
        let column = self.column(part);
        if value.is_null() {
            // A key of a NOT NULL column has no bytes for NULL.
            let can_be = null_safe && column.nullable;
            return Ok(can_be.then_some(Value::Null));
        }
        match self.key(value, expression, part)? {
            KeyValue::Exact(key) => Ok(Some(self.prefix_of(key, part))),
            _ => Ok(None),
        }
    }

    /// The cut below the keys of a lower bound; without one, above NULL.
    fn lower_cut(
        &self,
        part: usize,
        bound: Option<(&Expression, Edge)>,
    ) -> Result<Bound, S::Error> {
        let column = self.column(part);
        // NULL is below all, and comparisons never find it.
        let above_null = || match column.nullable {
            true => Cut::Behind(Value::Null),
            false => Cut::Open,
        };
        let Some((expression, edge)) = bound.filter(|(_, edge)| *edge != Edge::NotNull) else {
            return Ok(Bound::Set(above_null()));
        };
        let value = self.source.value(expression)?;
        if value.is_null() {
            return Ok(Bound::Nothing);
        }
        let cut = if edge == Edge::Prefix {
            match like_prefix(value, &expression.column_type, &column.column_type) {
                Some((lower, _)) => Cut::Before(lower),
                None => above_null(),
            }
        } else {
            match (self.key(value, expression, part)?, edge) {
                (KeyValue::Exact(key), Edge::Inclusive) => Cut::Before(key),
                (KeyValue::Exact(key) | KeyValue::Above(key), _) => Cut::Behind(key),
                (KeyValue::BelowAll, _) => above_null(),
                (KeyValue::AboveAll, _) => return Ok(Bound::Nothing),
            }
        };
        Ok(Bound::Set(match (cut, self.has_prefix(part)) {
            (Cut::Before(key) | Cut::Behind(key), true) => Cut::Before(self.prefix_of(key, part)),
            (cut, _) => cut,
        }))
    }

    /// The cut above the keys of an upper bound.
    fn upper_cut(
        &self,
        part: usize,
        bound: Option<(&Expression, Edge)>,
    ) -> Result<Bound, S::Error> {
        let Some((expression, edge)) = bound else {
            return Ok(Bound::Set(Cut::Open));
        };
        let value = self.source.value(expression)?;
        if value.is_null() {
            return Ok(Bound::Nothing);
        }
        let cut = if edge == Edge::Prefix {
            let column_type = &self.column(part).column_type;
            match like_prefix(value, &expression.column_type, column_type) {
                Some((_, Some(upper))) => Cut::Behind(upper),
                _ => Cut::Open,
            }
        } else {
            match (self.key(value, expression, part)?, edge) {
                (KeyValue::Exact(key), Edge::Inclusive) => Cut::Behind(key),
                (KeyValue::Exact(key), _) => Cut::Before(key),
                (KeyValue::Above(key), _) => Cut::Behind(key),
                (KeyValue::BelowAll, _) => return Ok(Bound::Nothing),
                (KeyValue::AboveAll, _) => Cut::Open,
            }
        };
        Ok(Bound::Set(match (cut, self.has_prefix(part)) {
            (Cut::Before(key) | Cut::Behind(key), true) => Cut::Behind(self.prefix_of(key, part)),
            (cut, _) => cut,
        }))
    }

    fn has_prefix(&self, part: usize) -> bool {
        self.index.parts[part].prefix_length.is_some()
    }

    /// The part of a value that a prefix index keeps.
    fn prefix_of(&self, value: Value, part: usize) -> Value {
        match (value, self.index.parts[part].prefix_length) {
            (Value::Bytes(mut bytes), Some(length)) => {
                let charset = self.column(part).column_type.charset();
                let mut end = 0;
                for _ in 0..length {
                    match charset.decode(&bytes[end..]) {
                        Some((_, step)) => end += step,
                        None if end < bytes.len() => end += 1,
                        None => break,
                    }
                }
                bytes.truncate(end);
                Value::Bytes(bytes)
            }
            (value, _) => value,
        }
    }
}

fn compare_rows(a: &[Value], b: &[Value], types: &[&ColumnType]) -> Ordering {
    for ((a, b), column_type) in a.iter().zip(b).zip(types) {
        let order = compare_values(a.as_ref(), b.as_ref(), column_type);
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Rows of keys in ascending order.
struct SortedRows<'a, E> {
    keys: &'a [Value],
    order: &'a ChunkedVec<u32>,
    parts: &'a [usize],
    types: &'a [&'a ColumnType],
    spend: &'a dyn Fn(usize) -> Result<(), E>,
}

impl<E> SortedRows<'_, E> {
    fn value(&self, place: usize, column: usize) -> &Value {
        &self.keys[stdx::to_usize(self.order[place]) * self.parts.len() + column]
    }

    /// The rows from `start` to `end`, which are equal before `column`.
    fn set(&self, column: usize, start: usize, end: usize) -> Result<KeySet, E> {
        if column == self.parts.len() {
            return Ok(KeySet::Everything);
        }
        let mut points = Vec::new();
        let mut at = start;
        while at < end {
            let first = self.value(at, column);
            let is_alike = |place: usize| {
                let value = self.value(place, column);
                compare_values(value.as_ref(), first.as_ref(), self.types[column]).is_eq()
            };
            let mut behind = at + 1;
            (self.spend)(RANGE_COST)?;
            while behind < end && is_alike(behind) {
                (self.spend)(RANGE_COST)?;
                behind += 1;
            }
            points.push((first.clone(), self.set(column + 1, at, behind)?));
            at = behind;
        }
        Ok(KeySet::points(self.parts[column], points.into_iter()))
    }
}
