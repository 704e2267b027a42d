//! Renewing the statistics of a table: how many distinct values its indexes have.
//!
//! Small indexes are counted. Large ones are sampled from leaves picked at random ([`Sampler`]).
//!
//! **Budget.** An index costs at most [`COUNTED_LEAVES_MAX`] leaves, or [`SAMPLE_COUNT`] and
//! [`JUMP_COUNT_MAX`] descents for each of its parts. The loop pauses after each
//! [`PAGES_PER_TURN`] pages and rests for a second after each table.

use std::rc::Rc;
use std::time::Duration;

use btree::{From, Measure, Place, Run, Tree};
use format::TableId;
use store::{StoreError, until_done};
use sync::atomic::Ordering;
use tracing::warn;
use value::key::successor;

use crate::schema::dictionary::{Entry, StatisticsEntry};
use crate::schema::statistics::IndexStatistics;
use crate::schema::table_shape::{IndexShape, KeyShape, TableShape};
use crate::worker::Worker;

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
        // Damage is told here, since what a dropped tree looks like is none.
        if let Err(failure) = &sampled {
            self.pages.pool().news().note_error(failure);
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
        let clustered = std::iter::once((shape.clustered, shape.row_key()));
        let of = |index: &'_ IndexShape| index.tree;
        let secondary = shape.secondary.iter().map(|it| (of(it), Some(&it.key)));
        for (tree, key) in clustered.chain(secondary) {
            let measured = until_done(|| tree.measure(&self.pages, b"", None)).await?;
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
            until_done(read).await?;
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
            until_done(read).await?;
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
            until_done(read).await?;
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
