//! Giving pages back: a page with few entries is joined with a neighbour.
//!
//! Called by operations that remove entries for good: purge, and rollback if a leaf has become
//! nearly empty; never by a statement. A step latches the parent, the left page, the right page,
//! and what the space needs. The left page takes the right one's entries and range. If both do not
//! fit into one page, nothing happens.

use format::page_bytes::PageBytes;
use format::page_op::PageOp;
use format::slotted::{self, SLOTS_START, TreePage, TreePageShape};
use format::{PageId, PageNo, PageType};
use store::Outcome;

use crate::Tree;
use crate::descend::{LeafRead, Target};
use crate::error::damaged;
use crate::pages::{Change, Latched, Pages, apply, narrow};
use crate::space::Release;
use crate::split::{is_longer_than_page, put_image, slot_count};
use crate::take_steps;

/// Pages of a tree that are given back before other tasks run: some 100 us.
const PAGES_PER_TURN: usize = 32;

/// A page is joined when its entries fill less than this part of it.
const SPARSE_DIVISOR: usize = 4;

impl Tree {
    /// Joins the leaf that covers `key` with a neighbour if it has become sparse, and its parents
    /// likewise.
    pub fn shrink(&self, pages: &Pages, key: &[u8]) -> Outcome<()> {
        let mut level = 0;
        while self.shrink_level(pages, key, level)? {
            level += 1;
        }
        Ok(())
    }

    /// As [`shrink`](Self::shrink), but only if the leaf itself is nearly empty. For callers that
    /// remove entry after entry, and look at neighbours only then.
    pub fn shrink_if_sparse(&self, pages: &Pages, key: &[u8]) -> Outcome<()> {
        let page_bytes = pages.page_bytes();
        if self.read(pages, Target::At(key), &mut IsSparse { page_bytes })? {
            self.shrink(pages, key)
        } else {
            Ok(())
        }
    }

    /// True if a page of this level was given back.
    fn shrink_level(&self, pages: &Pages, key: &[u8], level: u8) -> Outcome<bool> {
        let (node, parent_id) = self.locate(pages, key, level)?;
        if node == self.root_id() {
            return self.lower_root(pages);
        }
        let mut change = pages.change()?;
        let parent = change.latch(parent_id)?;
        let Some(pair) = self.pair(change.bytes(parent), key, (node, level)) else {
            return Ok(false);
        };
        let left = change.latch(self.page_id(pair.left))?;
        let right = change.latch(self.page_id(pair.right))?;
        let is_sparse = |page: &[u8]| {
            TreePage::new(page).and_then(|view| is_sparse(view, page.len())) == Some(true)
        };
        if !is_sparse(change.bytes(left)) && !is_sparse(change.bytes(right)) {
            return Ok(false);
        }
        let Some(joined) = self.join(change.bytes(left), change.bytes(right), level) else {
            return Ok(false);
        };
        if left == right {
            return Err(damaged(change.id(left), "a page is its own neighbour"));
        }
        let release = Release::make(&mut change, right)?;
        let counts = [left, right, parent].map(|page| slot_count(&change, page));
        absorb(&mut change, left, &joined)?;
        apply(
            &mut change,
            parent,
            &PageOp::TreeRemove {
                slot: narrow(pair.right_slot),
            },
        )?;
        let [left_count, right_count, parent_count] = counts;
        let joined_count = slot_count(&change, left);
        assert_eq!(joined_count, left_count + right_count, "no entry is lost");
        assert_eq!(slot_count(&change, parent), parent_count - 1);
        release.give_back(&mut change)?;
        change.commit();
        Ok(true)
    }

    /// The child at `key` and a neighbour, as the parent lists them.
    fn pair(&self, parent: &[u8], key: &[u8], (node, level): (PageId, u8)) -> Option<Pair> {
        assert_eq!(
            node.space, self.space,
            "a tree's pages are in one tablespace"
        );
        let view = TreePage::new(parent)?;
        let is_parent =
            view.index_id()? == self.index.0 && view.level()? == level + 1 && view.covers(key)?;
        let slot = view.search_child(key)?;
        if !is_parent || view.child(slot)? != node.page.0 || view.slot_count()? < 2 {
            return None;
        }
        let right_slot = slot.max(1);
        let left = PageNo(view.child(right_slot - 1)?);
        let right = PageNo(view.child(right_slot)?);
        Some(Pair {
            left,
            right,
            right_slot,
        })
    }

