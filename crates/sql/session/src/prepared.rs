//! Prepared statements, of the protocol and of SQL.
//!
//! Start at [`statement`]: PREPARE, EXECUTE and their commands. The other files have what these
//! need: cursors, parameters that come in pieces, many rows of parameters.

pub(crate) mod bulk;
pub(crate) mod cursor;
pub(crate) mod inline_parameters;
pub(crate) mod limit_parameters;
mod parameter;
pub(crate) mod statement;
