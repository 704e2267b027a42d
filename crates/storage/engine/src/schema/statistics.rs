//! Estimates for the planner: how many rows a range has, and how many distinct values an index.
//!
//! What a range has is measured in the tree when a statement is planned (`btree::measure`). How
//! many distinct values the first parts of an index have is kept: counted for small indexes,
//! sampled from leaves picked at random for large ones ([`Sampler`]).
//!
//! **When.** Each change of an index's entries counts ([`LiveTable::count_change`]). The one
//! after which a tenth of the rows have changed puts the table on a list ([`StatisticsDue`]), and
//! a loop of the first worker's background renews them. No statement of a user waits for that,
//! but for `ANALYZE TABLE`, which asks for it.
//!
//! **Budget.** An index costs at most [`COUNTED_LEAVES_MAX`] leaves, or [`SAMPLE_COUNT`] and
//! [`JUMP_COUNT_MAX`] descents for each of its parts. The loop pauses after each
//! [`PAGES_PER_TURN`] pages and rests for a second after each table.
//!
//! **Kept over a restart.** The numbers are a row of the dictionary (`docs/formats/statistics.md`).
//! No picture of the dictionary is published for them. Cached plans are dropped if the numbers have
//! doubled or halved (`is_other`).

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use btree::{From, Measure, Pages, Place, Run, Tree};
use format::{IndexId, TableId};
use store::{KeyRange, Outcome, StoreError, TableStatistics, Uniqueness};
use sync::atomic::Ordering;
use sync::{Mutex, Notify};
use tracing::warn;
use value::key::successor;

use crate::schema::dictionary::{Entry, StatisticsEntry};
use crate::schema::table_shape::{IndexShape, KeyShape, TableShape};
use crate::worker::Worker;

/// Rows that a value of the first part of an index is taken to have, where nothing is known.
const ROWS_PER_VALUE: u64 = 10;

/// An index of so many leaves is counted, not sampled.
const COUNTED_LEAVES_MAX: u64 = 32;
/// Leaves of a larger one that are looked at; InnoDB takes 20.
const SAMPLE_COUNT: u64 = 20;
/// Values of a prefix that are counted one by one before the sample has to tell: one of so few
/// values hardly changes within the leaves of a sample.
const JUMP_COUNT_MAX: u64 = 64;

