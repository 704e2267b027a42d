//! Makes a tree whole again of which pages are lost.
//!
//! After a loss of log that was accepted, the pages of a tree are of different times. A leaf may
//! never have been written, or may have other fences than its parent says. Such a leaf is made
//! again, with the fences of its parent, and with those of its entries that can be read and belong
//! there. A leaf that is older than its split has the entries of the leaf to its right, too. If
//! that one was never written, they go there. Each leaf is one mini-transaction, so a crash in
//! between leaves less to do; it loses what was to go to the right.
//!
//! An inner page is not made again: its children cannot be found without it. The map of a page
//! that is older than the tree may call its pages free. They are marked before anything is made.

use std::collections::{BTreeMap, BTreeSet};

use format::page_op::PageOp;
use format::slotted::{self, TreePage, TreePageShape};
use format::{PageId, PageNo, PageType};
use store::{Interrupt, Outcome, StoreError};

use crate::check::{Check, Expected, Looked};
use crate::error::damaged;
use crate::pages::{Pages, apply, narrow};
use crate::scan::Run;
use crate::split::has_room;
use crate::{Tree, space};

/// Payloads by their keys.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Mending under way. It keeps its place over suspensions.
#[derive(Debug)]
pub struct Mend {
    check: Check,
    /// The pages that were checked. Two parents of a page contradict each other.
    seen: BTreeSet<PageNo>,
    /// Entries of leaves that were made again which belong to leaves further right.
    carried: Entries,
    /// The page whose step is under way, and what was found there.
    under_way: Option<(Expected, Looked)>,
}

impl Mend {
    /// Starts with the root of a tree that is not used meanwhile.
    pub fn new(tree: Tree) -> Self {
        Self {
            check: Check::new(tree),
            seen: BTreeSet::new(),
            carried: Entries::new(),
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
            let behind = self
                .check
                .tree()
                .make_again(pages, expected, &self.carried)?;
            self.carried.extend(behind);
        }
        if expected.level == Some(0) {
            let behind = expected
                .upper
                .as_deref()
                .map(|it| self.carried.split_off(it));
            self.carried = behind.unwrap_or_default();
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
    /// Makes a leaf again, with what can be read of it and what was carried there. Returns its
    /// entries above the upper fence.
    fn make_again(
        &self,
        pages: &Pages,
        expected: &Expected,
        carried: &Entries,
    ) -> Outcome<Entries> {
        assert_eq!(expected.level, Some(0), "a leaf has no children");
        let id = self.page_id(expected.page);
        let own = match pages.shared(id) {
            Ok(page) => self.entries(page.bytes()).unwrap_or_default(),
            Err(Interrupt::Error(StoreError::Damaged { .. })) => Entries::new(),
            Err(interrupt) => return Err(interrupt),
        };
        let is_behind = |key: &[u8]| expected.upper.as_deref().is_some_and(|it| it <= key);
        let (behind, own): (Entries, Entries) =
            own.into_iter().partition(|(key, _)| is_behind(key));
        // The page itself is the newer one.
        let mut kept = carried.clone();
        kept.extend(own);
        kept.retain(|key, _| expected.covers(key));
        let mut change = pages.change()?;
        let page = change.create(id, PageType::BtreeLeaf)?;
        let shape = TreePageShape {
            level: 0,
            index_id: self.index.0,
            lower: &expected.lower,
            upper: expected.upper.as_deref(),
        };
        apply(&mut change, page, &PageOp::TreeInit(shape))?;
        let mut made = 0;
        for (key, payload) in &kept {
            // Fences that are further apart have a shorter prefix in common.
            if !has_room(change.bytes(page), key.len(), payload.len()) {
                continue;
            }
            let slot = narrow(made);
            apply(
                &mut change,
                page,
                &PageOp::TreeInsert { slot, key, payload },
            )?;
            made += 1;
        }
        assert!(
            slotted::verify(change.bytes(page)).is_ok(),
            "a page that was made is whole"
        );
        change.commit();
        Ok(behind)
    }

    /// Copies the entries of a page. Returns `None` if it is no leaf of this tree.
    fn entries(&self, page: &[u8]) -> Option<Entries> {
        slotted::verify(page).ok()?;
        let view = TreePage::new(page)?;
        if view.index_id()? != self.index.0 || view.level()? != 0 {
            return None;
        }
        let mut entries = Entries::new();
        for slot in 0..view.slot_count()? {
            let (mut key, mut payload) = (Vec::new(), Vec::new());
            view.append_key(slot, &mut key)?;
            view.append_payload(slot, &mut payload)?;
            entries.insert(key, payload);
        }
        Some(entries)
    }
}
