//! Results on their way to the client's output buffer.

use std::borrow::Cow;

use executor::{Execution, ExecutionContext, Flow, Outcome, Progress, RowSink};
use expression::Failure;
use front::{Client, FLUSH_BYTES};
use planner::{KeyFlag, OutputColumn, Plan};
use settings::SqlMode;
use value::{Charset, CollationId, GeometryKind, TypeKind, Value, ValueRef};
use wire::{ColumnDefinition, ColumnFlags, ResultHead, StatusFlags};

use crate::connection::kept_rows::CursorRows;
use crate::connection::row_encoder::{Appended, RowEncoder, RowProtocol};
use crate::connection::state::State;

/// The collation number of columns that are no text.
const BINARY_COLLATION: u16 = 63;

/// Writes one result set. Between the steps of an execution the session sends the pending output.
/// So the sink is created again for each step, around what stays: [`ResultState`].
#[derive(Debug)]
pub struct PacketSink<'s> {
    /// Where packets go.
    pub client: &'s mut Client,
    /// What stays from step to step.
    pub result: &'s mut ResultState,
    /// The session, which counts the memory of long rows.
    pub(crate) state: &'s State,
}

/// A result set that is being written.
#[derive(Debug)]
pub struct ResultState {
    /// The protocol of its rows.
    protocol: RowProtocol,
    /// `character_set_results`.
    charset: Option<Charset>,
    /// Status flags for the end of the column definitions.
    status: StatusFlags,
    /// Set once the head is written.
    encoder: Option<RowEncoder>,
    /// Rows written.
    pub row_count: u64,
}

impl ResultState {
    /// A result of which nothing has been written yet.
    pub fn new(protocol: RowProtocol, charset: Option<Charset>, status: StatusFlags) -> Self {
        Self {
            protocol,
            charset,
            status,
            encoder: None,
            row_count: 0,
        }
    }

    /// Writes all rows of a result that the server composes itself. They are sent later, so all of
    /// them count as memory that the session keeps.
    ///
    /// # Errors
    /// Those of a row; the head is written, and perhaps some rows.
    pub(crate) fn write_all(
        &mut self,
        columns: &[OutputColumn],
        rows: &[Vec<Value>],
        client: &mut Client,
        state: &State,
    ) -> Result<(), Failure> {
        begin_result(client, self, columns, state)?;
        let encoder = self.encoder.as_ref().expect("the head is written");
        for row in rows {
            let values: Vec<_> = row.iter().map(Value::as_ref).collect();
            write_row(client, encoder, &values, state)?;
            if FLUSH_BYTES <= client.out().pending_bytes() {
                client.set_output_aside();
                state.count_reply(client.long_packet_bytes())?;
                state.give_way()?;
            }
        }
        Ok(())
    }

    /// True once the head is written, so that the client expects rows or an error.
    pub fn has_begun(&self) -> bool {
        self.encoder.is_some()
    }
}

/// Where the rows of a run go.
pub(crate) enum Rows<'r> {
    /// To the client.
    Client(&'r mut ResultState),
    /// To what keeps them: a cursor, or the variables of INTO.
    Kept(&'r mut CursorRows),
    /// To a sink of the session's own.
    Own {
        sink: &'r mut dyn RowSink,
        /// Whether a doubtful value is an error, as for rows that are written.
        is_strict: bool,
    },
}

impl Rows<'_> {
    /// Whether a doubtful value is an error in the plan's execution.
    pub(crate) fn is_strict(&self, plan: &Plan, mode: SqlMode) -> bool {
        match self {
            Self::Own { is_strict, .. } => *is_strict,
            Self::Client(_) | Self::Kept(_) => {
                plan.is_write() && !plan.is_ignore() && mode.is_strict()
            }
        }
    }

    /// One step of an execution whose rows go there.
    pub(crate) fn step(
        &mut self,
        execution: &mut Execution,
        world: &mut ExecutionContext<'_>,
        client: &mut Client,
        state: &State,
    ) -> Outcome<Progress> {
        match self {
            Self::Own { sink, .. } => execution.step(world, *sink),
            Self::Kept(rows) => execution.step(world, *rows),
            Self::Client(result) => {
                let mut sink = PacketSink {
                    client,
                    result,
                    state,
                };
                execution.step(world, &mut sink)
            }
        }
    }

    /// Writes the columns of a result for the client, if they are not written yet. Returns false if
    /// the rows do not go to the client.
    pub(crate) fn begin(
        &mut self,
        columns: &[OutputColumn],
        client: &mut Client,
        state: &State,
    ) -> Result<bool, Failure> {
        match self {
            Self::Client(result) => {
                begin_result(client, result, columns, state)?;
                Ok(true)
            }
            Self::Kept(_) | Self::Own { .. } => Ok(false),
        }
    }

    /// True if there are rows that cannot be withdrawn.
    pub(crate) fn has_sent_any(&self) -> bool {
        match self {
            Self::Client(result) => result.row_count != 0,
            Self::Kept(_) | Self::Own { .. } => false,
        }
    }

    /// Forgets the rows that are kept: the statement begins again.
    pub(crate) fn forget(&mut self) {
        if let Self::Kept(rows) = self {
            rows.clear();
        }
    }
}

