//! Making room: splits, from the page that is full up to the first parent with room.
//!
//! A split is a mini-transaction of its own. It latches a parent, its child and what the space
//! needs to allocate a page, in this order. The parent must have room for the new separator. If it
//! has none, it is split first and everything begins again. All latches are taken before the first
//! byte changes, so a suspension leaves nothing half done.
//!
//! Cells that move to another page stand in the log with their whole keys, because the other page
//! may omit more or less of them. If fences share a long prefix, whole keys take much more than the
//! cells take in a page, and more than an operation may have. Then the log gets the new image of
//! the page (`put_image`).
//!
//! A full leaf is cut in two halves, unless its keys come in ascending order. Then what is behind
//! the new entry moves, and the leaf stays full. So tables whose keys are a customer's number and a
//! counter take no more room than those that grow at their end alone. InnoDB takes two entries for
//! such an order (`btr_page_get_split_rec_to_right`); here it must be a quarter of the leaf, as the
//! lines of one order do not tell where those of the next one stand.

use format::page_op::PageOp;
use format::slotted::{self, ChangeError, SLOTS_START, TreePage, TreePageShape};
use format::{PAGE_HEADER_BYTES, PageId, PageType};
use store::Outcome;

use crate::Tree;
use crate::error::{KEYS_ARE_OTHERS, change_failed, damaged};
use crate::pages::{Change, Latched, Pages, apply, narrow};
use crate::space::{self, Reservation};

/// An entry that needs room.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Bytes of its payload: all of them for a new entry, the growth for an existing one.
    pub payload_bytes: usize,
    /// Whether the entry is new.
    pub is_new: bool,
}

impl Tree {
    /// Splits until the leaf that covers the wanted entry has room for it.
    pub fn make_room(&self, pages: &Pages, wanted: Wanted<'_>) -> Outcome<()> {
        self.make_room_at(pages, wanted, 0)
    }

    fn make_room_at(&self, pages: &Pages, wanted: Wanted<'_>, level: u8) -> Outcome<()> {
        loop {
            let (node, parent) = self.locate(pages, wanted.key, level)?;
            assert_eq!(
                node.space, self.space,
                "a tree's pages are in one tablespace"
            );
            let mut change = pages.change()?;
            let done = if node == self.root_id() {
                self.split_root(&mut change, wanted, level)?
            } else {
                self.split_child(&mut change, (parent, node), wanted, level)?
            };
            match done {
                Step::Again => {
                    drop(change);
                    self.check_root(pages)?;
                }
                Step::Applied => {
                    change.commit();
                }
                Step::HasRoom => return Ok(()),
                Step::SpaceIsFull => {
                    drop(change);
                    space::grow(pages, self.space)?;
                }
                Step::ParentIsFull(separator) => {
                    drop(change);
                    let entry = Wanted {
                        key: &separator,
                        payload_bytes: 4,
                        is_new: true,
                    };
                    self.make_room_at(pages, entry, level + 1)?;
                }
            }
        }
    }

    /// Latches a page and checks that it is the tree's page of `level` that covers `key`.
    fn latch_node(
        &self,
        change: &mut Change<'_>,
        id: PageId,
        key: &[u8],
        level: u8,
    ) -> Outcome<Option<Latched>> {
        let node = change.latch(id)?;
        let is_right = TreePage::new(change.bytes(node)).is_some_and(|view| {
            view.index_id() == Some(self.index.0)
                && view.level() == Some(level)
                && view.covers(key) == Some(true)
        });
        Ok(is_right.then_some(node))
    }

