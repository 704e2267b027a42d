//! A row as bytes: the same on the page, in a batch and in a network buffer.
//!
//! ```text
//! | flags 1 | null bitmap | fixed columns | ends of variable columns | variable columns |
//! ```
//!
//! * flags: bit 0 = *wide*, the ends are 4 bytes each instead of 2. Narrow holds 65,535 bytes of
//!   variable columns.
//! * null bitmap: bit `i % 8` of byte `i / 8` is set if column `i` is NULL; one byte for each
//!   eight columns begun.
//! * fixed columns: each at its own offset, little-endian, zeroes where NULL. Widths: the integer
//!   types 1, 2, 3 (kept in 4), 4, 8; FLOAT 4; DOUBLE 8; YEAR and ENUM 2; BIT and SET 8; DATE 4;
//!   TIME, DATETIME and TIMESTAMP 8 (packed, so that they compare in order); DECIMAL its storage
//!   form.
//! * ends: for each variable column (text and binary kinds), in order, where it ends in the last
//!   part; a NULL ends where it begins.
//!
//! Any column is found with a few loads and without reading the others. All rows of a table have
//! one layout: a change of columns makes another table. Format document: `docs/formats/row.md`.

use thiserror::Error;
use value::decimal::{DecimalRef, append_binary, binary_bytes};
use value::{ColumnType, Date, DateTime, Time, TypeKind, ValueRef};

use crate::codec::{array_at, u16_at, u32_at};

/// Flag: ends take four bytes.
const WIDE: u8 = 1;

/// The longest variable part with ends of two bytes.
const NARROW_BYTES_MAX: usize = 0xffff;

/// The longest possible variable part: ends have four bytes.
pub const VARIABLE_BYTES_MAX: usize = 0xffff_ffff;

/// Why a row cannot be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RowError {
    /// The bytes do not hold a row of this layout.
    #[error("the row is damaged at column {column}")]
    Damaged {
        /// Position of the column that was asked for.
        column: usize,
    },
    /// The value's variant is not the one that belongs to the column's type.
    #[error("the value is not of the type of column {column}")]
    WrongType {
        /// Position of the column.
        column: usize,
    },
    /// The number of values is not the number of columns.
    #[error("{given} values for {expected} columns")]
    WrongCount {
        /// Number of values.
        given: usize,
        /// Number of columns.
        expected: usize,
    },
    /// The variable columns take more than [`VARIABLE_BYTES_MAX`].
    #[error("the row is too long")]
    TooLong,
}

/// How the rows of a table's version are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLayout {
    /// The columns in order.
    columns: Box<[Place]>,
    /// Where the fixed columns begin: after flags and bitmap.
    fixed_start: usize,
    /// Where the ends begin.
    ends_start: usize,
    /// Number of variable columns.
    variable_count: usize,
}

/// Where a column is and how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// How the bytes are read.
    coding: Coding,
    /// Fixed: offset in the row. Variable: position among the variable columns.
    position: usize,
}

/// How a column's bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Int(Width),
    UInt(Width),
    Float,
    Double,
    Decimal { precision: u8, scale: u8 },
    Date,
    Time,
    DateTime,
    Variable,
}

/// Bytes of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

impl Coding {
    fn of(column: &ColumnType) -> Self {
        let integer = |width| {
            if column.unsigned {
                Self::UInt(width)
            } else {
                Self::Int(width)
            }
        };
        match column.kind {
            TypeKind::TinyInt => integer(Width::One),
            TypeKind::SmallInt => integer(Width::Two),
            TypeKind::MediumInt | TypeKind::Int => integer(Width::Four),
            TypeKind::BigInt => integer(Width::Eight),
            TypeKind::Float => Self::Float,
            TypeKind::Double => Self::Double,
            TypeKind::Decimal => {
                let precision = u8::try_from(column.length).expect("a precision is at most 65");
                Self::Decimal {
                    precision,
                    scale: column.decimals,
                }
            }
            TypeKind::Bit | TypeKind::Set => Self::UInt(Width::Eight),
            TypeKind::Year | TypeKind::Enum => Self::UInt(Width::Two),
            TypeKind::Date => Self::Date,
            TypeKind::Time => Self::Time,
            TypeKind::DateTime | TypeKind::Timestamp => Self::DateTime,
            TypeKind::Null
            | TypeKind::Char
            | TypeKind::VarChar
            | TypeKind::Binary
            | TypeKind::VarBinary
            | TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
            | TypeKind::TinyBlob
            | TypeKind::Blob
            | TypeKind::MediumBlob
            | TypeKind::LongBlob
            | TypeKind::Geometry => Self::Variable,
        }
    }

