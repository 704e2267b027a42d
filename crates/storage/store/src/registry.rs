//! [`Transactions`]: the open transactions of one store handle, found by their keys.
//!
//! Callers hold a transaction as `dyn Transaction` and pass it to tables. A table asks it for its
//! key in the table's own store and finds the store's own transaction here. So no type is cast, and
//! a transaction of several stores answers each of them with the key of its part.

use std::any::Any;
use std::cell::{RefCell, RefMut};
use std::fmt;
use std::rc::Rc;

use crate::{Durability, Outcome, Prepared, StoreId, Transaction, TransactionKey, UndoMark, Xid};

/// The open transactions of a store handle, each of type `T`.
pub struct Transactions<T> {
    /// The store handle. Constant.
    store: StoreId,
    open: RefCell<Places<T>>,
}

/// Where a transaction lives, or the next one of the same key. So beginning one allocates only its
/// handle.
type Place<T> = RefCell<Option<T>>;

struct Places<T> {
    /// By key.
    list: Vec<Rc<Place<T>>>,
    /// Keys that may be given again.
    free: Vec<usize>,
}

impl<T> Places<T> {
    /// A place without a transaction, and its key.
    fn take(&mut self) -> (usize, Rc<Place<T>>) {
        let key = self.free.pop().unwrap_or_else(|| {
            self.list.push(Rc::default());
            self.list.len() - 1
        });
        (key, Rc::clone(&self.list[key]))
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

    /// Registers the transaction that `make` makes; this store's tables find it by the key of the
    /// returned handle. It ends when the handle is dropped.
    pub fn begin(self: &Rc<Self>, make: impl FnOnce() -> T) -> Box<dyn Transaction> {
        let made = make();
        let (key, own) = self.open.borrow_mut().take();
        let before = own.replace(Some(made));
        assert!(before.is_none(), "a key belongs to one transaction");
        Box::new(Handle {
            registry: Rc::clone(self),
            key,
            own,
        })
    }

    /// Calls `act` with this store's own transaction behind the trait.
    ///
    /// # Panics
    /// If the transaction has no part in this store.
    pub fn with<R>(&self, txn: &mut dyn Transaction, act: impl FnOnce(&mut T) -> R) -> R {
        let TransactionKey(key) = txn.key(self.store);
        let own = Rc::clone(&self.open.borrow().list[key]);
        act(&mut own_of(&own))
    }
}

impl<T> Transactions<T> {
    /// Calls `act` with each open transaction and its key, until it returns an answer.
    pub fn find<R>(&self, mut act: impl FnMut(TransactionKey, &mut T) -> Option<R>) -> Option<R> {
        let count = self.open.borrow().list.len();
        (0..count).map(TransactionKey).find_map(|key| {
            let found = self.at(key, |own| act(key, own));
            found.flatten()
        })
    }

    /// Calls `act` with the transaction that has `key` now, if there is one.
    pub fn at<R>(&self, key: TransactionKey, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let place = self.open.borrow().list.get(key.0).map(Rc::clone)?;
        let mut own = place.borrow_mut();
        own.as_mut().map(act)
    }
}

/// The transaction in a place.
fn own_of<T>(place: &Place<T>) -> RefMut<'_, T> {
    RefMut::map(place.borrow_mut(), |own| {
        own.as_mut().expect("a key belongs to an open transaction")
    })
}

/// What a caller holds of a registered transaction.
struct Handle<T> {
    registry: Rc<Transactions<T>>,
    key: usize,
    own: Rc<Place<T>>,
}

impl<T: Transaction> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.own.fmt(f)
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        drop(self.own.take());
        self.registry.open.borrow_mut().free.push(self.key);
    }
}

impl<T: Transaction> Transaction for Handle<T> {
    fn key(&mut self, store: StoreId) -> TransactionKey {
        assert_eq!(
            store, self.registry.store,
            "a table is used with a transaction of its own store"
        );
        TransactionKey(self.key)
    }

    fn begin_statement(&mut self) {
        own_of(&self.own).begin_statement();
    }

    fn end_statement(&mut self) -> Outcome<()> {
        own_of(&self.own).end_statement()
    }

    fn open_snapshot(&mut self) {
        own_of(&self.own).open_snapshot();
    }

    fn mark(&self) -> UndoMark {
        own_of(&self.own).mark()
    }

    fn rollback_to(&mut self, mark: UndoMark) -> Outcome<()> {
        own_of(&self.own).rollback_to(mark)
    }

    fn prepare(&mut self) -> Outcome<Prepared> {
        own_of(&self.own).prepare()
    }

    fn prepare_as(&mut self, xid: &Xid, durability: Durability) -> Outcome<Prepared> {
        own_of(&self.own).prepare_as(xid, durability)
    }

    fn commit(&mut self, durability: Durability) -> Outcome<()> {
        own_of(&self.own).commit(durability)
    }

    fn rollback(&mut self) -> Outcome<()> {
        own_of(&self.own).rollback()
    }

    fn has_changes(&self) -> bool {
        own_of(&self.own).has_changes()
    }

    fn is_active(&self) -> bool {
        own_of(&self.own).is_active()
    }

    fn set_lock_wait_timeout(&mut self, seconds: u64) {
        own_of(&self.own).set_lock_wait_timeout(seconds);
    }

    fn id(&self) -> u64 {
        own_of(&self.own).id()
    }

    fn keep(&mut self, kept: Box<dyn Any>) {
        own_of(&self.own).keep(kept);
    }
}