    fn split_child(
        &self,
        change: &mut Change<'_>,
        (parent_id, id): (PageId, PageId),
        wanted: Wanted<'_>,
        level: u8,
    ) -> Outcome<Step> {
        let Some(parent) = self.latch_node(change, parent_id, wanted.key, level + 1)? else {
            return Ok(Step::Again);
        };
        let Some(slot) = child_slot(change.bytes(parent), wanted.key, id) else {
            return Ok(Step::Again);
        };
        let Some(node) = self.latch_node(change, id, wanted.key, level)? else {
            // Both are latched, so no split of another worker is under way.
            return Err(damaged(id, KEYS_ARE_OTHERS));
        };
        let Some(plan) = plan(id, change.bytes(node), wanted)? else {
            return Ok(Step::HasRoom);
        };
        if !has_room(change.bytes(parent), plan.separator.len(), 4) {
            return Ok(Step::ParentIsFull(plan.separator));
        }
        let Some(reservation) = Reservation::make(change, self.space, &[page_type(level)])? else {
            return Ok(Step::SpaceIsFull);
        };
        let (right_no, right) = reservation.page(0);
        let count = slot_count(change, node);
        reservation.take(change)?;
        self.fill_right(change, (node, right), &plan, level)?;
        let from = narrow(plan.from);
        apply(
            change,
            node,
            &PageOp::TreeCut {
                from,
                upper: &plan.separator,
            },
        )?;
        let child = right_no.0.to_le_bytes();
        let slot = narrow(slot + 1);
        let separator = PageOp::TreeInsert {
            slot,
            key: &plan.separator,
            payload: &child,
        };
        apply(change, parent, &separator)?;
        assert_halves(change, (node, right), &plan, count);
        Ok(Step::Applied)
    }

    /// Makes `right` the page of the slots from the plan's slot on.
    fn fill_right(
        &self,
        change: &mut Change<'_>,
        (node, right): (Latched, Latched),
        plan: &Plan,
        level: u8,
    ) -> Outcome<()> {
        let (mut upper, mut cells) = (Vec::new(), Vec::new());
        let id = change.id(node);
        let view = TreePage::new(change.bytes(node)).ok_or_else(|| damaged(id, "no tree page"))?;
        let read = || {
            let has_upper = view.append_upper(&mut upper)?;
            slotted::append_cells(view, plan.from..view.slot_count()?, &mut cells)?;
            Some(has_upper)
        };
        let has_upper = { read }().ok_or_else(|| damaged(id, "a cell leaves the page"))?;
        let upper = has_upper.then_some(upper.as_slice());
        let lower = plan.separator.as_slice();
        self.fill(
            change,
            right,
            TreePageShape {
                level,
                index_id: self.index.0,
                lower,
                upper,
            },
            &cells,
        )
    }

    fn fill(
        &self,
        change: &mut Change<'_>,
        page: Latched,
        shape: TreePageShape<'_>,
        cells: &[u8],
    ) -> Outcome<()> {
        if is_longer_than_page(cells, change.page_bytes()) {
            let mut image = change.bytes(page).to_vec();
            let filled = slotted::init(image.as_mut_slice(), shape)
                .and_then(|()| slotted::extend(image.as_mut_slice(), cells));
            filled.map_err(|error: ChangeError| change_failed(change.id(page), error))?;
            return put_image(change, page, &image);
        }
        apply(change, page, &PageOp::TreeInit(shape))?;
        if cells.is_empty() {
            Ok(())
        } else {
            apply(change, page, &PageOp::TreeExtend { cells })
        }
    }

    /// The root keeps its number: its entries move to two new children.
    fn split_root(&self, change: &mut Change<'_>, wanted: Wanted<'_>, level: u8) -> Outcome<Step> {
        let Some(root) = self.latch_node(change, self.root_id(), wanted.key, level)? else {
            return Ok(Step::Again);
        };
        let Some(plan) = plan(self.root_id(), change.bytes(root), wanted)? else {
            return Ok(Step::HasRoom);
        };
        let kind = page_type(level);
        let Some(reservation) = Reservation::make(change, self.space, &[kind, kind])? else {
            return Ok(Step::SpaceIsFull);
        };
        let (left_no, left) = reservation.page(0);
        let (right_no, right) = reservation.page(1);
        reservation.take(change)?;
        let mut cells = Vec::new();
        let id = self.root_id();
        TreePage::new(change.bytes(root))
            .and_then(|view| slotted::append_cells(view, 0..plan.from, &mut cells))
            .ok_or_else(|| damaged(id, "a cell leaves the page"))?;
        let separator = plan.separator.as_slice();
        let index_id = self.index.0;
        let shape = TreePageShape {
            level,
            index_id,
            lower: &[],
            upper: Some(separator),
        };
        let count = slot_count(change, root);
        self.fill(change, left, shape, &cells)?;
        self.fill_right(change, (root, right), &plan, level)?;
        assert_halves(change, (left, right), &plan, count);
        let mut children = Vec::new();
        push_cell(&mut children, &[], &left_no.0.to_le_bytes());
        push_cell(&mut children, separator, &right_no.0.to_le_bytes());
        let shape = TreePageShape {
            level: level + 1,
            index_id,
            lower: &[],
            upper: None,
        };
        change.set_type(root, PageType::BtreeInner);
        self.fill(change, root, shape, &children)?;
        assert_eq!(slot_count(change, root), 2, "a split root has two children");
        Ok(Step::Applied)
    }
}

