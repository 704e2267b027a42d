//! Starts and checks of a data directory, whole or damaged.

#![forbid(unsafe_code)]

mod check;
mod check_killed;
mod descriptors;
mod listeners;
mod lost_log;
mod start_errors;
mod time_zone;
