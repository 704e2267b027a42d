//! `plateau check`: opens a data directory as a start would, recovery included, and verifies it.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use engine::{CheckReport, Engine};
use format::version_file::VERSION_FILE_NAME;
use runtime::Runtime;
use settings::Settings;

use crate::advice::advised_to_check;
use crate::database::Database;

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
    let database = Database::open(&settings, &runtime).map_err(advised_to_check)?;
    let report = runtime.block_on_worker(0, || async {
        let engine: Rc<Engine> = runtime::local().context("the engine is open on each worker")?;
        anyhow::Ok(engine.check().await?)
    })?;
    runtime.handle().shutdown(Duration::from_secs(10));
    runtime.wait()?;
    drop(database);
    for fault in &report.faults {
        println!("{fault}");
    }
    let CheckReport {
        table_count,
        row_count,
        page_count,
        faults,
    } = report;
    println!("{table_count} tables, {row_count} rows, {page_count} pages looked at");
    anyhow::ensure!(faults.is_empty(), "{} faults found in {name}", faults.len());
    Ok(())
}
