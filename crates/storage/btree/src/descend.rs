//! From the root to a leaf without latches.
//!
//! Optimistic lock coupling: read the child's number in the parent, take the child's version,
//! check that the parent has not changed meanwhile; so the child was the right one when its version
//! was taken. What the leaf said is used only if the leaf has not changed either, and only if it is
//! a leaf of this tree that has the key between its fences ([`LeafRead::read`]). After
//! [`RESTART_COUNT_MAX`] failures the way down is walked with shared latches.

use format::page_bytes::PageBytes;
use format::slotted::TreePage;
use format::{PageId, PageNo};
use store::{Halt, Outcome};

use crate::Tree;
use crate::error::{KEYS_ARE_OTHERS, damaged};
use crate::pages::{Optimistic, Pages, Shared};

/// Failed validations after which latches are taken: a page that changes so often is cheaper to
/// wait for.
const RESTART_COUNT_MAX: usize = 4;

/// More levels than a tree of 2^32 pages can have: a way that is longer runs in a circle.
pub(crate) const LEVEL_COUNT_MAX: usize = 40;

/// Which way to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// To the page that covers the key.
    At(&'a [u8]),
    /// To the page with the largest key below this one.
    Below(&'a [u8]),
    /// To the page with the largest key.
    Last,
}

impl Target<'_> {
    /// The slot of an inner page to follow.
    pub(crate) fn child_slot<P: PageBytes + ?Sized>(self, page: TreePage<'_, P>) -> Option<usize> {
        match self {
            Self::At(key) => page.search_child(key),
            Self::Below(key) => page.search(key)?.slot.checked_sub(1),
            Self::Last => page.slot_count()?.checked_sub(1),
        }
    }

    /// Whether a page has the fences of the one that is looked for.
    pub(crate) fn is_in<P: PageBytes + ?Sized>(self, page: TreePage<'_, P>) -> Option<bool> {
        match self {
            Self::At(key) => page.covers(key),
            Self::Below(key) => page.covers_below(key),
            Self::Last => page.has_upper().map(|has_upper| !has_upper),
        }
    }
}

/// Reads a leaf.
pub(crate) trait LeafRead {
    /// What it finds out.
    type Answer;

    /// Throws away what an attempt has left behind; called before each, when the way down is yet
    /// to be walked. A leaf that changes while it is read has left entries that nobody vouches
    /// for, and who is suspended on the way must not take them for what it has read.
    fn forget(&mut self);

    /// Reads. `None` says that the bytes make no sense, which is normal while another worker
    /// writes them, or that the leaf is not the one that the way down was to: then a disk has lost
    /// a write of it or of its parent. That is looked at where the leaf's entries do not tell it,
    /// which is where the key would stand before all of them or behind.
    fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<Self::Answer>;
}

/// Why an attempt has failed.
pub(crate) enum Miss {
    /// The page has changed meanwhile: try again.
    Changed,
    /// A page is not there, or is damaged.
    Halt(Halt),
}

impl From<Halt> for Miss {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

impl Tree {
    /// Reads the leaf that `target` leads to.
    pub(crate) fn read<R: LeafRead>(
        &self,
        pages: &Pages,
        target: Target<'_>,
        reader: &mut R,
    ) -> Outcome<R::Answer> {
        for _ in 0..RESTART_COUNT_MAX {
            reader.forget();
            match self.read_optimistic(pages, target, reader) {
                Ok(answer) => return Ok(answer),
                Err(Miss::Changed) => {}
                Err(Miss::Halt(halt)) => return Err(halt),
            }
        }
        reader.forget();
        let leaf = self.descend_shared(pages, target)?;
        let view = TreePage::new(leaf.bytes()).ok_or_else(|| damaged(leaf.id(), "no tree page"))?;
        reader.read(view).ok_or_else(|| {
            let what = match target.is_in(view) {
                // The parent was latched when the leaf was: this is no moment of a split.
                Some(false) => KEYS_ARE_OTHERS,
                _ => "a cell leaves the page",
            };
            damaged(leaf.id(), what)
        })
    }

    fn read_optimistic<R: LeafRead>(
        &self,
        pages: &Pages,
        target: Target<'_>,
        reader: &mut R,
    ) -> Result<R::Answer, Miss> {
        let leaf = self.descend_optimistic(pages, target, 0)?;
        let view = TreePage::new(&leaf).filter(|view| view.index_id() == Some(self.index.0));
        let answer = view.and_then(|view| reader.read(view));
        match answer {
            Some(answer) if leaf.is_valid() => Ok(answer),
            _ => Err(Miss::Changed),
        }
    }

