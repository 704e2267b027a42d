//! [`Warnings`]: what SHOW WARNINGS has told, kept after its connection is given away.

use backend::{Message, RequestError, Server};
use link::Limit;
use wire::{ColumnDefinition, ColumnFlags, ColumnType, CommandByte};

/// The answer to SHOW WARNINGS, in the character set of its session.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    columns: Vec<Column>,
    /// The rows; `None` is NULL.
    pub(crate) rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// The description of a column.
#[derive(Debug)]
struct Column {
    name: Vec<u8>,
    column_type: ColumnType,
    collation: u16,
    display_bytes: u32,
    flags: ColumnFlags,
    decimals: u8,
}

impl Warnings {
    /// Its columns, as the server has described them.
    pub(crate) fn columns(&self) -> impl ExactSizeIterator<Item = ColumnDefinition<'_>> {
        self.columns.iter().map(|it| ColumnDefinition {
            collation: it.collation,
            display_bytes: it.display_bytes,
            flags: it.flags,
            decimals: it.decimals,
            ..ColumnDefinition::new(&it.name, it.column_type)
        })
    }

    /// Asks a server. A refusal tells none.
    pub(crate) async fn ask(
        server: &mut Server,
        until: Limit,
        bytes_max: usize,
    ) -> Result<Warnings, RequestError> {
        let mut warnings = Warnings::default();
        let mut total_bytes = 0_usize;
        server.send(CommandByte::QUERY, b"SHOW WARNINGS").await?;
        while let Some(received) = server.receive(until).await? {
            total_bytes += received.bytes().len();
            if bytes_max < total_bytes {
                return Err(RequestError::TooLarge { limit: bytes_max });
            }
            match received.message()? {
                Message::Column(column) => warnings.columns.push(Column {
                    name: column.name.to_vec(),
                    column_type: column.column_type,
                    collation: column.collation,
                    display_bytes: column.display_bytes,
                    flags: column.flags,
                    decimals: column.decimals,
                }),
                Message::TextRow(mut reader) => {
                    let mut row = Vec::with_capacity(warnings.columns.len());
                    while !reader.is_done() {
                        row.push(reader.next_value()?.map(<[u8]>::to_vec));
                    }
                    warnings.rows.push(row);
                }
                _ => {}
            }
        }
        Ok(warnings)
    }
}
