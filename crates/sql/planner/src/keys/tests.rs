//! Ranges against their naive twin: for each key of a small index, whether it satisfies the
//! conditions, and whether a range contains it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::convert::Infallible;

use env::Random;
use expression::{Expression, ExpressionKind, KeyClock};
use store::{
    ColumnDefinition, IndexDefinition, IndexPart, KeyBound, KeyRange, TableDefinition, TableId,
    TableName, Uniqueness,
};
use value::{CollationId, ColumnType, Date, TypeKind, Value, ValueRef, Zone};

use super::KeySource;
use super::build::ranges_of;
use super::condition::{KeyCondition, RANGE_COUNT_MAX, reach};
use super::range_plan::Edge;

/// Parts of the index.
const PARTS: usize = 3;
/// Values of a part: NULL and these numbers.
const VALUES: i64 = 4;

struct Constants(Zone);

impl KeySource for Constants {
    type Error = Infallible;

    fn value<'v>(&'v self, expression: &'v Expression) -> Result<ValueRef<'v>, Infallible> {
        match &expression.kind {
            ExpressionKind::Constant(value) => Ok(value.as_ref()),
            _ => unreachable!("only constants are compared with"),
        }
    }

    fn clock(&self) -> KeyClock<'_> {
        KeyClock {
            zone: &self.0,
            today: Date::new(2026, 1, 1),
        }
    }

    fn spend(&self, _bytes: usize) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Random conditions.
struct Dice(Random);

impl Dice {
    fn below(&mut self, count: u64) -> u64 {
        self.0.below(count)
    }

    fn part(&mut self) -> usize {
        self.0.index(PARTS)
    }

    fn value(&mut self) -> Expression {
        let drawn = self.below(VALUES.unsigned_abs() * 2 + 2);
        let int = ColumnType::new(TypeKind::BigInt);
        match i64::try_from(drawn) {
            Ok(drawn) if drawn <= VALUES => Expression::constant(Value::Int(drawn), int),
            Ok(drawn) if drawn < 2 * VALUES => {
                // Between two keys.
                let half = stdx::i64_to_f64(drawn - VALUES) + 0.5;
                Expression::constant(Value::Double(half), ColumnType::new(TypeKind::Double))
            }
            Ok(drawn) if drawn == 2 * VALUES => Expression::null(),
            _ => Expression::constant(Value::Int(99), int),
        }
    }

    fn edge(&mut self) -> Edge {
        match self.below(2) {
            0 => Edge::Inclusive,
            _ => Edge::Exclusive,
        }
    }

    fn condition(&mut self, depth: u64) -> KeyCondition<'static> {
        let part = self.part();
        match self.below(if depth == 0 { 7 } else { 11 }) {
            0 | 1 => KeyCondition::Equal {
                part,
                value: Cow::Owned(self.value()),
                null_safe: self.below(3) == 0,
            },
            2 => KeyCondition::Lower {
                part,
                value: Cow::Owned(self.value()),
                edge: self.edge(),
            },
            3 => KeyCondition::Upper {
                part,
                value: Cow::Owned(self.value()),
                edge: self.edge(),
            },
            4 => KeyCondition::Lower {
                part,
                value: Cow::Owned(Expression::null()),
                edge: Edge::NotNull,
            },
            5 | 6 => self.rows(),
            7 | 8 => KeyCondition::Any(self.list(depth - 1)),
            _ => KeyCondition::All(self.list(depth - 1)),
        }
    }

    fn list(&mut self, depth: u64) -> Vec<KeyCondition<'static>> {
        (0..self.below(4)).map(|_| self.condition(depth)).collect()
    }

    fn rows(&mut self) -> KeyCondition<'static> {
        let first = self.part();
        let parts: Vec<usize> = (first..PARTS).filter(|_| self.below(4) < 3).collect();
        let parts = if parts.is_empty() { vec![first] } else { parts };
        let width = parts.len() + self.0.index(2);
        let count = self.0.index(5);
        let values = (0..count * width).map(|_| self.value()).collect();
        KeyCondition::Rows {
            places: (0..parts.len()).rev().collect(),
            parts: parts.into(),
            width,
            values: Cow::Owned(values),
        }
    }
}

