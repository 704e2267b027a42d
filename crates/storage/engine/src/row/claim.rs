//! Claims: rows that UPDATE and DELETE change without a lock object.
//!
//! A statement that names one row by its whole key reads it without a lock. The transaction keeps
//! the version that was read, as its claim. The change compares it with the row under the leaf's
//! exclusive latch, and fails if another was faster. Then the caller locks the row and reads it
//! again. After the change, the transaction's id in the row is the lock, as after an insert. Who
//! waits for it enters it for the transaction (`lock::LockTable::convert_implicit`).
//!
//! (C1) A claim is what the last fetch of the transaction has read. Each fetch drops the one
//! before, and a change ends its own, so no change is compared with a version that its caller has
//! not read. A function's statements are parts of one statement: nothing else would end it there.
//! (C2) InnoDB keeps the lock of a row whose change is undone before the transaction's end. The id
//! is gone from the row then, so the lock is entered first ([`EngineTransaction::keep_lock`]).
//!
//! Refused: a claim of a row that has pages of its own. They may be given back while it is read.

use btree::damaged;
use format::row_header::RowHeader;
use format::undo::{UndoKind, UndoRecord};
use format::{IndexId, TxnId, UndoPointer};
use lock::{Converted, LockName, OwnerLocks};
use stdx::planted::{Mistake, is_planted};
use store::{Interrupt, Mutation, Outcome, StoreError};

use crate::row::conflict::WRITERS_LOCK;
use crate::row::write::RowPlace;
use crate::transaction::EngineTransaction;
use crate::transaction::claim::Claim;
use crate::undo_log::page_of;

/// What a transaction claims of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Claimed<'c> {
    /// Nothing: it has the row locked, or locks it now.
    Nothing,
    /// This version: header and body.
    Version(&'c [u8]),
    /// A version that is not the newest any more.
    Lost,
}

impl EngineTransaction {
    /// Claims a version that was just read of the row with this key. Returns false if the row must
    /// be locked instead: another has it, or a lock of it.
    pub(crate) fn claim(&mut self, index: IndexId, key: &[u8], bytes: &[u8]) -> bool {
        assert!(self.claim.is_none(), "a fetch drops the claim before (C1)");
        let Some((header, _)) = RowHeader::split(bytes) else {
            return false;
        };
        let shared = &self.worker.shared;
        let is_own = self.id == Some(header.txn);
        // Whoever has waited for the lock of the row gets it, and fetches what became of the wait.
        let has_waited = self.locks.as_ref().is_some_and(OwnerLocks::has_pending);
        if header.is_deleted || header.is_spilled || has_waited {
            return false;
        }
        if !is_own && shared.txns.is_active(header.txn) {
            return false;
        }
        let own = self.id.unwrap_or(TxnId::NONE);
        let is_locked = || {
            let name = LockName::key(index, key);
            shared.locks.is_record_locked(own, &name)
        };
        if shared.locks.has_locks(index) && is_locked() {
            return false;
        }
        self.claim = Some(Claim {
            index,
            key: key.to_vec(),
            bytes: bytes.to_vec(),
            header,
            is_lost: false,
        });
        true
    }

    /// What it claims of the row at a place.
    pub(crate) fn claimed(&self, place: RowPlace<'_>) -> Claimed<'_> {
        match self.claim_of(place) {
            None => Claimed::Nothing,
            Some(claim) if claim.is_lost => Claimed::Lost,
            Some(claim) => Claimed::Version(&claim.bytes),
        }
    }

    fn claim_of(&self, place: RowPlace<'_>) -> Option<&Claim> {
        let claim = self.claim.as_ref()?;
        (claim.index == place.tree.index && claim.key == place.key).then_some(claim)
    }

    /// Notes that the row which it claims is another version.
    pub(crate) fn lose_claim(&mut self) {
        let claim = self.claim.as_mut();
        claim.expect("it has claimed the row").is_lost = true;
    }

    /// Whether the newest version of the row at a place, or none, is another one than it claims.
    pub(crate) fn has_lost(&self, place: RowPlace<'_>, newest: Option<RowHeader>) -> bool {
        if is_planted(Mistake::TrustsClaims) {
            return false;
        }
        let claim = self.claim_of(place);
        claim.is_some_and(|claim| claim.is_lost || newest != Some(claim.header))
    }

    /// Counts the lock that a change of a claimed row has put into it: for the choice of a
    /// deadlock's victim, and for `INNODB_TRX`.
    pub(crate) fn count_claim(&mut self, place: RowPlace<'_>, before: RowHeader) {
        let own = self.id.expect("a writer has an id");
        if own == before.txn || self.claim_of(place).is_none() {
            return;
        }
        let (table, index) = (&self.worker.shared.locks, place.tree.index);
        let is_held = || {
            let name = LockName::key(index, place.key);
            table.is_held(own, &name, WRITERS_LOCK)
        };
        if table.has_locks(index) && is_held() {
            return;
        }
        let locks = self.locks.as_mut().expect("an id comes with locks");
        locks.count_implicit(index);
        self.show_locks();
    }

    /// A change that has an outcome ends the claim (C1). One that waits goes on with it. If the row
    /// was lost, it stays lost until the caller has it confirmed.
    pub(crate) fn end_claim(&mut self, outcome: &Outcome<Mutation>) {
        match outcome {
            Err(Interrupt::Suspend(_)) => {}
            Ok(Mutation::Changed) => {
                let is_lost = self.claim.as_ref().is_some_and(|claim| claim.is_lost);
                assert!(is_lost, "a row that was not claimed is locked");
            }
            Ok(_) | Err(Interrupt::Error(_)) => self.claim = None,
        }
    }

    /// Before the record at `pointer` is undone while the transaction goes on: the row that it
    /// leads back to stays locked (C2).
    pub(crate) fn keep_lock(&mut self, pointer: UndoPointer) -> Outcome<()> {
        assert!(!pointer.is_null(), "there is something to be undone");
        let progress = self.pending.undoing.get_or_insert_default();
        let bytes = self.worker.undo_bytes(pointer, progress)?;
        let record = UndoRecord::decode(&bytes)
            .ok_or_else(|| damaged(page_of(pointer), "no undo record"))?;
        let is_change = matches!(record.kind, UndoKind::Update | UndoKind::Delete);
        let own = self.id.expect("who has written has an id");
        if !is_change || record.is_settled || own == record.old_header.txn {
            return Ok(());
        }
        let Some(table) = self.worker.undo_table(record.table) else {
            return Ok(());
        };
        let name = LockName::key(table.tree.index, record.key);
        let locks = &self.worker.shared.locks;
        if locks.is_held(own, &name, WRITERS_LOCK) {
            return Ok(());
        }
        // As a waiter would enter it. No other owner can have it.
        match locks.convert_implicit(own, &name, |_| true) {
            Converted::Entered => Ok(()),
            Converted::Full => Err(StoreError::LockTableFull.into()),
            Converted::Ended => unreachable!("its own transaction goes on"),
        }
    }
}