    /// What the left page takes over, or `None` if it has no room, or the pages do not adjoin.
    fn join(&self, left: &[u8], right: &[u8], level: u8) -> Option<Joined> {
        let (left_view, right_view) = (TreePage::new(left)?, TreePage::new(right)?);
        let of_tree = |view: TreePage<'_, [u8]>| {
            view.index_id() == Some(self.index.0) && view.level() == Some(level)
        };
        if !of_tree(left_view) || !of_tree(right_view) {
            return None;
        }
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        right_view.append_lower(&mut lower)?;
        if !left_view.append_upper(&mut upper)? || lower != upper {
            return None;
        }
        let mut joined = Joined::default();
        upper.clear();
        joined.upper = right_view.append_upper(&mut upper)?.then_some(upper);
        slotted::append_cells(right_view, 0..right_view.slot_count()?, &mut joined.cells)?;
        joined.image = left.to_vec();
        slotted::absorb(
            joined.image.as_mut_slice(),
            joined.upper.as_deref(),
            &joined.cells,
        )
        .ok()?;
        Some(joined)
    }

    /// Replaces the contents of a root with one child by that child's.
    fn lower_root(&self, pages: &Pages) -> Outcome<bool> {
        let mut change = pages.change()?;
        let root = change.latch(self.root_id())?;
        self.check_root_page(change.bytes(root))?;
        let Some(child_no) = only_child(change.bytes(root)) else {
            return Ok(false);
        };
        let child = change.latch(self.page_id(child_no))?;
        let mut cells = Vec::new();
        let level = copy_all(change.bytes(child), &mut cells)
            .ok_or_else(|| damaged(change.id(child), "a cell leaves the page"))?;
        let release = Release::make(&mut change, child)?;
        if level == 0 {
            change.set_type(root, PageType::BtreeLeaf);
        }
        let count = slot_count(&change, child);
        self.refill_root(&mut change, root, level, &cells)?;
        assert_eq!(slot_count(&change, root), count, "no entry is lost");
        release.give_back(&mut change)?;
        change.commit();
        Ok(true)
    }

    fn refill_root(
        &self,
        change: &mut Change<'_>,
        root: Latched,
        level: u8,
        cells: &[u8],
    ) -> Outcome<()> {
        assert_eq!(change.id(root), self.root_id());
        let shape = TreePageShape {
            level,
            index_id: self.index.0,
            lower: &[],
            upper: None,
        };
        apply(change, root, &PageOp::TreeInit(shape))?;
        if cells.is_empty() {
            Ok(())
        } else {
            apply(change, root, &PageOp::TreeExtend { cells })
        }
    }

    /// Gives back every page of the tree, which must not be used any more. A large tree suspends to
    /// give way, and goes on when it is called again.
    pub fn destroy(&self, pages: &Pages) -> Outcome<()> {
        take_steps(PAGES_PER_TURN, || self.destroy_step(pages))
    }

    /// Gives back the first page without children. Returns false if that was the root.
    fn destroy_step(&self, pages: &Pages) -> Outcome<bool> {
        let (mut id, mut parent) = (self.root_id(), None);
        loop {
            let child = {
                let page = pages.shared(id)?;
                let Some(view) = TreePage::new(page.bytes()) else {
                    // An earlier call that could not finish has given it back.
                    return Ok(false);
                };
                if view.level() == Some(0) || view.slot_count() == Some(0) {
                    None
                } else {
                    view.child(0)
                }
            };
            let Some(child) = child else { break };
            parent = Some(id);
            id = self.page_id(PageNo(child));
        }
        let mut change = pages.change()?;
        let parent = parent.map(|parent| change.latch(parent)).transpose()?;
        let page = change.latch(id)?;
        let release = Release::make(&mut change, page)?;
        if let Some(parent) = parent {
            apply(&mut change, parent, &PageOp::TreeRemove { slot: 0 })?;
        }
        release.give_back(&mut change)?;
        change.commit();
        Ok(parent.is_some())
    }
}

/// Whether a page's live bytes take at most a `SPARSE_DIVISOR`th of its room.
fn is_sparse<P: PageBytes + ?Sized>(page: TreePage<'_, P>, page_bytes: usize) -> Option<bool> {
    Some(page.live_bytes()? <= (page_bytes - SLOTS_START) / SPARSE_DIVISOR)
}

/// Asks a leaf whether it is sparse.
struct IsSparse {
    page_bytes: usize,
}

impl LeafRead for IsSparse {
    type Answer = bool;

    fn forget(&mut self) {}

    fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<bool> {
        is_sparse(leaf, self.page_bytes)
    }
}

/// Two neighbours.
struct Pair {
    left: PageNo,
    right: PageNo,
    right_slot: usize,
}

/// The contents of the right page.
#[derive(Default)]
struct Joined {
    upper: Option<Vec<u8>>,
    cells: Vec<u8>,
    /// The left page with both contents.
    image: Vec<u8>,
}

fn absorb(change: &mut Change<'_>, left: Latched, joined: &Joined) -> Outcome<()> {
    if is_longer_than_page(&joined.cells, change.page_bytes()) {
        return put_image(change, left, &joined.image);
    }
    let op = PageOp::TreeAbsorb {
        upper: joined.upper.as_deref(),
        cells: &joined.cells,
    };
    apply(change, left, &op)
}

fn only_child(root: &[u8]) -> Option<PageNo> {
    let view = TreePage::new(root)?;
    if view.level()? == 0 || view.slot_count()? != 1 {
        return None;
    }
    view.child(0).map(PageNo)
}

fn copy_all(page: &[u8], cells: &mut Vec<u8>) -> Option<u8> {
    let view = TreePage::new(page)?;
    slotted::append_cells(view, 0..view.slot_count()?, cells)?;
    view.level()
}
