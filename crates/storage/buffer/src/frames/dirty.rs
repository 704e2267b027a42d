//! The dirty pages: a list for each worker, in the order of the log.
//!
//! A worker appends when a clean page becomes dirty. Its mini-transactions come in log order, so
//! each list is sorted by itself. Pages are cleaned in another order than this, so entries become
//! outdated anywhere. Those at the front are dropped when they are met. The cleaner moves the
//! others together, some at a time: a hot page at the front may stay there as long as the log does.
//!
//! (D1) Entries before `kept` are followed in the list by outdated ones up to `looked`, and these
//! by entries that the present pass has not come to.

use std::collections::VecDeque;

use format::Lsn;
use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, Mutex};

use crate::frames::{FrameNo, Frames};

/// Entries that a cleaner looks at with each batch of pages: some times as many as the batch has,
/// so that it overtakes those that are added meanwhile.
pub(crate) const LOOKS_PER_BATCH: usize = 256;

/// A page that became dirty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirtyEntry {
    /// Start of the mini-transaction that made it dirty; equals the frame's `rec_lsn` while it is
    /// dirty.
    pub(crate) rec_lsn: Lsn,
    pub(crate) frame: FrameNo,
}

/// The entries of one worker, oldest first.
#[derive(Debug, Default)]
struct Entries {
    all: VecDeque<DirtyEntry>,
    /// Entries that the present pass has found dirty and moved together (D1).
    kept: usize,
    /// Entries that it has looked at; not below `kept`.
    looked: usize,
}

/// One worker's part.
#[derive(Debug, Default)]
struct List {
    entries: Mutex<Entries>,
    /// Pages that it made dirty.
    dirtied: AtomicU64,
    /// Pages that it made clean, whoever made them dirty.
    cleaned: AtomicU64,
}

/// The lists of all workers.
#[derive(Debug)]
pub(crate) struct DirtyLists {
    lists: Box<[CachePadded<List>]>,
}

impl DirtyLists {
    pub(crate) fn new(worker_count: usize) -> Self {
        let lists = (0..worker_count).map(|_| CachePadded::default()).collect();
        Self { lists }
    }

    fn list(&self, worker: usize) -> &List {
        let list = self.lists.get(worker);
        list.expect("a worker's number is below their count")
    }

    /// Appends a page that has just become dirty.
    pub(crate) fn add(&self, worker: usize, entry: DirtyEntry) {
        let list = self.list(worker);
        // Relaxed, here and below: the sum is a hint.
        list.dirtied.fetch_add(1, Ordering::Relaxed);
        let mut entries = list.entries.lock();
        let last = entries.all.back();
        assert!(
            last.is_none_or(|last| last.rec_lsn <= entry.rec_lsn),
            "a worker's changes come in the order of the log"
        );
        entries.all.push_back(entry);
    }

    /// Counts a page that a worker has made clean.
    pub(crate) fn note_cleaned(&self, worker: usize) {
        self.list(worker).cleaned.fetch_add(1, Ordering::Relaxed);
    }

    /// The oldest change of a page that is not clean, over all lists.
    pub(crate) fn oldest(&self, frames: &Frames) -> Option<Lsn> {
        let fronts = self.lists.iter().filter_map(|list| {
            let mut entries = list.entries.lock();
            entries.drop_clean(frames);
            entries.all.front().map(|entry| entry.rec_lsn)
        });
        fronts.min()
    }

    /// Up to `count` dirty pages with the oldest changes, oldest first. They stay in the lists.
    pub(crate) fn candidates(&self, frames: &Frames, count: usize) -> Vec<DirtyEntry> {
        let mut found = Vec::new();
        for list in &self.lists {
            let mut entries = list.entries.lock();
            entries.drop_clean(frames);
            let dirty = entries.all.iter().filter(|entry| is_dirty(entry, frames));
            found.extend(dirty.take(count).copied());
        }
        found.sort_unstable_by_key(|entry| entry.rec_lsn);
        found.truncate(count);
        found
    }

    /// Looks at up to `looks` more entries of a worker, and drops outdated ones.
    pub(crate) fn tidy(&self, worker: usize, frames: &Frames, looks: usize) {
        self.list(worker).entries.lock().tidy(frames, looks);
    }

    /// Forgets entries of pages that are clean or gone.
    pub(crate) fn forget_clean(&self, frames: &Frames) {
        for list in &self.lists {
            let mut entries = list.entries.lock();
            entries.all.retain(|entry| is_dirty(entry, frames));
            (entries.kept, entries.looked) = (0, 0);
        }
    }

