//! `plateau check`: looks at every page, every row, every index entry and every undo record.
//!
//! Purge runs to its end first (that of other workers is the caller's care), so that each page of
//! a tablespace belongs to a tree, to the large value of a row, or to nothing. Nobody may work
//! meanwhile.
//!
//! (K1) Damage ends nothing: what cannot be read is told and passed over, with what it leads to.
//! What would follow from that alone (rows without entries, pages that belong to nothing) is not
//! told. In the end every file is read page by page, so that damage which nothing leads to any more
//! is named too.
//! (K2) The memory that it takes is that of one leaf, one row, a bit for each page of one
//! tablespace, and a bounded number of faults ([`report`]).

mod files;
mod page_set;
mod report;
mod undo;

use std::rc::Rc;
use std::sync::Arc;

use btree::check::Check;
use btree::lob::LobCursor;
use btree::{Run, Tree, space};
use format::row_header::{LobReference, RowHeader};
use format::{PageId, PageNo, SpaceId};
use store::{StoreError, Suspend};

use crate::engine::Engine;
use crate::row::entries;
use crate::schema::dictionary;
use crate::schema::table_shape::{IndexShape, TableShape};
use crate::undo::undo_log::{FIRST_SPACE, TABLE_SPACES_START, space_of};
use crate::worker::{COUNTERS_PAGE, Worker};

use files::NewestLsn;
pub use files::check_files;
use page_set::PageSet;
use report::Audit;
pub use report::CheckReport;

/// Records that purge looks at in one go.
const PURGE_BUDGET: usize = 4096;
/// Pages after which other tasks of the worker have their turn.
const PAGES_PER_TURN: u64 = 16;

impl Engine {
    /// Rolls back what this worker's sessions have left, and purges its segments to their end. A
    /// check needs this of all workers first: it takes what another one is about to remove, half
    /// removed, for damage.
    pub async fn clear_remains(&self) -> Result<(), StoreError> {
        let worker = &self.worker;
        worker.roll_back_orphans().await?;
        worker.remove_left_spaces().await?;
        loop {
            worker.txns.maintain(|| worker.pages.reserved());
            if worker.purge(PURGE_BUDGET).await? == 0 {
                return Ok(());
            }
        }
    }

    /// Checks everything; `progress` hears of each page. Errors are those that are no damage: the
    /// log has failed, the disk is full.
    pub async fn check(
        &self,
        progress: &mut dyn FnMut(&CheckReport),
    ) -> Result<CheckReport, StoreError> {
        let mut report = CheckReport::default();
        // Without purge there may be pages that belong to undo alone.
        let is_purged = match on_the_whole(self.clear_remains().await)? {
            Ok(()) => true,
            Err(error) => {
                report.fault(format!("old versions of rows cannot be removed: {error}"));
                false
            }
        };
        let worker = &self.worker;
        let mut audit = Audit::new(
            dictionary::tree().space,
            "the dictionary".to_owned(),
            &mut report,
            progress,
        );
        audit.is_partial = !is_purged;
        worker.check_system(&mut audit).await?;
        audit.end();
        let segments = worker.shared.segment_count;
        for segment in 0..u8::try_from(segments).expect("there are at most 255 workers") {
            let owner = format!("undo segment {segment}");
            let mut audit = Audit::new(space_of(segment), owner, &mut report, progress);
            worker.check_segment(segment, &mut audit).await?;
            audit.end();
        }
        let tables: Vec<Arc<TableShape>> = worker.dictionary().tables.values().cloned().collect();
        for table in tables {
            report.table_count += 1;
            let owner = format!("table {}", table.entry.definition.name);
            let mut audit = Audit::new(table.space(), owner, &mut report, progress);
            audit.is_partial = !is_purged;
            worker.check_table(&table, &mut audit).await?;
            audit.end();
        }
        worker.check_all_files(&mut report, progress).await?;
        Ok(report)
    }
}

/// What a check goes on behind: pages that cannot be read are the inner error.
fn on_the_whole<T>(outcome: Result<T, StoreError>) -> Result<Result<T, StoreError>, StoreError> {
    match outcome {
        Err(error @ (StoreError::Damaged { .. } | StoreError::Disk { .. })) => Ok(Err(error)),
        Err(error) => Err(error),
        Ok(value) => Ok(Ok(value)),
    }
}

/// Lets others run now and then.
async fn give_way(audit: &Audit<'_>) {
    if audit.report.page_count.is_multiple_of(PAGES_PER_TURN) {
        Suspend::turn().await;
    }
}

