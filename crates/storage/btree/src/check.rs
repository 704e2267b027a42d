//! Verifies a whole tree: every page by itself, and what parent and children say of each other.

use format::page_bytes::PageBytes;
use format::slotted::{self, TreePage};
use format::{PageId, PageNo};
use store::Outcome;

use crate::Tree;
use crate::pages::Pages;

/// What a check has found.
#[derive(Debug, Default)]
pub struct Report {
    /// Pages of the tree.
    pub pages: Vec<PageNo>,
    /// Entries in its leaves.
    pub entry_count: u64,
    /// What is wrong, one sentence each.
    pub faults: Vec<String>,
}

/// A page to be looked at, and what its parent says of it.
#[derive(Debug)]
struct Expected {
    page: PageNo,
    level: Option<u8>,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

/// A check under way. It keeps its place over suspensions.
#[derive(Debug)]
pub struct Check {
    tree: Tree,
    /// Pages still to be looked at.
    stack: Vec<Expected>,
    /// What was found so far.
    pub report: Report,
}

impl Check {
    /// A check of a whole tree, which nobody may change meanwhile.
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
            report: Report::default(),
        }
    }

    /// Looks at the next page; false if there is none left.
    pub fn step(&mut self, pages: &Pages) -> Outcome<bool> {
        let Some(expected) = self.stack.last() else {
            return Ok(false);
        };
        let id = self.tree.page_id(expected.page);
        let page = pages.shared(id)?;
        let expected = self.stack.pop().expect("it was there a moment ago");
        let report = &mut self.report;
        report.pages.push(expected.page);
        match self
            .tree
            .check_page(id, page.bytes(), &expected, &mut report.faults)
        {
            Some((0, count)) => report.entry_count += count,
            Some((level, _)) => {
                let pushed = push_children(page.bytes(), level, &mut self.stack);
                let fault = || format!("page {id} has a child that is no page");
                report.faults.extend(pushed.is_none().then(fault));
            }
            None => {}
        }
        Ok(true)
    }
}

impl Tree {
    /// Level and entries of a page that can be gone down from.
    fn check_page(
        &self,
        id: PageId,
        page: &[u8],
        expected: &Expected,
        faults: &mut Vec<String>,
    ) -> Option<(u8, u64)> {
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
        Some((level, u64::try_from(count).ok()?))
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
