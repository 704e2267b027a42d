//! What a report says about its own making, and where it is kept.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use testkit::folder::target_directory;
use testkit::process::run;

use super::Arguments;
use crate::generator::WARM_TIME_MAX;

/// The circumstances of a run.
#[derive(Clone, Debug)]
pub(super) struct Heading {
    /// UTC, as 2026-01-31.
    pub(super) date: String,
    /// Short hash; with a plus sign if files were changed since.
    pub(super) commit: String,
    pub(super) machine: String,
    pub(super) reference: String,
    pub(super) method: String,
}

impl Heading {
    pub(super) fn new(arguments: &Arguments) -> Result<Heading> {
        let text = |program: &str, arguments: &[&str]| -> Result<String> {
            Ok(run(Command::new(program).args(arguments))?
                .trim()
                .to_owned())
        };
        let commit = text("git", &["rev-parse", "--short", "HEAD"])?;
        let changed = text("git", &["status", "--porcelain", "--untracked-files=no"])?;
        let mark = if changed.is_empty() { "" } else { "+" };
        let protocol = if arguments.load.text {
            "text"
        } else {
            "prepared"
        };
        let rows = format!("{:?}", arguments.load.rand).to_lowercase();
        Ok(Heading {
            date: text("date", &["--utc", "+%F"])?,
            commit: format!("{commit}{mark}"),
            machine: machine()?,
            reference: text("mariadbd", &["--version"])?,
            method: format!(
                "{} tables of {} rows, rows drawn {rows}, {protocol} statements, log flushed at \
                 commit: {}, {} generations of processes, in each {} rounds of {} s in turns of \
                 {} ms, each behind {} ms uncounted; before all {} ms at least and two \
                 transactions of each client (or {} s); medians of medians; load on {} threads of \
                 the same machine over loopback TCP",
                arguments.load.tables,
                arguments.load.rows,
                arguments.flush,
                arguments.generations,
                arguments.rounds,
                arguments.seconds,
                arguments.turn_ms,
                arguments.settle_ms,
                arguments.ramp_ms,
                WARM_TIME_MAX.as_secs(),
                arguments.load.threads
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

/// Where reports and history go; made if it is not there.
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
