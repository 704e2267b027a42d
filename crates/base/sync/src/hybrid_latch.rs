//! A latch of one word that readers can use without writing to it.
//!
//! The word is a version (56 bits) over a state (8 bits): 0 free, 1 to 252 that many sharers, 253
//! exclusive. What it guards can be read in three ways: exclusively, shared, or optimistically. An
//! optimistic reader notes the version, reads, and checks that the version is unchanged.
//!
//! Rules:
//! (R1) The version grows by one at each release of the exclusive state, and nowhere else.
//! (R2) Taking the exclusive state is followed by a release fence before the first write of data.
//! Validation is an acquire fence before the version is loaded again. So an optimistic reader that
//! saw one byte of a writer also sees that writer's exclusive state or a later version.
//! (R3) Data read optimistically is used only after `validate` returned true; until then it may be
//! any mixture of bytes. Such reads must be atomic loads.
//! (R4) Nothing here waits: if the latch is busy, the caller spins or gives up.
//!
//! After "LeanStore" (ICDE 2018) and "Virtual-Memory Assisted Buffer Management" (SIGMOD 2023).

use crate::atomic::{AtomicU64, Ordering, fence};

const STATE_BITS: u32 = 8;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;
const EXCLUSIVE: u64 = 253;
const SHARED_MAX: u64 = 252;

/// A version at which an optimistic read began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatchVersion(u64);

/// The latch. 8 bytes, shared by all workers.
#[derive(Debug)]
pub struct HybridLatch {
    word: AtomicU64,
}

impl HybridLatch {
    /// A free latch.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
        }
    }

    /// A free latch.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
        }
    }

    /// Begins an optimistic read; `None` while there is a writer.
    #[inline]
    pub fn optimistic(&self) -> Option<LatchVersion> {
        // Acquire pairs with the release in `unlock_exclusive`: what that writer wrote is seen.
        let word = self.word.load(Ordering::Acquire);
        (word & STATE_MASK != EXCLUSIVE).then_some(LatchVersion(word >> STATE_BITS))
    }

    /// Whether everything read since `version` was noted is unchanged.
    #[inline]
    pub fn validate(&self, version: LatchVersion) -> bool {
        // Pairs with the fence in `try_exclusive` (R2).
        fence(Ordering::Acquire);
        let word = self.word.load(Ordering::Relaxed);
        word >> STATE_BITS == version.0 && word & STATE_MASK != EXCLUSIVE
    }

    /// Becomes a sharer, unless there is a writer or there are 252 sharers.
    #[inline]
    pub fn try_shared(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        if SHARED_MAX <= word & STATE_MASK {
            return false;
        }
        // Acquire pairs with the release in `unlock_exclusive`. A failed exchange is reported as
        // busy although another sharer may be the reason: callers spin (R4).
        let next = word + 1;
        let swapped = self
            .word
            .compare_exchange(word, next, Ordering::Acquire, Ordering::Relaxed);
        swapped.is_ok()
    }

    /// Stops sharing.
    #[inline]
    pub fn unlock_shared(&self) {
        // Release: the next writer's acquire sees that these reads are over.
        let before = self.word.fetch_sub(1, Ordering::Release);
        assert!((1..=SHARED_MAX).contains(&(before & STATE_MASK)));
    }

    /// Takes the latch exclusively if it is free.
    #[inline]
    pub fn try_exclusive(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & STATE_MASK == 0 && self.take_exclusive(word)
    }

    /// Takes the latch exclusively if it is free and unchanged since `version`.
    #[inline]
    pub fn try_exclusive_at(&self, version: LatchVersion) -> bool {
        self.take_exclusive(version.0 << STATE_BITS)
    }

    #[inline]
    fn take_exclusive(&self, free: u64) -> bool {
        let taken = free | EXCLUSIVE;
        // Acquire pairs with the releases of the holders before.
        let swapped = self
            .word
            .compare_exchange(free, taken, Ordering::Acquire, Ordering::Relaxed);
        // Pairs with the fence in `validate` (R2).
        fence(Ordering::Release);
        swapped.is_ok()
    }

    /// Releases the exclusive latch with a new version.
    #[inline]
    pub fn unlock_exclusive(&self) {
        let word = self.word.load(Ordering::Relaxed);
        assert_eq!(word & STATE_MASK, EXCLUSIVE);
        let version = (word >> STATE_BITS) + 1;
        // Release pairs with every acquire above.
        self.word.store(version << STATE_BITS, Ordering::Release);
    }

    /// Whether it is held.
    pub fn is_held(&self) -> bool {
        self.word.load(Ordering::Relaxed) & STATE_MASK != 0
    }
}

