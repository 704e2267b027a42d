//! The storage engine, and the gateway's pool and router, in worlds that one seed controls.
//!
//! [`World`] has a simulated disk, clock and executor and opens engines in them. [`torture`] runs
//! random transactions there, crashes, recovers and compares with a model. [`sharing`] has sessions
//! of several workers share connections to servers that fail. [`replication`] has nodes of a group.

#![forbid(unsafe_code)]

mod closing;
pub mod fault_profile;
mod log_harm;
mod model;
pub mod planting;
mod prepared;
mod ranges;
pub mod replication;
pub mod rows;
mod schema;
pub mod sharing;
mod tables;
mod tally;
pub mod torture;
pub mod world;

pub use world::{Database, World, WorldOptions};
