//! [`Execute`]: COM_STMT_EXECUTE.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | statement id |
//! | 1 | cursor: 0 none, 1 read only, 2 for update, 4 scrollable |
//! | 4 | iterations, always 1 |
//! | | what follows only if the statement has parameters: |
//! | (count + 7) / 8 | a bit for each parameter that is NULL |
//! | 1 | 1 if types follow; else those of the execution before are meant |
//! | 2 each | type, and 0x80 for unsigned |
//! | n | values of the parameters that are not NULL and were not sent as long data |

use crate::command::parameter::{BinaryValue, ParameterType};
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;

/// The cursor that the client wants for the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorKind {
    /// All rows at once.
    None,
    /// A read-only cursor: rows come by COM_STMT_FETCH.
    ReadOnly,
    /// A cursor of a kind that no server has: for update, or scrollable.
    Other(u8),
}

/// A request to run a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execute<'a> {
    /// Which statement.
    pub statement_id: u32,
    /// How to send the rows.
    pub cursor: CursorKind,
    /// NULL bits, types and values.
    parameters: &'a [u8],
}

impl<'a> Execute<'a> {
    /// Reads the command's body, after its first byte.
    pub fn decode(body: &'a [u8]) -> Result<Execute<'a>, Malformed> {
        let mut cursor = Cursor::new(body);
        let statement_id = cursor.u32("statement id")?;
        let kind = match cursor.u8("cursor type")? {
            0 => CursorKind::None,
            1 => CursorKind::ReadOnly,
            other => CursorKind::Other(other),
        };
        cursor.u32("iterations")?;
        Ok(Execute {
            statement_id,
            cursor: kind,
            parameters: cursor.rest(),
        })
    }

    /// The values of the statement's `count` parameters. `types` are those of the previous
    /// execution, if there was one, and are replaced by those of this one.
    pub fn parameters<'t>(
        &self,
        count: usize,
        types: &'t mut Vec<ParameterType>,
    ) -> Result<Parameters<'a, 't>, Malformed> {
        let mut cursor = Cursor::new(self.parameters);
        if count == 0 {
            return Ok(Parameters {
                null_bits: &[],
                values: cursor,
                types: &[],
                index: 0,
            });
        }
        let null_bits = cursor.bytes(count.div_ceil(8), "NULL bits of parameters")?;
        if cursor.u8("new types flag")? == 1 {
            // The NULL bits are there, so `count` is bounded by the packet's length.
            types.clear();
            for _ in 0..count {
                types.push(ParameterType::decode(&mut cursor)?);
            }
        }
        if types.len() != count {
            return Err(Malformed::new("parameters without types"));
        }
        Ok(Parameters {
            null_bits,
            values: cursor,
            types,
            index: 0,
        })
    }