/// No entry is lost or doubled by a split, and its fence is where the halves meet.
fn assert_halves(
    change: &Change<'_>,
    (left, right): (Latched, Latched),
    plan: &Plan,
    count: usize,
) {
    assert_eq!(slot_count(change, left), plan.from);
    assert_eq!(slot_count(change, right), count - plan.from);
    let fences = || {
        let (left, right) = (
            TreePage::new(change.bytes(left))?,
            TreePage::new(change.bytes(right))?,
        );
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        left.append_upper(&mut upper)?;
        right.append_lower(&mut lower)?;
        Some((upper, lower))
    };
    let (upper, lower) = fences().expect("both halves were made just now");
    assert_eq!(upper, plan.separator, "the left half ends at the fence");
    assert_eq!(lower, plan.separator, "the right half begins at the fence");
}

/// The outcome of one attempt.
enum Step {
    /// The pages have changed: look for them again.
    Again,
    /// A page was split.
    Applied,
    /// There is room.
    HasRoom,
    /// The file must grow first.
    SpaceIsFull,
    /// The parent must be split first, for this separator.
    ParentIsFull(Vec<u8>),
}

/// Where a page is cut.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// The first slot of the right half; may be the slot count.
    from: usize,
    /// The fence between the halves.
    separator: Vec<u8>,
}

/// How to split the page for the wanted entry, or `None` if it has room already.
fn plan(id: PageId, page: &[u8], wanted: Wanted<'_>) -> Outcome<Option<Plan>> {
    let view = TreePage::new(page).ok_or_else(|| damaged(id, "no tree page"))?;
    let made = plan_view(view, wanted, page.len());
    let made = made.ok_or_else(|| damaged(id, "a cell leaves the page"))?;
    if made.as_ref().is_some_and(|plan| plan.separator.is_empty()) {
        return Err(damaged(id, "a page with one entry is full"));
    }
    if let Some(plan) = &made {
        assert!(
            Some(plan.from) <= view.slot_count(),
            "a page is cut within itself"
        );
    }
    Ok(made)
}

