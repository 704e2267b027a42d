//! Every change of a page, as a value: built once, applied at run time and again at redo.
//!
//! Layout and list: `docs/formats/page_op.md`. [`PageOp::apply`] is the only function that changes
//! the body of a page under the log. It is pure, so redo makes the same page as the running server.
//!
//! (I1) Applying an operation to the page state that it was built for always produces the same
//! bytes.
//! (I2) Decoding accepts any bytes; applying to any bytes returns an error, never panics.
//! (I3) [`PageOp::Row`] is composite: it changes a leaf and appends to an undo page. What the two
//! share (key, before image) is in the log once.

use crate::codec::{Reader, Truncated};
use crate::log::OpKind;
use crate::page::PAGE_HEADER_BYTES;
use crate::page_bytes::{PageBytes, PageBytesMut};
use crate::row_header::{ROW_HEADER_BYTES, RowHeader};
use crate::slotted::{self, ChangeError, Splice, TreePage, TreePageShape};
use crate::undo::{self, UndoKind, UndoRecord};

/// One change of one page, or of a leaf and an undo page together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOp<'a> {
    /// Makes an empty tree page.
    TreeInit(TreePageShape<'a>),
    /// Inserts an entry.
    TreeInsert {
        /// Its slot.
        slot: u16,
        /// Whole key.
        key: &'a [u8],
        /// Payload.
        payload: &'a [u8],
    },
    /// Removes an entry.
    TreeRemove {
        /// Its slot.
        slot: u16,
    },
    /// Replaces bytes of an entry's payload.
    TreeSplice {
        /// Its slot.
        slot: u16,
        /// The changed bytes.
        change: Splice<'a>,
    },
    /// Appends a run of cells after the last slot.
    TreeExtend {
        /// As `slotted::append_cells` writes them.
        cells: &'a [u8],
    },
    /// Drops the slots from `from` on and lowers the upper fence.
    TreeCut {
        /// First slot to be removed.
        from: u16,
        /// The new upper fence.
        upper: &'a [u8],
    },
    /// Raises the upper fence and appends cells.
    TreeAbsorb {
        /// The new upper fence; `None` for plus infinity.
        upper: Option<&'a [u8]>,
        /// As `slotted::append_cells` writes them.
        cells: &'a [u8],
    },
    /// Zeroes the body of a page of the engine's own shape, then writes bytes at its start.
    BodyFill {
        /// The bytes after the page header.
        bytes: &'a [u8],
    },
    /// Overwrites bytes anywhere after the page header.
    BytesPut {
        /// Offset in the page.
        offset: u16,
        /// The new bytes.
        bytes: &'a [u8],
    },
    /// Sets or clears a run of bits in an allocation map page.
    BitsPut {
        /// First bit, counted from the start of the body's bitmap.
        first: u32,
        /// Number of bits.
        count: u32,
        /// 1 or 0.
        value: bool,
    },
    /// Appends an undo record to an undo page.
    UndoAppend {
        /// The whole record.
        record: &'a [u8],
    },
    /// Page 0: changes an entry of the clustered index. Page 1: appends the undo record.
    Row(RowOp<'a>),
}

/// The composite change of a row and its undo page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowOp<'a> {
    /// Slot in the leaf.
    pub slot: u16,
    /// Header of the new version.
    pub header: RowHeader,
    /// Replaces the bytes that the undo record holds; or the whole body of an insert.
    pub inserted: &'a [u8],
    /// The undo record's bytes.
    pub undo: &'a [u8],
}

const BIT_BODY: usize = PAGE_HEADER_BYTES;

impl<'a> PageOp<'a> {
    /// The kind in the log.
    pub fn kind(&self) -> OpKind {
        OpKind(match self {
            Self::TreeInit(_) => 32,
            Self::TreeInsert { .. } => 33,
            Self::TreeRemove { .. } => 34,
            Self::TreeSplice { .. } => 35,
            Self::TreeExtend { .. } => 36,
            Self::TreeCut { .. } => 37,
            Self::TreeAbsorb { .. } => 38,
            Self::BodyFill { .. } => 39,
            Self::BytesPut { .. } => 40,
            Self::BitsPut { .. } => 41,
            Self::UndoAppend { .. } => 42,
            Self::Row(_) => 43,
        })
    }

