//! Character sets and collations: names, MySQL's numbers, and the meaning of a character set's
//! bytes.

mod charset;
mod client_charset;
mod compare;
mod mix;

mod case;
mod levels;
mod like;
mod tables;
mod unicode;
mod weight;

pub use charset::Charset;
pub use client_charset::ClientCharset;
pub use mix::{Coercibility, TextRule, illegal_mix, mix, mix_to_compare};

use tables::languages;
use unicode::Language;

/// Characters or bytes that are read between two calls of a meter: some 10 us.
pub const BYTES_PER_SPEND: usize = 4096;

/// The meter of callers that need none.
fn free(_: usize) -> Result<(), std::convert::Infallible> {
    Ok(())
}

/// A collation, by MySQL's number. Only collations that exist here can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CollationId(u16);

/// One line of the table of collations.
struct Entry {
    id: CollationId,
    name: &'static str,
    default: bool,
}

/// How strings of a collation are ordered.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Byte by byte; trailing blanks count.
    Binary,
    /// Code point by code point, padded with blanks.
    CodePoint,
    /// One 16-bit weight a character (`general_ci`), padded.
    General,
    /// Unicode collation algorithm 4.0.0 or 5.2.0, as a language changes it, padded.
    Unicode(&'static Language),
    /// Unicode collation algorithm 9.0.0, with this many levels; trailing blanks count.
    Levels(usize),
    /// One byte weight a byte, by the table of `latin1_swedish_ci`, padded.
    Latin1Swedish,
    /// One byte weight a byte, ASCII letters folded, padded.
    AsciiFold,
    /// Byte by byte, padded.
    PaddedBytes,
}

