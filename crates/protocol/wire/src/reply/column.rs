//! [`ColumnDefinition`]: the description of one column of a result set.
//!
//! | bytes | content |
//! |---|---|
//! | n | catalog, schema, table, original table, name, original name: each after its length |
//! | n | extended type, if MARIADB_EXTENDED_METADATA: kind (0 type, 1 format), length, text |
//! | 1 | 12, the length of what follows |
//! | 2 | collation |
//! | 4 | display length in bytes |
//! | 1 | type |
//! | 2 | flags |
//! | 1 | decimals |
//! | 2 | zeros |
//! | n | COM_FIELD_LIST only: default as text after its length, or 0xFB for NULL |

use std::ops::{BitOr, BitOrAssign};

use crate::capability::Capabilities;
use crate::column_type::ColumnType;
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;

/// Facts about a column, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ColumnFlags(pub u16);

impl ColumnFlags {
    /// The column cannot be NULL.
    pub const NOT_NULL: ColumnFlags = ColumnFlags(1);
    /// Part of the primary key.
    pub const PRIMARY_KEY: ColumnFlags = ColumnFlags(1 << 1);
    /// The first and only part of a unique key.
    pub const UNIQUE_KEY: ColumnFlags = ColumnFlags(1 << 2);
    /// The first part of a key that is not unique.
    pub const MULTIPLE_KEY: ColumnFlags = ColumnFlags(1 << 3);
    /// A BLOB or TEXT.
    pub const BLOB: ColumnFlags = ColumnFlags(1 << 4);
    /// An unsigned number.
    pub const UNSIGNED: ColumnFlags = ColumnFlags(1 << 5);
    /// ZEROFILL.
    pub const ZEROFILL: ColumnFlags = ColumnFlags(1 << 6);
    /// A binary collation, or no text at all.
    pub const BINARY: ColumnFlags = ColumnFlags(1 << 7);
    /// An ENUM.
    pub const ENUM: ColumnFlags = ColumnFlags(1 << 8);
    /// AUTO_INCREMENT.
    pub const AUTO_INCREMENT: ColumnFlags = ColumnFlags(1 << 9);
    /// A TIMESTAMP.
    pub const TIMESTAMP: ColumnFlags = ColumnFlags(1 << 10);
    /// A SET.
    pub const SET: ColumnFlags = ColumnFlags(1 << 11);
    /// NOT NULL without a default.
    pub const NO_DEFAULT_VALUE: ColumnFlags = ColumnFlags(1 << 12);
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub const ON_UPDATE_NOW: ColumnFlags = ColumnFlags(1 << 13);
    /// A number (set by clients, mostly).
    pub const NUMBER: ColumnFlags = ColumnFlags(1 << 15);

    /// Whether all of `other` are in this set.
    pub fn contains(self, other: ColumnFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for ColumnFlags {
    type Output = ColumnFlags;
    fn bitor(self, other: ColumnFlags) -> ColumnFlags {
        ColumnFlags(self.0 | other.0)
    }
}

impl BitOrAssign for ColumnFlags {
    fn bitor_assign(&mut self, other: ColumnFlags) {
        self.0 |= other.0;
    }
}

/// MariaDB's finer type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtendedType<'a> {
    /// Name of the data type, such as `uuid` or `inet6`; empty for none.
    pub type_name: &'a [u8],
    /// Name of the format, such as `json`; empty for none.
    pub format_name: &'a [u8],
}

/// A column of a result set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// Database of the table.
    pub schema: &'a [u8],
    /// The table's name or alias in the statement.
    pub table: &'a [u8],
    /// The table's own name.
    pub original_table: &'a [u8],
    /// The column's name or alias in the statement.
    pub name: &'a [u8],
    /// The column's own name.
    pub original_name: &'a [u8],
    /// Finer type, for clients that support it.
    pub extended_type: ExtendedType<'a>,
    /// Collation of the text; 63 if it is no text.
    pub collation: u16,
    /// Largest display length in bytes.
    pub display_bytes: u32,
    /// Type.
    pub column_type: ColumnType,
    /// Facts.
    pub flags: ColumnFlags,
    /// Digits after the point; 31 for floating numbers without a fixed count, 39 in MariaDB.
    pub decimals: u8,
}

/// The only catalog there is.
const CATALOG: &[u8] = b"def";
const FIXED_BYTES: u8 = 12;