    /// Appends the payload for the log.
    ///
    /// # Panics
    /// If a part is longer than a page, which is impossible for what fits into one.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::TreeInit(shape) => encode_shape(shape, out),
            Self::TreeInsert { slot, key, payload } => {
                put_u16(out, slot);
                put_part(out, key);
                out.extend_from_slice(payload);
            }
            Self::TreeRemove { slot } => put_u16(out, slot),
            Self::TreeSplice { slot, change } => {
                put_u16(out, slot);
                put_u16(out, narrow(change.offset));
                put_u16(out, narrow(change.removed));
                out.extend_from_slice(change.inserted);
            }
            Self::TreeExtend { cells: bytes } | Self::BodyFill { bytes } => {
                out.extend_from_slice(bytes);
            }
            Self::TreeCut { from, upper } => {
                put_u16(out, from);
                out.extend_from_slice(upper);
            }
            Self::TreeAbsorb { upper, cells } => {
                out.push(u8::from(upper.is_some()));
                put_part(out, upper.unwrap_or_default());
                out.extend_from_slice(cells);
            }
            Self::BytesPut { offset, bytes } => {
                put_u16(out, offset);
                out.extend_from_slice(bytes);
            }
            Self::BitsPut {
                first,
                count,
                value,
            } => {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
                out.push(u8::from(value));
            }
            Self::UndoAppend { record } => out.extend_from_slice(record),
            Self::Row(row) => {
                put_u16(out, row.slot);
                out.extend_from_slice(&row.header.encode());
                put_part(out, row.undo);
                out.extend_from_slice(row.inserted);
            }
        }
    }

    /// Reads the payload of an operation; `None` for a kind that is not in this list.
    pub fn decode(kind: OpKind, payload: &'a [u8]) -> Option<Result<Self, Truncated>> {
        let mut reader = Reader::new(payload);
        let from = &mut reader;
        Some(match kind.0 {
            32 => decode_shape(from).map(Self::TreeInit),
            33 => decode_insert(from),
            34 => from.u16().map(|slot| Self::TreeRemove { slot }),
            35 => decode_splice(from),
            36 => Ok(Self::TreeExtend { cells: payload }),
            37 => from.u16().map(|slot| Self::TreeCut {
                from: slot,
                upper: from.rest(),
            }),
            38 => decode_absorb(from),
            39 => Ok(Self::BodyFill { bytes: payload }),
            40 => from.u16().map(|offset| Self::BytesPut {
                offset,
                bytes: from.rest(),
            }),
            41 => decode_bits(from),
            42 => Ok(Self::UndoAppend { record: payload }),
            43 => decode_row(from).map(Self::Row),
            _ => return None,
        })
    }

    /// Changes a page: number `which` of the operation's pages, counted from 0.
    pub fn apply<P: PageBytesMut + ?Sized>(
        &self,
        which: usize,
        page: &mut P,
    ) -> Result<(), ChangeError> {
        match *self {
            Self::TreeInit(shape) => slotted::init(page, shape),
            Self::TreeInsert { slot, key, payload } => {
                slotted::insert(page, usize::from(slot), key, payload)
            }
            Self::TreeRemove { slot } => slotted::remove(page, usize::from(slot)),
            Self::TreeSplice { slot, change } => slotted::splice(page, usize::from(slot), change),
            Self::TreeExtend { cells } => slotted::extend(page, cells),
            Self::TreeCut { from, upper } => slotted::cut(page, usize::from(from), upper),
            Self::TreeAbsorb { upper, cells } => slotted::absorb(page, upper, cells),
            Self::BodyFill { bytes } => fill_body(page, bytes),
            Self::BytesPut { offset, bytes } => put_bytes(page, usize::from(offset), bytes),
            Self::BitsPut {
                first,
                count,
                value,
            } => put_bits(page, first, count, value),
            Self::UndoAppend { record } => undo::append(page, record),
            Self::Row(row) if which == 0 => row.apply_leaf(page),
            Self::Row(row) => undo::append(page, row.undo),
        }
    }
}

impl RowOp<'_> {
    fn apply_leaf<P: PageBytesMut + ?Sized>(&self, page: &mut P) -> Result<(), ChangeError> {
        let slot = usize::from(self.slot);
        let record = UndoRecord::decode(self.undo).ok_or(ChangeError::Damaged {
            what: "an undo record in the log",
        })?;
        let header = self.header.encode();
        if record.kind == UndoKind::Insert {
            let payload = [&header, self.inserted].concat();
            return slotted::insert(page, slot, record.key, &payload);
        }
        let view = TreePage::new(page.bytes()).ok_or(ChangeError::Damaged {
            what: "not a tree page",
        })?;
        let count = view.slot_count().unwrap_or(0);
        if count <= slot {
            return Err(ChangeError::Damaged {
                what: "a change past the last slot",
            });
        }
        let change = Splice {
            offset: ROW_HEADER_BYTES + usize::from(record.change_offset),
            removed: record.removed.len(),
            inserted: self.inserted,
        };
        if change.removed != 0 || !change.inserted.is_empty() {
            slotted::splice(page, slot, change)?;
        }
        slotted::splice(
            page,
            slot,
            Splice {
                offset: 0,
                removed: header.len(),
                inserted: &header,
            },
        )
    }
}