    fn fixed_bytes(self) -> usize {
        match self {
            Self::Int(width) | Self::UInt(width) => width.bytes(),
            Self::Float | Self::Date => 4,
            Self::Double | Self::Time | Self::DateTime => 8,
            Self::Decimal { precision, scale } => binary_bytes(precision, scale),
            Self::Variable => 0,
        }
    }
}

impl RowLayout {
    /// The layout of rows with these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a ColumnType>) -> Self {
        let codings: Vec<_> = columns.into_iter().map(Coding::of).collect();
        let fixed_start = 1 + codings.len().div_ceil(8);
        let (mut offset, mut variable_count) = (fixed_start, 0);
        let place = |coding: Coding| {
            let counter = if coding == Coding::Variable {
                &mut variable_count
            } else {
                &mut offset
            };
            let position = *counter;
            *counter += if coding == Coding::Variable {
                1
            } else {
                coding.fixed_bytes()
            };
            Place { coding, position }
        };
        let columns = codings.into_iter().map(place).collect();
        Self {
            columns,
            fixed_start,
            ends_start: offset,
            variable_count,
        }
    }

    /// Number of columns.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Appends the encoded row to `out`. On an error `out` is as before.
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<(), RowError> {
        let start = out.len();
        let encoded = self.encode_at(values, out);
        if encoded.is_err() {
            out.truncate(start);
        }
        encoded
    }

    fn encode_at(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) -> Result<(), RowError> {
        if values.len() != self.columns.len() {
            return Err(RowError::WrongCount {
                given: values.len(),
                expected: self.columns.len(),
            });
        }
        let variable_bytes = self.variable_bytes(values)?;
        let is_wide = NARROW_BYTES_MAX < variable_bytes;
        let start = out.len();
        let width = if is_wide { 4 } else { 2 };
        out.reserve(self.ends_start + self.variable_count * width + variable_bytes);
        out.push(if is_wide { WIDE } else { 0 });
        out.resize(start + self.fixed_start, 0);
        for (column, (place, value)) in self.columns.iter().zip(values).enumerate() {
            if value.is_null() {
                out[start + 1 + column / 8] |= 1 << (column % 8);
            }
            place.coding.append_fixed(*value, column, out)?;
        }
        assert_eq!(
            out.len(),
            start + self.ends_start,
            "fixed columns fill their part"
        );
        let mut end = 0;
        for value in self.variable_values(values) {
            end += value.len();
            let bytes = u32::try_from(end)
                .map_err(|_| RowError::TooLong)?
                .to_le_bytes();
            out.extend_from_slice(if is_wide { &bytes } else { &bytes[..2] });
        }
        for value in self.variable_values(values) {
            out.extend_from_slice(value);
        }
        Ok(())
    }

    fn variable_values<'a>(&'a self, values: &'a [ValueRef<'a>]) -> impl Iterator<Item = &'a [u8]> {
        let variable = |(place, value): (&Place, &'a ValueRef<'a>)| {
            (place.coding == Coding::Variable).then_some(match value {
                ValueRef::Bytes(bytes) => *bytes,
                _ => &[],
            })
        };
        self.columns.iter().zip(values).filter_map(variable)
    }

    fn variable_bytes(&self, values: &[ValueRef<'_>]) -> Result<usize, RowError> {
        for (column, (place, value)) in self.columns.iter().zip(values).enumerate() {
            let is_variable = place.coding == Coding::Variable;
            if is_variable && !matches!(value, ValueRef::Bytes(_) | ValueRef::Null) {
                return Err(RowError::WrongType { column });
            }
        }
        let total = self.variable_values(values).map(<[u8]>::len).sum();
        if VARIABLE_BYTES_MAX < total {
            Err(RowError::TooLong)
        } else {
            Ok(total)
        }
    }

    /// The value of a column.
    ///
    /// # Errors
    /// `Damaged` if the row is too short for it; `WrongCount` if there is no such column.
    #[inline]
    pub fn column<'a>(&self, row: &'a [u8], column: usize) -> Result<ValueRef<'a>, RowError> {
        let damaged = RowError::Damaged { column };
        let Some(place) = self.columns.get(column) else {
            return Err(RowError::WrongCount {
                given: column,
                expected: self.columns.len(),
            });
        };
        let nulls = *row.get(1 + column / 8).ok_or(damaged)?;
        if nulls & (1 << (column % 8)) != 0 {
            return Ok(ValueRef::Null);
        }
        let value = match place.coding {
            Coding::Variable => self.variable_at(row, place.position).map(ValueRef::Bytes),
            coding => coding.value_at(row, place.position),
        };
        value.ok_or(damaged)
    }

    /// The bytes of a variable column.
    #[inline]
    fn variable_at<'a>(&self, row: &'a [u8], position: usize) -> Option<&'a [u8]> {
        let is_wide = row.first()? & WIDE != 0;
        let end_at = |position: usize| -> Option<usize> {
            let end = if is_wide {
                u32_at(row, self.ends_start + position * 4)?
            } else {
                u32::from(u16_at(row, self.ends_start + position * 2)?)
            };
            usize::try_from(end).ok()
        };
        let start = if position == 0 {
            0
        } else {
            end_at(position - 1)?
        };
        let end = end_at(position)?;
        let data = self.ends_start + self.variable_count * if is_wide { 4 } else { 2 };
        row.get(data.checked_add(start)?..data.checked_add(end)?)
    }

    /// True if the bytes are exactly a row of this layout: each column can be read and nothing is
    /// left over.
    pub fn verify(&self, row: &[u8]) -> bool {
        let readable = (0..self.columns.len()).all(|column| self.column(row, column).is_ok());
        let ordered = (0..self.variable_count).all(|at| self.variable_at(row, at).is_some());
        readable && ordered && row.len() == self.encoded_length(row)
    }

    /// The length by the row's own ends; 0 if it is damaged.
    fn encoded_length(&self, row: &[u8]) -> usize {
        let is_wide = row.first().is_some_and(|flags| flags & WIDE != 0);
        let width = if is_wide { 4 } else { 2 };
        let data = self.ends_start + self.variable_count * width;
        if self.variable_count == 0 {
            return data;
        }
        let last = self.ends_start + (self.variable_count - 1) * width;
        let end = if is_wide {
            u32_at(row, last)
        } else {
            u16_at(row, last).map(u32::from)
        };
        end.and_then(|end| usize::try_from(end).ok())
            .map_or(0, |end| data + end)
    }
}

