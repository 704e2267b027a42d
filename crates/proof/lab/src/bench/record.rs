//! The circumstances of a report, and where it is kept.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use testkit::folder::target_directory;
use testkit::process::run;

use super::contestant::Setup;

/// The circumstances of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Heading {
    /// UTC, as 2026-01-31.
    pub(super) date: String,
    /// Short hash; with a plus sign if files have changed since.
    pub(super) commit: String,
    pub(super) machine: String,
    pub(super) reference: String,
    pub(super) method: String,
}

impl Heading {
    /// The heading of now; `times` says how often and how long each point is measured.
    pub(super) fn new(setup: &Setup, times: &str) -> Result<Heading> {
        let text = |program: &str, arguments: &[&str]| -> Result<String> {
            Ok(run(Command::new(program).args(arguments))?
                .trim()
                .to_owned())
        };
        let commit = text("git", &["rev-parse", "--short", "HEAD"])?;
        let changed = text("git", &["status", "--porcelain", "--untracked-files=no"])?;
        let mark = if changed.is_empty() { "" } else { "+" };
        let protocol = if setup.load.text { "text" } else { "prepared" };
        let rows = format!("{:?}", setup.load.rand).to_lowercase();
        Ok(Heading {
            date: text("date", &["--utc", "+%F"])?,
            commit: format!("{commit}{mark}"),
            machine: machine()?,
            reference: text("mariadbd", &["--version"])?,
            method: format!(
                "{} tables of {} rows, rows drawn {rows}, {protocol} statements, log flushed at \
                 commit: {}; {times}; load on {} threads of the same machine over loopback TCP",
                setup.load.tables, setup.load.rows, setup.flush, setup.load.threads
            ),
        })
    }
}

fn machine() -> Result<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("?")
        .trim_start_matches([' ', '\t', ':']);
    let count = cpu
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("{count} x {model}, Linux {}", kernel.trim()))
}

/// The folder of reports and history; created if missing.
pub(super) fn folder(is_recorded: bool) -> Result<PathBuf> {
    let folder = if is_recorded {
        let root = run(Command::new("git").args(["rev-parse", "--show-toplevel"]))?;
        PathBuf::from(root.trim()).join("docs/bench")
    } else {
        target_directory().join("bench")
    };
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}
