//! Row and gap locks by logical name, with waiting that suspends a session and never a thread.
//!
//! A lock names an index and a key, not a page and a slot, so splits, merges and eviction move no
//! locks. Only two events transfer locks: an insert splits a gap ([`OwnerLocks::split_gap`]), and
//! the removal of a key joins two ([`LockTable::join_gap`]). Both are called with the leaf latched
//! exclusively. Without any lock in an index they cost nothing ([`LockTable::has_locks`]).
//!
//! **Implicit locks.** An uncontended write makes no entry here: the transaction id in the row is
//! the lock. A transaction that meets the id of an active one calls
//! [`LockTable::convert_implicit`], which enters the exclusive lock for the holder. Then it waits
//! for that lock like for any other. The race with the holder's end is closed as follows:
//!
//! (I1) The converter puts the name on the holder's list and asks, under that list's mutex, whether
//! the holder is still active. The holder publishes its outcome and then takes the list under the
//! same mutex. So either the converter finds the holder ended (and reads the row again), or the
//! holder finds the name. It may find the name before the lock is in the queue. So the converter
//! asks again once the lock is there, and takes it back from a holder that has ended. Whether the
//! list still exists says nothing: other threads may make it again for an ended holder. A holder
//! that is taking its commit number is active: the commit may still fail. An owner releases its own
//! locks before it takes this list.
//!
//! **Queues.** (I2) A lock's waiters are granted first come, first served. A request waits behind
//! each earlier request that it conflicts with, granted or not. (I3) A waiter has one verdict,
//! given under its shard's mutex. (I4) At most one shard mutex is held at a time, and none while a
//! waker is called.
//!
//! **Deadlocks.** A thread that adds a wait, or enters a lock for another owner, breaks the cycles
//! that this closes before it goes on (see `deadlock`). There is no later search for cycles.
//! Who waits for whom, and the last deadlocks, are shown by `report`.
//!
//! **Many locks.** An owner with more than some thousand locks keeps its newest as objects. The
//! others are numbers of 32 bits in sets, 5 to 6 bytes each (see `compact` for what was weighed,
//! and `table::compaction` for the rules). As an implicit lock, such a lock is entered in its queue
//! by the first request that conflicts with it. Names that share a number are locked together, so
//! a request may wait without need, with a chance of 1 in 440,000 beside ten million locks.
//!
//! **Memory.** Each lock on a list counts with its size: on its owner's own list, and on the list
//! of what others entered for that owner. A request is refused if there is no room
//! ([`LockError::Full`]), and its owner must roll back. What one owner may hold is bounded by what
//! is left, so an owner that holds much is refused while others still have room. So the transaction
//! that fills the memory is the one that fails.

#![forbid(unsafe_code)]

mod compact;
mod deadlock;
mod footprint;
mod metrics;
mod mode;
mod name;
mod owner;
mod queue;
mod report;
mod shards;
mod table;
mod waiter;

pub use mode::{LockExtent, LockKind, LockMode};
pub use name::LockName;
pub use owner::{Acquired, Ask, LockError, LockFuture, OwnerLocks, Term};
pub use report::{Deadlock, DeadlockMember, OwnedLock, Wait};
pub use shards::LockStatistics;
pub use table::{Converted, LockTable};
pub use waiter::Verdict;

#[cfg(test)]
mod tests;
