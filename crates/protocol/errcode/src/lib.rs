//! What a client gets when something fails: number, SQLSTATE and text, from one table.
//!
//! [`ErrorCode`] is the number. Every number that Plateau can send has a constant of the name that
//! MariaDB gives it (`ER_DUP_ENTRY`), a SQLSTATE, a message format, an [`Origin`] and a [`Retry`],
//! all in `table.rs`. A [`Wording`] is another text of a number. [`ClientError`] is one error ready
//! to be sent. The page `docs/errors.md` is generated from the table; a test keeps both in step,
//! and another compares the table with an installed MariaDB.
//!
//! The crate knows nothing of packets, sessions or storage.

#![forbid(unsafe_code)]

mod client_error;
mod code;
mod format;
mod lookup;
mod origin;
mod table;
mod wording;

pub use client_error::{ClientError, MESSAGE_BYTES_MAX};
pub use code::{ErrorCode, Sqlstate};
pub use origin::{Origin, Retry};
pub use table::*;
pub use wording::*;