macro_rules! collations {
    ($($constant:ident $id:literal $name:literal $charset:ident $(($set:ident))? $default:literal
        $rule:ident $(($argument:expr))?;)*) => {
        impl CollationId {
            $(#[doc = concat!("`", $name, "`")] pub const $constant: Self = Self($id);)*
        }
        const TABLE: &[Entry] = &[$(Entry {
            id: CollationId::$constant,
            name: $name,
            default: $default,
        }),*];

        impl CollationId {
            /// The character set that it orders.
            #[inline]
            pub const fn charset(self) -> Charset {
                match self.0 {
                    $($id => Charset::$charset $((ClientCharset::$set))?,)*
                    _ => Charset::Binary,
                }
            }

            /// Its rule; needed in every comparison, so it does not search the table.
            #[inline]
            pub(crate) const fn rule(self) -> Rule {
                match self.0 {
                    $($id => Rule::$rule $(($argument))?,)*
                    _ => Rule::Binary,
                }
            }
        }
    };
}

collations! {
    LATIN2_CZECH_CS 2 "latin2_czech_cs" Client(Latin2) false PaddedBytes;
    KOI8R_GENERAL_CI 7 "koi8r_general_ci" Client(Koi8r) true General;
    LATIN1_SWEDISH_CI 8 "latin1_swedish_ci" Latin1 true Latin1Swedish;
    LATIN2_GENERAL_CI 9 "latin2_general_ci" Client(Latin2) true General;
    ASCII_GENERAL_CI 11 "ascii_general_ci" Ascii true AsciiFold;
    SJIS_JAPANESE_CI 13 "sjis_japanese_ci" Client(Sjis) true General;
    CP1251_BULGARIAN_CI 14 "cp1251_bulgarian_ci" Client(Cp1251) false General;
    HEBREW_GENERAL_CI 16 "hebrew_general_ci" Client(Hebrew) true General;
    TIS620_THAI_CI 18 "tis620_thai_ci" Client(Tis620) true General;
    EUCKR_KOREAN_CI 19 "euckr_korean_ci" Client(Euckr) true General;
    LATIN7_ESTONIAN_CS 20 "latin7_estonian_cs" Client(Latin7) false PaddedBytes;
    LATIN2_HUNGARIAN_CI 21 "latin2_hungarian_ci" Client(Latin2) false General;
    KOI8U_GENERAL_CI 22 "koi8u_general_ci" Client(Koi8u) true General;
    CP1251_UKRAINIAN_CI 23 "cp1251_ukrainian_ci" Client(Cp1251) false General;
    GB2312_CHINESE_CI 24 "gb2312_chinese_ci" Client(Gb2312) true General;
    GREEK_GENERAL_CI 25 "greek_general_ci" Client(Greek) true General;
    CP1250_GENERAL_CI 26 "cp1250_general_ci" Client(Cp1250) true General;
    LATIN2_CROATIAN_CI 27 "latin2_croatian_ci" Client(Latin2) false General;
    GBK_CHINESE_CI 28 "gbk_chinese_ci" Client(Gbk) true General;
    CP1257_LITHUANIAN_CI 29 "cp1257_lithuanian_ci" Client(Cp1257) false General;
    LATIN5_TURKISH_CI 30 "latin5_turkish_ci" Client(Latin5) true General;
    UTF8MB3_GENERAL_CI 33 "utf8mb3_general_ci" Utf8mb3 true General;
    CP1250_CZECH_CS 34 "cp1250_czech_cs" Client(Cp1250) false PaddedBytes;
    CP866_GENERAL_CI 36 "cp866_general_ci" Client(Cp866) true General;
    MACROMAN_GENERAL_CI 39 "macroman_general_ci" Client(Macroman) true General;
    LATIN7_GENERAL_CI 41 "latin7_general_ci" Client(Latin7) true General;
    LATIN7_GENERAL_CS 42 "latin7_general_cs" Client(Latin7) false PaddedBytes;
    CP1250_CROATIAN_CI 44 "cp1250_croatian_ci" Client(Cp1250) false General;
    UTF8MB4_GENERAL_CI 45 "utf8mb4_general_ci" Utf8mb4 true General;
    UTF8MB4_BIN 46 "utf8mb4_bin" Utf8mb4 false CodePoint;
    LATIN1_BIN 47 "latin1_bin" Latin1 false PaddedBytes;
    CP1251_BIN 50 "cp1251_bin" Client(Cp1251) false PaddedBytes;
    CP1251_GENERAL_CI 51 "cp1251_general_ci" Client(Cp1251) true General;
    CP1251_GENERAL_CS 52 "cp1251_general_cs" Client(Cp1251) false PaddedBytes;
    MACROMAN_BIN 53 "macroman_bin" Client(Macroman) false PaddedBytes;
    CP1256_GENERAL_CI 57 "cp1256_general_ci" Client(Cp1256) true General;
    CP1257_BIN 58 "cp1257_bin" Client(Cp1257) false PaddedBytes;
    CP1257_GENERAL_CI 59 "cp1257_general_ci" Client(Cp1257) true General;
    BINARY 63 "binary" Binary true Binary;
    ASCII_BIN 65 "ascii_bin" Ascii false PaddedBytes;
    CP1250_BIN 66 "cp1250_bin" Client(Cp1250) false PaddedBytes;
    CP1256_BIN 67 "cp1256_bin" Client(Cp1256) false PaddedBytes;
    CP866_BIN 68 "cp866_bin" Client(Cp866) false PaddedBytes;
    GREEK_BIN 70 "greek_bin" Client(Greek) false PaddedBytes;
    HEBREW_BIN 71 "hebrew_bin" Client(Hebrew) false PaddedBytes;
    KOI8R_BIN 74 "koi8r_bin" Client(Koi8r) false PaddedBytes;
    KOI8U_BIN 75 "koi8u_bin" Client(Koi8u) false PaddedBytes;
    LATIN2_BIN 77 "latin2_bin" Client(Latin2) false PaddedBytes;
    LATIN5_BIN 78 "latin5_bin" Client(Latin5) false PaddedBytes;
    LATIN7_BIN 79 "latin7_bin" Client(Latin7) false PaddedBytes;
    UTF8MB3_BIN 83 "utf8mb3_bin" Utf8mb3 false CodePoint;
    EUCKR_BIN 85 "euckr_bin" Client(Euckr) false PaddedBytes;
    GB2312_BIN 86 "gb2312_bin" Client(Gb2312) false PaddedBytes;
    GBK_BIN 87 "gbk_bin" Client(Gbk) false PaddedBytes;
    SJIS_BIN 88 "sjis_bin" Client(Sjis) false PaddedBytes;
    TIS620_BIN 89 "tis620_bin" Client(Tis620) false PaddedBytes;
    CP932_JAPANESE_CI 95 "cp932_japanese_ci" Client(Cp932) true General;
    CP932_BIN 96 "cp932_bin" Client(Cp932) false PaddedBytes;
    CP1250_POLISH_CI 99 "cp1250_polish_ci" Client(Cp1250) false General;
    UTF8MB3_UNICODE_CI 192 "utf8mb3_unicode_ci" Utf8mb3 false Unicode(&unicode::ROOT);
    UTF8MB3_ICELANDIC_CI 193 "utf8mb3_icelandic_ci" Utf8mb3 false Unicode(&languages::ICELANDIC);
    UTF8MB3_LATVIAN_CI 194 "utf8mb3_latvian_ci" Utf8mb3 false Unicode(&languages::LATVIAN);
    UTF8MB3_ROMANIAN_CI 195 "utf8mb3_romanian_ci" Utf8mb3 false Unicode(&languages::ROMANIAN);
    UTF8MB3_SLOVENIAN_CI 196 "utf8mb3_slovenian_ci" Utf8mb3 false Unicode(&languages::SLOVENIAN);
    UTF8MB3_POLISH_CI 197 "utf8mb3_polish_ci" Utf8mb3 false Unicode(&languages::POLISH);
    UTF8MB3_ESTONIAN_CI 198 "utf8mb3_estonian_ci" Utf8mb3 false Unicode(&languages::ESTONIAN);
    UTF8MB3_SPANISH_CI 199 "utf8mb3_spanish_ci" Utf8mb3 false Unicode(&languages::SPANISH);
    UTF8MB3_SWEDISH_CI 200 "utf8mb3_swedish_ci" Utf8mb3 false Unicode(&languages::SWEDISH);
    UTF8MB3_TURKISH_CI 201 "utf8mb3_turkish_ci" Utf8mb3 false Unicode(&languages::TURKISH);
    UTF8MB3_CZECH_CI 202 "utf8mb3_czech_ci" Utf8mb3 false Unicode(&languages::CZECH);
    UTF8MB3_DANISH_CI 203 "utf8mb3_danish_ci" Utf8mb3 false Unicode(&languages::DANISH);
    UTF8MB3_LITHUANIAN_CI 204 "utf8mb3_lithuanian_ci" Utf8mb3 false Unicode(&languages::LITHUANIAN);
    UTF8MB3_SLOVAK_CI 205 "utf8mb3_slovak_ci" Utf8mb3 false Unicode(&languages::SLOVAK);
    UTF8MB3_SPANISH2_CI 206 "utf8mb3_spanish2_ci" Utf8mb3 false Unicode(&languages::SPANISH2);
    UTF8MB3_ROMAN_CI 207 "utf8mb3_roman_ci" Utf8mb3 false Unicode(&languages::ROMAN);
    UTF8MB3_PERSIAN_CI 208 "utf8mb3_persian_ci" Utf8mb3 false Unicode(&languages::PERSIAN);
    UTF8MB3_ESPERANTO_CI 209 "utf8mb3_esperanto_ci" Utf8mb3 false Unicode(&languages::ESPERANTO);
    UTF8MB3_HUNGARIAN_CI 210 "utf8mb3_hungarian_ci" Utf8mb3 false Unicode(&languages::HUNGARIAN);
    UTF8MB3_SINHALA_CI 211 "utf8mb3_sinhala_ci" Utf8mb3 false Unicode(&languages::SINHALA);
    UTF8MB3_GERMAN2_CI 212 "utf8mb3_german2_ci" Utf8mb3 false Unicode(&languages::GERMAN2);
    UTF8MB3_CROATIAN_MYSQL561_CI 213 "utf8mb3_croatian_mysql561_ci" Utf8mb3 false
        Unicode(&languages::CROATIAN_MYSQL561);
    UTF8MB3_UNICODE_520_CI 214 "utf8mb3_unicode_520_ci" Utf8mb3 false Unicode(&unicode::ROOT_520);
    UTF8MB3_VIETNAMESE_CI 215 "utf8mb3_vietnamese_ci" Utf8mb3 false Unicode(&languages::VIETNAMESE);
    UTF8MB4_UNICODE_CI 224 "utf8mb4_unicode_ci" Utf8mb4 false Unicode(&unicode::ROOT);
    UTF8MB4_ICELANDIC_CI 225 "utf8mb4_icelandic_ci" Utf8mb4 false Unicode(&languages::ICELANDIC);
    UTF8MB4_LATVIAN_CI 226 "utf8mb4_latvian_ci" Utf8mb4 false Unicode(&languages::LATVIAN);
    UTF8MB4_ROMANIAN_CI 227 "utf8mb4_romanian_ci" Utf8mb4 false Unicode(&languages::ROMANIAN);
    UTF8MB4_SLOVENIAN_CI 228 "utf8mb4_slovenian_ci" Utf8mb4 false Unicode(&languages::SLOVENIAN);
    UTF8MB4_POLISH_CI 229 "utf8mb4_polish_ci" Utf8mb4 false Unicode(&languages::POLISH);
    UTF8MB4_ESTONIAN_CI 230 "utf8mb4_estonian_ci" Utf8mb4 false Unicode(&languages::ESTONIAN);
    UTF8MB4_SPANISH_CI 231 "utf8mb4_spanish_ci" Utf8mb4 false Unicode(&languages::SPANISH);
    UTF8MB4_SWEDISH_CI 232 "utf8mb4_swedish_ci" Utf8mb4 false Unicode(&languages::SWEDISH);
    UTF8MB4_TURKISH_CI 233 "utf8mb4_turkish_ci" Utf8mb4 false Unicode(&languages::TURKISH);
    UTF8MB4_CZECH_CI 234 "utf8mb4_czech_ci" Utf8mb4 false Unicode(&languages::CZECH);
    UTF8MB4_DANISH_CI 235 "utf8mb4_danish_ci" Utf8mb4 false Unicode(&languages::DANISH);
    UTF8MB4_LITHUANIAN_CI 236 "utf8mb4_lithuanian_ci" Utf8mb4 false Unicode(&languages::LITHUANIAN);
    UTF8MB4_SLOVAK_CI 237 "utf8mb4_slovak_ci" Utf8mb4 false Unicode(&languages::SLOVAK);
    UTF8MB4_SPANISH2_CI 238 "utf8mb4_spanish2_ci" Utf8mb4 false Unicode(&languages::SPANISH2);
    UTF8MB4_ROMAN_CI 239 "utf8mb4_roman_ci" Utf8mb4 false Unicode(&languages::ROMAN);
    UTF8MB4_PERSIAN_CI 240 "utf8mb4_persian_ci" Utf8mb4 false Unicode(&languages::PERSIAN);
    UTF8MB4_ESPERANTO_CI 241 "utf8mb4_esperanto_ci" Utf8mb4 false Unicode(&languages::ESPERANTO);
    UTF8MB4_HUNGARIAN_CI 242 "utf8mb4_hungarian_ci" Utf8mb4 false Unicode(&languages::HUNGARIAN);
    UTF8MB4_SINHALA_CI 243 "utf8mb4_sinhala_ci" Utf8mb4 false Unicode(&languages::SINHALA);
    UTF8MB4_GERMAN2_CI 244 "utf8mb4_german2_ci" Utf8mb4 false Unicode(&languages::GERMAN2);
    UTF8MB4_CROATIAN_MYSQL561_CI 245 "utf8mb4_croatian_mysql561_ci" Utf8mb4 false
        Unicode(&languages::CROATIAN_MYSQL561);
    UTF8MB4_UNICODE_520_CI 246 "utf8mb4_unicode_520_ci" Utf8mb4 false Unicode(&unicode::ROOT_520);
    UTF8MB4_VIETNAMESE_CI 247 "utf8mb4_vietnamese_ci" Utf8mb4 false Unicode(&languages::VIETNAMESE);
    UTF8MB4_0900_AI_CI 255 "utf8mb4_0900_ai_ci" Utf8mb4 false Levels(1);
    UTF8MB4_0900_AS_CS 278 "utf8mb4_0900_as_cs" Utf8mb4 false Levels(3);
    UTF8MB4_0900_AS_CI 305 "utf8mb4_0900_as_ci" Utf8mb4 false Levels(2);
    UTF8MB4_0900_BIN 309 "utf8mb4_0900_bin" Utf8mb4 false Binary;
    UTF8MB3_CROATIAN_CI 576 "utf8mb3_croatian_ci" Utf8mb3 false Unicode(&languages::CROATIAN);
    UTF8MB4_CROATIAN_CI 608 "utf8mb4_croatian_ci" Utf8mb4 false Unicode(&languages::CROATIAN);
}

impl CollationId {
    /// All collations of columns, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        let ids = TABLE.iter().map(|entry| entry.id);
        ids.filter(|id| id.charset().is_of_columns())
    }

    /// The collation with MySQL's number.
    pub fn from_id(id: u16) -> Option<Self> {
        TABLE
            .iter()
            .find(|entry| entry.id.0 == id)
            .map(|entry| entry.id)
    }

    /// The collation of that name in any case; `utf8_...` is `utf8mb3_...`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let canonical = match name.strip_prefix("utf8_") {
            Some(rest) => format!("utf8mb3_{rest}"),
            None => name,
        };
        TABLE
            .iter()
            .find(|entry| entry.name == canonical)
            .map(|entry| entry.id)
    }

    /// MySQL's number.
    pub const fn id(self) -> u16 {
        self.0
    }

    /// MySQL's name.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// True if it is the default of its character set.
    pub fn is_default(self) -> bool {
        self.entry().default
    }

    /// The most bytes that a character takes.
    pub fn char_bytes_max(self) -> usize {
        self.charset().char_bytes_max()
    }

    /// The `_bin` collation of the character set (for `binary`, itself).
    pub fn binary_twin(self) -> Self {
        match self.charset() {
            Charset::Utf8mb4 => Self::UTF8MB4_BIN,
            Charset::Utf8mb3 => Self::UTF8MB3_BIN,
            Charset::Latin1 => Self::LATIN1_BIN,
            Charset::Ascii => Self::ASCII_BIN,
            Charset::Binary => Self::BINARY,
            Charset::Client(charset) => charset.binary_collation(),
        }
    }

    /// True if trailing blanks do not count in comparisons.
    pub fn pads(self) -> bool {
        !matches!(self.rule(), Rule::Binary | Rule::Levels(_))
    }

    /// The code point that, appended repeatedly to a text, makes the lowest of all longer texts.
    /// `None` if the text itself is lower than all of them.
    pub fn lowest_tail(self) -> Option<u32> {
        match self.rule() {
            Rule::Binary | Rule::Levels(_) => None,
            Rule::Unicode(language) => Some(language.lowest()),
            Rule::CodePoint
            | Rule::General
            | Rule::Latin1Swedish
            | Rule::AsciiFold
            | Rule::PaddedBytes => Some(0),
        }
    }

    fn entry(self) -> &'static Entry {
        TABLE
            .iter()
            .find(|entry| entry.id == self)
            .expect("a collation is only made from the table")
    }
}

#[cfg(test)]
mod tests;
