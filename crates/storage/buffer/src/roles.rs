//! Who cleans, and who writes a checkpoint.
//!
//! Each worker's cleaner has a role of its own, so several batches are on their way at once.
//! Workers that share a doublewrite file also share the role. The checkpoint has a role of its own.
//! Whoever must be sure that nothing is being written takes all, in their order.
//!
//! (C1) A page that is on its way is clean, but its file may lack its changes. So a batch publishes
//! the oldest of them before the first page becomes clean, until all are durable in place. A
//! checkpoint looks at the dirty pages first and at the batches afterwards: of a page that it no
//! longer finds dirty it finds the batch, or the batch is done.

use format::Lsn;
use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What only one task does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoleKind {
    /// Of the cleaner of a worker, which other workers may share.
    Cleaner(usize),
    /// Of the writer of a checkpoint.
    Checkpoint,
}

/// The state of all roles.
#[derive(Debug)]
pub(crate) struct Roles {
    cleaners: Box<[CachePadded<Cleaner>]>,
    is_checkpointing: AtomicBool,
}

/// The state of a cleaner.
#[derive(Debug)]
struct Cleaner {
    is_at_work: AtomicBool,
    /// The oldest change of the pages on their way; `Lsn::MAX` if there are none (C1).
    oldest: AtomicU64,
}

impl Roles {
    /// The roles of so many cleaners: one for each doublewrite file.
    pub(crate) fn new(cleaner_count: usize) -> Self {
        assert!(0 < cleaner_count, "somebody writes pages");
        let cleaner = || Cleaner {
            is_at_work: AtomicBool::new(false),
            oldest: AtomicU64::new(Lsn::MAX.0),
        };
        Self {
            cleaners: (0..cleaner_count)
                .map(|_| CachePadded::new(cleaner()))
                .collect(),
            is_checkpointing: AtomicBool::new(false),
        }
    }

    fn cleaner(&self, worker: usize) -> &Cleaner {
        let cleaner = self.cleaners.get(worker % self.cleaners.len());
        cleaner.expect("a remainder is below their count")
    }

    /// Whether somebody has the role.
    pub(crate) fn word(&self, kind: RoleKind) -> &AtomicBool {
        match kind {
            RoleKind::Cleaner(worker) => &self.cleaner(worker).is_at_work,
            RoleKind::Checkpoint => &self.is_checkpointing,
        }
    }

    /// Cleaners that may be at work at once.
    pub(crate) fn cleaner_count(&self) -> usize {
        self.cleaners.len()
    }

    /// Publishes a change whose page is about to become clean (C1). Called by the cleaner.
    pub(crate) fn note_oldest(&self, worker: usize, rec_lsn: Lsn) {
        self.cleaner(worker)
            .oldest
            .fetch_min(rec_lsn.0, Ordering::SeqCst);
    }

    /// The pages of the batch are durable in place.
    pub(crate) fn end_batch(&self, worker: usize) {
        self.cleaner(worker)
            .oldest
            .store(Lsn::MAX.0, Ordering::SeqCst);
    }

    /// The oldest change on its way to a file; `Lsn::MAX` if there is none.
    pub(crate) fn oldest_on_its_way(&self) -> Lsn {
        let oldest = |cleaner: &CachePadded<Cleaner>| cleaner.oldest.load(Ordering::SeqCst);
        let all = self.cleaners.iter().map(oldest);
        all.min().map_or(Lsn::MAX, Lsn)
    }
}
