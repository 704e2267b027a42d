//! The work of a check, cut into jobs that workers take one by one.
//!
//! Jobs: each secondary index, each table's rows (large ones in parts), each 64 MiB of each file.
//! The worker that ends the last job of a table compares its results. Workers share the plan; jobs
//! are taken through one counter, results are stored under one mutex.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use btree::Pages;
use format::{PageSize, SpaceId};
use store::StoreError;
use sync::Mutex;
use sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::checker::Checker;
use super::files::{FilePart, Known, check_part, file_parts};
use super::report::{Audit, CheckReport};
use super::trees::TreeFound;
use crate::schema::table_shape::TableShape;
use crate::undo_log::{FIRST_SPACE, TABLE_SPACES_START};

/// A table whose file has fewer pages is checked by one worker: 16 MiB of 16 KiB.
const SPLIT_PAGES_MIN: u32 = 1024;

/// One of several parts of a tree, equal in number of the root's children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) index: usize,
    pub(super) count: usize,
}

impl Part {
    /// The whole tree.
    pub(super) const WHOLE: Self = Self { index: 0, count: 1 };
}

/// What a plan is made from.
pub(super) struct Plan {
    pub(super) tables: Vec<Arc<TableShape>>,
    /// No old versions are left.
    pub(super) is_purged: bool,
    pub(super) segment_count: u32,
    pub(super) worker_count: usize,
}

#[derive(Debug)]
enum Job {
    /// A secondary index of a table, both by number.
    Index(usize, usize),
    /// Rows of a table.
    Rows(usize, Part),
    /// Pages of a file.
    File(FilePart),
}

/// The result of a job, or of all jobs of a table together.
enum Found {
    Tree(TreeFound),
    Whole(Audit),
}

/// A table and its jobs.
struct TableJobs {
    shape: Arc<TableShape>,
    /// Number of the first job.
    first: usize,
    /// Number of jobs.
    count: usize,
    /// Jobs that have not ended.
    left: AtomicUsize,
}

/// A prepared check. [`CheckPlan::work`] does it, on any number of workers.
pub struct CheckPlan {
    tables: Vec<TableJobs>,
    jobs: Vec<Job>,
    /// The next job to be taken.
    next: AtomicUsize,
    /// By job; the result of a whole table is at its first job.
    found: Mutex<Vec<Option<Found>>>,
    /// The findings before the jobs.
    before: CheckReport,
    is_purged: bool,
    directory: PathBuf,
    size: PageSize,
    segment_count: u32,
    progress: CheckProgress,
}

/// The progress of a check; any thread may read it.
#[derive(Debug, Default)]
pub struct CheckProgress {
    /// Pages to be checked: those of tables count twice, in their trees and in their files.
    page_total: u64,
    table_total: u64,
    pages: AtomicU64,
    rows: AtomicU64,
    tables: AtomicU64,
    faults: AtomicU64,
}

impl CheckProgress {
    /// Progress of a check of `page_total` pages and `table_total` tables.
    pub(super) fn of(page_total: u64, table_total: u64) -> Self {
        Self {
            page_total,
            table_total,
            ..Self::default()
        }
    }

    /// Counts checked pages, or pages that turned out not to exist.
    pub(super) fn add_pages(&self, count: u64) {
        // Relaxed, like all of these: the numbers are for people.
        self.pages.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn add_rows(&self, count: u64) {
        self.rows.fetch_add(count, Ordering::Relaxed);
    }

    fn end_job(&self, audit: &Audit) {
        self.faults
            .fetch_add(audit.fault_count(), Ordering::Relaxed);
    }

    /// The done part, in percent.
    pub fn percent(&self) -> u64 {
        let done = self.pages.load(Ordering::Relaxed).min(self.page_total);
        done * 100 / self.page_total.max(1)
    }

    /// Number of checked tables, and of all.
    pub fn tables(&self) -> (u64, u64) {
        (self.tables.load(Ordering::Relaxed), self.table_total)
    }

    /// Number of checked rows.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Faults found so far.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }
}

impl CheckPlan {
    pub(super) fn new(pages: &Pages, plan: Plan) -> Result<Self, StoreError> {
        let pool = pages.pool();
        let (directory, size) = (pool.directory().to_path_buf(), pool.options().page_size);
        let mut jobs = Vec::new();
        let mut tables = Vec::new();
        let room = |space: SpaceId| pool.room_pages(space).unwrap_or(0);
        let mut page_total = 0;
        for (number, shape) in plan.tables.into_iter().enumerate() {
            let first = jobs.len();
            jobs.extend((0..shape.secondary.len()).map(|index| Job::Index(number, index)));
            let pages = room(shape.space());
            let count = if pages < SPLIT_PAGES_MIN {
                1
            } else {
                plan.worker_count
            };
            jobs.extend((0..count).map(|index| Job::Rows(number, Part { index, count })));
            page_total += u64::from(pages);
            let count = jobs.len() - first;
            tables.push(TableJobs {
                shape,
                first,
                count,
                left: AtomicUsize::new(count),
            });
        }
        for part in file_parts(&**pages.disk(), &directory, size)? {
            page_total += part.page_count();
            jobs.push(Job::File(part));
        }
        Ok(Self {
            progress: CheckProgress::of(page_total, stdx::to_u64(tables.len())),
            found: Mutex::new(jobs.iter().map(|_| None).collect()),
            tables,
            jobs,
            next: AtomicUsize::new(0),
            before: CheckReport::default(),
            is_purged: plan.is_purged,
            directory,
            size,
            segment_count: plan.segment_count,
        })
    }