impl Coding {
    /// Appends a fixed column's bytes, zeroes for NULL; nothing for a variable column.
    fn append_fixed(
        self,
        value: ValueRef<'_>,
        column: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), RowError> {
        let wrong = RowError::WrongType { column };
        if value.is_null() {
            out.resize(out.len() + self.fixed_bytes(), 0);
            return Ok(());
        }
        match (self, value) {
            (Self::Variable, _) => {}
            (Self::Int(width), ValueRef::Int(number)) => {
                let bytes = number.to_le_bytes();
                let kept = &bytes[..width.bytes()];
                if sign_extended(kept) != Some(number) {
                    return Err(wrong);
                }
                out.extend_from_slice(kept);
            }
            (Self::UInt(width), ValueRef::UInt(number)) => {
                let bytes = number.to_le_bytes();
                let (kept, rest) = bytes.split_at(width.bytes());
                if rest.iter().any(|&byte| byte != 0) {
                    return Err(wrong);
                }
                out.extend_from_slice(kept);
            }
            (Self::Float, ValueRef::Float(number)) => out.extend(number.to_le_bytes()),
            (Self::Double, ValueRef::Double(number)) => out.extend(number.to_le_bytes()),
            (Self::Date, ValueRef::Date(date)) => out.extend(date.packed().to_le_bytes()),
            (Self::Time, ValueRef::Time(time)) => out.extend(time.micros().to_le_bytes()),
            (Self::DateTime, ValueRef::DateTime(time)) => out.extend(time.packed().to_le_bytes()),
            (Self::Decimal { precision, scale }, ValueRef::Decimal(number)) => {
                append_decimal(number, precision, scale, out).ok_or(wrong)?;
            }
            _ => return Err(wrong),
        }
        Ok(())
    }