/// The order of a key's value and a given value; `None` if one is NULL.
fn compared(key: &Value, value: &Expression) -> Option<Ordering> {
    let number = |value: &Value| match value {
        Value::Int(number) => Some(stdx::i64_to_f64(*number)),
        Value::Double(number) => Some(*number),
        _ => None,
    };
    let ExpressionKind::Constant(value) = &value.kind else {
        unreachable!("only constants are drawn");
    };
    number(key)?.partial_cmp(&number(value)?)
}

/// The naive twin.
fn satisfies(key: &[Value], condition: &KeyCondition<'_>) -> bool {
    match condition {
        KeyCondition::All(list) => list.iter().all(|it| satisfies(key, it)),
        KeyCondition::Any(list) => list.iter().any(|it| satisfies(key, it)),
        KeyCondition::Equal {
            part,
            value,
            null_safe,
        } => match compared(&key[*part], value) {
            Some(order) => order.is_eq(),
            None => *null_safe && key[*part].is_null() && **value == Expression::null(),
        },
        KeyCondition::Lower { part, value, edge } => match edge {
            Edge::NotNull => !key[*part].is_null(),
            Edge::Inclusive => compared(&key[*part], value).is_some_and(Ordering::is_ge),
            _ => compared(&key[*part], value).is_some_and(Ordering::is_gt),
        },
        KeyCondition::Upper { part, value, edge } => match edge {
            Edge::Inclusive => compared(&key[*part], value).is_some_and(Ordering::is_le),
            _ => compared(&key[*part], value).is_some_and(Ordering::is_lt),
        },
        KeyCondition::Rows {
            parts,
            places,
            width,
            values,
        } => values.chunks(*width).any(|row| {
            let mut pairs = parts.iter().zip(places);
            pairs.all(|(part, place)| {
                compared(&key[*part], &row[*place]).is_some_and(Ordering::is_eq)
            })
        }),
    }
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        _ => -1,
    }
}

/// The order of a key and a bound's values, over the bound's length.
fn against(key: &[Value], values: &[Value]) -> Ordering {
    let numbers = |values: &[Value]| values.iter().map(number).collect::<Vec<_>>();
    numbers(&key[..values.len()]).cmp(&numbers(values))
}

fn has(range: &KeyRange, key: &[Value]) -> bool {
    let is_above = match &range.lower {
        KeyBound::Open => true,
        KeyBound::Inclusive(values) => against(key, values).is_ge(),
        KeyBound::Exclusive(values) => against(key, values).is_gt(),
    };
    let is_below = match &range.upper {
        KeyBound::Open => true,
        KeyBound::Inclusive(values) => against(key, values).is_le(),
        KeyBound::Exclusive(values) => against(key, values).is_lt(),
    };
    is_above && is_below
}

fn definition() -> TableDefinition {
    let column = |place: usize| {
        ColumnDefinition::new(
            &format!("c{place}"),
            ColumnType::new(TypeKind::BigInt),
            true,
        )
    };
    let parts = (0..PARTS).map(|column| IndexPart {
        column,
        prefix_length: None,
    });
    let index = IndexDefinition {
        name: "k".to_owned(),
        uniqueness: Uniqueness::None,
        parts: parts.collect(),
        comment: String::new(),
    };
    TableDefinition {
        id: TableId(1),
        version: 1,
        name: TableName {
            database: "d".to_owned(),
            table: "t".to_owned(),
        },
        columns: (0..PARTS).map(column).collect(),
        indexes: vec![index],
        collation: CollationId::BINARY,
        auto_increment_start: 1,
        comment: String::new(),
        options: Vec::new(),
        created_us: 0,
        view: None,
    }
}

fn all_keys() -> Vec<Vec<Value>> {
    let value = |number: i64| match number {
        0 => Value::Null,
        number => Value::Int(number - 1),
    };
    let count = VALUES + 2;
    (0..count.pow(3))
        .map(|n| {
            vec![
                value(n / count / count),
                value(n / count % count),
                value(n % count),
            ]
        })
        .collect()
}

