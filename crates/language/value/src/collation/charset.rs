//! Character sets: decoding bytes to characters, and conversion between sets.

use super::BYTES_PER_SPEND;
use std::borrow::Cow;

use super::client_charset::UNKNOWN;
use super::{ClientCharset, CollationId};

/// A character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Charset {
    /// Bytes without meaning.
    Binary,
    /// UTF-8 to four bytes a character.
    Utf8mb4,
    /// UTF-8 to three bytes a character (the basic plane).
    Utf8mb3,
    /// MySQL's latin1: Windows code page 1252, whose five holes are control characters.
    Latin1,
    /// Seven bits.
    Ascii,
    /// A set that no column can have.
    Client(ClientCharset),
}

impl Charset {
    /// All character sets of columns, in the order of their names.
    pub const ALL: [Self; 5] = [
        Self::Ascii,
        Self::Binary,
        Self::Latin1,
        Self::Utf8mb3,
        Self::Utf8mb4,
    ];

    /// MySQL's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Utf8mb4 => "utf8mb4",
            Self::Utf8mb3 => "utf8mb3",
            Self::Latin1 => "latin1",
            Self::Ascii => "ascii",
            Self::Client(charset) => charset.name(),
        }
    }

    /// The description in `SHOW CHARACTER SET`.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Binary => "Binary pseudo charset",
            Self::Utf8mb4 | Self::Utf8mb3 => "UTF-8 Unicode",
            Self::Latin1 => "cp1252 West European",
            Self::Ascii => "US ASCII",
            Self::Client(_) => "",
        }
    }

    /// The character set of that name in any case, also one of clients; `utf8` is `utf8mb3`.
    pub fn from_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("utf8") {
            return Some(Self::Utf8mb3);
        }
        let of_clients = ClientCharset::ALL.into_iter().map(Self::Client);
        Self::ALL
            .into_iter()
            .chain(of_clients)
            .find(|charset| charset.name().eq_ignore_ascii_case(name))
    }

    /// True if columns can have it.
    pub const fn is_of_columns(self) -> bool {
        !matches!(self, Self::Client(_))
    }

    /// The collation of columns that name only the character set.
    pub const fn default_collation(self) -> CollationId {
        match self {
            Self::Binary => CollationId::BINARY,
            Self::Utf8mb4 => CollationId::UTF8MB4_GENERAL_CI,
            Self::Utf8mb3 => CollationId::UTF8MB3_GENERAL_CI,
            Self::Latin1 => CollationId::LATIN1_SWEDISH_CI,
            Self::Ascii => CollationId::ASCII_GENERAL_CI,
            Self::Client(charset) => charset.default_collation(),
        }
    }

    /// The most bytes that a character takes.
    pub const fn char_bytes_max(self) -> usize {
        match self {
            Self::Utf8mb4 => 4,
            Self::Utf8mb3 => 3,
            Self::Binary | Self::Latin1 | Self::Ascii => 1,
            Self::Client(charset) => charset.char_bytes_max(),
        }
    }

    /// True if every character is one byte.
    pub const fn is_single_byte(self) -> bool {
        self.char_bytes_max() == 1
    }

    /// The first character of `bytes` and its length, or `None` if they are ill-formed. `bytes`
    /// must not be empty. In `Binary`, each byte is a character.
    #[inline]
    pub fn decode(self, bytes: &[u8]) -> Option<(u32, usize)> {
        let first = *bytes.first()?;
        match self {
            Self::Binary => Some((u32::from(first), 1)),
            Self::Latin1 => Some((latin1_to_unicode(first), 1)),
            Self::Ascii => (first < 0x80).then_some((u32::from(first), 1)),
            Self::Utf8mb4 => decode_utf8(bytes),
            Self::Utf8mb3 => decode_utf8(bytes).filter(|&(_, length)| length < 4),
            Self::Client(charset) => charset.decode(bytes),
        }
    }

    /// Appends a character. Returns false if the set lacks it.
    pub fn encode(self, code: u32, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Binary => match u8::try_from(code) {
                Ok(byte) => out.push(byte),
                Err(_) => return false,
            },
            Self::Latin1 => match unicode_to_latin1(code) {
                Some(byte) => out.push(byte),
                None => return false,
            },
            Self::Ascii => match u8::try_from(code) {
                Ok(byte) if byte < 0x80 => out.push(byte),
                _ => return false,
            },
            Self::Utf8mb3 if code > 0xFFFF => return false,
            Self::Utf8mb3 | Self::Utf8mb4 => match char::from_u32(code) {
                Some(character) => {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                None => return false,
            },
            Self::Client(charset) => return charset.encode(code, out),
        }
        true
    }

    /// How many leading bytes are well formed; all of them if the text is valid.
    pub fn valid_prefix(self, bytes: &[u8]) -> usize {
        match self {
            Self::Binary | Self::Latin1 => bytes.len(),
            Self::Ascii => bytes
                .iter()
                .position(|byte| *byte >= 0x80)
                .unwrap_or(bytes.len()),
            Self::Utf8mb4 => match std::str::from_utf8(bytes) {
                Ok(_) => bytes.len(),
                Err(error) => error.valid_up_to(),
            },
            Self::Utf8mb3 => {
                let valid = Self::Utf8mb4.valid_prefix(bytes);
                let wide = bytes.iter().position(|byte| *byte >= 0xF0).unwrap_or(valid);
                valid.min(wide)
            }
            Self::Client(charset) => {
                let mut at = 0;
                while let Some((code, length)) = charset.decode(bytes.get(at..).unwrap_or(&[])) {
                    if code == UNKNOWN {
                        break;
                    }
                    at += length;
                }
                at
            }
        }
    }

    /// True if all bytes are well formed.
    pub fn is_valid(self, bytes: &[u8]) -> bool {
        self.valid_prefix(bytes) == bytes.len()
    }

    /// The number of characters; an ill-formed byte counts as one.
    #[inline]
    pub fn char_count(self, bytes: &[u8]) -> usize {
        if self.is_single_byte() {
            return bytes.len();
        }
        if self.is_of_columns()
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return text.chars().count();
        }
        self.char_lengths(bytes).count()
    }

    /// The byte length of each character in turn; an ill-formed byte is a character of one byte.
    pub fn char_lengths(self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let length = self.decode(rest).map_or(1, |(_, length)| length);
            rest = rest.get(length..).unwrap_or(&[]);
            Some(length)
        })
    }

    /// The text in pieces of about [`BYTES_PER_SPEND`] bytes, cut between characters.
    pub fn pieces(self, bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let mut end = match self {
                Self::Client(_) => self.whole_chars(rest),
                _ => BYTES_PER_SPEND,
            };
            // In UTF-8 the bytes after the first one of a character begin with the bits 10. There
            // are at most three; more are ill-formed.
            while self.is_of_columns()
                && !self.is_single_byte()
                && end < BYTES_PER_SPEND + 3
                && rest.get(end).is_some_and(|byte| byte & 0xC0 == 0x80)
            {
                end += 1;
            }
            let (piece, after) = rest.split_at(end.min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// The length of the characters of which the last begins before [`BYTES_PER_SPEND`].
    fn whole_chars(self, bytes: &[u8]) -> usize {
        let mut end = 0;
        for length in self.char_lengths(bytes) {
            if BYTES_PER_SPEND <= end {
                break;
            }
            end += length;
        }
        end
    }

    /// The bytes of the first `chars` characters, or all if there are fewer.
    pub fn prefix(self, bytes: &[u8], chars: usize) -> &[u8] {
        if bytes.len() <= chars {
            return bytes;
        }
        let end = if self.is_single_byte() {
            chars
        } else {
            self.char_lengths(bytes).take(chars).sum()
        };
        bytes.get(..end).unwrap_or(bytes)
    }

    /// The same text in UTF-8; ill-formed bytes become `?`.
    pub fn to_utf8_lossy(self, bytes: &[u8]) -> Cow<'_, str> {
        if let (true, Ok(text)) = (
            !matches!(self, Self::Latin1 | Self::Client(_)) || bytes.is_ascii(),
            str::from_utf8(bytes),
        ) {
            return Cow::Borrowed(text);
        }
        let mut text = Vec::with_capacity(bytes.len());
        Self::Utf8mb4.append_converted(self, bytes, &mut text);
        Cow::Owned(String::from_utf8_lossy(&text).into_owned())
    }

    /// True if this set has every character of `bytes`, a text of the set `from`.
    pub fn can_hold(self, from: Self, bytes: &[u8]) -> bool {
        let is_same = from == self || from == Self::Binary || self == Self::Binary;
        if is_same || bytes.is_ascii() {
            return true;
        }
        self.append_converted(from, bytes, &mut Vec::new()) == 0
    }

    /// Appends `bytes` of the set `from`, converted to this set. A character that this set lacks,
    /// or an ill-formed byte, becomes `?`. Returns how many did.
    pub fn append_converted(self, from: Self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        if from == self || self == Self::Binary || bytes.is_ascii() {
            out.extend_from_slice(bytes);
            return 0;
        }
        // Binary text is taken as text of this set, and only checked.
        let from = if from == Self::Binary { self } else { from };
        let mut replaced = 0;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (code, length) = match from.decode(rest) {
                Some((code, length)) => (Some(code), length),
                None => (None, 1),
            };
            let code = code.filter(|code| from.is_of_columns() || *code != UNKNOWN);
            if !code.is_some_and(|code| self.encode(code, out)) {
                out.push(b'?');
                replaced += 1;
            }
            rest = rest.get(length..).unwrap_or(&[]);
        }
        replaced
    }
}

