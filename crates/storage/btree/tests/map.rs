//! The tree against a `BTreeMap`, over a pool so small that operations are suspended all the time.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use std::rc::Rc;

use btree::change::Edit;
use btree::check::Check;
use btree::mend::Mend;
use btree::space::{self, Release, Reservation};
use btree::{From, Pages, Place, Run, Tree};
use format::page_op::PageOp;
use format::slotted::{TreePage, TreePageShape};
use format::{IndexId, PageId, PageNo, PageSize, PageType, SpaceId};
use proptest::prelude::*;
use sim::{World, WorldOptions};
use store::{Interrupt, Outcome, StoreError};

struct Pair {
    world: World,
    pages: Rc<Pages>,
    tree: Tree,
    twin: BTreeMap<Vec<u8>, Vec<u8>>,
}

const SPACE: SpaceId = SpaceId(3);

/// The result of a check of a tree.
#[derive(Default)]
struct Report {
    pages: Vec<PageNo>,
    entry_count: usize,
    faults: Vec<String>,
    unreadable: Vec<StoreError>,
}

/// Calls an operation until it is done, running the world while it waits.
fn until_done<T>(world: &World, operation: impl FnMut() -> Outcome<T>) -> T {
    try_until_done(world, operation).unwrap_or_else(|error| panic!("{error}"))
}

/// As `until_done`, for operations that may fail.
fn try_until_done<T>(
    world: &World,
    mut operation: impl FnMut() -> Outcome<T>,
) -> Result<T, StoreError> {
    loop {
        match operation() {
            Ok(answer) => return Ok(answer),
            Err(Interrupt::Suspend(suspend)) => world.run(suspend),
            Err(Interrupt::Error(error)) => return Err(error),
        }
    }
}

impl Pair {
    fn new(frame_count: u32) -> Self {
        let world = World::new(
            7,
            WorldOptions {
                page_size: PageSize::KiB4,
                frame_count,
                ..WorldOptions::default()
            },
        );
        let opening = world.clone();
        let pages = world.run(async move { opening.open_pages(SPACE).await });
        let pages = pages.unwrap_or_else(|error| panic!("the pool opens: {error}"));
        until_done(&world, || space::create(&pages, SPACE));
        let tree = until_done(&world, || Tree::create(&pages, SPACE, IndexId(9)));
        Self {
            world,
            pages,
            tree,
            twin: BTreeMap::new(),
        }
    }

    fn check(&self) -> Report {
        let (mut check, mut entries) = (Check::new(self.tree), Run::new());
        let mut report = Report::default();
        while let Some(looked) = until_done(&self.world, || check.step(&self.pages, &mut entries)) {
            report.pages.push(looked.page);
            report.entry_count += entries.len();
            report.faults.extend(looked.faults);
            report.unreadable.extend(looked.unreadable);
        }
        report
    }

    fn put(&mut self, key: Vec<u8>, payload: Vec<u8>) {
        let edit = |_: Option<&[u8]>| Ok(Edit::Put(payload.clone()));
        until_done(&self.world, || self.tree.modify(&self.pages, &key, edit));
        self.twin.insert(key, payload);
    }

    fn remove(&mut self, key: &[u8]) {
        let done = until_done(&self.world, || {
            self.tree.modify(&self.pages, key, |_| Ok(Edit::Remove))
        });
        assert_eq!(done, self.twin.remove(key).is_some());
        until_done(&self.world, || self.tree.shrink(&self.pages, key));
    }

    fn get(&self, key: &[u8]) {
        let mut payload = Vec::new();
        let found = until_done(&self.world, || {
            self.tree.get(&self.pages, key, &mut payload)
        });
        assert_eq!(found.then_some(&payload), self.twin.get(key));
    }

    /// Plain reads of a key that is not in the leaf to which the parent leads.
    fn check_not_found_is_damage(&self, key: &[u8], scans: &[From]) {
        let mut told = Vec::new();
        told.push(try_until_done(&self.world, || {
            self.tree.get(&self.pages, key, &mut Vec::new()).map(drop)
        }));
        for &from in scans {
            let place = Place::new(from, key);
            told.push(try_until_done(&self.world, || {
                let mut run = Run::new();
                self.tree.read_run(&self.pages, &place, 4, &mut run)
            }));
        }
        for told in told {
            let Err(StoreError::Damaged { what, .. }) = told else {
                panic!("{told:?}");
            };
            assert!(what.contains("keys that its parent says"), "{what}");
        }
    }

