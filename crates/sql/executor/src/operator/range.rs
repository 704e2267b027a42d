//! From a scan's access to the key ranges that its cursor reads.
//!
//! The values that bound a range are computed when the scan starts. They are converted to the
//! columns' types, which may round; a bound between two possible keys becomes the right side of
//! the nearer one, so that a range never loses a row. Ranges that overlap are merged, so that no
//! row comes twice. The buffers of the ranges are reused from start to start.

use std::cmp::Ordering;

use expression::{Expression, Failure, KeyClock, KeyValue, compare_values, key_value, like_prefix};
use planner::{Access, Edge, KeyEqual, RangePlan};
use stdx::ChunkedVec;
use store::{ColumnDefinition, IndexDefinition, KeyBound, KeyRange, TableDefinition};
use value::{ColumnType, Value, ValueRef};

use crate::Outcome;
use crate::context::Context;
use crate::merge_sort::merge_sort;

/// The ranges of a scan, and which is being read.
#[derive(Debug, Default)]
pub(crate) struct RangeSet {
    ranges: Vec<KeyRange>,
    /// How many of `ranges` are in use; the others are kept for their buffers.
    count: usize,
}

/// How one bound turned out.
enum Bound {
    /// The range has this end.
    Set(Value, Side),
    /// The range has no end there.
    Open,
    /// No key is on the right side of the bound.
    Nothing,
}

/// Where a bound stands relative to the keys that begin with its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Before,
    Behind,
}

impl RangeSet {
    /// The ranges in use, in the index's order.
    pub(crate) fn ranges(&self) -> &[KeyRange] {
        &self.ranges[..self.count]
    }

    /// Computes the ranges of `access` over the frame as it stands.
    pub(crate) fn compute(
        &mut self,
        access: &Access,
        definition: &TableDefinition,
        index: Option<&IndexDefinition>,
        cx: &Context<'_>,
    ) -> Outcome<()> {
        self.count = 0;
        match access {
            Access::All => {
                let range = self.next_range();
                range.lower = KeyBound::Open;
                range.upper = KeyBound::Open;
                self.count = 1;
            }
            Access::Unique(values) => {
                let index = index.expect("a lookup names its index");
                self.add_unique(values, definition, index, cx)?;
            }
            Access::Ranges(plans) => {
                let index = index.expect("ranges name their index");
                for plan in plans {
                    cx.statement.spend(RANGE_COST)?;
                    self.add_range(plan, definition, index, cx)?;
                }
                if plans.len() > 1 {
                    self.merge(definition, index, cx)?;
                }
            }
        }
        Ok(())
    }

    /// The buffer for one more range.
    fn next_range(&mut self) -> &mut KeyRange {
        if self.ranges.len() == self.count {
            self.ranges.push(KeyRange::all());
        }
        &mut self.ranges[self.count]
    }

    fn add_unique(
        &mut self,
        values: &[Expression],
        definition: &TableDefinition,
        index: &IndexDefinition,
        cx: &Context<'_>,
    ) -> Outcome<()> {
        let range = self.next_range();
        let mut lower = emptied(&mut range.lower);
        let mut upper = emptied(&mut range.upper);
        for (value, part) in values.iter().zip(&index.parts) {
            let target = &definition.columns[part.column].column_type;
            let wanted = cx.evaluate(value)?;
            if wanted.is_null() {
                return Ok(());
            }
            let KeyValue::Exact(key) = key_of(wanted, value, target, cx)? else {
                return Ok(());
            };
            upper.push(key.clone());
            lower.push(key);
        }
        range.lower = KeyBound::Inclusive(lower);
        range.upper = KeyBound::Inclusive(upper);
        self.count += 1;
        Ok(())
    }

