//! Character sets and collations: names, MySQL's numbers, and what a character set's bytes mean.

mod charset;
mod compare;
mod mix;

mod case;
mod like;
mod tables;
mod weight;

pub use charset::Charset;
pub use mix::{Coercibility, TextRule, mix, mix_to_compare};

/// A collation, by MySQL's number. Only collations that exist here can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CollationId(u16);

/// One line of the table of collations.
struct Entry {
    id: CollationId,
    name: &'static str,
    default: bool,
}

/// How strings of a collation are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Byte by byte, trailing blanks count.
    Binary,
    /// Code point by code point, padded with blanks.
    CodePoint,
    /// One 16-bit weight a character (`general_ci`), padded.
    General,
    /// Unicode collation algorithm 4.0.0 (`unicode_ci`), padded.
    Unicode,
    /// One byte weight a byte, by the table of `latin1_swedish_ci`, padded.
    Latin1Swedish,
    /// One byte weight a byte, ASCII letters folded, padded.
    AsciiFold,
    /// Byte by byte, padded.
    PaddedBytes,
}

macro_rules! collations {
    ($($constant:ident $id:literal $name:literal $charset:ident $default:literal
        $rule:ident;)*) => {
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
                    $($id => Charset::$charset,)*
                    _ => Charset::Binary,
                }
            }

            /// How it orders; asked in every comparison, so no search in the table.
            #[inline]
            pub(crate) const fn rule(self) -> Rule {
                match self.0 {
                    $($id => Rule::$rule,)*
                    _ => Rule::Binary,
                }
            }
        }
    };
}

collations! {
    LATIN1_SWEDISH_CI 8 "latin1_swedish_ci" Latin1 true Latin1Swedish;
    ASCII_GENERAL_CI 11 "ascii_general_ci" Ascii true AsciiFold;
    UTF8MB3_GENERAL_CI 33 "utf8mb3_general_ci" Utf8mb3 true General;
    UTF8MB4_GENERAL_CI 45 "utf8mb4_general_ci" Utf8mb4 true General;
    UTF8MB4_BIN 46 "utf8mb4_bin" Utf8mb4 false CodePoint;
    LATIN1_BIN 47 "latin1_bin" Latin1 false PaddedBytes;
    BINARY 63 "binary" Binary true Binary;
    ASCII_BIN 65 "ascii_bin" Ascii false PaddedBytes;
    UTF8MB3_BIN 83 "utf8mb3_bin" Utf8mb3 false CodePoint;
    UTF8MB3_UNICODE_CI 192 "utf8mb3_unicode_ci" Utf8mb3 false Unicode;
    UTF8MB4_UNICODE_CI 224 "utf8mb4_unicode_ci" Utf8mb4 false Unicode;
}

impl CollationId {
    /// All collations, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|entry| entry.id)
    }

    /// The collation of MySQL's number.
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

    /// True where it is the default of its character set.
    pub fn is_default(self) -> bool {
        self.entry().default
    }

    /// The most bytes that a character takes.
    pub fn char_bytes_max(self) -> usize {
        self.charset().char_bytes_max()
    }

    /// The `_bin` collation of the character set (`binary` of itself).
    pub fn binary_twin(self) -> Self {
        match self.charset() {
            Charset::Utf8mb4 => Self::UTF8MB4_BIN,
            Charset::Utf8mb3 => Self::UTF8MB3_BIN,
            Charset::Latin1 => Self::LATIN1_BIN,
            Charset::Ascii => Self::ASCII_BIN,
            Charset::Binary => Self::BINARY,
        }
    }

    /// True where trailing blanks do not count when strings are compared.
    pub fn pads(self) -> bool {
        self.rule() != Rule::Binary
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
