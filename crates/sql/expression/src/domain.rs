//! [`Domain`]: converts values to the class in which an operator works.
//!
//! Comparison and arithmetic never refuse a value: a text that is not a number counts by its
//! numeric prefix, with warning 1292. Storing may refuse it, in strict mode (`store_value`).

use bumpalo::Bump;
use value::decimal::DecimalRef;
use value::number::Integer;
use value::{Charset, ColumnType, Date, DateTime, Time, TypeKind, Value, ValueRef};

use crate::Statement;
use crate::tree::Class;

/// The arena for computed values, and the statement for warnings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Domain<'a> {
    pub(crate) arena: &'a Bump,
    pub(crate) statement: &'a Statement<'a>,
}

/// Keeps a computed value in an arena.
pub(crate) fn keep(arena: &Bump, value: Value) -> ValueRef<'_> {
    match value {
        Value::Null => ValueRef::Null,
        Value::Int(number) => ValueRef::Int(number),
        Value::UInt(number) => ValueRef::UInt(number),
        Value::Float(number) => ValueRef::Float(number),
        Value::Double(number) => ValueRef::Double(number),
        Value::Decimal(number) => ValueRef::Decimal(DecimalRef::Whole(arena.alloc(number))),
        Value::Bytes(bytes) => ValueRef::Bytes(arena.alloc_slice_copy(&bytes)),
        Value::Date(date) => ValueRef::Date(date),
        Value::Time(time) => ValueRef::Time(time),
        Value::DateTime(time) => ValueRef::DateTime(time),
    }
}

/// An integer as a value.
pub(crate) fn integer_value<'a>(number: Integer) -> ValueRef<'a> {
    match number {
        Integer::Signed(number) => ValueRef::Int(number),
        Integer::Unsigned(number) => match i64::try_from(number) {
            Ok(number) => ValueRef::Int(number),
            Err(_) => ValueRef::UInt(number),
        },
    }
}