    /// A fixed column's value at `offset`.
    #[inline]
    fn value_at(self, row: &[u8], offset: usize) -> Option<ValueRef<'_>> {
        Some(match self {
            Self::Int(width) => {
                let bytes = row.get(offset..offset.checked_add(width.bytes())?)?;
                ValueRef::Int(sign_extended(bytes)?)
            }
            Self::UInt(Width::One) => ValueRef::UInt(u64::from(*row.get(offset)?)),
            Self::UInt(Width::Two) => ValueRef::UInt(u64::from(u16_at(row, offset)?)),
            Self::UInt(Width::Four) => ValueRef::UInt(u64::from(u32_at(row, offset)?)),
            Self::UInt(Width::Eight) => ValueRef::UInt(u64::from_le_bytes(array_at(row, offset)?)),
            Self::Float => ValueRef::Float(f32::from_le_bytes(array_at(row, offset)?)),
            Self::Double => ValueRef::Double(f64::from_le_bytes(array_at(row, offset)?)),
            Self::Date => ValueRef::Date(Date::from_packed(u32_at(row, offset)?)?),
            Self::Time => {
                let micros = i64::from_le_bytes(array_at(row, offset)?);
                ValueRef::Time(Time::from_micros_checked(micros)?)
            }
            Self::DateTime => {
                let packed = u64::from_le_bytes(array_at(row, offset)?);
                ValueRef::DateTime(DateTime::from_packed(packed)?)
            }
            Self::Decimal { precision, scale } => {
                let end = offset.checked_add(binary_bytes(precision, scale))?;
                let bytes = row.get(offset..end)?;
                ValueRef::Decimal(DecimalRef::Packed {
                    precision,
                    scale,
                    bytes,
                })
            }
            Self::Variable => return None,
        })
    }
}

/// A little-endian two's complement number of 1, 2, 4 or 8 bytes.
#[inline]
fn sign_extended(bytes: &[u8]) -> Option<i64> {
    Some(match bytes.len() {
        1 => i64::from(i8::from_le_bytes(array_at(bytes, 0)?)),
        2 => i64::from(i16::from_le_bytes(array_at(bytes, 0)?)),
        4 => i64::from(i32::from_le_bytes(array_at(bytes, 0)?)),
        _ => i64::from_le_bytes(array_at(bytes, 0)?),
    })
}

