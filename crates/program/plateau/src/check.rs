//! `plateau check`: opens a data directory as a start would, recovery included, and verifies it.
//!
//! Where opening fails because something is damaged, the files are still read page by page, so that
//! every damaged page is named.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use engine::{CheckReport, Engine, OnDamage};
use env::linux::SystemClock;
use env::{Clock, Instant};
use format::version_file::VERSION_FILE_NAME;
use format::{PageSize, SpaceId};
use runtime::Runtime;
use settings::Settings;
use wal::OnLogLoss;

use crate::advice::{advised_to_check, is_damage};
use crate::database::{Database, Opening};

/// How often a check that takes long says how far it has come.
const PROGRESS_WAIT: Duration = Duration::from_secs(5);

/// Checks a data directory of a server that does not run.
pub(crate) fn run(directory: &Path) -> Result<()> {
    let name = directory.display().to_string();
    // Opening would make a directory that is missing, and checking nothing would find no fault.
    anyhow::ensure!(directory.is_dir(), "{name} is not a directory");
    let is_ours = directory.join(VERSION_FILE_NAME).is_file();
    anyhow::ensure!(is_ours, "{name} is no data directory of plateau");
    let mut settings = Settings::default();
    settings.set("data", &name)?;
    let options = runtime::Options {
        worker_count: 1,
        pin: false,
        ..runtime::Options::default()
    };
    let runtime = Runtime::start(options, || {})?;
    // Held to the end: it keeps other processes out.
    let opening = Opening {
        on_damage: OnDamage::PassOver,
        on_loss: OnLogLoss::Refuse,
    };
    let (report, failure, database) = match Database::open(&settings, &runtime, opening) {
        Ok(database) => (check_all(&runtime)?, None, Some(database)),
        Err(error) if is_damage(&error) => (check_files(&runtime, directory)?, Some(error), None),
        Err(error) => return Err(advised_to_check(error)),
    };
    runtime.handle().shutdown(Duration::from_secs(10));
    runtime.wait()?;
    drop(database);
    tell(&report, failure.as_ref());
    let fault_count = report.fault_count() + u64::from(failure.is_some());
    anyhow::ensure!(fault_count == 0, "{fault_count} faults found in {name}");
    Ok(())
}

/// Checks everything in an open directory.
fn check_all(runtime: &Runtime) -> Result<CheckReport> {
    runtime.block_on_worker(0, || async {
        let engine: Rc<Engine> = runtime::local().context("the engine is open on each worker")?;
        let mut progress = Progress::new(SystemClock.now());
        anyhow::Ok(engine.check(&mut |report| progress.hear(report)).await?)
    })
}

/// Reads the files of a directory that cannot be opened.
fn check_files(runtime: &Runtime, directory: &Path) -> Result<CheckReport> {
    let directory = PathBuf::from(directory);
    runtime.block_on_worker(0, || async move {
        let mut report = CheckReport::default();
        let mut progress = Progress::new(SystemClock.now());
        let place = (directory.as_path(), PageSize::default());
        let disk = runtime::disk();
        // What was being made as the directory was last in use, nobody can say.
        let known = (None, SpaceId(0)..SpaceId(0));
        engine::check_files(&*disk, place, known, &mut report, &mut |report| {
            progress.hear(report);
        })
        .await?;
        anyhow::Ok(report)
    })
}

/// Says what is wrong, and what was looked at.
fn tell(report: &CheckReport, failure: Option<&anyhow::Error>) {
    if let Some(error) = failure {
        println!("{error:#}");
    }
    for fault in &report.faults {
        println!("{fault}");
    }
    if report.unnamed_page_count != 0 {
        println!("{} more damaged pages", report.unnamed_page_count);
    }
    if report.unnamed_fault_count != 0 {
        println!("{} more faults", report.unnamed_fault_count);
    }
    println!("{}", summary(report, failure.is_none()));
}

fn summary(report: &CheckReport, is_open: bool) -> String {
    let CheckReport {
        table_count,
        row_count,
        segment_count,
        record_count,
        page_count,
        file_count,
        file_page_count,
        ..
    } = report;
    let files = format!("{file_page_count} pages in {file_count} files looked at");
    if !is_open {
        return format!("{files}, each by itself; tables, rows and undo were not");
    }
    format!(
        "{table_count} tables, {row_count} rows, {page_count} pages in use, \
         {record_count} undo records in {segment_count} segments, {files}"
    )
}

/// Lines that say how far a check has come.
struct Progress {
    /// When the last line was due.
    last: Instant,
}

impl Progress {
    fn new(now: Instant) -> Self {
        Self { last: now }
    }

    fn hear(&mut self, report: &CheckReport) {
        if let Some(line) = self.line(report, SystemClock.now()) {
            eprintln!("{line}");
        }
    }

    /// The line that is due now, if one is.
    fn line(&mut self, report: &CheckReport, now: Instant) -> Option<String> {
        if now.since(self.last) < PROGRESS_WAIT {
            return None;
        }
        self.last = now;
        let CheckReport {
            table_count,
            row_count,
            page_count,
            file_count,
            file_page_count,
            ..
        } = report;
        let faults = report.fault_count();
        Some(if *file_page_count == 0 {
            format!("table {table_count}: {row_count} rows, {page_count} pages, {faults} faults")
        } else {
            format!(
                "file {}: {file_page_count} pages, {faults} faults",
                file_count + 1
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_check_says_how_far_it_has_come() {
        let start = Instant::from_nanos(7);
        let mut progress = Progress::new(start);
        let mut report = CheckReport::default();
        report.table_count = 2;
        report.row_count = 30;
        report.page_count = 4;
        let mut at = |report: &CheckReport, seconds| {
            let now = start + Duration::from_secs(seconds);
            progress.line(report, now)
        };
        assert_eq!(at(&report, 4), None);
        let line = at(&report, 5);
        assert_eq!(line.as_deref(), Some("table 2: 30 rows, 4 pages, 0 faults"));
        assert_eq!(at(&report, 9), None);
        report.file_page_count = 7;
        report.faults.push("page 7".to_owned());
        report.unnamed_page_count = 2;
        let line = at(&report, 11);
        assert_eq!(line.as_deref(), Some("file 1: 7 pages, 3 faults"));
    }
}
