//! What a client gets when something fails: number, SQLSTATE and text, from one table.
//!
//! [`ErrorCode`] is the number. Every number that Plateau can send has a constant of the name that
//! MariaDB gives it (`ER_DUP_ENTRY`), a SQLSTATE and a message format, all in `table.rs`.
//! [`ClientError`] is one error ready to be sent. The page `docs/errors.md` is generated from the
//! table; a test keeps both in step, and another compares the table with an installed MariaDB.
//!
//! The crate knows nothing of packets, sessions or storage.

#![forbid(unsafe_code)]

mod client_error;
mod code;
mod format;
mod table;

pub use client_error::{ClientError, MESSAGE_BYTES_MAX};
pub use code::{ErrorCode, Sqlstate};
pub use table::*;
