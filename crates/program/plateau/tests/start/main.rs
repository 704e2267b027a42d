//! Starts and checks of a data directory, whole or damaged.

#![forbid(unsafe_code)]

mod check;
mod descriptors;
mod listeners;
mod lost_log;
mod start_errors;
mod time_zone;
