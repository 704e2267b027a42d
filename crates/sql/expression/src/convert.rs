//! Conversions of values to types: implied and asked for ones ([`convert_value`]) and those of
//! stored values ([`store_value`]).

use errcode::{
    ClientError, ER_DATA_TOO_LONG, ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, ER_WARN_DATA_OUT_OF_RANGE,
    ErrorCode,
};
use value::decimal::Rounding;
use value::{ColumnType, DateTime, Decimal, TypeKind, Value, ValueRef};

use value::number::parse_double;

use crate::domain::{as_double, plain_temporal};
use crate::{Failure, Statement};

/// What was lost on the way to a type.
enum Loss {
    Nothing,
    OutOfRange,
    TooLong,
    Wrong(&'static str),
}

/// The value converted to a type; what does not fit is cut, with a warning.
pub fn convert_value(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    _: &Statement<'_>,
) -> Result<Value, Failure> {
    Ok(convert(value, from, to).0)
}

/// The value converted to a column's type as INSERT and UPDATE do: in strict mode what does not
/// fit is an error, otherwise it is cut with a warning.
pub fn store_value(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    column: &str,
    row_number: u64,
    statement: &Statement<'_>,
) -> Result<Value, Failure> {
    let (converted, loss) = convert(value, from, to);
    let error = match loss {
        Loss::Nothing => return Ok(converted),
        Loss::OutOfRange => ClientError::new(ER_WARN_DATA_OUT_OF_RANGE, &[&column, &row_number]),
        Loss::TooLong => ClientError::new(ER_DATA_TOO_LONG, &[&column, &row_number]),
        Loss::Wrong(type_name) => {
            let mut text = Vec::new();
            value.append_text(from, &mut text);
            wrong_value(
                type_name,
                &String::from_utf8_lossy(&text),
                column,
                row_number,
            )
        }
    };
    if statement.is_strict {
        return Err(Box::new(error));
    }
    statement.warn(match loss {
        Loss::TooLong => ClientError::new(errcode::WARN_DATA_TRUNCATED, &[&column, &row_number]),
        _ => error,
    });
    Ok(converted)
}

fn wrong_value(type_name: &str, text: &str, column: &str, row_number: u64) -> ClientError {
    let code: ErrorCode = ER_TRUNCATED_WRONG_VALUE_FOR_FIELD;
    ClientError::with_message(
        code,
        format!("Incorrect {type_name} value: '{text}' for column '{column}' at row {row_number}"),
    )
}

fn convert(value: ValueRef<'_>, from: &ColumnType, to: &ColumnType) -> (Value, Loss) {
    if value.is_null() {
        return (Value::Null, Loss::Nothing);
    }
    match to.kind {
        kind if kind.is_integer() => to_integer(value, to),
        TypeKind::Decimal => to_decimal(value, from, to),
        TypeKind::Float => (
            Value::Float(stdx::f64_to_f32(as_double(value))),
            Loss::Nothing,
        ),
        TypeKind::Double => to_double(value),
        kind if kind.is_bytes() => to_bytes(value, from, to),
        kind if kind.is_temporal() => to_temporal(value, to),
        _ => (value.to_value(), Loss::Nothing),
    }
}

fn to_double(value: ValueRef<'_>) -> (Value, Loss) {
    let ValueRef::Bytes(bytes) = value else {
        return (Value::Double(as_double(value)), Loss::Nothing);
    };
    let parsed = parse_double(bytes);
    let loss = if parsed.whole {
        Loss::Nothing
    } else {
        Loss::Wrong("double")
    };
    (Value::Double(parsed.value), loss)
}

fn to_integer(value: ValueRef<'_>, to: &ColumnType) -> (Value, Loss) {
    let mut loss = Loss::Nothing;
    let number = match value {
        ValueRef::Int(number) => i128::from(number),
        ValueRef::UInt(number) => i128::from(number),
        ValueRef::Decimal(number) => whole(&number.to_decimal()),
        ValueRef::Bytes(bytes) => {
            let parsed = Decimal::parse_prefix(bytes);
            if parsed.used < bytes.trim_ascii_end().len() || parsed.used == 0 {
                loss = Loss::Wrong("integer");
            }
            whole(&parsed.value)
        }
        other => {
            let number = as_double(other).round();
            if number.abs() < 1e19 {
                Decimal::from_f64(number).map_or(0, |parsed| whole(&parsed.value))
            } else if number > 0.0 {
                i128::MAX
            } else {
                i128::MIN
            }
        }
    };
    let clamped = number.clamp(i128::from(to.integer_min()), i128::from(to.integer_max()));
    if clamped != number {
        loss = Loss::OutOfRange;
    }
    let value = if to.unsigned {
        Value::UInt(u64::try_from(clamped).expect("clamped to the type's range"))
    } else {
        Value::Int(i64::try_from(clamped).expect("clamped to the type's range"))
    };
    (value, loss)
}

/// The nearest integer, halves away from zero.
fn whole(number: &Decimal) -> i128 {
    let rounded = number.round(0, Rounding::HalfUp).unwrap_or(*number);
    let extreme = if number.is_negative() {
        i128::MIN
    } else {
        i128::MAX
    };
    rounded.to_string().parse().unwrap_or(extreme)
}

fn to_decimal(value: ValueRef<'_>, from: &ColumnType, to: &ColumnType) -> (Value, Loss) {
    let mut loss = Loss::Nothing;
    let number = match value {
        ValueRef::Decimal(number) => number.to_decimal(),
        ValueRef::Int(number) => Decimal::from(number),
        ValueRef::UInt(number) => Decimal::from(number),
        ValueRef::Bytes(bytes) => {
            let parsed = Decimal::parse_prefix(bytes);
            if parsed.used < bytes.trim_ascii_end().len() || parsed.used == 0 {
                loss = Loss::Wrong("decimal");
            }
            parsed.value
        }
        other => {
            let _ = from;
            Decimal::from_f64(as_double(other)).map_or(Decimal::ZERO, |parsed| parsed.value)
        }
    };
    let rounded = number
        .round(i32::from(to.decimals), Rounding::HalfUp)
        .unwrap_or(number);
    let precision = u8::try_from(to.length).unwrap_or(Decimal::PRECISION_MAX);
    let greatest = Decimal::greatest(precision, to.decimals);
    if rounded > greatest {
        return (Value::Decimal(greatest), Loss::OutOfRange);
    }
    if rounded < greatest.negated() {
        return (Value::Decimal(greatest.negated()), Loss::OutOfRange);
    }
    (Value::Decimal(rounded), loss)
}

fn to_bytes(value: ValueRef<'_>, from: &ColumnType, to: &ColumnType) -> (Value, Loss) {
    let mut text = Vec::new();
    value.append_text(from, &mut text);
    let (source, target) = (from.charset(), to.charset());
    if from.kind.is_string() && source != target && !text.is_ascii() && !to.is_binary() {
        let mut converted = Vec::with_capacity(text.len() * 2);
        target.append_converted(source, &text, &mut converted);
        text = converted;
    }
    let length = stdx::to_usize(to.length);
    let end = if to.kind.is_blob() {
        text.len().min(length)
    } else {
        target.prefix(&text, length).len()
    };
    let cut_blanks_only = text[end..].iter().all(|byte| *byte == b' ') && !to.is_binary();
    let loss = if end == text.len() || cut_blanks_only {
        Loss::Nothing
    } else {
        Loss::TooLong
    };
    text.truncate(end);
    if to.kind == TypeKind::Binary {
        text.resize(length, 0);
    }
    (Value::Bytes(text), loss)
}

fn to_temporal(value: ValueRef<'_>, to: &ColumnType) -> (Value, Loss) {
    let kind = if to.kind == TypeKind::Time {
        TypeKind::Time
    } else {
        TypeKind::DateTime
    };
    match (to.kind, plain_temporal(value, kind)) {
        (TypeKind::Date, Some(Value::DateTime(time))) => (Value::Date(time.date()), Loss::Nothing),
        (_, Some(Value::DateTime(time))) => match time.rounded(to.decimals) {
            Some(rounded) => (Value::DateTime(rounded), Loss::Nothing),
            None => (
                Value::DateTime(time.truncated(to.decimals)),
                Loss::OutOfRange,
            ),
        },
        (_, Some(Value::Time(time))) => (Value::Time(time.rounded(to.decimals)), Loss::Nothing),
        _ => (Value::Null, Loss::Wrong(to.kind.name())),
    }
}

/// True if the value can stand in a column of that type as it is: `store_value` would change
/// nothing. Says no where it is not sure.
#[inline]
pub fn fits_as_is(value: ValueRef<'_>, from: &ColumnType, to: &ColumnType) -> bool {
    match value {
        ValueRef::Int(number) if to.kind.is_integer() && !to.unsigned => {
            let (min, max) = (to.integer_min(), to.integer_max());
            min <= number && i64::try_from(max).is_ok_and(|max| number <= max)
        }
        ValueRef::UInt(number) if to.kind.is_integer() && to.unsigned => number <= to.integer_max(),
        ValueRef::Bytes(bytes) if from.kind.is_bytes() && to.kind.is_bytes() => {
            let is_same_set = from.charset() == to.charset();
            let fits = bytes.len() <= stdx::to_usize(to.length);
            let is_padded = matches!(to.kind, TypeKind::Char | TypeKind::Binary);
            // A CHAR drops trailing blanks; a BINARY is filled up.
            let is_plain = !is_padded || (to.kind == TypeKind::Char && bytes.last() != Some(&b' '));
            let is_text = is_same_set && (to.is_binary() || bytes.is_ascii());
            fits && is_plain && is_text
        }
        ValueRef::Double(_) => to.kind == TypeKind::Double && from.kind == TypeKind::Double,
        _ => false,
    }
}

/// What a NOT NULL column holds where nothing was given.
pub fn zero_of(column_type: &ColumnType) -> Value {
    match column_type.kind {
        kind if kind.is_integer() && !column_type.unsigned => Value::Int(0),
        TypeKind::Enum => Value::UInt(1),
        TypeKind::Float => Value::Float(0.0),
        TypeKind::Double => Value::Double(0.0),
        TypeKind::Decimal => Value::Decimal(Decimal::ZERO),
        TypeKind::Binary => Value::Bytes(vec![0; stdx::to_usize(column_type.length)]),
        kind if kind.is_bytes() => Value::Bytes(Vec::new()),
        TypeKind::Date => Value::Date(value::Date::ZERO),
        TypeKind::Time => Value::Time(value::Time::ZERO),
        TypeKind::DateTime | TypeKind::Timestamp => Value::DateTime(DateTime::default()),
        TypeKind::Null => Value::Null,
        _ => Value::UInt(0),
    }
}

/// The statement's moment as a value of a column with `CURRENT_TIMESTAMP`. A TIMESTAMP is kept in
/// UTC, a DATETIME in the session's zone.
pub fn now_for(column_type: &ColumnType, statement: &Statement<'_>) -> Value {
    let options = statement.options;
    let offset_us = i64::from(options.zone_offset_s) * 1_000_000;
    let is_utc = column_type.kind == TypeKind::Timestamp;
    let micros = if is_utc {
        options.now_us
    } else {
        options.now_us + offset_us
    };
    match DateTime::from_unix_micros(micros) {
        Some(now) => Value::DateTime(now.truncated(column_type.decimals)),
        None => Value::DateTime(DateTime::default()),
    }
}
