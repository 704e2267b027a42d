//! XA transactions: which names are taken, and who has the transactions.
//!
//! ```text
//!   session: Active --END--> Idle --PREPARE--> Prepared --COMMIT, ROLLBACK--> gone
//!              ^---RESUME----'  `--COMMIT ONE PHASE, ROLLBACK--> gone
//!            any, a victim of a deadlock --> RollbackOnly --COMMIT, ROLLBACK--> gone
//!   the session ends: Prepared --> Detached --COMMIT, ROLLBACK of any session--> gone
//! ```
//!
//! (X1) A name is in the server's table from XA START until the transaction's end. Only one session
//! or worker has the transaction.
//! (X2) A detached transaction stays on the worker that it was prepared on: neither it nor the
//! locks of its tables can move. Another worker's session sends its decision there.
//! (X3) A decision that fails leaves the transaction detached, so that somebody may decide again.
//! After a rollback that has failed, COMMIT rolls back, too, and answers with error 1402.

pub(crate) mod branch;
pub(crate) mod detached;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use store::Xid;
use sync::Mutex;

/// The names of all XA transactions of the server (X1).
#[derive(Debug, Default)]
pub(crate) struct XaNames(Mutex<BTreeMap<Xid, Holder>>);

/// Who has an XA transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// The session that began it.
    Session(Stage),
    /// A worker, after the end of that session.
    Worker(usize),
    /// Someone who has decided.
    Decision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    Prepared,
}

impl XaNames {
    fn set(&self, xid: &Xid, holder: Holder) {
        let before = self.0.lock().insert(xid.clone(), holder);
        assert!(before.is_some(), "a name is taken until the end (X1)");
    }

    /// Whether a transaction of this name is there.
    pub(crate) fn has(&self, xid: &Xid) -> bool {
        self.0.lock().contains_key(xid)
    }

    /// Somebody may decide again (X3).
    pub(crate) fn give_back(&self, xid: &Xid, worker: usize) {
        self.set(xid, Holder::Worker(worker));
    }

    /// The transaction is gone.
    pub(crate) fn remove(&self, xid: &Xid) {
        let before = self.0.lock().remove(xid);
        assert!(before.is_some(), "a name is given up once (X1)");
    }

    /// The prepared transactions, in order.
    pub(crate) fn prepared(&self) -> Vec<Xid> {
        let names = self.0.lock();
        let is_prepared = |holder: &Holder| *holder != Holder::Session(Stage::Open);
        let prepared = names.iter().filter(|(_, holder)| is_prepared(holder));
        prepared.map(|(xid, _)| xid.clone()).collect()
    }

    /// Takes a detached transaction for a decision. Returns its worker, or `None` if there is no
    /// such transaction, or if somebody else has it.
    pub(crate) fn take(&self, xid: &Xid) -> Option<usize> {
        match self.0.lock().get_mut(xid) {
            Some(holder) => match *holder {
                Holder::Worker(index) => {
                    *holder = Holder::Decision;
                    Some(index)
                }
                Holder::Session(_) | Holder::Decision => None,
            },
            None => None,
        }
    }

    /// Notes that a worker has a prepared transaction that a former life of the server has left.
    pub(crate) fn note_left(&self, xid: &Xid, worker: usize) {
        let before = self.0.lock().insert(xid.clone(), Holder::Worker(worker));
        assert!(before.is_none(), "a name is prepared once");
    }
}

/// A taken name; it is free again when this is dropped, unless the transaction was detached.
#[derive(Debug)]
pub(crate) struct XaName {
    names: Arc<XaNames>,
    xid: Xid,
    is_detached: bool,
}

impl XaName {
    /// Takes a name for a session, or returns `None` if it is taken.
    pub(crate) fn take(names: &Arc<XaNames>, xid: Xid) -> Option<Self> {
        match names.0.lock().entry(xid.clone()) {
            Entry::Vacant(vacant) => vacant.insert(Holder::Session(Stage::Open)),
            Entry::Occupied(_) => return None,
        };
        Some(Self {
            names: Arc::clone(names),
            xid,
            is_detached: false,
        })
    }

    pub(crate) fn xid(&self) -> &Xid {
        &self.xid
    }

    /// The transaction is prepared.
    pub(crate) fn set_prepared(&self) {
        let holder = Holder::Session(Stage::Prepared);
        self.names.set(&self.xid, holder);
    }

    /// The worker has the transaction from now on.
    pub(crate) fn detach(mut self, worker: usize) -> Xid {
        self.is_detached = true;
        self.names.set(&self.xid, Holder::Worker(worker));
        self.xid.clone()
    }
}

impl Drop for XaName {
    fn drop(&mut self) {
        if !self.is_detached {
            self.names.remove(&self.xid);
        }
    }
}
