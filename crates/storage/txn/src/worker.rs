//! One worker's open snapshots.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use format::{Lsn, TxnId};
use sync::RingState;
use sync::atomic::{Ordering, fence};

use crate::system::{Fate, Maintained, TransactionSystem};

/// A worker's part of the transaction system.
#[derive(Debug)]
pub struct TransactionWorker {
    /// The shared state. Constant.
    system: Arc<TransactionSystem>,
    /// Which worker this is. Constant.
    index: usize,
    /// Open snapshots in order of opening; their commit numbers grow in the same order.
    open: RefCell<BTreeMap<u64, Rc<SnapshotEntry>>>,
    /// Numbers the snapshots.
    sequence: Cell<u64>,
    /// A commit number that some snapshot of this worker had: a lower bound for the next one.
    last_lsn: Cell<Lsn>,
    /// Words of the ring that conversions have looked at.
    #[cfg(test)]
    pub(crate) looked_count: Cell<u64>,
}

/// The worker's part of a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotEntry {
    /// Commits up to this are seen. Constant.
    pub(crate) lsn: Lsn,
    /// Transactions from this number on began after the snapshot and are not seen. Constant.
    pub(crate) high: u64,
    /// Its place in the worker's order of opening. Constant.
    pub(crate) sequence: u64,
    /// Ended transactions below the ring that are not seen (T2), in order.
    pub(crate) exceptions: RefCell<Vec<u64>>,
}

/// The writer of a version is taking its commit number, so it is not known yet whether a snapshot
/// sees the version. Await [`TransactionSystem::ended`](crate::TransactionSystem::ended) and ask
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterEnding(pub TxnId);

impl TransactionWorker {
    /// The part of worker `index`. One for each index.
    pub fn new(system: Arc<TransactionSystem>, index: usize) -> Rc<Self> {
        Rc::new(Self {
            system,
            index,
            open: RefCell::new(BTreeMap::new()),
            sequence: Cell::new(0),
            last_lsn: Cell::new(Lsn(0)),
            #[cfg(test)]
            looked_count: Cell::new(0),
        })
    }

    /// What all workers share.
    pub fn system(&self) -> &Arc<TransactionSystem> {
        &self.system
    }

    /// Opens a snapshot of everything committed by now. `position` loads the log's reserved
    /// position.
    pub(crate) fn open(&self, position: impl FnOnce() -> Lsn) -> Rc<SnapshotEntry> {
        let is_oldest = self.open.borrow().is_empty();
        if is_oldest {
            // A bound that was true before is true now (H1).
            self.system
                .publish_oldest(self.index, Some(self.last_lsn.get()));
            // SeqCst: pairs with the fence in `TransactionSystem::horizon`.
            fence(Ordering::SeqCst);
        }
        let lsn = position();
        if is_oldest {
            // The bound was low if the worker has been idle; raising it is always right.
            self.system.publish_oldest(self.index, Some(lsn));
        }
        // After the position: a transaction that gets a number from here on commits after the
        // snapshot.
        let high = self.system.next_number();
        assert!(self.last_lsn.get() <= lsn, "the log's position grows");
        self.last_lsn.set(lsn);
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        let exceptions = RefCell::new(Vec::new());
        let entry = Rc::new(SnapshotEntry {
            lsn,
            high,
            sequence,
            exceptions,
        });
        self.open.borrow_mut().insert(sequence, Rc::clone(&entry));
        entry
    }

    /// How many snapshots are open.
    pub fn open_count(&self) -> usize {
        self.open.borrow().len()
    }

    /// Converts the worker's snapshots if the ring is about to recycle what they need, and does its
    /// part of the system's maintenance. To be called again soon while it is busy, and whenever
    /// [`maintenance_due`](Self::maintenance_due) is ready.
    pub fn maintain(&self, position: impl FnOnce() -> Lsn) -> Maintained {
        if let Some(part) = self.system.conversion_due(self.index) {
            let target = part.end;
            self.convert(part);
            self.system.acknowledge_conversion(self.index, target);
        }
        self.system.maintain(position)
    }

    /// Notes that a transaction of this worker has ended.
    pub fn note_end(&self) {
        self.system.maintenance_due(self.index).notify_own();
    }

    /// Ready if maintenance may have work since this was last ready: a transaction has ended on
    /// this worker, or another worker has made progress.
    pub async fn maintenance_due(&self) {
        self.system.maintenance_due(self.index).notified().await;
    }

    /// Notes in each open snapshot which ended transactions of `part` it does not see. Those have
    /// committed after it, or were undone after it, so its reader may have copied a row before.
    /// Transactions from its high number on need no note, stragglers keep their outcomes, and all
    /// see those that are settled. Each word is read once. To read a part of the ring for each of
    /// thousands of snapshots would hold up the worker for a good part of a second.
    fn convert(&self, part: std::ops::Range<u64>) {
        let open = self.open.borrow();
        let Some(oldest) = open.values().next().map(|entry| entry.lsn) else {
            return;
        };
        let (mut hidden, mut newest) = (Vec::new(), oldest);
        for number in part.start.max(self.system.settled().get())..part.end {
            #[cfg(test)]
            self.looked_count.set(self.looked_count.get() + 1);
            let end = match self.system.ring_state(number) {
                RingState::Committed(commit) => Some(Lsn(commit)),
                RingState::RolledBack => self.system.rolled_back_at(number),
                RingState::Moved | RingState::Recycled => None,
                RingState::Active | RingState::Ending => {
                    unreachable!("each word of the part is ended or moved (T2)")
                }
            };
            if let Some(end) = end.filter(|&end| oldest < end) {
                hidden.push((number, end));
                newest = newest.max(end);
            }
        }
        for entry in open.values().take_while(|entry| entry.lsn < newest) {
            let is_its = |&&(number, end): &&(u64, Lsn)| number < entry.high && entry.lsn < end;
            let numbers = hidden.iter().filter(is_its).map(|&(number, _)| number);
            let mut exceptions = entry.exceptions.borrow_mut();
            let known = exceptions.last().copied();
            exceptions.extend(numbers);
            // They are searched by halves.
            assert!(
                known.is_none_or(|known| known < part.start),
                "parts come in order"
            );
        }
    }

    pub(crate) fn is_visible(
        &self,
        entry: &SnapshotEntry,
        writer: TxnId,
    ) -> Result<bool, WriterEnding> {
        if entry.high <= writer.get() {
            return Ok(false);
        }
        Ok(match self.system.fate(writer) {
            Fate::Active | Fate::RolledBack => false,
            Fate::Ending => return Err(WriterEnding(writer)),
            Fate::Committed(commit) => commit <= entry.lsn,
            Fate::Settled => entry
                .exceptions
                .borrow()
                .binary_search(&writer.get())
                .is_err(),
        })
    }

    pub(crate) fn close(&self, entry: &SnapshotEntry) {
        let mut open = self.open.borrow_mut();
        let was_oldest = open
            .first_key_value()
            .is_some_and(|(&first, _)| first == entry.sequence);
        let removed = open.remove(&entry.sequence);
        assert!(removed.is_some(), "a snapshot is closed once");
        if was_oldest {
            let oldest = open.first_key_value().map(|(_, oldest)| oldest.lsn);
            self.system.publish_oldest(self.index, oldest);
            if self.system.is_behind() {
                self.note_end();
            }
        }
    }
}
