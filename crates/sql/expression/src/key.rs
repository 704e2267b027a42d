//! Values as keys: their order, bytes that are equal where values are, and what an index can be
//! asked.

use std::cmp::Ordering;

use value::decimal::Rounding;
use value::{
    CollationId, ColumnType, DateTime, Decimal, Time, TypeKind, Value, ValueRef, compare_same,
};

use crate::domain;
use crate::tree::Class;

/// The order of two values of one type; NULL is below all.
#[inline]
pub fn compare_values(a: ValueRef<'_>, b: ValueRef<'_>, column_type: &ColumnType) -> Ordering {
    compare_same(a, b, column_type.collation)
}

/// The order of two values of one class, neither of them NULL.
#[inline]
pub fn compare_in(a: ValueRef<'_>, b: ValueRef<'_>, class: Class) -> Ordering {
    let collation = match class {
        Class::Text(collation) => collation,
        _ => CollationId::BINARY,
    };
    compare_same(a, b, collation)
}

/// Appends bytes that are equal exactly where values of this type are equal (NULL to NULL).
pub fn append_group_key(value: ValueRef<'_>, column_type: &ColumnType, out: &mut Vec<u8>) {
    match value {
        ValueRef::Bytes(bytes) => {
            out.push(TAG_BYTES);
            column_type.collation.append_key(bytes, out);
        }
        other => append_plain_key(other, out),
    }
}

/// Appends bytes that are equal exactly where values of this class are equal.
pub fn append_class_key(value: ValueRef<'_>, class: Class, out: &mut Vec<u8>) {
    match (value, class) {
        (ValueRef::Bytes(bytes), Class::Text(collation)) => {
            out.push(TAG_BYTES);
            collation.append_key(bytes, out);
        }
        (other, _) => append_plain_key(other, out),
    }
}

const TAG_NULL: u8 = 0;
const TAG_INTEGER: u8 = 1;
const TAG_DOUBLE: u8 = 2;
const TAG_DECIMAL: u8 = 3;
const TAG_BYTES: u8 = 4;
const TAG_DATE: u8 = 5;
const TAG_TIME: u8 = 6;
const TAG_DATETIME: u8 = 7;

fn append_plain_key(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let mut tagged = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Null => tagged(TAG_NULL, &[]),
        ValueRef::Int(number) => tagged(TAG_INTEGER, &i128::from(number).to_be_bytes()),
        ValueRef::UInt(number) => tagged(TAG_INTEGER, &i128::from(number).to_be_bytes()),
        // Adding zero makes minus zero plus zero.
        ValueRef::Float(number) => {
            tagged(
                TAG_DOUBLE,
                &(f64::from(number) + 0.0).to_bits().to_be_bytes(),
            );
        }
        ValueRef::Double(number) => tagged(TAG_DOUBLE, &(number + 0.0).to_bits().to_be_bytes()),
        ValueRef::Decimal(number) => {
            let text = canonical(&number.to_decimal());
            tagged(TAG_DECIMAL, &text);
            out.push(0);
        }
        ValueRef::Bytes(bytes) => {
            tagged(TAG_BYTES, &stdx::to_u64(bytes.len()).to_be_bytes());
            out.extend_from_slice(bytes);
        }
        ValueRef::Date(date) => tagged(TAG_DATE, &date.packed().to_be_bytes()),
        ValueRef::Time(time) => tagged(TAG_TIME, &time.micros().to_be_bytes()),
        ValueRef::DateTime(time) => tagged(TAG_DATETIME, &time.packed().to_be_bytes()),
    }
}

/// The digits of a number without zeros at the end of its fraction.
fn canonical(number: &Decimal) -> Vec<u8> {
    let mut text = Vec::with_capacity(32);
    number.append_text(&mut text);
    if text.contains(&b'.') {
        while text.last() == Some(&b'0') {
            text.pop();
        }
        if text.last() == Some(&b'.') {
            text.pop();
        }
    }
    text
}

/// What an index can be asked in place of a value of another type.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyValue {
    /// A key of the index's type equals the value.
    Exact(Value),
    /// None does: the value stands above this key and below the next possible one.
    Above(Value),
    /// The value is below all keys.
    BelowAll,
    /// The value is above all keys.
    AboveAll,
    /// It cannot be said; the range stays open and equality finds nothing.
    Unknown,
}

