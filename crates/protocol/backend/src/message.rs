//! [`Message`]: a packet of a reply with its values.

use link::Part;
use wire::{
    Capabilities, ColumnDefinition, CommandByte, EofPacket, ErrorPacket, LocalInfile, Malformed,
    OkPacket, PrepareOk, ResultHead, StatusFlags, TextRowReader,
};

/// How the rows of a reply are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// As texts.
    Text,
    /// As values of their columns' types: a [`wire::BinaryRowReader`] reads them.
    Binary,
}

impl RowForm {
    /// The form of the rows that answer a command.
    pub fn of_command(command_byte: u8) -> RowForm {
        match command_byte {
            CommandByte::STMT_EXECUTE
            | CommandByte::STMT_FETCH
            | CommandByte::STMT_BULK_EXECUTE => RowForm::Binary,
            _ => RowForm::Text,
        }
    }
}

/// A packet of a reply, lent from its bytes.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// A statement without rows went well.
    Ok(OkPacket<'a>),
    /// The command failed; the reply is over.
    Error(ErrorPacket<'a>),
    /// The server waits for a file: send it by [`Server::send_file`](crate::Server::send_file).
    FileRequest(LocalInfile<'a>),
    /// A result set begins.
    Head(ResultHead),
    /// The definition of a column, or of a field that was asked for.
    Column(ColumnDefinition<'a>),
    /// Definitions are over; only from a server without DEPRECATE_EOF.
    ColumnsEnd(EofPacket),
    /// A row of texts.
    TextRow(TextRowReader<'a>),
    /// A row of values.
    BinaryRow(&'a [u8]),
    /// Rows are over.
    RowsEnd(OkPacket<'a>),
    /// A statement is prepared.
    Prepared(PrepareOk),
    /// The definition of a parameter.
    Parameter(ColumnDefinition<'a>),
    /// A bare text.
    Text(&'a [u8]),
    /// What an authentication plugin of the server tells.
    Authentication(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Reads the packet that [`Reply::take`](link::Reply::take) has taken for `part`.
    pub fn decode(
        part: Part,
        payload: &'a [u8],
        capabilities: Capabilities,
        row_form: RowForm,
    ) -> Result<Message<'a>, Malformed> {
        Ok(match part {
            Part::Ok(_) => Message::Ok(OkPacket::decode(payload, capabilities)?),
            Part::Error(_) => Message::Error(ErrorPacket::decode(payload)?),
            Part::FileRequest => Message::FileRequest(LocalInfile::decode(payload)?),
            Part::Head => Message::Head(ResultHead::decode(payload, capabilities)?),
            Part::Column => Message::Column(ColumnDefinition::decode(payload, capabilities)?),
            Part::Parameter => Message::Parameter(ColumnDefinition::decode(payload, capabilities)?),
            Part::ColumnsEnd(_) => Message::ColumnsEnd(EofPacket::decode(payload)?),
            Part::Row if row_form == RowForm::Text => Message::TextRow(TextRowReader::new(payload)),
            Part::Row => Message::BinaryRow(payload),
            Part::RowsEnd(_) => Message::RowsEnd(rows_end(payload, capabilities)?),
            Part::Prepared => Message::Prepared(PrepareOk::decode(payload)?),
            Part::Text => Message::Text(payload),
            Part::Authentication | Part::Authenticated => Message::Authentication(payload),
        })
    }
}

/// The end of rows in either form; of an EOF packet the flags of changes mean nothing.
fn rows_end(payload: &[u8], capabilities: Capabilities) -> Result<OkPacket<'_>, Malformed> {
    if capabilities.contains(Capabilities::DEPRECATE_EOF) {
        return OkPacket::decode(payload, capabilities);
    }
    let eof = EofPacket::decode(payload)?;
    Ok(OkPacket {
        status: eof.status.with(StatusFlags::SESSION_STATE_CHANGED, false),
        warnings: eof.warnings,
        ..OkPacket::default()
    })
}
