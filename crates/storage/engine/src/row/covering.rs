//! [`Covering`]: rows from the entries of a secondary index alone.
//!
//! An entry holds the id of its last writer. Suppose that the transaction's snapshot sees that
//! writer, and the entry is not marked deleted. Then the version that the transaction sees has this
//! entry: any later change of the key, or deletion of the row, would have marked it. So the
//! clustered index is not needed if all columns to be read stand in the key and can be decoded from
//! it.
//!
//! Entries that the transaction itself wrote last prove less, so the row is read. The transaction
//! may have put the entry back, when it returned to a savepoint or when a statement failed. Then
//! the entry may be that of a version which another transaction has committed after the snapshot.

use value::ValueRef;

use crate::schema::table_shape::{IndexShape, TableShape};

/// How to take the columns that a scan reads from an entry.
#[derive(Debug)]
pub(crate) struct Covering {
    /// Parts of the index's own key, and of the row's key after it, that are skipped or taken.
    own_count: usize,
    row_count: usize,
    /// The present row: columns that are read are set for each row, and the rest is NULL.
    values: Vec<ValueRef<'static>>,
}

impl Covering {
    /// For a scan that reads these columns by this index, or all columns. Returns `None` if entries
    /// are not enough.
    pub(crate) fn of(
        table: &TableShape,
        index: &IndexShape,
        columns: Option<&[usize]>,
    ) -> Option<Self> {
        let (own_count, row_count) = match columns {
            Some(columns) => parts_read(table, index, columns.iter().copied()),
            None => parts_read(table, index, 0..table.layout.column_count()),
        }?;
        Some(Self {
            own_count,
            row_count,
            values: vec![ValueRef::Null; table.layout.column_count()],
        })
    }

    /// Appends the row of an entry, encoded; columns that are not read are NULL. Returns `None` if
    /// the entry does not belong to the index.
    pub(crate) fn append_row(
        &mut self,
        table: &TableShape,
        index: &IndexShape,
        (own, row_key): (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let values = &mut self.values;
        let column_count = table.layout.column_count();
        assert_eq!(values.len(), column_count, "it was made for this table");
        index.key.take_values(self.own_count, own, values)?;
        if let Some(key) = table.row_key() {
            key.take_values(self.row_count, row_key, values)?;
        }
        table.layout.encode(values, out).ok()
    }
}

/// Whether the entries of an index have these columns. The rows themselves have all.
pub(crate) fn covers(table: &TableShape, index: usize, columns: &[usize]) -> bool {
    let Some(at) = index.checked_sub(usize::from(table.row_key().is_some())) else {
        return true;
    };
    // The planner's definition may be newer than this one; its plan is not used then.
    let Some(index) = table.secondary.get(at) else {
        return false;
    };
    parts_read(table, index, columns.iter().copied()).is_some()
}

/// How many parts of the index's own key, and of the row's key after it, are read to decode these
/// columns; `None` if the keys do not lead back to one of them.
fn parts_read(
    table: &TableShape,
    index: &IndexShape,
    mut columns: impl Iterator<Item = usize>,
) -> Option<(usize, usize)> {
    let row_key = table.row_key();
    columns.try_fold((0, 0), |(own_count, row_count): (usize, usize), column| {
        let of_row = || row_key.and_then(|key| key.reach(column));
        match index.key.reach(column) {
            Some(count) => Some((own_count.max(count), row_count)),
            None => Some((own_count, row_count.max(of_row()?))),
        }
    })
}
