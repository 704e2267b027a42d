//! Row and gap locks by logical name, with waiting that suspends a session and never a thread.
//!
//! A lock names an index and a key, not a page and a slot, so that splits, merges and eviction move
//! nothing. Only two events transfer locks: an insert splits a gap ([`LockTable::split_gap`]) and
//! the removal of a key joins two ([`LockTable::join_gap`]). The engine takes no gap locks yet, so
//! it calls neither, nor [`OwnerLocks::release_one`].
//!
//! **Implicit locks.** An uncontended write makes no entry here: the transaction id in the row is
//! the lock. Who meets the id of an active transaction calls [`LockTable::convert_implicit`],
//! which enters the exclusive lock on the holder's behalf, and then waits for it like for any
//! other. The race with the holder's end is closed as follows:
//!
//! (I1) The converter puts the name on the holder's list and asks, under that list's mutex, whether
//! the holder is still active; the holder publishes how it has ended and then takes the list under
//! the same mutex. So either the converter finds the holder ended (and reads the row again), or the
//! holder finds the name. A holder that is taking its commit number is active: its commit may yet
//! not come to be. An owner releases its own locks before it takes this list.
//!
//! **Queues.** (I2) A lock's waiters are granted first come, first served; a request waits behind
//! each earlier request that it conflicts with, granted or not. (I3) A waiter has one verdict,
//! given under its shard's mutex. (I4) At most one shard mutex is held at a time, none while a
//! waker is called.
//!
//! **Deadlocks.** Whoever adds a wait, or enters a lock on another's behalf, breaks the cycles that
//! this closes before going on (see `deadlock`). Nothing looks for cycles later.
//!
//! **Memory.** Each lock that is on a list, its owner's own or that of what others entered for it,
//! counts as what it takes. A request for which there is no room is refused ([`LockError::Full`]),
//! and its owner must roll back. An owner that holds much is refused while there is still room for
//! others: what one owner may hold is bounded by what is left. So the transaction that fills the
//! memory is the one that fails.

#![forbid(unsafe_code)]

mod deadlock;
mod mode;
mod name;
mod owner;
mod queue;
mod table;
mod waiter;

pub use mode::{LockExtent, LockKind, LockMode};
pub use name::LockName;
pub use owner::{Acquired, LockError, LockFuture, OwnerLocks};
pub use table::{Converted, LockStatistics, LockTable, Request};
pub use waiter::Verdict;

#[cfg(test)]
mod tests;