/// Pages that are looked at between two pauses.
const PAGES_PER_TURN: u64 = 8;
/// Such a pause.
const PAUSE: Duration = Duration::from_millis(1);
/// After each table: one that grows all the time is looked at once a second at the most.
const REST: Duration = Duration::from_secs(1);

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

    fn take(&self) -> Option<TableId> {
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
        let key = secondary.map_or(self.primary(), |index| Some(&index.key));
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

impl Worker {
    /// Renews the statistics of a table: samples its indexes and writes down what they tell.
    pub(crate) async fn renew_statistics(self: &Rc<Self>, id: TableId) -> Result<(), StoreError> {
        let Some(shape) = self.table_shape(id) else {
            return Ok(());
        };
        let is_changed = || {
            let now = self.table_shape(id);
            now.is_none_or(|now| now.entry.trees != shape.entry.trees)
        };
        let sampled = self.sample_table(&shape).await;
        let turn = self.shared.schema_turns.take().await;
        // Trees that are dropped meanwhile are other things, or nothing; the next change of the
        // table's rows counts towards the next time.
        if is_changed() {
            return Ok(());
        }
        let (rows, indexes) = sampled?;
        assert_eq!(
            indexes.len(),
            shape.entry.trees.len(),
            "each tree has its statistics"
        );
        shape.live.correct_row_count(rows);
        if is_other(&shape.live.statistics(), &indexes) {
            let version = &self.shared.statistics_version;
            // Relaxed: see `Engine::statistics_version`.
            version.fetch_add(1, Ordering::Relaxed);
        }
        shape.live.set_statistics(rows, indexes.clone().into());
        let entry = Entry::Statistics(StatisticsEntry {
            table: id,
            rows,
            indexes,
        });
        self.write_statistics(&turn, entry).await
    }

    /// The number of rows, and what the indexes tell.
    async fn sample_table(
        &self,
        shape: &TableShape,
    ) -> Result<(u64, Vec<IndexStatistics>), StoreError> {
        let mut indexes = Vec::with_capacity(1 + shape.secondary.len());
        let mut rows = 0;
        let clustered = std::iter::once((shape.clustered, shape.primary()));
        let of = |index: &'_ IndexShape| index.tree;
        let secondary = shape.secondary.iter().map(|it| (of(it), Some(&it.key)));
        for (tree, key) in clustered.chain(secondary) {
            let measured = self
                .until_done(|| tree.measure(&self.pages, b"", None))
                .await?;
            if indexes.is_empty() {
                rows = measured.entries;
            }
            let mut sampler = Sampler {
                worker: self,
                tree,
                measured,
                page_count: 0,
            };
            let distinct = match key {
                Some(key) => sampler.distinct(key).await?,
                None => Vec::new(),
            };
            indexes.push(IndexStatistics {
                index: tree.index,
                leaves: measured.leaves,
                distinct,
            });
        }
        Ok((rows, indexes))
    }

    /// Renews what is due until it is over. The first worker does.
    pub(crate) async fn run_statistics(self: &Rc<Self>, is_over: &std::cell::Cell<bool>) {
        if self.options.index != 0 {
            return;
        }
        while !is_over.get() {
            let Some(table) = self.shared.statistics_due.take() else {
                self.shared.statistics_due.due.notified().await;
                continue;
            };
            // One that is being filled is looked at when it has more than its first rows.
            (self.options.sleep)(REST).await;
            if is_over.get() {
                return;
            }
            if let Err(failure) = self.renew_statistics(table).await {
                warn!(%failure, table = table.0, "statistics of a table cannot be renewed");
            }
        }
    }
}

/// True if statistics would lead to other plans than those before: a number is not half of its
/// counterpart, or more than twice. So a growing table has its statements planned again each time
/// that it has doubled.
fn is_other(before: &[IndexStatistics], after: &[IndexStatistics]) -> bool {
    let is_near = |a: u64, b: u64| a / 2 <= b && b / 2 <= a;
    let is_like = |(a, b): (&IndexStatistics, &IndexStatistics)| {
        let mut pairs = a.distinct.iter().zip(&b.distinct);
        a.index == b.index && is_near(a.leaves, b.leaves) && pairs.all(|(a, b)| is_near(*a, *b))
    };
    before.len() != after.len() || !before.iter().zip(after).all(is_like)
}

/// Counts the distinct values of an index's first parts.
struct Sampler<'w> {
    worker: &'w Worker,
    tree: Tree,
    measured: Measure,
    page_count: u64,
}

