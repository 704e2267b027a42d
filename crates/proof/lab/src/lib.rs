//! The acceptance suites and the published experiments, run against any MySQL server.
//!
//! Every suite takes a [`Target`]: Plateau, MariaDB (to test the suite itself), or a server that is
//! already running.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    reason = "suites report to the terminal of who runs them"
)]

mod answer;
pub mod bench;
pub mod contention;
mod corpus;
mod curves;
mod data_files;
pub mod differential;
pub mod drive;
pub mod forward;
pub mod gateway;
mod generator;
pub mod history;
pub mod hostile;
mod load;
pub mod pages;
mod random;
mod random_queries;
mod sample;
pub mod schedules;
pub mod smoke;
pub mod suites;
pub mod sysbench;
mod target;
pub mod torture;
pub mod tpcc;

pub use target::Target;
