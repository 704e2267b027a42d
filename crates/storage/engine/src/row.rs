//! Rows and index entries: how a statement reads, locks and writes them.
//!
//! A statement goes through [`table`] (values to bytes, steps), then [`write`] and [`entries`] (one
//! mini-transaction each), or through [`cursor`] and [`read`] (versions). [`conflict`] decides
//! whether it must wait.

pub(crate) mod auto_increment;
pub(crate) mod claim;
pub(crate) mod conflict;
pub(crate) mod covering;
pub(crate) mod cursor;
pub(crate) mod entries;
pub(crate) mod gaps;
pub(crate) mod purge_list;
pub(crate) mod read;
pub(crate) mod table;
pub(crate) mod write;