    /// Dirty pages. Exact while no page becomes dirty or clean.
    pub(crate) fn count(&self) -> usize {
        let sum = |of: fn(&List) -> &AtomicU64| -> u64 {
            let each = self.lists.iter().map(|list| of(list));
            each.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        let cleaned = sum(|list| &list.cleaned);
        let count = sum(|list| &list.dirtied).saturating_sub(cleaned);
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

impl Entries {
    fn drop_clean(&mut self, frames: &Frames) {
        while self
            .all
            .front()
            .is_some_and(|entry| !is_dirty(entry, frames))
        {
            self.all.pop_front();
            self.kept = self.kept.saturating_sub(1);
            self.looked = self.looked.saturating_sub(1);
        }
    }

    fn tidy(&mut self, frames: &Frames, looks: usize) {
        for _ in 0..looks {
            assert!(self.kept <= self.looked, "what is kept was looked at (D1)");
            let Some(entry) = self.all.get_mut(self.looked) else {
                self.all.truncate(self.kept);
                (self.kept, self.looked) = (0, 0);
                return;
            };
            if is_dirty(entry, frames) {
                // 0 is no page's, so what is left behind is outdated.
                let outdated = DirtyEntry {
                    rec_lsn: Lsn::ZERO,
                    frame: entry.frame,
                };
                let moved = std::mem::replace(entry, outdated);
                let place = self.all.get_mut(self.kept);
                *place.expect("what is kept was looked at (D1)") = moved;
                self.kept += 1;
            }
            self.looked += 1;
        }
    }
}

/// A frame gets another LSN each time it becomes dirty, so an equal one means that it is still
/// dirty.
fn is_dirty(entry: &DirtyEntry, frames: &Frames) -> bool {
    frames.frame(entry.frame).rec_lsn() == Some(entry.rec_lsn)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use env::Random;
    use format::PageSize;

    use super::*;

    /// The naive twin knows which frames are dirty, and since when.
    #[test]
    fn the_lists_know_what_is_dirty_and_forget_the_rest() {
        for seed in 0..20 {
            let (frames, lists) = (Frames::new(16, PageSize::KiB4), DirtyLists::new(2));
            let (mut random, mut twin) = (Random::new(seed), BTreeMap::new());
            for lsn in 1..3000 {
                let no = FrameNo(u32::try_from(random.below(16)).unwrap());
                let (frame, worker) = (frames.frame(no), random.index(2));
                // The first frame is hot: it stays dirty for long.
                if frame.rec_lsn().is_none() {
                    frame.set_rec_lsn(Some(Lsn(lsn)));
                    let rec_lsn = Lsn(lsn);
                    lists.add(worker, DirtyEntry { rec_lsn, frame: no });
                    twin.insert(no, rec_lsn);
                } else if no.0 != 0 || random.chance(5) {
                    frame.set_rec_lsn(None);
                    lists.note_cleaned(worker);
                    twin.remove(&no);
                }
                lists.tidy(worker, &frames, random.index(4));
                assert_eq!(lists.count(), twin.len());
                let mut expected: Vec<Lsn> = twin.values().copied().collect();
                expected.sort_unstable();
                if random.chance(50) {
                    assert_eq!(lists.oldest(&frames), expected.first().copied());
                }
                if random.chance(50) {
                    let found = lists.candidates(&frames, 9).into_iter();
                    let found: Vec<Lsn> = found.map(|entry| entry.rec_lsn).collect();
                    expected.truncate(9);
                    assert_eq!(found, expected);
                }
            }
            for list in &lists.lists {
                let length = list.entries.lock().all.len();
                assert!(length < 100, "{length} entries for 16 pages");
            }
        }
    }

    /// A pass may end anywhere, and its entries may leave at the front meanwhile.
    #[test]
    fn a_pass_begins_again_behind_its_end() {
        let (frames, lists) = (Frames::new(4, PageSize::KiB4), DirtyLists::new(1));
        for (frame, lsn) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
            let (frame, rec_lsn) = (FrameNo(frame), Lsn(lsn));
            frames.frame(frame).set_rec_lsn(Some(rec_lsn));
            lists.add(0, DirtyEntry { rec_lsn, frame });
        }
        frames.frame(FrameNo(1)).set_rec_lsn(None);
        lists.tidy(0, &frames, 3);
        assert_eq!(lists.oldest(&frames), Some(Lsn(1)));
        frames.frame(FrameNo(0)).set_rec_lsn(None);
        assert_eq!(lists.oldest(&frames), Some(Lsn(3)));
        lists.tidy(0, &frames, 9);
        let left = lists.candidates(&frames, 9);
        assert_eq!(
            left.iter().map(|it| it.rec_lsn.0).collect::<Vec<_>>(),
            [3, 4]
        );
        lists.forget_clean(&frames);
        assert_eq!(lists.lists[0].entries.lock().all.len(), 2);
    }
}
