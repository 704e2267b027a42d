//! [`BulkExecute`]: MariaDB's COM_STMT_BULK_EXECUTE, one statement with many rows of parameters.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | statement id |
//! | 2 | flags: 64 return a result for each row, 128 types follow |
//! | 2 each | types, if flagged |
//! | n | for each row and parameter an indicator, and after 0 the value |
//!
//! Indicators: 0 value, 1 NULL, 2 DEFAULT, 3 IGNORE.

use crate::command::parameter::{BinaryValue, ParameterType};
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;

const FLAG_UNIT_RESULTS: u16 = 64;
const FLAG_TYPES: u16 = 128;

/// A request to run a prepared statement once for each row of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkExecute<'a> {
    /// Which statement.
    pub statement_id: u32,
    /// Whether the client wants the result of each row.
    pub wants_unit_results: bool,
    has_types: bool,
    rows: &'a [u8],
}

/// A parameter of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BulkValue<'a> {
    /// A value; NULL is one.
    Value(BinaryValue<'a>),
    /// The column's default.
    Default,
    /// Leave the column as it is.
    Ignore,
}

impl<'a> BulkExecute<'a> {
    /// Reads the command's body, after its first byte.
    pub fn decode(body: &'a [u8]) -> Result<BulkExecute<'a>, Malformed> {
        let mut cursor = Cursor::new(body);
        let statement_id = cursor.u32("statement id")?;
        let flags = cursor.u16("bulk flags")?;
        if flags & !(FLAG_UNIT_RESULTS | FLAG_TYPES) != 0 {
            return Err(Malformed::new("bulk flags"));
        }
        Ok(BulkExecute {
            statement_id,
            wants_unit_results: flags & FLAG_UNIT_RESULTS != 0,
            has_types: flags & FLAG_TYPES != 0,
            rows: cursor.rest(),
        })
    }

    /// The rows of the statement's `count` parameters. `types` are those of the previous execution,
    /// if there was one, and are replaced by those of this one. A statement without parameters
    /// cannot be run in bulk.
    pub fn rows<'t>(
        &self,
        count: usize,
        types: &'t mut Vec<ParameterType>,
    ) -> Result<BulkRows<'a, 't>, Malformed> {
        let mut values = Cursor::new(self.rows);
        if self.has_types {
            types.clear();
            for _ in 0..count {
                types.push(ParameterType::decode(&mut values)?);
            }
        }
        if count == 0 || types.len() != count {
            return Err(Malformed::new("bulk parameters without types"));
        }
        Ok(BulkRows {
            values,
            types,
            index: 0,
        })
    }

    /// Appends the whole command, with types.
    pub fn encode(
        out: &mut PacketWriter,
        statement_id: u32,
        types: &[ParameterType],
        rows: &[Vec<BulkValue<'_>>],
    ) {
        let mut packet = out.begin();
        packet.u8(crate::CommandByte::STMT_BULK_EXECUTE);
        packet.u32(statement_id);
        packet.u16(FLAG_TYPES);
        types.iter().for_each(|bound| bound.encode(&mut packet));
        for row in rows {
            for (bound, value) in types.iter().zip(row) {
                match value {
                    BulkValue::Value(BinaryValue::Null) => packet.u8(1),
                    BulkValue::Value(value) => {
                        packet.u8(0);
                        value.encode(bound.column_type, &mut packet);
                    }
                    BulkValue::Default => packet.u8(2),
                    BulkValue::Ignore => packet.u8(3),
                }
            }
        }
        packet.finish();
    }
}

/// The parameters of all rows, in order.
#[derive(Debug, Clone)]
pub struct BulkRows<'a, 't> {
    values: Cursor<'a>,
    types: &'t [ParameterType],
    /// Parameter of the next row.
    index: usize,
}

impl<'a> BulkRows<'a, '_> {
    /// The types of the parameters.
    pub fn types(&self) -> &[ParameterType] {
        self.types
    }

    /// Whether a whole number of rows has been read and no further row follows.
    pub fn is_done(&self) -> bool {
        self.index == 0 && self.values.is_empty()
    }

    /// The next parameter of the present row, or the first of the next row.
    pub fn next_value(&mut self) -> Result<(ParameterType, BulkValue<'a>), Malformed> {
        let bound = self.types.get(self.index).copied();
        let bound = bound.ok_or(Malformed::new("bulk parameter"))?;
        self.index = (self.index + 1) % self.types.len();
        let value = match self.values.u8("bulk indicator")? {
            0 => BulkValue::Value(BinaryValue::decode(&mut self.values, bound)?),
            1 => BulkValue::Value(BinaryValue::Null),
            2 => BulkValue::Default,
            3 => BulkValue::Ignore,
            _ => return Err(Malformed::new("bulk indicator")),
        };
        Ok((bound, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ColumnType;
    use crate::command::execute::tests::any_parameter;

    #[test]
    fn indicators_stand_for_null_default_and_ignore() {
        let types = [
            ParameterType::new(ColumnType::Tiny),
            ParameterType::new(ColumnType::Blob),
        ];
        let rows = vec![
            vec![BulkValue::Value(BinaryValue::Int(1)), BulkValue::Default],
            vec![BulkValue::Ignore, BulkValue::Value(BinaryValue::Null)],
        ];
        let mut out = PacketWriter::new();
        BulkExecute::encode(&mut out, 9, &types, &rows);
        let bulk = BulkExecute::decode(&out.as_bytes()[5..]).unwrap();
        let mut types = Vec::new();
        let mut found = bulk.rows(2, &mut types).unwrap();
        for value in rows.concat() {
            assert!(!found.is_done());
            assert_eq!(found.next_value().unwrap().1, value);
        }
        assert!(found.is_done());
    }

    #[test]
    fn statement_without_parameters_is_refused() {
        let bulk = BulkExecute::decode(&[1, 0, 0, 0, 128, 0, 1, 1, 1]).unwrap();
        assert!(bulk.rows(0, &mut Vec::new()).is_err());
        assert!(BulkExecute::decode(&[1, 0, 0, 0, 1, 0]).is_err());
    }

    proptest! {
        #[test]
        fn round_trip(parameters in prop::collection::vec(any_parameter(), 1..8)) {
            let types: Vec<_> = parameters.iter().map(|(bound, _)| *bound).collect();
            let row: Vec<_> =
                parameters.iter().map(|(_, value)| BulkValue::Value(*value)).collect();
            let mut out = PacketWriter::new();
            BulkExecute::encode(&mut out, 9, &types, &[row.clone(), row.clone()]);
            let bulk = BulkExecute::decode(&out.as_bytes()[5..]).unwrap();
            let mut found_types = Vec::new();
            let mut rows = bulk.rows(types.len(), &mut found_types).unwrap();
            for value in row.iter().chain(&row) {
                prop_assert_eq!(rows.next_value().unwrap().1, *value);
            }
            prop_assert!(rows.is_done());
        }

        #[test]
        fn arbitrary_bytes_never_panic_nor_loop(bytes: Vec<u8>, count in 0_usize..5) {
            if let Ok(bulk) = BulkExecute::decode(&bytes) {
                let mut types = Vec::new();
                if let Ok(mut rows) = bulk.rows(count, &mut types) {
                    while !rows.is_done() && rows.next_value().is_ok() {}
                }
            }
        }
    }
}
