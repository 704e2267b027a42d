//! Which transaction may use a row now: implicit locks (the id in the row) and explicit ones.
//!
//! Every function here is called with the row's leaf latched, so the id and the locks seen belong
//! together. A writer checks and writes under the same exclusive latch. A locking reader reads and
//! enters its lock under the same shared latch. So neither can act between the other's check and
//! action. A row belongs to its writer until the writer's outcome is published: others also wait
//! for a writer that is writing its commit record. Nothing here waits. A lock that is not free is
//! returned as a suspension, which the caller returns after it has dropped the latch.

use std::time::Duration;

use format::{IndexId, TxnId};
use lock::{Acquired, Converted, LockError, LockExtent, LockKind, LockMode, LockName};
use store::{LockWait, Outcome, RowLock, StoreError};

use crate::transaction::EngineTransaction;
use crate::worker::lock_suspend;

/// The result of a check of the locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Go on.
    Granted,
    /// The writer in the row has just ended: read the row again.
    Changed,
    /// Another has it, and the caller does not wait: leave the row out.
    Skip,
}

/// The names of a row for locks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowName<'a> {
    /// The tree.
    pub(crate) index: IndexId,
    /// The key in it.
    pub(crate) key: &'a [u8],
    /// The writer of the newest version; `TxnId::NONE` for a key without a row.
    pub(crate) writer: TxnId,
}

/// The lock that a read requests.
pub(crate) fn record_lock(lock: RowLock) -> LockKind {
    let mode = if lock == RowLock::Shared {
        LockMode::Shared
    } else {
        LockMode::Exclusive
    };
    LockKind {
        mode,
        extent: LockExtent::Record,
    }
}

impl EngineTransaction {
    /// A writer's check: no other transaction has the row locked, implicitly or explicitly. Makes
    /// no lock entry unless it must wait.
    pub(crate) fn check_write(&mut self, row: RowName<'_>) -> Outcome<Access> {
        if self.id == Some(row.writer) {
            return Ok(Access::Granted);
        }
        let name = LockName::key(row.index, row.key);
        if !self.worker.shared.txns.is_active(row.writer) {
            let own = self.id.expect("a writer has an id");
            if !self.worker.shared.locks.is_record_locked(own, &name) {
                return Ok(Access::Granted);
            }
        }
        self.lock_row(row, LockKind::EXCLUSIVE_RECORD, LockWait::Wait)
    }

    /// Locks a row explicitly.
    pub(crate) fn lock_row(
        &mut self,
        row: RowName<'_>,
        kind: LockKind,
        wait: LockWait,
    ) -> Outcome<Access> {
        let own = self.ensure_id()?;
        if own == row.writer {
            return Ok(Access::Granted);
        }
        let name = LockName::key(row.index, row.key);
        let shared = &self.worker.shared;
        if shared.txns.is_active(row.writer) {
            if self.patience(wait).is_zero() {
                // The writer's lock is entered only for transactions that wait for it.
                return refused(wait);
            }
            let is_active = |holder| shared.txns.is_active(holder);
            match shared.locks.convert_implicit(row.writer, &name, is_active) {
                Converted::Entered => {}
                Converted::Ended => return Ok(Access::Changed),
                Converted::Full => return Err(StoreError::LockTableFull.into()),
            }
        }
        let access = self.acquire(&name, kind, wait)?;
        debug_assert!(
            access != Access::Granted || !self.worker.shared.txns.is_active(row.writer),
            "a locked row has no change of others under way"
        );
        Ok(access)
    }

    /// Asks for a lock by name.
    pub(crate) fn acquire(
        &mut self,
        name: &LockName,
        kind: LockKind,
        wait: LockWait,
    ) -> Outcome<Access> {
        let patience = self.patience(wait);
        let now_ns = self.worker.now_ns();
        let weight = self.undo_count;
        let locks = self
            .locks
            .as_mut()
            .expect("an id comes with a place for locks");
        let acquired = locks.acquire(name, kind, patience, weight, now_ns);
        self.record_wait();
        match acquired {
            Ok(Acquired::Held | Acquired::Granted) => Ok(Access::Granted),
            Ok(Acquired::Wait(future)) => {
                assert!(
                    !patience.is_zero(),
                    "a caller that does not wait is not queued"
                );
                Err(lock_suspend(&self.worker.options.sleep, future, patience).into())
            }
            Err(LockError::Timeout) => Err(StoreError::LockWaitTimeout.into()),
            Err(LockError::Deadlock) => Err(StoreError::Deadlock.into()),
            Err(LockError::Full) => Err(StoreError::LockTableFull.into()),
            Err(LockError::Busy) => refused(wait),
        }
    }

    /// How long to wait for a lock; zero means not at all.
    fn patience(&self, wait: LockWait) -> Duration {
        match wait {
            LockWait::Wait => Duration::from_secs(self.options.lock_wait_timeout_s),
            LockWait::NoWait | LockWait::SkipLocked => Duration::ZERO,
        }
    }
}

/// The answer to a caller that does not wait for another's row.
fn refused(wait: LockWait) -> Outcome<Access> {
    match wait {
        LockWait::SkipLocked => Ok(Access::Skip),
        LockWait::NoWait => Err(StoreError::LockNotAvailable.into()),
        LockWait::Wait => Err(StoreError::LockWaitTimeout.into()),
    }
}
