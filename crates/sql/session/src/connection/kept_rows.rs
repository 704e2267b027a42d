//! [`CursorRows`]: rows of a result that the session keeps, for a cursor or for variables.
//!
//! They count as memory that the session keeps (`max_session_mem_used`). They are read once,
//! forward, and stand in packs, each of which is freed once it was read.

use std::rc::Rc;

use errcode::{ClientError, ER_TOO_MANY_ROWS};
use executor::{Flow, Outcome, RowSink};
use expression::{Rows, Share};
use planner::OutputColumn;
use stdx::DeferredDropVec;
use value::{Value, ValueRef};

use crate::connection::state::State;

/// Rows of a result that wait to be fetched.
#[derive(Debug, Default)]
pub(crate) struct CursorRows {
    columns: Vec<OutputColumn>,
    /// Fetched packs are empty.
    packs: DeferredDropVec<Rows>,
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

    /// What the columns are.
    pub(crate) fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// How many columns there are.
    pub(crate) fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// The next row.
    pub(crate) fn take_row(&mut self) -> Option<Vec<Value>> {
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
