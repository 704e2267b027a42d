//! Reading runs of entries in order, a leaf at a time.
//!
//! A run is copied out, so nothing is held between two calls. It ends at the leaf's fence or at the
//! wanted number of entries. [`Run::next`] says where the following run begins. Splits and merges
//! in between move no key across that place.

use format::PageNo;
use format::page_bytes::PageBytes;
use format::slotted::TreePage;
use store::Outcome;

use crate::Tree;
use crate::descend::{LEVEL_COUNT_MAX, LeafRead, Target};
use crate::error::damaged;
use crate::pages::Pages;
use crate::stamp::LeafStamp;

/// Where a run begins. The key is in a buffer of its own, [`Place::key`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum From {
    /// Forward: at the first key that is not below the place's.
    #[default]
    AtLeast,
    /// Forward: at the first key above the place's.
    Above,
    /// Backward: at the last key that is not above the place's.
    AtMost,
    /// Backward: at the last key below the place's.
    Below,
    /// Backward: at the last key.
    Last,
    /// Nothing is left.
    Nothing,
}

/// A place between two keys, and a direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// How the key limits the scan.
    pub from: From,
    /// The key; empty if `from` needs none.
    pub key: Vec<u8>,
}

impl Place {
    /// Before all keys, forward.
    pub fn first() -> Self {
        Self::default()
    }

    /// After all keys, backward.
    pub fn last() -> Self {
        Self {
            from: From::Last,
            key: Vec::new(),
        }
    }

    /// At a key.
    pub fn new(from: From, key: &[u8]) -> Self {
        Self {
            from,
            key: key.to_vec(),
        }
    }
}

/// Entries copied out of a leaf, in the order of the scan. Reused from call to call.
#[derive(Debug, Default)]
pub struct Run {
    /// Keys and payloads, one after the other.
    bytes: Vec<u8>,
    /// For each entry where its key and its payload end.
    ends: Vec<(usize, usize)>,
    /// The leaf that it was read from; `None` before the first read.
    leaf: Option<LeafStamp>,
    /// Where the scan continues.
    pub next: Place,
}

impl Run {
    /// An empty run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Entries in the run.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there is no entry. More may follow nevertheless.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key and payload of an entry.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn entry(&self, index: usize) -> (&[u8], &[u8]) {
        let start = if index == 0 {
            0
        } else {
            self.ends[index - 1].1
        };
        let (key_end, end) = self.ends[index];
        (&self.bytes[start..key_end], &self.bytes[key_end..end])
    }

    /// The leaf that it was read from; `None` before the first read.
    pub fn leaf(&self) -> Option<LeafStamp> {
        self.leaf
    }

    /// Drops the entries.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.leaf = None;
    }
}

impl Tree {
    /// Copies the payload of `key` to `out`, which is cleared first. Returns false if there is no
    /// such key.
    pub fn get(&self, pages: &Pages, key: &[u8], out: &mut Vec<u8>) -> Outcome<bool> {
        self.read(pages, Target::At(key), &mut Get { key, out })
    }

    /// Reads the run at `from`, up to `limit` entries. An empty run is not the end: look at
    /// [`Run::next`]. A read that fails leaves the run empty.
    pub fn read_run(
        &self,
        pages: &Pages,
        from: &Place,
        limit: usize,
        run: &mut Run,
    ) -> Outcome<()> {
        assert!(0 < limit, "a scan of nothing would come back for ever");
        run.clear();
        let key = from.key.as_slice();
        match from.from {
            From::AtLeast | From::Above => {
                let mut reader = Forward {
                    key,
                    above: from.from == From::Above,
                    limit,
                    run,
                };
                self.read(pages, Target::At(key), &mut reader)
            }
            From::AtMost => self.read(
                pages,
                Target::At(key),
                &mut Backward {
                    place: from,
                    limit,
                    run,
                },
            ),
            From::Below if !key.is_empty() => self.read(
                pages,
                Target::Below(key),
                &mut Backward {
                    place: from,
                    limit,
                    run,
                },
            ),
            From::Last => self.read(
                pages,
                Target::Last,
                &mut Backward {
                    place: from,
                    limit,
                    run,
                },
            ),
            From::Below | From::Nothing => {
                run.next.from = From::Nothing;
                Ok(())
            }
        }
    }
}

