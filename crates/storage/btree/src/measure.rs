//! Estimates of a tree: how many entries lie between two keys, and leaves picked at random.
//!
//! [`Tree::measure`] walks from the root to both ends of the interval. At each level it notes which
//! slot it took, of how many. Where the two ways part, whole children lie between them. They are
//! taken to have as many children as the fuller of the pages at the ends. A few leaves between are
//! counted, so a small interval is exact, and the others are taken for as full. The ways are
//! walked one after the other: a split in between may shift the result by a page.
//!
//! Cost: two descents, and at most `COUNTED_LEAVES_MAX` more.

use format::page_bytes::PageBytes;
use format::slotted::TreePage;
use format::{PageId, PageNo};
use store::{Outcome, Suspend};

use crate::Tree;
use crate::descend::{LEVEL_COUNT_MAX, LeafRead, Miss, Target};
use crate::error::damaged;
use crate::pages::Pages;
use crate::scan::{From, Run, push};

/// Leaves between the ends that are counted one by one. InnoDB looks at ten pages a level.
const COUNTED_LEAVES_MAX: usize = 8;

/// Ways that are walked before it is left to a later turn: writers change the pages meanwhile.
const ATTEMPT_COUNT_MAX: usize = 8;

/// How large a part of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measure {
    /// Entries, roughly; those that are marked as deleted included.
    pub entries: u64,
    /// Leaves that they stand in, roughly.
    pub leaves: u64,
}

/// A page on the way to a leaf, and the slot that was taken.
#[derive(Debug, Clone, Copy)]
struct Step {
    page: PageNo,
    /// Of an inner page the child's; of the leaf that of the first key that is not below.
    slot: usize,
    count: usize,
    child: Option<PageNo>,
}

impl Step {
    /// The slot of `target` in a page; `None` if the bytes make no sense.
    fn of<P: PageBytes + ?Sized>(page: TreePage<'_, P>, target: Target<'_>) -> Option<Self> {
        let (number, count) = (page.number()?, page.slot_count()?);
        let is_leaf = page.level()? == 0;
        let (slot, child) = if is_leaf {
            let slot = match target {
                Target::At(key) => page.search(key)?.slot,
                _ => count,
            };
            (slot, None)
        } else {
            let slot = target.child_slot(page)?;
            (slot, Some(PageNo(page.child(slot)?)))
        };
        Some(Self {
            page: number,
            slot,
            count,
            child,
        })
    }
}

impl Tree {
    /// How many entries have keys that are not below `lower`, and are below `upper` if that is
    /// given.
    pub fn measure(&self, pages: &Pages, lower: &[u8], upper: Option<&[u8]>) -> Outcome<Measure> {
        if upper.is_some_and(|upper| upper <= lower) {
            return Ok(Measure::default());
        }
        let end = upper.map_or(Target::Last, Target::At);
        for _ in 0..ATTEMPT_COUNT_MAX {
            let first = self.way(pages, Target::At(lower))?;
            let last = self.way(pages, end)?;
            // Else the tree has grown by a level between the two.
            if first.len() == last.len() {
                return self.between(pages, lower, (&first, &last));
            }
        }
        Err(Suspend::turn().into())
    }

    /// What lies between two ways of one length.
    fn between(
        &self,
        pages: &Pages,
        lower: &[u8],
        (first, last): (&[Step], &[Step]),
    ) -> Outcome<Measure> {
        // Pages of the level at hand that lie between the two ways; none while they are one.
        let mut whole = None;
        for (from, to) in first.iter().zip(last) {
            let is_leaf = from.child.is_none();
            whole = match whole {
                None if is_leaf => {
                    let entries = stdx::to_u64(to.slot.saturating_sub(from.slot));
                    return Ok(Measure { entries, leaves: 1 });
                }
                None if from.slot == to.slot => None,
                None => Some(stdx::to_u64(to.slot.saturating_sub(from.slot + 1))),
                Some(whole) if is_leaf => {
                    let ends = from.count.saturating_sub(from.slot) + to.slot;
                    let average = self.leaf_average(pages, lower, (*from, *to), whole)?;
                    let entries = average.saturating_add(stdx::to_u64(ends));
                    let leaves = whole.saturating_add(2);
                    return Ok(Measure { entries, leaves });
                }
                Some(whole) => {
                    let ends = stdx::to_u64(from.count.saturating_sub(from.slot + 1) + to.slot);
                    // The last page of a tree that grows at its end is nearly empty.
                    let average = stdx::to_u64(from.count.max(to.count));
                    Some(whole.saturating_mul(average).saturating_add(ends))
                }
            };
        }
        Err(damaged(self.root_id(), "the way to a leaf is empty"))
    }

