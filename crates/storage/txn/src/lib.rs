//! Transaction numbers, transactions' outcomes, and what a snapshot sees.
//!
//! A commit's number is the end position of its commit record in the log ([`format::Lsn`]), so
//! visibility, durability and replication share one order. A snapshot is that number, loaded once.
//! A row carries the number of the transaction that wrote it. One load of [`sync::CommitRing`]
//! returns that transaction's outcome. Nothing is copied to open a snapshot, and closing one is
//! local to its worker.
//!
//! Three numbers divide the transactions:
//!
//! ```text
//!   1 ........ settled ........ low ................ next
//!   ended, and      | below the ring: see  | in the ring
//!   visible to all  | exceptions and       |
//!                   | stragglers           |
//! ```
//!
//! Usually `settled` runs ahead of `low`, and words are recycled once every snapshot sees their
//! outcomes. `low` passes `settled` only when an old snapshot or a long transaction holds `settled`
//! back while the ring fills. Then, and only then:
//!
//! (T1) Each transaction in the recycled part that is still active becomes a *straggler*: its state
//! moves to a small ordered map.
//! (T2) After that each worker notes, in each of its open snapshots, which ended transactions of
//! that part the snapshot must not see. These are its *exceptions*: at most those that were active
//! when it was opened. Then the worker acknowledges. When all have, the words are recycled.
//! (T3) A snapshot opened after its worker's acknowledgement has a number not smaller than the end
//! (the commit number, or the log's position when all was undone) of any transaction of that part
//! except the stragglers.
//!
//! Horizon rules (they exclude the races of MariaDB's MDEV-15246):
//! (H1) A worker publishes a lower bound for its oldest snapshot before it loads the number of the
//! snapshot, with a sequentially consistent fence between both.
//! (H2) The computation of the horizon reads the log's position first, then fences, then reads what
//! the workers have published.

#![forbid(unsafe_code)]

mod metrics;
mod snapshot;
mod system;
mod worker;

pub use snapshot::Snapshot;
pub use system::{Fate, Maintained, RING_LENGTH_DEFAULT, TransactionSystem, Visibility};
pub use worker::{TransactionWorker, WriterEnding};

#[cfg(test)]
mod tests;
