//! [`Reply`]: which packets answer a command, and where the answer ends. No I/O.
//!
//! ```text
//! Result --OK, no more results--> Over          Result --count--> Columns --EOF--> Rows
//!    ^  \--error--> Over                        Columns --(no EOF agreed)--> Rows
//!    |   \--file wanted--> Result               Rows --row--> Rows
//!    +---- end with MORE_RESULTS ----------------+--end--> Over
//! Prepared --OK--> Parameters --EOF--> PreparedColumns --EOF--> Over
//! Fields --definition--> Fields --end--> Over          Text, Verdict --packet--> Over
//! Login --question, bounded in number--> Login --OK--> Over
//! ```
//!
//! An error ends the reply in each state. Of most packets the first byte and the length are enough,
//! so a row need not be there whole; of those that end something the first bytes are looked at.
//! [`Reply::take`] returns `None` until there are enough.
//!
//! Progress reports and result sets without definitions are not known here: a client must not ask
//! for MARIADB_PROGRESS, MARIADB_CACHE_METADATA and OPTIONAL_METADATA.

use errcode::ErrorCode;
use wire::{
    Capabilities, CommandByte, Cursor, EofPacket, ErrorPacket, FRAME_BYTES_MAX, LocalInfile,
    Malformed, StatusFlags,
};

/// What a packet of a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A statement without rows went well.
    Ok(StatusFlags),
    /// The command failed, with this error. The reply is over.
    Error(ErrorCode),
    /// The server waits for a file of the client.
    FileRequest,
    /// The number of columns: a result set begins.
    Head,
    /// The definition of a column.
    Column,
    /// The EOF packet behind definitions.
    ColumnsEnd(StatusFlags),
    /// A row, or an event of the binary log.
    Row,
    /// Rows are over, or the rows of a cursor wait to be fetched.
    RowsEnd(StatusFlags),
    /// A statement is prepared.
    Prepared,
    /// The definition of a parameter.
    Parameter,
    /// A bare text.
    Text,
    /// The server asks for more before it lets another user in.
    Authentication,
    /// The server says that a password was right; the verdict follows.
    Authenticated,
}

/// What the next packet may be, besides an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The first of a result.
    Result,
    Columns {
        left: u64,
    },
    ColumnsEnd,
    Rows,
    Prepared,
    Parameters {
        left: u16,
        columns: u16,
    },
    ParametersEnd {
        columns: u16,
    },
    PreparedColumns {
        left: u16,
    },
    PreparedColumnsEnd,
    /// Definitions up to an end.
    Fields,
    Text,
    /// OK, or EOF in its place.
    Verdict,
    Login {
        /// Packets that it may still have.
        left: u32,
    },
    Over,
}

/// Most packets of a login, with its end; no exchange needs as many.
pub const LOGIN_PACKETS_MAX: u32 = 16;

/// Bytes of a packet in which an OK packet has its status and its warnings: one, two numbers of up
/// to nine, two, two.
const HEAD_BYTES: usize = 23;

const OK_HEADER: u8 = 0x00;

/// `caching_sha2_password`: the server knows the password already, and asks for nothing.
const FAST_AUTHENTICATION: &[u8] = &[0x01, 0x03];

/// Commands of replicas; their names are not in [`CommandByte`], since no server here answers them.
const BINLOG_DUMP: u8 = 18;
const BINLOG_DUMP_GTID: u8 = 30;

/// Whether a command asks for the binary log.
pub(crate) fn is_dump(command_byte: u8) -> bool {
    matches!(command_byte, BINLOG_DUMP | BINLOG_DUMP_GTID)
}

/// What a packet is, and the place behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) part: Part,
    next: Expected,
}

/// The place in the reply to one command.
#[derive(Debug, Clone)]
pub struct Reply {
    expected: Expected,
    capabilities: Capabilities,
}

impl Reply {
    /// The reply to a command that starts with `command_byte`, over a connection of the agreed
    /// `capabilities`. It is over at once if the protocol has no answer to the command.
    pub fn new(command_byte: u8, capabilities: Capabilities) -> Reply {
        let expected = match command_byte {
            CommandByte::QUIT | CommandByte::STMT_SEND_LONG_DATA | CommandByte::STMT_CLOSE => {
                Expected::Over
            }
            CommandByte::QUERY
            | CommandByte::STMT_EXECUTE
            | CommandByte::STMT_BULK_EXECUTE
            | CommandByte::PROCESS_INFO => Expected::Result,
            CommandByte::STMT_FETCH | BINLOG_DUMP | BINLOG_DUMP_GTID => Expected::Rows,
            CommandByte::STMT_PREPARE => Expected::Prepared,
            CommandByte::FIELD_LIST => Expected::Fields,
            CommandByte::STATISTICS => Expected::Text,
            CommandByte::CHANGE_USER => Expected::Login {
                left: LOGIN_PACKETS_MAX,
            },
            _ => Expected::Verdict,
        };
        Reply {
            expected,
            capabilities,
        }
    }

