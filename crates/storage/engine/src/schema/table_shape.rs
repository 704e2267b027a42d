//! A table as the engine works with it: trees, key parts, layout, counters.

use std::sync::Arc;

use btree::Tree;
use format::row::RowLayout;
use format::{IndexId, Lsn, SpaceId, TableId};
use store::{IndexDefinition, KeyBound, KeyRange, StoreError, TableDefinition, Uniqueness};
use sync::Mutex;
use sync::atomic::{AtomicU64, Ordering};
use value::key::{KeyPart, successor};
use value::{Value, ValueRef};

use crate::schema::dictionary::TableEntry;
use crate::schema::statistics::{CHANGES_MIN, SharedStatistics, changes_until_due};

/// Bytes of a hidden row id.
pub(crate) const ROW_ID_BYTES: usize = 6;

/// What all workers share of a table at one version of its definition.
#[derive(Debug)]
pub(crate) struct TableShape {
    /// The dictionary's entry. Constant.
    pub(crate) entry: TableEntry,
    /// How rows are encoded. Constant.
    pub(crate) layout: Arc<RowLayout>,
    /// The tree of the rows. Constant.
    pub(crate) clustered: Tree,
    /// Parts of the key that the rows are kept by; `None`: they have hidden ids. Constant.
    row_key: Option<KeyShape>,
    /// The other indexes, in the definition's order. Constant.
    pub(crate) secondary: Vec<IndexShape>,
    /// The changing state; survives a new version of the definition.
    pub(crate) live: Arc<LiveTable>,
}

/// The changing state of a table.
#[derive(Debug)]
pub(crate) struct LiveTable {
    /// The AUTO_INCREMENT counter, or that of the hidden row ids.
    pub(crate) auto: Mutex<AutoCounter>,
    /// Approximate number of rows; wraps for a moment if a removal is counted before its insert.
    row_count: AtomicU64,
    /// Changes of entries since the statistics were made.
    changes: AtomicU64,
    /// After so many of them the statistics are due.
    changes_due: AtomicU64,
    /// What is kept of the indexes; empty where nothing is.
    statistics: Mutex<SharedStatistics>,
    /// The log's position when one of its trees was last rebuilt from the newest versions alone. A
    /// snapshot before it must check `remade`.
    remade_at: AtomicU64,
    /// Rebuilt trees and when, as far as a snapshot may be older. Set by the schema change before
    /// it is published.
    remade: Mutex<Vec<(IndexId, Lsn)>>,
}

/// When a tree has been rebuilt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The log's position.
    pub(crate) now: Lsn,
    /// No snapshot is older, none to come either.
    pub(crate) horizon: Lsn,
}

/// A counter that survives a crash: numbers below `ceiling` may have been used. As long as it could
/// not be read, all is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AutoCounter {
    /// The next number.
    pub(crate) next: u64,
    /// On disk: after a restart numbers begin here.
    pub(crate) ceiling: u64,
}

impl AutoCounter {
    /// Whether it was read.
    pub(crate) fn is_known(self) -> bool {
        self.next != 0
    }
}

impl Default for LiveTable {
    fn default() -> Self {
        Self {
            auto: Mutex::default(),
            row_count: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            changes_due: AtomicU64::new(CHANGES_MIN),
            statistics: Mutex::new(Arc::new([])),
            remade_at: AtomicU64::new(0),
            remade: Mutex::default(),
        }
    }
}

impl LiveTable {
    /// Counts a row that came, went, or has other entries; true of the one after which statistics
    /// are due.
    pub(crate) fn count_change(&self) -> bool {
        // Relaxed, both: a count that orders nothing.
        let changes = self.changes.fetch_add(1, Ordering::Relaxed) + 1;
        changes == self.changes_due.load(Ordering::Relaxed)
    }

    /// What is kept of the indexes.
    pub(crate) fn statistics(&self) -> SharedStatistics {
        Arc::clone(&self.statistics.lock())
    }

    /// Keeps what was found out when the table had so many rows.
    pub(crate) fn set_statistics(&self, rows: u64, statistics: SharedStatistics) {
        *self.statistics.lock() = statistics;
        // Relaxed, both: a change that is counted in between may be lost, or counted twice.
        self.changes.store(0, Ordering::Relaxed);
        self.changes_due
            .store(changes_until_due(rows), Ordering::Relaxed);
    }

    /// Takes the number of rows that was measured, where the one at hand is off: it was an estimate
    /// itself when the server started.
    pub(crate) fn correct_row_count(&self, measured: u64) {
        let known = self.row_count();
        if known / 2 > measured || measured / 2 > known {
            self.set_row_count(measured);
        }
    }

    /// The estimate of rows.
    pub(crate) fn row_count(&self) -> u64 {
        let count = self.row_count.load(Ordering::Relaxed);
        if count < 1 << 63 { count } else { 0 }
    }

