//! Changing entries: only the leaf is latched exclusively, not its parents.

use format::PageId;
use format::page_bytes::PageBytes;
use format::page_op::PageOp;
use format::slotted::{Splice, TreePage};
use store::Outcome;

use crate::Tree;
use crate::descend::{Miss, Target};
use crate::error::damaged;
use crate::pages::{Change, Latched, Pages, apply, narrow};
use crate::split::{Wanted, has_room, slot_count};

/// A key's place in a latched leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The leaf.
    pub leaf: Latched,
    /// The first slot whose key is not below the wanted key.
    pub slot: usize,
    /// Whether that slot has the key.
    pub is_match: bool,
}

impl Spot {
    /// The slot's number, as operations take it.
    pub fn slot_number(&self) -> u16 {
        narrow(self.slot)
    }
}

/// What [`Tree::modify`] does with an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Nothing.
    Keep,
    /// Put this payload, whether the key is there or not.
    Put(Vec<u8>),
    /// Remove the entry.
    Remove,
}

impl Tree {
    /// Latches the leaf that covers `key` and finds its place. Returns `None` if the leaf has moved
    /// meanwhile: the caller drops the change and begins again with a new one.
    pub fn latch(
        &self,
        pages: &Pages,
        change: &mut Change<'_>,
        key: &[u8],
    ) -> Outcome<Option<Spot>> {
        let id = self.find_leaf(pages, key)?;
        assert_eq!(id.space, self.space, "a tree's pages are in one tablespace");
        let leaf = change.latch(id)?;
        let Some(view) = self.leaf_of(change.bytes(leaf), key) else {
            pages.set_finger(None);
            if id == self.root_id() {
                self.check_root_page(change.bytes(leaf))?;
            } else {
                self.check_root(pages)?;
                self.check_child(pages, key, id)?;
            }
            return Ok(None);
        };
        let position = view.search(key);
        let position = position.ok_or_else(|| damaged(id, "a cell leaves the page"))?;
        assert!(
            Some(position.slot) <= view.slot_count(),
            "a spot is in its leaf"
        );
        Ok(Some(Spot {
            leaf,
            slot: position.slot,
            is_match: position.is_match,
        }))
    }

    /// The leaf that covers `key`. It is not latched any more, so the caller checks it again under
    /// its latch.
    fn find_leaf(&self, pages: &Pages, key: &[u8]) -> Outcome<PageId> {
        if let Some(page) = pages.finger() {
            let leaf = self.leaf_of(&page, key);
            if leaf.is_some() && page.is_valid() {
                return Ok(page.id());
            }
        }
        let id = match self.descend_optimistic(pages, Target::At(key), 0) {
            Ok(leaf) => leaf.id(),
            Err(Miss::Changed) => self.locate(pages, key, 0)?.0,
            Err(Miss::Interrupt(interrupt)) => return Err(interrupt),
        };
        pages.set_finger(Some(id));
        Ok(id)
    }

    /// Reads an entry with its leaf latched shared. So the entry and its locks do not change while
    /// `look` reads them.
    pub fn read_latched<T>(
        &self,
        pages: &Pages,
        key: &[u8],
        mut look: impl FnMut(Option<&[u8]>) -> Outcome<T>,
    ) -> Outcome<T> {
        loop {
            let id = self.find_leaf(pages, key)?;
            let page = pages.shared(id)?;
            let Some(view) = self.leaf_of(page.bytes(), key) else {
                pages.set_finger(None);
                self.check_root(pages)?;
                self.check_child(pages, key, id)?;
                continue;
            };
            let damage = || damaged(id, "a cell leaves the page");
            let position = view.search(key).ok_or_else(damage)?;
            if !position.is_match {
                return look(None);
            }
            let extent = view.payload(position.slot).ok_or_else(damage)?;
            let payload = page
                .bytes()
                .get(extent.offset..extent.offset + extent.length);
            return look(Some(payload.ok_or_else(damage)?));
        }
    }

