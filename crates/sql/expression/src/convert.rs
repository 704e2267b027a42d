//! Conversions of values to types: implicit and explicit ones ([`convert_value`]), and those for
//! storing ([`store_value`]).

use errcode::{ClientError, ER_WARN_DATA_OUT_OF_RANGE};
use value::decimal::Rounding;
use value::number::Integer;
use value::{ColumnType, DateTime, Decimal, Place, TypeKind, Value, ValueRef, Warnings};

use crate::{Failure, Statement};

/// Converts the value to a type as CAST does: a value that does not fit is truncated, with a
/// warning.
pub fn convert_value(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    statement: &Statement<'_>,
) -> Result<Value, Failure> {
    let mut warnings = statement.diagnostics.warnings();
    let warnings = &mut *warnings;
    let converted = match to.kind {
        _ if value.is_null() => None,
        kind if kind.is_integer() => value
            .to_integer(warnings)
            .map(|number| to_integer(number, to)),
        TypeKind::Decimal => value
            .to_decimal(warnings)
            .map(|number| to_decimal(&number, to, warnings)),
        TypeKind::Float => value
            .to_f64(warnings)
            .map(|number| Value::Float(stdx::f64_to_f32(number))),
        TypeKind::Double => value.to_f64(warnings).map(Value::Double),
        kind if kind.is_bytes() => value.to_text(from).map(|text| to_bytes(&text, from, to)),
        TypeKind::Date => {
            let time = value.to_datetime(statement.today(), warnings);
            time.map(|time| Value::Date(time.date()))
        }
        TypeKind::DateTime | TypeKind::Timestamp => {
            let time = value.to_datetime(statement.today(), warnings);
            time.map(|time| Value::DateTime(time.truncated(to.decimals)))
        }
        TypeKind::Time => {
            let time = value.to_time(warnings);
            time.map(|time| Value::Time(time.truncated(to.decimals)))
        }
        _ => Some(value.to_value()),
    };
    Ok(converted.unwrap_or(Value::Null))
}

/// The integer with the type's sign; its 64 bits are unchanged.
fn to_integer(number: Integer, to: &ColumnType) -> Value {
    match (to.unsigned, number) {
        (true, number) => Value::UInt(number.bits()),
        (false, number) => Value::Int(number.bits().cast_signed()),
    }
}

fn to_decimal(number: &Decimal, to: &ColumnType, warnings: &mut Warnings) -> Value {
    let rounded = number
        .round(i32::from(to.decimals), Rounding::HalfUp)
        .unwrap_or(*number);
    let precision = u8::try_from(to.length).unwrap_or(Decimal::PRECISION_MAX);
    let greatest = Decimal::greatest(precision, to.decimals);
    let clamped = rounded.clamp(greatest.negated(), greatest);
    if clamped != rounded {
        let error = ClientError::new(ER_WARN_DATA_OUT_OF_RANGE, &[&number, &1]);
        warnings.warn(error.into());
    }
    Value::Decimal(clamped)
}

fn to_bytes(text: &[u8], from: &ColumnType, to: &ColumnType) -> Value {
    let (source, target) = (from.charset(), to.charset());
    let mut bytes = Vec::with_capacity(text.len());
    if from.kind.is_string() && source != target && !from.is_binary() && !to.is_binary() {
        target.append_converted(source, text, &mut bytes);
    } else {
        bytes.extend_from_slice(text);
    }
    let length = stdx::to_usize(to.length);
    let end = if to.kind.is_blob() {
        bytes.len().min(length)
    } else {
        target.prefix(&bytes, length).len()
    };
    bytes.truncate(end);
    if to.kind == TypeKind::Binary {
        bytes.resize(length, 0);
    }
    Value::Bytes(bytes)
}

/// Converts the value to a column's type as INSERT and UPDATE do. A value that does not fit is an
/// error in strict mode; otherwise it is truncated with a warning.
pub fn store_value(
    value: ValueRef<'_>,
    from: &ColumnType,
    to: &ColumnType,
    place: Place<'_>,
    statement: &Statement<'_>,
) -> Result<Value, Failure> {
    let rules = statement.store_rules();
    let mut warnings = statement.diagnostics.warnings();
    value::store_value(value, from, to, place, &rules, &mut warnings).map_err(crate::failure)
}

/// True if the value can be stored in a column of that type unchanged: `store_value` would change
/// nothing. Returns false if it is not certain.
#[inline]
pub fn fits_as_is(value: ValueRef<'_>, from: &ColumnType, to: &ColumnType) -> bool {
    match value {
        ValueRef::Int(number) if to.kind.is_integer() && !to.unsigned => {
            let (min, max) = (to.integer_min(), to.integer_max());
            min <= number && i64::try_from(max).is_ok_and(|max| number <= max)
        }
        ValueRef::UInt(number) if to.kind.is_integer() && to.unsigned => number <= to.integer_max(),
        // A value for a geometry must be checked.
        ValueRef::Bytes(_) if to.kind == TypeKind::Geometry => false,
        ValueRef::Bytes(bytes) if from.kind.is_bytes() && to.kind.is_bytes() => {
            let is_same_set = from.charset() == to.charset();
            let fits = bytes.len() <= stdx::to_usize(to.length);
            let is_padded = matches!(to.kind, TypeKind::Char | TypeKind::Binary);
            // A CHAR drops trailing blanks; a BINARY is padded.
            let is_plain = !is_padded || (to.kind == TypeKind::Char && bytes.last() != Some(&b' '));
            let is_text = is_same_set && (to.is_binary() || bytes.is_ascii());
            fits && is_plain && is_text
        }
        ValueRef::Double(_) => {
            let is_free = !to.unsigned && to.decimals == ColumnType::NOT_FIXED;
            to.kind == TypeKind::Double && from.kind == TypeKind::Double && is_free
        }
        _ => false,
    }
}

/// The value of a NOT NULL column for which nothing was given.
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

/// The statement's time as the value of a column with `CURRENT_TIMESTAMP`. A TIMESTAMP is stored in
/// UTC, a DATETIME in the session's zone.
pub fn now_for(column_type: &ColumnType, statement: &Statement<'_>) -> Value {
    let now = if column_type.kind == TypeKind::Timestamp {
        DateTime::from_unix_micros(statement.options.now_us).unwrap_or_default()
    } else {
        statement.now()
    };
    Value::DateTime(now.truncated(column_type.decimals))
}
