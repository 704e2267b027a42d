//! One SQL value: [`Value`] owns its bytes, [`ValueRef`] borrows them and is `Copy`.
//!
//! A value does not know its type. The collation of bytes, the scale for showing a decimal and the
//! members of an ENUM are in its [`crate::ColumnType`]. The variant for each type:
//!
//! | type | variant |
//! |---|---|
//! | TINYINT .. BIGINT | `Int`, or `UInt` where the column is unsigned |
//! | YEAR, BIT, ENUM (index, 0 is the empty error value), SET (bit mask) | `UInt` |
//! | FLOAT / DOUBLE / DECIMAL | `Float` / `Double` / `Decimal` |
//! | CHAR, VARCHAR, BINARY, VARBINARY, TEXT, BLOB | `Bytes` |
//! | DATE / TIME | `Date` / `Time` |
//! | DATETIME, TIMESTAMP | `DateTime`; a TIMESTAMP is UTC in storage, session zone elsewhere |

use crate::decimal::{Decimal, DecimalRef};
use crate::temporal::{Date, DateTime, Time};

/// An owned SQL value.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value {
    /// SQL NULL.
    #[default]
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer; also YEAR, BIT, ENUM and SET.
    UInt(u64),
    /// A single precision number.
    Float(f32),
    /// A double precision number.
    Double(f64),
    /// An exact number.
    Decimal(Decimal),
    /// Text or binary, by its type.
    Bytes(Vec<u8>),
    /// A date without time.
    Date(Date),
    /// A duration or time of day.
    Time(Time),
    /// A date with time.
    DateTime(DateTime),
}

/// A borrowed SQL value, 24 bytes, read from a row or a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL NULL.
    #[default]
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer; also YEAR, BIT, ENUM and SET.
    UInt(u64),
    /// A single precision number.
    Float(f32),
    /// A double precision number.
    Double(f64),
    /// An exact number, by reference or in its storage form.
    Decimal(DecimalRef<'a>),
    /// Text or binary, by its type.
    Bytes(&'a [u8]),
    /// A date without time.
    Date(Date),
    /// A duration or time of day.
    Time(Time),
    /// A date with time.
    DateTime(DateTime),
}

const _: () = assert!(size_of::<ValueRef<'static>>() <= 24);
const _: () = assert!(size_of::<Value>() <= 48);

impl Value {
    /// The borrowed form.
    #[inline]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Int(*number),
            Self::UInt(number) => ValueRef::UInt(*number),
            Self::Float(number) => ValueRef::Float(*number),
            Self::Double(number) => ValueRef::Double(*number),
            Self::Decimal(number) => ValueRef::Decimal(DecimalRef::Whole(number)),
            Self::Bytes(bytes) => ValueRef::Bytes(bytes),
            Self::Date(date) => ValueRef::Date(*date),
            Self::Time(time) => ValueRef::Time(*time),
            Self::DateTime(time) => ValueRef::DateTime(*time),
        }
    }

    /// True for SQL NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Text or binary from anything with bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl ValueRef<'_> {
    /// A copy that owns its bytes.
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Int(number) => Value::Int(number),
            Self::UInt(number) => Value::UInt(number),
            Self::Float(number) => Value::Float(number),
            Self::Double(number) => Value::Double(number),
            Self::Decimal(number) => Value::Decimal(number.to_decimal()),
            Self::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Self::Date(date) => Value::Date(date),
            Self::Time(time) => Value::Time(time),
            Self::DateTime(time) => Value::DateTime(time),
        }
    }

    /// True for SQL NULL.
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        value.to_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_borrowed_value_becomes_the_owned_one_again() {
        let values = [
            Value::Null,
            Value::Int(-3),
            Value::UInt(u64::MAX),
            Value::Double(1.5),
            Value::Decimal("12.345".parse().unwrap()),
            Value::bytes("abc"),
            Value::Date(Date::new(2024, 2, 29)),
            Value::Time(Time::from_micros(-1)),
        ];
        for value in values {
            assert_eq!(value.as_ref().to_value(), value);
        }
    }
}
