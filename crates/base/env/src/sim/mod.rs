//! The simulated world: a disk, a clock and an executor in one thread, decided by one seed.
//!
//! A run is a function of its seed. The same calls with the same seed meet the same faults, the
//! same completion order and the same state after a crash.
//!
//! # The fault model
//!
//! [`SimDisk`] may do the following, and nothing more. If our code fails within it, that is our
//! bug.
//!
//! (F1) **Un-synced writes.** At a crash each write that is not durable (I1 of `disk`) survives
//!      whole, in part or not at all, independently of other writes. A part is a set of units of
//!      512 or of 4096 bytes, aligned, drawn for each crash; a unit is never torn. A write under
//!      way counts as un-synced, durable or not. Cut or grown lengths and allocations that are not
//!      synced survive or do not.
//! (F2) **Names.** At a crash a name that was created, renamed or removed without a later
//!      `sync_directory` of its parent is in its old or its new state, independently of other
//!      names. A rename is one step. A directory itself is durable at once. A file whose name is
//!      gone is gone.
//! (F3) **EIO.** A read, write or sync fails with the chance that [`Faults`] gives. A failed write
//!      has written any of its units. After a failed sync some of the un-synced writes never become
//!      durable, though they can be read until the crash. A later sync that succeeds does not save
//!      them.
//! (F4) **ENOSPC.** The lengths of all files may not exceed the capacity. What was allocated is
//!      kept.
//! (F5) **Slowness.** An operation takes a time drawn from the given range. Operations under way
//!      complete in the order of these times, not of their starts. A dropped future's operation is
//!      still carried out.
//! (F6) **Damage**, only where a test asks for it by [`SimDisk::damage`]: bits on the medium turn.
//! (F7) **Lost flushes**, only where a test asks for them by [`SimDisk::lose_flushes`]: a write
//!      with sync or a sync is confirmed and has made nothing durable. No engine can hold on such a
//!      disk; it proves that a simulation would find a flush that is missing.
//!
//! What does not happen: a durable write is lost, a unit is neither old nor new, a read returns
//! something other than the present contents, a name is torn.

mod clock;
mod content;
mod disk;
mod executor;
mod late;
mod names;
mod seeds;
mod world;

#[cfg(test)]
mod tests;

pub use clock::SimClock;
pub use disk::SimDisk;
pub use executor::{SimExecutor, Stuck, poll_at_most};
pub use late::LateWork;
pub use seeds::{SEED_COUNT_VARIABLE, seeds};
pub use world::{DiskOptions, FaultCounts, Faults};
