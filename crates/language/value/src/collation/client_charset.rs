//! Character sets that clients can have and columns cannot.
//!
//! Their texts live in statements and results: literals, parameters, what is computed of them. They
//! are compared character by character, by the weights of `general_ci`.
//!
//! A character is one byte, or, in the sets with wide characters, one or two. Which bytes are two
//! is decided by MariaDB's ranges of first and second bytes alone, whether the pair has a character
//! or not: a client escapes its texts by these ranges, so any other rule would let a quote out.
//! `encoding_rs` says what the character is. Its tables are those of browsers; [`Layout::patches`]
//! has the places where MariaDB 10.11 differs.

use std::sync::OnceLock;

use encoding_rs::Encoding;

use super::CollationId;

/// A character set of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClientCharset {
    Cp1250,
    Cp1251,
    Cp1256,
    Cp1257,
    Cp866,
    Cp932,
    Euckr,
    Gb2312,
    Gbk,
    Greek,
    Hebrew,
    Koi8r,
    Koi8u,
    Latin2,
    Latin5,
    Latin7,
    Macroman,
    Sjis,
    Tis620,
}

/// Bytes from the first to the last one, both included.
type Range = (u8, u8);

/// Characters from the first to the last one stand for consecutive code points from the third on;
/// 0 means that they have none.
type Patch = (u16, u16, u16);

/// What a set is made of.
struct Layout {
    name: &'static str,
    collation: CollationId,
    binary: CollationId,
    encoding: &'static Encoding,
    /// First bytes of two.
    first: &'static [Range],
    /// Second bytes of two.
    second: &'static [Range],
    /// Whether it has characters for private use.
    has_private: bool,
    /// Where MariaDB's table differs from the encoding.
    patches: &'static [Patch],
}

/// A set whose characters are single bytes.
const fn narrow(
    name: &'static str,
    [collation, binary]: [CollationId; 2],
    encoding: &'static Encoding,
    patches: &'static [Patch],
) -> Layout {
    Layout {
        name,
        collation,
        binary,
        encoding,
        first: &[],
        second: &[],
        has_private: true,
        patches,
    }
}

/// First and second bytes of Shift JIS.
const JAPANESE: [&[Range]; 2] = [&[(0x81, 0x9F), (0xE0, 0xFC)], &[(0x40, 0x7E), (0x80, 0xFC)]];