    fn scan(&self, from: Place, limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut run = Run::new();
        let mut place = from;
        let mut found = Vec::new();
        while place.from != From::Nothing {
            until_done(&self.world, || {
                self.tree.read_run(&self.pages, &place, limit, &mut run)
            });
            found.extend((0..run.len()).map(|index| {
                let (key, payload) = run.entry(index);
                (key.to_vec(), payload.to_vec())
            }));
            place = run.next.clone();
        }
        found
    }

    fn compare(&self, key: &[u8], limit: usize) {
        let owned = |(key, payload): (&Vec<u8>, &Vec<u8>)| (key.clone(), payload.clone());
        let key = key.to_vec();
        let all: Vec<_> = self.twin.iter().map(owned).collect();
        assert_eq!(self.scan(Place::first(), limit), all);
        let backward: Vec<_> = self.twin.iter().rev().map(owned).collect();
        assert_eq!(self.scan(Place::last(), limit), backward);
        let from: Vec<_> = self.twin.range(key.clone()..).map(owned).collect();
        assert_eq!(self.scan(Place::new(From::AtLeast, &key), limit), from);
        let below: Vec<_> = self.twin.range(..key.clone()).rev().map(owned).collect();
        assert_eq!(self.scan(Place::new(From::Below, &key), limit), below);
        let upto: Vec<_> = self.twin.range(..=key.clone()).rev().map(owned).collect();
        assert_eq!(self.scan(Place::new(From::AtMost, &key), limit), upto);
        let report = self.check();
        assert_eq!(report.faults, Vec::<String>::new());
        assert_eq!(report.unreadable, []);
        assert_eq!(report.entry_count, self.twin.len());
        let mut used = until_done(&self.world, || space::used_pages(&self.pages, SPACE));
        let mut expected = report.pages;
        expected.extend([PageNo(0), PageNo(1)]);
        used.sort();
        expected.sort();
        assert_eq!(used, expected, "each page is in the tree or free");
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(Vec<u8>, usize),
    Remove(Vec<u8>),
    Get(Vec<u8>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    let short = (0u16..600).prop_map(|number| format!("table/row/{number:05}").into_bytes());
    let long = (0u8..30).prop_map(|byte| vec![byte; 700]);
    let any = proptest::collection::vec(any::<u8>(), 0..5);
    prop_oneof![20 => short, 1 => long, 3 => any]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (key(), prop_oneof![0usize..90, 900usize..1024]).prop_map(|(k, n)| Step::Put(k, n)),
        3 => key().prop_map(Step::Remove),
        1 => key().prop_map(Step::Get),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn behaves_as_a_sorted_map(
        steps in proptest::collection::vec(step(), 1..300),
        limit in 1usize..70,
        probe in key(),
        frame_count in prop_oneof![Just(32u32), Just(256u32)],
    ) {
        let mut pair = Pair::new(frame_count);
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(key, length) => pair.put(key, vec![number.to_le_bytes()[0]; length]),
                Step::Remove(key) => pair.remove(&key),
                Step::Get(key) => pair.get(&key),
            }
            if number % 97 == 0 {
                pair.compare(&probe, limit);
            }
        }
        pair.compare(&probe, limit);
        let keys: Vec<_> = pair.twin.keys().cloned().collect();
        keys.iter().for_each(|key| pair.remove(key));
        pair.compare(&probe, limit);
    }
}

#[test]
fn ascending_keys_fill_their_pages() {
    let mut pair = Pair::new(128);
    for number in 0u32..4000 {
        pair.put(number.to_be_bytes().to_vec(), vec![7; 30]);
    }
    pair.compare(b"", 64);
    let report = pair.check();
    let bytes = 4000 * (30 + 4 + 6 + 4);
    assert!(
        report.pages.len() < bytes / 4096 * 115 / 100,
        "{} pages",
        report.pages.len()
    );
    until_done(&pair.world, || pair.tree.destroy(&pair.pages));
    assert_eq!(
        until_done(&pair.world, || space::used_pages(&pair.pages, SPACE)).len(),
        2
    );
}