/// How many there are, and whether all were looked at.
#[derive(Debug, Clone, Copy)]
struct Counted {
    count: u64,
    is_whole: bool,
}

impl Worker {
    async fn check_system(self: &Rc<Self>, audit: &mut Audit<'_>) -> Result<(), StoreError> {
        audit.own(COUNTERS_PAGE);
        self.check_rows(dictionary::tree(), None, audit).await?;
        self.check_space(audit).await
    }

    async fn check_table(
        self: &Rc<Self>,
        table: &TableShape,
        audit: &mut Audit<'_>,
    ) -> Result<(), StoreError> {
        let mut entries = Vec::new();
        for index in &table.secondary {
            entries.push(self.check_index(table, index, audit).await?);
        }
        let rows = self
            .check_rows(table.clustered, Some((table, &entries)), audit)
            .await?;
        audit.report.row_count += rows.count;
        for (index, entries) in table.secondary.iter().zip(entries) {
            let are_known = rows.is_whole && entries.is_whole;
            let (entries, rows) = (entries.count, rows.count);
            if are_known && entries != rows {
                let name = &table.entry.definition.name;
                let index = name_of(table, index);
                audit.fault(format!(
                    "index {index} of {name} has {entries} entries for {rows} rows"
                ));
            }
        }
        self.check_space(audit).await
    }

    /// Takes the next page of a tree; the entries of a leaf are in `run` then. `None` behind the
    /// last page, otherwise whether the page is whole.
    async fn look(
        &self,
        check: &mut Check,
        run: &mut Run,
        audit: &mut Audit<'_>,
    ) -> Result<Option<bool>, StoreError> {
        let Some(looked) = self.until_done(|| check.step(&self.pages, run)).await? else {
            return Ok(None);
        };
        audit.own(looked.page);
        let is_whole = looked.is_whole();
        if let Some(error) = looked.unreadable {
            audit.damage(looked.page, &error);
        }
        for fault in looked.faults {
            audit.damage(looked.page, &fault);
        }
        give_way(audit).await;
        Ok(Some(is_whole))
    }

    /// Looks at every row that is not deleted: its bytes, its key, its entries.
    async fn check_rows(
        self: &Rc<Self>,
        tree: Tree,
        table: Option<(&TableShape, &[Counted])>,
        audit: &mut Audit<'_>,
    ) -> Result<Counted, StoreError> {
        let (mut check, mut run) = (Check::new(tree), Run::new());
        let (mut count, mut is_whole) = (0, true);
        while let Some(page_is_whole) = self.look(&mut check, &mut run, audit).await? {
            is_whole &= page_is_whole;
            for number in 0..run.len() {
                let (key, version) = run.entry(number);
                let Some((header, body)) = RowHeader::split(version) else {
                    audit.fault(format!("a row of {} has no header", audit.owner));
                    continue;
                };
                let row = if header.is_spilled {
                    self.check_lob(body, audit).await?
                } else {
                    Some(body.to_vec())
                };
                if header.is_deleted {
                    continue;
                }
                count += 1;
                if let (Some((table, indexes)), Some(row)) = (table, row) {
                    self.check_row((table, indexes), (key, &row), audit).await?;
                }
            }
        }
        Ok(Counted { count, is_whole })
    }

