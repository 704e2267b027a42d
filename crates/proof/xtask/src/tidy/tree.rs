//! The tracked files, read once; each rule checks them and returns findings.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use anyhow::Result;

use super::commits::JUDGED_SINCE;
use crate::shell::Shell;

/// Path from the root, with `/`, to the contents of each text file.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    /// Id and subject of each commit that is judged.
    commits: Vec<(String, String)>,
}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// From 1; 0 if the finding concerns the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Tree {
    /// Tracked files, and new ones that are not ignored.
    pub(crate) fn read(shell: &Shell) -> Result<Tree> {
        let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
        let mut tree = Tree::default();
        for path in shell.read("git", &list)?.lines() {
            // A file deleted in the working tree is still in the index; rules do not apply to
            // binary files.
            if let Ok(bytes) = fs::read(shell.root().join(path))
                && let Ok(text) = String::from_utf8(bytes)
            {
                tree.files.insert(path.to_owned(), text);
            }
        }
        tree.commits = commits(shell)?;
        Ok(tree)
    }

    pub(crate) fn commits(&self) -> impl Iterator<Item = (&str, &str)> {
        self.commits
            .iter()
            .map(|(commit, subject)| (commit.as_str(), subject.as_str()))
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let own = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Tree {
            files: files.iter().map(own).collect(),
            ..Tree::default()
        }
    }

    #[cfg(test)]
    pub(crate) fn with_commit(mut self, commit: &str, subject: &str) -> Tree {
        self.commits.push((commit.to_owned(), subject.to_owned()));
        self
    }
}

/// The commits to check; none if the history is cut off before them.
fn commits(shell: &Shell) -> Result<Vec<(String, String)>> {
    if !shell.succeeds("git", &["cat-file", "-e", JUDGED_SINCE]) {
        return Ok(Vec::new());
    }
    let range = format!("{JUDGED_SINCE}..HEAD");
    let log = shell.read("git", &["log", "--no-merges", "--format=%h %s", &range])?;
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    Ok(commits
        .map(|(commit, subject)| (commit.to_owned(), subject.to_owned()))
        .collect())
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Finding {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}