    /// Entries of `whole` leaves between two, from those that follow the first.
    fn leaf_average(
        &self,
        pages: &Pages,
        lower: &[u8],
        (from, to): (Step, Step),
        whole: u64,
    ) -> Outcome<u64> {
        if whole == 0 {
            return Ok(0);
        }
        let mut leaf = LeafSize::default();
        let mut key = lower.to_vec();
        let (mut leaves, mut entries) = (0_u64, 0_u64);
        self.read(pages, Target::At(&key), &mut leaf)?;
        for _ in 0..COUNTED_LEAVES_MAX {
            if !leaf.has_next {
                break;
            }
            std::mem::swap(&mut key, &mut leaf.upper);
            self.read(pages, Target::At(&key), &mut leaf)?;
            if leaf.number == Some(to.page) {
                // All that lie between were counted.
                return Ok(entries);
            }
            leaves += 1;
            entries += stdx::to_u64(leaf.count);
        }
        let (entries, leaves) = match leaves {
            0 => (stdx::to_u64(from.count + to.count), 2),
            _ => (entries, leaves),
        };
        Ok(entries.saturating_mul(whole) / leaves)
    }

    /// The way to the leaf that `target` leads to.
    fn way(&self, pages: &Pages, target: Target<'_>) -> Outcome<Vec<Step>> {
        for _ in 0..ATTEMPT_COUNT_MAX {
            match self.try_way(pages, target) {
                Ok(way) => return Ok(way),
                Err(Miss::Changed) => self.check_root(pages)?,
                Err(Miss::Interrupt(interrupt)) => return Err(interrupt),
            }
        }
        Err(Suspend::turn().into())
    }

    fn try_way(&self, pages: &Pages, target: Target<'_>) -> Result<Vec<Step>, Miss> {
        let mut way = Vec::new();
        let mut node = pages.optimistic(self.root_id())?;
        for _ in 0..LEVEL_COUNT_MAX {
            let view = TreePage::new(&node).filter(|it| it.index_id() == Some(self.index.0));
            let step = view.and_then(|view| Step::of(view, target));
            let step = step.ok_or(Miss::Changed)?;
            if !node.is_valid() {
                return Err(Miss::Changed);
            }
            way.push(step);
            let Some(child) = step.child else {
                return Ok(way);
            };
            let next: PageId = self.page_id(child);
            node = pages.optimistic(next)?;
        }
        Err(Miss::Changed)
    }

    /// Copies all entries of a leaf that `seed` picks: each child of a page is as likely as the
    /// others. What does not succeed leaves the run empty.
    pub fn sample_leaf(&self, pages: &Pages, seed: u64, run: &mut Run) -> Outcome<()> {
        run.clear();
        self.read(pages, Target::Any(seed), &mut WholeLeaf { run })
    }
}

/// Reads how many entries a leaf has, and where the next one begins.
#[derive(Debug, Default)]
struct LeafSize {
    number: Option<PageNo>,
    count: usize,
    has_next: bool,
    upper: Vec<u8>,
}

impl LeafRead for LeafSize {
    type Answer = ();

    fn forget(&mut self) {
        self.upper.clear();
    }

    fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<()> {
        self.number = Some(leaf.number()?);
        self.count = leaf.slot_count()?;
        self.has_next = leaf.append_upper(&mut self.upper)?;
        Some(())
    }
}

