//! The header of each row in the clustered index, and of each entry of another index.
//!
//! Layout: `docs/formats/row_header.md`.

use crate::codec::{Reader, Truncated};
use crate::ids::{TxnId, UndoPointer};

/// Bytes of a row's header.
pub const ROW_HEADER_BYTES: usize = 15;
/// Bytes of the payload of an entry of a secondary index.
pub const ENTRY_BYTES: usize = 9;

/// Flag: the newest version of the row is its deletion.
const FLAG_DELETED: u8 = 1;
/// Flag of an entry: its transaction has revived a deleted one.
const FLAG_REVIVED: u8 = 2;
/// Flag: the body is a reference to a large value that holds the row.
const FLAG_SPILLED: u8 = 2;

/// The header of a row's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowHeader {
    /// The writer of the version.
    pub txn: TxnId,
    /// The version before it.
    pub undo: UndoPointer,
    /// Low byte of the version of the columns by which the body is encoded. It is 0 as long as a
    /// change of columns copies the table.
    pub schema_version: u8,
    /// This version is the row's deletion.
    pub is_deleted: bool,
    /// The body is a [`LobReference`] to the row.
    pub is_spilled: bool,
}

impl RowHeader {
    /// The bytes on the page.
    pub fn encode(&self) -> [u8; ROW_HEADER_BYTES] {
        let [a, b, c, d, e, f] = self.txn.to_bytes();
        let [g, h, i, j, k, l, m] = self.undo.to_bytes();
        let deleted = if self.is_deleted { FLAG_DELETED } else { 0 };
        let spilled = if self.is_spilled { FLAG_SPILLED } else { 0 };
        [
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            i,
            j,
            k,
            l,
            m,
            self.schema_version,
            deleted | spilled,
        ]
    }

    /// Decodes a header.
    pub fn decode(bytes: &[u8; ROW_HEADER_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, schema_version, flags] = *bytes;
        Self {
            txn: TxnId::from_bytes([a, b, c, d, e, f]),
            undo: UndoPointer::from_bytes([g, h, i, j, k, l, m]),
            schema_version,
            is_deleted: flags & FLAG_DELETED != 0,
            is_spilled: flags & FLAG_SPILLED != 0,
        }
    }

    /// Splits a payload into header and body; `None` if it is shorter than a header.
    pub fn split(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (header, body) = payload.split_first_chunk()?;
        Some((Self::decode(header), body))
    }
}

/// The payload of an entry of a secondary index; its key ends with the row's primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryHeader {
    /// The transaction that last inserted, deleted or revived the entry.
    pub txn: TxnId,
    /// The entry does not belong to the newest version of its row.
    pub is_deleted: bool,
    /// Before `txn` the entry existed and was deleted.
    pub is_revived: bool,
    /// Length of the index's own part of the key; the row's primary key follows.
    pub own_length: u16,
}

impl EntryHeader {
    /// The bytes on the page.
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let [a, b, c, d, e, f] = self.txn.to_bytes();
        let deleted = if self.is_deleted { FLAG_DELETED } else { 0 };
        let revived = if self.is_revived { FLAG_REVIVED } else { 0 };
        let [g, h] = self.own_length.to_le_bytes();
        [a, b, c, d, e, f, deleted | revived, g, h]
    }

    /// Whether the entry belongs to the newest version of its row.
    pub fn is_live(&self) -> bool {
        !self.is_deleted
    }

    /// Decodes the header; `None` if the payload has another length.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let [a, b, c, d, e, f, flags, g, h] = *payload.as_array::<ENTRY_BYTES>()?;
        Some(Self {
            txn: TxnId::from_bytes([a, b, c, d, e, f]),
            is_deleted: flags & FLAG_DELETED != 0,
            is_revived: flags & FLAG_REVIVED != 0,
            own_length: u16::from_le_bytes([g, h]),
        })
    }
}

/// Where a large value is: a chain of page runs, written once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LobReference {
    /// First page of the value.
    pub first_page: u32,
    /// Bytes of the value.
    pub length: u32,
}

/// Bytes of an encoded [`LobReference`].
pub const LOB_REFERENCE_BYTES: usize = 8;

impl LobReference {
    /// The bytes in place of a row.
    pub fn encode(&self) -> [u8; LOB_REFERENCE_BYTES] {
        let [a, b, c, d] = self.first_page.to_le_bytes();
        let [e, f, g, h] = self.length.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Decodes the reference in a body.
    pub fn decode(body: &[u8]) -> Result<Self, Truncated> {
        let mut reader = Reader::new(body);
        Ok(Self {
            first_page: reader.u32()?,
            length: reader.u32()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PageNo;

    #[test]
    fn layout_is_pinned() {
        let header = RowHeader {
            txn: TxnId::new(0x0605_0403_0201).unwrap(),
            undo: UndoPointer::new(13, PageNo(0x0C0B_0A09), 0x0807),
            schema_version: 14,
            is_deleted: true,
            is_spilled: true,
        };
        assert_eq!(
            header.encode(),
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 3]
        );
        assert_eq!(RowHeader::decode(&header.encode()), header);
        let entry = EntryHeader {
            txn: header.txn,
            is_deleted: true,
            is_revived: true,
            own_length: 0x0807,
        };
        assert_eq!(entry.encode(), [1, 2, 3, 4, 5, 6, 3, 7, 8]);
        assert_eq!(EntryHeader::decode(&entry.encode()), Some(entry));
        assert_eq!(EntryHeader::decode(&[0; 6]), None);
        let lob = LobReference {
            first_page: 0x0403_0201,
            length: 0x0807_0605,
        };
        assert_eq!(lob.encode(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(LobReference::decode(&lob.encode()), Ok(lob));
    }
}
