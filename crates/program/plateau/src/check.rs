//! `plateau check`: opens a data directory as a start would, with recovery, and verifies it.
//!
//! If damage prevents opening, the files are still read page by page, so that every damaged page is
//! named.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result};
use buffer::Pages;
use engine::{CheckPlan, CheckProgress, CheckReport, Engine};
use env::linux::SystemClock;
use env::{Clock, Instant};
use format::PageSize;
use format::version_file::VERSION_FILE_NAME;
use runtime::Runtime;
use settings::Settings;
use store::StoreError;
use wal::OnLogLoss;

use crate::advice::{advised_to_check, is_damage};
use crate::database::{Database, Engines, Opening};
use crate::start::start_log;

/// How often a long check reports its progress.
const PROGRESS_WAIT: Duration = Duration::from_secs(5);

/// Checks the data directory of a server that is not running, with this many workers.
pub(crate) fn run(directory: &Path, worker_count: usize) -> Result<()> {
    let name = directory.display().to_string();
    // Opening would create a missing directory, and a check of nothing finds no fault.
    anyhow::ensure!(directory.is_dir(), "{name} is not a directory");
    let is_ours = directory.join(VERSION_FILE_NAME).is_file();
    anyhow::ensure!(is_ours, "{name} is not a data directory of plateau");
    let mut settings = Settings::default();
    settings.set("data", &name)?;
    // Recovery may have something to say, as that of a server.
    start_log(&settings)?;
    let options = runtime::Options {
        worker_count,
        pin: false,
        ..runtime::Options::default()
    };
    let runtime = Runtime::start(options, || {})?;
    // Held to the end: it keeps other processes out.
    let opening = Opening {
        on_loss: OnLogLoss::Refuse,
        // More engines would create undo segments, and a check changes nothing.
        engines: Engines::First,
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

/// Checks everything in an open directory, on all workers.
fn check_all(runtime: &Runtime) -> Result<CheckReport> {
    let worker_count = runtime.handle().worker_count();
    let plan = runtime.block_on_worker(0, move || async move {
        let engine: Rc<Engine> = runtime::local().context("the first worker has an engine")?;
        anyhow::Ok(engine.prepare_check(worker_count).await?)
    })?;
    let (sender, ended) = mpsc::channel();
    for index in 0..worker_count {
        let (plan, sender) = (Arc::clone(&plan), sender.clone());
        let job = move || {
            runtime::spawn(async move {
                // The other side waits for exactly this.
                let _ = sender.send(work(&plan).await);
            });
        };
        runtime.handle().send_to(index, Box::new(job));
    }
    drop(sender);
    wait(&ended, plan.progress())?;
    Ok(plan.report())
}

/// Runs jobs of the check on this worker.
async fn work(plan: &CheckPlan) -> Result<(), StoreError> {
    if let Some(engine) = runtime::local::<Engine>() {
        return plan.work(engine.pages()).await;
    }
    let pages: Rc<Pages> = runtime::local().expect("a worker without an engine has its pages");
    plan.work(&pages).await
}

/// Waits for the workers, and reports progress meanwhile.
fn wait(ended: &Receiver<Result<(), StoreError>>, at: &CheckProgress) -> Result<()> {
    let mut progress = Progress::new(SystemClock.now());
    loop {
        match ended.recv_timeout(PROGRESS_WAIT) {
            Ok(outcome) => outcome?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        progress.hear(at);
    }
}

/// Reads the files of a directory that cannot be opened.
fn check_files(runtime: &Runtime, directory: &Path) -> Result<CheckReport> {
    let directory = PathBuf::from(directory);
    runtime.block_on_worker(0, || async move {
        let mut progress = Progress::new(SystemClock.now());
        let place = (directory.as_path(), PageSize::default());
        let disk = runtime::disk();
        let mut hear = |at: &CheckProgress| progress.hear(at);
        anyhow::Ok(engine::check_files(&*disk, place, &mut hear).await?)
    })
}

/// Prints the faults, and a summary of what was checked.
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
    let files = format!("{file_page_count} pages in {file_count} files checked");
    if !is_open {
        return format!("{files}, one by one; tables, rows and undo records were not checked");
    }
    format!(
        "{table_count} tables, {row_count} rows, {page_count} pages in use, \
         {record_count} undo records in {segment_count} segments, {files}"
    )
}

/// Prints progress lines of a check.
struct Progress {
    /// When the last line was due.
    last: Instant,
}

impl Progress {
    fn new(now: Instant) -> Self {
        Self { last: now }
    }

    fn hear(&mut self, at: &CheckProgress) {
        if self.is_due(SystemClock.now()) {
            eprintln!("{}", line(at));
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = PROGRESS_WAIT <= now.since(self.last);
        if is_due {
            self.last = now;
        }
        is_due
    }
}

fn line(at: &CheckProgress) -> String {
    let (percent, rows, faults) = (at.percent(), at.rows(), at.faults());
    let (done, total) = at.tables();
    format!("{percent} %: {done} of {total} tables, {rows} rows, {faults} faults")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_check_says_how_far_it_has_come() {
        let start = Instant::from_nanos(7);
        let mut progress = Progress::new(start);
        let mut is_due_after = |seconds| progress.is_due(start + Duration::from_secs(seconds));
        assert!(!is_due_after(4));
        assert!(is_due_after(5));
        assert!(!is_due_after(9));
        assert!(is_due_after(11));
        let at = CheckProgress::default();
        assert_eq!(line(&at), "0 %: 0 of 0 tables, 0 rows, 0 faults");
    }
}
