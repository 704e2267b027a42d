//! Keys: values as bytes that compare in the order of the values.
//!
//! ```text
//! nullable column  00 for NULL, else 01 and the value
//! integers         big-endian in the column's width, sign bit inverted where signed
//! FLOAT, DOUBLE    IEEE bits; all inverted below zero, else the sign bit
//! DECIMAL          MySQL's storage form (decimal.rs)
//! YEAR             two bytes          BIT, ENUM, SET  eight bytes
//! DATE             three bytes, packed
//! DATETIME,        the packed value without its microseconds in five bytes,
//!  TIMESTAMP       then microseconds in three where the column has any
//! TIME             microseconds above the least TIME in six bytes
//! text             the collation's sort key (collation/compare.rs), which ends by itself
//! ```
//!
//! No key is a prefix of another one of the same column, so keys of several columns are
//! concatenated. Different values that compare as equal have equal keys.

use crate::decimal::append_binary;
use crate::temporal::{Date, DateTime, Time};
use crate::{ColumnType, Decimal, TypeKind, ValueRef};

/// First byte of a NULL in a nullable column.
pub const NULL_MARK: u8 = 0;
/// First byte of a value in a nullable column.
pub const VALUE_MARK: u8 = 1;

/// One column of a key.
#[derive(Debug, Clone)]
pub struct KeyPart {
    /// The column's type.
    pub column: ColumnType,
    /// The column may be NULL.
    pub nullable: bool,
    /// Only this many characters (bytes of binary text) are in the key.
    pub prefix: Option<u32>,
}

impl KeyPart {
    /// The whole of a column.
    pub const fn whole(column: ColumnType, nullable: bool) -> Self {
        Self {
            column,
            nullable,
            prefix: None,
        }
    }

    /// Appends the key of a value. The value has the column's type, as `store_value` returns it.
    pub fn append(&self, value: ValueRef<'_>, out: &mut Vec<u8>) {
        if self.nullable {
            if value.is_null() {
                out.push(NULL_MARK);
                return;
            }
            out.push(VALUE_MARK);
        }
        append_value(value, &self.column, self.prefix, out);
    }

    /// Whether values can be read back from keys ([`KeyPart::take`]). Not for texts, whose keys are
    /// sort keys, nor for DOUBLEs, since there are two zeros; for DECIMALs it is not built.
    pub fn leads_back(&self) -> bool {
        let kind = self.column.kind;
        let is_named = matches!(
            kind,
            TypeKind::Year | TypeKind::Bit | TypeKind::Enum | TypeKind::Set
        );
        kind.is_integer() || kind.is_temporal() || is_named
    }

    /// Reads the value at the start of `key` and removes it. `None` if the bytes are not from
    /// [`KeyPart::append`], or values cannot be read back.
    pub fn take(&self, key: &mut &[u8]) -> Option<ValueRef<'static>> {
        if !self.leads_back() {
            return None;
        }
        if self.nullable {
            let (mark, rest) = key.split_first()?;
            *key = rest;
            match *mark {
                NULL_MARK => return Some(ValueRef::Null),
                VALUE_MARK => {}
                _ => return None,
            }
        }
        let (own, rest) = key.split_at_checked(width(&self.column))?;
        *key = rest;
        value_of(own, &self.column)
    }
}

impl KeyPart {
    /// The length of this part's key at the beginning of `key`; `None` if it is cut off there.
    pub fn length_in(&self, key: &[u8]) -> Option<usize> {
        let mut length = 0;
        if self.nullable {
            length = 1;
            if *key.first()? == NULL_MARK {
                return Some(length);
            }
        }
        length += match self.column.kind {
            kind if kind.is_bytes() => self.column.collation.key_length(key.get(length..)?)?,
            _ => width(&self.column),
        };
        (length <= key.len()).then_some(length)
    }
}

/// The value of a key, if it can be read back.
fn value_of(key: &[u8], column: &ColumnType) -> Option<ValueRef<'static>> {
    let number = |bytes: &[u8]| {
        let shift = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        bytes.iter().fold(0, shift)
    };
    Some(match column.kind {
        TypeKind::Date => ValueRef::Date(Date::from_packed(stdx::low_u32(number(key)))?),
        TypeKind::Time => {
            let above = i64::try_from(number(key)).ok()?;
            ValueRef::Time(Time::from_micros_checked(above + Time::MIN.micros())?)
        }
        TypeKind::DateTime | TypeKind::Timestamp => {
            let (whole, micros) = key.split_at_checked(5)?;
            // Three bytes can hold more than the twenty bits of microseconds.
            let micros = Some(number(micros)).filter(|&micros| micros < 1_000_000)?;
            ValueRef::DateTime(DateTime::from_packed(number(whole) << 20 | micros)?)
        }
        kind if kind.is_integer() && !column.unsigned => {
            let bits = key.len() * 8;
            let number = number(key) ^ 1 << (bits - 1);
            let unused = 64 - bits;
            ValueRef::Int((number << unused).cast_signed() >> unused)
        }
        _ => ValueRef::UInt(number(key)),
    })
}

