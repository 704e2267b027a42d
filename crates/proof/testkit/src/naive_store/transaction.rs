//! A transaction of the naive store: the former rows of what it has changed.

use std::any::Any;
use std::rc::Rc;

use store::{
    Durability, Outcome, Prepared, StoreError, StoreId, Transaction, TransactionKey, UndoMark, Xid,
};

use super::Inner;

/// The former row of a key; `None` if there was no row.
#[derive(Debug)]
pub(super) struct Undo {
    pub(super) table: u64,
    pub(super) key: Vec<u8>,
    pub(super) before: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(super) struct NaiveTransaction {
    inner: Rc<Inner>,
    /// What it has changed, in order.
    pub(super) undo: Vec<Undo>,
    /// Changes of a remote store that are not sent yet.
    pub(super) kept_back: usize,
    /// The key of the row that came with the last refused insert.
    pub(super) sent: Option<Vec<u8>>,
    is_active: bool,
    /// Dropped with it.
    kept: Option<Box<dyn Any>>,
}

impl NaiveTransaction {
    pub(super) fn new(inner: Rc<Inner>) -> Self {
        Self {
            inner,
            undo: Vec::new(),
            kept_back: 0,
            sent: None,
            is_active: false,
            kept: None,
        }
    }

    fn undo_to(&mut self, mark: UndoMark) {
        while stdx::to_u64(self.undo.len()) > mark.0 {
            let Undo { table, key, before } = self.undo.pop().expect("it is not empty");
            let tables = self.inner.tables.borrow();
            let Some(table) = tables.get(&table) else {
                continue;
            };
            match before {
                Some(row) => table.rows.borrow_mut().insert(key, row),
                None => table.rows.borrow_mut().remove(&key),
            };
        }
    }
}

impl Drop for NaiveTransaction {
    fn drop(&mut self) {
        self.undo_to(UndoMark(0));
    }
}

impl Transaction for NaiveTransaction {
    fn key(&mut self, _: StoreId) -> TransactionKey {
        unreachable!("tables ask the handle of the transaction")
    }

    fn begin_statement(&mut self) {
        self.is_active = true;
    }

    fn end_statement(&mut self) -> Outcome<()> {
        self.inner.operate()?;
        if self.inner.fails_at_end.take() {
            return Err(StoreError::DiskFull.into());
        }
        self.kept_back = 0;
        let ended = &self.inner.statements_ended;
        ended.set(ended.get() + 1);
        Ok(())
    }

    fn open_snapshot(&mut self) {
        self.is_active = true;
    }

    fn mark(&self) -> UndoMark {
        UndoMark(stdx::to_u64(self.undo.len()))
    }

    fn rollback_to(&mut self, mark: UndoMark) -> Outcome<()> {
        self.undo_to(mark);
        Ok(())
    }

    /// Its changes are made already, and nothing of this store survives a crash.
    fn prepare(&mut self) -> Outcome<Prepared> {
        if self.undo.is_empty() {
            return Ok(Prepared::Nothing);
        }
        if self.inner.refuses_to_prepare.get() {
            let what = "a commit of several stores";
            return Err(StoreError::NotSupported { what }.into());
        }
        self.inner.operate()?;
        self.inner.prepared.set(self.inner.prepared.get() + 1);
        Ok(Prepared::Ready)
    }

    fn prepare_as(&mut self, _: &Xid, _: Durability) -> Outcome<Prepared> {
        self.prepare()
    }

    fn commit(&mut self, _: Durability) -> Outcome<()> {
        if !self.undo.is_empty() {
            self.inner.operate()?;
        }
        self.undo.clear();
        self.is_active = false;
        Ok(())
    }

    fn rollback(&mut self) -> Outcome<()> {
        self.undo_to(UndoMark(0));
        self.is_active = false;
        Ok(())
    }

    fn has_changes(&self) -> bool {
        !self.undo.is_empty()
    }

    fn is_active(&self) -> bool {
        self.is_active
    }

    fn set_lock_wait_timeout(&mut self, _: u64) {}

    fn id(&self) -> u64 {
        0
    }

    fn keep(&mut self, kept: Box<dyn Any>) {
        self.kept = Some(kept);
    }
}