fn plan_view(
    view: TreePage<'_, [u8]>,
    wanted: Wanted<'_>,
    page_bytes: usize,
) -> Option<Option<Plan>> {
    let key_bytes = if wanted.is_new {
        wanted.key.len()
    } else {
        view.prefix_length()?
    };
    let cost = view.cell_cost(key_bytes, wanted.payload_bytes)?;
    if cost <= view.free_bytes()? {
        return Some(None);
    }
    assert!(
        cost < page_bytes - SLOTS_START,
        "an entry is smaller than an empty page"
    );
    let count = view.slot_count()?;
    let position = view.search(wanted.key)?;
    let costs: Vec<usize> = (0..count)
        .map(|slot| view.slot_cost(slot))
        .collect::<Option<Vec<_>>>()?;
    let is_leaf = view.level()? == 0;
    // Another may have put the entry there meanwhile.
    let new_slot = (wanted.is_new && !position.is_match).then_some(position.slot);
    let is_ascending = is_leaf && new_slot.is_some() && ascends_at(view, position.slot)?;
    if is_ascending && position.slot < count {
        let from = position.slot;
        let separator = separator_behind(view, from, wanted.key)?;
        if halves_fit(view, &costs, (from, separator.len()), page_bytes)? {
            return Some(Some(Plan { from, separator }));
        }
    }
    let is_append = new_slot == Some(count) && (is_ascending || !view.has_upper()?);
    let preferred = match (is_append, is_leaf) {
        (true, true) if 0 < count => count,
        (true, false) => count.saturating_sub(1),
        (_, true) => balanced_cut(&costs, new_slot.map(|slot| (slot, cost))),
        (false, false) => balanced_cut(&costs, None),
    };
    assert!(preferred <= count, "a page is cut within itself");
    // A new fence takes room, too. If it does not fit, other cuts are tried.
    let others = std::iter::once(balanced_cut(&costs, None)).chain(1..count);
    for from in std::iter::once(preferred).chain(others) {
        let separator = if is_leaf {
            leaf_separator(view, from, (wanted.key, new_slot))?
        } else {
            inner_separator(view, from)?
        };
        if !separator.is_empty() && halves_fit(view, &costs, (from, separator.len()), page_bytes)? {
            return Some(Some(Plan { from, separator }));
        }
    }
    Some(Some(Plan {
        from: 0,
        separator: Vec::new(),
    }))
}

/// A leaf with this part of its entries in a run is filled in ascending order.
const RUN_PART: usize = 4;
/// The longest run that is asked for; a page counts up to one more.
const RUN_MAX: usize = 255;

/// Whether the keys of a leaf seem to come in ascending order, so that the next ones will stand
/// behind the one that is put before `slot`. A cut there then leaves the larger half full. At the
/// leaf's end one entry is enough: only one of many that come in no order is put there, and the
/// entries of a leaf that was cut before count as none.
fn ascends_at(view: TreePage<'_, [u8]>, slot: usize) -> Option<bool> {
    let (count, run) = (view.slot_count()?, view.run_before(slot)?);
    let is_long = (count / RUN_PART).clamp(1, RUN_MAX) <= run;
    let is_at_end = slot == count && 0 < run;
    Some(is_at_end || is_long && count <= 2 * slot)
}

/// The shortest key that is above `key` and at most that of the slot behind it.
fn separator_behind(view: TreePage<'_, [u8]>, slot: usize, key: &[u8]) -> Option<Vec<u8>> {
    let mut right = Vec::new();
    view.append_key(slot, &mut right)?;
    Some(slotted::separator(key, &right).to_vec())
}

/// Whether both halves have room for their cells and fences. What longer prefixes save is not
/// counted.
fn halves_fit(
    view: TreePage<'_, [u8]>,
    costs: &[usize],
    (from, separator_bytes): (usize, usize),
    page_bytes: usize,
) -> Option<bool> {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    view.append_lower(&mut lower)?;
    view.append_upper(&mut upper)?;
    let (left, right) = costs.split_at_checked(from)?;
    let room = page_bytes.checked_sub(SLOTS_START + separator_bytes)?;
    let left: usize = left.iter().sum::<usize>() + lower.len();
    let right: usize = right.iter().sum::<usize>() + upper.len();
    Some(left <= room && right <= room)
}

/// An inner page is cut at a slot whose key becomes the separator, so each half begins with the key
/// of its lower fence. Returns an empty key if one half would have no child.
fn inner_separator(view: TreePage<'_, [u8]>, from: usize) -> Option<Vec<u8>> {
    let mut separator = Vec::new();
    if 0 < from && from < view.slot_count()? {
        view.append_key(from, &mut separator)?;
    }
    Some(separator)
}

/// The shortest key between the halves of a leaf. If one half has the new entry alone, it is the
/// fence of that half. Empty if there is nothing to cut between.
fn leaf_separator(
    view: TreePage<'_, [u8]>,
    from: usize,
    (new_key, new_slot): (&[u8], Option<usize>),
) -> Option<Vec<u8>> {
    let count = view.slot_count()?;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    if 0 < from {
        view.append_key(from - 1, &mut left)?;
    }
    if from < count {
        view.append_key(from, &mut right)?;
    }
    let is_new_here = new_slot == Some(from);
    let separator = match (0 < from, from < count) {
        (true, true) => slotted::separator(&left, &right),
        (true, false) if is_new_here => slotted::separator(&left, new_key),
        (false, true) if is_new_here => slotted::separator(new_key, &right),
        _ => &[],
    };
    Some(separator.to_vec())
}

