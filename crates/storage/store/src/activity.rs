//! What a store shows of its open transactions, their locks and its last deadlocks.
//!
//! A store knows transactions and locks, and the caller knows clients and statements. They meet at
//! a [`ClientId`]. The caller passes it with the options of a transaction, and the store returns
//! it with what it shows. For statements that wait in a deadlock the store asks a [`Witness`].

use std::fmt;

use crate::{ClientId, Isolation, TableName};

/// Knows what clients do at the moment.
pub trait Witness: fmt::Debug + Send + Sync {
    /// The beginning of the statement that the client executes; `None` if the client is not known.
    /// A store may have a page latched meanwhile, so the answer must not wait for the store.
    fn statement(&self, client: ClientId) -> Option<String>;
}

/// The open transactions and the waits of a moment.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// In no order.
    pub transactions: Vec<OpenTransaction>,
    /// Locks that are waited for, and those that block them. Each is listed once.
    pub locks: Vec<ShownLock>,
    /// Who waits for whom.
    pub waits: Vec<ShownWait>,
}

/// A transaction that a statement has used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Its number; 0 if it has neither changed nor locked anything.
    pub id: u64,
    /// Whose it is.
    pub client: ClientId,
    /// When it began, in microseconds since 1970.
    pub began_us: u64,
    /// What it sees of others.
    pub isolation: Isolation,
    /// It may not change anything.
    pub is_read_only: bool,
    /// It is being undone.
    pub is_rolling_back: bool,
    /// Changes that a rollback would undo.
    pub change_count: u64,
    /// Rows and gaps that it has locked and keeps.
    pub lock_count: u64,
    /// Lock objects that InnoDB would have for them, those of tables included.
    pub lock_object_count: u64,
    /// Tables that it has locked rows in, or changed.
    pub table_count: u64,
    /// Memory of its locks, in bytes.
    pub lock_bytes: u64,
}

/// What a lock forbids, as InnoDB's names say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownExtent {
    /// The entry and the gap before it.
    NextKey,
    /// The entry alone.
    Record,
    /// The gap before the entry.
    Gap,
    /// The wish to insert into the gap before the entry.
    InsertIntention,
}

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLock {
    /// Names the lock among those that are shown.
    pub id: String,
    /// The transaction that has it, or waits for it.
    pub transaction: u64,
    /// The table and the index; `None` if the table is gone.
    pub index: Option<(TableName, String)>,
    /// Others may share it.
    pub is_shared: bool,
    /// What is locked at the key.
    pub extent: ShownExtent,
    /// The key's values; `None` is the place behind the last entry.
    pub key: Option<String>,
    /// Whether it is held; if not, it is waited for.
    pub is_held: bool,
}

/// A transaction that waits, and one of the locks that block it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownWait {
    /// The position of the lock that is waited for in [`Activity::locks`].
    pub wanted: usize,
    /// The position of the lock that blocks it.
    pub blocker: usize,
    /// When the wait began, in microseconds since 1970.
    pub since_us: u64,
}

/// A deadlock whose victim was rolled back.
#[derive(Debug, Clone)]
pub struct ShownDeadlock {
    /// Counts deadlocks since the start: the first is 1.
    pub number: u64,
    /// When it was found, in microseconds since 1970.
    pub at_us: u64,
    /// Each waits for the next, and the last for the first. The first has closed the cycle.
    pub members: Vec<ShownMember>,
    /// Members of a very long cycle that are left out.
    pub left_out_count: usize,
    /// The position of the one that was rolled back.
    pub victim: usize,
}

/// One side of a deadlock.
#[derive(Debug, Clone)]
pub struct ShownMember {
    /// Whose transaction it is.
    pub client: ClientId,
    /// The statement that waited, if the witness knew it.
    pub statement: Option<String>,
    /// The lock that it waited for.
    pub wanted: ShownLock,
    /// How long it had waited, in microseconds.
    pub waited_us: u64,
    /// The lock of the next member that blocked it.
    pub blocker: Option<ShownLock>,
    /// Its work: changes and locks, as the victim is chosen by it.
    pub weight: u64,
}
