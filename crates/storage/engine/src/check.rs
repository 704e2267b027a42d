//! `plateau check`: looks at every page, every row and every index entry.
//!
//! Purge runs to its end first (that of other workers is the caller's care), so that each page of
//! a tablespace belongs to a tree, to the large value of a row, or to nothing. Nobody may work
//! meanwhile.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use btree::check::{Check, Report};
use btree::lob::LobCursor;
use btree::{From, Place, Run, Tree, space};
use format::row_header::{LobReference, RowHeader};
use format::{PageId, PageNo, SpaceId};
use store::StoreError;

use crate::dictionary;
use crate::engine::Engine;
use crate::entries;
use crate::table_shape::TableShape;
use crate::worker::{COUNTERS_PAGE, Worker};

/// Rows read at a time.
const RUN_LIMIT: usize = 64;
/// Records that purge looks at in one go.
const PURGE_BUDGET: usize = 4096;
/// Faults after which a table's check goes on counting but says no more.
const FAULTS_MAX: usize = 100;

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Tables looked at.
    pub table_count: u64,
    /// Rows looked at.
    pub row_count: u64,
    /// Pages looked at.
    pub page_count: u64,
    /// What is wrong, one sentence each.
    pub faults: Vec<String>,
}

impl Engine {
    /// Rolls back what this worker's sessions have left, and purges its segments to their end. A
    /// check needs this of all workers first: it takes what another one is about to remove, half
    /// removed, for damage.
    pub async fn clear_remains(&self) -> Result<(), StoreError> {
        let worker = &self.worker;
        worker.roll_back_orphans().await?;
        loop {
            worker.txns.maintain(|| worker.pages.reserved());
            if worker.purge(PURGE_BUDGET).await? == 0 {
                return Ok(());
            }
        }
    }

    /// Checks everything. Errors are those of reading; what is damaged is in the report where the
    /// check can go on behind it.
    pub async fn check(&self) -> Result<CheckReport, StoreError> {
        self.clear_remains().await?;
        let worker = &self.worker;
        let mut report = CheckReport::default();
        let mut audit = Audit::new(dictionary::tree().space);
        audit.used.insert(COUNTERS_PAGE);
        worker
            .check_tree(dictionary::tree(), &mut audit, &mut report)
            .await?;
        worker
            .walk_rows(dictionary::tree(), None, &mut audit, &mut report)
            .await?;
        worker.check_space(audit, &mut report).await?;
        let tables: Vec<Arc<TableShape>> = worker.dictionary().tables.values().cloned().collect();
        for table in tables {
            report.table_count += 1;
            worker.check_table(&table, &mut report).await?;
        }
        Ok(report)
    }
}

/// The pages of a tablespace that something owns.
struct Audit {
    space: SpaceId,
    used: BTreeSet<PageNo>,
}

impl Audit {
    fn new(space: SpaceId) -> Self {
        Self {
            space,
            used: BTreeSet::new(),
        }
    }

    /// Notes pages; what is owned twice is a fault.
    fn add(&mut self, pages: &[PageNo], report: &mut CheckReport) {
        for &page in pages {
            if !self.used.insert(page) {
                let id = PageId::new(self.space, page);
                report.fault(format!("page {id} is used twice"));
            }
        }
    }
}

impl CheckReport {
    fn fault(&mut self, fault: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }
}

impl Worker {
    async fn check_table(
        self: &Rc<Self>,
        table: &TableShape,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let mut audit = Audit::new(table.space());
        self.check_tree(table.clustered, &mut audit, report).await?;
        let rows = self
            .walk_rows(table.clustered, Some(table), &mut audit, report)
            .await?;
        report.row_count += rows;
        for index in &table.secondary {
            self.check_tree(index.tree, &mut audit, report).await?;
            let entries = self.count_entries(index.tree).await?;
            if entries != rows {
                let name = &table.entry.definition.name;
                let index = &table.entry.definition.indexes[index.position].name;
                report.fault(format!(
                    "index {index} of {name} has {entries} entries for {rows} rows"
                ));
            }
        }
        self.check_space(audit, report).await
    }

    async fn check_tree(
        &self,
        tree: Tree,
        audit: &mut Audit,
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let mut check = Check::new(tree);
        while self.until_done(|| check.step(&self.pages)).await? {}
        let Report { pages, faults, .. } = check.report;
        audit.add(&pages, report);
        report.page_count += u64::try_from(pages.len()).unwrap_or(0);
        faults.into_iter().for_each(|fault| report.fault(fault));
        Ok(())
    }

