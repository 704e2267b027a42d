//! Rows and index entries: each by itself, and whether they match.
//!
//! An index and its table are compared by sums of the hashes of entries: those that exist and those
//! that the rows require (K4). A sum does not depend on the order, so parts of a table add up. Two
//! different sets of keys have the same sum by chance once in 2^64. Only if the sums differ, each
//! row's entry is looked up.

use std::borrow::Cow;

use btree::check::Check;
use btree::lob::LobCursor;
use btree::{Run, Tree};
use format::codec::checksum;
use format::row_header::{LobReference, RowHeader};
use format::{PageId, PageNo};
use store::StoreError;

use super::checker::Checker;
use super::plan::Part;
use super::report::Audit;
use super::{give_way, on_the_whole};
use crate::row::entries;
use crate::schema::table_shape::{IndexShape, TableShape};

/// The number of entries or rows, and whether all were checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) count: u64,
    pub(super) is_whole: bool,
}

/// The result of a walk over one tree.
pub(super) struct TreeFound {
    pub(super) audit: Audit,
    pub(super) counted: Counted,
    /// Of an index: the sum of its entries. Of rows: the sums that all indexes should have.
    pub(super) sums: Vec<u64>,
}

/// A walk over the pages of a tree, which reads the next ones ahead.
struct Walk {
    check: Check,
    /// The entries of the last leaf.
    run: Run,
    part: Part,
    is_at_root: bool,
    /// Pages of the last read ahead that are still to come.
    ahead_count: usize,
}

impl Walk {
    fn new(tree: Tree, part: Part) -> Self {
        Self {
            check: Check::new(tree),
            run: Run::new(),
            part,
            is_at_root: true,
            ahead_count: 0,
        }
    }
}

/// An index whose entries are not those of the rows.
struct Suspect<'a>(&'a IndexShape);

