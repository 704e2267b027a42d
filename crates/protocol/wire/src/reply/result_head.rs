//! [`ResultHead`]: the number of columns, the first packet of a result set.
//!
//! A result set is: head, column definitions, their end ([`end_columns`](crate::end_columns)),
//! rows, their end ([`end_rows`](crate::end_rows)). If the rows wait in a cursor it is: head,
//! column definitions, and at once [`end_rows`](crate::end_rows) with CURSOR_EXISTS; each
//! COM_STMT_FETCH then gets rows and their end.

use crate::capability::Capabilities;
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;

/// The start of a result set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultHead {
    /// How many columns the rows have.
    pub column_count: u64,
    /// Whether column definitions follow; always, unless MARIADB_CACHE_METADATA was agreed.
    pub has_definitions: bool,
}

impl ResultHead {
    /// Appends the head of a result set whose definitions follow.
    #[inline]
    pub fn encode(out: &mut PacketWriter, capabilities: Capabilities, column_count: usize) {
        let mut packet = out.begin();
        packet.lenenc(crate::packet_writer::len_u64(column_count));
        if capabilities.contains(Capabilities::MARIADB_CACHE_METADATA) {
            packet.u8(1);
        }
        packet.finish();
    }

    /// Reads the head.
    pub fn decode(payload: &[u8], capabilities: Capabilities) -> Result<ResultHead, Malformed> {
        let mut cursor = Cursor::new(payload);
        let column_count = cursor.lenenc("column count")?;
        let has_definitions = !capabilities.contains(Capabilities::MARIADB_CACHE_METADATA)
            || cursor.u8("definitions flag")? != 0;
        Ok(ResultHead {
            column_count,
            has_definitions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for capabilities in [Capabilities::SERVER, Capabilities::MARIADB_CACHE_METADATA] {
            let mut out = PacketWriter::new();
            ResultHead::encode(&mut out, capabilities, 4096);
            let head = ResultHead {
                column_count: 4096,
                has_definitions: true,
            };
            assert_eq!(
                ResultHead::decode(&out.as_bytes()[4..], capabilities),
                Ok(head)
            );
        }
        assert!(ResultHead::decode(b"", Capabilities::SERVER).is_err());
    }
}
