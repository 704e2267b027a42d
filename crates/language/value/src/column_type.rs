//! What a column or an expression may hold, and how it is described to clients.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::collation::{Charset, CollationId};
use crate::decimal::{Decimal, binary_bytes};
use crate::flag;
use crate::geometry::GeometryKind;
use crate::temporal::full_year;

/// The SQL types. JSON is MariaDB's alias of LONGTEXT and has no kind of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TypeKind {
    /// The type of a bare NULL.
    Null = 0,
    /// One byte.
    TinyInt = 1,
    /// Two bytes.
    SmallInt = 2,
    /// Three bytes.
    MediumInt = 3,
    /// Four bytes.
    Int = 4,
    /// Eight bytes.
    BigInt = 5,
    /// Single precision.
    Float = 6,
    /// Double precision.
    Double = 7,
    /// Exact.
    Decimal = 8,
    /// 1 to 64 bits.
    Bit = 9,
    /// 0, or 1901 to 2155.
    Year = 10,
    /// Calendar date.
    Date = 11,
    /// Duration.
    Time = 12,
    /// Date and time, no zone.
    DateTime = 13,
    /// A point in time.
    Timestamp = 14,
    /// Fixed length text.
    Char = 15,
    /// Text with a declared maximum.
    VarChar = 16,
    /// Fixed length bytes.
    Binary = 17,
    /// Bytes with a declared maximum.
    VarBinary = 18,
    /// Text to 255 bytes.
    TinyText = 19,
    /// Text to 64 KiB.
    Text = 20,
    /// Text to 16 MiB.
    MediumText = 21,
    /// Text to 4 GiB.
    LongText = 22,
    /// Bytes to 255.
    TinyBlob = 23,
    /// Bytes to 64 KiB.
    Blob = 24,
    /// Bytes to 16 MiB.
    MediumBlob = 25,
    /// Bytes to 4 GiB.
    LongBlob = 26,
    /// One of up to 65,535 names.
    Enum = 27,
    /// Some of up to 64 names.
    Set = 28,
    /// A geometry, of any subtype or of one.
    Geometry = 29,
}

impl TypeKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 30] = [
        Self::Null,
        Self::TinyInt,
        Self::SmallInt,
        Self::MediumInt,
        Self::Int,
        Self::BigInt,
        Self::Float,
        Self::Double,
        Self::Decimal,
        Self::Bit,
        Self::Year,
        Self::Date,
        Self::Time,
        Self::DateTime,
        Self::Timestamp,
        Self::Char,
        Self::VarChar,
        Self::Binary,
        Self::VarBinary,
        Self::TinyText,
        Self::Text,
        Self::MediumText,
        Self::LongText,
        Self::TinyBlob,
        Self::Blob,
        Self::MediumBlob,
        Self::LongBlob,
        Self::Enum,
        Self::Set,
        Self::Geometry,
    ];

    /// The stable number, as stored in the catalogue.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The kind with that stable number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name in `SHOW CREATE TABLE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::MediumInt => "mediumint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal => "decimal",
            Self::Bit => "bit",
            Self::Year => "year",
            Self::Date => "date",
            Self::Time => "time",
            Self::DateTime => "datetime",
            Self::Timestamp => "timestamp",
            Self::Char => "char",
            Self::VarChar => "varchar",
            Self::Binary => "binary",
            Self::VarBinary => "varbinary",
            Self::TinyText => "tinytext",
            Self::Text => "text",
            Self::MediumText => "mediumtext",
            Self::LongText => "longtext",
            Self::TinyBlob => "tinyblob",
            Self::Blob => "blob",
            Self::MediumBlob => "mediumblob",
            Self::LongBlob => "longblob",
            Self::Enum => "enum",
            Self::Set => "set",
            Self::Geometry => "geometry",
        }
    }

    /// TINYINT to BIGINT.
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::TinyInt | Self::SmallInt | Self::MediumInt | Self::Int | Self::BigInt
        )
    }

    /// Integers, floating point, DECIMAL, YEAR and BIT.
    pub const fn is_number(self) -> bool {
        self.is_integer()
            || matches!(
                self,
                Self::Float | Self::Double | Self::Decimal | Self::Bit | Self::Year
            )
    }

    /// DATE, TIME, DATETIME, TIMESTAMP.
    pub const fn is_temporal(self) -> bool {
        matches!(
            self,
            Self::Date | Self::Time | Self::DateTime | Self::Timestamp
        )
    }

    /// Any text or blob in its eight sizes, and geometries (the kinds that are stored separately
    /// when large).
    pub const fn is_blob(self) -> bool {
        matches!(
            self,
            Self::TinyText
                | Self::Text
                | Self::MediumText
                | Self::LongText
                | Self::TinyBlob
                | Self::Blob
                | Self::MediumBlob
                | Self::LongBlob
                | Self::Geometry
        )
    }

    /// Kinds whose values are `Bytes`.
    pub const fn is_bytes(self) -> bool {
        self.is_blob()
            || matches!(
                self,
                Self::Char | Self::VarChar | Self::Binary | Self::VarBinary
            )
    }

    /// Kinds that a client sees as strings: `Bytes`, ENUM and SET.
    pub const fn is_string(self) -> bool {
        self.is_bytes() || matches!(self, Self::Enum | Self::Set)
    }
}