impl Checker<'_> {
    /// Takes the next page of a tree; if it is a leaf, its entries are then in the walk's `run`.
    /// Returns `None` after the last page, otherwise whether the page is whole.
    async fn look(&self, walk: &mut Walk, audit: &mut Audit) -> Result<Option<bool>, StoreError> {
        loop {
            self.read_on(walk, audit).await;
            let Walk { check, run, .. } = walk;
            let looked = self.until_done(|| check.step(self.pages, run)).await?;
            let Some(looked) = looked else {
                return Ok(None);
            };
            if std::mem::take(&mut walk.is_at_root) {
                let Part { index, count } = walk.part;
                walk.check.keep_part(index, count);
                if index != 0 {
                    // The root belongs to the first part.
                    walk.run.clear();
                    continue;
                }
            }
            self.progress.add_pages(1);
            audit.own(looked.page);
            let is_whole = looked.is_whole();
            if let Some(error) = looked.unreadable {
                audit.damage(looked.page, &error);
            }
            for fault in looked.faults {
                audit.damage(looked.page, &fault);
            }
            give_way(audit).await;
            return Ok(Some(is_whole));
        }
    }

    /// Reads ahead if the pages of the last read are used up, or if the walk has descended to pages
    /// that were unknown then. (An inner page has no entries.)
    async fn read_on(&self, walk: &mut Walk, audit: &Audit) {
        let has_gone_down = walk.run.is_empty();
        if walk.ahead_count != 0 && !has_gone_down {
            walk.ahead_count -= 1;
            return;
        }
        let count = self.ahead_pages;
        let pages: Vec<PageNo> = walk.check.upcoming().take(2 * count).collect();
        let (now, next) = pages.split_at(count.min(pages.len()));
        self.read_ahead(audit.space, now, next).await;
        walk.ahead_count = now.len().saturating_sub(1);
    }

    /// Checks every row of a part that is not deleted: its bytes and its key. Returns the sums that
    /// the table's indexes should have.
    pub(super) async fn check_rows(
        &self,
        tree: Tree,
        table: Option<&TableShape>,
        part: Part,
        audit: &mut Audit,
    ) -> Result<(Counted, Vec<u64>), StoreError> {
        let mut walk = Walk::new(tree, part);
        let (mut count, mut is_whole) = (0, true);
        let mut sums = vec![0; table.map_or(0, |table| table.secondary.len())];
        let mut entry = Vec::new();
        while let Some(page_is_whole) = self.look(&mut walk, audit).await? {
            is_whole &= page_is_whole;
            let before = count;
            for number in 0..walk.run.len() {
                let (key, version) = walk.run.entry(number);
                let Some((is_deleted, row)) = self.read_row(version, audit).await? else {
                    continue;
                };
                if is_deleted {
                    continue;
                }
                count += 1;
                let (Some(table), Some(row)) = (table, row) else {
                    continue;
                };
                if !check_row(table, (key, &row), audit)? {
                    continue;
                }
                for (index, sum) in table.secondary.iter().zip(&mut sums) {
                    entry.clear();
                    table.append_entry(index, (&row, key), &mut entry)?;
                    *sum = add_entry(*sum, &entry);
                }
            }
            self.progress.add_rows(count - before);
        }
        if table.is_some() {
            audit.row_count += count;
        }
        Ok((Counted { count, is_whole }, sums))
    }

    /// Whether a version is deleted, and its bytes if all can be read; `None` without a header.
    async fn read_row<'v>(
        &self,
        version: &'v [u8],
        audit: &mut Audit,
    ) -> Result<Option<(bool, Option<Cow<'v, [u8]>>)>, StoreError> {
        let Some((header, body)) = RowHeader::split(version) else {
            audit.fault(format!("a row of {} has no header", audit.owner));
            return Ok(None);
        };
        let row = if header.is_spilled {
            self.check_lob(body, audit).await?.map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(body))
        };
        Ok(Some((header.is_deleted, row)))
    }

    /// Reads a large value and notes its pages. Returns `None` if it is incomplete.
    async fn check_lob(
        &self,
        body: &[u8],
        audit: &mut Audit,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let Ok(reference) = LobReference::decode(body) else {
            audit.is_partial = true;
            audit.fault(format!("a row of {} has no reference", audit.owner));
            return Ok(None);
        };
        let mut cursor = LobCursor::new(reference.first_page, reference.length);
        let mut row = Vec::new();
        while let Some(page) = cursor.page() {
            self.progress.add_pages(1);
            if !audit.own(page) {
                audit.is_partial = true;
                return Ok(None);
            }
            let step = self.until_done(|| cursor.step(self.pages, audit.space, &mut row));
            if let Err(error) = on_the_whole(step.await)? {
                audit.damage(page, &error);
                return Ok(None);
            }
            give_way(audit).await;
        }
        Ok(Some(row))
    }

    /// Counts and sums the entries of an index that are not deleted, and checks a unique one for
    /// duplicates.
    pub(super) async fn check_index(
        &self,
        table: &TableShape,
        index: &IndexShape,
        audit: &mut Audit,
    ) -> Result<(Counted, Vec<u64>), StoreError> {
        let mut walk = Walk::new(index.tree, Part::WHOLE);
        let (mut count, mut sum, mut is_whole) = (0, 0, true);
        let mut doubles = Doubles::default();
        let root = PageId::new(index.tree.space, index.tree.root);
        while let Some(page_is_whole) = self.look(&mut walk, audit).await? {
            is_whole &= page_is_whole;
            for number in 0..walk.run.len() {
                let (key, payload) = walk.run.entry(number);
                let decoded = self.until_done(|| entries::decode(payload, root)).await;
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
                sum = add_entry(sum, key);
                let own = key.split_at(usize::from(header.own_length).min(key.len()));
                if index.is_unique && doubles.add(own) {
                    self.check_double((table, index), own.1, (&mut doubles, audit))
                        .await?;
                }
            }
        }
        Ok((Counted { count, is_whole }, vec![sum]))
    }

    /// Joins the results of the trees of a table, those of the indexes first, and checks what only
    /// all of them together show.
    pub(super) async fn join(
        &self,
        table: &TableShape,
        found: Vec<TreeFound>,
        audit: &mut Audit,
    ) -> Result<(), StoreError> {
        let mut entries = Vec::new();
        let mut rows = Counted {
            count: 0,
            is_whole: true,
        };
        let mut sums = vec![0_u64; table.secondary.len()];
        for part in found {
            audit.join(part.audit);
            if entries.len() < table.secondary.len() {
                entries.push((part.counted, part.sums));
                continue;
            }
            rows.count += part.counted.count;
            rows.is_whole &= part.counted.is_whole;
            for (sum, more) in sums.iter_mut().zip(part.sums) {
                *sum = sum.wrapping_add(more);
            }
        }
        let mut suspects = Vec::new();
        for ((index, (counted, sum)), expected) in table.secondary.iter().zip(&entries).zip(sums) {
            let is_equal = counted.count == rows.count && *sum == [expected];
            // The entries of a damaged index are unknown.
            if counted.is_whole && !is_equal {
                suspects.push(Suspect(index));
            }
        }
        if !suspects.is_empty() {
            self.check_entries(table, &suspects, audit).await?;
        }
        for (index, (counted, _)) in table.secondary.iter().zip(entries) {
            let are_known = rows.is_whole && counted.is_whole;
            let (entries, rows) = (counted.count, rows.count);
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

    /// Looks up each row's entry in some indexes.
    async fn check_entries(
        &self,
        table: &TableShape,
        suspects: &[Suspect<'_>],
        audit: &mut Audit,
    ) -> Result<(), StoreError> {
        let mut walk = Walk::new(table.clustered, Part::WHOLE);
        // Faults of a page or of a row by itself were reported before.
        let mut told = Audit::new(audit.space, audit.owner.clone());
        let name = &table.entry.definition.name;
        let mut entry = Vec::new();
        while self.look(&mut walk, &mut told).await?.is_some() {
            for number in 0..walk.run.len() {
                let (key, version) = walk.run.entry(number);
                let Some((false, Some(row))) = self.read_row(version, &mut told).await? else {
                    continue;
                };
                if !check_row(table, (key, &row), &mut told)? {
                    continue;
                }
                for Suspect(index) in suspects {
                    entry.clear();
                    table.append_entry(index, (&row, key), &mut entry)?;
                    if !self.has_entry(index, &entry).await? {
                        let index = name_of(table, index);
                        audit.fault(format!("a row of {name} has no entry in index {index}"));
                    }
                }
            }
        }
        Ok(())
    }

    async fn has_entry(&self, index: &IndexShape, key: &[u8]) -> Result<bool, StoreError> {
        let mut payload = Vec::new();
        let get = || index.tree.get(self.pages, key, &mut payload);
        let root = PageId::new(index.tree.space, index.tree.root);
        match on_the_whole(self.until_done(get).await)? {
            Ok(is_there) => Ok(is_there
                && self
                    .until_done(|| entries::decode(&payload, root))
                    .await?
                    .is_live()),
            // It was read whole a moment ago; the check of the files reports it.
            Err(_) => Ok(true),
        }
    }

    /// Two adjacent entries have the same own part: reported once, if no part of it is NULL.
    async fn check_double(
        &self,
        (table, index): (&TableShape, &IndexShape),
        row_key: &[u8],
        (doubles, audit): (&mut Doubles, &mut Audit),
    ) -> Result<(), StoreError> {
        if doubles.is_judged {
            return Ok(());
        }
        let has_null = if index.key.is_nullable() {
            self.entry_has_null(table, index, row_key).await?
        } else {
            Some(false)
        };
        // A row that cannot be read shows nothing; the next one of the same key may.
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
        let get = || table.clustered.get(self.pages, row_key, &mut version);
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
            let read = || cursor.read(self.pages, table.space(), &mut row);
            if on_the_whole(self.until_done(read).await)?.is_err() {
                return Ok(None);
            }
        }
        if !table.layout.verify(&row) {
            return Ok(None);
        }
        Ok(Some(table.entry_of(index, &row, row_key)?.has_null))
    }
}

/// Adds an entry to the sum of its index.
fn add_entry(sum: u64, key: &[u8]) -> u64 {
    sum.wrapping_add(checksum(key))
}

/// Checks a row by itself. Returns false if its entries cannot be derived from it.
fn check_row(
    table: &TableShape,
    (key, row): (&[u8], &[u8]),
    audit: &mut Audit,
) -> Result<bool, StoreError> {
    let name = &table.entry.definition.name;
    if !table.layout.verify(row) {
        audit.fault(format!("a row of {name} is damaged"));
        return Ok(false);
    }
    let own = table.row_key_of(row)?;
    if own.is_some_and(|own| own != key) {
        audit.fault(format!("a row of {name} stands under the key of another"));
    }
    Ok(true)
}

fn name_of<'a>(table: &'a TableShape, index: &IndexShape) -> &'a str {
    &table.entry.definition.indexes[index.position].name
}

/// Neighbours in a unique index, where equal keys are adjacent.
#[derive(Debug, Default)]
struct Doubles {
    /// The own part of the last entry; `None` before the first.
    last: Option<Vec<u8>>,
    /// It is known whether this part may occur twice, and if not, it was reported.
    is_judged: bool,
}

impl Doubles {
    /// Takes the next entry, split into own part and row key. Returns true if its own part equals
    /// the last one.
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
