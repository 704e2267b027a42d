//! [`Cursor`]: takes values off the front of received bytes, and cannot read past their end.
//!
//! Integers are little-endian. A "length-encoded integer" is one byte below 251, or 0xFC, 0xFD,
//! 0xFE followed by 2, 3, 8 bytes. 0xFB stands for NULL in a text row, 0xFF starts an error.

use thiserror::Error;

/// A packet that ends early or contradicts itself; `what` names the part that was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("malformed packet: {what}")]
pub struct Malformed {
    /// The part of the packet that could not be read.
    pub what: &'static str,
}

impl Malformed {
    pub(crate) const fn new(what: &'static str) -> Malformed {
        Malformed { what }
    }
}

/// A position in bytes that came from outside.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes that are left, without taking them.
    pub fn peek_rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next byte, without taking it.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(Malformed::new(what))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(Malformed::new(what))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// Two bytes.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// Three bytes.
    pub fn u24(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.array(what)
            .map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, Malformed> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A length-encoded integer.
    pub fn lenenc(&mut self, what: &'static str) -> Result<u64, Malformed> {
        match self.u8(what)? {
            byte @ 0..=0xFA => Ok(u64::from(byte)),
            0xFC => self.u16(what).map(u64::from),
            0xFD => self.u24(what).map(u64::from),
            0xFE => self.u64(what),
            0xFB | 0xFF => Err(Malformed::new(what)),
        }
    }

    /// Bytes after their length-encoded length.
    pub fn lenenc_bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let count = self.lenenc(what)?;
        let count = usize::try_from(count).map_err(|_| Malformed::new(what))?;
        self.bytes(count, what)
    }

    /// Bytes after their length-encoded length, or `None` for the byte 0xFB.
    pub fn lenenc_bytes_or_null(
        &mut self,
        what: &'static str,
    ) -> Result<Option<&'a [u8]>, Malformed> {
        if self.peek() == Some(0xFB) {
            self.u8(what)?;
            return Ok(None);
        }
        self.lenenc_bytes(what).map(Some)
    }

    /// Bytes up to a zero byte, which is taken too.
    pub fn nul_bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let count = self
            .rest
            .iter()
            .position(|byte| *byte == 0)
            .ok_or(Malformed::new(what))?;
        let bytes = self.bytes(count, what)?;
        self.u8(what)?;
        Ok(bytes)
    }

    /// Bytes up to a zero byte or the end: some clients leave the last zero out.
    pub fn nul_bytes_or_rest(&mut self) -> &'a [u8] {
        match self.nul_bytes("") {
            Ok(bytes) => bytes,
            Err(Malformed { .. }) => self.rest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::PacketWriter;

    #[test]
    fn reads_in_order_and_stops_at_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3, 0, 0, 4, 0, 0, 0, b'a', 0, b'b']);
        assert_eq!(cursor.u8("a"), Ok(1));
        assert_eq!(cursor.u16("b"), Ok(2));
        assert_eq!(cursor.u24("c"), Ok(3));
        assert_eq!(cursor.u32("d"), Ok(4));
        assert_eq!(cursor.nul_bytes("e"), Ok(&b"a"[..]));
        assert_eq!(cursor.u64("f"), Err(Malformed::new("f")));
        assert_eq!(cursor.nul_bytes_or_rest(), b"b");
        assert!(cursor.is_empty());
    }

    #[test]
    fn length_beyond_the_end_is_refused_without_allocating() {
        let huge = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 1];
        assert!(Cursor::new(&huge).lenenc_bytes("x").is_err());
        assert!(Cursor::new(&[0xFF]).lenenc("x").is_err());
        assert_eq!(Cursor::new(&[0xFB]).lenenc_bytes_or_null("x"), Ok(None));
    }

    proptest! {
        #[test]
        fn length_encoded_integers_round_trip(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let mut out = PacketWriter::new();
            let mut packet = out.begin();
            packet.lenenc(value);
            packet.finish();
            let payload = &out.as_bytes()[4..];
            let mut cursor = Cursor::new(payload);
            prop_assert_eq!(cursor.lenenc("x"), Ok(value));
            prop_assert!(cursor.is_empty());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let mut cursor = Cursor::new(&bytes);
            while cursor.lenenc_bytes_or_null("x").is_ok() && !cursor.is_empty() {}
        }
    }
}
