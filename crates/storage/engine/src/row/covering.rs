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
        let (mut own_count, mut row_count) = (0, 0);
        let row_key = table.row_key();
        let reach = |column: usize| {
            let of_row = row_key.and_then(|key| key.reach(column));
            match (index.key.reach(column), of_row) {
                (Some(count), _) => own_count = own_count.max(count),
                (None, Some(count)) => row_count = row_count.max(count),
                (None, None) => return None,
            }
            Some(())
        };
        match columns {
            Some(columns) => columns.iter().copied().try_for_each(reach)?,
            None => (0..table.layout.column_count()).try_for_each(reach)?,
        }
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
        index.key.take_values(self.own_count, own, values)?;
        if let Some(key) = table.row_key() {
            key.take_values(self.row_count, row_key, values)?;
        }
        table.layout.encode(values, out).ok()
    }
}
