//! What a worker counts about itself. Counting costs an addition, because each number has one
//! writer.
//!
//! A [`Counter`] and a [`Histogram`] have one writer and any number of readers, so the sum over the
//! workers is read where they are, and no two writers contend for a number. A [`Registry`] has all
//! numbers of a program with their names and what they mean.

#![forbid(unsafe_code)]

mod counter;
mod exposition;
mod histogram;
mod registry;

pub use counter::Counter;
pub use exposition::CONTENT_TYPE;
pub use histogram::{Histogram, HistogramSnapshot};
pub use registry::{Label, Metric, MetricKind, Number, Reading, Registry, Unit, sum_of};
