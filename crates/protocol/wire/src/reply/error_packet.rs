//! [`ErrorPacket`]: something failed.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | 0xFF |
//! | 2 | error number |
//! | 1, 5 | `#` and SQLSTATE; not before the client has said that it speaks protocol 4.1 |
//! | n | message |

use errcode::{ClientError, ErrorCode, Sqlstate};

use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;

/// An error as it came from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorPacket<'a> {
    /// Error number.
    pub code: ErrorCode,
    /// SQLSTATE, unless the server left it out.
    pub sqlstate: Option<Sqlstate>,
    /// Message, in the connection's character set.
    pub message: &'a [u8],
}

impl<'a> ErrorPacket<'a> {
    /// First byte of the packet.
    pub const HEADER: u8 = 0xFF;

    /// Appends `error` for a client that is past its login packet.
    pub fn encode(out: &mut PacketWriter, error: &ClientError) {
        Self::encode_with_text(out, error, error.message.as_bytes());
    }

    /// As `encode`, with the message in the connection's character set.
    pub fn encode_with_text(out: &mut PacketWriter, error: &ClientError, message: &[u8]) {
        let mut packet = out.begin();
        packet.u8(Self::HEADER);
        packet.u16(error.code.number());
        packet.u8(b'#');
        packet.bytes(&error.sqlstate.0);
        packet.bytes(message);
        packet.finish();
    }

    /// Appends `error` in place of a greeting: the client's capabilities are unknown yet.
    pub fn encode_in_place_of_greeting(out: &mut PacketWriter, error: &ClientError) {
        let mut packet = out.begin();
        packet.u8(Self::HEADER);
        packet.u16(error.code.number());
        packet.bytes(error.message.as_bytes());
        packet.finish();
    }

    /// Reads the packet.
    pub fn decode(payload: &'a [u8]) -> Result<ErrorPacket<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("error header")? != Self::HEADER {
            return Err(Malformed::new("error header"));
        }
        let code = ErrorCode(cursor.u16("error number")?);
        let sqlstate = if cursor.peek() == Some(b'#') {
            cursor.u8("SQLSTATE")?;
            Some(Sqlstate(cursor.array("SQLSTATE")?))
        } else {
            None
        };
        Ok(ErrorPacket {
            code,
            sqlstate,
            message: cursor.rest(),
        })
    }

    /// The server's error with its message as text; bytes that are not UTF-8 are replaced.
    pub fn to_client_error(&self) -> ClientError {
        let message = String::from_utf8_lossy(self.message).into_owned();
        let sqlstate = self.sqlstate.unwrap_or(self.code.sqlstate());
        ClientError::of_server(self.code, sqlstate, message)
    }
}

#[cfg(test)]
mod tests {
    use errcode::{ER_CON_COUNT_ERROR, ER_NO_DB_ERROR, Origin};
    use proptest::prelude::*;

    use super::*;

    fn of_server(error: ClientError) -> ClientError {
        let origin = Origin::Server;
        ClientError { origin, ..error }
    }

    #[test]
    fn round_trip_with_and_without_state() {
        let error = ClientError::new(ER_NO_DB_ERROR, &[]);
        let mut out = PacketWriter::new();
        ErrorPacket::encode(&mut out, &error);
        let found = ErrorPacket::decode(&out.as_bytes()[4..]).unwrap();
        assert_eq!(found.to_client_error(), of_server(error));

        let error = ClientError::new(ER_CON_COUNT_ERROR, &[]);
        out.clear();
        ErrorPacket::encode_in_place_of_greeting(&mut out, &error);
        let found = ErrorPacket::decode(&out.as_bytes()[4..]).unwrap();
        assert_eq!(found.sqlstate, None);
        assert_eq!(found.to_client_error(), of_server(error));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>) {
            bytes.insert(0, 0xFF);
            let _ = ErrorPacket::decode(&bytes).map(|error| error.to_client_error());
        }
    }
}
