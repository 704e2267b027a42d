//! [`Covering`]: rows out of the entries of a secondary index alone.
//!
//! An entry says who wrote it last. If the transaction's snapshot sees that, and the entry is not
//! marked as deleted, then the version of the row that the transaction sees has it: whoever had
//! changed the key or deleted the row since would have marked the entry. So the clustered index
//! need not be asked, where all columns that are to be read stand in the key and can be read back
//! from it.
//!
//! Entries that the transaction itself wrote last tell less, and the row is asked: one that it has
//! put back, on its way to a savepoint or behind a statement that failed, may be that of a version
//! which another has committed behind the snapshot.

use value::ValueRef;

use crate::schema::table_shape::{IndexShape, TableShape};

/// How the columns that a scan reads are taken from an entry.
#[derive(Debug)]
pub(crate) struct Covering {
    /// Parts of the index's own key, and of the row's key behind it, that are read over or taken.
    own_count: usize,
    row_count: usize,
    /// The row at hand: what is read is taken anew for each, and the rest is NULL.
    values: Vec<ValueRef<'static>>,
}

impl Covering {
    /// For a scan that reads these columns by this index; `None` where entries are not enough.
    pub(crate) fn of(table: &TableShape, index: &IndexShape, columns: &[usize]) -> Option<Self> {
        let (mut own_count, mut row_count) = (0, 0);
        for &column in columns {
            let primary = table.primary();
            match (
                index.key.reach(column),
                primary.and_then(|key| key.reach(column)),
            ) {
                (Some(count), _) => own_count = own_count.max(count),
                (None, Some(count)) => row_count = row_count.max(count),
                (None, None) => return None,
            }
        }
        Some(Self {
            own_count,
            row_count,
            values: vec![ValueRef::Null; table.layout.column_count()],
        })
    }

    /// Appends the row of an entry, encoded; the columns that are not read are NULL. `None` if the
    /// entry is none of the index.
    pub(crate) fn append_row(
        &mut self,
        table: &TableShape,
        index: &IndexShape,
        (own, row_key): (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let values = &mut self.values;
        index.key.take_values(self.own_count, own, values)?;
        if let Some(primary) = table.primary() {
            primary.take_values(self.row_count, row_key, values)?;
        }
        table.layout.encode(values, out).ok()
    }
}