    /// Notes the findings before the jobs.
    pub(super) fn begin_with(&mut self, report: CheckReport) {
        self.before = report;
    }

    /// The progress so far.
    pub fn progress(&self) -> &CheckProgress {
        &self.progress
    }

    /// Does jobs on a worker until none is left; other workers may still be at theirs. Errors are
    /// those that are no damage.
    pub async fn work(&self, pages: &Pages) -> Result<(), StoreError> {
        let checker = Checker::new(pages, &self.progress);
        // Relaxed: the counter returns each job once, and the plan does not change.
        while let number = self.next.fetch_add(1, Ordering::Relaxed)
            && let Some(job) = self.jobs.get(number)
        {
            checker.run(self.do_job(&checker, number, job)).await?;
        }
        Ok(())
    }

    async fn do_job(
        &self,
        checker: &Checker<'_>,
        number: usize,
        job: &Job,
    ) -> Result<(), StoreError> {
        let table = match job {
            &Job::Index(table, _) | &Job::Rows(table, _) => self.tables.get(table),
            Job::File(part) => {
                let audit = self.check_file(checker, part).await?;
                self.progress.end_job(&audit);
                self.keep(number, Found::Whole(audit));
                return Ok(());
            }
        };
        let table = table.expect("a job's table is one of the plan");
        let mut audit = self.audit(table);
        let (counted, sums) = match *job {
            Job::Index(_, index) => {
                let index = &table.shape.secondary[index];
                checker.check_index(&table.shape, index, &mut audit).await?
            }
            Job::Rows(_, part) => {
                let tree = table.shape.clustered;
                let rows = Some(&*table.shape);
                checker.check_rows(tree, rows, part, &mut audit).await?
            }
            Job::File(_) => unreachable!("files were handled above"),
        };
        self.progress.end_job(&audit);
        let found = TreeFound {
            audit,
            counted,
            sums,
        };
        self.keep(number, Found::Tree(found));
        // AcqRel: the worker that ends the last job sees what the others have stored.
        if table.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end_table(checker, table).await?;
        }
        Ok(())
    }

    fn audit(&self, table: &TableJobs) -> Audit {
        let owner = format!("table {}", table.shape.entry.definition.name);
        let mut audit = Audit::new(table.shape.space(), owner);
        audit.is_partial = !self.is_purged;
        audit
    }

    fn keep(&self, number: usize, found: Found) {
        let mut all = self.found.lock();
        let place = all.get_mut(number).expect("each job has its place");
        assert!(place.is_none(), "each job is done once");
        *place = Some(found);
    }

    /// Joins the results of a table's jobs.
    async fn end_table(&self, checker: &Checker<'_>, table: &TableJobs) -> Result<(), StoreError> {
        let parts: Vec<TreeFound> = {
            let mut all = self.found.lock();
            let jobs = table.first..table.first + table.count;
            let places = all.get_mut(jobs).expect("its jobs are those of the plan");
            let parts = places.iter_mut().map(|place| match place.take() {
                Some(Found::Tree(found)) => found,
                Some(Found::Whole(_)) | None => unreachable!("all its jobs have ended"),
            });
            parts.collect()
        };
        let told: u64 = parts.iter().map(|part| part.audit.fault_count()).sum();
        let looked: u64 = parts.iter().map(|part| part.audit.page_count).sum();
        let mut audit = self.audit(table);
        checker.join(&table.shape, parts, &mut audit).await?;
        let room = checker.pages.pool().room_pages(table.shape.space());
        let free = u64::from(room.unwrap_or(0)).saturating_sub(looked);
        self.progress.add_pages(free);
        self.progress.tables.fetch_add(1, Ordering::Relaxed);
        let more = audit.fault_count() - told;
        self.progress.faults.fetch_add(more, Ordering::Relaxed);
        self.keep(table.first, Found::Whole(audit));
        Ok(())
    }

    async fn check_file(
        &self,
        checker: &Checker<'_>,
        part: &FilePart,
    ) -> Result<Audit, StoreError> {
        let disk = &**checker.pages.disk();
        let wal = checker.pages.wal();
        let newest = |epoch| wal.newest_lsn(epoch);
        let behind = SpaceId(FIRST_SPACE + self.segment_count);
        let known = Known {
            newest: Some(&newest),
            unmade: behind..SpaceId(TABLE_SPACES_START),
        };
        let place = (self.directory.as_path(), self.size);
        Ok(check_part(disk, place, &known, part, &self.progress).await)
    }

    /// The findings, once all workers have returned from [`CheckPlan::work`] without an error.
    ///
    /// # Panics
    /// If a job was not done.
    pub fn report(&self) -> CheckReport {
        let mut report = self.before.clone();
        report.table_count += stdx::to_u64(self.tables.len());
        let mut all = self.found.lock();
        let mut take = |number: usize| match all.get_mut(number).and_then(Option::take) {
            Some(Found::Whole(audit)) => report.take(audit),
            Some(Found::Tree(_)) | None => unreachable!("job {number} was not done"),
        };
        for table in &self.tables {
            take(table.first);
        }
        for (number, job) in self.jobs.iter().enumerate() {
            if matches!(job, Job::File(_)) {
                take(number);
            }
        }
        report
    }
}

impl fmt::Debug for CheckPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckPlan")
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
