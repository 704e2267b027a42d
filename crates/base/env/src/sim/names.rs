//! The names of simulated files: what programs see, what a crash leaves, and the steps between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::Random;

/// Identifies a simulated file, independent of its names.
pub(super) type Inode = u64;

/// See the module's head.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// What programs see.
    seen: BTreeMap<PathBuf, Inode>,
    /// What the medium surely has.
    durable: BTreeMap<PathBuf, Inode>,
    /// What happened since, oldest first.
    steps: Vec<Step>,
    /// Directories; durable at once (F2).
    directories: BTreeSet<PathBuf>,
}

#[derive(Debug, Clone)]
enum Step {
    Create(PathBuf, Inode),
    Remove(PathBuf),
    Rename {
        from: PathBuf,
        to: PathBuf,
        inode: Inode,
    },
}

impl Names {
    pub(super) fn find(&self, path: &Path) -> Option<Inode> {
        self.seen.get(path).copied()
    }

    pub(super) fn create(&mut self, path: &Path, inode: Inode) {
        self.seen.insert(path.to_path_buf(), inode);
        self.steps.push(Step::Create(path.to_path_buf(), inode));
    }

    /// Returns `false` if there is no such file.
    pub(super) fn remove(&mut self, path: &Path) -> bool {
        let is_there = self.seen.remove(path).is_some();
        if is_there {
            self.steps.push(Step::Remove(path.to_path_buf()));
        }
        is_there
    }

    /// Returns `false` if there is no such file.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let Some(inode) = self.seen.remove(from) else {
            return false;
        };
        self.seen.insert(to.to_path_buf(), inode);
        let (from, to) = (from.to_path_buf(), to.to_path_buf());
        self.steps.push(Step::Rename { from, to, inode });
        true
    }

    pub(super) fn create_directory(&mut self, path: &Path) {
        for ancestor in path.ancestors() {
            self.directories.insert(ancestor.to_path_buf());
        }
    }

    /// The root and the empty path always exist.
    pub(super) fn has_directory(&self, path: &Path) -> bool {
        path.parent().is_none() || self.directories.contains(path)
    }

    pub(super) fn list(&self, path: &Path) -> Vec<PathBuf> {
        let children = self.seen.keys().chain(&self.directories);
        let names: BTreeSet<PathBuf> = children
            .filter(|child| child.parent() == Some(path))
            .filter_map(|child| child.file_name().map(PathBuf::from))
            .collect();
        names.into_iter().collect()
    }

    /// Makes what happened in this directory durable.
    pub(super) fn sync_directory(&mut self, path: &Path) {
        for step in std::mem::take(&mut self.steps) {
            if step.directory() == Some(path) {
                step.apply(&mut self.durable);
            } else {
                self.steps.push(step);
            }
        }
    }

    /// The names after a crash, and the number of steps that it has lost.
    pub(super) fn crash(&self, random: &mut Random) -> (Self, u64) {
        let mut durable = self.durable.clone();
        let mut lost = 0;
        for step in &self.steps {
            if random.coin() {
                step.apply(&mut durable);
            } else {
                lost += 1;
            }
        }
        let names = Self {
            seen: durable.clone(),
            durable,
            steps: Vec::new(),
            directories: self.directories.clone(),
        };
        (names, lost)
    }

    /// All files that have a name now.
    pub(super) fn inodes(&self) -> impl Iterator<Item = Inode> {
        self.seen.values().copied()
    }

    /// All files that have a name now, or may have one after a crash.
    pub(super) fn possible_inodes(&self) -> impl Iterator<Item = Inode> {
        let of_step = |step: &Step| match step {
            Step::Create(_, inode) | Step::Rename { inode, .. } => Some(*inode),
            Step::Remove(_) => None,
        };
        let durable = self.durable.values().copied();
        let pending = self.steps.iter().filter_map(of_step);
        self.inodes().chain(durable).chain(pending)
    }
}

impl Step {
    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Create(path, _) | Self::Remove(path) => path.parent(),
            Self::Rename { to, .. } => to.parent(),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Inode>) {
        match self {
            Self::Create(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Self::Remove(path) => {
                names.remove(path);
            }
            Self::Rename { from, to, inode } => {
                if names.get(from) == Some(inode) {
                    names.remove(from);
                }
                names.insert(to.clone(), *inode);
            }
        }
    }
}