    /// Reads a large value and notes its pages. `None` if it is not all there.
    async fn check_lob(
        &self,
        body: &[u8],
        audit: &mut Audit<'_>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let Ok(reference) = LobReference::decode(body) else {
            audit.is_partial = true;
            audit.fault(format!("a row of {} has no reference", audit.owner));
            return Ok(None);
        };
        let mut cursor = LobCursor::new(reference.first_page, reference.length);
        let mut row = Vec::new();
        while let Some(page) = cursor.page() {
            if !audit.own(page) {
                audit.is_partial = true;
                return Ok(None);
            }
            let step = self.until_done(|| cursor.step(&self.pages, audit.space, &mut row));
            if let Err(error) = on_the_whole(step.await)? {
                audit.damage(page, &error);
                return Ok(None);
            }
            give_way(audit).await;
        }
        Ok(Some(row))
    }

    async fn check_row(
        &self,
        (table, indexes): (&TableShape, &[Counted]),
        (key, row): (&[u8], &[u8]),
        audit: &mut Audit<'_>,
    ) -> Result<(), StoreError> {
        let name = &table.entry.definition.name;
        if !table.layout.verify(row) {
            audit.fault(format!("a row of {name} is damaged"));
            return Ok(());
        }
        let primary = table.primary_of(row)?;
        if primary.is_some_and(|primary| primary != key) {
            audit.fault(format!("a row of {name} stands under the key of another"));
        }
        let entries = table.entries_of(row, key)?;
        for ((index, entry), counted) in table.secondary.iter().zip(entries).zip(indexes) {
            // What a damaged index has, nobody can say.
            if counted.is_whole && !self.has_entry(index, &entry.bytes).await? {
                let index = name_of(table, index);
                audit.fault(format!("a row of {name} has no entry in index {index}"));
            }
        }
        Ok(())
    }

    async fn has_entry(&self, index: &IndexShape, key: &[u8]) -> Result<bool, StoreError> {
        let mut payload = Vec::new();
        let get = || index.tree.get(&self.pages, key, &mut payload);
        let root = PageId::new(index.tree.space, index.tree.root);
        match on_the_whole(self.until_done(get).await)? {
            Ok(is_there) => Ok(is_there
                && self
                    .until_done(|| entries::decode(&payload, root))
                    .await?
                    .is_live()),
            // It was read a moment ago, whole; the files' turn comes.
            Err(_) => Ok(true),
        }
    }

    /// Counts the entries of an index that are not deleted, and looks for doubles in a unique one.
    async fn check_index(
        &self,
        table: &TableShape,
        index: &IndexShape,
        audit: &mut Audit<'_>,
    ) -> Result<Counted, StoreError> {
        let (mut check, mut run) = (Check::new(index.tree), Run::new());
        let (mut count, mut is_whole) = (0, true);
        let mut doubles = Doubles::default();
        while let Some(page_is_whole) = self.look(&mut check, &mut run, audit).await? {
            is_whole &= page_is_whole;
            for number in 0..run.len() {
                let (key, payload) = run.entry(number);
                let root = PageId::new(index.tree.space, index.tree.root);
                let decoded = self.until_done(|| entries::decode(payload, root)).await;
                let own_length = |length: u16| usize::from(length).min(key.len());
                let Ok(header) = on_the_whole(decoded)? else {
                    let (index, name) = (name_of(table, index), &table.entry.definition.name);
                    audit.fault(format!("an entry of index {index} of {name} has no header"));
                    is_whole = false;
                    continue;
                };
                if !header.is_live() {
                    continue;
                }
                count += 1;
                let own = key.split_at(own_length(header.own_length));
                if index.is_unique && doubles.add(own) {
                    self.check_double((table, index), own.1, (&mut doubles, audit))
                        .await?;
                }
            }
        }
        Ok(Counted { count, is_whole })
    }

    /// Two entries in a row have the same own part: told once, if no part of it is NULL.
    async fn check_double(
        &self,
        (table, index): (&TableShape, &IndexShape),
        row_key: &[u8],
        (doubles, audit): (&mut Doubles, &mut Audit<'_>),
    ) -> Result<(), StoreError> {
        if doubles.is_judged {
            return Ok(());
        }
        let has_null = if index.key.is_nullable() {
            self.entry_has_null(table, index, row_key).await?
        } else {
            Some(false)
        };
        // A row that cannot be read says nothing; the next of the same key may.
        doubles.is_judged = has_null.is_some();
        if has_null == Some(false) {
            let (index, name) = (name_of(table, index), &table.entry.definition.name);
            audit.fault(format!(
                "unique index {index} of {name} has two rows with the same key"
            ));
        }
        Ok(())
    }

    /// Whether a row has NULL in a column of the index; `None` if it cannot be read.
    async fn entry_has_null(
        &self,
        table: &TableShape,
        index: &IndexShape,
        row_key: &[u8],
    ) -> Result<Option<bool>, StoreError> {
        let mut version = Vec::new();
        let get = || table.clustered.get(&self.pages, row_key, &mut version);
        if on_the_whole(self.until_done(get).await)? != Ok(true) {
            return Ok(None);
        }
        let Some((header, body)) = RowHeader::split(&version) else {
            return Ok(None);
        };
        let mut row = body.to_vec();
        if header.is_spilled {
            let Ok(reference) = LobReference::decode(body) else {
                return Ok(None);
            };
            let mut cursor = LobCursor::new(reference.first_page, reference.length);
            row.clear();
            let read = || cursor.read(&self.pages, table.space(), &mut row);
            if on_the_whole(self.until_done(read).await)?.is_err() {
                return Ok(None);
            }
        }
        if !table.layout.verify(&row) {
            return Ok(None);
        }
        Ok(Some(table.entry_of(index, &row, row_key)?.has_null))
    }

    /// Compares what is used with what is marked as used.
    async fn check_space(&self, audit: &mut Audit<'_>) -> Result<(), StoreError> {
        let header = PageNo(0);
        audit.own(header);
        let high = self.until_done(|| space::high(&self.pages, audit.space));
        let high = match on_the_whole(high.await)? {
            Ok(high) => high,
            Err(error) => {
                audit.damage(header, &error);
                return Ok(());
            }
        };
        // A crash may leave a file shorter than its header says: what is missing was never in use,
        // and a map that is in use was written.
        let room = self.pages.pool().room_pages(audit.space).unwrap_or(0);
        let maps = || {
            let maps = space::maps(high, self.pages.page_bytes());
            maps.take_while(|(_, map)| map.0 < room)
        };
        for (_, map) in maps() {
            audit.own(map);
        }
        let behind: Vec<PageNo> = audit.used.range(high..=u32::MAX).collect();
        for page in behind {
            let id = audit.id(page);
            audit.fault(format!(
                "page {id} is used, but behind the tablespace's end"
            ));
        }
        for (first, map) in maps() {
            self.check_stretch((first, map), high, audit).await?;
        }
        Ok(())
    }

    /// The same for the pages of one map.
    async fn check_stretch(
        &self,
        (first, map): (PageNo, PageNo),
        high: u32,
        audit: &mut Audit<'_>,
    ) -> Result<(), StoreError> {
        let marked =
            self.until_done(|| space::used_in_stretch(&self.pages, audit.space, (first, high)));
        let marked = match on_the_whole(marked.await)? {
            Ok(marked) => marked,
            Err(error) => {
                audit.damage(map, &error);
                return Ok(());
            }
        };
        let mut owned_count = 0;
        for &page in &marked {
            if audit.used.contains(page) {
                owned_count += 1;
            } else if !audit.is_partial {
                let id = audit.id(page);
                audit.fault(format!(
                    "page {id} is marked as used but belongs to nothing"
                ));
            }
        }
        let last = space::stretch_end(first, high, self.pages.page_bytes()).saturating_sub(1);
        if audit.used.range(first.0..=last).count() == owned_count {
            return Ok(());
        }
        let mut marks = PageSet::default();
        for page in marked {
            marks.insert(page);
        }
        let used = audit.used.range(first.0..=last);
        let unmarked: Vec<PageNo> = used.filter(|&page| !marks.contains(page)).collect();
        for page in unmarked {
            let id = audit.id(page);
            audit.fault(format!("page {id} is used but marked as free"));
        }
        Ok(())
    }

    /// Reads the files from end to end, behind the last page that is to be written.
    async fn check_all_files(
        &self,
        report: &mut CheckReport,
        progress: &mut dyn FnMut(&CheckReport),
    ) -> Result<(), StoreError> {
        self.pages.clean_all().await?;
        let pool = self.pages.pool();
        let place = (pool.directory(), pool.options().page_size);
        let newest = |epoch| pool.wal().newest_lsn(epoch);
        let behind = FIRST_SPACE + self.shared.segment_count;
        let known: (Option<NewestLsn<'_>>, _) =
            (Some(&newest), SpaceId(behind)..SpaceId(TABLE_SPACES_START));
        check_files(&**self.pages.disk(), place, known, report, progress).await
    }
}

fn name_of<'a>(table: &'a TableShape, index: &IndexShape) -> &'a str {
    &table.entry.definition.indexes[index.position].name
}

/// Neighbours in a unique index, which has equal keys side by side.
#[derive(Debug, Default)]
struct Doubles {
    /// The own part of the last entry; `None` before the first.
    last: Option<Vec<u8>>,
    /// It is known whether entries with this part may be two, and it was told if not.
    is_judged: bool,
}

impl Doubles {
    /// Takes the next entry, parted into own part and row key; true if its own part is the last's.
    fn add(&mut self, (own, _): (&[u8], &[u8])) -> bool {
        match &mut self.last {
            Some(last) if last == own => return true,
            Some(last) => {
                last.clear();
                last.extend_from_slice(own);
            }
            none => *none = Some(own.to_vec()),
        }
        self.is_judged = false;
        false
    }
}