    /// Whether no packet of it is to come.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.expected == Expected::Over
    }

    /// Whether a definition is the last of its list.
    pub(crate) fn leaves_list(&self, definition: Step) -> bool {
        !matches!(
            (self.expected, definition.next),
            (Expected::Columns { .. }, Expected::Columns { .. })
                | (Expected::Parameters { .. }, Expected::Parameters { .. })
                | (
                    Expected::PreparedColumns { .. },
                    Expected::PreparedColumns { .. }
                )
                | (Expected::Fields, Expected::Fields)
        )
    }

    /// Takes a packet whose first frame has `length` bytes of payload, of which `payload` is there;
    /// what follows a whole payload is not looked at. `None` if more of it is needed.
    pub fn take(&mut self, length: usize, payload: &[u8]) -> Result<Option<Part>, Malformed> {
        let step = self.step(length, payload)?;
        if let Some(step) = step {
            self.go(step);
        }
        Ok(step.map(|step| step.part))
    }

    /// Goes behind a packet.
    #[inline]
    pub(crate) fn go(&mut self, step: Step) {
        self.expected = step.next;
    }

    /// As [`Reply::take`], and stays before the packet.
    #[inline]
    pub(crate) fn step(&self, length: usize, payload: &[u8]) -> Result<Option<Step>, Malformed> {
        let payload = payload.get(..length).unwrap_or(payload);
        let Some(first) = payload.first().copied() else {
            return match length {
                0 => Err(malformed("empty packet of a reply")),
                _ => Ok(None),
            };
        };
        let is_last = first == ErrorPacket::HEADER || self.is_end(first, length);
        if self.expected == Expected::Rows && !is_last {
            let (part, next) = (Part::Row, self.expected);
            return Ok(Some(Step { part, next }));
        }
        if payload.len() < length.min(HEAD_BYTES) {
            return Ok(None);
        }
        if first == ErrorPacket::HEADER && self.expected != Expected::Over {
            let (part, next) = (Part::Error(error_code(payload)?), Expected::Over);
            return Ok(Some(Step { part, next }));
        }
        let (part, next) = self.expected_step(first, length, payload)?;
        Ok(Some(Step { part, next }))
    }

    /// Whether a packet ends rows or definitions.
    #[inline]
    fn is_end(&self, first: u8, length: usize) -> bool {
        let has_ok = self.capabilities.contains(Capabilities::DEPRECATE_EOF);
        let length_max = if has_ok { FRAME_BYTES_MAX } else { 9 };
        first == EofPacket::HEADER && length < length_max
    }

    fn expected_step(
        &self,
        first: u8,
        length: usize,
        payload: &[u8],
    ) -> Result<(Part, Expected), Malformed> {
        let is_end = self.is_end(first, length);
        match self.expected {
            Expected::Result => result(first, payload),
            Expected::Columns { left } => Ok((Part::Column, self.after_column(left))),
            Expected::ColumnsEnd if is_end => columns_end(payload),
            Expected::Rows | Expected::Fields if is_end => self.rows_end(payload),
            Expected::Fields => Ok((Part::Column, Expected::Fields)),
            Expected::Prepared if first == OK_HEADER => self.prepared(payload),
            Expected::Parameters { left, columns } => {
                Ok((Part::Parameter, self.after_parameter(left, columns)))
            }
            Expected::ParametersEnd { columns } if is_end => {
                let part = Part::ColumnsEnd(eof_status(payload)?);
                Ok((part, prepared_columns(columns)))
            }
            Expected::PreparedColumns { left } => {
                Ok((Part::Column, self.after_prepared_column(left)))
            }
            Expected::PreparedColumnsEnd if is_end => {
                Ok((Part::ColumnsEnd(eof_status(payload)?), Expected::Over))
            }
            Expected::Text => Ok((Part::Text, Expected::Over)),
            Expected::Verdict => Ok((verdict(first, payload)?, Expected::Over)),
            Expected::Login { left } => login(first, payload, left),
            Expected::ColumnsEnd
            | Expected::Rows
            | Expected::Prepared
            | Expected::ParametersEnd { .. }
            | Expected::PreparedColumnsEnd
            | Expected::Over => Err(malformed("packet that the reply does not have here")),
        }
    }

    fn has_column_ends(&self) -> bool {
        !self.capabilities.contains(Capabilities::DEPRECATE_EOF)
    }

    fn after_column(&self, left: u64) -> Expected {
        match left - 1 {
            0 if self.has_column_ends() => Expected::ColumnsEnd,
            0 => Expected::Rows,
            left => Expected::Columns { left },
        }
    }

    fn rows_end(&self, payload: &[u8]) -> Result<(Part, Expected), Malformed> {
        let status = if self.has_column_ends() {
            eof_status(payload)?
        } else {
            ok_status(payload)?
        };
        Ok((Part::RowsEnd(status), after_result(status)))
    }

    fn prepared(&self, payload: &[u8]) -> Result<(Part, Expected), Malformed> {
        let mut cursor = Cursor::new(payload);
        cursor.bytes(5, "prepare header")?;
        let columns = cursor.u16("column count")?;
        let left = cursor.u16("parameter count")?;
        let next = match left {
            0 => prepared_columns(columns),
            _ => Expected::Parameters { left, columns },
        };
        Ok((Part::Prepared, next))
    }

    fn after_parameter(&self, left: u16, columns: u16) -> Expected {
        match left - 1 {
            0 if self.has_column_ends() => Expected::ParametersEnd { columns },
            0 => prepared_columns(columns),
            left => Expected::Parameters { left, columns },
        }
    }

    fn after_prepared_column(&self, left: u16) -> Expected {
        match left - 1 {
            0 if self.has_column_ends() => Expected::PreparedColumnsEnd,
            0 => Expected::Over,
            left => Expected::PreparedColumns { left },
        }
    }
}

