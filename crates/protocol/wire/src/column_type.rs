//! [`ColumnType`]: the one-byte type of a column or parameter.

/// A type as it is sent. The SQL type also depends on length, charset and flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ColumnType {
    /// DECIMAL of old servers.
    Decimal = 0,
    /// TINYINT, BOOLEAN.
    Tiny = 1,
    /// SMALLINT.
    Short = 2,
    /// INT.
    Long = 3,
    /// FLOAT.
    Float = 4,
    /// DOUBLE.
    Double = 5,
    /// The NULL literal.
    Null = 6,
    /// TIMESTAMP.
    Timestamp = 7,
    /// BIGINT.
    LongLong = 8,
    /// MEDIUMINT.
    Int24 = 9,
    /// DATE.
    Date = 10,
    /// TIME.
    Time = 11,
    /// DATETIME.
    DateTime = 12,
    /// YEAR.
    Year = 13,
    /// DATE, inside servers only.
    NewDate = 14,
    /// VARCHAR, inside servers and as a parameter.
    VarChar = 15,
    /// BIT.
    Bit = 16,
    /// TIMESTAMP with fractions, inside servers only.
    Timestamp2 = 17,
    /// DATETIME with fractions, inside servers only.
    DateTime2 = 18,
    /// TIME with fractions, inside servers only.
    Time2 = 19,
    /// MySQL's JSON.
    Json = 245,
    /// DECIMAL.
    NewDecimal = 246,
    /// ENUM, inside servers only.
    Enum = 247,
    /// SET, inside servers only.
    Set = 248,
    /// TINYBLOB, TINYTEXT, inside servers and as a parameter.
    TinyBlob = 249,
    /// MEDIUMBLOB, MEDIUMTEXT, inside servers and as a parameter.
    MediumBlob = 250,
    /// LONGBLOB, LONGTEXT, inside servers and as a parameter.
    LongBlob = 251,
    /// BLOB and TEXT of every size.
    Blob = 252,
    /// VARCHAR, VARBINARY.
    VarString = 253,
    /// CHAR, BINARY, ENUM, SET.
    String = 254,
    /// Geometry.
    Geometry = 255,
}

impl ColumnType {
    /// The type of a byte, if there is one.
    pub fn from_byte(byte: u8) -> Option<ColumnType> {
        use ColumnType as T;
        const TYPES: [ColumnType; 31] = [
            T::Decimal,
            T::Tiny,
            T::Short,
            T::Long,
            T::Float,
            T::Double,
            T::Null,
            T::Timestamp,
            T::LongLong,
            T::Int24,
            T::Date,
            T::Time,
            T::DateTime,
            T::Year,
            T::NewDate,
            T::VarChar,
            T::Bit,
            T::Timestamp2,
            T::DateTime2,
            T::Time2,
            T::Json,
            T::NewDecimal,
            T::Enum,
            T::Set,
            T::TinyBlob,
            T::MediumBlob,
            T::LongBlob,
            T::Blob,
            T::VarString,
            T::String,
            T::Geometry,
        ];
        let index = if byte >= 245 { byte - 225 } else { byte };
        TYPES
            .get(usize::from(index))
            .copied()
            .filter(|found| found.byte() == byte)
    }

    /// The byte of the type.
    #[inline]
    pub fn byte(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_its_own_type_or_none() {
        let known: Vec<u8> = (0..=255)
            .filter(|byte| ColumnType::from_byte(*byte).is_some())
            .collect();
        assert_eq!(known.len(), 31);
        for byte in known {
            assert_eq!(ColumnType::from_byte(byte).unwrap().byte(), byte);
        }
    }
}