/// The type of a column or an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnType {
    /// Which type.
    pub kind: TypeKind,
    /// UNSIGNED: of integers, also of FLOAT, DOUBLE and DECIMAL.
    pub unsigned: bool,
    /// ZEROFILL: shown with leading zeros to `length`.
    pub zerofill: bool,
    /// Integers: display width. FLOAT, DOUBLE: display width. DECIMAL: precision. BIT: bits.
    /// CHAR, VARCHAR: characters. BINARY, VARBINARY: bytes. TEXT, BLOB: bytes at most.
    /// ENUM, SET: the longest text in characters. Temporal: characters shown.
    pub length: u32,
    /// DECIMAL: scale. FLOAT, DOUBLE: digits after the point, or [`ColumnType::NOT_FIXED`].
    /// Temporal: fractional digits of seconds. Geometries: the number of the subtype, 0 for any.
    /// Otherwise 0.
    pub decimals: u8,
    /// For text kinds, ENUM and SET; `binary` for all others.
    pub collation: CollationId,
    /// ENUM, SET: the names in the column's character set, in order. `None` for all others.
    pub members: Option<Arc<[Box<[u8]>]>>,
}

impl ColumnType {
    /// `decimals` of a floating point type without fixed digits.
    pub const NOT_FIXED: u8 = 31;

    /// A type with the usual length of its kind, signed, collation `binary`.
    pub fn new(kind: TypeKind) -> Self {
        let length = match kind {
            TypeKind::Null => 0,
            TypeKind::TinyInt | TypeKind::Year => 4,
            TypeKind::SmallInt => 6,
            TypeKind::MediumInt => 9,
            TypeKind::Int => 11,
            TypeKind::BigInt => 20,
            TypeKind::Float => 12,
            TypeKind::Double => 22,
            TypeKind::Decimal | TypeKind::Date | TypeKind::Time => 10,
            TypeKind::DateTime | TypeKind::Timestamp => 19,
            TypeKind::Bit
            | TypeKind::Char
            | TypeKind::VarChar
            | TypeKind::Binary
            | TypeKind::VarBinary
            | TypeKind::Enum
            | TypeKind::Set => 1,
            TypeKind::TinyText | TypeKind::TinyBlob => 255,
            TypeKind::Text | TypeKind::Blob => 65_535,
            TypeKind::MediumText | TypeKind::MediumBlob => 16_777_215,
            TypeKind::LongText | TypeKind::LongBlob | TypeKind::Geometry => u32::MAX,
        };
        let decimals = match kind {
            TypeKind::Float | TypeKind::Double => Self::NOT_FIXED,
            _ => 0,
        };
        let unsigned = matches!(kind, TypeKind::Bit | TypeKind::Year);
        Self {
            kind,
            unsigned,
            zerofill: kind == TypeKind::Year,
            length,
            decimals,
            collation: CollationId::BINARY,
            members: None,
        }
    }

