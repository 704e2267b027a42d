//! The acceptance suites and the published experiments, run against any MySQL server.
//!
//! Every suite takes a [`Target`]: Plateau, or MariaDB, against which the suite itself is tested,
//! or a server that runs already.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    reason = "suites report to the terminal of who runs them"
)]

pub mod bench;
pub mod contention;
mod corpus;
pub mod differential;
mod drawn;
pub mod drive;
mod generator;
pub mod hostile;
mod load;
mod random;
mod sample;
mod schedules;
pub mod smoke;
pub mod suites;
pub mod sysbench;
mod target;
pub mod torture;
pub mod tpcc;

pub use target::Target;
