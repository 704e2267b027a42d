//! [`Pending`]: how far an operation has come that waits and is called again.

use std::collections::VecDeque;
use std::rc::Rc;

use btree::Tree;
use format::row_header::LobReference;
use format::{PageNo, TxnId, UndoPointer};
use store::{Inserted, Mutation, StoreError};

use crate::lob_memo::LobMemo;
use crate::schema::table_shape::EntryKey;

/// The progress of an operation. A transaction has one operation under way at a time.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Undo count when the operation began its first change.
    pub(crate) begun_at: Option<u64>,
    /// The operation has failed and is being undone to this undo count.
    pub(crate) undo_to: Option<u64>,
    /// The error to return after that. Without an error and a refusal the operation begins again.
    pub(crate) failure: Option<StoreError>,
    /// The row that the change collides with. It is returned once what was done is undone.
    pub(crate) refusal: Option<Duplicate>,
    /// The number of the next step; its meaning is the operation's.
    pub(crate) step: usize,
    /// A large row that is being written.
    pub(crate) overflow: Option<Overflow>,
    /// A large row that is written.
    pub(crate) overflowed: Option<LobReference>,
    /// A hidden row id that was taken.
    pub(crate) row_id: Option<u64>,
    /// The row before the change, if changes are noted for a write set.
    pub(crate) before: Option<Vec<u8>>,
    /// The entries of the version that was replaced.
    pub(crate) old_entries: Vec<EntryKey>,
    /// A row whose key changes has been deleted and is about to be inserted.
    pub(crate) is_moved: bool,
    /// Large rows that were read on the way.
    pub(crate) memo: LobMemo,
    /// Records of purge items, which stand before the change's own, that are written.
    pub(crate) purge_items_noted: usize,
    /// The operation under way is a rollback.
    pub(crate) is_rollback: bool,
    /// The progress of undoing one record; boxed, since each statement makes a `Pending` and few
    /// undo anything.
    pub(crate) undoing: Option<Box<UndoProgress>>,
}

impl Pending {
    /// Begins the steps of the second half of an operation.
    pub(crate) fn reset_steps(&mut self) {
        assert!(self.begun_at.is_some(), "an operation is under way");
        assert!(
            self.undo_to.is_none(),
            "what is being undone has no next half"
        );
        *self = Self {
            begun_at: self.begun_at,
            ..Self::default()
        };
    }
}

/// A row that collides, locked.
#[derive(Debug, Clone)]
pub(crate) struct Duplicate {
    /// Position of the violated index in the definition.
    pub(crate) index: usize,
    /// The row's key.
    pub(crate) key: Box<[u8]>,
}

impl Duplicate {
    pub(crate) fn into_inserted(self) -> Inserted {
        let Self { index, key } = self;
        Inserted::Duplicate { index, key }
    }

    pub(crate) fn into_mutation(self) -> Mutation {
        let Self { index, key } = self;
        Mutation::Duplicate { index, key }
    }
}

/// A large row that is being written, from its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overflow {
    /// The page with the following part; 0 at the end.
    pub(crate) next: PageNo,
    /// Bytes not written yet, from the start.
    pub(crate) rest: usize,
}

/// The progress of undoing one record. Only in memory: after a crash all steps are repeated.
#[derive(Debug, Default)]
pub(crate) struct UndoProgress {
    /// The record's pointer; null before the first.
    pub(crate) pointer: UndoPointer,
    /// The record's bytes.
    pub(crate) bytes: Rc<[u8]>,
    /// Large rows that were read to find the entries.
    pub(crate) memo: LobMemo,
    /// Steps left for entries, once they are known.
    pub(crate) steps: Option<VecDeque<EntryStep>>,
    /// The inserted row is removed, and the record settled.
    pub(crate) is_removed: bool,
    /// What removed entries leave of their writer's lock; set before each call.
    pub(crate) left: LeftLock,
}

/// What an entry that is taken back leaves of its writer's lock of it. That was entered for a
/// waiter, or by the writer behind the lock of another. An abandoned transaction leaves gaps at any
/// level, until its end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftLock {
    /// The gap where it was: the writer's level locks gaps.
    #[default]
    Gap,
    /// Nothing.
    Nothing,
}

impl LeftLock {
    /// The owner whose lock leaves no gap.
    pub(crate) fn leaver(self, writer: TxnId) -> Option<TxnId> {
        (self == LeftLock::Nothing).then_some(writer)
    }
}

/// An entry to be restored.
#[derive(Debug)]
pub(crate) struct EntryStep {
    pub(crate) tree: Tree,
    pub(crate) key: Vec<u8>,
    /// The change has put it, so it is removed; otherwise the change has marked it deleted.
    pub(crate) is_put: bool,
}