    /// The page as this tree's leaf for the key, or `None` if it is another page.
    fn leaf_of<'a, P: PageBytes + ?Sized>(
        &self,
        page: &'a P,
        key: &[u8],
    ) -> Option<TreePage<'a, P>> {
        TreePage::new(page).filter(|view| {
            view.index_id() == Some(self.index.0)
                && view.level() == Some(0)
                && view.covers(key) == Some(true)
        })
    }

    /// Decides about an entry under the leaf's latch and changes it. `decide` gets the present
    /// payload. It may be called several times; its last answer counts. Returns true if something
    /// was changed.
    pub fn modify(
        &self,
        pages: &Pages,
        key: &[u8],
        decide: impl FnMut(Option<&[u8]>) -> Outcome<Edit>,
    ) -> Outcome<bool> {
        self.modify_and(pages, key, decide, |_, _| Ok(()))
    }

    /// As [`modify`](Self::modify). An entry that is removed goes through `before_removal` first,
    /// with its leaf latched.
    pub fn modify_and(
        &self,
        pages: &Pages,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Outcome<Edit>,
        mut before_removal: impl FnMut(&Change<'_>, Spot) -> Outcome<()>,
    ) -> Outcome<bool> {
        let mut old = Vec::new();
        loop {
            let mut change = pages.change()?;
            let Some(spot) = self.latch(pages, &mut change, key)? else {
                continue;
            };
            if spot.is_match {
                payload(&change, spot, &mut old)?;
            }
            let edit = decide(spot.is_match.then_some(old.as_slice()))?;
            let new = match edit {
                Edit::Keep => return Ok(false),
                Edit::Remove if !spot.is_match => return Ok(false),
                Edit::Remove => {
                    before_removal(&change, spot)?;
                    let op = PageOp::TreeRemove {
                        slot: spot.slot_number(),
                    };
                    apply(&mut change, spot.leaf, &op)?;
                    change.commit();
                    return Ok(true);
                }
                Edit::Put(new) => new,
            };
            let wanted = if spot.is_match {
                let payload_bytes = new.len().saturating_sub(old.len());
                Wanted {
                    key,
                    payload_bytes,
                    is_new: false,
                }
            } else {
                Wanted {
                    key,
                    payload_bytes: new.len(),
                    is_new: true,
                }
            };
            if !fits(change.bytes(spot.leaf), wanted) {
                drop(change);
                self.make_room(pages, wanted)?;
                continue;
            }
            let before = slot_count(&change, spot.leaf);
            put(&mut change, spot, key, (&old, &new))?;
            let after = slot_count(&change, spot.leaf);
            assert_eq!(after, before + usize::from(!spot.is_match));
            change.commit();
            return Ok(true);
        }
    }
}

/// Whether a leaf has room for what is wanted. If not, [`Tree::make_room`] makes it.
pub fn fits(leaf: &[u8], wanted: Wanted<'_>) -> bool {
    if wanted.is_new {
        return has_room(leaf, wanted.key.len(), wanted.payload_bytes);
    }
    let prefix_length = TreePage::new(leaf)
        .and_then(TreePage::prefix_length)
        .unwrap_or(0);
    wanted.payload_bytes == 0 || has_room(leaf, prefix_length, wanted.payload_bytes)
}

fn put(change: &mut Change<'_>, spot: Spot, key: &[u8], (old, new): (&[u8], &[u8])) -> Outcome<()> {
    let slot = spot.slot_number();
    if spot.is_match {
        let splice = Splice {
            offset: 0,
            removed: old.len(),
            inserted: new,
        };
        apply(
            change,
            spot.leaf,
            &PageOp::TreeSplice {
                slot,
                change: splice,
            },
        )
    } else {
        apply(
            change,
            spot.leaf,
            &PageOp::TreeInsert {
                slot,
                key,
                payload: new,
            },
        )
    }
}

/// Copies the payload at a spot with a match to `out`, which is cleared first.
pub fn payload(change: &Change<'_>, spot: Spot, out: &mut Vec<u8>) -> Outcome<()> {
    assert!(spot.is_match, "there is an entry at the spot");
    out.clear();
    read_slot(change.bytes(spot.leaf), spot.slot, out)
        .ok_or_else(|| damaged(change.id(spot.leaf), "a cell leaves the page"))
}

fn read_slot<P: PageBytes + ?Sized>(page: &P, slot: usize, out: &mut Vec<u8>) -> Option<()> {
    TreePage::new(page)?.append_payload(slot, out)
}
