//! Cursors of prepared statements: the rows of a query, kept until COM_STMT_FETCH asks for them.
//!
//! The statement has ended when its cursor opens. So a cursor holds no lock, no snapshot and no
//! table; it holds its rows, which count among what the session keeps (`max_session_mem_used`).
//! Cursors only move forward. Rows are stored in packs; each is freed once it was fetched.

use std::rc::Rc;

use executor::{Flow, Outcome, RowSink};
use expression::{Rows, Share};
use planner::OutputColumn;
use stdx::Pile;
use value::{Value, ValueRef};

use errcode::{ClientError, ER_STMT_HAS_NO_OPEN_CURSOR, ER_TOO_MANY_ROWS};
use wire::{OkPacket, ResultHead, StatusFlags};

use crate::connection::reply::{Reply, Stop};
use crate::connection::session::Session;
use crate::connection::state::State;
use crate::prepared::statement::unknown_statement;
use crate::statement::row_encoder::{RowEncoder, RowProtocol};
use crate::statement::sink::write_columns;

/// Rows of a result that wait to be fetched.
#[derive(Debug, Default)]
pub(crate) struct CursorRows {
    columns: Vec<OutputColumn>,
    /// Fetched packs are empty.
    packs: Pile<Rows>,
    /// The pack that is being fetched, and how many of its rows were fetched.
    at: usize,
    fetched: usize,
    /// Of all packs.
    bytes: usize,
    share: Share,
    /// A second row is an error.
    is_single: bool,
    /// The session that it belongs to.
    state: Option<Rc<State>>,
}

impl RowSink for CursorRows {
    fn columns(&mut self, columns: &[OutputColumn]) -> Outcome<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Outcome<Flow> {
        if self.is_single && !self.packs.is_empty() {
            return Err(ClientError::new(ER_TOO_MANY_ROWS, &[]).into());
        }
        let is_full = |pack: &Rows| PACK_BYTES <= pack.memory_bytes();
        if self.packs.last().is_none_or(is_full) {
            self.packs.push(Rows::new(row.len()));
        }
        let pack = self.packs.last_mut().expect("pushed above");
        let before = pack.memory_bytes();
        for value in row {
            pack.push(*value);
        }
        let grown = pack.memory_bytes() - before;
        self.count(self.bytes + grown)?;
        Ok(Flow::More)
    }
}

impl CursorRows {
    /// No rows yet, of this session.
    pub(crate) fn of(state: &Rc<State>) -> Self {
        Self {
            state: Some(Rc::clone(state)),
            ..Self::default()
        }
    }

    /// The same; a second row is error 1172.
    pub(crate) fn of_one_row(state: &Rc<State>) -> Self {
        Self {
            is_single: true,
            ..Self::of(state)
        }
    }

    /// Drops the rows, because the statement begins again.
    pub(crate) fn clear(&mut self) {
        self.packs.clear();
        (self.at, self.fetched) = (0, 0);
        self.give_back(self.bytes);
    }

    /// All rows.
    pub(crate) fn into_rows(mut self) -> impl Iterator<Item = Vec<Value>> {
        std::iter::from_fn(move || self.take_row())
    }

    /// Returns the next row and its columns.
    pub(crate) fn next_row(&mut self) -> Option<(Vec<Value>, &[OutputColumn])> {
        let row = self.take_row()?;
        Some((row, &self.columns))
    }

    /// How many columns there are.
    pub(crate) fn column_count(&self) -> usize {
        self.columns.len()
    }

    fn take_row(&mut self) -> Option<Vec<Value>> {
        let pack = self.packs.get_mut(self.at)?;
        let row = pack.to_values(self.fetched);
        self.fetched += 1;
        if self.fetched == pack.len() {
            let bytes = pack.memory_bytes();
            *pack = Rows::default();
            self.at += 1;
            self.fetched = 0;
            self.give_back(bytes);
        }
        Some(row)
    }

    /// Releases this much memory.
    fn give_back(&mut self, bytes: usize) {
        let counted = self.count(self.bytes - bytes);
        assert!(counted.is_ok(), "less is never too much");
    }

    /// Counts this much memory as kept.
    fn count(&mut self, bytes: usize) -> Result<(), ClientError> {
        if let Some(state) = &self.state {
            state.keep(&mut self.share, bytes)?;
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// A pack is full once it takes this much.
const PACK_BYTES: usize = 256 << 10;

impl Session {
    /// Answers the execution that opened a cursor: column definitions, and that rows wait.
    pub(crate) fn write_cursor_head(&mut self, cursor: &CursorRows) -> Reply {
        let capabilities = self.client.capabilities();
        let charset = self.state.variables.borrow().active().results_charset;
        ResultHead::encode(self.client.out(), capabilities, cursor.columns.len());
        write_columns(&mut self.client, &cursor.columns, charset);
        self.end_cursor_part(StatusFlags::CURSOR_EXISTS);
        Reply::Nothing
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
        let types = cursor.columns.iter().map(|column| &column.column_type);
        let encoder = RowEncoder::new(types, RowProtocol::Binary, charset);
        // Asking for rows beyond the last shows that it was the last.
        let (mut fetched, mut is_last) = (0, false);
        while fetched < count && !is_last {
            let Some(row) = cursor.take_row() else {
                is_last = true;
                continue;
            };
            let values: Vec<_> = row.iter().map(Value::as_ref).collect();
            encoder.append(&values, self.client.out());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_order() {
        let mut cursor = CursorRows::default();
        for number in 1..=3 {
            assert!(cursor.row(&[ValueRef::Int(number)]).is_ok());
        }
        for number in 1..=3 {
            assert_eq!(cursor.take_row(), Some(vec![Value::Int(number)]));
        }
        assert_eq!(cursor.take_row(), None);
    }
}