/// The texts of statements, which are parsed as UTF-8.
impl Charset {
    /// Converts the text of a statement from this character set of a client to UTF-8. Only latin1
    /// and the sets of clients are converted.
    pub fn read_statement(self, sent: &[u8]) -> Cow<'_, [u8]> {
        let mut read = Vec::new();
        match self {
            Self::Latin1 => {
                read.reserve(sent.len());
                Self::Utf8mb4.append_converted(self, sent, &mut read);
            }
            Self::Client(_) if sent.is_ascii() => return sent.into(),
            Self::Client(charset) => {
                read.reserve(sent.len());
                charset.append_read(sent, &mut read);
            }
            Self::Ascii | Self::Binary | Self::Utf8mb3 | Self::Utf8mb4 => return sent.into(),
        }
        read.into()
    }

    /// The bytes that a client sent for a part of a statement that [`Self::read_statement`] has
    /// converted.
    pub fn sent_for(self, read: &[u8]) -> Cow<'_, [u8]> {
        if read.is_ascii() || !self.is_converted() {
            return read.into();
        }
        let mut sent = Vec::with_capacity(read.len());
        match self {
            Self::Client(charset) => charset.append_sent(read, &mut sent),
            _ => drop(self.append_converted(Self::Utf8mb4, read, &mut sent)),
        }
        sent.into()
    }

    /// True if [`Self::read_statement`] converts.
    pub const fn is_converted(self) -> bool {
        matches!(self, Self::Latin1 | Self::Client(_))
    }
}

