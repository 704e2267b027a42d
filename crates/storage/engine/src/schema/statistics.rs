//! Estimates for the planner: how many rows a range has, and how many distinct values an index.
//!
//! What a range has is measured in the tree when a statement is planned (`btree::measure`). How
//! many distinct values the first parts of an index have is kept, and renewed by `sampling`.
//!
//! **When.** Each change of an index's entries counts (`LiveTable::count_change`). The one
//! after which a tenth of the rows have changed puts the table on a list ([`StatisticsDue`]), and
//! a loop of the first worker's background renews them. No statement of a user waits for that,
//! but for `ANALYZE TABLE`, which asks for it.
//!
//! **Kept over a restart.** The numbers are a row of the dictionary (`docs/formats/statistics.md`).
//! No picture of the dictionary is published for them. Cached plans are dropped if the numbers have
//! doubled or halved.

use std::collections::BTreeSet;
use std::sync::Arc;

use btree::{Pages, Tree};
use format::{IndexId, TableId};
use store::{KeyRange, Outcome, TableStatistics, Uniqueness};
use sync::{Mutex, Notify};

use crate::schema::table_shape::TableShape;

/// Rows that a value of the first part of an index is taken to have, where nothing is known.
const ROWS_PER_VALUE: u64 = 10;

/// Changes that make statistics due, whatever the table's size.
pub(crate) const CHANGES_MIN: u64 = 256;
/// The part of a table's rows whose change makes them due: a tenth.
const CHANGED_PART: u64 = 10;

/// What is kept of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct IndexStatistics {
    /// Its tree.
    pub(crate) index: IndexId,
    /// Leaves of the tree.
    pub(crate) leaves: u64,
    /// For each number of first parts, how many distinct values they have.
    pub(crate) distinct: Vec<u64>,
}

/// Tables whose statistics are to be renewed. Any thread adds, the first worker takes.
#[derive(Debug, Default)]
pub(crate) struct StatisticsDue {
    tables: Mutex<BTreeSet<TableId>>,
    /// Where that worker sleeps while there is none.
    pub(crate) due: Notify,
}

impl StatisticsDue {
    /// Puts a table on the list.
    pub(crate) fn add(&self, table: TableId) {
        self.tables.lock().insert(table);
        self.due.notify();
    }

    /// Takes a table from the list.
    pub(crate) fn take(&self) -> Option<TableId> {
        self.tables.lock().pop_first()
    }
}

/// After how many changes the statistics of a table of so many rows are due.
pub(crate) fn changes_until_due(rows: u64) -> u64 {
    (rows / CHANGED_PART).max(CHANGES_MIN)
}

impl TableShape {
    /// What is known without looking at a page.
    pub(crate) fn statistics(&self, page_bytes: usize) -> TableStatistics {
        let kept = self.live.statistics();
        let row_count = self.live.row_count();
        let of_tree = |tree: Tree| kept.iter().find(|it| it.index == tree.index);
        let indexes = &self.entry.definition.indexes;
        let distinct = indexes.iter().enumerate().map(|(position, index)| {
            let kept = of_tree(self.tree_of(position));
            let parts = 1..=index.parts.len();
            let of_parts = parts.map(|count| {
                let is_unique = index.uniqueness != Uniqueness::None;
                match kept.and_then(|kept| kept.distinct.get(count - 1)) {
                    _ if is_unique && count == index.parts.len() => row_count,
                    Some(&distinct) => distinct.min(row_count),
                    None => guess(row_count, count),
                }
            });
            of_parts.collect()
        });
        let distinct = distinct.collect();
        let bytes = |trees: &mut dyn Iterator<Item = Tree>| -> u64 {
            let leaves: u64 = trees.filter_map(|tree| Some(of_tree(tree)?.leaves)).sum();
            leaves.saturating_mul(stdx::to_u64(page_bytes))
        };
        TableStatistics {
            row_count,
            data_bytes: bytes(&mut std::iter::once(self.clustered)),
            index_bytes: bytes(&mut self.secondary.iter().map(|index| index.tree)),
            distinct,
        }
    }

    /// How many rows a range of an index has, roughly.
    pub(crate) fn measure(&self, pages: &Pages, index: usize, range: &KeyRange) -> Outcome<u64> {
        let secondary = self.secondary.iter().find(|it| it.position == index);
        let key = secondary.map_or(self.row_key(), |index| Some(&index.key));
        let interval = key.map(|key| key.interval(range)).unwrap_or_default();
        if interval.is_empty {
            return Ok(0);
        }
        let (lower, upper) = (&interval.lower, interval.upper.as_deref());
        let measured = self.tree_of(index).measure(pages, lower, upper)?;
        Ok(measured.entries)
    }

    /// The tree of the index at a position of the definition.
    fn tree_of(&self, position: usize) -> Tree {
        let secondary = self.secondary.iter().find(|it| it.position == position);
        secondary.map_or(self.clustered, |index| index.tree)
    }
}

fn guess(row_count: u64, part_count: usize) -> u64 {
    assert!(0 < part_count, "a key has a first part");
    let parts = u32::try_from(part_count).unwrap_or(u32::MAX);
    let rows = ROWS_PER_VALUE.checked_shr(parts - 1).unwrap_or(0).max(1);
    row_count / rows
}

/// What a table's row of statistics has for a search.
pub(crate) type SharedStatistics = Arc<[IndexStatistics]>;
