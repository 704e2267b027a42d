//! Rows on their way from a table to the executor: encoded, side by side in one buffer.

use std::sync::Arc;

use format::row::{RowError, RowLayout};
use value::ValueRef;

/// Memory that a batch keeps from one statement to the next.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Names a row within its table: the encoded primary key, or the hidden row id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey<'a>(pub &'a [u8]);

/// Rows of one layout, each with the key that names it in its table. Reused from call to call.
#[derive(Debug)]
pub struct RowBatch {
    /// How each row is encoded; constant.
    layout: Arc<RowLayout>,
    /// The rows' bytes, one after the other.
    bytes: Vec<u8>,
    /// Where each row ends in `bytes`.
    row_ends: Vec<usize>,
    /// The rows' keys, one after the other; empty if the scan was not asked for keys.
    key_bytes: Vec<u8>,
    /// Where each key ends in `key_bytes`.
    key_ends: Vec<usize>,
    /// How many rows there were at each call of `end_range`.
    range_ends: Vec<usize>,
    hold: Hold,
}

/// How the first row of a batch is held for the transaction that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// As the scan was asked to lock it, like all others.
    #[default]
    AsAsked,
    /// Not at all: it is the version that was committed last of a row that another transaction has
    /// locked ([`LockWait::SemiConsistent`](crate::LockWait::SemiConsistent)).
    Committed,
    /// By its version alone ([`RowLock::Claim`](crate::RowLock::Claim)).
    Claimed,
}

impl RowBatch {
    /// An empty batch for rows of `layout`.
    pub fn new(layout: Arc<RowLayout>) -> Self {
        let (bytes, key_bytes) = (Vec::new(), Vec::new());
        Self {
            layout,
            bytes,
            row_ends: Vec::new(),
            key_bytes,
            key_ends: Vec::new(),
            range_ends: Vec::new(),
            hold: Hold::AsAsked,
        }
    }

    /// Removes the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.row_ends.clear();
        self.key_bytes.clear();
        self.key_ends.clear();
        self.range_ends.clear();
        self.hold = Hold::AsAsked;
    }

    /// Returns the memory that large rows have taken. If there are many rows, they are removed.
    pub fn shrink(&mut self) {
        if KEPT_BYTES_MAX < self.memory_bytes() {
            *self = Self::new(Arc::clone(&self.layout));
        }
    }

    /// Allocated bytes.
    pub fn memory_bytes(&self) -> usize {
        let ends = self.row_ends.capacity() + self.key_ends.capacity() + self.range_ends.capacity();
        self.bytes.capacity() + self.key_bytes.capacity() + ends * size_of::<usize>()
    }

    /// Bytes of all rows.
    pub fn row_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.row_ends.len()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.row_ends.is_empty()
    }

    /// How rows are encoded.
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// Adds a row: `write` appends its encoding to the buffer.
    pub fn push(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.row_ends.push(self.bytes.len());
        self.key_bytes.extend_from_slice(key);
        self.key_ends.push(self.key_bytes.len());
        assert_eq!(
            self.row_ends.len(),
            self.key_ends.len(),
            "each row has a key"
        );
    }

    /// Marks the end of a range: the rows that follow belong to the next one.
    pub fn end_range(&mut self) {
        self.range_ends.push(self.row_ends.len());
    }

    /// Says how the only row of the batch is held.
    pub fn set_hold(&mut self, hold: Hold) {
        assert_eq!(self.len(), 1, "such a row is alone");
        self.hold = hold;
    }

    /// How the first row is held.
    pub fn hold(&self) -> Hold {
        self.hold
    }

    /// For each range that has ended in this batch, the number of rows at its end.
    pub fn range_ends(&self) -> &[usize] {
        &self.range_ends
    }

    /// The encoded row at `row_index`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row_index: usize) -> &[u8] {
        slice_at(&self.bytes, &self.row_ends, row_index)
    }

    /// The key of the row at `row_index`, to be passed to `update`, `delete` or `lock`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn key(&self, row_index: usize) -> RowKey<'_> {
        RowKey(slice_at(&self.key_bytes, &self.key_ends, row_index))
    }

    /// A column of a row, without decoding the others.
    pub fn column(&self, row_index: usize, column_index: usize) -> Result<ValueRef<'_>, RowError> {
        self.layout.column(self.row(row_index), column_index)
    }
}

fn slice_at<'a>(bytes: &'a [u8], ends: &[usize], index: usize) -> &'a [u8] {
    assert!(index < ends.len(), "the row is in the batch");
    let start = if index == 0 { 0 } else { ends[index - 1] };
    &bytes[start..ends[index]]
}
