//! What a worker counts about itself. Counting costs an addition, because each number has one
//! writer.
//!
//! Any thread may read a [`Counter`], so it can sum over the workers directly. A [`Histogram`]
//! belongs to its worker alone, and is not `Sync`. A thread that wants the sum asks each worker by
//! message for a snapshot and merges the answers. So no number is torn, and no two writers contend
//! for one.

#![forbid(unsafe_code)]

mod counter;
mod histogram;

pub use counter::Counter;
pub use histogram::{Histogram, HistogramSnapshot};
