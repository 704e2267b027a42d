//! A server's answers to a command: OK, an error, columns and rows, a request for a file.

pub(crate) mod binary_row;
pub(crate) mod column;
pub(crate) mod end_of_rows;
pub(crate) mod error_packet;
pub(crate) mod local_infile;
pub(crate) mod ok;
pub(crate) mod prepare_ok;
pub(crate) mod result_head;
pub(crate) mod session_changes;
pub(crate) mod text_row;