    /// The unsigned variant of an integer type; its usual display width is its number of digits.
    pub fn unsigned(kind: TypeKind) -> Self {
        let mut unsigned = Self::new(kind);
        unsigned.unsigned = true;
        unsigned.length = match kind {
            TypeKind::TinyInt => 3,
            TypeKind::SmallInt => 5,
            TypeKind::MediumInt => 8,
            TypeKind::Int => 10,
            _ => unsigned.length,
        };
        unsigned
    }

    /// DECIMAL(precision, scale).
    pub fn decimal(precision: u8, scale: u8) -> Self {
        let mut decimal = Self::new(TypeKind::Decimal);
        decimal.length = u32::from(precision);
        decimal.decimals = scale;
        decimal
    }

    /// True for a number with a fixed number of digits after the point.
    pub fn has_fixed_digits(&self) -> bool {
        self.kind.is_number() && self.decimals < Self::NOT_FIXED
    }

    /// Makes a DOUBLE show this many digits after the point.
    pub fn fix_digits(&mut self, digits: u8) {
        self.decimals = digits;
        self.length = 17 + u32::from(digits);
    }

    /// `length` of a DECIMAL whose values keep their own digits: MariaDB's maximum for a user
    /// variable, which no column or calculation has.
    const OWN_SCALE_DIGITS: u32 = 81;

    /// `decimals` in MariaDB's column definitions of a text that is no column.
    pub const TEXT_DECIMALS: u8 = 39;

    /// The length in MariaDB's column definition of a user variable's text, in bytes.
    const ANY_TEXT_BYTES: u32 = (1 << 24) - 1;

    /// The DECIMAL of a user variable: each value is shown with its own digits.
    pub fn any_decimal() -> Self {
        let mut any = Self::decimal(Decimal::PRECISION_MAX, Decimal::SCALE_MAX);
        any.length = Self::OWN_SCALE_DIGITS;
        any
    }

    /// True for [`ColumnType::any_decimal`].
    pub fn has_own_scale(&self) -> bool {
        self.kind == TypeKind::Decimal && self.length == Self::OWN_SCALE_DIGITS
    }

