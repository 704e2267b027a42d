//! Cursors of prepared statements: the rows of a query, kept until COM_STMT_FETCH asks for them.
//!
//! The statement has ended when its cursor opens. So a cursor holds no lock, no snapshot and no
//! table; it holds its rows, which count among what the session keeps (`max_session_mem_used`).
//! Cursors only move forward. Rows are stored in packs; each is freed once it was fetched.

use errcode::{ClientError, ER_STMT_HAS_NO_OPEN_CURSOR};
use value::Value;
use wire::{OkPacket, ResultHead, StatusFlags};

use crate::connection::kept_rows::CursorRows;
use crate::connection::reply::{Reply, Stop};
use crate::connection::row_encoder::{RowEncoder, RowProtocol};
use crate::connection::session::Session;
use crate::connection::sink::{reserve_columns, write_columns, write_row};
use crate::prepared::statement::unknown_statement;

impl Session {
    /// Answers the execution that opened a cursor: column definitions, and that rows wait.
    pub(crate) fn write_cursor_head(&mut self, cursor: &CursorRows) -> Result<Reply, ClientError> {
        let columns = cursor.columns();
        reserve_columns(&self.client, columns, &self.state).map_err(|failure| *failure)?;
        let capabilities = self.client.capabilities();
        let charset = self.state.variables.borrow().active().results_charset;
        ResultHead::encode(self.client.out(), capabilities, cursor.column_count());
        write_columns(&mut self.client, columns, charset);
        self.end_cursor_part(StatusFlags::CURSOR_EXISTS);
        Ok(Reply::Nothing)
    }

    fn end_cursor_part(&mut self, flag: StatusFlags) {
        let capabilities = self.client.capabilities();
        let ok = OkPacket {
            status: self.status().with(flag, true),
            warnings: self.warning_count(),
            ..OkPacket::default()
        };
        wire::end_rows(self.client.out(), capabilities, &ok);
    }

    /// COM_STMT_FETCH. The cursor closes when more rows are asked for than there are.
    pub(crate) async fn fetch_command(&mut self, id: u32, count: u32) -> Result<Reply, Stop> {
        let Some(place) = self.prepared.cursor_of(id) else {
            return Err(unknown_statement(id, "mysqld_stmt_fetch"));
        };
        let Some(mut cursor) = place.take() else {
            return Err(ClientError::new(ER_STMT_HAS_NO_OPEN_CURSOR, &[&id]).into());
        };
        let charset = self.state.variables.borrow().active().results_charset;
        let types = cursor.columns().iter().map(|column| &column.column_type);
        let encoder = RowEncoder::new(types, RowProtocol::Binary, charset);
        // Asking for rows beyond the last shows that it was the last.
        let (mut fetched, mut is_last) = (0, false);
        while fetched < count && !is_last {
            let Some(row) = cursor.take_row() else {
                is_last = true;
                continue;
            };
            let values: Vec<_> = row.iter().map(Value::as_ref).collect();
            write_row(&mut self.client, &encoder, &values, &self.state).map_err(|it| *it)?;
            fetched += 1;
            if self.client.should_flush() {
                self.send_rows(self.statement_deadline()).await?;
            }
        }
        let flag = if is_last {
            StatusFlags::LAST_ROW_SENT
        } else {
            StatusFlags::CURSOR_EXISTS
        };
        if !is_last && let Some(place) = self.prepared.cursor_of(id) {
            *place = Some(cursor);
        }
        self.end_cursor_part(flag);
        Ok(Reply::Nothing)
    }
}
