//! What a transaction keeps for a group of nodes; see `replication`.

use std::rc::Rc;
use std::sync::Arc;

use store::Transactions;
use store::replication::{CertificationKey, Position, Provider, RowChange, Ticket, WriteSet};

use crate::transaction::EngineTransaction;

/// What a transaction has to do with the group.
#[derive(Debug)]
pub(crate) struct Replication {
    /// Constant.
    pub(crate) provider: Arc<dyn Provider>,
    /// The transactions of its worker, among which a write set's own is when it is applied.
    /// Constant.
    pub(crate) registry: Rc<Transactions<EngineTransaction>>,
    /// How far it is.
    pub(crate) stage: Stage,
    /// What it has changed, or is to change.
    pub(crate) writes: Arc<WriteSet>,
    /// For each change that was noted, where it ends.
    marks: Vec<Mark>,
    /// Bytes of `writes`.
    pub(crate) bytes: u64,
    /// Changes that were applied.
    pub(crate) applied: usize,
}

/// How far it is; see `replication`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Open,
    Sent(Ticket),
    Placed(Position),
    Displaced(Ticket),
    Applying(Position),
}

/// What belongs to a change.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// The transaction's undo count behind it.
    undo_count: u64,
    /// Keys of the write set behind it.
    key_count: usize,
    /// Bytes of the write set behind it.
    bytes: u64,
}

impl Replication {
    /// Of a new local transaction.
    pub(crate) fn new(
        provider: Arc<dyn Provider>,
        registry: Rc<Transactions<EngineTransaction>>,
    ) -> Self {
        Self {
            provider,
            registry,
            stage: Stage::Open,
            writes: Arc::default(),
            marks: Vec::new(),
            bytes: 0,
            applied: 0,
        }
    }

    /// The same for a transaction that applies a write set at its place.
    pub(crate) fn applying(self, position: Position, writes: Arc<WriteSet>) -> Self {
        assert_eq!(self.stage, Stage::Open, "it has changed nothing");
        Self {
            stage: Stage::Applying(position),
            writes,
            ..self
        }
    }

    /// The part of the next transaction of the same session.
    pub(crate) fn next(&self) -> Self {
        Self::new(Arc::clone(&self.provider), Rc::clone(&self.registry))
    }

    /// Forgets what belongs to the transaction that has ended.
    pub(crate) fn reset(&mut self) {
        *self = self.next();
    }

    /// Takes out the changes that were undone.
    pub(crate) fn cut(&mut self, undo_count: u64) {
        if self.stage != Stage::Open {
            return;
        }
        assert_eq!(
            self.marks.len(),
            self.writes.changes.len(),
            "each has its mark"
        );
        let kept = self
            .marks
            .partition_point(|mark| mark.undo_count <= undo_count);
        if kept == self.marks.len() {
            return;
        }
        self.marks.truncate(kept);
        let writes = Arc::make_mut(&mut self.writes);
        let last = self.marks.last();
        writes.changes.truncate(kept);
        writes.keys.truncate(last.map_or(0, |mark| mark.key_count));
        self.bytes = last.map_or(0, |mark| mark.bytes);
    }

    /// Adds a change, behind which the transaction has this undo count.
    pub(crate) fn note(&mut self, change: RowChange, keys: Vec<CertificationKey>, undo_count: u64) {
        assert_eq!(self.stage, Stage::Open, "what was sent does not change");
        let images = [&change.before, &change.after];
        let rows = images.into_iter().flatten().map(|row| row.len());
        let bytes: usize = rows.chain(keys.iter().map(|key| key.key.len())).sum();
        self.bytes += stdx::to_u64(bytes);
        let writes = Arc::make_mut(&mut self.writes);
        writes.changes.push(change);
        writes.keys.extend(keys);
        self.marks.push(Mark {
            undo_count,
            key_count: writes.keys.len(),
            bytes: self.bytes,
        });
    }
}
