//! One logged-in client of the database: statements in, results out.
//!
//! Start reading at [`connection::session`] (a client from login to end). Then read
//! `statement::dispatch` (from text to the function that answers) and `statement::run` (the one
//! loop that awaits the store). Each family of statements has a folder or a file named after it.
//! What all sessions share is in [`server`], what those of a worker share in [`worker`], what one
//! remembers in [`connection::state`].

#![forbid(unsafe_code)]

pub mod account;
mod admin;
pub mod connection;
mod define;
mod load;
pub mod lock;
pub mod metrics;
mod prepared;
pub mod routine;
mod schema;
pub mod server;
mod set;
mod show;
pub mod statement;
pub mod system;
mod system_snapshot;
pub mod variables;
pub mod worker;
mod xa;

pub use connection::session::serve;
pub use server::Server;
pub use server::control::{Control, Wanted};
pub use server::draft::Heap;
pub use worker::Worker;
