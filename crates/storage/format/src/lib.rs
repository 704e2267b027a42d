//! On-disk shapes and the ids in them.
//!
//! Bytes in, values out, and back: no I/O, no clock. Every decoder takes any bytes and returns an
//! error, never panics. Numbers are little-endian. Each shape has a page in `docs/formats/` and a
//! test here that pins its layout.
//!
//! * [`ids`]: LSNs, pages, tablespaces, transactions.
//! * [`codec`]: checked cursors, and the checksum.
//! * [`page`]: the header of every page.
//! * [`log`]: log blocks and the mini-transactions in them.
//! * [`page_bytes`]: checked access to a page that may change while it is read.
//! * [`slotted`]: the B+tree page.
//! * [`row`]: the columns of a row.
//! * [`row_header`]: the header of a row.
//! * [`undo`]: older versions.
//! * [`page_op`]: every change of a page, as it is logged.
//! * [`lives`]: where the log of earlier lives of the server ended.
//! * [`control`]: the control file with its two checkpoint records.
//! * [`version_file`]: the format of a data directory.

#![forbid(unsafe_code)]

pub mod codec;
pub mod control;
pub mod ids;
pub mod lives;
pub mod log;
pub mod page;
pub mod page_bytes;
pub mod page_op;
pub mod row;
pub mod row_header;
pub mod slotted;
pub mod undo;
pub mod version_file;

pub use ids::{IndexId, Lsn, PageId, PageNo, SpaceId, TableId, TxnId, UndoPointer};
pub use page::{PAGE_HEADER_BYTES, PageError, PageHeader, PageSize, PageType};
