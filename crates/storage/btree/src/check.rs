//! Verifies a whole tree: every page by itself, and whether parent and children agree.

use format::page_bytes::PageBytes;
use format::slotted::{self, TreePage};
use format::{PageId, PageNo};
use store::{Interrupt, Outcome, StoreError};

use crate::Tree;
use crate::pages::Pages;
use crate::scan::{Run, push};

/// The result of a step.
#[derive(Debug)]
pub struct Looked {
    /// The page.
    pub page: PageNo,
    /// Why it could not be read, if so.
    pub unreadable: Option<StoreError>,
    /// What is wrong with its contents, one sentence each.
    pub faults: Vec<String>,
}

impl Looked {
    /// Whether the page and all that it leads to was or will be checked.
    pub fn is_whole(&self) -> bool {
        self.unreadable.is_none() && self.faults.is_empty()
    }
}

/// A page to be checked, and what its parent says of it.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    /// The page.
    pub(crate) page: PageNo,
    /// Its level; `None` for the root.
    pub(crate) level: Option<u8>,
    /// Its fences.
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Option<Vec<u8>>,
}

impl Expected {
    /// Whether a key is between the fences.
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        let is_below = |upper: &Vec<u8>| key < upper.as_slice();
        self.lower.as_slice() <= key && self.upper.as_ref().is_none_or(is_below)
    }
}

/// A check under way. It keeps its place over suspensions, and goes on after a damaged page. Leaves
/// come in the order of their keys.
#[derive(Debug)]
pub struct Check {
    tree: Tree,
    /// Pages still to be checked: at most the children of one page a level.
    stack: Vec<Expected>,
}

impl Check {
    /// Starts the check of a whole tree, which must not change meanwhile.
    pub fn new(tree: Tree) -> Self {
        let root = Expected {
            page: tree.root,
            level: None,
            lower: Vec::new(),
            upper: None,
        };
        Self {
            tree,
            stack: vec![root],
        }
    }

    /// The pages that come next, in order, as far as they are known.
    pub fn upcoming(&self) -> impl Iterator<Item = PageNo> {
        self.stack.iter().rev().map(|expected| expected.page)
    }

    /// The tree that is checked.
    pub(crate) fn tree(&self) -> Tree {
        self.tree
    }

    /// The page of the next step.
    pub(crate) fn next_expected(&self) -> Option<&Expected> {
        self.stack.last()
    }

    /// Keeps one of `count` parts of the pages still to be checked. The parts have equal sizes and
    /// are in the order of their keys.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn keep_part(&mut self, index: usize, count: usize) {
        assert!(index < count);
        let all = self.stack.len();
        // What comes first stands last.
        let (first, end) = (all * index / count, all * (index + 1) / count);
        self.stack.truncate(all - first);
        self.stack.drain(..all - end);
    }

    /// Checks the next page; returns `None` if there is none left. If the page is a whole leaf, its
    /// entries are copied to `entries`; otherwise `entries` is empty.
    pub fn step(&mut self, pages: &Pages, entries: &mut Run) -> Outcome<Option<Looked>> {
        entries.clear();
        let Some(expected) = self.stack.last() else {
            return Ok(None);
        };
        let id = self.tree.page_id(expected.page);
        let page = match pages.shared(id) {
            Err(Interrupt::Error(error)) if error.is_unreadable() => {
                let expected = self.stack.pop().expect("it was there a moment ago");
                return Ok(Some(Looked {
                    page: expected.page,
                    unreadable: Some(error),
                    faults: Vec::new(),
                }));
            }
            page => page?,
        };
        let expected = self.stack.pop().expect("it was there a moment ago");
        let mut faults = Vec::new();
        assert_eq!(page.id(), id);
        match self
            .tree
            .check_page(id, page.bytes(), &expected, &mut faults)
        {
            Some(0) if faults.is_empty() => {
                if copy_entries(page.bytes(), entries).is_none() {
                    entries.clear();
                    faults.push(format!("page {id} has an entry that is not in it"));
                }
            }
            Some(0) | None => {}
            Some(level) => {
                let pushed = push_children(page.bytes(), level, &mut self.stack);
                let fault = || format!("page {id} has a child that is no page");
                faults.extend(pushed.is_none().then(fault));
            }
        }
        Ok(Some(Looked {
            page: expected.page,
            unreadable: None,
            faults,
        }))
    }
}

fn copy_entries<P: PageBytes + ?Sized>(leaf: &P, entries: &mut Run) -> Option<()> {
    let view = TreePage::new(leaf)?;
    (0..view.slot_count()?).try_for_each(|slot| push(entries, view, slot))
}

impl Tree {
    /// The level of a page that can be gone down from.
    fn check_page(
        &self,
        id: PageId,
        page: &[u8],
        expected: &Expected,
        faults: &mut Vec<String>,
    ) -> Option<u8> {
        if let Err(error) = slotted::verify(page) {
            faults.push(format!("page {id}: {error}"));
            return None;
        }
        let view = TreePage::new(page)?;
        if view.index_id()? != self.index.0 {
            faults.push(format!("page {id} belongs to index {}", view.index_id()?));
            return None;
        }
        let level = view.level()?;
        if expected.level.is_some_and(|expected| expected != level) {
            faults.push(format!("page {id} has level {level}"));
            return None;
        }
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        view.append_lower(&mut lower)?;
        let upper = view.append_upper(&mut upper)?.then_some(upper);
        if lower != expected.lower || upper != expected.upper {
            faults.push(format!(
                "the fences of page {id} are not those that its parent says"
            ));
        }
        let count = view.slot_count()?;
        if level != 0 && count == 0 {
            faults.push(format!("inner page {id} has no child"));
        }
        Some(level)
    }
}

fn push_children<P: PageBytes + ?Sized>(
    page: &P,
    level: u8,
    stack: &mut Vec<Expected>,
) -> Option<()> {
    let view = TreePage::new(page)?;
    let count = view.slot_count()?;
    for slot in (0..count).rev() {
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        view.append_key(slot, &mut lower)?;
        let has_upper = if slot + 1 < count {
            view.append_key(slot + 1, &mut upper)?;
            true
        } else {
            view.append_upper(&mut upper)?
        };
        let page = PageNo(view.child(slot)?);
        let upper = has_upper.then_some(upper);
        stack.push(Expected {
            page,
            level: Some(level - 1),
            lower,
            upper,
        });
    }
    Some(())
}
