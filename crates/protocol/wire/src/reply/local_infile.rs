//! [`LocalInfile`]: the server asks for a file of the client, for LOAD DATA LOCAL. The client
//! answers with packets of the file's bytes, the last one empty.

use crate::cursor::{Cursor, Malformed};
use crate::packet_writer::PacketWriter;

/// A request for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalInfile<'a> {
    /// Name of the file on the client's machine, as the statement gave it.
    pub file_name: &'a [u8],
}

impl<'a> LocalInfile<'a> {
    /// First byte of the packet.
    pub const HEADER: u8 = 0xFB;

    /// Appends the request.
    pub fn encode(&self, out: &mut PacketWriter) {
        let mut packet = out.begin();
        packet.u8(Self::HEADER);
        packet.bytes(self.file_name);
        packet.finish();
    }

    /// Reads the request.
    pub fn decode(payload: &'a [u8]) -> Result<LocalInfile<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("file request")? != Self::HEADER {
            return Err(Malformed::new("file request"));
        }
        Ok(LocalInfile {
            file_name: cursor.rest(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let request = LocalInfile {
            file_name: b"a.csv",
        };
        let mut out = PacketWriter::new();
        request.encode(&mut out);
        assert_eq!(LocalInfile::decode(&out.as_bytes()[4..]), Ok(request));
        assert!(LocalInfile::decode(b"").is_err());
    }
}