/// Customers with counters of their own, as the order lines of TPC-C: each grows in the middle of
/// the tree.
#[test]
fn keys_that_ascend_in_several_places_fill_their_pages() {
    let keys = (0u32..400).flat_map(|burst| {
        let (customer, first) = (burst % 8, burst / 8 * 10);
        (first..first + 10).map(move |number| (customer, number))
    });
    let fill = fill_percent(keys.collect());
    assert!(70 < fill, "{fill} % of the pages' bytes are used");
}

/// Some keys come in a row, but each row in another place. Their pages are cut in unequal parts,
/// which must not leave them much emptier than those of keys in no order.
#[test]
fn short_rows_of_keys_in_no_order_leave_no_empty_pages() {
    let order = |number: u32| number * 1597 % 4001;
    let scattered = fill_percent((1..4001).map(|number| (order(number), 0)).collect());
    let in_rows = (0u32..400).flat_map(|row| {
        let customer = row * 157 % 401;
        (0..10).map(move |number| (customer, number))
    });
    let in_rows = fill_percent(in_rows.collect());
    assert!(64 < scattered, "{scattered} % of the pages' bytes are used");
    assert!(64 < in_rows, "{in_rows} % of the pages' bytes are used");
}

/// Puts 4,000 keys; returns how much of all pages their entries take.
fn fill_percent(keys: Vec<(u32, u32)>) -> usize {
    let mut pair = Pair::new(128);
    let count = keys.len();
    for (customer, number) in keys {
        let key = [customer.to_be_bytes(), number.to_be_bytes()].concat();
        pair.put(key, vec![7; 30]);
    }
    assert_eq!(count, 4000);
    pair.compare(b"", 64);
    let entry_bytes = 30 + 8 + 4 + 6;
    let pages = pair.check().pages.len();
    100 * count * entry_bytes / (pages * 4096)
}

/// Keys that share nearly all their bytes. A page leaves the shared prefix out, so the whole keys
/// of its cells take many pages. The log of a split or merge must not hold them all.
#[test]
fn pages_of_long_common_keys_are_split_and_joined() {
    let longest = btree::key_bytes_max(4096);
    let key = |number: u32| {
        let mut key = vec![b'k'; longest - 2];
        key.extend(u16::try_from(number).expect("small").to_be_bytes());
        key
    };
    // In no order, so that pages between two fences are filled and emptied.
    let order = |number: u32| number * 797 % 1999;
    let mut pair = Pair::new(128);
    for number in 1..1999 {
        pair.put(key(order(number)), Vec::new());
    }
    pair.compare(&key(1000), 64);
    for number in 1..1999 {
        pair.remove(&key(number));
        if number % 500 == 0 {
            pair.compare(&key(number), 64);
        }
    }
    pair.compare(b"", 64);
}

#[test]
fn a_space_grows_past_its_first_map() {
    let pair = Pair::new(64);
    let per_map = (4096 - 32) * 8;
    let mut taken = Vec::new();
    let take = || {
        let mut change = pair.pages.change()?;
        let types = [PageType::Lob; 8];
        let Some(reservation) = Reservation::make(&mut change, SPACE, &types)? else {
            drop(change);
            space::grow(&pair.pages, SPACE)?;
            return Ok(Vec::new());
        };
        reservation.take(&mut change)?;
        change.commit();
        Ok((0..types.len())
            .map(|index| reservation.page(index).0)
            .collect())
    };
    while taken.len() < per_map + 100 {
        taken.extend(until_done(&pair.world, take));
    }
    let used = until_done(&pair.world, || space::used_pages(&pair.pages, SPACE));
    assert_eq!(used.len(), taken.len() + 4, "header, two maps, the root");
    until_done(&pair.world, || {
        let mut change = pair.pages.change()?;
        let page = change.latch(PageId::new(SPACE, taken[50]))?;
        let release = Release::make(&mut change, page)?;
        release.give_back(&mut change)?;
        change.commit();
        Ok(())
    });
    assert_eq!(until_done(&pair.world, take)[0], taken[50]);
}

