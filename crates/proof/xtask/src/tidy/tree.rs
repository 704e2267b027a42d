//! The tracked files, read once; each rule looks at them and gives findings.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use anyhow::Result;

use crate::shell::Shell;

/// Path from the root, with `/`, to the text of each file that is text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

/// One thing that a rule refuses.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// From 1; 0 where the finding is about the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Tree {
    /// Tracked files, and new ones that are not ignored.
    pub(crate) fn read(shell: &Shell) -> Result<Tree> {
        let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
        let mut tree = Tree::default();
        for path in shell.read("git", &list)?.lines() {
            // A file deleted in the working tree is still in the index; binary files hold no rule.
            if let Ok(bytes) = fs::read(shell.root().join(path))
                && let Ok(text) = String::from_utf8(bytes)
            {
                tree.files.insert(path.to_owned(), text);
            }
        }
        Ok(tree)
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
        }
    }
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
