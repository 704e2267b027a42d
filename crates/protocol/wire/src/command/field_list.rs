//! [`FieldList`]: COM_FIELD_LIST, the columns of a table whose names match a pattern.

use crate::cursor::{Cursor, Malformed};

/// A request for column definitions, each with its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldList<'a> {
    /// Table name.
    pub table: &'a [u8],
    /// Pattern as of LIKE; empty for all columns.
    pub pattern: &'a [u8],
}

impl<'a> FieldList<'a> {
    /// Reads the command's body, after its first byte.
    pub fn decode(body: &'a [u8]) -> Result<FieldList<'a>, Malformed> {
        let mut cursor = Cursor::new(body);
        Ok(FieldList {
            table: cursor.nul_bytes("table name")?,
            pattern: cursor.rest(),
        })
    }
}
