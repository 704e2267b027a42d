//! [`PrepareOk`]: the answer to COM_STMT_PREPARE.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | 0 |
//! | 4 | statement id |
//! | 2 | columns |
//! | 2 | parameters |
//! | 1 | 0 |
//! | 2 | warnings |
//!
//! After it come the definitions of the parameters and their end, if there are any, and those of
//! the columns and their end, if there are any.

use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;

/// A statement is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareOk {
    /// Its id for the client from now on.
    pub statement_id: u32,
    /// How many columns its rows have; 0 for a statement without rows.
    pub column_count: u16,
    /// How many parameters it takes.
    pub parameter_count: u16,
    /// How many warnings SHOW WARNINGS has.
    pub warnings: u16,
}

impl PrepareOk {
    /// Appends the packet.
    pub fn encode(&self, out: &mut PacketWriter) {
        let mut packet = out.begin();
        packet.u8(0);
        packet.u32(self.statement_id);
        packet.u16(self.column_count);
        packet.u16(self.parameter_count);
        packet.u8(0);
        packet.u16(self.warnings);
        packet.finish();
    }

    /// Reads the packet.
    pub fn decode(payload: &[u8]) -> Result<PrepareOk, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("prepare header")? != 0 {
            return Err(Malformed::new("prepare header"));
        }
        let statement_id = cursor.u32("statement id")?;
        let column_count = cursor.u16("column count")?;
        let parameter_count = cursor.u16("parameter count")?;
        cursor.u8("filler")?;
        let warnings = cursor.u16("warnings")?;
        Ok(PrepareOk {
            statement_id,
            column_count,
            parameter_count,
            warnings,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(statement_id: u32, column_count: u16, parameter_count: u16, warnings: u16) {
            let answer = PrepareOk { statement_id, column_count, parameter_count, warnings };
            let mut out = PacketWriter::new();
            answer.encode(&mut out);
            prop_assert_eq!(PrepareOk::decode(&out.as_bytes()[4..]), Ok(answer));
            prop_assert!(PrepareOk::decode(&out.as_bytes()[4..15]).is_err());
        }
    }
}
