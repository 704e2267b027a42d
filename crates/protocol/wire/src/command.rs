//! [`Command`]: the requests of a client after its login. [`CommandByte`] names the request.

pub(crate) mod bulk_execute;
pub(crate) mod execute;
pub(crate) mod field_list;
pub(crate) mod parameter;

use crate::capability::Capabilities;
use crate::command::bulk_execute::BulkExecute;
use crate::command::execute::Execute;
use crate::command::field_list::FieldList;
use crate::command_byte::CommandByte;
use crate::cursor::{Cursor, Malformed};
use crate::login::change_user::ChangeUser;
use crate::packet_writer::PacketWriter;

/// A command, lent from its packet. Text is in the client's character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// The client disconnects; it gets no answer.
    Quit,
    /// Change the database.
    InitDb(&'a [u8]),
    /// Run the statement, or the statements if that was agreed on.
    Query(&'a [u8]),
    /// List columns of a table.
    FieldList(FieldList<'a>),
    /// FLUSH, in old clients; the bits say what.
    Refresh(u8),
    /// Stop the server.
    Shutdown,
    /// One line of statistics; the answer is a bare text packet.
    Statistics,
    /// SHOW PROCESSLIST, in old clients.
    ProcessInfo,
    /// KILL, in old clients.
    ProcessKill {
        /// The connection's number.
        connection_id: u32,
    },
    /// Dump the server's state to its log.
    Debug,
    /// Are you there?
    Ping,
    /// Log in again.
    ChangeUser(ChangeUser<'a>),
    /// Prepare the statement.
    Prepare(&'a [u8]),
    /// Run a prepared statement.
    Execute(Execute<'a>),
    /// A piece of a parameter; gets no answer, not even an error.
    SendLongData {
        /// Which statement.
        statement_id: u32,
        /// Which parameter, from 0.
        parameter: u16,
        /// The piece.
        data: &'a [u8],
    },
    /// Close a prepared statement; gets no answer, not even an error.
    CloseStatement {
        /// Which statement.
        statement_id: u32,
    },
    /// Close a statement's cursor and drop its long data.
    ResetStatement {
        /// Which statement.
        statement_id: u32,
    },
    /// Allow several statements in one query, or not. Answered by EOF, or OK in its place.
    SetMultiStatements(bool),
    /// Rows from a cursor.
    Fetch {
        /// Which statement.
        statement_id: u32,
        /// How many rows.
        row_count: u32,
    },
    /// Reset the session to its initial state, without a login.
    ResetConnection,
    /// Run a prepared statement for many rows of parameters.
    BulkExecute(BulkExecute<'a>),
    /// A command that does not exist or is not supported (error 1047).
    Unknown(u8),
}

impl<'a> Command<'a> {
    /// Reads a command's packet. An empty packet is malformed.
    pub fn decode(payload: &'a [u8], capabilities: Capabilities) -> Result<Command<'a>, Malformed> {
        let mut cursor = Cursor::new(payload);
        let byte = cursor.u8("command")?;
        match byte {
            CommandByte::QUERY => Ok(Command::Query(cursor.rest())),
            CommandByte::STMT_EXECUTE => Execute::decode(cursor.rest()).map(Command::Execute),
            CommandByte::STMT_PREPARE => Ok(Command::Prepare(cursor.rest())),
            CommandByte::INIT_DB => Ok(Command::InitDb(cursor.rest())),
            CommandByte::CHANGE_USER => {
                ChangeUser::decode(cursor.rest(), capabilities).map(Command::ChangeUser)
            }
            CommandByte::FIELD_LIST => FieldList::decode(cursor.rest()).map(Command::FieldList),
            CommandByte::STMT_BULK_EXECUTE => {
                BulkExecute::decode(cursor.rest()).map(Command::BulkExecute)
            }
            _ => Command::decode_numbers(byte, cursor),
        }
    }

    /// Reads commands whose body is numbers, or nothing.
    fn decode_numbers(byte: u8, mut cursor: Cursor<'a>) -> Result<Command<'a>, Malformed> {
        const STATEMENT_ID: &str = "statement id";
        Ok(match byte {
            CommandByte::QUIT => Command::Quit,
            CommandByte::PING => Command::Ping,
            CommandByte::DEBUG => Command::Debug,
            CommandByte::SHUTDOWN => Command::Shutdown,
            CommandByte::STATISTICS => Command::Statistics,
            CommandByte::PROCESS_INFO => Command::ProcessInfo,
            CommandByte::RESET_CONNECTION => Command::ResetConnection,
            CommandByte::REFRESH => Command::Refresh(cursor.u8("refresh bits")?),
            CommandByte::PROCESS_KILL => Command::ProcessKill {
                connection_id: cursor.u32("connection id")?,
            },
            CommandByte::SET_OPTION => match cursor.u16("option")? {
                0 => Command::SetMultiStatements(true),
                1 => Command::SetMultiStatements(false),
                _ => Command::Unknown(byte),
            },
            CommandByte::STMT_SEND_LONG_DATA => Command::SendLongData {
                statement_id: cursor.u32(STATEMENT_ID)?,
                parameter: cursor.u16("parameter number")?,
                data: cursor.rest(),
            },
            CommandByte::STMT_CLOSE => Command::CloseStatement {
                statement_id: cursor.u32(STATEMENT_ID)?,
            },
            CommandByte::STMT_RESET => Command::ResetStatement {
                statement_id: cursor.u32(STATEMENT_ID)?,
            },
            CommandByte::STMT_FETCH => Command::Fetch {
                statement_id: cursor.u32(STATEMENT_ID)?,
                row_count: cursor.u32("row count")?,
            },
            _ => Command::Unknown(byte),
        })
    }

    /// Whether the protocol has no answer to a packet that could not be decoded.
    pub fn is_silent_packet(payload: &[u8]) -> bool {
        let silent = [CommandByte::STMT_SEND_LONG_DATA, CommandByte::STMT_CLOSE];
        payload.first().is_some_and(|byte| silent.contains(byte))
    }

    /// Whether the protocol has no answer to this command.
    pub fn is_silent(&self) -> bool {
        matches!(
            self,
            Command::Quit | Command::SendLongData { .. } | Command::CloseStatement { .. }
        )
    }

    /// Appends a command of a byte and a body.
    pub fn encode(out: &mut PacketWriter, byte: u8, body: &[u8]) {
        let mut packet = out.begin();
        packet.u8(byte);
        packet.bytes(body);
        packet.finish();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(payload: &[u8]) -> Result<Command<'_>, Malformed> {
        Command::decode(payload, Capabilities::SERVER)
    }

    #[test]
    fn each_byte_is_its_command() {
        assert_eq!(decode(b"\x03SELECT 1"), Ok(Command::Query(b"SELECT 1")));
        assert_eq!(decode(b"\x02db"), Ok(Command::InitDb(b"db")));
        assert_eq!(decode(b"\x16SELECT ?"), Ok(Command::Prepare(b"SELECT ?")));
        assert_eq!(
            decode(b"\x04t\0c%"),
            Ok(Command::FieldList(FieldList {
                table: b"t",
                pattern: b"c%"
            }))
        );
        assert_eq!(
            decode(b"\x18\x07\0\0\0\x01\0data"),
            Ok(Command::SendLongData {
                statement_id: 7,
                parameter: 1,
                data: b"data"
            })
        );
        assert_eq!(
            decode(b"\x19\x07\0\0\0"),
            Ok(Command::CloseStatement { statement_id: 7 })
        );
        assert_eq!(
            decode(b"\x1A\x07\0\0\0"),
            Ok(Command::ResetStatement { statement_id: 7 })
        );
        assert_eq!(
            decode(b"\x1C\x07\0\0\0\x09\0\0\0"),
            Ok(Command::Fetch {
                statement_id: 7,
                row_count: 9
            })
        );
        assert_eq!(decode(b"\x1B\0\0"), Ok(Command::SetMultiStatements(true)));
        assert_eq!(
            decode(b"\x1B\x01\0"),
            Ok(Command::SetMultiStatements(false))
        );
        assert_eq!(
            decode(b"\x0C\x05\0\0\0"),
            Ok(Command::ProcessKill { connection_id: 5 })
        );
        assert_eq!(decode(b"\x01"), Ok(Command::Quit));
        assert_eq!(decode(b"\x0E"), Ok(Command::Ping));
        assert_eq!(decode(b"\x1F"), Ok(Command::ResetConnection));
        assert_eq!(decode(b"\x12"), Ok(Command::Unknown(0x12)));
        assert!(decode(b"").is_err());
        assert!(decode(b"\x19\x07").is_err());
    }

    #[test]
    fn commands_without_answer() {
        assert!(Command::Quit.is_silent());
        assert!(Command::CloseStatement { statement_id: 1 }.is_silent());
        assert!(!Command::Ping.is_silent());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(byte: u8, body: Vec<u8>, bits: u64) {
            let mut out = PacketWriter::new();
            Command::encode(&mut out, byte, &body);
            let _ = Command::decode(&out.as_bytes()[4..], Capabilities(bits));
        }
    }
}