/// Decodes the first character of UTF-8 to four bytes, strictly: no overlong form, no surrogate.
#[inline]
fn decode_utf8(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u32::from(first), 1));
    }
    let tail = |index: usize| -> Option<u32> {
        let byte = *bytes.get(index)?;
        (byte & 0xC0 == 0x80).then_some(u32::from(byte & 0x3F))
    };
    let first = u32::from(first);
    match first {
        0xC2..=0xDF => Some(((first & 0x1F) << 6 | tail(1)?, 2)),
        0xE0..=0xEF => {
            let code = (first & 0x0F) << 12 | tail(1)? << 6 | tail(2)?;
            (code >= 0x800 && !(0xD800..=0xDFFF).contains(&code)).then_some((code, 3))
        }
        0xF0..=0xF4 => {
            let code = (first & 0x07) << 18 | tail(1)? << 12 | tail(2)? << 6 | tail(3)?;
            (0x1_0000..=0x10_FFFF).contains(&code).then_some((code, 4))
        }
        _ => None,
    }
}

/// Code points of the bytes 0x80 to 0x9F of code page 1252, holes as control characters.
const CP1252_HIGH: [u16; 32] = [
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
    0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
];

fn latin1_to_unicode(byte: u8) -> u32 {
    match byte {
        0x80..=0x9F => u32::from(CP1252_HIGH[usize::from(byte - 0x80)]),
        _ => u32::from(byte),
    }
}

fn unicode_to_latin1(code: u32) -> Option<u8> {
    match u8::try_from(code) {
        Ok(byte) if !(0x80..=0x9F).contains(&byte) => Some(byte),
        _ => {
            let index = CP1252_HIGH
                .iter()
                .position(|high| u32::from(*high) == code)?;
            u8::try_from(index + 0x80).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_is_decoded_strictly() {
        assert_eq!(
            Charset::Utf8mb4.decode("\u{e9}x".as_bytes()),
            Some((0xE9, 2))
        );
        assert_eq!(
            Charset::Utf8mb4.decode("\u{1F600}".as_bytes()),
            Some((0x1F600, 4))
        );
        assert_eq!(Charset::Utf8mb3.decode("\u{1F600}".as_bytes()), None);
        for bad in [
            &b"\xC0\x80"[..],
            b"\xED\xA0\x80",
            b"\xE2\x82",
            b"\xF5\x80\x80\x80",
            b"\x80",
        ] {
            assert_eq!(Charset::Utf8mb4.decode(bad), None, "{bad:x?}");
        }
    }

    #[test]
    fn conversion_replaces_what_is_missing() {
        let mut out = Vec::new();
        let replaced = Charset::Latin1.append_converted(
            Charset::Utf8mb4,
            "a\u{20ac}\u{416}".as_bytes(),
            &mut out,
        );
        assert_eq!((out.as_slice(), replaced), (&b"a\x80?"[..], 1));
        assert_eq!(Charset::Latin1.to_utf8_lossy(b"\xE9\x80"), "\u{e9}\u{20ac}");
    }

    #[test]
    fn prefixes_count_characters() {
        let text = "a\u{e9}\u{1F600}b".as_bytes();
        assert_eq!(Charset::Utf8mb4.prefix(text, 2), "a\u{e9}".as_bytes());
        assert_eq!(Charset::Utf8mb4.char_count(text), 4);
        assert_eq!(Charset::Utf8mb3.valid_prefix(text), 3);
        assert_eq!(Charset::Binary.prefix(text, 2), &text[..2]);
    }
}
