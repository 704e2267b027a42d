//! Makes a tree whole again of which pages are lost.
//!
//! After a loss of log that was accepted, the pages of a tree are of different times. A leaf may
//! never have been written, or may have other fences than its parent says. Such a leaf is made
//! again, with the fences of its parent, and with those of its entries that can be read and belong
//! there. Each leaf is one mini-transaction, so a crash in between leaves less to do.
//!
//! An inner page is not made again: its children cannot be found without it. The map of a page
//! that is older than the tree may call its pages free. They are marked before anything is made.

use std::collections::BTreeSet;

use format::page_op::PageOp;
use format::slotted::{self, TreePage, TreePageShape};
use format::{PageId, PageNo, PageType};
use store::{Interrupt, Outcome, StoreError};

use crate::check::{Check, Expected, Looked};
use crate::error::damaged;
use crate::pages::{Pages, apply, narrow};
use crate::scan::{Run, push};
use crate::split::has_room;
use crate::{Tree, space};

/// Mending under way. It keeps its place over suspensions.
#[derive(Debug)]
pub struct Mend {
    check: Check,
    /// The pages that were checked. Two parents of a page contradict each other.
    seen: BTreeSet<PageNo>,
    /// The page whose step is under way, and what was found there.
    under_way: Option<(Expected, Looked)>,
}

impl Mend {
    /// Starts with the root of a tree that is not used meanwhile.
    pub fn new(tree: Tree) -> Self {
        Self {
            check: Check::new(tree),
            seen: BTreeSet::new(),
            under_way: None,
        }
    }

    /// Checks the next page, and makes it again if it is a leaf that is not whole. Returns what was
    /// found; `None` if there is no page left. Fails if an inner page is not whole, or if the disk
    /// cannot read.
    pub fn step(&mut self, pages: &Pages) -> Outcome<Option<Looked>> {
        if self.under_way.is_none() {
            let Some(expected) = self.check.next_expected().cloned() else {
                return Ok(None);
            };
            let looked = self.check.step(pages, &mut Run::new())?;
            let looked = looked.expect("a page was expected");
            assert_eq!(looked.page, expected.page, "the next page is checked");
            self.under_way = Some((expected, looked));
        }
        let (expected, looked) = self.under_way.as_ref().expect("set above");
        let id = self.check.tree().page_id(expected.page);
        if self.seen.contains(&expected.page) {
            return Err(damaged(id, "the tree leads to it twice"));
        }
        // What the disk fails to read may be there later.
        let is_unknown = matches!(looked.unreadable, Some(StoreError::Disk { .. }));
        if is_unknown || (!looked.is_whole() && expected.level != Some(0)) {
            return Err(why(id, looked));
        }
        space::mark_used(pages, id)?;
        if !looked.is_whole() {
            self.check.tree().make_again(pages, expected)?;
        }
        self.seen.insert(expected.page);
        Ok(self.under_way.take().map(|(_, looked)| looked))
    }
}

/// Why a page is not whole, as an error.
fn why(id: PageId, looked: &Looked) -> Interrupt {
    assert!(!looked.is_whole(), "something is wrong with the page");
    match (&looked.unreadable, looked.faults.first()) {
        (Some(error), _) => error.clone().into(),
        (None, fault) => damaged(id, fault.map_or("no tree page", String::as_str)),
    }
}

impl Tree {
    /// Makes a leaf again, with what can be read of it.
    fn make_again(&self, pages: &Pages, expected: &Expected) -> Outcome<()> {
        assert_eq!(expected.level, Some(0), "a leaf has no children");
        let id = self.page_id(expected.page);
        let mut kept = Run::new();
        match pages.shared(id) {
            Ok(page) => {
                if self.read_kept(page.bytes(), expected, &mut kept).is_none() {
                    kept.clear();
                }
            }
            Err(Interrupt::Error(StoreError::Damaged { .. })) => {}
            Err(interrupt) => return Err(interrupt),
        }
        let mut change = pages.change()?;
        let page = change.create(id, PageType::BtreeLeaf)?;
        let shape = TreePageShape {
            level: 0,
            index_id: self.index.0,
            lower: &expected.lower,
            upper: expected.upper.as_deref(),
        };
        apply(&mut change, page, &PageOp::TreeInit(shape))?;
        for number in 0..kept.len() {
            let (key, payload) = kept.entry(number);
            // Fences that are further apart have a shorter prefix in common.
            if !has_room(change.bytes(page), key.len(), payload.len()) {
                break;
            }
            let slot = narrow(number);
            apply(
                &mut change,
                page,
                &PageOp::TreeInsert { slot, key, payload },
            )?;
        }
        assert!(
            slotted::verify(change.bytes(page)).is_ok(),
            "a page that was made is whole"
        );
        change.commit();
        Ok(())
    }

    /// Copies the entries of a leaf that belong between its fences. Returns `None` if it is no leaf
    /// of this tree.
    fn read_kept(&self, page: &[u8], expected: &Expected, kept: &mut Run) -> Option<()> {
        slotted::verify(page).ok()?;
        let view = TreePage::new(page)?;
        if view.index_id()? != self.index.0 || view.level()? != 0 {
            return None;
        }
        let mut key = Vec::new();
        for slot in 0..view.slot_count()? {
            key.clear();
            view.append_key(slot, &mut key)?;
            if expected.covers(&key) {
                push(kept, view, slot)?;
            }
        }
        Some(())
    }
}