fn encode_shape(shape: TreePageShape<'_>, out: &mut Vec<u8>) {
    out.push(shape.level);
    out.extend_from_slice(&shape.index_id.to_le_bytes());
    out.push(u8::from(shape.upper.is_some()));
    put_part(out, shape.lower);
    out.extend_from_slice(shape.upper.unwrap_or_default());
}

fn decode_shape<'a>(from: &mut Reader<'a>) -> Result<TreePageShape<'a>, Truncated> {
    let level = from.u8()?;
    let index_id = from.u64()?;
    let has_upper = from.u8()? != 0;
    let lower = take_part(from)?;
    let upper = has_upper.then_some(from.rest());
    Ok(TreePageShape {
        level,
        index_id,
        lower,
        upper,
    })
}

fn decode_insert<'a>(from: &mut Reader<'a>) -> Result<PageOp<'a>, Truncated> {
    let slot = from.u16()?;
    let key = take_part(from)?;
    Ok(PageOp::TreeInsert {
        slot,
        key,
        payload: from.rest(),
    })
}

fn decode_splice<'a>(from: &mut Reader<'a>) -> Result<PageOp<'a>, Truncated> {
    let slot = from.u16()?;
    let offset = usize::from(from.u16()?);
    let removed = usize::from(from.u16()?);
    Ok(PageOp::TreeSplice {
        slot,
        change: Splice {
            offset,
            removed,
            inserted: from.rest(),
        },
    })
}

fn decode_absorb<'a>(from: &mut Reader<'a>) -> Result<PageOp<'a>, Truncated> {
    let has_upper = from.u8()? != 0;
    let upper = take_part(from)?;
    Ok(PageOp::TreeAbsorb {
        upper: has_upper.then_some(upper),
        cells: from.rest(),
    })
}

fn decode_bits<'a>(from: &mut Reader<'a>) -> Result<PageOp<'a>, Truncated> {
    let first = from.u32()?;
    let count = from.u32()?;
    Ok(PageOp::BitsPut {
        first,
        count,
        value: from.u8()? != 0,
    })
}

fn decode_row<'a>(from: &mut Reader<'a>) -> Result<RowOp<'a>, Truncated> {
    let slot = from.u16()?;
    let header = RowHeader::decode(&from.array()?);
    let undo = take_part(from)?;
    Ok(RowOp {
        slot,
        header,
        inserted: from.rest(),
        undo,
    })
}

fn fill_body<P: PageBytesMut + ?Sized>(page: &mut P, bytes: &[u8]) -> Result<(), ChangeError> {
    let what = "a body longer than its page";
    let body_bytes = page.bytes().len().checked_sub(PAGE_HEADER_BYTES);
    let rest_bytes = body_bytes.and_then(|length| length.checked_sub(bytes.len()));
    let rest_bytes = rest_bytes.ok_or(ChangeError::Damaged { what })?;
    page.put(PAGE_HEADER_BYTES, bytes)
        .and_then(|()| page.clear(PAGE_HEADER_BYTES + bytes.len(), rest_bytes))
        .ok_or(ChangeError::Damaged { what })
}

fn put_bytes<P: PageBytesMut + ?Sized>(
    page: &mut P,
    offset: usize,
    bytes: &[u8],
) -> Result<(), ChangeError> {
    if offset < PAGE_HEADER_BYTES {
        return Err(ChangeError::Damaged {
            what: "a change of the page header",
        });
    }
    page.put(offset, bytes).ok_or(ChangeError::Damaged {
        what: "bytes past the page's end",
    })
}

fn put_bits<P: PageBytesMut + ?Sized>(
    page: &mut P,
    first: u32,
    count: u32,
    value: bool,
) -> Result<(), ChangeError> {
    let damaged = ChangeError::Damaged {
        what: "bits past the page's end",
    };
    let map = page.bytes().get(BIT_BODY..).ok_or(damaged)?;
    let start = usize::try_from(first).map_err(|_| damaged)?;
    let count = usize::try_from(count).map_err(|_| damaged)?;
    let end = start.checked_add(count).filter(|end| *end <= map.len() * 8);
    for bit in start..end.ok_or(damaged)? {
        let at = BIT_BODY + bit / 8;
        let byte = page.bytes().u8_at(at).ok_or(damaged)?;
        let mask = 1 << (bit % 8);
        let byte = if value { byte | mask } else { byte & !mask };
        page.put(at, &[byte]).ok_or(damaged)?;
    }
    Ok(())
}

fn narrow(value: usize) -> u16 {
    u16::try_from(value).expect("offsets and lengths inside a page are below 64 KiB")
}

fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_part(out: &mut Vec<u8>, part: &[u8]) {
    put_u16(out, narrow(part.len()));
    out.extend_from_slice(part);
}

