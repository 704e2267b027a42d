//! Rows that are too long for the output buffer: many values, or values of many MiB.
//!
//! A long row becomes a [`LongPacket`]. Before each of its pieces the caller reserves memory and
//! lets others run, so a row of a gigabyte stops no worker.

use expression::Failure;
use value::{Charset, ValueRef};
use wire::{BinaryRow, HEADER_BYTES, LongPacket, PacketWriter, TextRow};

use super::{ColumnEncoder, RowEncoder, RowProtocol};

/// Called before memory is taken, with what the packet takes then; others may run before it
/// returns.
pub(crate) type Reserve<'r> = dyn FnMut(usize) -> Result<(), Failure> + 'r;

/// Bytes that a value takes in addition to those of its text, at the most.
const VALUE_BYTES_MAX: usize = 32;

/// The null bits of the binary protocol have this many bits before them.
const NULL_BITS_OFFSET: usize = 2;

impl RowEncoder {
    /// Writes a row as a long packet. After an error the packet is not whole.
    pub(crate) fn append_long(
        &self,
        row: &[ValueRef<'_>],
        packet: &mut LongPacket,
        reserve: &mut Reserve<'_>,
    ) -> Result<(), Failure> {
        let text_bytes = row.iter().map(|value| match value {
            ValueRef::Bytes(bytes) => bytes.len() + VALUE_BYTES_MAX,
            _ => VALUE_BYTES_MAX,
        });
        let mut long = LongRow {
            left_bytes: text_bytes.sum(),
            packet,
            reserve,
            value: PacketWriter::new(),
        };
        if self.protocol == RowProtocol::Binary {
            long.bytes(&binary_head(row))?;
        }
        for (column, value) in self.columns.iter().zip(row) {
            self.append_long_value(column, *value, &mut long)?;
        }
        Ok(())
    }

    fn append_long_value(
        &self,
        column: &ColumnEncoder,
        value: ValueRef<'_>,
        long: &mut LongRow<'_, '_>,
    ) -> Result<(), Failure> {
        match value {
            ValueRef::Bytes(bytes) => match (column.convert_from, self.results) {
                (Some(from), Some(to)) => return long.converted(from, to, bytes),
                _ => return long.lenenc_bytes(bytes),
            },
            ValueRef::Null if self.protocol == RowProtocol::Binary => return Ok(()),
            _ => {}
        }
        let mut written = std::mem::take(&mut long.value);
        written.clear();
        let head_bytes = match self.protocol {
            RowProtocol::Text => {
                let mut row = TextRow::begin(&mut written);
                self.text_value(column, value, &mut row);
                row.finish();
                HEADER_BYTES
            }
            RowProtocol::Binary => {
                let mut row = BinaryRow::begin(&mut written, 1);
                self.binary_value(column, value, &mut row);
                row.finish();
                HEADER_BYTES + binary_head(&[value]).len()
            }
        };
        let appended = long.bytes(written.as_bytes().get(head_bytes..).unwrap_or_default());
        long.value = written;
        appended
    }
}

/// What a row of the binary protocol begins with: a zero, and a bit for each value that is NULL.
fn binary_head(row: &[ValueRef<'_>]) -> Vec<u8> {
    let mut head = vec![0; 1 + (row.len() + NULL_BITS_OFFSET).div_ceil(8)];
    for (column, value) in row.iter().enumerate() {
        let bit = column + NULL_BITS_OFFSET;
        if value.is_null()
            && let Some(byte) = head.get_mut(1 + bit / 8)
        {
            *byte |= 1 << (bit % 8);
        }
    }
    head
}

/// A long row that is being written.
struct LongRow<'l, 'r> {
    packet: &'l mut LongPacket,
    /// An estimate of what is not written yet.
    left_bytes: usize,
    reserve: &'l mut Reserve<'r>,
    /// A buffer for a value that is no text.
    value: PacketWriter,
}

impl LongRow<'_, '_> {
    /// Appends bytes as they are.
    fn bytes(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let count = self.packet.append(bytes);
            if count == 0 {
                let wanted = self.left_bytes.max(bytes.len());
                let piece_bytes = LongPacket::next_piece_bytes(wanted);
                (self.reserve)(self.packet.reserved_bytes() + piece_bytes)?;
                self.packet.add_piece(piece_bytes);
            }
            self.left_bytes = self.left_bytes.saturating_sub(count);
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    fn lenenc(&mut self, length: usize) -> Result<(), Failure> {
        let mut written = std::mem::take(&mut self.value);
        written.clear();
        let mut packet = written.begin();
        packet.lenenc(stdx::to_u64(length));
        packet.finish();
        let appended = self.bytes(written.as_bytes().get(HEADER_BYTES..).unwrap_or_default());
        self.value = written;
        appended
    }

    fn lenenc_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.lenenc(bytes.len())?;
        self.bytes(bytes)
    }

    /// A text in another character set. Its length comes first, so it is converted twice.
    fn converted(&mut self, from: Charset, to: Charset, text: &[u8]) -> Result<(), Failure> {
        let mut part = Vec::new();
        let mut length = 0;
        for characters in from.pieces(text) {
            part.clear();
            to.append_converted(from, characters, &mut part);
            length += part.len();
            (self.reserve)(self.packet.reserved_bytes())?;
        }
        self.lenenc(length)?;
        for characters in from.pieces(text) {
            part.clear();
            to.append_converted(from, characters, &mut part);
            self.bytes(&part)?;
            (self.reserve)(self.packet.reserved_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use value::{CollationId, ColumnType, Date, Decimal, DecimalRef, TypeKind};

    use super::*;
    use crate::connection::row_encoder::{Appended, SHORT_ROW_BYTES};

    const LATIN1: CollationId = CollationId::LATIN1_SWEDISH_CI;
    const UTF8: CollationId = CollationId::UTF8MB4_GENERAL_CI;

    fn long_bytes(encoder: &RowEncoder, row: &[ValueRef<'_>]) -> Vec<u8> {
        let mut packet = LongPacket::new(0);
        let mut reserved = 0;
        encoder
            .append_long(row, &mut packet, &mut |bytes| {
                reserved = bytes;
                Ok(())
            })
            .expect("nothing is refused");
        assert_eq!(packet.reserved_bytes(), reserved, "all was reserved");
        packet.finish().pieces.concat()
    }

    fn columns() -> [ColumnType; 7] {
        [
            ColumnType::new(TypeKind::Int),
            ColumnType::varchar(9, UTF8),
            ColumnType::varchar(9, LATIN1),
            ColumnType::new(TypeKind::Date),
            ColumnType::new(TypeKind::Double),
            ColumnType::new(TypeKind::Decimal),
            ColumnType::new(TypeKind::Int),
        ]
    }

    fn row<'t>(utf8: &'t [u8], latin1: &'t [u8], decimal: &'t Decimal) -> [ValueRef<'t>; 7] {
        [
            ValueRef::Int(-7),
            ValueRef::Bytes(utf8),
            ValueRef::Bytes(latin1),
            ValueRef::Date(Date::new(2024, 2, 29)),
            ValueRef::Double(1.5),
            ValueRef::Decimal(DecimalRef::Whole(decimal)),
            ValueRef::Null,
        ]
    }

    #[test]
    fn a_long_row_has_the_bytes_of_a_row() {
        let decimal = Decimal::from(12_i64);
        let row = row(b"short", b"\xe9\xe9", &decimal);
        for protocol in [RowProtocol::Text, RowProtocol::Binary] {
            let encoder = RowEncoder::new(&columns(), protocol, Some(Charset::Utf8mb4));
            let mut out = PacketWriter::new();
            assert_eq!(encoder.append(&row, &mut out), Appended::Whole);
            assert_eq!(out.as_bytes(), long_bytes(&encoder, &row), "{protocol:?}");
        }
    }

    #[test]
    fn rows_at_the_limit_are_short() {
        let text = vec![b'x'; SHORT_ROW_BYTES + 1];
        let column = [ColumnType::varchar(9, UTF8), ColumnType::varchar(9, UTF8)];
        let encoder = RowEncoder::new(&column, RowProtocol::Text, None);
        let mut out = PacketWriter::new();
        let mut appended = |first: usize, second: usize| {
            let row = [
                ValueRef::Bytes(&text[..first]),
                ValueRef::Bytes(&text[..second]),
            ];
            let before = out.pending_bytes();
            let appended = encoder.append(&row, &mut out);
            assert_eq!(appended == Appended::Whole, before < out.pending_bytes());
            appended
        };
        assert_eq!(appended(1, SHORT_ROW_BYTES - 1), Appended::Whole);
        assert_eq!(appended(1, SHORT_ROW_BYTES), Appended::TooLong);
        assert_eq!(appended(SHORT_ROW_BYTES + 1, 0), Appended::TooLong);
    }

    #[test]
    fn long_texts_are_converted_as_a_whole() {
        let gbk = CollationId::GBK_CHINESE_CI;
        let texts = [
            ("a\u{e9}".as_bytes(), UTF8),
            ("\u{416}ab".as_bytes(), UTF8),
            ("a\u{1F600}".as_bytes(), UTF8),
            // Two characters of two bytes, and a stray byte.
            (b"a\xd6\xd0\xce\xc4\xff", gbk),
            (b"\x80\x80", UTF8),
        ];
        for (unit, collation) in texts {
            let text = unit.repeat(300_000 / unit.len());
            let columns = [ColumnType::varchar(9, collation)];
            for to in [Charset::Latin1, Charset::Utf8mb3] {
                let encoder = RowEncoder::new(&columns, RowProtocol::Text, Some(to));
                let bytes = long_bytes(&encoder, &[ValueRef::Bytes(&text)]);
                let mut expected = Vec::new();
                to.append_converted(collation.charset(), &text, &mut expected);
                let mut out = PacketWriter::new();
                let mut packet = out.begin();
                packet.lenenc_bytes(&expected);
                packet.finish();
                assert!(bytes == out.as_bytes(), "{unit:x?} to {to:?}");
            }
        }
    }

    #[test]
    fn a_row_ends_where_memory_does() {
        let text = vec![b'x'; 1 << 20];
        let encoder = RowEncoder::new(&[ColumnType::varchar(9, UTF8)], RowProtocol::Text, None);
        let mut packet = LongPacket::new(0);
        let refused =
            encoder.append_long(
                &[ValueRef::Bytes(&text)],
                &mut packet,
                &mut |bytes| match bytes <= 1 << 19 {
                    true => Ok(()),
                    false => Err(Box::new(errcode::ClientError::new(
                        errcode::ER_OUT_OF_RESOURCES,
                        &[],
                    ))),
                },
            );
        assert_eq!(refused.map_err(|failure| failure.code.0), Err(1041));
        assert!(packet.reserved_bytes() <= 1 << 19);
    }
}
