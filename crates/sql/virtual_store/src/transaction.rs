//! [`Nothing`]: a transaction of a store that cannot be changed.

use std::any::Any;

use store::{Durability, Outcome, Prepared, StoreId, Transaction, TransactionKey, UndoMark, Xid};

/// See the module's head. The registry names it; so it has no key of its own.
#[derive(Debug, Default)]
pub(crate) struct Nothing {
    /// A statement has used the store.
    is_active: bool,
    /// What lives until the end.
    kept: Vec<Box<dyn Any>>,
}

impl Nothing {
    fn end(&mut self) {
        self.is_active = false;
        self.kept.clear();
    }
}

impl Transaction for Nothing {
    fn key(&mut self, _: StoreId) -> TransactionKey {
        unreachable!("the registry's handle answers")
    }

    fn begin_statement(&mut self) {
        self.is_active = true;
    }

    fn open_snapshot(&mut self) {
        self.is_active = true;
    }

    fn mark(&self) -> UndoMark {
        UndoMark(0)
    }

    fn rollback_to(&mut self, _: UndoMark) -> Outcome<()> {
        Ok(())
    }

    fn prepare(&mut self) -> Outcome<Prepared> {
        Ok(Prepared::Nothing)
    }

    fn prepare_as(&mut self, _: &Xid, _: Durability) -> Outcome<Prepared> {
        Ok(Prepared::Nothing)
    }

    fn commit(&mut self, _: Durability) -> Outcome<()> {
        self.end();
        Ok(())
    }

    fn rollback(&mut self) -> Outcome<()> {
        self.end();
        Ok(())
    }

    fn has_changes(&self) -> bool {
        false
    }

    fn is_active(&self) -> bool {
        self.is_active
    }

    fn set_lock_wait_timeout(&mut self, _: u64) {}

    fn id(&self) -> u64 {
        0
    }

    fn keep(&mut self, kept: Box<dyn Any>) {
        self.kept.push(kept);
    }
}
