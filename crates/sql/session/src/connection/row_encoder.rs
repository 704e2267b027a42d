//! Rows of values as packets, in the text and the binary protocol.
//!
//! Decisions that are the same for every row are taken once for a result: which bytes need another
//! character set, how wide an integer is. A row is then one pass over its values that appends to
//! the output buffer. A row that is too long for that is left to `long_row`.

mod long_row;

use value::{Charset, ColumnType, Date, DateTime, Time, TypeKind, ValueRef};
use wire::{BinaryRow, PacketWriter, TextRow};

/// Which protocol the rows of a result are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowProtocol {
    /// COM_QUERY.
    Text,
    /// COM_STMT_EXECUTE.
    Binary,
}

/// A row with more bytes of texts than this is long: as much as packets have that are received and
/// not counted.
pub(crate) const SHORT_ROW_BYTES: usize = 64 << 10;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    /// It was appended.
    Whole,
    /// Nothing was appended: it is long ([`RowEncoder::append_long`]).
    TooLong,
}

/// Writes the rows of one result.
#[derive(Debug)]
pub struct RowEncoder {
    /// How each column is written.
    columns: Vec<ColumnEncoder>,
    /// The protocol of the rows.
    protocol: RowProtocol,
    /// What text is converted to.
    results: Option<Charset>,
}

#[derive(Debug)]
struct ColumnEncoder {
    /// The column's type.
    column_type: ColumnType,
    /// The binary protocol's width of the type.
    width: BinaryWidth,
    /// The character set that the column's text has, if it must be converted.
    convert_from: Option<Charset>,
}

/// How the binary protocol writes a number of the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BinaryWidth {
    One,
    Two,
    Four,
    Eight,
    Float,
    Double,
    Text,
}

impl BinaryWidth {
    fn of(kind: TypeKind) -> Self {
        match kind {
            TypeKind::TinyInt => Self::One,
            TypeKind::SmallInt | TypeKind::Year => Self::Two,
            TypeKind::MediumInt | TypeKind::Int => Self::Four,
            TypeKind::BigInt => Self::Eight,
            TypeKind::Float => Self::Float,
            TypeKind::Double => Self::Double,
            TypeKind::Null
            | TypeKind::Decimal
            | TypeKind::Bit
            | TypeKind::Date
            | TypeKind::Time
            | TypeKind::DateTime
            | TypeKind::Timestamp
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
            | TypeKind::Enum
            | TypeKind::Set
            | TypeKind::Geometry => Self::Text,
        }
    }
}