impl Tree {
    /// True if the leaf that `run` was copied from has not changed since, so the run is still
    /// current. Also false if the leaf is not in memory any more.
    pub fn is_current(&self, pages: &Pages, run: &Run) -> bool {
        run.leaf.is_some_and(|leaf| self.is_unchanged(pages, leaf))
    }

    /// The number of children of the first page of each level; the entries of the first leaf come
    /// last. Used for estimates.
    pub fn fanouts(&self, pages: &Pages) -> Outcome<Vec<u64>> {
        let mut fanouts = Vec::new();
        let mut id = self.root_id();
        for _ in 0..LEVEL_COUNT_MAX {
            let page = pages.shared(id)?;
            let read = TreePage::new(page.bytes()).and_then(|view| {
                let child = if view.level()? == 0 {
                    None
                } else {
                    Some(view.child(0)?)
                };
                Some((u64::try_from(view.slot_count()?).ok()?, child))
            });
            let (count, child) = read.ok_or_else(|| damaged(id, "no tree page"))?;
            fanouts.push(count);
            match child {
                Some(child) => id = self.page_id(PageNo(child)),
                None => return Ok(fanouts),
            }
        }
        Err(damaged(self.root_id(), "the way to a leaf is a circle"))
    }
}

struct Get<'a> {
    key: &'a [u8],
    out: &'a mut Vec<u8>,
}

impl LeafRead for Get<'_> {
    type Answer = bool;

    fn forget(&mut self) {
        self.out.clear();
    }

    fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<bool> {
        let position = leaf.search(self.key)?;
        if position.is_match {
            leaf.append_payload(position.slot, self.out)?;
        } else {
            check_place(leaf, Target::At(self.key), position.slot)?;
        }
        Some(position.is_match)
    }
}

struct Forward<'a> {
    key: &'a [u8],
    above: bool,
    limit: usize,
    run: &'a mut Run,
}

impl LeafRead for Forward<'_> {
    type Answer = ();

    fn forget(&mut self) {
        self.run.clear();
    }

    fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<()> {
        self.run.leaf = Some(LeafStamp::of(leaf)?);
        let position = leaf.search(self.key)?;
        if !position.is_match {
            check_place(leaf, Target::At(self.key), position.slot)?;
        }
        let first = position.slot + usize::from(self.above && position.is_match);
        let count = leaf.slot_count()?;
        let end = count.min(first.saturating_add(self.limit));
        for slot in first..end {
            push(self.run, leaf, slot)?;
        }
        let next = &mut self.run.next;
        next.key.clear();
        if end < count {
            next.from = From::Above;
            leaf.append_key(end.checked_sub(1)?, &mut next.key)?;
            let is_further =
                self.key < next.key.as_slice() || (self.key == next.key && !self.above);
            return is_further.then_some(());
        }
        if !leaf.append_upper(&mut next.key)? {
            next.from = From::Nothing;
            return Some(());
        }
        next.from = From::AtLeast;
        // In a damaged page the fence may lie behind the scan, which would then loop for ever.
        (self.key < next.key.as_slice()).then_some(())
    }
}

struct Backward<'a> {
    place: &'a Place,
    limit: usize,
    run: &'a mut Run,
}

impl LeafRead for Backward<'_> {
    type Answer = ();

    fn forget(&mut self) {
        self.run.clear();
    }

    fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<()> {
        self.run.leaf = Some(LeafStamp::of(leaf)?);
        let end = match self.place.from {
            From::Last => {
                let end = leaf.slot_count()?;
                check_place(leaf, Target::Last, end)?;
                end
            }
            from => {
                let key = self.place.key.as_slice();
                let (position, is_at) = (leaf.search(key)?, from == From::AtMost);
                if !position.is_match {
                    let target = if is_at {
                        Target::At(key)
                    } else {
                        Target::Below(key)
                    };
                    check_place(leaf, target, position.slot)?;
                }
                position.slot + usize::from(position.is_match && is_at)
            }
        };
        let first = end.saturating_sub(self.limit);
        for slot in (first..end).rev() {
            push(self.run, leaf, slot)?;
        }
        let next = &mut self.run.next;
        next.key.clear();
        if 0 < first {
            leaf.append_key(first, &mut next.key)?;
        } else {
            leaf.append_lower(&mut next.key)?;
        }
        if next.key.is_empty() {
            next.from = From::Nothing;
            return Some(());
        }
        next.from = From::Below;
        // As in `Forward`: a damaged page could lead back.
        let is_further = match self.place.from {
            From::Last => true,
            From::AtMost => next.key <= self.place.key,
            _ => next.key < self.place.key,
        };
        is_further.then_some(())
    }
}