impl<'a> Domain<'a> {
    /// Converts the value to a class. NULL stays NULL; so does a value without a counterpart there.
    #[inline]
    pub(crate) fn bring(
        self,
        value: ValueRef<'a>,
        from: &ColumnType,
        class: Class,
    ) -> ValueRef<'a> {
        match (class, value) {
            (_, ValueRef::Null)
            | (Class::Integer, ValueRef::Int(_) | ValueRef::UInt(_))
            | (Class::Double, ValueRef::Double(_))
            | (Class::Decimal, ValueRef::Decimal(_))
            | (Class::DateTime, ValueRef::DateTime(_))
            | (Class::Time, ValueRef::Time(_)) => value,
            _ => self.convert(value, from, class),
        }
    }

    fn convert(self, value: ValueRef<'a>, from: &ColumnType, class: Class) -> ValueRef<'a> {
        if let Class::Text(collation) = class {
            return self.text_in(value, from, collation.charset());
        }
        // The warning for a text that is no number is in UTF-8.
        let value = match (class, value) {
            (Class::Integer | Class::Double | Class::Decimal, ValueRef::Bytes(_)) => {
                self.text_in(value, from, Charset::Utf8mb4)
            }
            _ => value,
        };
        // The number of an ENUM is its index, but as a date it is its text; the bits of a BIT are a
        // number. An invalid date compares as the zero date, never as NULL.
        let mut warnings = self.statement.diagnostics.warnings();
        let converted = match class {
            Class::Integer => value.to_integer(&mut warnings).map(integer_value),
            Class::Double => value.to_f64(&mut warnings).map(ValueRef::Double),
            Class::Decimal => value
                .to_decimal(&mut warnings)
                .map(|number| ValueRef::Decimal(DecimalRef::Whole(self.arena.alloc(number)))),
            Class::DateTime => {
                let value = self.dated(value, from);
                let time = value.to_compared_datetime(self.statement.today(), &mut warnings);
                Some(ValueRef::DateTime(time.unwrap_or(DateTime::ZERO)))
            }
            Class::Time => {
                let time = self.dated(value, from).to_compared_time(&mut warnings);
                Some(ValueRef::Time(time.unwrap_or(Time::ZERO)))
            }
            Class::Text(_) => unreachable!("handled above"),
        };
        converted.unwrap_or(ValueRef::Null)
    }

    /// The value from which a date is read: the text of an ENUM, SET or BIT, a YEAR as a date, else
    /// the value itself.
    fn dated(self, value: ValueRef<'a>, from: &ColumnType) -> ValueRef<'a> {
        match from.kind {
            TypeKind::Enum | TypeKind::Set | TypeKind::Bit => self.text(value, from),
            TypeKind::Year => year_as_date(value, from),
            _ => value,
        }
    }

    /// The value as text in its own character set.
    pub(crate) fn text(self, value: ValueRef<'a>, from: &ColumnType) -> ValueRef<'a> {
        match value {
            ValueRef::Null | ValueRef::Bytes(_) => value,
            other => {
                let text = other.to_text(from).expect("it is not NULL");
                ValueRef::Bytes(self.arena.alloc_slice_copy(&text))
            }
        }
    }

    /// The value as text in the given character set.
    pub(crate) fn text_in(
        self,
        value: ValueRef<'a>,
        from: &ColumnType,
        to: Charset,
    ) -> ValueRef<'a> {
        let text = self.text(value, from);
        let ValueRef::Bytes(bytes) = text else {
            return text;
        };
        match converted_text(bytes, from, to) {
            Some(converted) => ValueRef::Bytes(self.arena.alloc_slice_copy(&converted)),
            None => text,
        }
    }

    /// The value as unsigned 64 bits; `None` for NULL.
    pub(crate) fn bits(self, value: ValueRef<'a>) -> Option<u64> {
        let mut warnings = self.statement.diagnostics.warnings();
        value.to_integer(&mut warnings).map(Integer::bits)
    }

    /// Whether the value counts as true; `None` for NULL.
    #[inline]
    pub(crate) fn truth(self, value: ValueRef<'a>, from: &ColumnType) -> Option<bool> {
        match value {
            ValueRef::Null => None,
            ValueRef::Int(number) => Some(number != 0),
            ValueRef::UInt(number) if from.kind != TypeKind::Null => Some(number != 0),
            other => other.to_bool(&mut self.statement.diagnostics.warnings()),
        }
    }
}

/// The value as a number, of a text its numeric prefix; without warnings.
pub(crate) fn as_double(value: ValueRef<'_>) -> f64 {
    value.to_f64(&mut value::Warnings::new(0)).unwrap_or(0.0)
}

/// Text of that type in another character set; `None` if its bytes need no conversion.
pub(crate) fn converted_text(bytes: &[u8], from: &ColumnType, to: Charset) -> Option<Vec<u8>> {
    let source = from.charset();
    let is_same = source == to || source == Charset::Binary || to == Charset::Binary;
    if is_same || !from.kind.is_string() || bytes.is_ascii() {
        return None;
    }
    let mut converted = Vec::with_capacity(bytes.len() * 2);
    to.append_converted(source, bytes, &mut converted);
    Some(converted)
}

/// A value as it is compared with a YEAR of so many digits: the year that it means, in the value's
/// own type, or the value itself if it means none.
pub(crate) fn as_year(value: ValueRef<'_>, from: &ColumnType, digits: u32) -> Value {
    // The year of a date counts even if a YEAR cannot store it.
    let kept = |year: u16| Value::Int(i64::from(if digits == 2 { year % 100 } else { year }));
    match value {
        ValueRef::Date(date) => return kept(date.year()),
        ValueRef::DateTime(time) => return kept(time.date().year()),
        ValueRef::Time(_) => return Value::Int(0),
        _ => {}
    }
    let Some(year) = value::compared_year(value, from, digits) else {
        return value.to_value();
    };
    match value {
        ValueRef::Bytes(_) => Value::Bytes(year.to_string().into_bytes()),
        ValueRef::Decimal(_) => Value::Decimal(value::Decimal::from(year)),
        ValueRef::Float(_) | ValueRef::Double(_) => Value::Double(stdx::u64_to_f64(year)),
        _ => Value::Int(year.cast_signed()),
    }
}

/// A YEAR compared with dates: a date without month and day.
pub(crate) fn year_as_date<'v>(value: ValueRef<'v>, from: &ColumnType) -> ValueRef<'v> {
    let year = match value {
        ValueRef::Int(number) => u16::try_from(number),
        ValueRef::UInt(number) => u16::try_from(number),
        _ => return value,
    };
    year.map_or(value, |year| {
        ValueRef::Date(Date::new(from.whole_year(year), 0, 0))
    })
}

/// The value as a date with time, or as a time, if it is one; without warnings.
pub(crate) fn plain_temporal(value: ValueRef<'_>, kind: TypeKind, today: Date) -> Option<Value> {
    let mut warnings = value::Warnings::new(0);
    if kind == TypeKind::Time {
        return value.to_time(&mut warnings).map(Value::Time);
    }
    let time = value.to_compared_datetime(today, &mut warnings);
    time.map(Value::DateTime)
}
