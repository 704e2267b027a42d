//! Results on their way to the client's output buffer.

use executor::{Execution, Flow, Outcome, Progress, RowSink, World};
use front::Client;
use planner::{KeyFlag, OutputColumn};
use value::{Charset, CollationId, TypeKind, ValueRef};
use wire::{ColumnDefinition, ColumnFlags, ResultHead, StatusFlags};

use crate::cursor::CursorRows;
use crate::row_encoder::{RowEncoder, RowProtocol};

/// Collation number of what is no text.
const BINARY_COLLATION: u16 = 63;

/// Writes one result set. Between the steps of an execution the session sends what has piled up;
/// so the sink is made anew for each step, around what stays: [`ResultState`].
#[derive(Debug)]
pub struct PacketSink<'s> {
    /// Where packets go.
    pub client: &'s mut Client,
    /// What stays from step to step.
    pub result: &'s mut ResultState,
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
    /// There once the head is written.
    encoder: Option<RowEncoder>,
    /// Rows written.
    pub row_count: u64,
}

impl ResultState {
    /// A result of which nothing is written yet.
    pub fn new(protocol: RowProtocol, charset: Option<Charset>, status: StatusFlags) -> Self {
        Self {
            protocol,
            charset,
            status,
            encoder: None,
            row_count: 0,
        }
    }

    /// True once the head is written, so that the client expects rows or an error.
    pub fn has_begun(&self) -> bool {
        self.encoder.is_some()
    }
}

/// Where the rows of a run go.
pub(crate) enum Rows<'r> {
    /// To the client, or to what keeps them for it (`Session::cursor`).
    Client(&'r mut ResultState),
    /// Into a sink of the session's own.
    Own {
        sink: &'r mut dyn RowSink,
        /// Whether a doubtful value is an error, as it is where a row is written.
        is_strict: bool,
    },
}

impl Rows<'_> {
    /// One step of an execution, whose rows go there.
    pub(crate) fn step(
        &mut self,
        execution: &mut Execution,
        world: &mut World<'_>,
        client: &mut Client,
        cursor: Option<&mut CursorRows>,
    ) -> Outcome<Progress> {
        match (self, cursor) {
            (Self::Own { sink, .. }, _) => execution.step(world, *sink),
            (Self::Client(_), Some(cursor)) => execution.step(world, cursor),
            (Self::Client(result), None) => {
                execution.step(world, &mut PacketSink { client, result })
            }
        }
    }

    /// Writes the columns of what goes to a client, if they are not written yet; false where
    /// nothing does.
    pub(crate) fn begin(&mut self, columns: &[OutputColumn], client: &mut Client) -> bool {
        match self {
            Self::Client(result) => {
                PacketSink { client, result }.begin(columns);
                true
            }
            Self::Own { .. } => false,
        }
    }

    /// True if there are rows that cannot be taken back.
    pub(crate) fn has_sent_any(&self) -> bool {
        match self {
            Self::Client(result) => result.row_count != 0,
            Self::Own { .. } => false,
        }
    }
}

impl PacketSink<'_> {
    /// Writes the head of the result, once.
    fn begin(&mut self, columns: &[OutputColumn]) {
        if self.result.has_begun() {
            return;
        }
        let capabilities = self.client.capabilities();
        let result = &mut *self.result;
        let out = self.client.out();
        ResultHead::encode(out, capabilities, columns.len());
        write_columns(self.client, columns, result.charset);
        let out = self.client.out();
        wire::end_columns(out, capabilities, result.status, 0);
        let types = columns.iter().map(|column| &column.column_type);
        result.encoder = Some(RowEncoder::new(types, result.protocol, result.charset));
    }
}

impl RowSink for PacketSink<'_> {
    fn columns(&mut self, columns: &[OutputColumn]) -> Outcome<()> {
        // The head may be there: the statement was begun anew, or its client was in doubt.
        self.begin(columns);
        Ok(())
    }

    #[inline]
    fn row(&mut self, row: &[ValueRef<'_>]) -> Outcome<Flow> {
        let encoder = self
            .result
            .encoder
            .as_ref()
            .expect("columns come before rows");
        encoder.append(row, self.client.out());
        self.result.row_count += 1;
        Ok(if self.client.should_flush() {
            Flow::Pause
        } else {
            Flow::More
        })
    }
}

/// Writes column definitions, without head and end: of results and of prepared statements.
pub fn write_columns(client: &mut Client, columns: &[OutputColumn], charset: Option<Charset>) {
    let capabilities = client.capabilities();
    for column in columns {
        definition(column, charset).encode(client.out(), capabilities);
    }
}

/// Writes column definitions as COM_FIELD_LIST wants them, with their defaults (which no client
/// reads, so they are NULL).
pub fn write_field_list(client: &mut Client, columns: &[OutputColumn], charset: Option<Charset>) {
    let capabilities = client.capabilities();
    for column in columns {
        let out = client.out();
        definition(column, charset).encode_with_default(out, capabilities, None);
    }
}

/// What the client is told of a column.
fn definition(column: &OutputColumn, results: Option<Charset>) -> ColumnDefinition<'_> {
    let column_type = &column.column_type;
    let is_text = !column_type.is_binary()
        && (column_type.kind.is_string()
            || matches!(column_type.kind, TypeKind::Enum | TypeKind::Set));
    let shown = match results {
        Some(charset) if is_text && charset != Charset::Binary => charset.default_collation(),
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
        schema: column.database.as_bytes(),
        table: column.table.as_bytes(),
        original_table: column.original_table.as_bytes(),
        name: column.name.as_bytes(),
        original_name: column.original_name.as_bytes(),
        extended_type: wire::ExtendedType::default(),
        collation,
        display_bytes: column_type.protocol_length(char_bytes),
        column_type: wire::ColumnType::from_byte(column_type.protocol_type())
            .expect("each type has its byte in the protocol"),
        flags: ColumnFlags(type_flags | own_flags(column).0),
        decimals: column_type.protocol_decimals(),
    }
}

/// Flags that come from the column's definition and not from its type.
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

/// A column of a result that the server makes up itself (`SHOW`): text of at most `chars`.
pub fn text_column(name: &str, chars: u32) -> OutputColumn {
    made_up_column(
        name,
        value::ColumnType::varchar(chars, CollationId::UTF8MB4_GENERAL_CI),
    )
}

/// A column of a result that the server makes up itself: a BIGINT.
pub fn number_column(name: &str) -> OutputColumn {
    made_up_column(name, value::ColumnType::new(TypeKind::BigInt))
}

/// A column of a result that the server makes up itself.
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
    }
}