impl RowEncoder {
    /// An encoder of rows with these types. `results` is `character_set_results`; `None` leaves
    /// text as it is stored.
    pub fn new<'a>(
        types: impl IntoIterator<Item = &'a ColumnType>,
        protocol: RowProtocol,
        results: Option<Charset>,
    ) -> Self {
        let encoder = |column_type: &ColumnType| ColumnEncoder {
            column_type: column_type.clone(),
            width: BinaryWidth::of(column_type.kind),
            convert_from: conversion(column_type, results),
        };
        Self {
            columns: types.into_iter().map(encoder).collect(),
            protocol,
            results,
        }
    }

    /// Appends a row, unless it is long.
    ///
    /// # Panics
    /// If there is not one value for each column.
    #[inline]
    pub(crate) fn append(&self, row: &[ValueRef<'_>], out: &mut PacketWriter) -> Appended {
        assert_eq!(row.len(), self.columns.len(), "one value a column");
        match self.protocol {
            RowProtocol::Text => self.append_text(row, out),
            RowProtocol::Binary => self.append_binary(row, out),
        }
    }

    fn append_text(&self, row: &[ValueRef<'_>], out: &mut PacketWriter) -> Appended {
        let mut packet = TextRow::begin(out);
        let mut room = SHORT_ROW_BYTES;
        for (column, value) in self.columns.iter().zip(row) {
            if !takes_of(&mut room, *value) {
                return Appended::TooLong;
            }
            self.text_value(column, *value, &mut packet);
        }
        packet.finish();
        Appended::Whole
    }

    #[inline]
    fn text_value(&self, column: &ColumnEncoder, value: ValueRef<'_>, packet: &mut TextRow<'_>) {
        match value {
            ValueRef::Null => packet.null(),
            ValueRef::Bytes(bytes) if column.convert_from.is_none() => packet.bytes(bytes),
            ValueRef::Int(number) if column.column_type.kind.is_integer() => {
                packet.i64(number);
            }
            value => packet.with(|out| self.append_value(column, value, out)),
        }
    }

    fn append_binary(&self, row: &[ValueRef<'_>], out: &mut PacketWriter) -> Appended {
        let mut packet = BinaryRow::begin(out, self.columns.len());
        let mut room = SHORT_ROW_BYTES;
        for (column, value) in self.columns.iter().zip(row) {
            if !takes_of(&mut room, *value) {
                return Appended::TooLong;
            }
            self.binary_value(column, *value, &mut packet);
        }
        packet.finish();
        Appended::Whole
    }

    #[inline]
    fn binary_value(
        &self,
        column: &ColumnEncoder,
        value: ValueRef<'_>,
        packet: &mut BinaryRow<'_>,
    ) {
        match value {
            ValueRef::Null => packet.null(),
            ValueRef::Bytes(bytes) if column.convert_from.is_none() => packet.bytes(bytes),
            ValueRef::Int(number) => {
                append_integer(packet, column, number.cast_unsigned());
            }
            ValueRef::UInt(number) if column.width != BinaryWidth::Text => {
                append_integer(packet, column, number);
            }
            ValueRef::Float(number) => append_float(packet, column, number.into()),
            ValueRef::Double(number) => append_float(packet, column, number),
            ValueRef::Date(date) => packet.date_time(&wire_date(date)),
            ValueRef::DateTime(time) => packet.date_time(&wire_date_time(time)),
            ValueRef::Time(time) => packet.time(&wire_time(time)),
            value @ (ValueRef::Bytes(_) | ValueRef::UInt(_) | ValueRef::Decimal(_)) => {
                packet.with(|out| self.append_value(column, value, out));
            }
        }
    }

    /// A value as text in the results' character set.
    fn append_value(&self, column: &ColumnEncoder, value: ValueRef<'_>, out: &mut Vec<u8>) {
        match (column.convert_from, self.results) {
            (Some(from), Some(to)) => {
                let mut text = Vec::new();
                value.append_text(&column.column_type, &mut text);
                to.append_converted(from, &text, out);
            }
            _ => value.append_text(&column.column_type, out),
        }
    }
}

/// Takes the bytes of a text off the room that a row has; false if there is too little.
#[inline]
fn takes_of(room: &mut usize, value: ValueRef<'_>) -> bool {
    let ValueRef::Bytes(bytes) = value else {
        return true;
    };
    let left = room.checked_sub(bytes.len());
    *room = left.unwrap_or(0);
    left.is_some()
}

/// The character set of the column's text if the client wants another one.
fn conversion(column: &ColumnType, results: Option<Charset>) -> Option<Charset> {
    let from = column.charset();
    let is_text = column.kind.is_string() && from != Charset::Binary;
    let wanted = results.filter(|&to| to != Charset::Binary)?;
    // ASCII has the same bytes in each supported character set.
    (is_text && from != wanted && from != Charset::Ascii).then_some(from)
}

fn append_integer(packet: &mut BinaryRow<'_>, column: &ColumnEncoder, number: u64) {
    let bytes = number.to_le_bytes();
    match column.width {
        BinaryWidth::One => packet.i8(i8::from_le_bytes([bytes[0]])),
        BinaryWidth::Two => packet.i16(i16::from_le_bytes([bytes[0], bytes[1]])),
        BinaryWidth::Four => {
            packet.i32(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        }
        BinaryWidth::Eight => packet.u64(number),
        BinaryWidth::Float | BinaryWidth::Double | BinaryWidth::Text => {
            let column_type = &column.column_type;
            let value = ValueRef::Int(number.cast_signed());
            packet.with(|out| value.append_text(column_type, out));
        }
    }
}

fn append_float(packet: &mut BinaryRow<'_>, column: &ColumnEncoder, number: f64) {
    match column.width {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "FLOAT holds what was a f32"
        )]
        BinaryWidth::Float => packet.f32(number as f32),
        _ => packet.f64(number),
    }
}

fn wire_date(date: Date) -> wire::DateTime {
    wire::DateTime {
        year: date.year(),
        month: date.month(),
        day: date.day(),
        ..wire::DateTime::default()
    }
}

fn wire_date_time(time: DateTime) -> wire::DateTime {
    wire::DateTime {
        hour: time.hour(),
        minute: time.minute(),
        second: time.second(),
        microsecond: time.microsecond(),
        ..wire_date(time.date())
    }
}

fn wire_time(time: Time) -> wire::Time {
    let hours = time.hour();
    wire::Time {
        is_negative: time.is_negative(),
        days: u32::from(hours / 24),
        hours: u8::try_from(hours % 24).expect("a remainder of 24 is a byte"),
        minutes: time.minute(),
        seconds: time.second(),
        microseconds: time.microsecond(),
    }
}

#[cfg(test)]
mod tests {
    use value::CollationId;

    use super::*;

    fn encode(protocol: RowProtocol, columns: &[ColumnType], row: &[ValueRef<'_>]) -> Vec<u8> {
        let mut out = PacketWriter::new();
        let encoder = RowEncoder::new(columns, protocol, Some(Charset::Utf8mb4));
        assert_eq!(encoder.append(row, &mut out), Appended::Whole);
        out.as_bytes()[4..].to_vec()
    }

    #[test]
    fn a_text_row_shows_each_value_as_text() {
        let columns = [
            ColumnType::new(TypeKind::Int),
            ColumnType::varchar(9, CollationId::UTF8MB4_GENERAL_CI),
            ColumnType::varchar(9, CollationId::LATIN1_SWEDISH_CI),
            ColumnType::new(TypeKind::Date),
            ColumnType::new(TypeKind::Double),
        ];
        let row = [
            ValueRef::Int(-7),
            ValueRef::Null,
            ValueRef::Bytes(b"\xe9"),
            ValueRef::Date(Date::new(2024, 2, 29)),
            ValueRef::Double(1.5),
        ];
        let expected = b"\x02-7\xfb\x02\xc3\xa9\x0a2024-02-29\x031.5";
        assert_eq!(encode(RowProtocol::Text, &columns, &row), expected);
    }

    #[test]
    fn a_binary_row_has_the_widths_of_its_types() {
        let columns = [
            ColumnType::new(TypeKind::TinyInt),
            ColumnType::unsigned(TypeKind::BigInt),
            ColumnType::new(TypeKind::Float),
            ColumnType::new(TypeKind::Time),
            ColumnType::new(TypeKind::Int),
        ];
        let row = [
            ValueRef::Int(-1),
            ValueRef::UInt(u64::MAX),
            ValueRef::Float(0.5),
            ValueRef::Time(Time::from_parts(true, 25, 1, 2, 0)),
            ValueRef::Null,
        ];
        let mut expected = vec![0, 1 << 6, 0xff];
        expected.extend([0xff; 8]);
        expected.extend(0.5f32.to_le_bytes());
        expected.extend([8, 1, 1, 0, 0, 0, 1, 1, 2]);
        assert_eq!(encode(RowProtocol::Binary, &columns, &row), expected);
    }
}
