//! Locks of the gaps between entries, while entries come and go.
//!
//! A gap has the name of the entry at its upper end, whatever leaf that stands in. An insert waits
//! for the locks of its gap, and leaves both halves locked. The removal of an entry leaves its
//! locks to the joined gap. Both happen with the entry's leaf latched exclusively, and cost a look
//! at a counter if the index has no locks. A rollback that has removed what was inserted lets those
//! go on that wait for it.
//!
//! A reader that locks a gap holds no latch. It enters its lock and then looks whether the leaves
//! around the gap are still as it has read them (`row::cursor`). So it meets an insert at one of
//! two places: the insert finds the lock, or the reader finds the leaf changed and reads again.

use std::rc::Rc;

use btree::{Change, Spot, Tree};
use format::TxnId;
use lock::{LockKind, LockName};
use stdx::planted::{Mistake, is_planted};
use store::{LockWait, Outcome};

use crate::transaction::EngineTransaction;
use crate::worker::Worker;

impl EngineTransaction {
    /// Before an insert at a spot: waits for the gap locks of others. Returns the name of the gap
    /// if it may have locks, which [`EngineTransaction::split_gap`] gives to both halves.
    pub(crate) fn check_gap(
        &mut self,
        tree: Tree,
        change: &Change<'_>,
        spot: Spot,
    ) -> Outcome<Option<LockName>> {
        assert!(!spot.is_match, "an entry that is there has its place");
        let own = self.id.expect("a writer has an id");
        let worker = Rc::clone(&self.worker);
        let table = &worker.shared.locks;
        if !table.has_locks(tree.index) || is_planted(Mistake::LeavesGapsUnlocked) {
            return Ok(None);
        }
        let successor = tree.successor(&worker.pages, change, spot)?;
        let gap = LockName::of(tree.index, successor.key.as_deref());
        let intention = LockKind::INSERT_INTENTION;
        let is_pending = |txn: &Self| {
            let locks = txn.locks.as_ref();
            locks.is_some_and(|locks| locks.is_pending(&gap, intention))
        };
        while is_pending(self) || table.is_gap_locked(own, &gap) {
            self.acquire(&gap, intention, LockWait::Wait)?;
        }
        Ok(Some(gap))
    }

    /// After an insert of `key`, with its leaf still latched.
    pub(crate) fn split_gap(&mut self, tree: Tree, key: &[u8], gap: Option<LockName>) {
        if let Some(gap) = gap.filter(|_| !is_planted(Mistake::LosesSplitGaps)) {
            let entry = LockName::key(tree.index, key);
            let locks = self.locks.as_mut();
            locks.expect("a writer has an id").split_gap(&entry, &gap);
        }
    }
}

impl Worker {
    /// After a rollback has removed `key`, which `writer` had inserted. Those who wait for it go on
    /// now, as in InnoDB, and not at the writer's end.
    pub(crate) fn leave_record(&self, tree: Tree, key: &[u8], writer: TxnId) {
        let locks = &self.shared.locks;
        if locks.has_locks(tree.index) {
            locks.leave_record(writer, &LockName::key(tree.index, key));
        }
    }

    /// Before the removal of `key`, which stands at a spot. An entry that comes behind it meanwhile
    /// has a part of the joined gap, so the next one is looked up until nothing changes. The lock
    /// of the entry that `leaver` has leaves no gap.
    pub(crate) fn join_gap(
        &self,
        tree: Tree,
        (change, spot): (&Change<'_>, Spot),
        key: &[u8],
        leaver: Option<TxnId>,
    ) -> Outcome<()> {
        assert!(spot.is_match, "what is removed is there");
        let locks = &self.shared.locks;
        if !locks.has_locks(tree.index) || is_planted(Mistake::LosesJoinedGaps) {
            return Ok(());
        }
        let entry = LockName::key(tree.index, key);
        loop {
            let successor = tree.successor(&self.pages, change, spot)?;
            let gap = LockName::of(tree.index, successor.key.as_deref());
            locks.join_gap(&entry, &gap, leaver);
            if tree.are_current(&self.pages, &successor.leaves) {
                return Ok(());
            }
        }
    }
}