    fn add_range(
        &mut self,
        plan: &RangePlan,
        definition: &TableDefinition,
        index: &IndexDefinition,
        cx: &Context<'_>,
    ) -> Outcome<()> {
        let range = self.next_range();
        let mut lower = emptied(&mut range.lower);
        let mut upper = emptied(&mut range.upper);
        lower.reserve_exact(plan.equal.len() + 1);
        upper.reserve_exact(plan.equal.len() + 1);
        for (equal, part) in plan.equal.iter().zip(&index.parts) {
            let column = &definition.columns[part.column];
            let Some(key) = equal_key(equal, column, part.prefix_length, cx)? else {
                return Ok(());
            };
            upper.push(key.clone());
            lower.push(key);
        }
        let (mut lower_side, mut upper_side) = (Side::Before, Side::Behind);
        if plan.lower.is_some() || plan.upper.is_some() {
            let part = index.parts[plan.equal.len()];
            let column = &definition.columns[part.column];
            match lower_bound(plan, column, cx)? {
                Bound::Nothing => return Ok(()),
                Bound::Open => {}
                Bound::Set(value, side) => {
                    lower_side = if part.prefix_length.is_some() {
                        Side::Before
                    } else {
                        side
                    };
                    lower.push(prefix_of(value, &column.column_type, part.prefix_length));
                }
            }
            match upper_bound(plan, column, cx)? {
                Bound::Nothing => return Ok(()),
                Bound::Open => {}
                Bound::Set(value, side) => {
                    upper_side = if part.prefix_length.is_some() {
                        Side::Behind
                    } else {
                        side
                    };
                    upper.push(prefix_of(value, &column.column_type, part.prefix_length));
                }
            }
        }
        range.lower = match (lower.is_empty(), lower_side) {
            (true, _) => KeyBound::Open,
            (false, Side::Before) => KeyBound::Inclusive(lower),
            (false, Side::Behind) => KeyBound::Exclusive(lower),
        };
        range.upper = match (upper.is_empty(), upper_side) {
            (true, _) => KeyBound::Open,
            (false, Side::Behind) => KeyBound::Inclusive(upper),
            (false, Side::Before) => KeyBound::Exclusive(upper),
        };
        self.count += 1;
        Ok(())
    }

    /// Sorts the ranges and merges those that overlap.
    fn merge(
        &mut self,
        definition: &TableDefinition,
        index: &IndexDefinition,
        cx: &Context<'_>,
    ) -> Outcome<()> {
        let types: Vec<&ColumnType> = index
            .parts
            .iter()
            .map(|part| &definition.columns[part.column].column_type)
            .collect();
        let mut ranges: Vec<KeyRange> = self.ranges.drain(..self.count).collect();
        self.count = 0;
        ranges.retain(|range| !is_empty(range, &types));
        let mut order = ChunkedVec::new();
        for place in 0..ranges.len() {
            order.push(stdx::to_u32(place));
        }
        let spend = |count: usize| cx.statement.spend(RANGE_COST * count);
        let compare = |a: u32, b: u32| {
            spend(1)?;
            let (a, b) = (&ranges[stdx::to_usize(a)], &ranges[stdx::to_usize(b)]);
            Ok::<_, Failure>(compare_bounds(lower_of(a), lower_of(b), &types))
        };
        merge_sort(&mut order, compare, spend)?;
        let mut merged: Vec<KeyRange> = Vec::with_capacity(ranges.len());
        for place in 0..order.len() {
            let place = stdx::to_usize(order[place]);
            let range = std::mem::replace(&mut ranges[place], KeyRange::all());
            match merged.last_mut() {
                Some(last) if compare_bounds(lower_of(&range), upper_of(last), &types).is_lt() => {
                    if compare_bounds(upper_of(last), upper_of(&range), &types).is_lt() {
                        last.upper = range.upper;
                    }
                }
                _ => merged.push(range),
            }
        }
        self.count = merged.len();
        self.ranges = merged;
        Ok(())
    }
}

/// What a range costs that is made, or compared with another, in bytes looked at.
const RANGE_COST: usize = 64;

/// What a text costs that is compared with the name of a member, in bytes looked at.
const MEMBER_COST: usize = 8;

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

/// The value of an expression, which is not NULL, as a key of a column.
fn key_of(
    value: ValueRef<'_>,
    expression: &Expression,
    target: &ColumnType,
    cx: &Context<'_>,
) -> Outcome<KeyValue> {
    // The names of an ENUM are looked at one by one.
    cx.statement.spend(MEMBER_COST * target.members().len())?;
    let clock = KeyClock {
        zone: &cx.statement.options.zone,
        today: cx.statement.today(),
    };
    Ok(key_value(value, &expression.column_type, target, &clock))
}

/// The key that equals the value; `None` if no key can.
fn equal_key(
    equal: &KeyEqual,
    column: &ColumnDefinition,
    prefix_length: Option<u32>,
    cx: &Context<'_>,
) -> Outcome<Option<Value>> {
    let value = cx.evaluate(&equal.value)?;
    if value.is_null() {
        // A key of a NOT NULL column has no bytes that say NULL.
        let can_be = equal.null_safe && column.nullable;
        return Ok(can_be.then_some(Value::Null));
    }
    let target = &column.column_type;
    match key_of(value, &equal.value, target, cx)? {
        KeyValue::Exact(key) => Ok(Some(prefix_of(key, target, prefix_length))),
        _ => Ok(None),
    }
}

