//! Groups of rows that a scan of a naive table returns in place of the rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use store::{Aggregate, Grouping, IndexPart};
use value::{Decimal, Value, ValueRef, Warnings};

use super::{IndexedRow, NaiveTable};

/// The groups of the rows, as rows of one range.
pub(super) fn groups_of(
    table: &NaiveTable,
    rows: &[(usize, IndexedRow)],
    grouping: &Grouping,
) -> Vec<(usize, IndexedRow)> {
    let parts: Vec<IndexPart> = grouping
        .keys
        .iter()
        .map(|&column| IndexPart {
            column,
            prefix_length: None,
        })
        .collect();
    let mut groups: BTreeMap<Vec<u8>, Vec<Vec<ValueRef<'_>>>> = BTreeMap::new();
    if parts.is_empty() {
        groups.insert(Vec::new(), Vec::new());
    }
    for (_, row) in rows {
        let row = table.decoded(&row.row);
        groups
            .entry(table.key_of(&parts, &row))
            .or_default()
            .push(row);
    }
    let group = |(key, rows): (Vec<u8>, Vec<Vec<ValueRef<'_>>>)| {
        let first = rows.first();
        let keys = grouping.keys.iter().map(|&column| {
            let row = first.expect("a group with a key has a row");
            row[column].to_value()
        });
        let aggregates = grouping.aggregates.iter();
        let values: Vec<Value> = keys
            .chain(aggregates.map(|it| aggregate(table, *it, &rows)))
            .collect();
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let mut row = Vec::new();
        let encoded = grouping.layout.encode(&values, &mut row);
        encoded.expect("values are of the types that were asked for");
        let row = IndexedRow {
            sort_key: key.clone(),
            key,
            row,
        };
        (0, row)
    };
    groups.into_iter().map(group).collect()
}

fn aggregate(table: &NaiveTable, what: Aggregate, rows: &[Vec<ValueRef<'_>>]) -> Value {
    let of = |column: usize| {
        rows.iter()
            .map(move |row| row[column])
            .filter(|it| !it.is_null())
    };
    let count = |number: usize| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    match what {
        Aggregate::CountRows => count(rows.len()),
        Aggregate::Count(column) => count(of(column).count()),
        Aggregate::Sum(column) => sum(of(column)),
        Aggregate::Min(column) => picked(table, column, of(column), Ordering::Less),
        Aggregate::Max(column) => picked(table, column, of(column), Ordering::Greater),
    }
}

/// The sum of integers or decimals; NULL if there is none.
fn sum<'v>(values: impl Iterator<Item = ValueRef<'v>>) -> Value {
    let added = values.fold(None, |sum: Option<Decimal>, value| {
        let number = value.to_decimal(&mut Warnings::new(0));
        let number = number.expect("sums of numbers alone are taken");
        Some(match sum {
            Some(sum) => sum.add(&number).expect("a sum of a test is small"),
            None => number,
        })
    });
    added.map_or(Value::Null, Value::Decimal)
}

/// The first of the values that is before all others, in the order of an index.
fn picked<'v>(
    table: &NaiveTable,
    column: usize,
    values: impl Iterator<Item = ValueRef<'v>>,
    wanted: Ordering,
) -> Value {
    let part = table.part(column, None);
    let key = |value: ValueRef<'_>| {
        let mut key = Vec::new();
        part.append(value, &mut key);
        key
    };
    let better = |best: ValueRef<'v>, value: ValueRef<'v>| match key(value).cmp(&key(best)) {
        order if order == wanted => value,
        _ => best,
    };
    values
        .reduce(better)
        .map_or(Value::Null, ValueRef::to_value)
}