/// In the order of [`ClientCharset::ALL`]. Most patches take control characters away that a code
/// page of Windows has and MariaDB's set has not.
static LAYOUTS: [Layout; ClientCharset::ALL.len()] = [
    narrow(
        "cp1250",
        [CollationId::CP1250_GENERAL_CI, CollationId::CP1250_BIN],
        encoding_rs::WINDOWS_1250,
        &[
            (0x81, 0x81, 0),
            (0x83, 0x83, 0),
            (0x88, 0x88, 0),
            (0x90, 0x90, 0),
            (0x98, 0x98, 0),
        ],
    ),
    narrow(
        "cp1251",
        [CollationId::CP1251_GENERAL_CI, CollationId::CP1251_BIN],
        encoding_rs::WINDOWS_1251,
        &[(0x98, 0x98, 0)],
    ),
    narrow(
        "cp1256",
        [CollationId::CP1256_GENERAL_CI, CollationId::CP1256_BIN],
        encoding_rs::WINDOWS_1256,
        &[
            (0x8A, 0x8A, 0),
            (0x8F, 0x8F, 0),
            (0x98, 0x98, 0),
            (0x9A, 0x9A, 0),
            (0x9F, 0x9F, 0),
            (0xAA, 0xAA, 0),
            (0xC0, 0xC0, 0),
            (0xFF, 0xFF, 0),
        ],
    ),
    narrow(
        "cp1257",
        [CollationId::CP1257_GENERAL_CI, CollationId::CP1257_BIN],
        encoding_rs::WINDOWS_1257,
        &[
            (0x81, 0x81, 0),
            (0x83, 0x83, 0),
            (0x88, 0x88, 0),
            (0x8A, 0x8A, 0),
            (0x8C, 0x8C, 0),
            (0x90, 0x90, 0),
            (0x98, 0x98, 0),
            (0x9A, 0x9A, 0),
            (0x9C, 0x9C, 0),
            (0x9F, 0x9F, 0),
        ],
    ),
    narrow(
        "cp866",
        [CollationId::CP866_GENERAL_CI, CollationId::CP866_BIN],
        encoding_rs::IBM866,
        &[(0xFC, 0xFC, 0x207F), (0xFD, 0xFD, 0x00B2)],
    ),
    Layout {
        name: "cp932",
        collation: CollationId::CP932_JAPANESE_CI,
        binary: CollationId::CP932_BIN,
        encoding: encoding_rs::SHIFT_JIS,
        first: JAPANESE[0],
        second: JAPANESE[1],
        has_private: true,
        patches: &[(0x80, 0x80, 0)],
    },
    Layout {
        name: "euckr",
        collation: CollationId::EUCKR_KOREAN_CI,
        binary: CollationId::EUCKR_BIN,
        encoding: encoding_rs::EUC_KR,
        first: &[(0x81, 0xFE)],
        second: &[(0x41, 0x5A), (0x61, 0x7A), (0x81, 0xFE)],
        has_private: false,
        patches: &[],
    },
    Layout {
        name: "gb2312",
        collation: CollationId::GB2312_CHINESE_CI,
        binary: CollationId::GB2312_BIN,
        encoding: encoding_rs::GBK,
        first: &[(0xA1, 0xF7)],
        second: &[(0xA1, 0xFE)],
        has_private: false,
        patches: &[
            (0x80, 0x80, 0),
            (0xA1A4, 0xA1A4, 0x30FB),
            (0xA1AA, 0xA1AA, 0x2015),
        ],
    },
    Layout {
        name: "gbk",
        collation: CollationId::GBK_CHINESE_CI,
        binary: CollationId::GBK_BIN,
        encoding: encoding_rs::GBK,
        first: &[(0x81, 0xFE)],
        second: &[(0x40, 0x7E), (0x80, 0xFE)],
        has_private: false,
        patches: &[(0x80, 0x80, 0)],
    },
    narrow(
        "greek",
        [CollationId::GREEK_GENERAL_CI, CollationId::GREEK_BIN],
        encoding_rs::ISO_8859_7,
        &[
            (0xA1, 0xA1, 0x02BD),
            (0xA2, 0xA2, 0x02BC),
            (0xA4, 0xA5, 0),
            (0xAA, 0xAA, 0),
        ],
    ),
    narrow(
        "hebrew",
        [CollationId::HEBREW_GENERAL_CI, CollationId::HEBREW_BIN],
        encoding_rs::ISO_8859_8,
        &[(0xAF, 0xAF, 0x203E)],
    ),
    narrow(
        "koi8r",
        [CollationId::KOI8R_GENERAL_CI, CollationId::KOI8R_BIN],
        encoding_rs::KOI8_R,
        &[],
    ),
    narrow(
        "koi8u",
        [CollationId::KOI8U_GENERAL_CI, CollationId::KOI8U_BIN],
        encoding_rs::KOI8_U,
        &[
            (0x95, 0x95, 0x2022),
            (0xAE, 0xAE, 0x255D),
            (0xBE, 0xBE, 0x256C),
        ],
    ),
    narrow(
        "latin2",
        [CollationId::LATIN2_GENERAL_CI, CollationId::LATIN2_BIN],
        encoding_rs::ISO_8859_2,
        &[],
    ),
    narrow(
        "latin5",
        [CollationId::LATIN5_TURKISH_CI, CollationId::LATIN5_BIN],
        encoding_rs::WINDOWS_1254,
        &[(0x80, 0x9F, 0x80)],
    ),
    narrow(
        "latin7",
        [CollationId::LATIN7_GENERAL_CI, CollationId::LATIN7_BIN],
        encoding_rs::ISO_8859_13,
        &[],
    ),
    narrow(
        "macroman",
        [CollationId::MACROMAN_GENERAL_CI, CollationId::MACROMAN_BIN],
        encoding_rs::MACINTOSH,
        &[],
    ),
    Layout {
        name: "sjis",
        collation: CollationId::SJIS_JAPANESE_CI,
        binary: CollationId::SJIS_BIN,
        encoding: encoding_rs::SHIFT_JIS,
        first: JAPANESE[0],
        second: JAPANESE[1],
        has_private: false,
        patches: &[
            (0x80, 0x80, 0),
            (0x8160, 0x8160, 0x301C),
            (0x8161, 0x8161, 0x2016),
            (0x817C, 0x817C, 0x2212),
            (0x8191, 0x8192, 0x00A2),
            (0x81CA, 0x81CA, 0x00AC),
        ],
    },
    narrow(
        "tis620",
        [CollationId::TIS620_THAI_CI, CollationId::TIS620_BIN],
        encoding_rs::WINDOWS_874,
        &[(0x80, 0x9F, 0x80), (0xA0, 0xA0, 0)],
    ),
];

