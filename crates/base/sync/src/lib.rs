//! Every lock-free type of the program, each with its loom model, and the only door to atomics.
//!
//! Other crates write `use sync::atomic::{AtomicU64, Ordering}` and never name `std::sync::atomic`.
//! In a build with `--cfg loom` the same names are the model checker's, so code built on them can
//! be explored. Run the models with `RUSTFLAGS="--cfg loom" cargo test -p sync --profile model`. A
//! build with `--cfg shuttle` is for programs that are too large for that (the crate
//! `interleaving`).
//!
//! Types: [`Mutex`] (never poisoned), [`CachePadded`], [`ChangeClock`] (whether copies are still
//! good), [`Inbox`] (many senders, one receiver that may sleep), [`ShardedRwLock`] (cheap for
//! readers on many cores, expensive for the rare writer), [`CommitRing`] (outcomes of
//! transactions), [`HybridLatch`] (readers that write nothing), [`LocalStock`] (what workers keep
//! for themselves, and whether somebody wants it), [`LogRing`] (the log in memory, filled by all
//! workers at once), [`ObservedBytes`] (one writer beside optimistic readers), [`Notify`] (a task
//! sleeps until there is work), [`WakeFlag`] (whether a task is queued). Based on a [`Mutex`]:
//! [`oneshot`] (one value for a task).

pub mod atomic;

mod change_clock;
mod commit_ring;
mod hybrid_latch;
mod inbox;
mod local_stock;
mod log_ring;
mod mutex;
mod notify;
#[cfg(not(loom))]
mod observed;
mod oneshot;
mod padded;
mod sharded_rw_lock;
mod wake_flag;

pub use change_clock::{ChangeClock, ChangeTime};
pub use commit_ring::{CommitRing, MovedOut, RingState};
pub use hybrid_latch::{HybridLatch, LatchVersion};
pub use inbox::{Inbox, Pushed};
pub use local_stock::LocalStock;
pub use log_ring::{Closing, LogRing, LogRingOptions, LogRingReader, LogRingWriter, Reservation};
pub use mutex::{Mutex, MutexGuard};
pub use notify::Notify;
#[cfg(not(loom))]
pub use observed::{ObservedBytes, WORD_BYTES, copy_out, load_word};
pub use oneshot::{OneshotReceiver, OneshotSender, oneshot};
pub use padded::CachePadded;
pub use sharded_rw_lock::{ShardedRwLock, WaitKey};
pub use wake_flag::WakeFlag;
