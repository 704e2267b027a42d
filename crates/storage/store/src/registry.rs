//! [`Transactions`]: the open transactions of one store handle, found by their keys.
//!
//! Callers hold a transaction as `dyn Transaction` and pass it to tables. A table asks it for its
//! key in the table's own store and finds the store's own transaction here. So no type is cast, and
//! a transaction of several stores answers each of them with the key of its part.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use crate::{Durability, Outcome, Prepared, StoreId, Transaction, TransactionKey, UndoMark};

/// The open transactions of a store handle, each of type `T`.
pub struct Transactions<T> {
    /// The store handle. Constant.
    store: StoreId,
    open: RefCell<Places<T>>,
}

struct Places<T> {
    /// By key.
    list: Vec<Option<Rc<RefCell<T>>>>,
    /// Keys that may be given again.
    free: Vec<usize>,
}

impl<T> Places<T> {
    /// A place without a transaction.
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() - 1
        })
    }
}

impl<T> fmt::Debug for Transactions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactions")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl<T> Default for Transactions<T> {
    fn default() -> Self {
        let open = Places {
            list: Vec::new(),
            free: Vec::new(),
        };
        Self {
            store: StoreId::unique(),
            open: RefCell::new(open),
        }
    }
}

impl<T: Transaction + 'static> Transactions<T> {
    /// The store handle.
    pub fn store(&self) -> StoreId {
        self.store
    }

    /// Registers the transaction that `make` makes with its key, by which this store's tables find
    /// it. It is removed when the returned handle is dropped.
    pub fn begin(self: &Rc<Self>, make: impl FnOnce(TransactionKey) -> T) -> Box<dyn Transaction> {
        let place = self.open.borrow_mut().take();
        let own = Rc::new(RefCell::new(make(TransactionKey(place))));
        self.open.borrow_mut().list[place] = Some(Rc::clone(&own));
        Box::new(Handle {
            registry: Rc::clone(self),
            place,
            own,
        })
    }

    /// This store's own transaction behind the trait.
    ///
    /// # Panics
    /// If the transaction has no part in this store.
    pub fn of(&self, txn: &mut dyn Transaction) -> Rc<RefCell<T>> {
        let TransactionKey(place) = txn.key(self.store);
        let open = self.open.borrow();
        let own = open.list.get(place).and_then(Option::as_ref);
        Rc::clone(own.expect("a key belongs to an open transaction"))
    }
}

/// What a caller holds of a registered transaction.
struct Handle<T: Transaction> {
    registry: Rc<Transactions<T>>,
    place: usize,
    own: Rc<RefCell<T>>,
}

impl<T: Transaction> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.own.fmt(f)
    }
}

impl<T: Transaction> Drop for Handle<T> {
    fn drop(&mut self) {
        let mut open = self.registry.open.borrow_mut();
        open.list[self.place] = None;
        open.free.push(self.place);
    }
}

impl<T: Transaction> Transaction for Handle<T> {
    fn key(&mut self, store: StoreId) -> TransactionKey {
        self.own.borrow_mut().key(store)
    }

    fn begin_statement(&mut self) {
        self.own.borrow_mut().begin_statement();
    }

    fn end_statement(&mut self) -> Outcome<()> {
        self.own.borrow_mut().end_statement()
    }

    fn open_snapshot(&mut self) {
        self.own.borrow_mut().open_snapshot();
    }

    fn mark(&self) -> UndoMark {
        self.own.borrow().mark()
    }

    fn rollback_to(&mut self, mark: UndoMark) -> Outcome<()> {
        self.own.borrow_mut().rollback_to(mark)
    }

    fn prepare(&mut self) -> Outcome<Prepared> {
        self.own.borrow_mut().prepare()
    }

    fn commit(&mut self, durability: Durability) -> Outcome<()> {
        self.own.borrow_mut().commit(durability)
    }

    fn rollback(&mut self) -> Outcome<()> {
        self.own.borrow_mut().rollback()
    }

    fn has_changes(&self) -> bool {
        self.own.borrow().has_changes()
    }

    fn is_active(&self) -> bool {
        self.own.borrow().is_active()
    }

    fn set_lock_wait_timeout(&mut self, seconds: u64) {
        self.own.borrow_mut().set_lock_wait_timeout(seconds);
    }

    fn id(&self) -> u64 {
        self.own.borrow().id()
    }

    fn keep(&mut self, kept: Box<dyn Any>) {
        self.own.borrow_mut().keep(kept);
    }
}
