//! [`TextRow`]: a row of the text protocol. Each value is text after its length, or 0xFB for NULL.

use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::{Packet, PacketWriter};

/// A row that is being written straight into the output buffer. If it is dropped unfinished, it
/// leaves no trace.
#[derive(Debug)]
pub struct TextRow<'a> {
    packet: Packet<'a>,
}

impl<'a> TextRow<'a> {
    /// Starts a row.
    #[inline]
    pub fn begin(out: &'a mut PacketWriter) -> TextRow<'a> {
        TextRow {
            packet: out.begin(),
        }
    }

    /// A value that is NULL.
    #[inline]
    pub fn null(&mut self) {
        self.packet.u8(0xFB);
    }

    /// A value that is text or bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.packet.lenenc_bytes(bytes);
    }

    /// A signed integer in decimal digits.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.digits(value.unsigned_abs(), value < 0);
    }

    /// An unsigned integer in decimal digits.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.digits(value, false);
    }

    /// A value whose text `write` appends to the buffer. `write` may only append.
    #[inline]
    pub fn with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.packet.lenenc_with(write);
    }

    /// How many payload bytes the row has so far.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        self.packet.payload_bytes()
    }

    /// Ends the row.
    #[inline]
    pub fn finish(self) {
        self.packet.finish();
    }

    #[inline]
    fn digits(&mut self, value: u64, is_negative: bool) {
        let mut text = [0; DIGITS_MAX + 1];
        let start = write_decimal(&mut text, value, is_negative);
        self.packet
            .lenenc_bytes(text.get(start..).unwrap_or_default());
    }
}

/// Most decimal digits of 64 bits.
const DIGITS_MAX: usize = 20;

/// Writes `value` to the end of `text`, two digits a step. Returns where it starts.
#[inline]
fn write_decimal(text: &mut [u8; DIGITS_MAX + 1], mut value: u64, is_negative: bool) -> usize {
    let mut at = text.len();
    let mut push = |byte: u8| {
        at -= 1;
        if let Some(place) = text.get_mut(at) {
            *place = byte;
        }
    };
    while value >= 10 {
        let pair = u8::try_from(value % 100).expect("below 100");
        value /= 100;
        push(b'0' + pair % 10);
        push(b'0' + pair / 10);
        if value == 0 {
            if is_negative {
                push(b'-');
            }
            return at;
        }
    }
    push(b'0' + u8::try_from(value).expect("below 10"));
    if is_negative {
        push(b'-');
    }
    at
}

/// The values of a received row, in order.
#[derive(Debug, Clone)]
pub struct TextRowReader<'a> {
    cursor: Cursor<'a>,
}

impl<'a> TextRowReader<'a> {
    /// The row in `payload`.
    pub fn new(payload: &'a [u8]) -> TextRowReader<'a> {
        TextRowReader {
            cursor: Cursor::new(payload),
        }
    }

    /// The next value, `None` for NULL.
    pub fn next_value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        self.cursor.lenenc_bytes_or_null("text row")
    }

    /// Whether all values have been read.
    pub fn is_done(&self) -> bool {
        self.cursor.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(
            bytes: Vec<u8>,
            signed: i64,
            unsigned: u64,
            shift in 0_u32..64,
            long in 0_usize..70_000,
        ) {
            let (signed, unsigned) = (signed >> shift, unsigned >> shift);
            let mut out = PacketWriter::new();
            let mut row = TextRow::begin(&mut out);
            row.bytes(&bytes);
            row.null();
            row.i64(signed);
            row.u64(unsigned);
            row.with(|buffer| buffer.resize(buffer.len() + long, b'x'));
            row.finish();
            let (signed, unsigned) = (signed.to_string(), unsigned.to_string());
            let mut row = TextRowReader::new(&out.as_bytes()[4..]);
            prop_assert_eq!(row.next_value(), Ok(Some(&bytes[..])));
            prop_assert_eq!(row.next_value(), Ok(None));
            prop_assert_eq!(row.next_value(), Ok(Some(signed.as_bytes())));
            prop_assert_eq!(row.next_value(), Ok(Some(unsigned.as_bytes())));
            prop_assert_eq!(row.next_value().unwrap().unwrap().len(), long);
            prop_assert!(row.is_done());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let mut row = TextRowReader::new(&bytes);
            while row.next_value().is_ok() && !row.is_done() {}
        }
    }

    #[test]
    fn extreme_integers() {
        let mut out = PacketWriter::new();
        let mut row = TextRow::begin(&mut out);
        for value in [0, 9, 10, 99, 100, -1, -10, i64::MIN, i64::MAX] {
            row.i64(value);
        }
        row.u64(u64::MAX);
        row.finish();
        let mut row = TextRowReader::new(&out.as_bytes()[4..]);
        let mut texts = Vec::new();
        while !row.is_done() {
            texts.push(String::from_utf8(row.next_value().unwrap().unwrap().to_vec()).unwrap());
        }
        assert_eq!(
            texts.join(" "),
            "0 9 10 99 100 -1 -10 -9223372036854775808 9223372036854775807 18446744073709551615"
        );
    }
}