    /// One attempt to reach the page of `level` that `target` leads to.
    pub(crate) fn descend_optimistic<'p>(
        &self,
        pages: &'p Pages,
        target: Target<'_>,
        level: u8,
    ) -> Result<Optimistic<'p>, Miss> {
        let mut node = pages.optimistic(self.root_id())?;
        for _ in 0..LEVEL_COUNT_MAX {
            let view = TreePage::new(&node).ok_or(Miss::Changed)?;
            if view.level().ok_or(Miss::Changed)? <= level {
                return Ok(node);
            }
            let slot = target.child_slot(view).ok_or(Miss::Changed)?;
            let child = view.child(slot).ok_or(Miss::Changed)?;
            if !node.is_valid() {
                return Err(Miss::Changed);
            }
            let next = pages.optimistic(self.page_id(PageNo(child)))?;
            if !node.is_valid() {
                return Err(Miss::Changed);
            }
            node = next;
        }
        Err(Miss::Changed)
    }

    fn descend_shared<'p>(&self, pages: &'p Pages, target: Target<'_>) -> Outcome<Shared<'p>> {
        let mut node = pages.shared(self.root_id())?;
        for _ in 0..LEVEL_COUNT_MAX {
            let id = node.id();
            let view = TreePage::new(node.bytes()).ok_or_else(|| damaged(id, "no tree page"))?;
            self.check_owner(id, view)?;
            if view.level() == Some(0) {
                return Ok(node);
            }
            let child = target.child_slot(view).and_then(|slot| view.child(slot));
            let child = child.ok_or_else(|| damaged(id, "no child for a key"))?;
            let next = pages.shared(self.page_id(PageNo(child)))?;
            node = next;
        }
        Err(damaged(self.root_id(), "the way to a leaf is a circle"))
    }

    /// The numbers of the page of `level` that covers `key` and of its parent; the page is not
    /// latched any more, so both must be checked again under their latches.
    pub(crate) fn locate(&self, pages: &Pages, key: &[u8], level: u8) -> Outcome<(PageId, PageId)> {
        for _ in 0..RESTART_COUNT_MAX {
            let found = self.locate_optimistic(pages, key, level);
            match found {
                Ok(found) => return Ok(found),
                Err(Miss::Changed) => {}
                Err(Miss::Halt(halt)) => return Err(halt),
            }
        }
        self.locate_shared(pages, key, level)
    }

    fn locate_optimistic(
        &self,
        pages: &Pages,
        key: &[u8],
        level: u8,
    ) -> Result<(PageId, PageId), Miss> {
        let node = self.descend_optimistic(pages, Target::At(key), level)?;
        let id = node.id();
        if id == self.root_id() || !node.is_valid() {
            return if node.is_valid() {
                Ok((id, id))
            } else {
                Err(Miss::Changed)
            };
        }
        let parent = self.descend_optimistic(pages, Target::At(key), level + 1)?;
        if parent.is_valid() && node.is_valid() {
            Ok((id, parent.id()))
        } else {
            Err(Miss::Changed)
        }
    }

    fn locate_shared(&self, pages: &Pages, key: &[u8], level: u8) -> Outcome<(PageId, PageId)> {
        let mut parent = self.root_id();
        let mut node = pages.shared(parent)?;
        for _ in 0..LEVEL_COUNT_MAX {
            let id = node.id();
            let view = TreePage::new(node.bytes()).ok_or_else(|| damaged(id, "no tree page"))?;
            if view.level().is_some_and(|found| found <= level) {
                return Ok((id, parent));
            }
            let child = view.search_child(key).and_then(|slot| view.child(slot));
            let child = child.ok_or_else(|| damaged(id, "no child for a key"))?;
            parent = id;
            let next = pages.shared(self.page_id(PageNo(child)))?;
            node = next;
        }
        Err(damaged(self.root_id(), "the way to a leaf is a circle"))
    }

    /// Asked when a page turns out not to be the tree's. Usually it has moved away in between, and
    /// is found elsewhere by the next attempt. But a tree may be dropped while an operation waits
    /// in it; its root is another's page then, and each attempt would end there.
    pub(crate) fn check_root(&self, pages: &Pages) -> Outcome<()> {
        let root = pages.optimistic(self.root_id())?;
        let checked = self.check_root_page(&root);
        if root.is_valid() { checked } else { Ok(()) }
    }

    /// As [`check_root`](Self::check_root), for the bytes of the root.
    pub(crate) fn check_root_page<P: PageBytes + ?Sized>(&self, page: &P) -> Outcome<()> {
        let id = self.root_id();
        let view = TreePage::new(page).ok_or_else(|| damaged(id, "the root is no tree page"))?;
        self.check_owner(id, view)
    }

    /// Asked with a page latched that is not the leaf that covers `key`, although the way led
    /// there. Where the parent still leads there, one of the two is not what was written last: a
    /// disk has lost a write, say. For whoever moves a key from leaf to leaf latches both and the
    /// parent. Each attempt would come back there for ever.
    pub(crate) fn check_child(&self, pages: &Pages, key: &[u8], child: PageId) -> Outcome<()> {
        let parent = match self.descend_optimistic(pages, Target::At(key), 1) {
            Ok(parent) => parent,
            Err(Miss::Changed) => return Ok(()),
            Err(Miss::Halt(halt)) => return Err(halt),
        };
        let child_of = |view: TreePage<'_, _>| {
            let is_parent = view.index_id()? == self.index.0 && view.level()? == 1;
            let number = view.child(view.search_child(key)?)?;
            is_parent.then_some(PageNo(number))
        };
        let leads_there = TreePage::new(&parent).and_then(child_of) == Some(child.page);
        if leads_there && parent.is_valid() {
            Err(damaged(child, KEYS_ARE_OTHERS))
        } else {
            Ok(())
        }
    }

    /// A page that belongs to another index is damage.
    pub(crate) fn check_owner<P: PageBytes + ?Sized>(
        &self,
        id: PageId,
        view: TreePage<'_, P>,
    ) -> Outcome<()> {
        if view.index_id() == Some(self.index.0) {
            Ok(())
        } else {
            Err(damaged(id, "the page belongs to another index"))
        }
    }
}
