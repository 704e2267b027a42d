//! [`Claim`]: the row that a transaction has read without a lock, to change it next.

use format::IndexId;
use format::row_header::RowHeader;

/// A row and the version of it that was read (`row::claim`).
#[derive(Debug)]
pub(crate) struct Claim {
    /// The clustered index.
    pub(crate) index: IndexId,
    /// The row's key.
    pub(crate) key: Vec<u8>,
    /// The version: header and body.
    pub(crate) bytes: Vec<u8>,
    /// Its header.
    pub(crate) header: RowHeader,
    /// The row was found to be another version.
    pub(crate) is_lost: bool,
}
