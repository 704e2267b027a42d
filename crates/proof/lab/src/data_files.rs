//! The files of statements, schedules and listed differences in `data`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use testkit::folder::repository_root;

fn data(name: &str) -> PathBuf {
    repository_root().join("crates/proof/lab/data").join(name)
}

/// The text of a file.
pub(crate) fn read(name: &str) -> Result<String> {
    let path = data(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The lines of a list; each must be below a reason.
pub(crate) fn read_list(name: &str) -> Result<BTreeSet<String>> {
    let mut listed = BTreeSet::new();
    let mut has_reason = false;
    for line in read(name)?.lines() {
        if line.starts_with("#: ") {
            has_reason = true;
        } else if !line.is_empty() && !line.starts_with("# ") {
            ensure!(has_reason, "no reason stands above: {line}");
            listed.insert(line.to_owned());
        }
    }
    Ok(listed)
}