    /// The type as a calculation or a column can have it: for [`ColumnType::any_decimal`] the
    /// widest DECIMAL with its scale, for [`ColumnType::any_text`] a plain text.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if self.has_own_scale() {
            self.length = u32::from(Decimal::PRECISION_MAX);
        } else if self.is_any_text() {
            self.decimals = 0;
        }
        self
    }

    /// A temporal type with `fsp` fractional digits of seconds (DATE: 0).
    pub fn temporal(kind: TypeKind, fsp: u8) -> Self {
        let mut temporal = Self::new(kind);
        temporal.decimals = fsp;
        if fsp > 0 {
            temporal.length += 1 + u32::from(fsp);
        }
        temporal
    }

    /// VARCHAR(chars) with that collation.
    pub fn varchar(chars: u32, collation: CollationId) -> Self {
        Self::text(TypeKind::VarChar, chars, collation)
    }

    /// A text or binary type with that length.
    pub fn text(kind: TypeKind, length: u32, collation: CollationId) -> Self {
        let mut text = Self::new(kind);
        text.length = length;
        text.collation = collation;
        text
    }

    /// The text of a user variable: LONGTEXT with that collation; LONGBLOB for `binary`.
    pub fn any_text(collation: CollationId) -> Self {
        let kind = match collation {
            CollationId::BINARY => TypeKind::LongBlob,
            _ => TypeKind::LongText,
        };
        let mut text = Self::text(kind, u32::MAX, collation);
        text.decimals = Self::TEXT_DECIMALS;
        text
    }

    /// True for [`ColumnType::any_text`].
    fn is_any_text(&self) -> bool {
        let is_long = matches!(self.kind, TypeKind::LongText | TypeKind::LongBlob);
        is_long && self.length == u32::MAX && self.decimals == Self::TEXT_DECIMALS
    }

    /// ENUM or SET with these names; the length is computed.
    pub fn named(kind: TypeKind, members: Vec<Box<[u8]>>, collation: CollationId) -> Self {
        let mut named = Self::new(kind);
        let lengths = members
            .iter()
            .map(|name| collation.charset().char_count(name));
        let chars = match kind {
            TypeKind::Set => lengths.sum::<usize>() + members.len().saturating_sub(1),
            _ => lengths.max().unwrap_or(0),
        };
        named.length = u32::try_from(chars).unwrap_or(u32::MAX);
        named.collation = collation;
        named.members = Some(members.into());
        named
    }

    /// Geometries of that kind.
    pub fn geometry(kind: GeometryKind) -> Self {
        let mut geometry = Self::new(TypeKind::Geometry);
        geometry.decimals = kind.number();
        geometry
    }

    /// The kind of geometries; `Any` also for all other types.
    pub fn geometry_kind(&self) -> GeometryKind {
        let number = match self.kind {
            TypeKind::Geometry => self.decimals,
            _ => 0,
        };
        GeometryKind::from_number(u32::from(number)).unwrap_or(GeometryKind::Any)
    }

    /// The name of the type without its size: `int`, `varchar`, `point`.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            TypeKind::Geometry => self.geometry_kind().name(),
            kind => kind.name(),
        }
    }

    /// The most bytes of a value in a row; for BLOB kinds, their own maximum.
    pub fn byte_length_max(&self) -> usize {
        let length = usize::try_from(self.length).expect("a u32 fits into usize");
        match self.kind {
            TypeKind::Null => 0,
            TypeKind::TinyInt | TypeKind::Year => 1,
            TypeKind::SmallInt => 2,
            TypeKind::MediumInt | TypeKind::Date => 3,
            TypeKind::Int | TypeKind::Float => 4,
            TypeKind::BigInt | TypeKind::Double => 8,
            TypeKind::Decimal => {
                binary_bytes(u8::try_from(self.length).unwrap_or(u8::MAX), self.decimals)
            }
            TypeKind::Bit => length.div_ceil(8),
            TypeKind::Time => 3 + usize::from(self.decimals).div_ceil(2),
            TypeKind::DateTime => 5 + usize::from(self.decimals).div_ceil(2),
            TypeKind::Timestamp => 4 + usize::from(self.decimals).div_ceil(2),
            TypeKind::Char | TypeKind::VarChar => length * self.collation.char_bytes_max(),
            TypeKind::Enum => {
                if self.members().len() > 255 {
                    2
                } else {
                    1
                }
            }
            TypeKind::Set => match self.members().len().div_ceil(8) {
                wide @ 5.. => wide.max(8),
                narrow => narrow.max(1),
            },
            _ => length,
        }
    }

    /// The names of an ENUM or SET; empty for all others.
    pub fn members(&self) -> &[Box<[u8]>] {
        self.members.as_deref().unwrap_or(&[])
    }

    /// The type code in a column definition packet.
    pub fn protocol_type(&self) -> u8 {
        match self.kind {
            TypeKind::TinyInt => 1,
            TypeKind::SmallInt => 2,
            TypeKind::Int => 3,
            TypeKind::Float => 4,
            TypeKind::Double => 5,
            TypeKind::Null => 6,
            TypeKind::Timestamp => 7,
            TypeKind::BigInt => 8,
            TypeKind::MediumInt => 9,
            TypeKind::Date => 10,
            TypeKind::Time => 11,
            TypeKind::DateTime => 12,
            TypeKind::Year => 13,
            TypeKind::Bit => 16,
            TypeKind::Decimal => 246,
            TypeKind::VarChar | TypeKind::VarBinary => 253,
            TypeKind::Char | TypeKind::Binary | TypeKind::Enum | TypeKind::Set => 254,
            TypeKind::Geometry => 255,
            _ if self.is_any_text() => 251,
            _ => 252,
        }
    }

    /// The flags in a column definition packet that follow from the type of a table's column.
    pub fn protocol_flags(&self) -> u16 {
        let mut flags = 0;
        if self.kind.is_blob() && !self.is_any_text() {
            flags |= flag::BLOB;
        }
        if self.unsigned || self.kind == TypeKind::Timestamp {
            flags |= flag::UNSIGNED;
        }
        if self.zerofill {
            flags |= flag::ZEROFILL;
        }
        if self.kind.is_temporal() || (self.kind.is_bytes() && self.is_binary()) {
            flags |= flag::BINARY;
        }
        match self.kind {
            TypeKind::Enum => flags |= flag::ENUM,
            TypeKind::Set => flags |= flag::SET,
            _ => {}
        }
        flags
    }

    /// The same for an expression: numbers have BINARY, too.
    pub fn protocol_flags_of_expression(&self) -> u16 {
        if self.kind.is_string() {
            self.protocol_flags()
        } else {
            self.protocol_flags() | flag::BINARY
        }
    }

    /// The length in a column definition packet, for a client whose character set takes up to
    /// `char_bytes_max` bytes a character.
    pub fn protocol_length(&self, char_bytes_max: u32) -> u32 {
        let chars = match self.kind {
            TypeKind::LongBlob if self.is_any_text() => return Self::ANY_TEXT_BYTES,
            TypeKind::LongText if self.is_any_text() => Self::ANY_TEXT_BYTES,
            TypeKind::Decimal => {
                let point = u32::from(self.decimals > 0);
                return self.length + point + u32::from(!self.unsigned);
            }
            TypeKind::Char | TypeKind::VarChar | TypeKind::Enum | TypeKind::Set
                if !self.is_binary() =>
            {
                self.length
            }
            // The length of a TEXT is its bytes, each of which may be a character.
            TypeKind::TinyText | TypeKind::Text | TypeKind::MediumText | TypeKind::LongText => {
                self.length
            }
            _ => return self.length,
        };
        chars.saturating_mul(char_bytes_max)
    }

    /// The decimals in a column definition packet.
    pub fn protocol_decimals(&self) -> u8 {
        match self.kind {
            TypeKind::Geometry => 0,
            _ => self.decimals,
        }
    }

    /// True if values are bytes without a character set.
    pub fn is_binary(&self) -> bool {
        self.collation == CollationId::BINARY
    }

    /// For integers the least value, otherwise `i64::MIN`.
    pub fn integer_min(&self) -> i64 {
        if self.unsigned {
            return 0;
        }
        match self.kind {
            TypeKind::TinyInt => -0x80,
            TypeKind::SmallInt => -0x8000,
            TypeKind::MediumInt => -0x80_0000,
            TypeKind::Int => -0x8000_0000,
            _ => i64::MIN,
        }
    }

    /// For integers the greatest value, otherwise the widest.
    pub fn integer_max(&self) -> u64 {
        let bits = match self.kind {
            TypeKind::TinyInt => 8,
            TypeKind::SmallInt => 16,
            TypeKind::MediumInt => 24,
            TypeKind::Int => 32,
            _ => 64,
        };
        u64::MAX >> (64 - bits + u32::from(!self.unsigned))
    }

    /// YEAR of four or two digits.
    pub fn year(digits: u32) -> Self {
        Self {
            length: digits,
            ..Self::new(TypeKind::Year)
        }
    }

    /// Whether it is YEAR(2), whose values are numbers below 100. They mean 1970 to 2069.
    pub fn has_years_of_two_digits(&self) -> bool {
        self.kind == TypeKind::Year && self.length == 2
    }

    /// The whole year of a number in a column of this type.
    pub fn whole_year(&self, number: u16) -> u16 {
        if self.has_years_of_two_digits() {
            full_year(number)
        } else {
            number
        }
    }

    /// The type in `SHOW CREATE TABLE` and `COLUMN_TYPE`, without character set: `bigint(20)
    /// unsigned`, `decimal(10,2)`, `enum('a','b')`.
    pub fn sql_text(&self) -> String {
        let mut text = String::from(self.type_name());
        self.append_size(&mut text);
        if self.kind.is_number() && !matches!(self.kind, TypeKind::Year | TypeKind::Bit) {
            if self.unsigned {
                text.push_str(" unsigned");
            }
            if self.zerofill {
                text.push_str(" zerofill");
            }
        }
        text
    }

    fn append_size(&self, text: &mut String) {
        let written = match self.kind {
            TypeKind::Decimal => write!(text, "({},{})", self.length, self.decimals),
            TypeKind::Float | TypeKind::Double if self.decimals != Self::NOT_FIXED => {
                write!(text, "({},{})", self.length, self.decimals)
            }
            TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp if self.decimals > 0 => {
                write!(text, "({})", self.decimals)
            }
            TypeKind::Enum | TypeKind::Set => {
                self.append_members(text);
                Ok(())
            }
            kind if kind.is_integer()
                || matches!(
                    kind,
                    TypeKind::Bit
                        | TypeKind::Year
                        | TypeKind::Char
                        | TypeKind::VarChar
                        | TypeKind::Binary
                        | TypeKind::VarBinary
                ) =>
            {
                write!(text, "({})", self.length)
            }
            _ => Ok(()),
        };
        written.expect("writing to a String cannot fail");
    }

    fn append_members(&self, text: &mut String) {
        text.push('(');
        for (index, name) in self.members().iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push('\'');
            let name = self.collation.charset().to_utf8_lossy(name);
            for character in name.chars() {
                match character {
                    '\'' => text.push_str("''"),
                    '\\' => text.push_str("\\\\"),
                    '\0' => text.push_str("\\0"),
                    '\n' => text.push_str("\\n"),
                    '\r' => text.push_str("\\r"),
                    other => text.push(other),
                }
            }
            text.push('\'');
        }
        text.push(')');
    }

    /// The character set of text, ENUM and SET; `binary` for others.
    pub fn charset(&self) -> Charset {
        self.collation.charset()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_show_create_writes_them() {
        let cases = [
            (ColumnType::new(TypeKind::Int), "int(11)"),
            (
                ColumnType::unsigned(TypeKind::BigInt),
                "bigint(20) unsigned",
            ),
            (ColumnType::decimal(10, 2), "decimal(10,2)"),
            (ColumnType::new(TypeKind::Double), "double"),
            (ColumnType::temporal(TypeKind::DateTime, 6), "datetime(6)"),
            (ColumnType::new(TypeKind::Year), "year(4)"),
            (
                ColumnType::varchar(20, CollationId::UTF8MB4_GENERAL_CI),
                "varchar(20)",
            ),
        ];
        for (column, text) in cases {
            assert_eq!(column.sql_text(), text);
        }
        let names = vec![Box::from(&b"a"[..]), Box::from(&b"b'c"[..])];
        let column = ColumnType::named(TypeKind::Enum, names, CollationId::UTF8MB4_GENERAL_CI);
        assert_eq!(column.sql_text(), "enum('a','b''c')");
        assert_eq!(column.protocol_length(4), 12);
    }

    #[test]
    fn the_decimal_of_a_user_variable_becomes_the_widest_one() {
        let any = ColumnType::any_decimal();
        assert!(any.has_own_scale());
        assert_eq!(any.protocol_length(1), 83);
        assert_eq!(any.bounded(), ColumnType::decimal(65, 38));
        assert!(!ColumnType::decimal(65, 38).has_own_scale());
    }

    #[test]
    fn kinds_keep_their_numbers() {
        for kind in TypeKind::ALL {
            assert_eq!(TypeKind::from_number(kind.number()), Some(kind));
        }
    }

    #[test]
    fn integer_ranges() {
        assert_eq!(
            ColumnType::new(TypeKind::MediumInt).integer_max(),
            8_388_607
        );
        assert_eq!(
            ColumnType::unsigned(TypeKind::BigInt).integer_max(),
            u64::MAX
        );
        assert_eq!(ColumnType::new(TypeKind::BigInt).integer_min(), i64::MIN);
    }
}
