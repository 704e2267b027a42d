//! [`BinaryValue`]: a value in the binary protocol, as a parameter or in a row.
//!
//! | type | bytes |
//! |---|---|
//! | TINYINT | 1 |
//! | SMALLINT, YEAR | 2 |
//! | INT, MEDIUMINT, FLOAT | 4 |
//! | BIGINT, DOUBLE | 8 |
//! | dates and times | see `temporal.rs` |
//! | all others | their text or bytes after a length-encoded length |

use crate::column_type::ColumnType;
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::Packet;
use crate::temporal::{DateTime, Time};

/// A value of the binary protocol; text and bytes are lent from the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BinaryValue<'a> {
    /// NULL.
    Null,
    /// A signed integer of any size.
    Int(i64),
    /// An unsigned integer of any size.
    Unsigned(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// Text, bytes, or a decimal number as text: the type says which.
    Bytes(&'a [u8]),
    /// DATE, DATETIME, TIMESTAMP.
    DateTime(DateTime),
    /// TIME.
    Time(Time),
}

/// The type that a parameter was bound with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterType {
    /// The type.
    pub column_type: ColumnType,
    /// Whether an integer is unsigned.
    pub is_unsigned: bool,
}

impl ParameterType {
    /// A signed or textual type.
    pub fn new(column_type: ColumnType) -> ParameterType {
        ParameterType {
            column_type,
            is_unsigned: false,
        }
    }

    pub(crate) fn encode(self, packet: &mut Packet<'_>) {
        packet.u8(self.column_type.byte());
        packet.u8(if self.is_unsigned { 0x80 } else { 0 });
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<ParameterType, Malformed> {
        let [byte, flags] = cursor.array("parameter type")?;
        let column_type = ColumnType::from_byte(byte).ok_or(Malformed::new("parameter type"))?;
        Ok(ParameterType {
            column_type,
            is_unsigned: flags & 0x80 != 0,
        })
    }
}

impl<'a> BinaryValue<'a> {
    /// Appends the value in the form of `column_type`. A value that does not fit the type is cut to
    /// its lower bytes: the caller must choose the type. NULL takes no bytes.
    pub(crate) fn encode(&self, column_type: ColumnType, packet: &mut Packet<'_>) {
        match self {
            BinaryValue::Null => {}
            BinaryValue::Int(value) => encode_integer(value.cast_unsigned(), column_type, packet),
            BinaryValue::Unsigned(value) => encode_integer(*value, column_type, packet),
            BinaryValue::Float(value) => packet.u32(value.to_bits()),
            BinaryValue::Double(value) => packet.u64(value.to_bits()),
            BinaryValue::Bytes(bytes) => packet.lenenc_bytes(bytes),
            BinaryValue::DateTime(value) => value.encode(packet),
            BinaryValue::Time(value) => value.encode(packet),
        }
    }

    /// Reads a value of the type.
    pub(crate) fn decode(
        cursor: &mut Cursor<'a>,
        parameter_type: ParameterType,
    ) -> Result<BinaryValue<'a>, Malformed> {
        use ColumnType as T;
        let is_unsigned = parameter_type.is_unsigned;
        match parameter_type.column_type {
            T::Null => Ok(BinaryValue::Null),
            T::Tiny => {
                let byte = cursor.u8("tinyint")?;
                Ok(integer(
                    is_unsigned,
                    u64::from(byte),
                    i64::from(byte.cast_signed()),
                ))
            }
            T::Short | T::Year => {
                let word = cursor.u16("smallint")?;
                Ok(integer(
                    is_unsigned,
                    u64::from(word),
                    i64::from(word.cast_signed()),
                ))
            }
            T::Long | T::Int24 => {
                let word = cursor.u32("int")?;
                Ok(integer(
                    is_unsigned,
                    u64::from(word),
                    i64::from(word.cast_signed()),
                ))
            }
            T::LongLong => {
                let word = cursor.u64("bigint")?;
                Ok(integer(is_unsigned, word, word.cast_signed()))
            }
            T::Float => cursor
                .u32("float")
                .map(|bits| BinaryValue::Float(f32::from_bits(bits))),
            T::Double => cursor
                .u64("double")
                .map(|bits| BinaryValue::Double(f64::from_bits(bits))),
            T::Timestamp | T::Date | T::DateTime | T::NewDate | T::Timestamp2 | T::DateTime2 => {
                DateTime::decode(cursor).map(BinaryValue::DateTime)
            }
            T::Time | T::Time2 => Time::decode(cursor).map(BinaryValue::Time),
            T::Decimal
            | T::VarChar
            | T::Bit
            | T::Json
            | T::NewDecimal
            | T::Enum
            | T::Set
            | T::TinyBlob
            | T::MediumBlob
            | T::LongBlob
            | T::Blob
            | T::VarString
            | T::String
            | T::Geometry => cursor.lenenc_bytes("text value").map(BinaryValue::Bytes),
        }
    }
}

fn integer<'a>(is_unsigned: bool, unsigned: u64, signed: i64) -> BinaryValue<'a> {
    if is_unsigned {
        BinaryValue::Unsigned(unsigned)
    } else {
        BinaryValue::Int(signed)
    }
}

fn encode_integer(value: u64, column_type: ColumnType, packet: &mut Packet<'_>) {
    let bytes = value.to_le_bytes();
    let count = match column_type {
        ColumnType::Tiny => 1,
        ColumnType::Short | ColumnType::Year => 2,
        ColumnType::Long | ColumnType::Int24 => 4,
        _ => 8,
    };
    packet.bytes(bytes.get(..count).unwrap_or(&bytes));
}
