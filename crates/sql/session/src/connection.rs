//! A client's connection: its session from login to end, and what belongs to it.
//!
//! [`session`] is the session itself, [`state`] what it remembers between statements. [`registry`]
//! lists all connections of the server.

pub(crate) mod hot;
pub mod logins;
pub(crate) mod peer_look;
pub mod registry;
pub(crate) mod reply;
pub mod session;
pub mod state;
pub(crate) mod tracker;
