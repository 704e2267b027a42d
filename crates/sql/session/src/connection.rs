//! A client's connection: its session from login to end, and what belongs to it.
//!
//! [`session`] is the session itself, [`state`] what it remembers between statements. The list of
//! all sessions is in [`clients`].

pub(crate) mod client_charset;
pub(crate) mod hot;
pub(crate) mod liveness_probe;
pub(crate) mod reply;
pub mod session;
pub mod state;
pub(crate) mod tracker;
