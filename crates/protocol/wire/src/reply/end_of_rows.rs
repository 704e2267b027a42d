//! [`EofPacket`]: the end of column definitions or of rows, for clients without DEPRECATE_EOF.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | 0xFE |
//! | 2 | warnings |
//! | 2 | status flags |
//!
//! Clients with DEPRECATE_EOF get nothing after column definitions and an OK packet of the same
//! first byte after rows; [`end_columns`] and [`end_rows`] choose.

use crate::capability::Capabilities;
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;
use crate::reply::ok::{OkKind, OkPacket};
use crate::status::StatusFlags;

/// The end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EofPacket {
    /// How many warnings SHOW WARNINGS has.
    pub warnings: u16,
    /// The session's state.
    pub status: StatusFlags,
}

impl EofPacket {
    /// First byte of the packet. A row may start with it too, but is then longer than 8 bytes.
    pub const HEADER: u8 = 0xFE;

    /// Appends the packet.
    #[inline]
    pub fn encode(&self, out: &mut PacketWriter) {
        let mut packet = out.begin();
        packet.u8(Self::HEADER);
        packet.u16(self.warnings);
        packet.u16(self.status.0);
        packet.finish();
    }

    /// Reads the packet.
    pub fn decode(payload: &[u8]) -> Result<EofPacket, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("EOF header")? != Self::HEADER {
            return Err(Malformed::new("EOF header"));
        }
        let warnings = cursor.u16("warnings")?;
        Ok(EofPacket {
            warnings,
            status: StatusFlags(cursor.u16("status")?),
        })
    }
}

/// Ends the column definitions of a result set or of a prepared statement.
#[inline]
pub fn end_columns(
    out: &mut PacketWriter,
    capabilities: Capabilities,
    status: StatusFlags,
    warnings: u16,
) {
    if !capabilities.contains(Capabilities::DEPRECATE_EOF) {
        EofPacket { warnings, status }.encode(out);
    }
}

/// Ends the rows of a result set, or the definitions of one whose rows wait in a cursor, or a
/// COM_SET_OPTION. Clients without DEPRECATE_EOF get only status and warnings of `ok`.
#[inline]
pub fn end_rows(out: &mut PacketWriter, capabilities: Capabilities, ok: &OkPacket<'_>) {
    if capabilities.contains(Capabilities::DEPRECATE_EOF) {
        ok.encode(out, capabilities, OkKind::EndOfRows);
    } else {
        let status = ok.status.with(StatusFlags::SESSION_STATE_CHANGED, false);
        EofPacket {
            warnings: ok.warnings,
            status,
        }
        .encode(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_depends_on_what_was_agreed() {
        let ok = OkPacket {
            status: StatusFlags(2),
            warnings: 1,
            ..OkPacket::default()
        };
        let old = Capabilities::SERVER & !Capabilities::DEPRECATE_EOF;
        let mut out = PacketWriter::new();
        end_columns(&mut out, Capabilities::SERVER, ok.status, 0);
        assert_eq!(out.pending_bytes(), 0);
        end_columns(&mut out, old, ok.status, 0);
        end_rows(&mut out, old, &ok);
        assert_eq!(
            out.as_bytes(),
            b"\x05\0\0\0\xFE\0\0\x02\0\x05\0\0\x01\xFE\x01\0\x02\0"
        );
        let eof = EofPacket::decode(&out.as_bytes()[13..]);
        assert_eq!(
            eof,
            Ok(EofPacket {
                warnings: 1,
                status: StatusFlags(2)
            })
        );
        out.clear();
        end_rows(&mut out, Capabilities::SERVER, &ok);
        assert_eq!(
            OkPacket::decode(&out.as_bytes()[4..], Capabilities::SERVER),
            Ok(ok)
        );
    }

    #[test]
    fn short_packets_are_refused() {
        assert!(EofPacket::decode(b"\xFE\0\0").is_err());
        assert!(EofPacket::decode(b"\0\0\0\0\0").is_err());
    }
}
