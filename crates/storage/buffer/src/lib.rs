//! Pages in memory.
//!
//! A [`Pool`] is shared by all workers. Each worker has its own [`Pages`], through which it reads
//! ([`Pages::optimistic`], [`Pages::shared`]) and changes ([`Pages::change`]) pages. Every call
//! completes at once or returns [`store::Interrupt`]. The caller awaits its `Suspend` with nothing
//! held, and then calls the whole operation again.
//!
//! A [`Change`] is a mini-transaction. First all its pages are latched or created, then operations
//! are applied to them. Then it commits, which puts the operations into the log and stamps the
//! pages. Each operation is a [`format::page_op::PageOp`] (or one of this crate's own kinds,
//! [`ops`]), applied at run time and at redo by the same function.
//!
//! (B1) *L0.* A worker that suspends holds no latch. Each `Suspend` made here asserts, when it is
//! polled, that the worker's count of held latches is 0; in release builds, too.
//! (B2) *WAL rule.* A page goes to its file only when the log up to its LSN is durable.
//! (B3) Latches are only tried, never waited for, so there is no latch deadlock. After a failure
//! all are released.
//! (B4) A change that has applied an operation must commit; dropping it is a bug and panics.
//! (B5) One mini-transaction a worker at a time, with a permit for log room taken before its first
//! latch.
//! (B6) All pages of a pool have one size. Each page holds it, and a tablespace of another size is
//! refused when its first page is read.
//!
//! Cleaning ([`Pages::clean`]), checkpoints ([`Pages::checkpoint`]) and redo ([`start`]) are here,
//! too, because they need to know which pages are dirty.

mod change;
mod change_buffers;
mod clean;
mod counters;
mod evict;
mod frames;
mod load;
mod metrics;
mod news;
pub mod ops;
mod optimistic;
mod options;
mod pages;
mod pool;
mod read_ahead;
mod roles;
mod space;
mod start;

pub use crate::change::{Change, Latched};
pub use crate::clean::Cleaned;
pub use crate::news::{News, Shortage};
pub use crate::optimistic::Optimistic;
pub use crate::options::PoolOptions;
pub use crate::pages::{Pages, Shared, Undoing, missing_file};
pub use crate::pool::Pool;
pub use crate::read_ahead::ReadAhead;
pub use crate::space::verify::{Seen, space_pages, verify_pages, verify_space};
pub use crate::space::{list_spaces, lost_log, page_damage};
pub use crate::start::loss::LogLoss;
pub use crate::start::redo::{Note, RecoveryError};
pub use crate::start::{Redone, StartOptions, Started, start};

#[cfg(test)]
mod tests;
