//! A client's connection: its session from login to end, and what belongs to it.
//!
//! [`session`] is the session itself, [`state`] what it remembers between statements. What it holds
//! while it lives is here, too: its [`transaction`], its statements (`prepared`), the
//! `programs` that it runs; and how rows reach the client ([`sink`]). The list of all sessions is
//! in [`clients`].

pub(crate) mod client_charset;
pub(crate) mod condition;
pub(crate) mod frame;
pub(crate) mod held_plan;
pub(crate) mod hot;
pub(crate) mod kept_rows;
pub(crate) mod liveness_probe;
pub(crate) mod long_data;
pub(crate) mod prepared;
pub(crate) mod programs;
pub(crate) mod reply;
pub mod row_encoder;
pub(crate) mod running_statement;
pub mod session;
pub mod sink;
pub mod state;
pub(crate) mod tracker;
pub mod transaction;
