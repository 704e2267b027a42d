//! The stream of a server's binary log, as a replica gets it, read for one question: which tables
//! has each transaction changed? No I/O, and no row is decoded.
//!
//! ```text
//! dump_request(place, number)        -> COM_BINLOG_DUMP -> server
//! packet -> LogReader::take -> Told: a transaction, rows of a table, a statement, ..
//!                   LogReader::place: how far that is
//! ```
//!
//! The logs of MariaDB 10.6 to 11 and of MySQL 8 have one frame ([`mod@event`]), and each has kinds
//! of events that the other does not know. What is not known is never skipped silently: it is
//! [`Told::Unknown`], unless the server has marked it as one that replicas may ignore.
//!
//! Packets are outside data. A decoder never reads past the end of one, and takes no memory by a
//! length that a packet claims. Names of tables are the only thing that is remembered
//! ([`TABLES_MAX`]).
//!
//! Formats: the pages "Replication Protocol" of MariaDB's documentation and "Binary Log" of MySQL's
//! internals manual.

#![forbid(unsafe_code)]

mod error;
mod place;

pub mod event;

mod reader;

pub use error::LogError;
pub use event::{Checksum, Gtid, Statement};
pub use place::{Place, dump_request};
pub use reader::{LogReader, TABLES_MAX, Told};