#[inline]
fn append_value(value: ValueRef<'_>, column: &ColumnType, prefix: Option<u32>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Int(number) => append_integer(number.cast_unsigned(), column, out),
        ValueRef::UInt(number) => append_integer(number, column, out),
        ValueRef::Float(number) => append_float(number, out),
        ValueRef::Double(number) if column.kind == TypeKind::Float => {
            append_float(stdx::f64_to_f32(number), out);
        }
        ValueRef::Double(number) => append_double(number, out),
        ValueRef::Decimal(number) => append_decimal(&number.to_decimal(), column, out),
        ValueRef::Bytes(text) => {
            let text = match prefix {
                Some(chars) => column.charset().prefix(text, stdx::to_usize(chars)),
                None => text,
            };
            column.collation.append_key(text, out);
        }
        ValueRef::Date(date) => out.extend_from_slice(&date.packed().to_be_bytes()[1..]),
        ValueRef::Time(time) => {
            let above = (time.micros() - Time::MIN.micros()).unsigned_abs();
            out.extend_from_slice(&above.to_be_bytes()[2..]);
        }
        ValueRef::DateTime(time) => {
            let packed = time.packed();
            out.extend_from_slice(&(packed >> 20).to_be_bytes()[3..]);
            if column.decimals > 0 {
                out.extend_from_slice(&time.microsecond().to_be_bytes()[1..]);
            }
        }
        // A column that is not nullable has no NULL; it would sort first.
        ValueRef::Null => append_null(column, out),
    }
}

fn append_null(column: &ColumnType, out: &mut Vec<u8>) {
    if column.kind.is_bytes() {
        column.collation.append_key(&[], out);
    } else {
        out.extend(std::iter::repeat_n(0, width(column)));
    }
}

/// Bytes of a key with fixed width; 0 for text.
fn width(column: &ColumnType) -> usize {
    match column.kind {
        TypeKind::Year => 2,
        TypeKind::Bit | TypeKind::Enum | TypeKind::Set => 8,
        TypeKind::Time => 6,
        TypeKind::DateTime | TypeKind::Timestamp => {
            if column.decimals > 0 {
                8
            } else {
                5
            }
        }
        kind if kind.is_bytes() => 0,
        _ => column.byte_length_max(),
    }
}

#[inline]
fn append_integer(bits: u64, column: &ColumnType, out: &mut Vec<u8>) {
    match column.kind {
        TypeKind::Decimal => {
            let number = if column.unsigned {
                Decimal::from(bits)
            } else {
                Decimal::from(bits.cast_signed())
            };
            append_decimal(&number, column, out);
        }
        TypeKind::Float | TypeKind::Double => {
            let number = stdx::i64_to_f64(bits.cast_signed());
            append_value(ValueRef::Double(number), column, None, out);
        }
        _ => {
            let bytes = width(column).clamp(1, 8);
            let start = out.len();
            out.extend_from_slice(&bits.to_be_bytes()[8 - bytes..]);
            if !column.unsigned && column.kind.is_integer() {
                out[start] ^= 0x80;
            }
        }
    }
}

fn append_float(number: f32, out: &mut Vec<u8>) {
    // Adding zero turns -0 into 0.
    let bits = (number + 0.0).to_bits();
    let ordered = if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    };
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn append_double(number: f64, out: &mut Vec<u8>) {
    let bits = (number + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn append_decimal(number: &Decimal, column: &ColumnType, out: &mut Vec<u8>) {
    let precision = u8::try_from(column.length).unwrap_or(Decimal::PRECISION_MAX);
    if append_binary(number, precision, column.decimals, out).is_err() {
        // A number out of the column's range, from a search, is beyond all of its keys.
        let byte = if number.is_negative() { 0 } else { 0xFF };
        out.extend(std::iter::repeat_n(byte, width(column)));
    }
}

/// Appends the keys of several columns.
pub fn append_key<'a>(
    parts: &[KeyPart],
    values: impl IntoIterator<Item = ValueRef<'a>>,
    out: &mut Vec<u8>,
) {
    for (part, value) in parts.iter().zip(values) {
        part.append(value, out);
    }
}

/// The smallest key above every key that begins with `key`, in place; `None` if there is none.
pub fn successor(mut key: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = key.pop() {
        if last < 0xFF {
            key.push(last + 1);
            return Some(key);
        }
    }
    None
}

#[cfg(test)]
mod tests;
