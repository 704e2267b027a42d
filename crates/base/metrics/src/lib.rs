//! What a worker counts about itself: plain numbers that cost an addition, because nobody else
//! writes or reads them.
//!
//! A worker keeps [`Counter`]s and [`Histogram`]s in its own structures. Who wants the sum asks
//! each worker by message for a snapshot and merges what comes back; there is nothing shared to
//! contend for, and no number is torn. Neither type is `Sync`, so the compiler holds it.

#![forbid(unsafe_code)]

mod counter;
mod histogram;

pub use counter::Counter;
pub use histogram::{Histogram, HistogramSnapshot};
