//! [`Handshake`]: the server's greeting, version 10.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | protocol version, 10 |
//! | n, 0 | server version |
//! | 4 | connection id |
//! | 8, 0 | scramble, first part |
//! | 2 | capabilities, lower half of MySQL's |
//! | 1 | collation |
//! | 2 | status flags |
//! | 2 | capabilities, upper half of MySQL's |
//! | 1 | length of the scramble with its zero byte |
//! | 6 | zeros |
//! | 4 | MariaDB's capabilities; zeros from a MySQL server |
//! | 12, 0 | scramble, second part |
//! | n, 0 | authentication plugin |

use crate::capability::Capabilities;
use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;
use crate::status::StatusFlags;

/// Bytes of the random challenge in the greeting. None of them is zero.
pub const SCRAMBLE_BYTES: usize = 20;

const PROTOCOL_VERSION: u8 = 10;
const SCRAMBLE_PART_1_BYTES: usize = 8;

/// The scramble's length in the greeting: it includes the zero byte after it.
const SCRAMBLE_LENGTH: u8 = 21;
const _: () = assert!(SCRAMBLE_LENGTH as usize == SCRAMBLE_BYTES + 1);

/// The server's greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// Version text. Clients derive features from it, so it starts with a known server's version.
    pub server_version: &'a [u8],
    /// The number that KILL takes.
    pub connection_id: u32,
    /// The challenge that the password is proven against.
    pub scramble: [u8; SCRAMBLE_BYTES],
    /// What the server can do.
    pub capabilities: Capabilities,
    /// The server's default collation, lower byte.
    pub collation: u8,
    /// The state a session starts with.
    pub status: StatusFlags,
    /// The plugin that the scramble is for.
    pub auth_plugin: &'a [u8],
}

impl<'a> Handshake<'a> {
    /// Appends the greeting.
    pub fn encode(&self, out: &mut PacketWriter) {
        let [low_a, low_b, high_a, high_b] = self.capabilities.mysql_bits().to_le_bytes();
        let (part_1, part_2) = self.scramble.split_at(SCRAMBLE_PART_1_BYTES);
        let mut packet = out.begin();
        packet.u8(PROTOCOL_VERSION);
        packet.nul_bytes(self.server_version);
        packet.u32(self.connection_id);
        packet.nul_bytes(part_1);
        packet.bytes(&[low_a, low_b, self.collation]);
        packet.u16(self.status.0);
        packet.bytes(&[high_a, high_b]);
        packet.u8(SCRAMBLE_LENGTH);
        packet.zeros(6);
        packet.u32(self.capabilities.mariadb_bits());
        packet.nul_bytes(part_2);
        packet.nul_bytes(self.auth_plugin);
        packet.finish();
    }

    /// Reads a greeting. A server that refuses the connection sends an error packet instead,
    /// which starts with 0xFF.
    pub fn decode(payload: &'a [u8]) -> Result<Handshake<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("protocol version")? != PROTOCOL_VERSION {
            return Err(Malformed::new("protocol version"));
        }
        let server_version = cursor.nul_bytes("server version")?;
        let connection_id = cursor.u32("connection id")?;
        let part_1: [u8; SCRAMBLE_PART_1_BYTES] = cursor.array("scramble")?;
        cursor.u8("scramble end")?;
        let low = cursor.u16("capabilities")?;
        let collation = cursor.u8("collation")?;
        let status = StatusFlags(cursor.u16("status")?);
        let high = cursor.u16("capabilities")?;
        let scramble_bytes = usize::from(cursor.u8("scramble length")?);
        cursor.bytes(6, "reserved")?;
        let mariadb_bits = cursor.u32("extended capabilities")?;
        let mysql = u32::from(low) | u32::from(high) << 16;
        let is_mysql = mysql & Capabilities::MYSQL.mysql_bits() != 0;
        let capabilities = Capabilities::from_bits(mysql, if is_mysql { 0 } else { mariadb_bits });
        let part_2_bytes = scramble_bytes.saturating_sub(SCRAMBLE_PART_1_BYTES).max(13);
        let mut part_2 = Cursor::new(cursor.bytes(part_2_bytes, "scramble")?);
        let part_2: [u8; SCRAMBLE_BYTES - SCRAMBLE_PART_1_BYTES] = part_2.array("scramble")?;
        let mut scramble = [0; SCRAMBLE_BYTES];
        let parts = part_1.iter().chain(&part_2);
        scramble
            .iter_mut()
            .zip(parts)
            .for_each(|(to, from)| *to = *from);
        let auth_plugin = cursor.nul_bytes_or_rest();
        Ok(Handshake {
            server_version,
            connection_id,
            scramble,
            capabilities,
            collation,
            status,
            auth_plugin,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(
            connection_id: u32,
            scramble: [u8; SCRAMBLE_BYTES],
            bits: u64,
            collation: u8,
            status: u16,
            version in "[a-z0-9.-]{0,40}",
        ) {
            let capabilities = Capabilities(bits & !1);
            let greeting = Handshake {
                server_version: version.as_bytes(),
                connection_id,
                scramble,
                capabilities,
                collation,
                status: StatusFlags(status),
                auth_plugin: b"mysql_native_password",
            };
            let mut out = PacketWriter::new();
            greeting.encode(&mut out);
            let payload = &out.as_bytes()[4..];
            prop_assert_eq!(Handshake::decode(payload), Ok(greeting));
            for end in 0..payload.len() {
                let _ = Handshake::decode(&payload[..end]);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Handshake::decode(&bytes);
        }
    }
}