/// The value as a key of a column. The planner sees to it that the comparison and the index agree
/// on what is equal (class and collation).
pub fn key_value(value: ValueRef<'_>, from: &ColumnType, to: &ColumnType) -> KeyValue {
    match to.kind {
        kind if kind.is_integer() => integer_key(value, to),
        TypeKind::Year | TypeKind::Bit => {
            integer_key(value, &ColumnType::unsigned(TypeKind::BigInt))
        }
        TypeKind::Decimal => decimal_key(value, to),
        TypeKind::Double => match value {
            ValueRef::Null => KeyValue::Unknown,
            ValueRef::Bytes(bytes) => {
                KeyValue::Exact(Value::Double(value::number::parse_double(bytes).value))
            }
            value => KeyValue::Exact(Value::Double(domain::as_double(value))),
        },
        kind if kind.is_bytes() => match value {
            ValueRef::Bytes(bytes) if from.kind.is_bytes() => text_key(bytes, from, to),
            _ => KeyValue::Unknown,
        },
        kind if kind.is_temporal() => temporal_key(value, to),
        TypeKind::Enum | TypeKind::Set if from.kind == to.kind => KeyValue::Exact(value.to_value()),
        _ => KeyValue::Unknown,
    }
}

fn integer_key(value: ValueRef<'_>, to: &ColumnType) -> KeyValue {
    let (floor, is_exact) = match value {
        ValueRef::Int(number) => (i128::from(number), true),
        ValueRef::UInt(number) => (i128::from(number), true),
        ValueRef::Null => return KeyValue::Unknown,
        ValueRef::Decimal(number) => {
            let number = number.to_decimal();
            let Ok(floor) = number.round(0, Rounding::Floor) else {
                return KeyValue::Unknown;
            };
            let whole = floor.to_string().parse::<i128>().unwrap_or(i128::MAX);
            (whole, floor == number)
        }
        other => {
            let number = domain::as_double(other);
            if number.is_nan() || number.abs() > 9e18 {
                return match number {
                    number if number < 0.0 => KeyValue::BelowAll,
                    number if number > 2e19 => KeyValue::AboveAll,
                    _ => KeyValue::Unknown,
                };
            }
            let floor = stdx::f64_to_i64(number.floor());
            (i128::from(floor), number.fract() == 0.0)
        }
    };
    if floor < i128::from(to.integer_min()) {
        return KeyValue::BelowAll;
    }
    if floor > i128::from(to.integer_max()) {
        return KeyValue::AboveAll;
    }
    let key = if to.unsigned {
        Value::UInt(u64::try_from(floor).expect("checked against the range"))
    } else {
        Value::Int(i64::try_from(floor).expect("checked against the range"))
    };
    if is_exact {
        KeyValue::Exact(key)
    } else {
        KeyValue::Above(key)
    }
}

fn decimal_key(value: ValueRef<'_>, to: &ColumnType) -> KeyValue {
    let number = match value {
        ValueRef::Int(number) => Decimal::from(number),
        ValueRef::UInt(number) => Decimal::from(number),
        ValueRef::Decimal(number) => number.to_decimal(),
        ValueRef::Bytes(bytes) => Decimal::parse_prefix(bytes).value,
        _ => return KeyValue::Unknown,
    };
    let precision = u8::try_from(to.length).unwrap_or(Decimal::PRECISION_MAX);
    let greatest = Decimal::greatest(precision, to.decimals);
    if number > greatest {
        return KeyValue::AboveAll;
    }
    if number < greatest.negated() {
        return KeyValue::BelowAll;
    }
    match number.round(i32::from(to.decimals), Rounding::Floor) {
        Ok(floor) if floor == number => KeyValue::Exact(Value::Decimal(floor)),
        Ok(floor) => KeyValue::Above(Value::Decimal(floor)),
        Err(_) => KeyValue::Unknown,
    }
}

fn text_key(bytes: &[u8], from: &ColumnType, to: &ColumnType) -> KeyValue {
    let (from, to) = (from.charset(), to.charset());
    if from == to || bytes.is_ascii() {
        return KeyValue::Exact(Value::Bytes(bytes.to_vec()));
    }
    let mut converted = Vec::with_capacity(bytes.len());
    match to.append_converted(from, bytes, &mut converted) {
        0 => KeyValue::Exact(Value::Bytes(converted)),
        _ => KeyValue::Unknown,
    }
}

