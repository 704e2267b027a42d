//! The files of statements, schedules and listed differences in `data`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use testkit::folder::repository_root;

fn data(name: &str) -> PathBuf {
    repository_root().join("crates/proof/lab/data").join(name)
}

/// The text of a file.
pub(crate) fn read(name: &str) -> Result<String> {
    let path = data(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// A reason in a list, and what stands below it.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) text: String,
    pub(crate) lines: Vec<String>,
}

/// The lines of a list; each must be below a reason.
pub(crate) fn read_list(name: &str) -> Result<BTreeSet<String>> {
    let reasons = read_reasons(name)?;
    Ok(reasons.into_iter().flat_map(|it| it.lines).collect())
}

/// The reasons of a list, in their order.
pub(crate) fn read_reasons(name: &str) -> Result<Vec<Reason>> {
    let mut reasons: Vec<Reason> = Vec::new();
    for line in read(name)?.lines() {
        if let Some(text) = line.strip_prefix("#: ") {
            reasons.push(Reason {
                text: text.to_owned(),
                lines: Vec::new(),
            });
        } else if !line.is_empty() && !line.starts_with("# ") {
            let reason = reasons.last_mut();
            let reason = reason.with_context(|| format!("no reason stands above: {line}"))?;
            reason.lines.push(line.to_owned());
        }
    }
    Ok(reasons)
}

/// Whether a pattern of a list matches a name: each part is the name's, or `*`, or a choice `a|b`.
/// A pattern may omit the last parts.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = name.split('/');
    pattern.split('/').all(|wanted| {
        let part = parts.next();
        part.is_some_and(|part| wanted == "*" || wanted.split('|').any(|it| it == part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_variants_by_their_parts() {
        for pattern in ["s", "s/plain/rc/1", "s/*/rc|rr", "s/*/*/*"] {
            assert!(matches(pattern, "s/plain/rc/1"), "{pattern}");
        }
        for pattern in ["t", "s/pl", "s/*/rr|ser", "s/plain/rc/1/1"] {
            assert!(!matches(pattern, "s/plain/rc/1"), "{pattern}");
        }
    }
}
