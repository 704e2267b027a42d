//! From the root to a leaf without latches.
//!
//! Optimistic lock coupling. A step reads the child's number in the parent, takes the child's
//! version and checks that the parent has not changed meanwhile. So the child was the right one
//! when its version was taken. What was read in the leaf is used only if the leaf has not changed
//! either. It must also be a leaf of this tree with the key between its fences
//! ([`LeafRead::read`]). After [`RESTART_COUNT_MAX`] failures the descent takes shared latches.

use format::page_bytes::PageBytes;
use format::slotted::TreePage;
use format::{PageId, PageNo};
use store::{Interrupt, Outcome};

use crate::Tree;
use crate::error::{KEYS_ARE_OTHERS, damaged};
use crate::pages::{Optimistic, Pages, Shared};

/// Failed validations after which latches are taken: it is cheaper to wait for a page that changes
/// so often.
const RESTART_COUNT_MAX: usize = 4;

/// More levels than a tree of 2^32 pages can have: a longer descent runs in a circle.
pub(crate) const LEVEL_COUNT_MAX: usize = 40;

/// Where to descend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// To the page that covers the key.
    At(&'a [u8]),
    /// To the page with the largest key below this one.
    Below(&'a [u8]),
    /// To the page with the largest key.
    Last,
    /// To a page that this number picks.
    Any(u64),
}

impl Target<'_> {
    /// The slot of an inner page to follow.
    pub(crate) fn child_slot<P: PageBytes + ?Sized>(self, page: TreePage<'_, P>) -> Option<usize> {
        match self {
            Self::At(key) => page.search_child(key),
            Self::Below(key) => page.search(key)?.slot.checked_sub(1),
            Self::Last => page.slot_count()?.checked_sub(1),
            Self::Any(seed) => {
                let level = u64::from(page.level()?);
                let count = stdx::to_u64(page.slot_count()?);
                let picked = mixed(seed.wrapping_add(level << 32)).checked_rem(count)?;
                usize::try_from(picked).ok()
            }
        }
    }

    /// Whether a page has the fences of the target page.
    pub(crate) fn is_in<P: PageBytes + ?Sized>(self, page: TreePage<'_, P>) -> Option<bool> {
        match self {
            Self::At(key) => page.covers(key),
            Self::Below(key) => page.covers_below(key),
            Self::Last => page.has_upper().map(|has_upper| !has_upper),
            Self::Any(_) => Some(true),
        }
    }
}

/// A number whose bits all depend on all bits of `seed` (the finalizer of SplitMix64).
fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// Reads a leaf.
pub(crate) trait LeafRead {
    /// The result.
    type Answer;

    /// Drops what an attempt has left behind; called before each descent. A leaf that changes while
    /// it is read leaves entries that may be wrong. A caller that is suspended in the descent must
    /// not take them for a result.
    fn forget(&mut self);

    /// Reads. Returns `None` if the bytes make no sense, which is normal while another worker
    /// writes them. Also returns `None` if the leaf does not cover the target: a disk has lost a
    /// write of it or of its parent. The fences are checked only if the key would stand before all
    /// entries or after them; otherwise the entries show it.
    fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<Self::Answer>;
}

/// Why an attempt failed.
pub(crate) enum Miss {
    /// The page has changed meanwhile: try again.
    Changed,
    /// A page is not there, or is damaged.
    Interrupt(Interrupt),
}

impl From<Interrupt> for Miss {
    fn from(interrupt: Interrupt) -> Self {
        Self::Interrupt(interrupt)
    }
}

impl Tree {
    /// Reads the leaf of `target`.
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
                Err(Miss::Interrupt(interrupt)) => return Err(interrupt),
            }
        }
        reader.forget();
        let leaf = self.descend_shared(pages, target)?;
        let view = TreePage::new(leaf.bytes()).ok_or_else(|| damaged(leaf.id(), "no tree page"))?;
        reader.read(view).ok_or_else(|| {
            let what = match target.is_in(view) {
                // The parent was latched when the leaf was, so no split is under way.
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
            Some(answer) if leaf.is_valid() => {
                pages.set_finger(Some(leaf.id()));
                Ok(answer)
            }
            _ => Err(Miss::Changed),
        }
    }

    /// Makes one attempt to reach the page of `target` on `level`.
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

    /// Returns the ids of the page of `level` that covers `key` and of its parent. The page is not
    /// latched any more, so the caller checks both again under their latches.
    pub(crate) fn locate(&self, pages: &Pages, key: &[u8], level: u8) -> Outcome<(PageId, PageId)> {
        assert!(
            usize::from(level) < LEVEL_COUNT_MAX,
            "a split goes up a few levels"
        );
        for _ in 0..RESTART_COUNT_MAX {
            let found = self.locate_optimistic(pages, key, level);
            match found {
                Ok(found) => return Ok(found),
                Err(Miss::Changed) => {}
                Err(Miss::Interrupt(interrupt)) => return Err(interrupt),
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

    /// Called when a page turns out not to be the tree's. Usually it has moved meanwhile, and the
    /// next attempt finds the right one. But a tree may be dropped while an operation waits in it.
    /// Its root is then another tree's page, and each attempt would end there.
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

    /// Called with a page latched that does not cover `key`, although the descent led there. If the
    /// parent still leads there, one of the two pages is out of date: a disk has lost a write, for
    /// instance. No split explains it, because a move of keys between leaves latches both leaves
    /// and the parent. Each attempt would come back to this page for ever.
    pub(crate) fn check_child(&self, pages: &Pages, key: &[u8], child: PageId) -> Outcome<()> {
        let parent = match self.descend_optimistic(pages, Target::At(key), 1) {
            Ok(parent) => parent,
            Err(Miss::Changed) => return Ok(()),
            Err(Miss::Interrupt(interrupt)) => return Err(interrupt),
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