/// Writes the head of the result, once.
///
/// # Errors
/// 1290 or 1041 if there is no memory for it; nothing was written then.
fn begin_result(
    client: &mut Client,
    result: &mut ResultState,
    columns: &[OutputColumn],
    state: &State,
) -> Result<(), Failure> {
    if result.has_begun() {
        return Ok(());
    }
    reserve_columns(client, columns, state)?;
    let capabilities = client.capabilities();
    ResultHead::encode(client.out(), capabilities, columns.len());
    write_columns(client, columns, result.charset);
    wire::end_columns(client.out(), capabilities, result.status, 0);
    let types = columns.iter().map(|column| &column.column_type);
    result.encoder = Some(RowEncoder::new(types, result.protocol, result.charset));
    Ok(())
}

impl RowSink for PacketSink<'_> {
    fn columns(&mut self, columns: &[OutputColumn]) -> Outcome<()> {
        // The head may be there: the statement was begun again, or its client was in doubt.
        begin_result(self.client, self.result, columns, self.state)?;
        Ok(())
    }

    #[inline]
    fn row(&mut self, row: &[ValueRef<'_>]) -> Outcome<Flow> {
        let encoder = self
            .result
            .encoder
            .as_ref()
            .expect("columns come before rows");
        write_row(self.client, encoder, row, self.state)?;
        self.result.row_count += 1;
        Ok(if self.client.should_flush() {
            Flow::Pause
        } else {
            Flow::More
        })
    }
}

