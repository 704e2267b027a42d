//! Ranges of whole keys: from conditions to the intervals of an index that a scan reads.
//!
//! [`condition`] and [`range_plan`] hold what conditions say of an index, as the plan keeps it.
//! [`set`] is the algebra of intervals. [`build`] computes the intervals from the conditions when a
//! scan starts and values are known, so a plan serves all values of its parameters.

mod build;
mod condition;
mod range_plan;
mod set;
#[cfg(test)]
mod tests;

pub(crate) use build::ranges_of;
pub use build::{KeySource, key_ranges, range_of, unique_range};
pub use condition::{KeyCondition, KeyPlan, RANGE_COUNT_MAX};
pub(crate) use condition::{Reach, reach};
pub use range_plan::{Edge, KeyEqual, RangePlan};
