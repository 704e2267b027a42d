//! What a worker counts about itself: numbers that cost an addition, because nobody else writes
//! them.
//!
//! A [`Counter`] may be read by anybody, so a sum over the workers is read where they are. A
//! [`Histogram`] belongs to its worker alone, and is not `Sync`: who wants the sum asks each by
//! message for a snapshot and merges what comes back. So no number is torn, and no two writers
//! contend for one.

#![forbid(unsafe_code)]

mod counter;
mod histogram;

pub use counter::Counter;
pub use histogram::{Histogram, HistogramSnapshot};
