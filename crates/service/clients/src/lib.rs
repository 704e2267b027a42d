//! All clients of a server, whatever answers them: who is connected, who may connect, and KILL.
//! Nothing of SQL.
//!
//! [`Clients`] is one a server. A connection goes through [`Clients::log_in`], which bounds the
//! number of logins, and [`Clients::admit`], which bounds the number of sessions. Then it has a
//! [`SessionHandle`]: its line of the process list, and the orders to kill it. A session of any
//! kind waits by [`wait`], so that KILL and a vanished client end each wait.
//!
//! What crosses workers is behind a [`sync::Mutex`] each; nothing here is lock-free. The atomics
//! beside them say how they are paired.

#![forbid(unsafe_code)]

pub mod wait;

mod admission;
mod handle;
mod login_log;
mod logins;
mod registry;

pub use admission::{ClientNumbers, Clients, Entrance, LoggedIn, login_rules};
pub use handle::{IDLE, KillOrder, LEAVING, ProcessLine, SessionHandle};
pub use registry::{Busy, Registry};