/// Purge may wait in the middle of a tree while it is dropped, and find its pages in another tree.
#[test]
fn a_tree_that_is_gone_is_damage_and_no_endless_search() {
    let mut pair = Pair::new(64);
    pair.put(b"key".to_vec(), vec![7; 30]);
    let gone = pair.tree;
    until_done(&pair.world, || gone.destroy(&pair.pages));
    let key = b"key";
    let check = |what: &str| {
        let remove = || gone.modify(&pair.pages, key, |_| Ok(Edit::Remove));
        let read = || gone.read_latched(&pair.pages, key, |_| Ok(true));
        let get = || gone.get(&pair.pages, key, &mut Vec::new());
        for operation in [&remove as &dyn Fn() -> Outcome<bool>, &read, &get] {
            let ended = try_until_done(&pair.world, operation);
            let is_damage = matches!(ended, Err(StoreError::Damaged { .. }));
            assert!(is_damage, "{what}: {ended:?}");
        }
    };
    check("given back");
    let create = || Tree::create(&pair.pages, SPACE, IndexId(10));
    let other = until_done(&pair.world, create);
    assert_eq!(other.root, gone.root, "the lowest free page is taken first");
    check("a leaf of another tree");
    let shrunk = try_until_done(&pair.world, || gone.shrink(&pair.pages, key));
    assert!(shrunk.is_err(), "another's root is left alone");
    for number in 0u32..100 {
        let put = |_: Option<&[u8]>| Ok(Edit::Put(vec![7; 500]));
        until_done(&pair.world, || {
            other.modify(&pair.pages, &number.to_be_bytes(), put)
        });
    }
    check("the root of another tree");
}

/// A disk that has lost a write leaves a leaf that is whole, and older than its parent. A search
/// for a key there must fail, and not go on for ever.
#[test]
fn a_leaf_that_does_not_fit_its_parent_is_damage() {
    let mut pair = Pair::new(64);
    for number in 0..200_u32 {
        pair.put(number.to_be_bytes().to_vec(), vec![7; 100]);
    }
    let report = pair.check();
    let mut key = Vec::new();
    let is_cut = |page: &PageNo, key: &mut Vec<u8>| {
        let mut change = pair.pages.change()?;
        let latched = change.latch(PageId::new(SPACE, *page))?;
        let view = TreePage::new(change.bytes(latched)).expect("a page of the tree");
        if view.level() != Some(0) || view.has_upper() != Some(true) {
            return Ok(false);
        }
        let from = 3;
        key.clear();
        view.append_key(from, key).expect("it has some entries");
        let cut = PageOp::TreeCut {
            from: u16::try_from(from).expect("small"),
            upper: key,
        };
        change
            .apply(latched, &cut)
            .expect("fewer entries have room");
        change.commit();
        Ok(true)
    };
    let mut pages = report.pages.iter();
    let cut = pages.find(|page| until_done(&pair.world, || is_cut(page, &mut key)));
    assert!(cut.is_some());
    let changed = try_until_done(&pair.world, || {
        pair.tree
            .modify(&pair.pages, &key, |_| Ok(Edit::Put(vec![1])))
    });
    assert!(matches!(changed, Err(StoreError::Damaged { .. })));
    let read = try_until_done(&pair.world, || {
        pair.tree.read_latched(&pair.pages, &key, |_| Ok(()))
    });
    assert!(matches!(read, Err(StoreError::Damaged { .. })));
    let upward = [From::AtLeast, From::Above, From::AtMost];
    pair.check_not_found_is_damage(&key, &upward);
    let mut behind = key.clone();
    behind.push(0);
    pair.check_not_found_is_damage(&behind, &upward);
    pair.check_not_found_is_damage(&behind, &[From::Below]);
}

impl Pair {
    /// The leaves, in order, with the keys of their entries.
    fn leaves(&self) -> Vec<(PageNo, Vec<Vec<u8>>)> {
        let (mut check, mut entries) = (Check::new(self.tree), Run::new());
        let mut leaves = Vec::new();
        while let Some(looked) = until_done(&self.world, || check.step(&self.pages, &mut entries)) {
            if !entries.is_empty() {
                let keys = (0..entries.len()).map(|index| entries.entry(index).0.to_vec());
                leaves.push((looked.page, keys.collect()));
            }
        }
        leaves
    }

    /// Makes a page free and empty, although the tree leads to it.
    fn lose(&self, page: PageNo) {
        until_done(&self.world, || {
            let mut change = self.pages.change()?;
            let latched = change.latch(PageId::new(SPACE, page))?;
            let release = Release::make(&mut change, latched)?;
            release.give_back(&mut change)?;
            change.commit();
            Ok(())
        });
    }