    /// Counts one row more.
    pub(crate) fn add_row(&self) {
        self.row_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one row less.
    pub(crate) fn drop_row(&self) {
        self.row_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether these trees have the versions that a snapshot needs.
    pub(crate) fn serves(&self, trees: [Tree; 2], snapshot: Lsn) -> bool {
        // Acquire: pairs with `set_remade`.
        if Lsn(self.remade_at.load(Ordering::Acquire)) <= snapshot {
            return true;
        }
        let is_asked = |index: IndexId| trees.iter().any(|tree| tree.index == index);
        let remade = self.remade.lock();
        remade
            .iter()
            .all(|&(index, at)| at <= snapshot || !is_asked(index))
    }

    /// Notes that a tree has been rebuilt by now, and forgets those that every snapshot is younger
    /// than: each snapshot walks through the others.
    pub(crate) fn set_remade(&self, index: IndexId, Moment { now, horizon }: Moment) {
        assert!(horizon <= now, "no snapshot is of the future");
        let mut remade = self.remade.lock();
        assert!(
            remade.last().is_none_or(|&(_, before)| before <= now),
            "snapshots compare with the last one (see `serves`)"
        );
        remade.retain(|&(_, at)| horizon < at);
        remade.push((index, now));
        self.remade_at.store(now.0, Ordering::Release);
    }

    /// Sets the estimate.
    pub(crate) fn set_row_count(&self, count: u64) {
        self.row_count.store(count, Ordering::Relaxed);
    }
}

/// The columns of a key.
#[derive(Debug)]
pub(crate) struct KeyShape {
    /// Positions in the table.
    columns: Vec<usize>,
    /// How each is encoded.
    parts: Vec<KeyPart>,
    /// Room that holds most keys, so that a buffer does not grow part by part.
    bytes_usual: usize,
}

/// Room for one part of a key: a mark, and a number. Texts that are longer make the buffer grow.
const PART_BYTES_USUAL: usize = 9;

impl KeyShape {
    fn new(definition: &TableDefinition, index: &IndexDefinition) -> Self {
        let part = |part: &store::IndexPart| {
            let column = &definition.columns[part.column];
            let nullable = column.nullable && !index.is_clustered();
            KeyPart {
                column: column.column_type.clone(),
                nullable,
                prefix: part.prefix_length,
            }
        };
        Self {
            columns: index.parts.iter().map(|part| part.column).collect(),
            parts: index.parts.iter().map(part).collect(),
            bytes_usual: index.parts.len() * PART_BYTES_USUAL,
        }
    }

    /// How its parts are encoded.
    pub(crate) fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// How many parts it has.
    pub(crate) fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// The length of the first `count` parts at the beginning of a key; `None` if it is cut off.
    pub(crate) fn prefix_length(&self, count: usize, key: &[u8]) -> Option<usize> {
        assert!(count <= self.parts.len(), "the key has so many parts");
        let mut length = 0;
        for part in self.parts.iter().take(count) {
            length += part.length_in(key.get(length..)?)?;
        }
        Some(length)
    }

    /// How many of the first parts lie within the first `length` bytes of a key.
    pub(crate) fn parts_within(&self, key: &[u8], length: usize) -> usize {
        let mut at = 0;
        let is_within = |part: &&KeyPart| {
            let own = key.get(at..).and_then(|key| part.length_in(key));
            at = own.map_or(usize::MAX, |own| at + own);
            at <= length
        };
        self.parts.iter().take_while(is_within).count()
    }

    /// Whether a part of it may be NULL.
    pub(crate) fn is_nullable(&self) -> bool {
        self.parts.iter().any(|part| part.nullable)
    }

    /// Appends the key of a row; true if a part of it is NULL.
    fn append_values(&self, row: &[ValueRef<'_>], out: &mut Vec<u8>) -> bool {
        out.reserve(self.bytes_usual);
        let mut has_null = false;
        for (&column, part) in self.columns.iter().zip(&self.parts) {
            has_null |= row[column].is_null();
            part.append(row[column], out);
        }
        has_null
    }

    /// As `append_values`, for an encoded row.
    fn append_row(
        &self,
        layout: &RowLayout,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, StoreError> {
        out.reserve(self.bytes_usual);
        let mut has_null = false;
        for (&column, part) in self.columns.iter().zip(&self.parts) {
            let value = layout
                .column(row, column)
                .map_err(|error| StoreError::damaged(error.to_string()))?;
            has_null |= value.is_null();
            part.append(value, out);
        }
        Ok(has_null)
    }

    /// Appends the key of values for the first parts.
    fn append_prefix(&self, values: &[Value], out: &mut Vec<u8>) {
        assert!(
            values.len() <= self.parts.len(),
            "a bound has at most a value for each part"
        );
        out.reserve(self.bytes_usual);
        for (value, part) in values.iter().zip(&self.parts) {
            part.append(value.as_ref(), out);
        }
    }

    /// Number of parts to decode from a key to get the value of a column; `None` if the column
    /// cannot be decoded from keys.
    pub(crate) fn reach(&self, column: usize) -> Option<usize> {
        let count = self.columns.iter().position(|it| *it == column)? + 1;
        let parts = self.parts.get(..count)?;
        parts.iter().all(KeyPart::leads_back).then_some(count)
    }

    /// Decodes the values of the first parts of a key; `None` if it is no such key.
    pub(crate) fn take_values(
        &self,
        count: usize,
        mut key: &[u8],
        row: &mut [ValueRef<'static>],
    ) -> Option<()> {
        assert!(count <= self.parts.len(), "the key has so many parts");
        for (&column, part) in self.columns.iter().zip(&self.parts).take(count) {
            row[column] = part.take(&mut key)?;
        }
        Some(())
    }

    /// The bytes between which the keys of a range lie. See [`Interval`].
    pub(crate) fn interval(&self, range: &KeyRange) -> Interval {
        let prefix = |values: &[Value]| {
            let mut key = Vec::new();
            self.append_prefix(values, &mut key);
            key
        };
        let lower = match &range.lower {
            KeyBound::Open => Some(Vec::new()),
            KeyBound::Inclusive(values) => Some(prefix(values)),
            KeyBound::Exclusive(values) => behind(prefix(values)),
        };
        let upper = match &range.upper {
            KeyBound::Open => None,
            KeyBound::Inclusive(values) => behind(prefix(values)),
            KeyBound::Exclusive(values) => Some(prefix(values)),
        };
        let equality = match (&range.lower, &range.upper) {
            (KeyBound::Inclusive(lower), KeyBound::Inclusive(upper)) if lower == upper => {
                let has_null = lower.iter().any(Value::is_null);
                match lower.len() {
                    0 => Equality::None,
                    count if count == self.parts.len() && !has_null => Equality::Whole,
                    _ => Equality::Prefix,
                }
            }
            _ => Equality::None,
        };
        let is_empty = lower.is_none();
        Interval {
            starts_at_lower: matches!(range.lower, KeyBound::Inclusive(_)),
            lower: lower.unwrap_or_default(),
            upper,
            equality,
            is_empty,
        }
    }
}

/// The first key after all that begin with `prefix`; `None` if there is none.
fn behind(prefix: Vec<u8>) -> Option<Vec<u8>> {
    if prefix.is_empty() {
        None
    } else {
        successor(prefix)
    }
}

/// A range of key bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interval {
    /// The first key in it.
    pub(crate) lower: Vec<u8>,
    /// The range names that key. Else it names one before it, or none.
    pub(crate) starts_at_lower: bool,
    /// The first key after it; `None` if it has no upper end.
    pub(crate) upper: Option<Vec<u8>>,
    /// Which parts have one value.
    pub(crate) equality: Equality,
    /// It contains no key.
    pub(crate) is_empty: bool,
}

/// Which parts of a key have one value in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Equality {
    /// Not even all keys begin alike.
    #[default]
    None,
    /// The first parts, or all and one is NULL: also an entry of a unique index may not be alone.
    Prefix,
    /// All parts, none of them NULL.
    Whole,
}

impl Interval {
    /// The interval without a key.
    pub(crate) fn nothing() -> Self {
        Self {
            is_empty: true,
            ..Self::default()
        }
    }
}

/// An index that the rows are not kept by.
#[derive(Debug)]
pub(crate) struct IndexShape {
    /// Position in the definition's indexes.
    pub(crate) position: usize,
    /// Its entries.
    pub(crate) tree: Tree,
    /// Its columns.
    pub(crate) key: KeyShape,
    /// No two rows have the same key, unless a part is NULL.
    pub(crate) is_unique: bool,
}

/// The key of an entry of a secondary index; in the order of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct EntryKey {
    /// Own part, then the row's key.
    pub(crate) bytes: Vec<u8>,
    /// Length of the own part.
    pub(crate) own_length: usize,
    /// A part is NULL, so the key is never a duplicate.
    pub(crate) has_null: bool,
}

impl EntryKey {
    /// The index's own part.
    pub(crate) fn own(&self) -> &[u8] {
        &self.bytes[..self.own_length]
    }
}

impl TableShape {
    /// The shape of a table from its dictionary entry.
    pub(crate) fn new(entry: TableEntry, live: Arc<LiveTable>) -> Self {
        let definition = Arc::clone(&entry.definition);
        let types = definition.columns.iter().map(|column| &column.column_type);
        let layout = Arc::new(RowLayout::new(types));
        let tree = |index: usize| {
            let place = entry.trees[index];
            Tree {
                space: entry.space,
                root: place.root,
                index: place.index,
            }
        };
        let row_key = definition
            .clustered_key()
            .map(|index| KeyShape::new(&definition, index));
        let first = usize::from(row_key.is_some());
        assert_eq!(
            entry.trees.len(),
            1 + definition.indexes.len() - first,
            "rows and each other index have a tree"
        );
        let secondary = definition.indexes.iter().enumerate().skip(first);
        let secondary = secondary
            .map(|(position, index)| IndexShape {
                position,
                tree: tree(position + 1 - first),
                key: KeyShape::new(&definition, index),
                is_unique: index.uniqueness == Uniqueness::Unique,
            })
            .collect();
        Self {
            layout,
            clustered: tree(0),
            row_key,
            secondary,
            live,
            entry,
        }
    }

    /// The table's id.
    pub(crate) fn id(&self) -> TableId {
        self.entry.definition.id
    }

    /// Its tablespace.
    pub(crate) fn space(&self) -> SpaceId {
        self.entry.space
    }

    /// The columns of the key that the rows are kept by; `None` if they have hidden ids.
    pub(crate) fn row_key(&self) -> Option<&KeyShape> {
        self.row_key.as_ref()
    }

    /// Appends the key of a row. Returns false if it has a hidden id.
    pub(crate) fn append_row_key(&self, row: &[ValueRef<'_>], out: &mut Vec<u8>) -> bool {
        match &self.row_key {
            Some(key) => {
                key.append_values(row, out);
                true
            }
            None => false,
        }
    }

    /// The key of an encoded row; `None` if it has a hidden id.
    pub(crate) fn row_key_of(&self, row: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(key) = &self.row_key else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        key.append_row(&self.layout, row, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// The entries that a row has in the secondary indexes, in their order.
    pub(crate) fn entries(&self, row: &[ValueRef<'_>], row_key: &[u8]) -> Vec<EntryKey> {
        let entry = |index: &IndexShape| {
            let mut bytes = Vec::new();
            let has_null = index.key.append_values(row, &mut bytes);
            finish_entry(bytes, has_null, row_key)
        };
        self.secondary.iter().map(entry).collect()
    }

    /// As `entries`, for an encoded row.
    pub(crate) fn entries_of(
        &self,
        row: &[u8],
        row_key: &[u8],
    ) -> Result<Vec<EntryKey>, StoreError> {
        self.secondary
            .iter()
            .map(|index| self.entry_of(index, row, row_key))
            .collect()
    }

    /// The entry that an encoded row has in one index.
    pub(crate) fn entry_of(
        &self,
        index: &IndexShape,
        row: &[u8],
        row_key: &[u8],
    ) -> Result<EntryKey, StoreError> {
        let mut bytes = Vec::new();
        let has_null = index.key.append_row(&self.layout, row, &mut bytes)?;
        Ok(finish_entry(bytes, has_null, row_key))
    }

    /// Appends the bytes of the entry that an encoded row has in one index.
    pub(crate) fn append_entry(
        &self,
        index: &IndexShape,
        (row, row_key): (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        index.key.append_row(&self.layout, row, out)?;
        out.extend_from_slice(row_key);
        Ok(())
    }
}

fn finish_entry(mut bytes: Vec<u8>, has_null: bool, row_key: &[u8]) -> EntryKey {
    let own_length = bytes.len();
    bytes.extend_from_slice(row_key);
    EntryKey {
        bytes,
        own_length,
        has_null,
    }
}

#[cfg(test)]
mod tests {
    use format::PageNo;

    use super::*;

    fn trees(index: u64) -> [Tree; 2] {
        let tree = Tree {
            space: SpaceId(1),
            root: PageNo(1),
            index: IndexId(index),
        };
        [tree, tree]
    }

    /// A table that gets an index each day keeps what an open snapshot is older than, and no more.
    #[test]
    fn rebuilt_trees_are_forgotten_once_every_snapshot_is_younger() {
        let live = LiveTable::default();
        let set = |index, now, horizon| {
            let (now, horizon) = (Lsn(now), Lsn(horizon));
            live.set_remade(IndexId(index), Moment { now, horizon });
            live.remade.lock().len()
        };
        assert_eq!([set(1, 10, 5), set(2, 20, 9)], [1, 2]);
        // A snapshot of 10 sees the first tree, which was rebuilt by then.
        assert_eq!(set(3, 30, 10), 2);
        assert!(live.serves(trees(1), Lsn(10)));
        assert!(!live.serves(trees(2), Lsn(19)) && live.serves(trees(2), Lsn(20)));
        assert!(!live.serves(trees(3), Lsn(29)) && live.serves(trees(3), Lsn(30)));
        for day in 4..100 {
            assert_eq!(set(day, 10 * day, 10 * day - 1), 1);
        }
    }
}
