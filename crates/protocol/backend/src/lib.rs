//! A connection to a MySQL or MariaDB server: login as a client, commands out and replies in, over
//! a [`link`]. It knows the server's version, capabilities and status, and nothing of SQL.
//!
//! ```text
//! let mut server = Server::connect(&target, &login, &resources, random).await?;
//! server.send(CommandByte::QUERY, b"SELECT 1").await?;
//! while let Some(received) = server.receive(limit).await? {
//!     match received.message()? { Message::TextRow(row) => .., Message::RowsEnd(ok) => .., .. }
//! }
//! ```
//!
//! The login (`login.rs`) is a pure state machine; `connect.rs` carries out its steps. A reply has
//! to be read to its end before the next command: until then the server is not at rest, sends
//! nothing and does not change its worker. One whose reply was given up half-way can only be
//! closed.

#![forbid(unsafe_code)]

mod error;

mod target;
mod version;

mod login;

mod message;
mod server;

mod connect;
mod query;

pub use auth::{ClientSecret, KeyPolicy};
pub use connect::Around;
pub use error::{ConnectError, RequestError};
pub use login::{Login, ServerInfo};
pub use message::{Message, RowForm};
pub use query::{Outcome, QueryLimits, Rows};
pub use server::{DetachedServer, Received, Server};
pub use target::{Target, TlsClient, TlsClientError, TlsMode};
pub use version::{Product, ServerVersion};
pub use wire::ProxyVersion;