#[test]
fn ranges_have_what_their_naive_twin_finds() {
    let definition = definition();
    let index = &definition.indexes[0];
    let source = Constants(Zone::Utc);
    let keys = all_keys();
    let mut dice = Dice(Random::new(1));
    let mut exact_count = 0;
    for _ in 0..4000 {
        let count = 1 + dice.below(3);
        let list: Vec<_> = (0..count).map(|_| dice.condition(3)).collect();
        let reach = reach(&list, &vec![true; list.len()], PARTS);
        let whole = KeyCondition::All(list.clone());
        for depth in 1..=PARTS {
            let Ok(ranges) = ranges_of(&whole, depth, (&definition, index), &source);
            let mut answered: Vec<_> = list.iter().zip(&reach.answered).collect();
            answered.retain(|(_, is_answered)| **is_answered && depth == PARTS && 0 < reach.depth);
            exact_count += usize::from(answered.len() == list.len());
            let mut last = None;
            for key in &keys {
                let mut places = ranges.iter().enumerate().filter(|(_, it)| has(it, key));
                let place = places.next().map(|(place, _)| place);
                assert_eq!(places.next(), None, "{ranges:?} overlap at {key:?}");
                assert!(
                    place.is_none() || last <= place,
                    "{ranges:?} descend at {key:?}"
                );
                last = place.or(last);
                let is_wanted = satisfies(key, &whole);
                assert!(
                    place.is_some() || !is_wanted,
                    "{ranges:?} miss {key:?} of {whole:?}"
                );
                for (condition, _) in &answered {
                    let is_true = place.is_none() || satisfies(key, condition);
                    assert!(is_true, "{ranges:?} do not answer {condition:?} at {key:?}");
                }
            }
        }
    }
    // The test is worth little unless many conditions are answered.
    assert!(1000 < exact_count, "{exact_count} were answered exactly");
}

fn rows(part: usize, count: usize) -> KeyCondition<'static> {
    let value = Expression::constant(Value::Int(1), ColumnType::new(TypeKind::BigInt));
    KeyCondition::Rows {
        parts: [part].into(),
        places: [0].into(),
        width: 1,
        values: Cow::Owned(vec![value; count]),
    }
}

#[test]
fn too_many_ranges_leave_the_last_parts_out() {
    let depth = |counts: [usize; 3]| {
        let lists = counts.iter().enumerate();
        let lists: Vec<_> = lists.map(|(part, count)| rows(part, *count)).collect();
        let reach = reach(&lists, &[true; 3], PARTS);
        (reach.depth, reach.used_parts, reach.answered)
    };
    assert_eq!(RANGE_COUNT_MAX, 64 * 64 * 64);
    assert_eq!(depth([64, 64, 63]), (3, 3, vec![true, true, true]));
    assert_eq!(depth([64, 64, 64]), (3, 3, vec![true, true, true]));
    assert_eq!(depth([64, 64, 65]), (2, 2, vec![true, true, false]));
    assert_eq!(depth([64, 4097, 1]), (1, 1, vec![true, false, false]));
    assert_eq!(depth([RANGE_COUNT_MAX, 1, 1]).0, 3);
    assert_eq!(depth([RANGE_COUNT_MAX + 1, 1, 1]).0, 0);
}

#[test]
fn too_many_ways_are_narrowed_and_tested_again() {
    let choice = || {
        let value = || {
            let int = ColumnType::new(TypeKind::BigInt);
            Cow::Owned(Expression::constant(Value::Int(1), int))
        };
        let equal = |part| KeyCondition::Equal {
            part,
            value: value(),
            null_safe: false,
        };
        KeyCondition::Any(vec![KeyCondition::All(vec![equal(0), equal(1)]), equal(0)])
    };
    let answered = |count: usize| {
        let list: Vec<_> = (0..count).map(|_| choice()).collect();
        let reach = reach(&list, &vec![true; count], PARTS);
        (
            reach.depth,
            reach.answered.iter().all(|is_answered| *is_answered),
        )
    };
    assert_eq!(answered(8), (3, true));
    assert_eq!(answered(9), (3, true));
    assert_eq!(answered(10), (3, false));
}