/// The last code points of the last private plane stand in a text of a statement for bytes that are
/// no character of the client's set, one each, so that the bytes that were sent can be found again.
const RAW_BYTES: u32 = 0x10_FF00;

/// `decode` and `encode` are not inlined: loops over texts of other sets contain them and are hot.
impl ClientCharset {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 19] = [
        Self::Cp1250,
        Self::Cp1251,
        Self::Cp1256,
        Self::Cp1257,
        Self::Cp866,
        Self::Cp932,
        Self::Euckr,
        Self::Gb2312,
        Self::Gbk,
        Self::Greek,
        Self::Hebrew,
        Self::Koi8r,
        Self::Koi8u,
        Self::Latin2,
        Self::Latin5,
        Self::Latin7,
        Self::Macroman,
        Self::Sjis,
        Self::Tis620,
    ];

    const fn layout(self) -> &'static Layout {
        &LAYOUTS[self as usize]
    }

    /// MySQL's name.
    pub(super) const fn name(self) -> &'static str {
        self.layout().name
    }

    pub(super) const fn default_collation(self) -> CollationId {
        self.layout().collation
    }

    pub(super) const fn binary_collation(self) -> CollationId {
        self.layout().binary
    }

    pub(super) const fn char_bytes_max(self) -> usize {
        if self.layout().first.is_empty() { 1 } else { 2 }
    }

    /// The first character of `bytes` and its length. `None` if the first byte is no character; two
    /// bytes that are none are [`UNKNOWN`].
    #[inline(never)]
    pub(super) fn decode(self, bytes: &[u8]) -> Option<(u32, usize)> {
        let first = *bytes.first()?;
        if first < 0x80 {
            return Some((u32::from(first), 1));
        }
        let table = self.table();
        if let Some(second) = bytes.get(1)
            && self.layout().is_pair(first, *second)
        {
            let code = table.code(u16::from_be_bytes([first, *second]));
            return Some((code.map_or(UNKNOWN, u32::from), 2));
        }
        let code = table.code(u16::from(first))?;
        Some((u32::from(code), 1))
    }

    /// Appends a character. Returns false if the set lacks it.
    #[inline(never)]
    pub(super) fn encode(self, code: u32, out: &mut Vec<u8>) -> bool {
        if code < 0x80 {
            out.extend(u8::try_from(code));
            return true;
        }
        let bytes = u16::try_from(code).ok().and_then(|code| {
            let bytes = self.table().bytes.get(usize::from(code))?;
            (*bytes != 0).then_some(*bytes)
        });
        match bytes.map(u16::to_be_bytes) {
            Some([0, single]) => out.push(single),
            Some(pair) => out.extend_from_slice(&pair),
            None => return false,
        }
        true
    }

    /// The text of a statement in UTF-8. Each byte that is no character becomes one beyond
    /// Unicode's characters in use; [`Self::append_sent`] has it back.
    ///
    /// As in MariaDB, a backslash escapes one byte and not one character. A client that escapes a
    /// text puts a backslash before the first byte of a character that lacks its second one. The
    /// byte that follows may be the backslash of an escaped quote, so it must not become the second
    /// one.
    pub(super) fn append_read(self, sent: &[u8], out: &mut Vec<u8>) {
        let (mut rest, mut is_escaped) = (sent, false);
        while !rest.is_empty() {
            let unit = if is_escaped { 1 } else { rest.len() };
            let decoded = self.decode(rest.get(..unit).unwrap_or(rest));
            let (code, length) = decoded.unwrap_or((UNKNOWN, 1));
            is_escaped = !is_escaped && code == u32::from(b'\\');
            let (character, behind) = rest.split_at(length.min(rest.len()));
            let raw = character.iter().map(|byte| RAW_BYTES | u32::from(*byte));
            let codes = [code].into_iter().filter(|code| *code != UNKNOWN);
            let is_known = code != UNKNOWN;
            for code in codes.chain(raw.filter(|_| !is_known)) {
                let character = char::from_u32(code).expect("no table has a surrogate");
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            rest = behind;
        }
    }

    /// The bytes that were sent for a text that [`Self::append_read`] has made.
    pub(super) fn append_sent(self, read: &[u8], out: &mut Vec<u8>) {
        let mut rest = read;
        while !rest.is_empty() {
            let decoded = super::Charset::Utf8mb4.decode(rest);
            let (code, length) = decoded.unwrap_or((UNKNOWN, 1));
            let raw = u8::try_from(code.wrapping_sub(RAW_BYTES));
            match raw {
                Ok(byte) => out.push(byte),
                Err(_) if self.encode(code, out) => {}
                Err(_) => out.push(b'?'),
            }
            rest = rest.get(length..).unwrap_or(&[]);
        }
    }

    /// The tables of the set, made when a client first needs them.
    fn table(self) -> &'static Table {
        static TABLES: [OnceLock<Table>; ClientCharset::ALL.len()] =
            [const { OnceLock::new() }; ClientCharset::ALL.len()];
        TABLES[self as usize].get_or_init(|| Table::of(self.layout()))
    }
}