fn result(first: u8, payload: &[u8]) -> Result<(Part, Expected), Malformed> {
    match first {
        OK_HEADER => {
            let status = ok_status(payload)?;
            Ok((Part::Ok(status), after_result(status)))
        }
        LocalInfile::HEADER => Ok((Part::FileRequest, Expected::Result)),
        _ => {
            let left = Cursor::new(payload).lenenc("column count")?;
            if left == 0 {
                return Err(malformed("column count"));
            }
            Ok((Part::Head, Expected::Columns { left }))
        }
    }
}

fn columns_end(payload: &[u8]) -> Result<(Part, Expected), Malformed> {
    let status = eof_status(payload)?;
    if status.contains(StatusFlags::CURSOR_EXISTS) {
        return Ok((Part::RowsEnd(status), after_result(status)));
    }
    Ok((Part::ColumnsEnd(status), Expected::Rows))
}

fn after_result(status: StatusFlags) -> Expected {
    let has_more = status.contains(StatusFlags::MORE_RESULTS);
    if has_more {
        Expected::Result
    } else {
        Expected::Over
    }
}

fn prepared_columns(columns: u16) -> Expected {
    match columns {
        0 => Expected::Over,
        left => Expected::PreparedColumns { left },
    }
}

fn verdict(first: u8, payload: &[u8]) -> Result<Part, Malformed> {
    match first {
        OK_HEADER => ok_status(payload).map(Part::Ok),
        EofPacket::HEADER if payload.len() == 5 => eof_status(payload).map(Part::RowsEnd),
        EofPacket::HEADER => ok_status(payload).map(Part::RowsEnd),
        _ => Err(malformed("verdict of a command")),
    }
}

/// A server's plugin may send anything that does not begin as an OK packet.
fn login(first: u8, payload: &[u8], left: u32) -> Result<(Part, Expected), Malformed> {
    if first == OK_HEADER {
        return Ok((Part::Ok(ok_status(payload)?), Expected::Over));
    }
    let part = match payload {
        FAST_AUTHENTICATION => Part::Authenticated,
        _ => Part::Authentication,
    };
    match left - 1 {
        0 => Err(malformed("login without an end")),
        left => Ok((part, Expected::Login { left })),
    }
}

const fn malformed(what: &'static str) -> Malformed {
    Malformed { what }
}

