//! From a syntax tree to an immutable plan: names, types, access paths, join order.
//!
//! Start reading at [`plan`]: what the executor runs.

#![forbid(unsafe_code)]

pub mod plan;

pub use plan::*;
