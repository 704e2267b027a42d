//! What an operator must know: damaged pages that were met, a full disk, too few file descriptors.
//! A task of the server fetches the news and writes them to the log. Reporting news here never
//! waits.

use std::collections::{BTreeSet, VecDeque};

use env::{DiskError, DiskErrorKind};
use format::PageId;
use store::StoreError;
use sync::atomic::{AtomicBool, Ordering};
use sync::{Mutex, Notify};

/// The most damage that one run of the server reports: each page once, and each text that names no
/// page. `plateau check` names all.
const DAMAGE_TOLD_MAX: usize = 1000;

/// What fails statements until there is more of it, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// Room on the disk.
    Room,
    /// File descriptors.
    Descriptors,
}

impl Shortage {
    /// The error by which it shows.
    pub fn kind(self) -> DiskErrorKind {
        match self {
            Self::Room => DiskErrorKind::Full,
            Self::Descriptors => DiskErrorKind::NoDescriptor,
        }
    }
}

/// Holds the news until the log's task fetches them.
#[derive(Debug, Default)]
pub struct News {
    /// What was reported, and what the log's task has not fetched yet.
    damage: Mutex<Damage>,
    /// Whether `damage` has something. A hint, stored with it.
    has_damage: AtomicBool,
    /// Whether the last growth of a file failed because the disk is full.
    lacks_room: AtomicBool,
    /// Whether the last file to be made found no descriptor.
    lacks_descriptors: AtomicBool,
    /// The log's task sleeps here.
    due: Notify,
}

#[derive(Debug, Default)]
struct Damage {
    told: BTreeSet<Damaged>,
    fresh: VecDeque<(Option<PageId>, StoreError)>,
}

/// What is reported once.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Damaged {
    Page(PageId),
    /// Data that contradict each other, and no page is known to be the wrong one.
    Text(String),
}

impl News {
    /// Reports a page that could not be read, is not what was written, or contradicts itself or
    /// another page.
    pub fn page_failed(&self, page: PageId, error: &StoreError) {
        self.add_damage(Some(page), error);
    }

    /// Reports an error if it is damage, of a page or of none.
    pub fn note_error(&self, error: &StoreError) {
        if let StoreError::Damaged { page, .. } = error {
            self.add_damage(*page, error);
        }
    }

    fn add_damage(&self, page: Option<PageId>, error: &StoreError) {
        let told = match page {
            Some(page) => Damaged::Page(page),
            None => Damaged::Text(error.to_string()),
        };
        let mut damage = self.damage.lock();
        if DAMAGE_TOLD_MAX <= damage.told.len() || !damage.told.insert(told) {
            return;
        }
        damage.fresh.push_back((page, error.clone()));
        self.has_damage.store(true, Ordering::SeqCst);
        self.due.notify();
    }

    /// Takes the next damage that was not fetched yet, with its page if it has one. Returns `None`
    /// if there is none.
    pub fn next_damage(&self) -> Option<(Option<PageId>, StoreError)> {
        if !self.has_damage.load(Ordering::SeqCst) {
            return None;
        }
        let mut damage = self.damage.lock();
        let next = damage.fresh.pop_front();
        self.has_damage
            .store(!damage.fresh.is_empty(), Ordering::SeqCst);
        next
    }

    /// Reports how a call ended that a shortage fails.
    pub(crate) fn note<T>(&self, shortage: Shortage, ended: &Result<T, DiskError>) {
        let is_short = |error: &DiskError| error.kind == shortage.kind();
        let is_short = ended.as_ref().is_err_and(is_short);
        if self.lacks(shortage).swap(is_short, Ordering::SeqCst) != is_short {
            self.due.notify();
        }
    }

    fn lacks(&self, shortage: Shortage) -> &AtomicBool {
        match shortage {
            Shortage::Room => &self.lacks_room,
            Shortage::Descriptors => &self.lacks_descriptors,
        }
    }

    /// Wakes the log's task: there may be news.
    pub fn call(&self) {
        self.due.notify();
    }

    /// Ready once there may be news. For one task.
    pub async fn called(&self) {
        self.due.notified().await;
    }

    /// Whether the last call that needed it failed for the lack of it.
    pub fn is_short_of(&self, shortage: Shortage) -> bool {
        self.lacks(shortage).load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use format::{PageNo, SpaceId};

    use super::*;

    /// Each page once; below, at and above the limit.
    #[test]
    fn damage_is_told_once_and_not_too_much() {
        let news = News::default();
        assert_eq!(news.next_damage(), None);
        let error = StoreError::damaged("it");
        let page = |number: usize| PageId::new(SpaceId(7), PageNo(stdx::to_u32(number)));
        for _ in 0..2 {
            for number in 0..DAMAGE_TOLD_MAX - 1 {
                news.page_failed(page(number), &error);
            }
            news.note_error(&error);
            news.page_failed(page(DAMAGE_TOLD_MAX), &error);
        }
        for number in 0..DAMAGE_TOLD_MAX - 1 {
            let told = (Some(page(number)), error.clone());
            assert_eq!(news.next_damage(), Some(told));
        }
        assert_eq!(news.next_damage(), Some((None, error.clone())));
        assert_eq!(news.next_damage(), None);
        news.page_failed(page(0), &error);
        assert_eq!(news.next_damage(), None);
    }

    /// Damage alone is reported: with its page, and by its text where it has none.
    #[test]
    fn an_error_is_told_if_it_is_damage() {
        let news = News::default();
        let page = PageId::new(SpaceId(7), PageNo(8));
        let with_page = StoreError::damaged_page(page, "it");
        let (one, other) = (StoreError::damaged("one"), StoreError::damaged("other"));
        for error in [&with_page, &StoreError::Deadlock, &one, &other, &one] {
            news.note_error(error);
        }
        assert_eq!(news.next_damage(), Some((Some(page), with_page)));
        assert_eq!(news.next_damage(), Some((None, one)));
        assert_eq!(news.next_damage(), Some((None, other)));
        assert_eq!(news.next_damage(), None);
    }
}