/// The status in the first bytes of an OK packet.
fn ok_status(payload: &[u8]) -> Result<StatusFlags, Malformed> {
    let mut cursor = Cursor::new(payload);
    cursor.u8("OK header")?;
    cursor.lenenc("affected rows")?;
    cursor.lenenc("last insert id")?;
    cursor.u16("status").map(StatusFlags)
}

/// The number of an error packet. Its text is not needed, and need not be there.
fn error_code(payload: &[u8]) -> Result<ErrorCode, Malformed> {
    match *payload {
        [ErrorPacket::HEADER, low, high, ..] => Ok(ErrorCode(u16::from_le_bytes([low, high]))),
        _ => Err(malformed("short error packet")),
    }
}

/// The status of an EOF packet.
fn eof_status(payload: &[u8]) -> Result<StatusFlags, Malformed> {
    EofPacket::decode(payload).map(|packet| packet.status)
}

#[cfg(test)]
mod tests {
    use errcode::ER_NO_TABLES_USED;
    use wire::{
        ColumnDefinition, ColumnType, OkPacket, PacketWriter, PrepareOk, ResultHead, TextRow,
        end_columns, end_rows,
    };

    use super::*;

    const OLD: Capabilities = Capabilities::PROTOCOL_41;
    const NEW: Capabilities = Capabilities(OLD.0 | Capabilities::DEPRECATE_EOF.0);

    /// The parts of a stream of whole packets, up to the reply's end, and what is left of it.
    fn parts(reply: &mut Reply, mut stream: &[u8]) -> (Vec<Part>, usize) {
        let mut parts = Vec::new();
        while !reply.is_over() && !stream.is_empty() {
            let length = usize::from(stream[0]) | usize::from(stream[1]) << 8;
            let payload = &stream[4..];
            let looked_at = payload.len().min(length);
            // Each number of bytes up to the whole gives the same answer or none.
            for count in 0..looked_at {
                let mut other = reply.clone();
                match other.take(length, &payload[..count]) {
                    Ok(None) => {}
                    early => assert_eq!(early, reply.clone().take(length, payload)),
                }
            }
            parts.push(reply.take(length, payload).unwrap().unwrap());
            stream = &stream[4 + length..];
        }
        (parts, stream.len())
    }

    fn result_set(out: &mut PacketWriter, capabilities: Capabilities, status: StatusFlags) {
        let ok = OkPacket {
            status,
            ..OkPacket::default()
        };
        ResultHead::encode(out, capabilities, 1);
        ColumnDefinition::new(b"c", ColumnType::String).encode(out, capabilities);
        end_columns(out, capabilities, StatusFlags::AUTOCOMMIT, 0);
        for _ in 0..2 {
            let mut row = TextRow::begin(out);
            row.bytes(b"value");
            row.finish();
        }
        end_rows(out, capabilities, &ok);
    }

    #[test]
    fn result_sets_end_where_their_last_says_so() {
        for capabilities in [OLD, NEW] {
            let mut out = PacketWriter::new();
            let more = StatusFlags(StatusFlags::MORE_RESULTS.0 | 2);
            result_set(&mut out, capabilities, more);
            result_set(&mut out, capabilities, StatusFlags::AUTOCOMMIT);
            out.packet(b"behind");
            let mut reply = Reply::new(CommandByte::QUERY, capabilities);
            let (parts, left) = parts(&mut reply, out.as_bytes());
            assert_eq!(left, 10);
            let ends: Vec<Part> = parts
                .iter()
                .copied()
                .filter(|part| matches!(part, Part::RowsEnd(_)))
                .collect();
            let last = Part::RowsEnd(StatusFlags::AUTOCOMMIT);
            assert_eq!(ends, [Part::RowsEnd(more), last]);
            let rows = parts.iter().filter(|part| **part == Part::Row).count();
            assert_eq!(rows, 4);
        }
    }

    #[test]
    fn a_row_that_starts_like_an_end_is_none() {
        let mut reply = Reply::new(CommandByte::STMT_FETCH, OLD);
        let nine = [0xFE; 9];
        assert_eq!(reply.take(9, &nine), Ok(Some(Part::Row)));
        let mut reply = Reply::new(CommandByte::STMT_FETCH, NEW);
        let row = reply.take(FRAME_BYTES_MAX, &nine);
        assert_eq!(row, Ok(Some(Part::Row)));
        let end = reply.take(7, b"\xFE\0\0\x02\0\0\0");
        assert_eq!(end, Ok(Some(Part::RowsEnd(StatusFlags::AUTOCOMMIT))));
        assert!(reply.is_over());
    }