/// Writes a row. A long one counts as memory that the session keeps until it is sent
/// ([`crate::connection::session::Session::send_rows`]).
///
/// # Errors
/// 1290 or 1041 if there is no memory for it, and those of a statement that has to end; nothing of
/// the row was written then.
#[inline]
pub(crate) fn write_row(
    client: &mut Client,
    encoder: &RowEncoder,
    row: &[ValueRef<'_>],
    state: &State,
) -> Result<(), Failure> {
    match encoder.append(row, client.out()) {
        Appended::Whole => Ok(()),
        Appended::TooLong => write_long_row(client, encoder, row, state),
    }
}

#[cold]
fn write_long_row(
    client: &mut Client,
    encoder: &RowEncoder,
    row: &[ValueRef<'_>],
    state: &State,
) -> Result<(), Failure> {
    let waiting_bytes = client.long_packet_bytes();
    let mut packet = client.begin_long_packet();
    let written = encoder.append_long(row, &mut packet, &mut |bytes| {
        state.count_reply(waiting_bytes + bytes)?;
        state.give_way()
    });
    match written {
        Ok(()) => client.append_long_packet(packet),
        Err(_) => state.free_reply(waiting_bytes),
    }
    written
}

/// More columns than this count as memory until they are sent. Each takes some 60 bytes, and 1.4
/// KiB with the longest names.
const COLUMNS_UNCOUNTED: usize = 128;

/// Bytes of a column's definition without its names, at the most.
const DEFINITION_BYTES: usize = 64;

/// Counts the memory of column definitions that [`write_columns`] writes next.
///
/// # Errors
/// 1290 or 1041 if there is none.
pub(crate) fn reserve_columns(
    client: &Client,
    columns: &[OutputColumn],
    state: &State,
) -> Result<(), Failure> {
    if columns.len() <= COLUMNS_UNCOUNTED {
        return Ok(());
    }
    let bytes = columns.iter().map(|column| {
        let of_table = column.database.len() + column.table.len() + column.original_table.len();
        DEFINITION_BYTES + of_table + column.name.len() + column.original_name.len()
    });
    Ok(state.count_reply(client.long_packet_bytes() + bytes.sum::<usize>())?)
}

/// Writes column definitions, without head and end: of results and of prepared statements. Many
/// of them wait as long rows do.
pub fn write_columns(client: &mut Client, columns: &[OutputColumn], charset: Option<Charset>) {
    let capabilities = client.capabilities();
    for column in columns {
        let names = ColumnNames::of(column, charset);
        definition(column, &names, charset).encode(client.out(), capabilities);
        if FLUSH_BYTES <= client.out().pending_bytes() {
            client.set_output_aside();
            // At the server's end they are dropped with the client.
            let _ = runtime::give_way();
        }
    }
}

/// Writes column definitions as COM_FIELD_LIST wants them, with their defaults. (These are NULL,
/// since no client reads them.)
pub fn write_field_list(client: &mut Client, columns: &[OutputColumn], charset: Option<Charset>) {
    let capabilities = client.capabilities();
    for column in columns {
        let names = ColumnNames::of(column, charset);
        let out = client.out();
        definition(column, &names, charset).encode_with_default(out, capabilities, None);
    }
}

/// The names of a column in the character set of the results.
struct ColumnNames<'c> {
    schema: Cow<'c, [u8]>,
    table: Cow<'c, [u8]>,
    original_table: Cow<'c, [u8]>,
    name: Cow<'c, [u8]>,
    original_name: Cow<'c, [u8]>,
}

impl<'c> ColumnNames<'c> {
    fn of(column: &'c OutputColumn, results: Option<Charset>) -> Self {
        let name = |text: &'c str| in_results(text, results);
        Self {
            schema: name(&column.database),
            table: name(&column.table),
            original_table: name(&column.original_table),
            name: name(&column.name),
            original_name: name(&column.original_name),
        }
    }
}

/// A name in the character set of the results; missing characters become `?`.
fn in_results(name: &str, results: Option<Charset>) -> Cow<'_, [u8]> {
    match results {
        Some(charset) if !is_utf8(charset) && !name.is_ascii() => {
            let mut converted = Vec::with_capacity(name.len());
            charset.append_converted(Charset::Utf8mb4, name.as_bytes(), &mut converted);
            converted.into()
        }
        _ => name.as_bytes().into(),
    }
}

/// True of the sets in which names and messages go out as they are here.
fn is_utf8(charset: Charset) -> bool {
    matches!(
        charset,
        Charset::Binary | Charset::Utf8mb3 | Charset::Utf8mb4
    )
}

/// An error's text in the character set of the results; missing characters become their numbers.
pub(crate) fn error_text(text: &str, results: Option<Charset>) -> Cow<'_, [u8]> {
    let Some(charset) = results.filter(|it| !is_utf8(*it) && !text.is_ascii()) else {
        return text.as_bytes().into();
    };
    let mut converted = Vec::with_capacity(text.len());
    for character in text.chars() {
        let code = u32::from(character);
        if !charset.encode(code, &mut converted) {
            let number = match code {
                0..=0xFFFF => format!("\\{code:04X}"),
                _ => format!("\\+{code:06X}"),
            };
            converted.extend_from_slice(number.as_bytes());
        }
    }
    converted.truncate(errcode::MESSAGE_BYTES_MAX);
    converted.into()
}

