//! Parameters of prepared statements as values with types.

use planner::StringRules;
use value::{Charset, CollationId, ColumnType, Date, Decimal, TypeKind, Value};
use wire::{BinaryValue, ParameterType};

/// A parameter of the protocol as a value with its type.
pub(crate) fn parameter(
    value: BinaryValue<'_>,
    wire_type: ParameterType,
    strings: StringRules,
) -> (Value, ColumnType) {
    let is_blob = matches!(
        wire_type.column_type,
        wire::ColumnType::Blob
            | wire::ColumnType::TinyBlob
            | wire::ColumnType::MediumBlob
            | wire::ColumnType::LongBlob
            | wire::ColumnType::Geometry
    );
    let value = match value {
        BinaryValue::Null => Value::Null,
        BinaryValue::Int(number) => Value::Int(number),
        BinaryValue::Unsigned(number) => Value::UInt(number),
        BinaryValue::Float(number) => Value::Double(f64::from(number)),
        BinaryValue::Double(number) => Value::Double(number),
        BinaryValue::Bytes(text) if wire_type.column_type == wire::ColumnType::NewDecimal => {
            Value::Decimal(Decimal::parse_prefix(text).value)
        }
        BinaryValue::Bytes(bytes) if is_blob => Value::bytes(bytes),
        BinaryValue::Bytes(text) => Value::Bytes(strings.received(text).into_owned()),
        BinaryValue::DateTime(time) if wire_type.column_type == wire::ColumnType::Date => {
            Value::Date(date_time(&time).date())
        }
        BinaryValue::DateTime(time) => Value::DateTime(date_time(&time)),
        BinaryValue::Time(time) => {
            let hour = time
                .days
                .saturating_mul(24)
                .saturating_add(time.hours.into());
            Value::Time(value::Time::from_parts(
                time.is_negative,
                hour,
                time.minutes,
                time.seconds,
                time.microseconds,
            ))
        }
    };
    let collation = if is_blob {
        CollationId::BINARY
    } else {
        strings.collation
    };
    let column_type = type_of(&value, collation);
    (value, column_type)
}

/// A value of EXECUTE .. USING and its collation. Text of another character set is converted to the
/// connection's.
pub(crate) fn in_connection(
    value: Value,
    from: &ColumnType,
    connection: CollationId,
) -> (Value, CollationId) {
    let (is, wanted) = (from.charset(), connection.charset());
    match value {
        Value::Bytes(_) if from.is_binary() || wanted == Charset::Binary || is == wanted => {
            (value, from.collation)
        }
        Value::Bytes(text) if from.kind.is_string() => {
            let mut converted = Vec::with_capacity(text.len());
            wanted.append_converted(is, &text, &mut converted);
            (Value::Bytes(converted), connection)
        }
        value => (value, connection),
    }
}

/// A client may send any numbers; an invalid date or time becomes zero, as in MariaDB.
fn date_time(time: &wire::DateTime) -> value::DateTime {
    let is_valid = time.year <= 9999
        && time.month <= 12
        && time.day <= 31
        && time.hour < 24
        && time.minute < 60
        && time.second < 60
        && time.microsecond < 1_000_000;
    if !is_valid {
        return value::DateTime::default();
    }
    let date = Date::new(time.year, time.month, time.day);
    let hour = u32::from(time.hour);
    let of_day = value::Time::from_parts(false, hour, time.minute, time.second, time.microsecond);
    value::DateTime::new(date, of_day)
}

/// The fractional digits of a time with this many microseconds, as MariaDB shows a parameter.
fn digits_of(micros: u32) -> u8 {
    if micros == 0 { 0 } else { 6 }
}

/// The type of a value that stands alone. Text gets the widest length, so that longer texts use the
/// same plan. Numbers and times have the fractional digits that they show.
pub(crate) fn type_of(value: &Value, collation: CollationId) -> ColumnType {
    match value {
        Value::Null => ColumnType::new(TypeKind::Null),
        Value::Int(_) => ColumnType::new(TypeKind::BigInt),
        Value::UInt(_) => ColumnType::unsigned(TypeKind::BigInt),
        Value::Float(_) | Value::Double(_) => ColumnType::new(TypeKind::Double),
        Value::Decimal(number) => ColumnType::decimal(Decimal::PRECISION_MAX, number.scale()),
        Value::Bytes(_) => ColumnType::text(TypeKind::LongText, u32::MAX, collation),
        Value::Date(_) => ColumnType::new(TypeKind::Date),
        Value::Time(time) => ColumnType::temporal(TypeKind::Time, digits_of(time.microsecond())),
        Value::DateTime(time) => {
            ColumnType::temporal(TypeKind::DateTime, digits_of(time.microsecond()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_that_is_none_is_the_zero_date() {
        let mut time = wire::DateTime {
            year: 2026,
            month: 11,
            day: 21,
            hour: 23,
            minute: 59,
            second: 59,
            microsecond: 999_999,
        };
        assert_ne!(date_time(&time), value::DateTime::default());
        time.year = 10_000;
        assert_eq!(date_time(&time), value::DateTime::default());
        time.year = 2026;
        time.hour = 24;
        assert_eq!(date_time(&time), value::DateTime::default());
    }
}