    /// Appends the whole command, with types.
    pub fn encode(
        out: &mut PacketWriter,
        statement_id: u32,
        cursor: CursorKind,
        parameters: &[(ParameterType, BinaryValue<'_>)],
    ) {
        let mut packet = out.begin();
        packet.u8(crate::CommandByte::STMT_EXECUTE);
        packet.u32(statement_id);
        packet.u8(match cursor {
            CursorKind::None => 0,
            CursorKind::ReadOnly => 1,
            CursorKind::Other(other) => other,
        });
        packet.u32(1);
        if !parameters.is_empty() {
            let bits_at = packet.payload_bytes();
            packet.zeros(parameters.len().div_ceil(8));
            for (index, (_, value)) in parameters.iter().enumerate() {
                if *value == BinaryValue::Null {
                    packet.patch(bits_at + index / 8, |byte| byte | 1 << (index % 8));
                }
            }
            packet.u8(1);
            parameters
                .iter()
                .for_each(|(bound, _)| bound.encode(&mut packet));
            for (bound, value) in parameters {
                value.encode(bound.column_type, &mut packet);
            }
        }
        packet.finish();
    }
}

/// The values of parameters, in order.
#[derive(Debug, Clone)]
pub struct Parameters<'a, 't> {
    null_bits: &'a [u8],
    values: Cursor<'a>,
    types: &'t [ParameterType],
    /// The next parameter.
    index: usize,
}

impl<'a> Parameters<'a, '_> {
    /// The next parameter with its type; `None` after the last.
    ///
    /// If `is_long_data`, its bytes came before by COM_STMT_SEND_LONG_DATA. Then there is no value
    /// here, and NULL is returned.
    pub fn next_value(
        &mut self,
        is_long_data: bool,
    ) -> Result<Option<(ParameterType, BinaryValue<'a>)>, Malformed> {
        let Some(bound) = self.types.get(self.index).copied() else {
            return Ok(None);
        };
        let bits = self.null_bits.get(self.index / 8).copied().unwrap_or(0);
        let is_null = bits & 1 << (self.index % 8) != 0;
        self.index += 1;
        if is_null || is_long_data {
            return Ok(Some((bound, BinaryValue::Null)));
        }
        Ok(Some((bound, BinaryValue::decode(&mut self.values, bound)?)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ColumnType, DateTime, Time};

    /// Types and fitting values; text is lent from a static.
    pub(crate) fn any_parameter() -> impl Strategy<Value = (ParameterType, BinaryValue<'static>)> {
        let signed = |kind| ParameterType::new(kind);
        let unsigned = |kind| ParameterType {
            column_type: kind,
            is_unsigned: true,
        };
        let date = |year, month, hour, microsecond| {
            BinaryValue::DateTime(DateTime {
                year,
                month,
                hour,
                microsecond,
                ..DateTime::default()
            })
        };
        let time = |is_negative, days| {
            BinaryValue::Time(Time {
                is_negative,
                days,
                hours: 1,
                ..Time::default()
            })
        };
        prop_oneof![
            any::<i8>().prop_map(move |v| (signed(ColumnType::Tiny), BinaryValue::Int(v.into()))),
            any::<u16>()
                .prop_map(move |v| (unsigned(ColumnType::Short), BinaryValue::Unsigned(v.into()))),
            any::<i32>().prop_map(move |v| (signed(ColumnType::Long), BinaryValue::Int(v.into()))),
            any::<u64>()
                .prop_map(move |v| (unsigned(ColumnType::LongLong), BinaryValue::Unsigned(v))),
            any::<i64>().prop_map(move |v| (signed(ColumnType::LongLong), BinaryValue::Int(v))),
            (-1e9_f32..1e9).prop_map(move |v| (signed(ColumnType::Float), BinaryValue::Float(v))),
            (-1e9_f64..1e9).prop_map(move |v| (signed(ColumnType::Double), BinaryValue::Double(v))),
            Just((signed(ColumnType::VarString), BinaryValue::Bytes(b"text"))),
            Just((signed(ColumnType::NewDecimal), BinaryValue::Bytes(b"-1.50"))),
            Just((signed(ColumnType::Blob), BinaryValue::Null)),
            (any::<u16>(), any::<u8>(), any::<u8>(), any::<u32>())
                .prop_map(move |(y, m, h, u)| (signed(ColumnType::DateTime), date(y, m, h, u))),
            (any::<bool>(), any::<u32>())
                .prop_map(move |(n, d)| (signed(ColumnType::Time), time(n, d))),
        ]
    }

    #[test]
    fn types_are_remembered_and_needed() {
        let bound = ParameterType::new(ColumnType::Tiny);
        let mut out = PacketWriter::new();
        Execute::encode(
            &mut out,
            7,
            CursorKind::ReadOnly,
            &[(bound, BinaryValue::Int(5))],
        );
        let mut types = Vec::new();
        let first = Execute::decode(&out.as_bytes()[5..]).unwrap();
        assert_eq!(
            (first.statement_id, first.cursor),
            (7, CursorKind::ReadOnly)
        );
        first.parameters(1, &mut types).unwrap();

        let again = Execute::decode(&[7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0xFE]).unwrap();
        assert!(again.parameters(1, &mut Vec::new()).is_err());
        let mut parameters = again.parameters(1, &mut types).unwrap();
        assert_eq!(
            parameters.next_value(false),
            Ok(Some((bound, BinaryValue::Int(-2))))
        );
        assert_eq!(parameters.next_value(false), Ok(None));
    }

    #[test]
    fn long_data_has_no_value_in_the_packet() {
        let bound = ParameterType::new(ColumnType::Blob);
        let execute =
            Execute::decode(&[7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 252, 0, 252, 0, 1, 9]).unwrap();
        let mut types = Vec::new();
        let mut parameters = execute.parameters(2, &mut types).unwrap();
        assert_eq!(
            parameters.next_value(true),
            Ok(Some((bound, BinaryValue::Null)))
        );
        assert_eq!(
            parameters.next_value(false),
            Ok(Some((bound, BinaryValue::Bytes(&[9]))))
        );
    }

    proptest! {
        #[test]
        fn round_trip(values in prop::collection::vec(any_parameter(), 0..20)) {
            let mut out = PacketWriter::new();
            Execute::encode(&mut out, 3, CursorKind::None, &values);
            let body = &out.as_bytes()[5..];
            let execute = Execute::decode(body).unwrap();
            let mut types = Vec::new();
            let mut parameters = execute.parameters(values.len(), &mut types).unwrap();
            for value in &values {
                prop_assert_eq!(parameters.next_value(false), Ok(Some(*value)));
            }
            prop_assert_eq!(parameters.next_value(false), Ok(None));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, count in 0_usize..100) {
            if let Ok(execute) = Execute::decode(&bytes) {
                let mut types = Vec::new();
                if let Ok(mut parameters) = execute.parameters(count, &mut types) {
                    while let Ok(Some(_)) = parameters.next_value(false) {}
                }
            }
        }
    }
}