/// A column's definition for the client.
fn definition<'c>(
    column: &'c OutputColumn,
    names: &'c ColumnNames<'_>,
    results: Option<Charset>,
) -> ColumnDefinition<'c> {
    let column_type = &column.column_type;
    let is_text = !column_type.is_binary()
        && (column_type.kind.is_string()
            || matches!(column_type.kind, TypeKind::Enum | TypeKind::Set));
    let shown = match results {
        Some(charset) if is_text => charset.default_collation(),
        _ => column_type.collation,
    };
    let collation = if is_text {
        shown.id()
    } else {
        BINARY_COLLATION
    };
    let char_bytes = if is_text { shown.char_bytes_max() } else { 1 };
    let char_bytes = u32::try_from(char_bytes).expect("a character has few bytes");
    let is_expression = column.original_name.is_empty();
    let type_flags = if is_expression {
        column_type.protocol_flags_of_expression()
    } else {
        column_type.protocol_flags()
    };
    ColumnDefinition {
        schema: &names.schema,
        table: &names.table,
        original_table: &names.original_table,
        name: &names.name,
        original_name: &names.original_name,
        extended_type: wire::ExtendedType {
            type_name: match column_type.geometry_kind() {
                GeometryKind::Any => b"",
                kind => kind.name().as_bytes(),
            },
            format_name: if column.is_json { b"json" } else { b"" },
        },
        collation,
        display_bytes: column_type.protocol_length(char_bytes),
        column_type: wire::ColumnType::from_byte(column_type.protocol_type())
            .expect("each type has its byte in the protocol"),
        flags: ColumnFlags(type_flags | own_flags(column).0),
        decimals: column_type.protocol_decimals(),
    }
}

/// Flags from the column's definition, not from its type.
fn own_flags(column: &OutputColumn) -> ColumnFlags {
    let key = match column.key {
        KeyFlag::None => 0,
        KeyFlag::Part => value::flag::PART_KEY,
        KeyFlag::Primary => value::flag::PART_KEY | ColumnFlags::PRIMARY_KEY.0,
        KeyFlag::Unique => value::flag::PART_KEY | ColumnFlags::UNIQUE_KEY.0,
        KeyFlag::Multiple => value::flag::PART_KEY | ColumnFlags::MULTIPLE_KEY.0,
    };
    let pairs = [
        (!column.nullable, ColumnFlags::NOT_NULL),
        (column.auto_increment, ColumnFlags::AUTO_INCREMENT),
        (column.no_default, ColumnFlags::NO_DEFAULT_VALUE),
        (column.on_update_now, ColumnFlags::ON_UPDATE_NOW),
    ];
    let set = pairs
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, flag)| flag.0);
    ColumnFlags(set.fold(key, |flags, flag| flags | flag))
}

/// A column of a result that the server composes itself (`SHOW`): text of at most `chars`.
pub fn text_column(name: &str, chars: u32) -> OutputColumn {
    made_up_column(
        name,
        value::ColumnType::varchar(chars, CollationId::UTF8MB4_GENERAL_CI),
    )
}

/// A column of a result that the server composes itself: a BIGINT.
pub fn number_column(name: &str) -> OutputColumn {
    made_up_column(name, value::ColumnType::new(TypeKind::BigInt))
}

/// A column of a result that the server composes itself.
pub fn made_up_column(name: &str, column_type: value::ColumnType) -> OutputColumn {
    OutputColumn {
        name: name.to_owned(),
        original_name: String::new(),
        table: String::new(),
        original_table: String::new(),
        database: String::new(),
        column_type,
        nullable: true,
        key: KeyFlag::None,
        auto_increment: false,
        no_default: false,
        on_update_now: false,
        is_derived: false,
        is_json: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_errors_are_in_the_character_set_of_the_results() {
        let text = "a\u{e9}\u{416}\u{1F600}";
        for (results, name, error) in [
            (None, text.as_bytes(), text.as_bytes()),
            (Some(Charset::Utf8mb4), text.as_bytes(), text.as_bytes()),
            (Some(Charset::Binary), text.as_bytes(), text.as_bytes()),
            (Some(Charset::Latin1), b"a\xe9??", b"a\xe9\\0416\\+01F600"),
            (Some(Charset::Ascii), b"a???", b"a\\00E9\\0416\\+01F600"),
        ] {
            assert_eq!(&*in_results(text, results), name, "{results:?}");
            assert_eq!(&*error_text(text, results), error, "{results:?}");
        }
        let long = "\u{416}".repeat(255);
        let told = error_text(&long, Some(Charset::Ascii));
        assert_eq!(told.len(), errcode::MESSAGE_BYTES_MAX);
    }
}
