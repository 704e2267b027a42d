//! [`BinaryRow`]: a row of the binary protocol.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | 0 |
//! | (columns + 9) / 8 | a bit for each column that is NULL, the first at bit 2 |
//! | n | values of the columns that are not NULL, see `parameter.rs` |

use crate::command::parameter::{BinaryValue, ParameterType};
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::{Packet, PacketWriter};
use crate::temporal::{DateTime, Time};

/// Bits before that of the first column.
const NULL_BITS_OFFSET: usize = 2;

/// A row that is being written straight into the output buffer. If it is dropped unfinished, it
/// leaves no trace. The caller writes one value a column, in the form of the column's type.
#[derive(Debug)]
pub struct BinaryRow<'a> {
    packet: Packet<'a>,
    /// Column of the next value.
    column: usize,
    column_count: usize,
}

impl<'a> BinaryRow<'a> {
    /// Starts a row of `column_count` columns.
    #[inline]
    pub fn begin(out: &'a mut PacketWriter, column_count: usize) -> BinaryRow<'a> {
        let mut packet = out.begin();
        packet.u8(0);
        packet.zeros((column_count + NULL_BITS_OFFSET).div_ceil(8));
        BinaryRow {
            packet,
            column: 0,
            column_count,
        }
    }

    /// A value that is NULL.
    #[inline]
    pub fn null(&mut self) {
        let bit = self.column + NULL_BITS_OFFSET;
        assert!(self.column < self.column_count, "one value a column");
        self.packet.patch(1 + bit / 8, |byte| byte | 1 << (bit % 8));
        self.column += 1;
    }

    /// TINYINT.
    #[inline]
    pub fn i8(&mut self, value: i8) {
        self.value().u8(value.cast_unsigned());
    }

    /// SMALLINT or YEAR; pass unsigned ones by `cast_signed`.
    #[inline]
    pub fn i16(&mut self, value: i16) {
        self.value().u16(value.cast_unsigned());
    }

    /// INT or MEDIUMINT; pass unsigned ones by `cast_signed`.
    #[inline]
    pub fn i32(&mut self, value: i32) {
        self.value().u32(value.cast_unsigned());
    }

    /// BIGINT.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.value().u64(value.cast_unsigned());
    }

    /// BIGINT UNSIGNED.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.value().u64(value);
    }

    /// FLOAT.
    #[inline]
    pub fn f32(&mut self, value: f32) {
        self.value().u32(value.to_bits());
    }

    /// DOUBLE.
    #[inline]
    pub fn f64(&mut self, value: f64) {
        self.value().u64(value.to_bits());
    }

    /// Text, bytes, or a decimal number as text.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.value().lenenc_bytes(bytes);
    }

    /// A value whose text `write` appends to the buffer. `write` may only append.
    #[inline]
    pub fn with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.value().lenenc_with(write);
    }

    /// DATE, DATETIME or TIMESTAMP.
    #[inline]
    pub fn date_time(&mut self, value: &DateTime) {
        value.encode(self.value());
    }

    /// TIME.
    #[inline]
    pub fn time(&mut self, value: &Time) {
        value.encode(self.value());
    }

    /// How many payload bytes the row has so far.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        self.packet.payload_bytes()
    }

    /// Ends the row, which must have a value in each column.
    #[inline]
    pub fn finish(self) {
        assert!(self.column == self.column_count, "one value a column");
        self.packet.finish();
    }

    #[inline]
    fn value(&mut self) -> &mut Packet<'a> {
        assert!(self.column < self.column_count, "one value a column");
        self.column += 1;
        &mut self.packet
    }
}

/// The values of a received row, in order.
#[derive(Debug, Clone)]
pub struct BinaryRowReader<'a, 't> {
    null_bits: &'a [u8],
    values: Cursor<'a>,
    types: &'t [ParameterType],
    /// Column of the next value.
    column: usize,
}

