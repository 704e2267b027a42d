//! [`OkPacket`]: a statement succeeded, or its rows have ended.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | 0x00; 0xFE if it replaces an EOF packet |
//! | n | affected rows, length-encoded |
//! | n | last insert id, length-encoded |
//! | 2 | status flags |
//! | 2 | warnings |
//! | n | text after its length, if there is one or changes follow |
//! | n | changes of the session's state after their length, if SESSION_TRACK and flagged |

use crate::capability::Capabilities;
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;
use crate::status::StatusFlags;

/// A statement succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OkPacket<'a> {
    /// Rows that were changed.
    pub affected_rows: u64,
    /// The first automatic value that was generated, or 0.
    pub last_insert_id: u64,
    /// The session's state. [`OkPacket::encode`] sets and clears SESSION_STATE_CHANGED.
    pub status: StatusFlags,
    /// How many warnings SHOW WARNINGS has.
    pub warnings: u16,
    /// Text such as `Records: 3  Duplicates: 0  Warnings: 0`.
    pub info: &'a [u8],
    /// Changes as [`SessionChanges`](crate::SessionChanges) holds them.
    pub session_changes: &'a [u8],
}

/// The meaning of an OK packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OkKind {
    /// A statement without rows succeeded.
    Ok,
    /// The rows have ended; the packet replaces EOF, as agreed by DEPRECATE_EOF.
    EndOfRows,
}

const HEADER_OK: u8 = 0x00;
const HEADER_END_OF_ROWS: u8 = 0xFE;

impl<'a> OkPacket<'a> {
    /// Appends the packet for a client of the agreed `capabilities`.
    #[inline]
    pub fn encode(&self, out: &mut PacketWriter, capabilities: Capabilities, kind: OkKind) {
        let tells_changes =
            !self.session_changes.is_empty() && capabilities.contains(Capabilities::SESSION_TRACK);
        let status = self
            .status
            .with(StatusFlags::SESSION_STATE_CHANGED, tells_changes);
        let mut packet = out.begin();
        packet.u8(match kind {
            OkKind::Ok => HEADER_OK,
            OkKind::EndOfRows => HEADER_END_OF_ROWS,
        });
        packet.lenenc(self.affected_rows);
        packet.lenenc(self.last_insert_id);
        packet.u16(status.0);
        packet.u16(self.warnings);
        if tells_changes || !self.info.is_empty() {
            packet.lenenc_bytes(self.info);
        }
        if tells_changes {
            packet.lenenc_bytes(self.session_changes);
        }
        packet.finish();
    }

    /// Reads an OK packet of either kind.
    pub fn decode(
        payload: &'a [u8],
        capabilities: Capabilities,
    ) -> Result<OkPacket<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        if !matches!(cursor.u8("OK header")?, HEADER_OK | HEADER_END_OF_ROWS) {
            return Err(Malformed::new("OK header"));
        }
        let mut packet = OkPacket {
            affected_rows: cursor.lenenc("affected rows")?,
            last_insert_id: cursor.lenenc("last insert id")?,
            status: StatusFlags(cursor.u16("status")?),
            warnings: cursor.u16("warnings")?,
            ..OkPacket::default()
        };
        if !cursor.is_empty() {
            packet.info = cursor.lenenc_bytes("info")?;
        }
        if packet.status.contains(StatusFlags::SESSION_STATE_CHANGED)
            && capabilities.contains(Capabilities::SESSION_TRACK)
            && !cursor.is_empty()
        {
            packet.session_changes = cursor.lenenc_bytes("session changes")?;
        }
        Ok(packet)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_ok_is_seven_bytes() {
        let mut out = PacketWriter::new();
        let ok = OkPacket {
            status: StatusFlags::AUTOCOMMIT,
            ..OkPacket::default()
        };
        ok.encode(&mut out, Capabilities::SERVER, OkKind::Ok);
        assert_eq!(out.as_bytes(), b"\x07\0\0\0\0\0\0\x02\0\0\0");
    }

    proptest! {
        #[test]
        fn round_trip(
            affected_rows: u64,
            last_insert_id: u64,
            status: u16,
            warnings: u16,
            info: Vec<u8>,
            session_changes: Vec<u8>,
            is_end: bool,
        ) {
            let status = StatusFlags(status)
                .with(StatusFlags::SESSION_STATE_CHANGED, !session_changes.is_empty());
            let ok = OkPacket {
                affected_rows,
                last_insert_id,
                status,
                warnings,
                info: &info,
                session_changes: &session_changes,
            };
            let kind = if is_end { OkKind::EndOfRows } else { OkKind::Ok };
            let mut out = PacketWriter::new();
            ok.encode(&mut out, Capabilities::SERVER, kind);
            let payload = &out.as_bytes()[4..];
            prop_assert_eq!(OkPacket::decode(payload, Capabilities::SERVER), Ok(ok));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, bits: u64) {
            let _ = OkPacket::decode(&bytes, Capabilities(bits));
        }
    }
}
