//! The storage engine in a world that one seed controls.
//!
//! [`World`] has a simulated disk, clock and executor and opens engines in them. [`torture`] runs
//! random transactions there, crashes, recovers and compares with a model.

#![forbid(unsafe_code)]

pub mod fault_profile;
mod log_harm;
pub mod rows;
mod schema;
pub mod torture;
pub mod world;

pub use world::{Database, World, WorldOptions};