/// Stands for two bytes that are no character; no set has it.
pub(super) const UNKNOWN: u32 = 0xFFFD;

impl Layout {
    fn is_pair(&self, first: u8, second: u8) -> bool {
        let has = |ranges: &[Range], byte| ranges.iter().any(|it| it.0 <= byte && byte <= it.1);
        has(self.first, first) && has(self.second, second)
    }

    /// The code point of a character of these bytes, if it is one.
    fn code(&self, bytes: &[u8]) -> Option<u16> {
        let number = bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u16::from(*byte));
        let patch = self
            .patches
            .iter()
            .find(|it| it.0 <= number && number <= it.1);
        if let Some((from, _, code)) = patch {
            return (*code != 0).then(|| code + (number - from));
        }
        let text = self
            .encoding
            .decode_without_bom_handling_and_without_replacement(bytes)?;
        let mut characters = text.chars();
        let code = u16::try_from(u32::from(characters.next()?)).ok()?;
        let is_there = self.has_private || !(0xE000..=0xF8FF).contains(&code);
        (is_there && characters.next().is_none()).then_some(code)
    }
}

/// Both directions of a set.
struct Table {
    /// The code point of each character, by its bytes as a number; 0 where there is none.
    codes: Vec<u16>,
    /// The bytes of each code point as a number; 0 where there are none.
    bytes: Vec<u16>,
}

impl Table {
    fn of(layout: &Layout) -> Self {
        let is_wide = !layout.first.is_empty();
        let mut table = Self {
            codes: vec![0; if is_wide { 1 << 16 } else { 1 << 8 }],
            bytes: vec![0; 1 << 16],
        };
        for number in 0x80..=u16::MAX {
            let [first, second] = number.to_be_bytes();
            let code = match first {
                0 => layout.code(&[second]),
                _ if layout.is_pair(first, second) => layout.code(&[first, second]),
                _ => None,
            };
            if let Some(code) = code {
                table.codes[usize::from(number)] = code;
                table.set_bytes(layout, code, number);
            }
        }
        table
    }