impl<'a, 't> BinaryRowReader<'a, 't> {
    /// The row in `payload`, whose columns are of `types`.
    pub fn new(
        payload: &'a [u8],
        types: &'t [ParameterType],
    ) -> Result<BinaryRowReader<'a, 't>, Malformed> {
        let mut values = Cursor::new(payload);
        if values.u8("binary row")? != 0 {
            return Err(Malformed::new("binary row"));
        }
        let null_bits = values.bytes((types.len() + NULL_BITS_OFFSET).div_ceil(8), "NULL bits")?;
        Ok(BinaryRowReader {
            null_bits,
            values,
            types,
            column: 0,
        })
    }

    /// The value of the next column; `None` after the last.
    pub fn next_value(&mut self) -> Result<Option<BinaryValue<'a>>, Malformed> {
        let Some(bound) = self.types.get(self.column).copied() else {
            return Ok(None);
        };
        let bit = self.column + NULL_BITS_OFFSET;
        let is_null = self
            .null_bits
            .get(bit / 8)
            .is_some_and(|byte| byte & 1 << (bit % 8) != 0);
        self.column += 1;
        if is_null {
            return Ok(Some(BinaryValue::Null));
        }
        BinaryValue::decode(&mut self.values, bound).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ColumnType;
    use crate::command::execute::tests::any_parameter;

    fn write(row: &mut BinaryRow<'_>, bound: ParameterType, value: BinaryValue<'_>) {
        match (value, bound.column_type) {
            (BinaryValue::Null, _) => row.null(),
            (BinaryValue::Int(value), ColumnType::Tiny) => row.i8(value.try_into().unwrap()),
            (BinaryValue::Int(value), ColumnType::Long) => row.i32(value.try_into().unwrap()),
            (BinaryValue::Int(value), _) => row.i64(value),
            (BinaryValue::Unsigned(value), ColumnType::Short) => {
                row.i16(u16::try_from(value).unwrap().cast_signed());
            }
            (BinaryValue::Unsigned(value), _) => row.u64(value),
            (BinaryValue::Float(value), _) => row.f32(value),
            (BinaryValue::Double(value), _) => row.f64(value),
            (BinaryValue::Bytes(value), ColumnType::NewDecimal) => {
                row.with(|buffer| buffer.extend_from_slice(value));
            }
            (BinaryValue::Bytes(value), _) => row.bytes(value),
            (BinaryValue::DateTime(value), _) => row.date_time(&value),
            (BinaryValue::Time(value), _) => row.time(&value),
        }
    }

    proptest! {
        #[test]
        fn round_trip(values in prop::collection::vec(any_parameter(), 0..30)) {
            let mut out = PacketWriter::new();
            let mut row = BinaryRow::begin(&mut out, values.len());
            for (bound, value) in &values {
                write(&mut row, *bound, *value);
            }
            row.finish();
            let types: Vec<_> = values.iter().map(|(bound, _)| *bound).collect();
            let mut row = BinaryRowReader::new(&out.as_bytes()[4..], &types).unwrap();
            for (_, value) in &values {
                prop_assert_eq!(row.next_value(), Ok(Some(*value)));
            }
            prop_assert_eq!(row.next_value(), Ok(None));
        }

        #[test]
        fn arbitrary_bytes_never_panic(
            bytes: Vec<u8>,
            values in prop::collection::vec(any_parameter(), 0..30),
        ) {
            let types: Vec<_> = values.iter().map(|(bound, _)| *bound).collect();
            if let Ok(mut row) = BinaryRowReader::new(&bytes, &types) {
                while let Ok(Some(_)) = row.next_value() {}
            }
        }
    }

    #[test]
    #[should_panic(expected = "one value a column")]
    fn row_with_a_column_missing_is_a_bug() {
        let mut out = PacketWriter::new();
        BinaryRow::begin(&mut out, 1).finish();
    }
}
