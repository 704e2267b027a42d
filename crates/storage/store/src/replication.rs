//! What a store and a replication provider ask of each other.
//!
//! A provider, of the kind of Galera's, gives the write sets of all nodes of a group one order, and
//! says of each whether it conflicts with one before it (*certification*). A store has:
//!
//! ```text
//!   local:    open --certify--> placed ----.
//!   applied:  open --(its place is known)--+--enter--> ordered --leave--> logged
//! ```
//!
//! (P1) A node's outcomes enter its log in the order of their places. Each place is passed once, by
//! a commit, or without an outcome. So the log of a node is always the group's order up to one
//! place, and its last place says which.
//! (P2) Between `enter` and `leave` nothing waits and nothing fails.
//! (P3) What was ordered is applied. A local transaction that gave its locks away after its write
//! set was sent is rolled back and applied again at its place.
//!
//! The terms are those of "The Database State Machine Approach" (Pedone, Guerraoui, Schiper; 2003)
//! and of the wsrep API.

use std::fmt;
use std::sync::Arc;

use crate::{Outcome, TableDefinition};

/// Names a group of nodes and a history of theirs: 16 bytes, shown as a UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub [u8; 16]);

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, byte) in self.0.iter().enumerate() {
            if matches!(number, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A place in the order of a group: all up to it, and nothing behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The history.
    pub group: GroupId,
    /// Counts from 1.
    pub seqno: u64,
}

/// As Galera writes it: `uuid:seqno`.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.group, self.seqno)
    }
}

/// What a transaction has changed, in its order.
#[derive(Debug, Clone, Default)]
pub struct WriteSet {
    /// The rows.
    pub changes: Vec<RowChange>,
    /// The keys by which two write sets conflict.
    pub keys: Vec<CertificationKey>,
}

/// A change of one row. Rows are encoded by their table's layout.
#[derive(Debug, Clone)]
pub struct RowChange {
    /// The table, as the transaction has seen it.
    pub table: Arc<TableDefinition>,
    /// The row before; `None` if it was inserted.
    pub before: Option<Box<[u8]>>,
    /// The row behind; `None` if it was deleted.
    pub after: Option<Box<[u8]>>,
}

/// A key that a transaction has put, changed or removed: of the primary key, or of a unique index.
/// Two write sets conflict if they have one in common.
#[derive(Debug, Clone)]
pub struct CertificationKey {
    /// The table.
    pub table: Arc<TableDefinition>,
    /// Position of the index in the table's definition.
    pub index: usize,
    /// The key, in the form in which its index compares it.
    pub key: Box<[u8]>,
}

/// What certification says of a write set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certified {
    /// It has this place.
    At(Position),
    /// One that was ordered before it has changed the same.
    Refused,
}

/// Names a local transaction to a provider, within one life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Gives the transactions of many nodes one order. Called by all workers. A suspension of it may be
/// dropped unawaited, as any other: its session was killed, or the node ends.
pub trait Provider: fmt::Debug + Send + Sync {
    /// Bytes that a write set may have, rows and keys together. The statement that exceeds them
    /// fails (`WriteSetTooLarge`). Constant.
    fn write_set_bytes_max(&self) -> u64;

    /// Sends a write set, and returns what becomes of it. Suspends until that is known; the caller
    /// then calls again. Once this has returned an answer other than a place, the ticket is over.
    /// An error says that it was not sent.
    fn certify(&self, ticket: Ticket, writes: &Arc<WriteSet>) -> Outcome<Certified>;

    /// Ready when all before `position` have left. The caller leaves it without a wait.
    fn enter(&self, position: Position) -> Outcome<()>;

    /// The outcome of `position` is in the log, or there is none. Its ticket is over.
    fn leave(&self, position: Position);
}
