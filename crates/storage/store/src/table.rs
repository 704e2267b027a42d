//! A table and a scan of it.

use std::rc::Rc;
use std::sync::Arc;

use format::row::RowLayout;
use value::ValueRef;

use crate::{
    Direction, KeyRange, Offer, Outcome, Pushed, RowBatch, RowKey, TableDefinition, Taken,
    Transaction,
};

/// One worker's handle on a table at one version of its definition.
pub trait Table {
    /// The definition that this handle was opened with.
    fn definition(&self) -> &Arc<TableDefinition>;

    /// How whole rows of the table are encoded in batches: all columns, in order.
    fn layout(&self) -> &Arc<RowLayout>;

    /// A scan. It reads nothing before the first `fetch`.
    fn scan(&self, options: ScanOptions) -> Box<dyn Cursor>;

    /// Adds a row; `row` has one value for each column, of the column's type. On a duplicate key
    /// the existing row is locked by `lock`, shared or exclusive, and its key returned, and nothing
    /// is changed. In an index other than the primary key its entry is locked, and not the row. The
    /// caller may look that row up next, so a remote store has it sent with the refusal.
    fn insert(
        &self,
        txn: &mut dyn Transaction,
        row: &[ValueRef<'_>],
        lock: RowLock,
    ) -> Outcome<Inserted>;

    /// Changes a row whose key came from a locking scan of this transaction (or a duplicate). `row`
    /// has the new value of each column. Returns `Mutation::Gone` if the row does not exist any
    /// more, and `Mutation::Changed` if it was claimed and has changed. A duplicate is locked by
    /// `lock`, as by [`insert`](Self::insert). If the row is locked, the outcome is known unless a
    /// unique key changes: a remote store may keep the change back until the end of the statement.
    fn update(
        &self,
        txn: &mut dyn Transaction,
        key: RowKey<'_>,
        row: &[ValueRef<'_>],
        lock: RowLock,
    ) -> Outcome<Mutation>;

    /// Removes a row whose key came from a locking scan of this transaction (or a duplicate).
    fn delete(&self, txn: &mut dyn Transaction, key: RowKey<'_>) -> Outcome<Mutation>;

    /// Appends the newest version of each named row, locked by `lock`, to `batch`, in the order of
    /// the keys. A range ends in the batch after each key, with one row or none. If a call
    /// suspends, the repeated call continues at the first key whose range has not ended. A call
    /// suspends after some keys, so that others have their turn. It answers at least one key. It
    /// may leave out the last ones, once the rows have more than [`FETCH_BYTES_MAX`] bytes in sum.
    fn lookup(
        &self,
        txn: &mut dyn Transaction,
        keys: &[RowKey<'_>],
        lock: RowLock,
        batch: &mut RowBatch,
    ) -> Outcome<()>;

    /// What a scan of this table will do of what the caller offers to leave to it. The answer is
    /// the same for this version of the definition. By default a table takes nothing.
    fn take(&self, offer: &Offer) -> Taken {
        Taken {
            conditions: vec![false; offer.conditions.len()],
            ..Taken::default()
        }
    }

    /// What a call costs in addition to the rows that it reads or writes.
    fn call_cost(&self) -> CallCost {
        CallCost::Local
    }

    /// Takes `count` numbers for the AUTO_INCREMENT column. Returns the first of the run.
    fn take_auto_increment(&self, request: AutoIncrement) -> Outcome<u64>;

    /// The number of the next row, for `SHOW TABLE STATUS` and dumps.
    fn next_auto_increment(&self) -> u64;

    /// Whether a scan of an index finds these columns in the index itself, so that rows need not be
    /// visited; never waits. By default it finds none.
    fn covers(&self, _index: usize, _columns: &[usize]) -> bool {
        false
    }

    /// Estimates for the planner; cheap, never waits.
    fn statistics(&self) -> TableStatistics;

    /// How many rows each of the ranges of an index has, roughly; `None` if the store cannot tell.
    /// May suspend: it looks at the index.
    fn measure(&self, _index: usize, _ranges: &[KeyRange]) -> Outcome<Option<Vec<u64>>> {
        Ok(None)
    }
}

/// A scan in progress.
pub trait Cursor {
    /// Starts over with other ranges, which are read one after the other, in the order given. The
    /// inner side of a lookup join seeks the keys of many outer rows at once. Reads nothing.
    fn seek(&mut self, ranges: &[KeyRange]);

    /// Appends up to `limit` rows to `batch`, and ends a range in it ([`RowBatch::end_range`])
    /// before it goes on to the next one. [`Fetched::End`] ends the last range. If a call suspends,
    /// the rows that it appended stay, and the repeated call continues after them. `More` may come
    /// without a row. Rows of more than [`FETCH_BYTES_MAX`] bytes in sum end the call, too.
    ///
    /// # Panics
    /// If the batch is full already: a caller that did not clear it would loop for ever.
    fn fetch(
        &mut self,
        txn: &mut dyn Transaction,
        limit: usize,
        batch: &mut RowBatch,
    ) -> Outcome<Fetched>;

    /// Releases the locks of a row in the batch that was fetched last, if the fetch has entered
    /// them, no other part of the transaction has asked for them since, and the isolation level
    /// lets rows go that do not match. Rows are released in their order. By default a row stays
    /// locked.
    fn release(&mut self, _txn: &mut dyn Transaction, _row: usize) {}

    /// Locks the only row of a batch that is not locked ([`RowBatch::hold`]), and appends its
    /// newest version. Returns false, and appends nothing, if it is gone. May suspend.
    ///
    /// # Panics
    /// If the cursor gives no such rows.
    fn confirm(&mut self, _txn: &mut dyn Transaction, _batch: &mut RowBatch) -> Outcome<bool> {
        unreachable!("each row of this cursor is locked")
    }

    /// What the cursor itself holds of a large row, if a call has suspended in its middle.
    fn held_bytes(&self) -> usize {
        0
    }
}

/// Bytes of rows after which a fetch ends, even if more rows were asked for: large rows come one by
/// one.
pub const FETCH_BYTES_MAX: usize = 1 << 20;

/// What a call of a table costs in addition to the rows that it reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallCost {
    /// Little: the rows are in this process. Callers ask for what they need next.
    #[default]
    Local,
    /// The time to a server and back. Callers collect keys, and ask for many rows at a time.
    RoundTrip,
}

/// The result of a `fetch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// The batch has its rows and there may be more.
    More,
    /// No rows follow those in the batch.
    End,
}

/// What a scan reads, and how.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Position in the definition's indexes; `None` reads all rows in the store's own order
    /// (primary key order if there is one).
    pub index: Option<usize>,
    /// The range to read.
    pub range: KeyRange,
    /// The direction.
    pub direction: Direction,
    /// Whether rows are read at the snapshot or current and locked.
    pub lock: RowLock,
    /// Columns that will be read, by position. Others may be NULL in the batch, so that a covering
    /// index need not visit the row and large values stay on disk. `None` means all.
    pub columns: Option<Rc<[usize]>>,
    /// Whether a locking scan skips rows that others have locked (`SKIP LOCKED`) or fails at once
    /// (`NOWAIT`).
    pub wait: LockWait,
    /// What it does in place of the caller, as [`Table::take`] has answered.
    pub pushed: Option<Rc<Pushed>>,
}

/// What a locking read does when a row is locked by another transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LockWait {
    /// Waits, up to the session's lock wait timeout.
    #[default]
    Wait,
    /// Fails with `LockNotAvailable`.
    NoWait,
    /// Leaves the row out.
    SkipLocked,
    /// Returns the version that was committed last, in a batch of its own and unlocked, if the
    /// isolation level allows that. Otherwise waits. The caller confirms the row if it matches
    /// ([`Cursor::confirm`]).
    SemiConsistent,
}