/// Returns `None` if `target`, which would stand at `slot`, is outside of the leaf's fences.
/// Between two entries it is inside.
fn check_place<P: PageBytes + ?Sized>(
    leaf: TreePage<'_, P>,
    target: Target<'_>,
    slot: usize,
) -> Option<()> {
    let is_between = 0 < slot && slot < leaf.slot_count()?;
    (is_between || target.is_in(leaf)?).then_some(())
}

/// Room for a key beside its payload. A longer one makes the buffer grow.
const KEY_BYTES_USUAL: usize = 32;

/// Copies an entry to the end of a run.
pub(crate) fn push<P: PageBytes + ?Sized>(
    run: &mut Run,
    leaf: TreePage<'_, P>,
    slot: usize,
) -> Option<()> {
    let payload_bytes = leaf.payload(slot)?.length;
    run.bytes.reserve(KEY_BYTES_USUAL + payload_bytes);
    leaf.append_key(slot, &mut run.bytes)?;
    let key_end = run.bytes.len();
    leaf.append_payload(slot, &mut run.bytes)?;
    run.ends.push((key_end, run.bytes.len()));
    Some(())
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use format::{IndexId, SpaceId};
    use sim::{World, WorldOptions};
    use store::Interrupt;

    use super::*;
    use crate::change::Edit;
    use crate::pages::Change;
    use crate::space;

    const SPACE: SpaceId = SpaceId(3);

    fn until_done<T>(world: &World, mut operation: impl FnMut() -> Outcome<T>) -> T {
        loop {
            match operation() {
                Ok(answer) => return answer,
                Err(Interrupt::Suspend(suspend)) => world.run(suspend),
                Err(Interrupt::Error(error)) => panic!("{error}"),
            }
        }
    }

    /// A leaf that another worker latches as soon as it was copied.
    struct Overtaken<'a> {
        reader: Forward<'a>,
        tree: Tree,
        writer: &'a Pages,
        held: Option<Change<'a>>,
    }

    impl LeafRead for Overtaken<'_> {
        type Answer = ();

        fn forget(&mut self) {
            self.reader.forget();
        }

        fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<()> {
            let answer = self.reader.read(leaf);
            assert!(
                !self.reader.run.is_empty(),
                "the attempt has copied entries"
            );
            let mut change = self.writer.change().ok()?;
            change.latch(self.tree.root_id()).ok()?;
            self.held = Some(change);
            answer
        }
    }

    /// A scan that continues after a suspension takes the contents of its run for read.
    #[test]
    fn a_suspended_read_leaves_nothing_behind() {
        let options = WorldOptions {
            worker_count: 2,
            ..WorldOptions::default()
        };
        let world = World::new(1, options);
        let opening = world.clone();
        let pages = world.run(async move { opening.open_pages(SPACE).await });
        let pages: Rc<Pages> = pages.unwrap_or_else(|error| panic!("the pool opens: {error}"));
        until_done(&world, || space::create(&pages, SPACE));
        let tree = until_done(&world, || Tree::create(&pages, SPACE, IndexId(9)));
        for key in 0u8..40 {
            until_done(&world, || {
                tree.modify(&pages, &[key], |_| Ok(Edit::Put(vec![key])))
            });
        }
        let writer = pages.pool().pages(1, Rc::clone(pages.disk()));
        let mut run = Run::new();
        let mut reader = Overtaken {
            reader: Forward {
                key: b"",
                above: false,
                limit: 64,
                run: &mut run,
            },
            tree,
            writer: &writer,
            held: None,
        };
        let outcome = tree.read(&pages, Target::At(b""), &mut reader);
        assert!(
            matches!(outcome, Err(Interrupt::Suspend(_))),
            "the leaf is busy"
        );
        drop(outcome);
        assert!(reader.held.take().is_some());
        drop(reader);
        assert!(run.is_empty());
        until_done(&world, || {
            tree.read_run(&pages, &Place::first(), 64, &mut run)
        });
        assert_eq!(run.len(), 40);
    }
}