/// Appends the storage form; a number that already has it is copied. Returns `None` if it does not
/// fit.
fn append_decimal(
    number: DecimalRef<'_>,
    precision: u8,
    scale: u8,
    out: &mut Vec<u8>,
) -> Option<()> {
    match number {
        DecimalRef::Packed {
            precision: its_precision,
            scale: its_scale,
            bytes,
        } if (its_precision, its_scale) == (precision, scale) => {
            out.extend_from_slice(bytes);
            Some(())
        }
        DecimalRef::Packed { .. } | DecimalRef::Whole(_) => {
            append_binary(&number.to_decimal(), precision, scale, out).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use value::{CollationId, Decimal, Value};

    use super::*;

    fn layout(columns: &[ColumnType]) -> RowLayout {
        RowLayout::new(columns)
    }

    fn encode(columns: &[ColumnType], values: &[Value]) -> Result<Vec<u8>, RowError> {
        let values: Vec<_> = values.iter().map(Value::as_ref).collect();
        let mut out = Vec::new();
        layout(columns).encode(&values, &mut out).map(|()| out)
    }

    fn text(kind: TypeKind) -> ColumnType {
        ColumnType::text(kind, 65_535, CollationId::BINARY)
    }

    #[test]
    fn the_layout_is_pinned() {
        let columns = [
            ColumnType::new(TypeKind::Int),
            text(TypeKind::VarChar),
            ColumnType::unsigned(TypeKind::SmallInt),
            text(TypeKind::Blob),
        ];
        let values = [
            Value::Int(-2),
            Value::bytes(*b"abc"),
            Value::Null,
            Value::bytes(*b"\x01\x02"),
        ];
        let expected = b"\x00\x04\xfe\xff\xff\xff\x00\x00\x03\x00\x05\x00abc\x01\x02".to_vec();
        assert_eq!(encode(&columns, &values), Ok(expected));
    }

    #[test]
    fn a_row_gets_wide_ends_just_above_the_narrow_limit() {
        let columns = [text(TypeKind::LongBlob), text(TypeKind::VarChar)];
        for (length, flags, overhead) in [
            (NARROW_BYTES_MAX - 1, 0, 6),
            (NARROW_BYTES_MAX, 0, 6),
            (NARROW_BYTES_MAX + 1, WIDE, 10),
        ] {
            let row = encode(&columns, &[Value::bytes(vec![7; length]), Value::Null]).unwrap();
            assert_eq!((row[0], row.len()), (flags, length + overhead));
            let layout = layout(&columns);
            assert!(layout.verify(&row));
            assert_eq!(
                layout.column(&row, 0),
                Ok(ValueRef::Bytes(&vec![7; length]))
            );
            assert_eq!(layout.column(&row, 1), Ok(ValueRef::Null));
        }
    }

    #[test]
    fn values_that_do_not_belong_are_refused_and_leave_nothing_behind() {
        let columns = [ColumnType::new(TypeKind::TinyInt), text(TypeKind::VarChar)];
        let mut out = b"kept".to_vec();
        for values in [
            [ValueRef::Int(128), ValueRef::Null],
            [ValueRef::UInt(1), ValueRef::Null],
            [ValueRef::Bytes(b"1"), ValueRef::Null],
        ] {
            let answer = layout(&columns).encode(&values, &mut out);
            assert_eq!(answer, Err(RowError::WrongType { column: 0 }));
        }
        let answer = layout(&columns).encode(&[ValueRef::Int(1), ValueRef::Int(1)], &mut out);
        assert_eq!(answer, Err(RowError::WrongType { column: 1 }));
        let answer = layout(&columns).encode(&[ValueRef::Int(1)], &mut out);
        assert_eq!(
            answer,
            Err(RowError::WrongCount {
                given: 1,
                expected: 2
            })
        );
        assert_eq!(out, b"kept");
    }

    #[test]
    fn a_row_with_bytes_missing_or_left_over_does_not_verify() {
        let columns = [ColumnType::new(TypeKind::BigInt), text(TypeKind::Text)];
        let mut row = encode(&columns, &[Value::Int(5), Value::bytes(*b"hello")]).unwrap();
        assert!(layout(&columns).verify(&row));
        row.push(0);
        assert!(!layout(&columns).verify(&row));
        row.truncate(row.len() - 2);
        assert!(!layout(&columns).verify(&row));
        assert_eq!(
            layout(&columns).column(&row, 1),
            Err(RowError::Damaged { column: 1 })
        );
    }

    /// A column of each coding, with a value that belongs to it.
    fn any_column() -> impl Strategy<Value = (ColumnType, Value)> {
        let number = "[1-9][0-9]{0,8}\\.[0-9]{3}"
            .prop_map(|text| Value::Decimal(Decimal::parse_prefix(text.as_bytes()).value));
        prop_oneof![
            any::<i8>().prop_map(|n| (ColumnType::new(TypeKind::TinyInt), Value::Int(n.into()))),
            any::<i32>().prop_map(|n| (ColumnType::new(TypeKind::Int), Value::Int(n.into()))),
            any::<u64>().prop_map(|n| (ColumnType::unsigned(TypeKind::BigInt), Value::UInt(n))),
            any::<u16>().prop_map(|n| (ColumnType::new(TypeKind::Year), Value::UInt(n.into()))),
            any::<i16>().prop_map(|n| (ColumnType::new(TypeKind::Double), Value::Double(n.into()))),
            any::<i16>().prop_map(|n| (ColumnType::new(TypeKind::Float), Value::Float(n.into()))),
            number.prop_map(|n| (ColumnType::decimal(12, 3), n)),
            (1..28u8).prop_map(|day| {
                (
                    ColumnType::new(TypeKind::Date),
                    Value::Date(Date::new(2024, 2, day)),
                )
            }),
            (-9_000_000i64..9_000_000).prop_map(|micros| {
                (
                    ColumnType::temporal(TypeKind::Time, 6),
                    Value::Time(Time::from_micros(micros)),
                )
            }),
            proptest::collection::vec(any::<u8>(), 0..40)
                .prop_map(|bytes| (text(TypeKind::VarBinary), Value::Bytes(bytes))),
        ]
    }

    proptest! {
        #[test]
        fn each_column_is_read_as_it_was_written(
            columns in proptest::collection::vec((any_column(), any::<bool>()), 0..40),
        ) {
            let types: Vec<_> = columns.iter().map(|((column, _), _)| column.clone()).collect();
            let values: Vec<_> = columns
                .iter()
                .map(|((_, value), null)| if *null { Value::Null } else { value.clone() })
                .collect();
            let row = encode(&types, &values).unwrap();
            let layout = layout(&types);
            prop_assert!(layout.verify(&row));
            for (column, value) in values.iter().enumerate() {
                prop_assert_eq!(&layout.column(&row, column).unwrap().to_value(), value);
            }
        }

        #[test]
        fn any_bytes_give_values_or_errors(
            types in proptest::collection::vec(any_column(), 1..12),
            row in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let types: Vec<_> = types.into_iter().map(|(column, _)| column).collect();
            let layout = layout(&types);
            let readable =
                (0..types.len()).filter(|&column| layout.column(&row, column).is_ok()).count();
            prop_assert!(readable <= types.len());
        }
    }
}