    /// Looks at every row that is not deleted: its bytes, its key, its entries. How many there are.
    async fn walk_rows(
        &self,
        tree: Tree,
        table: Option<&TableShape>,
        audit: &mut Audit,
        report: &mut CheckReport,
    ) -> Result<u64, StoreError> {
        let (mut place, mut run, mut rows) = (Place::first(), Run::new(), 0);
        while place.from != From::Nothing {
            self.until_done(|| tree.read_run(&self.pages, &place, RUN_LIMIT, &mut run))
                .await?;
            for number in 0..run.len() {
                let (key, version) = run.entry(number);
                let Some((header, body)) = RowHeader::split(version) else {
                    report.fault(format!("a row of tablespace {} has no header", tree.space));
                    continue;
                };
                let mut row = body.to_vec();
                if header.is_spilled {
                    row = self.check_lob(tree.space, body, audit, report).await?;
                }
                if header.is_deleted {
                    continue;
                }
                rows += 1;
                if let Some(table) = table {
                    self.check_row(table, (key, &row), report).await?;
                }
            }
            std::mem::swap(&mut place, &mut run.next);
        }
        Ok(rows)
    }

    /// Reads a large value and notes its pages.
    async fn check_lob(
        &self,
        space: SpaceId,
        body: &[u8],
        audit: &mut Audit,
        report: &mut CheckReport,
    ) -> Result<Vec<u8>, StoreError> {
        let Ok(reference) = LobReference::decode(body) else {
            report.fault(format!("a row of tablespace {space} has no reference"));
            return Ok(Vec::new());
        };
        let (mut cursor, mut row, mut pages) = (
            LobCursor::new(reference.first_page, reference.length),
            Vec::new(),
            Vec::new(),
        );
        while let Some(page) = cursor.page() {
            pages.push(page);
            self.until_done(|| cursor.step(&self.pages, space, &mut row))
                .await?;
        }
        audit.add(&pages, report);
        report.page_count += u64::try_from(pages.len()).unwrap_or(0);
        Ok(row)
    }

    async fn check_row(
        &self,
        table: &TableShape,
        (key, row): (&[u8], &[u8]),
        report: &mut CheckReport,
    ) -> Result<(), StoreError> {
        let name = &table.entry.definition.name;
        if !table.layout.verify(row) {
            report.fault(format!("a row of {name} is damaged"));
            return Ok(());
        }
        let primary = table.primary_of(row)?;
        if primary.is_some_and(|primary| primary != key) {
            report.fault(format!("a row of {name} stands under the key of another"));
        }
        for (index, entry) in table.secondary.iter().zip(table.entries_of(row, key)?) {
            let mut payload = Vec::new();
            let get = || index.tree.get(&self.pages, &entry.bytes, &mut payload);
            let is_there = self.until_done(get).await?;
            let root = PageId::new(index.tree.space, index.tree.root);
            let is_live = is_there
                && self
                    .until_done(|| entries::decode(&payload, root))
                    .await?
                    .is_live();
            if !is_live {
                let index = &table.entry.definition.indexes[index.position].name;
                report.fault(format!("a row of {name} has no entry in index {index}"));
            }
        }
        Ok(())
    }

    async fn count_entries(&self, tree: Tree) -> Result<u64, StoreError> {
        let (mut place, mut run, mut count) = (Place::first(), Run::new(), 0);
        let root = PageId::new(tree.space, tree.root);
        while place.from != From::Nothing {
            self.until_done(|| tree.read_run(&self.pages, &place, RUN_LIMIT, &mut run))
                .await?;
            for number in 0..run.len() {
                let payload = run.entry(number).1;
                let header = self.until_done(|| entries::decode(payload, root)).await?;
                count += u64::from(header.is_live());
            }
            std::mem::swap(&mut place, &mut run.next);
        }
        Ok(count)
    }

    /// Compares what is used with what is marked as used.
    async fn check_space(&self, audit: Audit, report: &mut CheckReport) -> Result<(), StoreError> {
        let marked = self
            .until_done(|| space::used_pages(&self.pages, audit.space))
            .await?;
        let fixed = self
            .until_done(|| space::fixed_pages(&self.pages, audit.space))
            .await?;
        let marked: BTreeSet<PageNo> = marked.into_iter().collect();
        let used: BTreeSet<PageNo> = audit.used.into_iter().chain(fixed).collect();
        for page in used.difference(&marked) {
            let id = PageId::new(audit.space, *page);
            report.fault(format!("page {id} is used but marked as free"));
        }
        for page in marked.difference(&used) {
            let id = PageId::new(audit.space, *page);
            report.fault(format!(
                "page {id} is marked as used but belongs to nothing"
            ));
        }
        Ok(())
    }
}