impl Sampler<'_> {
    /// For each number of first parts, how many distinct values they have.
    async fn distinct(&mut self, key: &KeyShape) -> Result<Vec<u64>, StoreError> {
        if self.measured.leaves <= COUNTED_LEAVES_MAX {
            return self.count_all(key).await;
        }
        let sample = self.sample(key).await?;
        let mut distinct = Vec::with_capacity(key.part_count());
        let mut is_many = false;
        for (place, sampled) in sample.into_iter().enumerate() {
            let counted = match is_many {
                true => None,
                false => self.jump(key, place + 1).await?,
            };
            // The parts behind have no fewer values.
            is_many = counted.is_none();
            let least = distinct.last().copied().unwrap_or(1);
            distinct.push(counted.unwrap_or(sampled.max(JUMP_COUNT_MAX)).max(least));
        }
        Ok(distinct)
    }

    /// Reads the whole index.
    async fn count_all(&mut self, key: &KeyShape) -> Result<Vec<u64>, StoreError> {
        let mut changes = Changes::new(key);
        let (mut place, mut run) = (Place::first(), Run::new());
        while place.from != From::Nothing {
            let (tree, pages) = (self.tree, &self.worker.pages);
            let read = || tree.read_run(pages, &place, usize::MAX, &mut run);
            self.worker.until_done(read).await?;
            self.spend_page().await;
            changes.see(&run);
            std::mem::swap(&mut place, &mut run.next);
        }
        let one = u64::from(0 < changes.entry_count);
        Ok(changes.counts.iter().map(|count| count + one).collect())
    }

    /// From leaves picked at random: each pair of neighbours in the index is as likely as another
    /// to be among those that are looked at.
    async fn sample(&mut self, key: &KeyShape) -> Result<Vec<u64>, StoreError> {
        let mut changes = Changes::new(key);
        let mut run = Run::new();
        for number in 0..SAMPLE_COUNT {
            let seed = self.tree.index.0.wrapping_mul(SAMPLE_COUNT) + number;
            let (tree, pages) = (self.tree, &self.worker.pages);
            let read = || tree.sample_leaf(pages, seed, &mut run);
            self.worker.until_done(read).await?;
            self.spend_page().await;
            changes.last.clear();
            changes.see(&run);
        }
        let pairs = changes.pair_count.max(1);
        let all_pairs = u128::from(self.measured.entries.saturating_sub(1));
        let scaled = |count: &u64| {
            let part = u128::from(*count) * all_pairs / u128::from(pairs);
            u64::try_from(part).unwrap_or(u64::MAX) + 1
        };
        Ok(changes.counts.iter().map(scaled).collect())
    }

    /// Jumps from value to value of the first `count` parts; `None` if there are too many.
    async fn jump(&mut self, key: &KeyShape, count: usize) -> Result<Option<u64>, StoreError> {
        let (mut place, mut run) = (Place::first(), Run::new());
        let mut values = 0;
        while place.from != From::Nothing {
            let (tree, pages) = (self.tree, &self.worker.pages);
            let read = || tree.read_run(pages, &place, 1, &mut run);
            self.worker.until_done(read).await?;
            self.spend_page().await;
            if run.is_empty() {
                std::mem::swap(&mut place, &mut run.next);
                continue;
            }
            values += 1;
            if values == JUMP_COUNT_MAX {
                return Ok(None);
            }
            let entry = run.entry(0).0;
            let length = key.prefix_length(count, entry);
            let next = length.and_then(|length| successor(entry.get(..length)?.to_vec()));
            let Some(next) = next else {
                break;
            };
            place = Place::new(From::AtLeast, &next);
        }
        Ok(Some(values))
    }

    async fn spend_page(&mut self) {
        self.page_count += 1;
        if self.page_count.is_multiple_of(PAGES_PER_TURN) {
            (self.worker.options.sleep)(PAUSE).await;
        }
    }
}

/// How often the first parts change from one entry to the next.
struct Changes<'k> {
    key: &'k KeyShape,
    /// For each number of first parts.
    counts: Vec<u64>,
    pair_count: u64,
    entry_count: u64,
    /// The entry before.
    last: Vec<u8>,
}

impl<'k> Changes<'k> {
    fn new(key: &'k KeyShape) -> Self {
        Self {
            key,
            counts: vec![0; key.part_count()],
            pair_count: 0,
            entry_count: 0,
            last: Vec::new(),
        }
    }

    /// Looks at the entries of a run, which follow the last one.
    fn see(&mut self, run: &Run) {
        for place in 0..run.len() {
            let entry = run.entry(place).0;
            if !self.last.is_empty() {
                self.pair_count += 1;
                let common = entry.iter().zip(&self.last).take_while(|(a, b)| a == b);
                let same = self.key.parts_within(entry, common.count());
                for count in self.counts.iter_mut().skip(same) {
                    *count += 1;
                }
            }
            self.entry_count += 1;
            self.last.clear();
            self.last.extend_from_slice(entry);
        }
    }
}

/// What a table's row of statistics has for a search.
pub(crate) type SharedStatistics = Arc<[IndexStatistics]>;
