//! Sessions that wait for each other, or end each other.

#![forbid(unsafe_code)]

mod admission;
mod concurrent_changes;
mod deadlocks;
mod kills;
mod status;
mod waits;