    #[test]
    fn prepared_statements_have_two_lists() {
        for (capabilities, count) in [(OLD, 6), (NEW, 4)] {
            let mut out = PacketWriter::new();
            let answer = PrepareOk {
                statement_id: 1,
                column_count: 1,
                parameter_count: 2,
                warnings: 0,
            };
            answer.encode(&mut out);
            let column = ColumnDefinition::new(b"c", ColumnType::String);
            for definitions in [2, 1] {
                for _ in 0..definitions {
                    column.encode(&mut out, capabilities);
                }
                end_columns(&mut out, capabilities, StatusFlags::AUTOCOMMIT, 0);
            }
            let mut reply = Reply::new(CommandByte::STMT_PREPARE, capabilities);
            let (parts, left) = parts(&mut reply, out.as_bytes());
            assert_eq!((parts.len(), left), (count, 0));
            assert!(reply.is_over());
        }
        let mut reply = Reply::new(CommandByte::STMT_PREPARE, NEW);
        let nothing = reply.take(12, &[0; 12]);
        assert_eq!(nothing, Ok(Some(Part::Prepared)));
        assert!(reply.is_over());
    }

    #[test]
    fn a_cursor_ends_the_reply_with_its_columns() {
        let cursor = StatusFlags(StatusFlags::CURSOR_EXISTS.0 | 2);
        for capabilities in [OLD, NEW] {
            let ok = OkPacket {
                status: cursor,
                ..OkPacket::default()
            };
            let mut out = PacketWriter::new();
            ResultHead::encode(&mut out, capabilities, 1);
            ColumnDefinition::new(b"c", ColumnType::String).encode(&mut out, capabilities);
            end_rows(&mut out, capabilities, &ok);
            let mut reply = Reply::new(CommandByte::STMT_EXECUTE, capabilities);
            let (parts, _) = parts(&mut reply, out.as_bytes());
            assert_eq!(parts, [Part::Head, Part::Column, Part::RowsEnd(cursor)]);
            assert!(reply.is_over());
        }
    }

    #[test]
    fn other_commands_have_replies_of_their_own() {
        let ok = b"\0\0\0\x02\0\0\0";
        let done = Some(Part::Ok(StatusFlags::AUTOCOMMIT));
        for (byte, payload, part, is_over) in [
            (CommandByte::PING, &ok[..], done, true),
            (
                CommandByte::CHANGE_USER,
                b"\xFEname\0data",
                Some(Part::Authentication),
                false,
            ),
            (CommandByte::CHANGE_USER, ok, done, true),
            (
                CommandByte::STATISTICS,
                b"Uptime: 1",
                Some(Part::Text),
                true,
            ),
            (
                CommandByte::SET_OPTION,
                b"\xFE\0\0\x02\0",
                Some(Part::RowsEnd(StatusFlags(2))),
                true,
            ),
            (
                CommandByte::QUERY,
                b"\xFBfile",
                Some(Part::FileRequest),
                false,
            ),
            (
                CommandByte::QUERY,
                b"\xFF\x48\x04#HY000no",
                Some(Part::Error(ER_NO_TABLES_USED)),
                true,
            ),
            (
                CommandByte::FIELD_LIST,
                b"\x03def",
                Some(Part::Column),
                false,
            ),
        ] {
            let mut reply = Reply::new(byte, OLD);
            assert_eq!(reply.take(payload.len(), payload), Ok(part), "{byte}");
            assert_eq!(reply.is_over(), is_over, "{byte}");
        }
        for silent in [CommandByte::QUIT, CommandByte::STMT_CLOSE] {
            assert!(Reply::new(silent, OLD).is_over());
        }
    }

    #[test]
    fn what_a_reply_cannot_have_is_refused() {
        for (byte, payload) in [
            (CommandByte::QUERY, &b""[..]),
            (CommandByte::QUERY, b"\0\0"),
            (CommandByte::PING, b"\x05"),
            (CommandByte::STMT_PREPARE, b"\x01"),
            (CommandByte::QUERY, b"\xFF\x48"),
            (CommandByte::STMT_CLOSE, b"\0\0\0\x02\0\0\0"),
        ] {
            let mut reply = Reply::new(byte, OLD);
            assert!(reply.take(payload.len(), payload).is_err(), "{byte}");
        }
    }
}