fn take_part<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], Truncated> {
    let length = usize::from(from.u16()?);
    from.bytes(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::{TableId, TxnId, UndoPointer};

    fn undo_record(kind: UndoKind) -> Vec<u8> {
        let mut bytes = Vec::new();
        UndoRecord {
            kind,
            table: TableId(5),
            key: b"key",
            old_header: RowHeader::default(),
            change_offset: 1,
            inserted_length: 2,
            removed: b"x",
            ..UndoRecord::end(UndoKind::Commit, TxnId::NONE, UndoPointer::NULL)
        }
        .encode(&mut bytes);
        bytes
    }

    fn samples(undo: &[u8]) -> Vec<PageOp<'_>> {
        let shape = TreePageShape {
            level: 0,
            index_id: 1,
            lower: b"a",
            upper: Some(b"z"),
        };
        let change = Splice {
            offset: 1,
            removed: 2,
            inserted: b"abc",
        };
        vec![
            PageOp::TreeInit(shape),
            PageOp::TreeInit(TreePageShape {
                upper: None,
                ..shape
            }),
            PageOp::TreeInsert {
                slot: 0,
                key: b"k",
                payload: b"payload",
            },
            PageOp::TreeSplice { slot: 0, change },
            PageOp::TreeRemove { slot: 0 },
            PageOp::TreeExtend {
                cells: b"\x01\0\x01\0ab",
            },
            PageOp::TreeCut {
                from: 1,
                upper: b"m",
            },
            PageOp::TreeAbsorb {
                upper: None,
                cells: b"",
            },
            PageOp::TreeAbsorb {
                upper: Some(b"n"),
                cells: b"",
            },
            PageOp::Row(RowOp {
                slot: 0,
                header: RowHeader::default(),
                inserted: b"pq",
                undo,
            }),
            PageOp::BodyFill { bytes: b"body" },
            PageOp::BytesPut {
                offset: 40,
                bytes: b"bytes",
            },
            PageOp::BitsPut {
                first: 3,
                count: 17,
                value: true,
            },
            PageOp::UndoAppend { record: undo },
        ]
    }

    #[test]
    fn what_is_decoded_is_what_was_encoded() {
        let undo = undo_record(UndoKind::Update);
        for op in samples(&undo) {
            let mut payload = Vec::new();
            op.encode(&mut payload);
            assert_eq!(PageOp::decode(op.kind(), &payload), Some(Ok(op)));
        }
        assert!(PageOp::decode(OpKind(31), b"").is_none());
    }

    #[test]
    fn a_row_is_inserted_and_changed_with_its_undo() {
        let mut leaf = vec![0; 4096];
        let shape = TreePageShape {
            level: 0,
            index_id: 1,
            lower: b"",
            upper: None,
        };
        PageOp::TreeInit(shape)
            .apply(0, leaf.as_mut_slice())
            .unwrap();
        let mut undo_page = vec![0; 4096];
        PageOp::BodyFill {
            bytes: &undo::empty_body(),
        }
        .apply(0, undo_page.as_mut_slice())
        .unwrap();
        let header = RowHeader {
            schema_version: 3,
            ..RowHeader::default()
        };
        let inserted = undo_record(UndoKind::Insert);
        let op = PageOp::Row(RowOp {
            slot: 0,
            header,
            inserted: b"axb",
            undo: &inserted,
        });
        op.apply(0, leaf.as_mut_slice()).unwrap();
        op.apply(1, undo_page.as_mut_slice()).unwrap();
        let updated = undo_record(UndoKind::Update);
        let op = PageOp::Row(RowOp {
            slot: 0,
            header,
            inserted: b"YY",
            undo: &updated,
        });
        op.apply(0, leaf.as_mut_slice()).unwrap();
        op.apply(1, undo_page.as_mut_slice()).unwrap();
        let mut payload = Vec::new();
        TreePage::new(leaf.as_slice())
            .unwrap()
            .append_payload(0, &mut payload)
            .unwrap();
        assert_eq!(payload, [header.encode().as_slice(), b"aYYb"].concat());
        let end = undo::UNDO_RECORDS_START + inserted.len() + updated.len();
        assert_eq!(undo::used(undo_page.as_slice()), Some(end));
    }

    proptest! {
        #[test]
        fn any_operation_on_any_page_is_done_or_refused(
            kind in 32u8..44,
            payload in proptest::collection::vec(any::<u8>(), 0..60),
            front in proptest::collection::vec(any::<u8>(), 0..80),
            which in 0usize..2,
        ) {
            let mut page = vec![0; 4096];
            let shape = TreePageShape { level: 0, index_id: 1, lower: b"", upper: None };
            PageOp::TreeInit(shape).apply(0, page.as_mut_slice()).unwrap();
            page[33..33 + front.len()].copy_from_slice(&front);
            if let Some(Ok(op)) = PageOp::decode(OpKind(kind), &payload) {
                let _ = op.apply(which, page.as_mut_slice());
            }
        }
    }
}