    /// Of several characters of one code point, the one that the encoding prefers is written.
    fn set_bytes(&mut self, layout: &Layout, code: u16, number: u16) {
        let bytes = &mut self.bytes[usize::from(code)];
        if *bytes == 0 {
            *bytes = number;
            return;
        }
        let character = char::from_u32(u32::from(code)).map(String::from);
        let (preferred, _, _) = layout.encoding.encode(character.as_deref().unwrap_or(""));
        let [first, second] = number.to_be_bytes();
        if *preferred == [first, second] {
            *bytes = number;
        }
    }

    fn code(&self, number: u16) -> Option<u16> {
        let code = *self.codes.get(usize::from(number))?;
        (code != 0).then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Charset;
    use super::*;

    #[test]
    fn each_set_has_its_own_layout() {
        for charset in ClientCharset::ALL {
            assert_eq!(format!("{charset:?}").to_lowercase(), charset.name());
            let collations = [charset.default_collation(), charset.binary_collation()];
            for collation in collations {
                assert_eq!(collation.charset(), Charset::Client(charset));
                assert!(collation.name().starts_with(charset.name()));
            }
        }
    }

    #[test]
    fn what_is_sent_comes_back() {
        for charset in ClientCharset::ALL {
            for first in 0..=255_u8 {
                let sent: Vec<u8> = (0..=255)
                    .flat_map(|second| [first, second, b'\\'])
                    .collect();
                let (mut read, mut back) = (Vec::new(), Vec::new());
                charset.append_read(&sent, &mut read);
                assert!(std::str::from_utf8(&read).is_ok());
                charset.append_sent(&read, &mut back);
                // Of two characters that mean the same, one is written.
                let mut again = Vec::new();
                charset.append_read(&back, &mut again);
                assert!(again == read, "{} {first}", charset.name());
            }
        }
    }

    /// The second byte of a character may look like a backslash or a quote.
    #[test]
    fn no_quote_is_let_out_of_a_character() {
        for (charset, sent) in [
            (ClientCharset::Gbk, &b"\xbf\x5c"[..]),
            (ClientCharset::Gbk, b"\xfe\x5c"),
            (ClientCharset::Gbk, b"\xff\x5c"),
            (ClientCharset::Sjis, b"\x95\x5c"),
            (ClientCharset::Sjis, b"\xfc\x5c"),
            (ClientCharset::Gb2312, b"\xbf\x27"),
            (ClientCharset::Euckr, b"\xbf\x27"),
        ] {
            let mut read = Vec::new();
            charset.append_read(sent, &mut read);
            let has_own_second = !charset.layout().is_pair(sent[0], sent[1]);
            assert_eq!(
                read.ends_with(&sent[1..]),
                has_own_second,
                "{}",
                sent.escape_ascii()
            );
        }
    }

    /// `mysql_real_escape_string` gives the first of these texts (bug 8378 of MySQL).
    #[test]
    fn a_backslash_escapes_one_byte() {
        let gbk = Charset::Client(ClientCharset::Gbk);
        let raw = |byte: u8| char::from_u32(RAW_BYTES | u32::from(byte)).unwrap();
        for (sent, read) in [
            (
                &b"\xef\xbb\\\xbf\\'\\\xbf\x10"[..],
                format!("\u{9518}\\{0}\\'\\{0}\x10", raw(0xbf)),
            ),
            (b"\\\xbf\xbf\\", format!("\\{}\u{7e17}", raw(0xbf))),
            (b"\\\\\xbf\\", "\\\\\u{7e17}".to_owned()),
        ] {
            assert_eq!(String::from_utf8_lossy(&gbk.read_statement(sent)), read);
            assert_eq!(&*gbk.sent_for(read.as_bytes()), sent);
        }
    }

    #[test]
    fn a_pair_without_a_character_is_one_question_mark() {
        let gbk = Charset::Client(ClientCharset::Gbk);
        assert_eq!(gbk.to_utf8_lossy(b"a\xfe\xfeb\xffc"), "a?b?c");
        assert_eq!(gbk.char_count(b"a\xfe\xfeb\xffc"), 5);
        assert_eq!(gbk.valid_prefix(b"\xd6\xd0\xff"), 2);
    }
}
