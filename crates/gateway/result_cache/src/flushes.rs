//! [`Flushes`]: which replies were under way when a cache was emptied.
//!
//! A reply that began before a flush ended is not kept, whatever comes first:
//!
//! (F1) A flush counts as begun before it empties the first shelf, and as ended behind the last.
//! (F2) A reply begins only while none is under way, and notes how many there have been.
//! (F3) Who keeps a reply holds the lock of its shelf and compares. If no other has begun, one that
//! begins later finds the reply on the shelf.

use sync::atomic::{AtomicU64, Ordering};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    /// Never less than `ended`.
    begun: AtomicU64,
    ended: AtomicU64,
}

/// How many flushes there have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushCount(u64);

impl Flushes {
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// How many there have been. `None` while one is under way.
    pub(crate) fn count(&self) -> Option<FlushCount> {
        // In this order: if they are alike, all had ended that had begun when `begun` was read.
        let ended = self.ended.load(Ordering::SeqCst);
        let begun = self.begun.load(Ordering::SeqCst);
        (begun == ended).then_some(FlushCount(begun))
    }

    /// Whether none has begun since there were so many.
    pub(crate) fn are_still(&self, count: FlushCount) -> bool {
        self.begun.load(Ordering::SeqCst) == count.0
    }
}
