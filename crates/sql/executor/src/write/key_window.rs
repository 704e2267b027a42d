//! [`KeyWindow`]: rows that are read again by their keys, one after the other.
//!
//! The rows of a table in this process are read one by one, as they are needed. A call of a remote
//! table reads the rows of the next keys, too. They are all locked, since the statement is going to
//! change or to read each of them.
//!
//! ```text
//!   Empty --next--> Asked --the call is done--> Filled --the last row was current--> Empty
//! ```

use smallvec::SmallVec;
use store::{RowBatch, RowKey, RowLock};

use crate::context::Context;
use crate::operator::{CALL_ROWS_MAX, is_remote};
use crate::{HandlerCall, Outcome};

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct KeyWindow {
    state: State,
    /// The next of the keys that the slot's batch answers.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Empty,
    /// A call has begun; what it has appended to the batch stays there.
    Asked,
    Filled,
}

impl KeyWindow {
    /// Forgets the rows that were read ahead.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Makes the row of the next key current in the slot. `keys` begins with that key. Returns
    /// false, and makes a row of NULLs current, if the row is gone.
    pub(super) fn next<'k>(
        &mut self,
        cx: &mut Context<'_>,
        (table, slot): (usize, usize),
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Outcome<bool> {
        if self.state != State::Filled {
            self.fill(cx, (table, slot), keys)?;
        }
        let batch = cx.frame.batch(slot);
        let row = row_of(batch, self.at);
        self.at += 1;
        if self.at == batch.range_ends().len() {
            self.clear();
        }
        cx.handler.count(HandlerCall::ReadPlace);
        cx.frame.slots[slot].row = row;
        Ok(row.is_some())
    }

    fn fill<'k>(
        &mut self,
        cx: &mut Context<'_>,
        (table, slot): (usize, usize),
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Outcome<()> {
        let table = &*cx.tables[table];
        let most = if is_remote(table) { CALL_ROWS_MAX } else { 1 };
        let keys: SmallVec<[RowKey<'_>; 1]> = keys.take(most).map(RowKey).collect();
        let batch = cx.frame.batch_mut(slot);
        if self.state == State::Empty {
            batch.clear();
            self.state = State::Asked;
        }
        table.lookup(cx.txn, &keys, RowLock::Exclusive, batch)?;
        assert!(
            !batch.range_ends().is_empty() && batch.range_ends().len() <= keys.len(),
            "a lookup answers its first keys"
        );
        self.state = State::Filled;
        Ok(())
    }
}

/// The row of a key among those that the batch answers.
fn row_of(batch: &RowBatch, key: usize) -> Option<usize> {
    let ends = batch.range_ends();
    let first = key.checked_sub(1).map_or(0, |before| ends[before]);
    (first < ends[key]).then_some(first)
}