fn temporal_key(value: ValueRef<'_>, to: &ColumnType) -> KeyValue {
    // What is no date compares as the zero date ([`Domain::bring`](crate::domain::Domain::bring)).
    let zero = match to.kind {
        _ if value.is_null() => None,
        TypeKind::Time => Some(Value::Time(Time::ZERO)),
        _ => Some(Value::DateTime(DateTime::ZERO)),
    };
    match (to.kind, domain::plain_temporal(value, to.kind).or(zero)) {
        (TypeKind::Date, Some(Value::DateTime(time))) => {
            let date = Value::Date(time.date());
            match time.time().micros() {
                0 => KeyValue::Exact(date),
                _ => KeyValue::Above(date),
            }
        }
        (TypeKind::Time, Some(Value::Time(time))) => {
            let key = time.truncated(to.decimals);
            match key == time {
                true => KeyValue::Exact(Value::Time(key)),
                false if time.is_negative() => KeyValue::Unknown,
                false => KeyValue::Above(Value::Time(key)),
            }
        }
        (TypeKind::DateTime, Some(Value::DateTime(time))) => {
            let key = time.truncated(to.decimals);
            match key == time {
                true => KeyValue::Exact(Value::DateTime(key)),
                false => KeyValue::Above(Value::DateTime(key)),
            }
        }
        _ => KeyValue::Unknown,
    }
}

/// The range of strings that begin as a LIKE pattern does up to its first wildcard: its lower end
/// and, where the collation lets us name one, its upper end. `None` if the pattern begins with a
/// wildcard. The range may hold strings that do not match; none that matches is outside.
pub fn like_prefix(pattern: ValueRef<'_>, column: &ColumnType) -> Option<(Value, Option<Value>)> {
    let ValueRef::Bytes(pattern) = pattern else {
        return None;
    };
    let mut prefix = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'%' | b'_' => break,
            b'\\' => prefix.extend(bytes.next()),
            byte => prefix.push(byte),
        }
    }
    if prefix.is_empty() {
        return None;
    }
    let charset = column.charset();
    let room = stdx::to_usize(column.length).min(PREFIX_FILL_CHARS);
    let fill = room.saturating_sub(charset.char_count(&prefix));
    let mut lower = prefix.clone();
    // Trailing blanks do not count, so what is below a blank must be let in.
    lower.extend(std::iter::repeat_n(0u8, fill));
    let mut upper = prefix;
    let is_binary = column.collation == column.collation.binary_twin();
    let highest = if is_binary {
        HIGHEST_CODE
    } else {
        HIGHEST_WEIGHT
    };
    for _ in 0..fill {
        if !charset.encode(highest, &mut upper) {
            return Some((Value::Bytes(lower), None));
        }
    }
    let is_known = is_binary || column.collation == CollationId::UTF8MB4_GENERAL_CI;
    Some((Value::Bytes(lower), is_known.then_some(Value::Bytes(upper))))
}

/// Longer tails of a bound decide nothing that the condition itself does not decide.
const PREFIX_FILL_CHARS: usize = 64;

/// The last code point, above all others by number.
const HIGHEST_CODE: u32 = 0x10_FFFF;

/// The character whose weight is above all others' in `general_ci` (those beyond the basic plane
/// share the weight of U+FFFD).
const HIGHEST_WEIGHT: u32 = 0xFFFF;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_between_two_integers_stands_above_the_lower() {
        let int = ColumnType::new(TypeKind::TinyInt);
        let double = ColumnType::new(TypeKind::Double);
        let key = |number| key_value(ValueRef::Double(number), &double, &int);
        assert_eq!(key(1.5), KeyValue::Above(Value::Int(1)));
        assert_eq!(key(-1.5), KeyValue::Above(Value::Int(-2)));
        assert_eq!(key(2.0), KeyValue::Exact(Value::Int(2)));
        assert_eq!(key(128.0), KeyValue::AboveAll);
        assert_eq!(key(-129.0), KeyValue::BelowAll);
    }

    #[test]
    fn equal_values_have_equal_group_keys() {
        let text = ColumnType::varchar(10, CollationId::UTF8MB4_GENERAL_CI);
        let key = |value: ValueRef<'_>, column_type: &ColumnType| {
            let mut key = Vec::new();
            append_group_key(value, column_type, &mut key);
            key
        };
        assert_eq!(
            key(ValueRef::Bytes(b"Ab "), &text),
            key(ValueRef::Bytes(b"aB"), &text)
        );
        let (short, long): (Decimal, Decimal) = ("1.5".parse().unwrap(), "1.500".parse().unwrap());
        let decimal = ColumnType::decimal(10, 3);
        let (short, long) = (Value::Decimal(short), Value::Decimal(long));
        assert_eq!(key(short.as_ref(), &decimal), key(long.as_ref(), &decimal));
        let big = ColumnType::new(TypeKind::BigInt);
        assert_eq!(key(ValueRef::Int(5), &big), key(ValueRef::UInt(5), &big));
    }
}