fn lower_bound(plan: &RangePlan, column: &ColumnDefinition, cx: &Context<'_>) -> Outcome<Bound> {
    let lower = plan.lower.as_deref();
    let Some((expression, edge)) = lower.filter(|(_, edge)| *edge != Edge::NotNull) else {
        // NULL is below all, and no comparison finds it.
        return Ok(match column.nullable {
            true => Bound::Set(Value::Null, Side::Behind),
            false => Bound::Open,
        });
    };
    let value = cx.evaluate(expression)?;
    if value.is_null() {
        return Ok(Bound::Nothing);
    }
    if *edge == Edge::Prefix {
        return Ok(
            match like_prefix(value, &expression.column_type, &column.column_type) {
                Some((lower, _)) => Bound::Set(lower, Side::Before),
                None if column.nullable => Bound::Set(Value::Null, Side::Behind),
                None => Bound::Open,
            },
        );
    }
    let side = if *edge == Edge::Inclusive {
        Side::Before
    } else {
        Side::Behind
    };
    Ok(match key_of(value, expression, &column.column_type, cx)? {
        KeyValue::Exact(key) => Bound::Set(key, side),
        KeyValue::Above(key) => Bound::Set(key, Side::Behind),
        KeyValue::BelowAll if column.nullable => Bound::Set(Value::Null, Side::Behind),
        KeyValue::BelowAll => Bound::Open,
        KeyValue::AboveAll => Bound::Nothing,
    })
}

fn upper_bound(plan: &RangePlan, column: &ColumnDefinition, cx: &Context<'_>) -> Outcome<Bound> {
    let Some((expression, edge)) = plan.upper.as_deref() else {
        return Ok(Bound::Open);
    };
    let value = cx.evaluate(expression)?;
    if value.is_null() {
        return Ok(Bound::Nothing);
    }
    if *edge == Edge::Prefix {
        return Ok(
            match like_prefix(value, &expression.column_type, &column.column_type) {
                Some((_, Some(upper))) => Bound::Set(upper, Side::Behind),
                _ => Bound::Open,
            },
        );
    }
    let side = if *edge == Edge::Inclusive {
        Side::Behind
    } else {
        Side::Before
    };
    Ok(match key_of(value, expression, &column.column_type, cx)? {
        KeyValue::Exact(key) => Bound::Set(key, side),
        KeyValue::Above(key) => Bound::Set(key, Side::Behind),
        KeyValue::BelowAll => Bound::Nothing,
        KeyValue::AboveAll => Bound::Open,
    })
}

/// The part of a value that a prefix index keeps.
fn prefix_of(value: Value, column_type: &ColumnType, prefix_length: Option<u32>) -> Value {
    match (value, prefix_length) {
        (Value::Bytes(mut bytes), Some(length)) => {
            let length = usize::try_from(length).expect("a u32 fits into usize");
            let charset = column_type.charset();
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

fn lower_of(range: &KeyRange) -> (&[Value], Side) {
    match &range.lower {
        KeyBound::Open => (&[], Side::Before),
        KeyBound::Inclusive(values) => (values, Side::Before),
        KeyBound::Exclusive(values) => (values, Side::Behind),
    }
}

fn upper_of(range: &KeyRange) -> (&[Value], Side) {
    match &range.upper {
        KeyBound::Open => (&[], Side::Behind),
        KeyBound::Inclusive(values) => (values, Side::Behind),
        KeyBound::Exclusive(values) => (values, Side::Before),
    }
}

fn is_empty(range: &KeyRange, types: &[&ColumnType]) -> bool {
    compare_bounds(lower_of(range), upper_of(range), types).is_ge()
}

fn compare_bounds(
    (a, a_side): (&[Value], Side),
    (b, b_side): (&[Value], Side),
    types: &[&ColumnType],
) -> Ordering {
    for ((a, b), column_type) in a.iter().zip(b).zip(types) {
        let order = compare_values(a.as_ref(), b.as_ref(), column_type);
        if order.is_ne() {
            return order;
        }
    }
    match a.len().cmp(&b.len()) {
        Ordering::Equal => a_side.cmp(&b_side),
        // The shorter bound stands before or behind all keys that go on as the longer does.
        Ordering::Less if a_side == Side::Before => Ordering::Less,
        Ordering::Less => Ordering::Greater,
        Ordering::Greater if b_side == Side::Before => Ordering::Greater,
        Ordering::Greater => Ordering::Less,
    }
}