impl<'a> ColumnDefinition<'a> {
    /// A column of a name and type, with nothing else known.
    pub fn new(name: &'a [u8], column_type: ColumnType) -> ColumnDefinition<'a> {
        ColumnDefinition {
            schema: b"",
            table: b"",
            original_table: b"",
            name,
            original_name: b"",
            extended_type: ExtendedType::default(),
            collation: 63,
            display_bytes: 0,
            column_type,
            flags: ColumnFlags::default(),
            decimals: 0,
        }
    }

    /// Appends the definition for a client of the agreed `capabilities`.
    pub fn encode(&self, out: &mut PacketWriter, capabilities: Capabilities) {
        self.encode_as(out, capabilities, None);
    }

    /// Appends the definition in the form of COM_FIELD_LIST, with the column's default.
    pub fn encode_with_default(
        &self,
        out: &mut PacketWriter,
        capabilities: Capabilities,
        default: Option<&[u8]>,
    ) {
        self.encode_as(out, capabilities, Some(default));
    }

    fn encode_as(
        &self,
        out: &mut PacketWriter,
        capabilities: Capabilities,
        default: Option<Option<&[u8]>>,
    ) {
        let mut packet = out.begin();
        packet.lenenc_bytes(CATALOG);
        packet.lenenc_bytes(self.schema);
        packet.lenenc_bytes(self.table);
        packet.lenenc_bytes(self.original_table);
        packet.lenenc_bytes(self.name);
        packet.lenenc_bytes(self.original_name);
        if capabilities.contains(Capabilities::MARIADB_EXTENDED_METADATA) {
            let extended = self.extended_type;
            packet.lenenc_with(|buffer| {
                for (kind, text) in [(0, extended.type_name), (1, extended.format_name)] {
                    if let Ok(length @ 1..=250) = u8::try_from(text.len()) {
                        buffer.extend_from_slice(&[kind, length]);
                        buffer.extend_from_slice(text);
                    }
                }
            });
        }
        packet.u8(FIXED_BYTES);
        packet.u16(self.collation);
        packet.u32(self.display_bytes);
        packet.u8(self.column_type.byte());
        packet.u16(self.flags.0);
        packet.u8(self.decimals);
        packet.u16(0);
        match default {
            None => {}
            Some(None) => packet.u8(0xFB),
            Some(Some(text)) => packet.lenenc_bytes(text),
        }
        packet.finish();
    }

    /// Reads a definition. The default of COM_FIELD_LIST is left unread.
    pub fn decode(
        payload: &'a [u8],
        capabilities: Capabilities,
    ) -> Result<ColumnDefinition<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        cursor.lenenc_bytes("catalog")?;
        let schema = cursor.lenenc_bytes("schema")?;
        let table = cursor.lenenc_bytes("table")?;
        let original_table = cursor.lenenc_bytes("original table")?;
        let name = cursor.lenenc_bytes("column name")?;
        let original_name = cursor.lenenc_bytes("original column name")?;
        let mut extended_type = ExtendedType::default();
        if capabilities.contains(Capabilities::MARIADB_EXTENDED_METADATA) {
            let mut parts = Cursor::new(cursor.lenenc_bytes("extended type")?);
            while !parts.is_empty() {
                match (
                    parts.u8("extended type")?,
                    parts.lenenc_bytes("extended type")?,
                ) {
                    (0, text) => extended_type.type_name = text,
                    (1, text) => extended_type.format_name = text,
                    (_, _) => {}
                }
            }
        }
        cursor.lenenc("length of the fixed part")?;
        let collation = cursor.u16("collation")?;
        let display_bytes = cursor.u32("display length")?;
        let column_type = ColumnType::from_byte(cursor.u8("column type")?)
            .ok_or(Malformed::new("column type"))?;
        let flags = ColumnFlags(cursor.u16("column flags")?);
        let decimals = cursor.u8("decimals")?;
        Ok(ColumnDefinition {
            schema,
            table,
            original_table,
            name,
            original_name,
            extended_type,
            collation,
            display_bytes,
            column_type,
            flags,
            decimals,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn default_comes_last() {
        let column = ColumnDefinition::new(b"c", ColumnType::Long);
        let mut out = PacketWriter::new();
        column.encode_with_default(&mut out, Capabilities::default(), Some(b"7"));
        assert!(out.as_bytes().ends_with(b"\0\0\x017"));
        out.clear();
        column.encode_with_default(&mut out, Capabilities::default(), None);
        assert!(out.as_bytes().ends_with(b"\0\0\xFB"));
    }

    proptest! {
        #[test]
        fn round_trip(
            names in prop::array::uniform5("[a-z]{0,300}"),
            type_name in "[a-z]{0,20}",
            format_name in "[a-z]{0,20}",
            collation: u16,
            display_bytes: u32,
            flags: u16,
            decimals: u8,
            is_extended: bool,
        ) {
            let [schema, table, original_table, name, original_name] =
                names.each_ref().map(|name| name.as_bytes());
            let mut capabilities = Capabilities::SERVER;
            let mut extended_type = ExtendedType {
                type_name: type_name.as_bytes(),
                format_name: format_name.as_bytes(),
            };
            if !is_extended {
                capabilities = capabilities & !Capabilities::MARIADB_EXTENDED_METADATA;
                extended_type = ExtendedType::default();
            }
            let column = ColumnDefinition {
                schema,
                table,
                original_table,
                name,
                original_name,
                extended_type,
                collation,
                display_bytes,
                column_type: ColumnType::VarString,
                flags: ColumnFlags(flags),
                decimals,
            };
            let mut out = PacketWriter::new();
            column.encode(&mut out, capabilities);
            let payload = &out.as_bytes()[4..];
            prop_assert_eq!(ColumnDefinition::decode(payload, capabilities), Ok(column));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, bits: u64) {
            let _ = ColumnDefinition::decode(&bytes, Capabilities(bits));
        }
    }
}
