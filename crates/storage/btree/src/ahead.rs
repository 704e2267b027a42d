//! Which leaves a scan will come to: for reading them before it does.

use format::PageNo;
use format::page_bytes::PageBytes;
use format::slotted::TreePage;

use crate::Tree;
use crate::descend::Target;
use crate::pages::Pages;
use crate::scan::{From, Place};

impl Tree {
    /// The leaves after the one at `place`, in the order of the scan, as far as their parent names
    /// them: at most `count`, and none beyond `end`. Forward `end` is above all wanted keys,
    /// backward it is the lowest one. It is a hint, so it waits for nothing: while the parent is
    /// not in memory or changes, there are none.
    pub fn leaves_after(
        &self,
        pages: &Pages,
        place: &Place,
        end: Option<&[u8]>,
        count: usize,
    ) -> Vec<PageNo> {
        let target = match place.from {
            From::AtLeast | From::Above | From::AtMost => Target::At(&place.key),
            From::Below => Target::Below(&place.key),
            From::Last => Target::Last,
            From::Nothing => return Vec::new(),
        };
        let Ok(parent) = self.descend_optimistic(pages, target, 1) else {
            return Vec::new();
        };
        let is_forward = matches!(place.from, From::AtLeast | From::Above);
        let named = |view: TreePage<'_, _>| {
            let is_parent = view.index_id()? == self.index.0 && view.level()? == 1;
            let slot = target.child_slot(view).filter(|_| is_parent)?;
            match is_forward {
                true => children(view, slot + 1..=last_slot(view, end)?, count),
                false => {
                    let slots = first_slot(view, end)?..=slot.checked_sub(1)?;
                    let skipped = (slots.end() + 1).saturating_sub(slots.start() + count);
                    let mut found = children(view, slots.start() + skipped..=*slots.end(), count)?;
                    found.reverse();
                    Some(found)
                }
            }
        };
        let found = TreePage::new(&parent).and_then(named);
        let found = found.filter(|_| parent.is_valid()).unwrap_or_default();
        assert!(found.len() <= count, "no more than was asked for");
        found
    }
}

/// The children in slots, at most `count`.
fn children<P: PageBytes + ?Sized>(
    page: TreePage<'_, P>,
    slots: std::ops::RangeInclusive<usize>,
    count: usize,
) -> Option<Vec<PageNo>> {
    slots
        .take(count)
        .map(|slot| page.child(slot).map(PageNo))
        .collect()
}

/// The slot of the child with the last wanted key.
fn last_slot<P: PageBytes + ?Sized>(page: TreePage<'_, P>, end: Option<&[u8]>) -> Option<usize> {
    match end {
        Some(end) if page.covers(end)? => page.search_child(end),
        _ => page.slot_count()?.checked_sub(1),
    }
}

/// The slot of the child with the lowest wanted key.
fn first_slot<P: PageBytes + ?Sized>(page: TreePage<'_, P>, end: Option<&[u8]>) -> Option<usize> {
    match end {
        Some(end) if page.covers(end)? => page.search_child(end),
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use format::{IndexId, SpaceId};
    use sim::{World, WorldOptions};
    use store::{Interrupt, Outcome};

    use super::*;
    use crate::change::Edit;
    use crate::scan::Run;
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

    /// The leaves in the order of a scan, and the first or last key of each.
    fn leaves(world: &World, pages: &Pages, tree: Tree, from: Place) -> Vec<(PageNo, Vec<u8>)> {
        let (mut run, mut place, mut found) = (Run::new(), from, Vec::new());
        while place.from != From::Nothing {
            until_done(world, || tree.read_run(pages, &place, 1000, &mut run));
            let leaf = run.leaf().expect("a run is of a leaf").page();
            found.push((leaf, run.entry(0).0.to_vec()));
            place = run.next.clone();
        }
        found
    }

    #[test]
    fn the_leaves_of_a_scan_are_known_before_it_comes_to_them() {
        let world = World::new(1, WorldOptions::default());
        let opening = world.clone();
        let pages = world.run(async move { opening.open_pages(SPACE).await });
        let pages: Rc<Pages> = pages.unwrap_or_else(|error| panic!("the pool opens: {error}"));
        until_done(&world, || space::create(&pages, SPACE));
        let tree = until_done(&world, || Tree::create(&pages, SPACE, IndexId(9)));
        let ask =
            |place: &Place, end: Option<&[u8]>, count| tree.leaves_after(&pages, place, end, count);
        assert_eq!(ask(&Place::first(), None, 9), [], "the root is a leaf");
        for number in 0..200_u16 {
            let key = number.to_be_bytes();
            let put = || tree.modify(&pages, &key, |_| Ok(Edit::Put(vec![7; 200])));
            until_done(&world, put);
        }
        let forward = leaves(&world, &pages, tree, Place::first());
        let backward = leaves(&world, &pages, tree, Place::last());
        for (all, start) in [(forward, Place::first()), (backward, Place::last())] {
            assert!(8 < all.len(), "{} leaves", all.len());
            let after = |first: usize| all[first..].iter().map(|(page, _)| *page);
            let none: Vec<PageNo> = Vec::new();
            assert_eq!(ask(&start, None, 0), none);
            assert_eq!(ask(&start, None, 3), after(1).take(3).collect::<Vec<_>>());
            assert_eq!(ask(&start, None, 99), after(1).collect::<Vec<_>>());
            // From the middle, and up to a key of the fifth leaf.
            let from = match start.from {
                From::Last => From::AtMost,
                _ => From::AtLeast,
            };
            let place = Place::new(from, &all[2].1);
            assert_eq!(ask(&place, None, 2), after(3).take(2).collect::<Vec<_>>());
            let ended = ask(&place, Some(&all[4].1), 99);
            assert_eq!(ended, after(3).take(2).collect::<Vec<_>>());
            let last = Place::new(from, &all[all.len() - 1].1);
            assert_eq!(ask(&last, None, 9), none);
        }
        let nothing = Place::new(From::Nothing, b"");
        assert_eq!(ask(&nothing, None, 9), []);
    }
}