/// How rows are locked as they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowLock {
    /// Not at all: a consistent read of the transaction's snapshot.
    #[default]
    None,
    /// The rows that INSERT .. SELECT and its like read: shared, but not at all under READ
    /// COMMITTED.
    Source,
    /// `LOCK IN SHARE MODE`; reads the newest version.
    Shared,
    /// `FOR UPDATE`; reads the newest version.
    Exclusive,
    /// UPDATE and DELETE; reads the newest version. As exclusive, but a row at which a range ends
    /// may be locked, too.
    Change,
    /// As `Change`, by a caller that names one row by its whole key and changes nothing else before
    /// it. The row may come without a lock, and then says so ([`Hold::Claimed`](crate::Hold)). The
    /// caller changes it at once, which fails with [`Mutation::Changed`] if another was faster, or
    /// has it locked by [`Cursor::confirm`].
    Claim,
}

/// The result of an insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// The row is inserted.
    Done,
    /// Nothing was changed: another row, now locked, has the key.
    Duplicate {
        /// Position of the violated index in the definition.
        index: usize,
        /// Names the existing row.
        key: Box<[u8]>,
    },
}

/// The result of an update or delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    /// It is done.
    Done,
    /// The new key is taken by another row, now locked; nothing was changed.
    Duplicate {
        /// Position of the violated index in the definition.
        index: usize,
        /// Names the row that has the key.
        key: Box<[u8]>,
    },
    /// The row does not exist any more.
    Gone,
    /// The row was claimed, and is not what the caller has read any more. Nothing was changed.
    Changed,
}

/// A request to the AUTO_INCREMENT counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoIncrement {
    /// The next `count` numbers, `step` apart, congruent to `offset`.
    Take {
        /// Count of numbers.
        count: u64,
        /// `auto_increment_increment`.
        step: u64,
        /// `auto_increment_offset`.
        offset: u64,
    },
    /// A row has this number of its own: the counter must pass it.
    Pass(u64),
}

/// Estimates about a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableStatistics {
    /// Rows, roughly.
    pub row_count: u64,
    /// Bytes of rows on disk.
    pub data_bytes: u64,
    /// Bytes of secondary indexes on disk.
    pub index_bytes: u64,
    /// For each index, for each prefix of its parts: the number of distinct values.
    pub distinct: Vec<Vec<u64>>,
}