/// The slot before which a page with entries of these costs is cut so that the halves are as equal
/// as possible. A new entry (its slot and cost) counts in the half where it will stand. Neither
/// half is left without entries, the new one included.
fn balanced_cut(costs: &[usize], new: Option<(usize, usize)>) -> usize {
    let total: usize = costs.iter().sum::<usize>() + new.map_or(0, |(_, cost)| cost);
    let mut best = (usize::MAX, 0);
    let mut left = 0;
    for from in 0..=costs.len() {
        if 0 < from {
            left += costs[from - 1];
        }
        // A new entry at the cut goes right. At cut 0 it goes left: the right half has all others.
        let new_left = new.is_some_and(|(slot, _)| slot < from || (slot == from && from == 0));
        let left_all = left
            + if new_left {
                new.map_or(0, |(_, cost)| cost)
            } else {
                0
            };
        let has_both = 0 < left_all && left_all < total;
        let difference = left_all.abs_diff(total - left_all);
        if has_both && difference < best.0 {
            best = (difference, from);
        }
    }
    best.1
}

fn child_slot(parent: &[u8], key: &[u8], child: PageId) -> Option<usize> {
    let view = TreePage::new(parent)?;
    let slot = view.search_child(key)?;
    (view.child(slot)? == child.page.0).then_some(slot)
}

/// Whether a page has room for a new entry.
pub(crate) fn has_room(page: &[u8], key_bytes: usize, payload_bytes: usize) -> bool {
    TreePage::new(page)
        .and_then(|view| Some(view.cell_cost(key_bytes, payload_bytes)? <= view.free_bytes()?))
        .unwrap_or(false)
}

/// Entries of a page that this change has made or read as a tree page.
pub(crate) fn slot_count(change: &Change<'_>, page: Latched) -> usize {
    let view = TreePage::new(change.bytes(page));
    view.and_then(TreePage::slot_count)
        .expect("it was a tree page under this latch")
}

/// Whether cells with their whole keys take more than the page that they move to.
pub(crate) fn is_longer_than_page(cells: &[u8], page_bytes: usize) -> bool {
    page_bytes - PAGE_HEADER_BYTES < cells.len()
}

/// Replaces a page by `image`, except its header.
pub(crate) fn put_image(change: &mut Change<'_>, page: Latched, image: &[u8]) -> Outcome<()> {
    assert_eq!(image.len(), change.page_bytes());
    let (_, body) = image.split_at(PAGE_HEADER_BYTES);
    apply(change, page, &PageOp::BodyFill { bytes: body })
}

fn page_type(level: u8) -> PageType {
    if level == 0 {
        PageType::BtreeLeaf
    } else {
        PageType::BtreeInner
    }
}

fn push_cell(cells: &mut Vec<u8>, key: &[u8], payload: &[u8]) {
    assert_eq!(payload.len(), 4, "an inner cell leads to a page");
    cells.extend_from_slice(&narrow(key.len()).to_le_bytes());
    cells.extend_from_slice(&narrow(payload.len()).to_le_bytes());
    cells.extend_from_slice(key);
    cells.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_balanced_and_leave_no_empty_half() {
        assert_eq!(balanced_cut(&[10, 10, 10, 10], None), 2);
        assert_eq!(balanced_cut(&[100, 10, 10], None), 1);
        assert_eq!(balanced_cut(&[10, 10, 100], Some((3, 100))), 3);
        assert_eq!(balanced_cut(&[10], Some((1, 10))), 1);
        assert_eq!(balanced_cut(&[10], Some((0, 10))), 0);
        assert_eq!(balanced_cut(&[90, 90], Some((1, 5))), 1);
    }
}