struct WholeLeaf<'r> {
    run: &'r mut Run,
}

impl LeafRead for WholeLeaf<'_> {
    type Answer = ();

    fn forget(&mut self) {
        self.run.clear();
    }

    fn read<P: PageBytes + ?Sized>(&mut self, leaf: TreePage<'_, P>) -> Option<()> {
        for slot in 0..leaf.slot_count()? {
            push(self.run, leaf, slot)?;
        }
        self.run.next.from = From::Nothing;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use format::{IndexId, SpaceId};
    use sim::{World, WorldOptions};
    use store::Interrupt;

    use super::*;
    use crate::change::Edit;
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

    fn key(number: u32) -> [u8; 4] {
        number.to_be_bytes()
    }

    /// A tree of the even numbers below twice `count`.
    fn tree_of(world: &World, count: u32) -> (Rc<Pages>, Tree) {
        let opening = world.clone();
        let pages = world.run(async move { opening.open_pages(SPACE).await });
        let pages: Rc<Pages> = pages.unwrap_or_else(|error| panic!("the pool opens: {error}"));
        until_done(world, || space::create(&pages, SPACE));
        let tree = until_done(world, || Tree::create(&pages, SPACE, IndexId(9)));
        for number in 0..count {
            until_done(world, || {
                tree.modify(&pages, &key(number * 2), |_| Ok(Edit::Put(vec![7; 100])))
            });
        }
        (pages, tree)
    }

    #[test]
    fn small_intervals_are_exact_and_large_ones_near() {
        const COUNT: u32 = 40_000;
        let world = World::new(1, WorldOptions::default());
        let (pages, tree) = tree_of(&world, COUNT);
        let entries = |from: u32, to: Option<u32>| {
            let to = to.map(key);
            let upper = to.as_ref().map(<[u8; 4]>::as_slice);
            until_done(&world, || tree.measure(&pages, &key(from), upper)).entries
        };
        for (from, to) in [
            (0, 0),
            (0, 1),
            (1, 2),
            (1, 3),
            (10, 20),
            (7001, 7800),
            (79_990, 79_998),
        ] {
            let exact = u64::from(u32::div_ceil(to, 2) - u32::div_ceil(from, 2));
            assert_eq!(entries(from, Some(to)), exact, "{from}..{to}");
        }
        assert_eq!(entries(50, Some(40)), 0, "the ends are in the wrong order");
        assert_eq!(entries(2 * COUNT, None), 0, "behind all");
        assert_eq!(entries(2 * COUNT - 4, None), 2);
        for (from, to) in [(0, 80_000), (20_000, 60_000), (100, 30_000)] {
            let exact = u64::from((to - from) / 2);
            let found = entries(from, Some(to));
            let is_near = exact.abs_diff(found) * 5 < exact;
            assert!(is_near, "{from}..{to}: {found} of {exact}");
        }
        let all = until_done(&world, || tree.measure(&pages, b"", None));
        assert!(all.entries.abs_diff(u64::from(COUNT)) * 5 < u64::from(COUNT));
        assert!(500 < all.leaves && all.leaves < 2000, "{all:?}");
    }

    #[test]
    fn picked_leaves_are_whole_and_of_all_parts() {
        let world = World::new(2, WorldOptions::default());
        let (pages, tree) = tree_of(&world, 5_000);
        let mut run = Run::new();
        let (mut low, mut high) = (false, false);
        for seed in 0..64 {
            until_done(&world, || tree.sample_leaf(&pages, seed, &mut run));
            assert!(!run.is_empty());
            let first = run.entry(0).0.to_vec();
            let last = run.entry(run.len() - 1).0.to_vec();
            let upper = [&last[..], &[0]].concat();
            let measured = until_done(&world, || tree.measure(&pages, &first, Some(&upper)));
            assert_eq!(measured.entries, stdx::to_u64(run.len()));
            low |= first.as_slice() < key(2_000).as_slice();
            high |= key(8_000).as_slice() < first.as_slice();
        }
        assert!(low && high);
    }
}
