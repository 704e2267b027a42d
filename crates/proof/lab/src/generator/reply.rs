//! Finds the end of a statement's reply, packet by packet, at the least cost.
//!
//! ```text
//! Head -> over                         (OK, or ERR)
//! Head -> Definitions -> Rows -> over  (EOF, or ERR)
//! Head -> DefinitionsEnd -> Rows       (definitions left out: MARIADB_CACHE_METADATA)
//! ```

use anyhow::{Context, Result, ensure};
use wire::{Capabilities, EofPacket, ErrorPacket, ResultHead};

/// How a statement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    /// The server's error number and text.
    Failed(u16, String),
}

/// The expected part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Head,
    Definitions(u64),
    DefinitionsEnd,
    Rows,
}

impl Reply {
    /// Takes the next packet. Returns how the statement ended, if it was the last one.
    pub(super) fn take(
        &mut self,
        payload: &[u8],
        capabilities: Capabilities,
    ) -> Result<Option<Ending>> {
        let first = *payload.first().context("a packet has bytes")?;
        if first == ErrorPacket::HEADER && *self != Reply::DefinitionsEnd {
            let error = ErrorPacket::decode(payload)?;
            let message = String::from_utf8_lossy(error.message).into_owned();
            return Ok(Some(Ending::Failed(error.code.number(), message)));
        }
        let is_end = first == EofPacket::HEADER && payload.len() < 9;
        *self = match *self {
            Reply::Head if first == 0 => return Ok(Some(Ending::Done)),
            Reply::Head => {
                let head = ResultHead::decode(payload, capabilities)?;
                match head.has_definitions {
                    true => Reply::Definitions(head.column_count),
                    false => Reply::DefinitionsEnd,
                }
            }
            Reply::Definitions(1) => Reply::DefinitionsEnd,
            Reply::Definitions(left) => Reply::Definitions(left - 1),
            Reply::DefinitionsEnd => {
                ensure!(is_end, "column definitions end with EOF");
                Reply::Rows
            }
            Reply::Rows if is_end => return Ok(Some(Ending::Done)),
            Reply::Rows => Reply::Rows,
        };
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(packets: &[&[u8]], capabilities: Capabilities) -> Vec<Option<Ending>> {
        let mut reply = Reply::Head;
        let mut take = |packet: &&[u8]| reply.take(packet, capabilities).unwrap();
        packets.iter().map(&mut take).collect()
    }

    #[test]
    fn replies_end_where_they_do() {
        let plain = Capabilities::SERVER;
        let eof: &[u8] = b"\xfe\0\0\x02\0";
        assert_eq!(ending(&[b"\0\0\0\x02\0\0\0"], plain), [Some(Ending::Done)]);
        let rows = ending(&[b"\x01", b"\x03def", eof, b"\xfe12345678", eof], plain);
        assert_eq!(rows, [None, None, None, None, Some(Ending::Done)]);
        let cached = Capabilities::MARIADB_CACHE_METADATA;
        let rows = ending(&[b"\x01\0", eof, b"\x011", eof], cached);
        assert_eq!(rows, [None, None, None, Some(Ending::Done)]);
        let failed = ending(&[b"\xff\xbd\x04#40001Deadlock"], plain);
        assert_eq!(failed, [Some(Ending::Failed(1213, "Deadlock".to_owned()))]);
    }
}
