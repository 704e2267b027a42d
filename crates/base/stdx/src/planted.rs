//! Mistakes that a simulation plants in the storage crates, to prove that it would find them.
//!
//! What a simulation does not find when it is planted, it would not find in the code. Each place
//! asks [`is_planted`] beside the statement that it would leave out. Without the feature `planted`
//! the answer is a constant, and the compiler leaves no code there. `sim` turns the feature on if
//! it is asked to, and `interleaving` in builds for `shuttle`. A server with it does not compile
//! ([`CAN_PLANT`]). A mistake is planted for the thread, which runs one seed at a time.

#[cfg(feature = "planted")]
use std::cell::Cell;

/// Whether this build can plant mistakes.
pub const CAN_PLANT: bool = cfg!(feature = "planted");

/// A mistake in one place of the storage crates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A commit is acknowledged before its log is durable (`engine::worker`).
    AnswersBeforeFlush,
    /// A page with a wrong checksum is taken for whole (`format::page`).
    AcceptsTornPages,
    /// An insert does not look for locks of its gap (`engine::row::gaps`).
    LeavesGapsUnlocked,
    /// An insert gives the locks of its gap to the upper half alone (`engine::row::gaps`).
    LosesSplitGaps,
    /// The removal of an entry drops its gap locks (`engine::row::gaps`).
    LosesJoinedGaps,
    /// A locking read does not look again after a lock or a wait (`engine::row::cursor`).
    LooksOnce,
    /// A claimed row is changed though it is another version (`engine::row::claim`).
    TrustsClaims,
    /// What was read without a latch counts though the page has changed (`buffer::optimistic`).
    /// Only threads show it.
    TrustsChangedPages,
    /// Purge passes over open snapshots (`txn::system`).
    PurgesEarly,
    /// Of lock waiters that are granted at once, all but the first sleep on (`lock::queue`).
    ForgetsLockWaiters,
    /// Of several waiters for the log, the last one sleeps on (`wal::wal::waiters`).
    ForgetsLogWaiters,
    /// The first of several blocks of log that are written at once stays zero (`wal::wal::flush`).
    LeavesLogHoles,
    /// A start takes each break of the log for its end (`wal::scan`).
    AcceptsLogHoles,
    /// A start rolls back what is prepared (`engine::recovery`).
    RollsBackPrepared,
    /// A transaction is said to be prepared before its log is durable (`engine::transaction`).
    PromisesBeforeFlush,
}

#[cfg(feature = "planted")]
thread_local! {
    /// The mistake of this thread.
    static PLANTED: Cell<Option<Mistake>> = const { Cell::new(None) };
}

/// Plants a mistake for this thread, or none.
#[cfg(feature = "planted")]
pub fn plant(mistake: Option<Mistake>) {
    PLANTED.set(mistake);
}

/// Whether the code is to make this mistake.
#[cfg(feature = "planted")]
#[must_use]
pub fn is_planted(mistake: Mistake) -> bool {
    PLANTED.get() == Some(mistake)
}

/// Whether the code is to make this mistake: never.
#[cfg(not(feature = "planted"))]
#[inline(always)]
#[must_use]
pub const fn is_planted(_: Mistake) -> bool {
    false
}