    fn mend(&self) -> Result<Vec<PageNo>, StoreError> {
        let (mut mend, mut made) = (Mend::new(self.tree), Vec::new());
        while let Some(looked) = try_until_done(&self.world, || mend.step(&self.pages))? {
            if !looked.is_whole() {
                made.push(looked.page);
            }
        }
        Ok(made)
    }
}

/// A lost leaf is made again without its entries, and one with other fences keeps what belongs
/// there. Both are in use then, so they are not given out a second time.
#[test]
fn lost_leaves_are_made_again() {
    let mut pair = Pair::new(64);
    for number in 0..200_u32 {
        pair.put(number.to_be_bytes().to_vec(), vec![7; 100]);
    }
    let leaves = pair.leaves();
    let ((lost, lost_keys), (cut, cut_keys)) = (&leaves[1], &leaves[3]);
    pair.lose(*lost);
    until_done(&pair.world, || {
        let mut change = pair.pages.change()?;
        let latched = change.latch(PageId::new(SPACE, *cut))?;
        let upper = cut_keys[3].as_slice();
        let cut = PageOp::TreeCut { from: 3, upper };
        change
            .apply(latched, &cut)
            .expect("fewer entries have room");
        change.commit();
        Ok(())
    });
    assert_eq!(pair.mend(), Ok(vec![*lost, *cut]));
    for key in lost_keys.iter().chain(&cut_keys[3..]) {
        pair.twin.remove(key);
    }
    pair.compare(&cut_keys[1], 7);
    assert_eq!(pair.mend(), Ok(Vec::new()), "nothing is left to do");
    pair.put(lost_keys[0].clone(), vec![1]);
    pair.compare(&lost_keys[0], 7);
}

/// A leaf that is older than its split has the entries of the leaf to its right. They go there if
/// that one is lost, and are left out if it is whole.
#[test]
fn entries_of_before_a_split_go_to_the_right() {
    for is_lost in [true, false] {
        let mut pair = Pair::new(64);
        for number in 0..200_u32 {
            pair.put(number.to_be_bytes().to_vec(), vec![7; 100]);
        }
        let leaves = pair.leaves();
        let ((old, left), (right, right_keys)) = (&leaves[1], &leaves[2]);
        let behind = leaves[3].1[0].as_slice();
        let had: Vec<&Vec<u8>> = left[..3].iter().chain(&right_keys[..3]).collect();
        until_done(&pair.world, || {
            let mut change = pair.pages.change()?;
            let latched = change.latch(PageId::new(SPACE, *old))?;
            let view = TreePage::new(change.bytes(latched)).expect("a page of the tree");
            let shape = TreePageShape {
                level: 0,
                index_id: view.index_id().expect("it has a head"),
                lower: &left[0],
                upper: Some(behind),
            };
            change
                .apply(latched, &PageOp::TreeInit(shape))
                .expect("an empty page");
            for (slot, key) in had.iter().enumerate() {
                let insert = PageOp::TreeInsert {
                    slot: u16::try_from(slot).expect("small"),
                    key,
                    payload: &[9],
                };
                change.apply(latched, &insert).expect("it has room");
            }
            change.commit();
            Ok(())
        });
        for key in left.iter().chain(right_keys.iter().filter(|_| is_lost)) {
            pair.twin.remove(key);
        }
        for key in had.iter().filter(|key| is_lost || left.contains(key)) {
            pair.twin.insert(key.to_vec(), vec![9]);
        }
        let made = match is_lost {
            true => vec![*old, *right],
            false => vec![*old],
        };
        if is_lost {
            pair.lose(*right);
        }
        assert_eq!(pair.mend(), Ok(made));
        pair.compare(&left[1], 7);
        assert_eq!(pair.mend(), Ok(Vec::new()), "nothing is left to do");
    }
}

/// The children of a root that is lost cannot be found.
#[test]
fn a_lost_root_is_not_made_again() {
    let mut pair = Pair::new(64);
    for number in 0..200_u32 {
        pair.put(number.to_be_bytes().to_vec(), vec![7; 100]);
    }
    pair.lose(pair.tree.root);
    let mended = pair.mend();
    assert!(
        matches!(mended, Err(StoreError::Damaged { .. })),
        "{mended:?}"
    );
}