impl Default for HybridLatch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn states_exclude_one_another() {
        let latch = HybridLatch::new();
        let version = latch.optimistic().unwrap();
        assert!(latch.try_shared());
        assert!(latch.try_shared());
        assert!(!latch.try_exclusive());
        assert!(latch.validate(version), "sharers change nothing");
        latch.unlock_shared();
        latch.unlock_shared();
        assert!(latch.try_exclusive_at(version));
        assert!(!latch.try_shared());
        assert!(!latch.try_exclusive());
        assert_eq!(latch.optimistic(), None);
        assert!(!latch.validate(version));
        latch.unlock_exclusive();
        assert!(!latch.validate(version), "the version moved");
        assert!(!latch.try_exclusive_at(version));
        assert!(!latch.is_held());
    }

    #[test]
    fn sharers_are_counted_to_their_limit() {
        let latch = HybridLatch::new();
        for _ in 0..SHARED_MAX {
            assert!(latch.try_shared());
        }
        assert!(!latch.try_shared());
        assert!(latch.optimistic().is_some());
    }
}

#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Page {
        latch: HybridLatch,
        left: AtomicU64,
        right: AtomicU64,
    }

    fn page() -> Arc<Page> {
        let (left, right) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Page {
            latch: HybridLatch::new(),
            left,
            right,
        })
    }

    /// An optimistic reader that validates has seen one writer's state, never half of it.
    #[test]
    fn a_validated_read_is_whole() {
        loom::model(|| {
            let page = page();
            let writer = {
                let page = Arc::clone(&page);
                thread::spawn(move || {
                    assert!(page.latch.try_exclusive());
                    page.left.store(1, Ordering::Relaxed);
                    page.right.store(1, Ordering::Relaxed);
                    page.latch.unlock_exclusive();
                })
            };
            if let Some(version) = page.latch.optimistic() {
                let left = page.left.load(Ordering::Relaxed);
                let right = page.right.load(Ordering::Relaxed);
                if page.latch.validate(version) {
                    assert_eq!(left, right);
                }
            }
            writer.join().unwrap();
        });
    }

    /// Two writers and a sharer never hold it together.
    #[test]
    fn holders_exclude() {
        loom::model(|| {
            let page = page();
            let writer = {
                let page = Arc::clone(&page);
                thread::spawn(move || {
                    if page.latch.try_exclusive() {
                        let before = page.left.load(Ordering::Relaxed);
                        page.left.store(before + 1, Ordering::Relaxed);
                        page.latch.unlock_exclusive();
                        return 1;
                    }
                    0
                })
            };
            let mut mine = 0;
            if page.latch.try_shared() {
                let first = page.left.load(Ordering::Relaxed);
                assert_eq!(first, page.left.load(Ordering::Relaxed));
                page.latch.unlock_shared();
            }
            if page.latch.try_exclusive() {
                let before = page.left.load(Ordering::Relaxed);
                page.left.store(before + 1, Ordering::Relaxed);
                page.latch.unlock_exclusive();
                mine = 1;
            }
            let theirs = writer.join().unwrap();
            assert_eq!(page.left.load(Ordering::Relaxed), mine + theirs);
        });
    }

    /// A frame is evicted and given to another page while a reader fixes it through an old table
    /// entry. The reader checks the page's id under the latch, or validates, and is never wrong.
    #[test]
    fn evict_against_pin() {
        loom::model(|| {
            // `left` is the page id in the frame, `right` is the content, equal to the id.
            let frame = page();
            let entry = Arc::new(AtomicU64::new(1));
            let evictor = {
                let (frame, entry) = (Arc::clone(&frame), Arc::clone(&entry));
                thread::spawn(move || {
                    if frame.latch.try_exclusive() {
                        entry.store(0, Ordering::Release);
                        frame.left.store(7, Ordering::Relaxed);
                        frame.right.store(7, Ordering::Relaxed);
                        frame.latch.unlock_exclusive();
                    }
                })
            };
            if entry.load(Ordering::Acquire) == 1 {
                if let Some(version) = frame.latch.optimistic() {
                    let id = frame.left.load(Ordering::Relaxed);
                    let content = frame.right.load(Ordering::Relaxed);
                    if id == 0 && frame.latch.validate(version) {
                        assert_eq!(content, 0);
                    }
                }
                if frame.latch.try_shared() {
                    if frame.left.load(Ordering::Relaxed) == 0 {
                        assert_eq!(frame.right.load(Ordering::Relaxed), 0);
                    }
                    frame.latch.unlock_shared();
                }
            }
            evictor.join().unwrap();
        });
    }
}
