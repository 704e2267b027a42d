//! The dirty pages: a list for each worker, in the order of the log.
//!
//! A worker appends when a clean page becomes dirty. Its mini-transactions come in log order, so
//! each list is sorted by itself. Entries of pages that were cleaned meanwhile are dropped when
//! they come to the front. So lists are longer than there are dirty pages, which are counted apart.

use std::collections::VecDeque;

use format::Lsn;
use sync::atomic::{AtomicUsize, Ordering};
use sync::{CachePadded, Mutex};

use crate::frames::{FrameNo, Frames};

/// A page that became dirty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirtyEntry {
    /// Start of the mini-transaction that made it dirty; equals the frame's `rec_lsn` while it is
    /// dirty.
    pub(crate) rec_lsn: Lsn,
    pub(crate) frame: FrameNo,
}

/// The lists of all workers.
#[derive(Debug)]
pub(crate) struct DirtyLists {
    lists: Box<[CachePadded<Mutex<VecDeque<DirtyEntry>>>]>,
    counts: Box<[CachePadded<Counts>]>,
}

/// What a worker has done to pages. Only grows; written by that worker.
#[derive(Debug, Default)]
struct Counts {
    dirtied: AtomicUsize,
    cleaned: AtomicUsize,
}

impl DirtyLists {
    pub(crate) fn new(worker_count: usize) -> Self {
        let lists = (0..worker_count)
            .map(|_| CachePadded::new(Mutex::default()))
            .collect();
        let counts = (0..worker_count).map(|_| CachePadded::default()).collect();
        Self { lists, counts }
    }

    fn counts(&self, worker: usize) -> &Counts {
        let counts = self.counts.get(worker);
        counts.expect("a worker's number is below their count")
    }

    /// Counts a page that a worker has made clean.
    pub(crate) fn note_clean(&self, worker: usize) {
        // Release: pairs with `page_count`.
        self.counts(worker).cleaned.fetch_add(1, Ordering::Release);
    }

    /// Dirty pages. Others may change some meanwhile.
    pub(crate) fn page_count(&self) -> usize {
        let sum = |count: fn(&Counts) -> &AtomicUsize| -> usize {
            let counts = self.counts.iter();
            // Acquire: who sees that a page was cleaned sees that it was dirtied before.
            counts.map(|it| count(it).load(Ordering::Acquire)).sum()
        };
        let cleaned = sum(|it| &it.cleaned);
        let dirtied = sum(|it| &it.dirtied);
        assert!(cleaned <= dirtied, "what is cleaned was dirty");
        dirtied - cleaned
    }

    /// Appends a page that has just become dirty.
    pub(crate) fn add(&self, worker: usize, entry: DirtyEntry) {
        let list = self
            .lists
            .get(worker)
            .expect("a worker's number is below their count");
        let mut list = list.lock();
        assert!(list.back().is_none_or(|last| last.rec_lsn <= entry.rec_lsn));
        list.push_back(entry);
        // Relaxed: the page's latch orders it before whoever cleans the page.
        self.counts(worker).dirtied.fetch_add(1, Ordering::Relaxed);
    }

    /// The oldest change of a page that is not clean, over all lists.
    pub(crate) fn oldest(&self, frames: &Frames) -> Option<Lsn> {
        let fronts = self.lists.iter().filter_map(|list| {
            let mut list = list.lock();
            drop_clean(&mut list, frames);
            list.front().map(|entry| entry.rec_lsn)
        });
        fronts.min()
    }

    /// Up to `count` dirty pages with the oldest changes, oldest first. They stay in the lists.
    pub(crate) fn candidates(&self, frames: &Frames, count: usize) -> Vec<DirtyEntry> {
        let mut found = Vec::new();
        for list in &self.lists {
            let mut list = list.lock();
            drop_clean(&mut list, frames);
            let dirty = list.iter().filter(|entry| is_dirty(entry, frames));
            found.extend(dirty.take(count).copied());
        }
        found.sort_unstable_by_key(|entry| entry.rec_lsn);
        found.truncate(count);
        found
    }

    /// Forgets entries of pages that are clean or gone.
    pub(crate) fn forget_clean(&self, frames: &Frames) {
        for list in &self.lists {
            list.lock().retain(|entry| is_dirty(entry, frames));
        }
    }

    /// Entries in all lists, also of pages that are clean by now.
    pub(crate) fn len(&self) -> usize {
        self.lists.iter().map(|list| list.lock().len()).sum()
    }
}

/// A frame gets another LSN each time it becomes dirty, so an equal one means that it is still
/// dirty.
fn is_dirty(entry: &DirtyEntry, frames: &Frames) -> bool {
    frames.frame(entry.frame).rec_lsn() == Some(entry.rec_lsn)
}

fn drop_clean(list: &mut VecDeque<DirtyEntry>, frames: &Frames) {
    while list.front().is_some_and(|entry| !is_dirty(entry, frames)) {
        list.pop_front();
    }
}
