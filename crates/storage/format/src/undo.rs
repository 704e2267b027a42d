//! Undo pages and the records in them.
//!
//! Layout: `docs/formats/undo.md`. An undo page is written by one worker, only ever at its end. A
//! record holds what is needed to get the version before the change from the one after it, and what
//! purge must clean up once no snapshot needs the older one.

use crate::codec::{Reader, Truncated};
use crate::ids::{TableId, TxnId, UndoPointer};
use crate::page::PAGE_HEADER_BYTES;
use crate::page_bytes::{PageBytes, PageBytesMut};
use crate::row_header::{ROW_HEADER_BYTES, RowHeader};
use crate::slotted::ChangeError;

/// Offset of the word with the place of the next record.
const USED: usize = PAGE_HEADER_BYTES;
/// Offset of the number of the segment's next page; 0 means none.
pub const UNDO_NEXT: usize = PAGE_HEADER_BYTES + 4;
/// Offset of the first record.
pub const UNDO_RECORDS_START: usize = PAGE_HEADER_BYTES + 8;
/// Offset in a record of the byte with its kind.
pub const UNDO_KIND_AT: usize = 2;
/// Set in that byte once the record is settled.
pub const SETTLED: u8 = 0x80;
/// Bytes of a record before its variable parts.
pub const UNDO_RECORD_HEADER_BYTES: usize = 2 + 1 + 6 + 7;

/// The recorded change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoKind {
    /// A row was inserted where there was none: undo removes it.
    Insert,
    /// A row was changed in place, or inserted over a deleted one.
    Update,
    /// A row was marked deleted.
    Delete,
    /// The transaction has committed.
    Commit,
    /// The transaction has been rolled back completely.
    RolledBack,
    /// A page was taken for a large value: undo gives it back.
    PageTaken,
    /// Nothing needs undoing; purge must check the listed items.
    PurgeItems,
    /// The transaction is prepared: it survives a crash and waits for a decision. It changes
    /// nothing behind this. Undo revokes the promise.
    Prepared,
}

impl UndoKind {
    const ALL: [Self; 8] = [
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Commit,
        Self::RolledBack,
        Self::PageTaken,
        Self::PurgeItems,
        Self::Prepared,
    ];

    fn code(self) -> u8 {
        match self {
            Self::Insert => 1,
            Self::Update => 2,
            Self::Delete => 3,
            Self::Commit => 4,
            Self::RolledBack => 5,
            Self::PageTaken => 6,
            Self::PurgeItems => 7,
            Self::Prepared => 8,
        }
    }

    /// Whether the record holds an older version.
    fn has_older(self) -> bool {
        matches!(self, Self::Update | Self::Delete)
    }

    /// Whether the record ends its transaction.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Commit | Self::RolledBack)
    }
}

/// A record of an undo page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoRecord<'a> {
    /// The recorded change.
    pub kind: UndoKind,
    /// It has been undone, or purge has handled it.
    pub is_settled: bool,
    /// The transaction.
    pub txn: TxnId,
    /// The transaction's record before this one.
    pub previous: UndoPointer,
    /// The table; 0 in a record that ends a transaction.
    pub table: TableId,
    /// The row's encoded primary key; in [`UndoKind::Prepared`] a [`PreparedMark`].
    pub key: &'a [u8],
    /// The header of the version before.
    pub old_header: RowHeader,
    /// Where in the body the versions begin to differ.
    pub change_offset: u16,
    /// Number of bytes that the version after has in place of `removed`.
    pub inserted_length: u16,
    /// The bytes of the version before, from there to where both agree again.
    pub removed: &'a [u8],
    /// What purge must check, as [`PurgeItem`] encodes it.
    pub purge_list: &'a [u8],
}

impl<'a> UndoRecord<'a> {
    /// A record that ends a transaction.
    pub fn end(kind: UndoKind, txn: TxnId, previous: UndoPointer) -> Self {
        assert!(kind.is_end(), "a commit or a complete rollback");
        Self {
            kind,
            is_settled: false,
            txn,
            previous,
            table: TableId(0),
            key: &[],
            old_header: RowHeader::default(),
            change_offset: 0,
            inserted_length: 0,
            removed: &[],
            purge_list: &[],
        }
    }

    /// A record that a transaction is prepared; `mark` is an encoded [`PreparedMark`].
    pub fn prepared(txn: TxnId, previous: UndoPointer, mark: &'a [u8]) -> Self {
        Self {
            kind: UndoKind::Prepared,
            key: mark,
            ..Self::end(UndoKind::Commit, txn, previous)
        }
    }

    /// Bytes of the record, including the two of the length.
    pub fn length(&self) -> usize {
        if self.kind.is_end() {
            return UNDO_RECORD_HEADER_BYTES;
        }
        let older = if self.kind.has_older() {
            ROW_HEADER_BYTES + 2 + 2 + 2 + self.removed.len()
        } else {
            0
        };
        UNDO_RECORD_HEADER_BYTES + 8 + 2 + self.key.len() + older + self.purge_list.len()
    }

    /// Appends the record's bytes.
    ///
    /// # Panics
    /// If it is 64 KiB or longer. The caller limits the purge list ([`Self::length`]).
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.length());
        out.extend_from_slice(&[0; 2]);
        out.push(self.kind.code() | if self.is_settled { SETTLED } else { 0 });
        out.extend_from_slice(&self.txn.to_bytes());
        out.extend_from_slice(&self.previous.to_bytes());
        if !self.kind.is_end() {
            out.extend_from_slice(&self.table.0.to_le_bytes());
            put_part(out, self.key);
            if self.kind.has_older() {
                out.extend_from_slice(&self.old_header.encode());
                out.extend_from_slice(&self.change_offset.to_le_bytes());
                out.extend_from_slice(&self.inserted_length.to_le_bytes());
                put_part(out, self.removed);
            }
            out.extend_from_slice(self.purge_list);
        }
        let length = u16::try_from(out.len() - start).expect("the caller has limited it");
        let bytes = length.to_le_bytes();
        let field = out
            .get_mut(start..start + 2)
            .expect("the length was reserved");
        field.copy_from_slice(&bytes);
    }

    /// Reads the record at the front of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let length = usize::from(bytes.u16_at(0)?);
        Self::decode_fields(&mut Reader::new(bytes.get(2..length)?)).ok()
    }

    fn decode_fields(from: &mut Reader<'a>) -> Result<Self, Truncated> {
        let byte = from.u8()?;
        let code = byte & !SETTLED;
        let kind = UndoKind::ALL
            .into_iter()
            .find(|kind| kind.code() == code)
            .ok_or(Truncated)?;
        let txn = TxnId::from_bytes(from.array()?);
        let previous = UndoPointer::from_bytes(from.array()?);
        if kind.is_end() {
            return Ok(Self::end(kind, txn, previous));
        }
        let table = TableId(from.u64()?);
        let key = take_part(from)?;
        let mut record = Self {
            kind,
            is_settled: byte & SETTLED != 0,
            table,
            key,
            ..Self::end(UndoKind::Commit, txn, previous)
        };
        if kind.has_older() {
            record.old_header = RowHeader::decode(&from.array::<ROW_HEADER_BYTES>()?);
            record.change_offset = from.u16()?;
            record.inserted_length = from.u16()?;
            record.removed = take_part(from)?;
        }
        record.purge_list = from.rest();
        Ok(record)
    }

    /// Turns the body of the version after the change into that of the version before it. `None` if
    /// they do not match.
    pub fn restore(&self, body: &mut Vec<u8>) -> Option<()> {
        let start = usize::from(self.change_offset);
        let end = start.checked_add(usize::from(self.inserted_length))?;
        if body.len() < end {
            return None;
        }
        body.splice(start..end, self.removed.iter().copied());
        Some(())
    }
}

/// What the record of a prepared transaction says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreparedMark<'a> {
    /// Records of the transaction before this one.
    pub undo_count: u64,
    /// `formatID` of its XA identifier.
    pub format_id: u32,
    /// `gtrid`.
    pub global: &'a [u8],
    /// `bqual`.
    pub branch: &'a [u8],
}

impl<'a> PreparedMark<'a> {
    /// Appends the bytes.
    ///
    /// # Panics
    /// If a part is 64 KiB or longer; XA allows 64 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.undo_count.to_le_bytes());
        out.extend_from_slice(&self.format_id.to_le_bytes());
        put_part(out, self.global);
        put_part(out, self.branch);
    }

    /// Reads what [`PreparedMark::encode`] has written, and nothing else.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let mark = Self::decode_fields(&mut from).ok()?;
        from.rest().is_empty().then_some(mark)
    }

    fn decode_fields(from: &mut Reader<'a>) -> Result<Self, Truncated> {
        Ok(Self {
            undo_count: from.u64()?,
            format_id: from.u32()?,
            global: take_part(from)?,
            branch: take_part(from)?,
        })
    }
}

/// Parts of the older version that only it needs: purge checks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeItem<'a> {
    /// An entry of a secondary index.
    Entry {
        /// The index.
        index: u64,
        /// The entry's whole key.
        key: &'a [u8],
    },
    /// A large value.
    Lob {
        /// The tablespace.
        space: u32,
        /// Its first page.
        first_page: u32,
    },
}

impl<'a> PurgeItem<'a> {
    /// Appends the bytes.
    ///
    /// # Panics
    /// If a key is 64 KiB or longer.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Entry { index, key } => {
                out.push(1);
                out.extend_from_slice(&index.to_le_bytes());
                put_part(out, key);
            }
            Self::Lob { space, first_page } => {
                out.push(2);
                out.extend_from_slice(&space.to_le_bytes());
                out.extend_from_slice(&first_page.to_le_bytes());
            }
        }
    }

    /// All that a record names. An unreadable part ends the list.
    pub fn list(bytes: &'a [u8]) -> impl Iterator<Item = Self> + use<'a> {
        let mut reader = Reader::new(bytes);
        std::iter::from_fn(move || Self::take(&mut reader).ok())
    }

    fn take(from: &mut Reader<'a>) -> Result<Self, Truncated> {
        match from.u8()? {
            1 => Ok(Self::Entry {
                index: from.u64()?,
                key: take_part(from)?,
            }),
            2 => Ok(Self::Lob {
                space: from.u32()?,
                first_page: from.u32()?,
            }),
            _ => Err(Truncated),
        }
    }
}

/// The start of an empty undo page's body.
pub fn empty_body() -> [u8; 8] {
    let start = u16::try_from(UNDO_RECORDS_START)
        .expect("the header is short")
        .to_le_bytes();
    let [a, b] = start;
    [a, b, 0, 0, 0, 0, 0, 0]
}

/// The place of the next record of an undo page.
pub fn used<P: PageBytes + ?Sized>(page: &P) -> Option<usize> {
    let used = usize::from(page.u16_at(USED)?);
    (UNDO_RECORDS_START..=page.length())
        .contains(&used)
        .then_some(used)
}

/// The segment's next page; `None` for the last.
pub fn next_page<P: PageBytes + ?Sized>(page: &P) -> Option<u32> {
    page.u32_at(UNDO_NEXT).filter(|next| *next != 0)
}

/// Calls `each` with the place and the bytes of each record of an undo page, in order. Returns
/// `None`, and goes no further, if a record makes no sense or `each` returns `None`.
pub fn for_each_record<P: PageBytes + ?Sized>(
    page: &P,
    mut each: impl FnMut(usize, &[u8]) -> Option<()>,
) -> Option<()> {
    let (end, mut at) = (used(page)?, UNDO_RECORDS_START);
    let mut record = Vec::new();
    while at < end {
        copy_record(page, at, &mut record)?;
        each(at, &record)?;
        at += record.len();
    }
    Some(())
}

/// Copies the record at `offset` into `out`, which is cleared first.
pub fn copy_record<P: PageBytes + ?Sized>(
    page: &P,
    offset: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    out.clear();
    let length = usize::from(page.u16_at(offset)?);
    let end = offset.checked_add(length)?;
    if length < UNDO_RECORD_HEADER_BYTES || used(page)? < end {
        return None;
    }
    page.append_to(offset, length, out)
}

/// Appends a record to an undo page.
pub fn append<P: PageBytesMut + ?Sized>(page: &mut P, record: &[u8]) -> Result<(), ChangeError> {
    let at = used(page.bytes()).ok_or(ChangeError::Damaged {
        what: "an undo page's end",
    })?;
    let end = at + record.len();
    if page.bytes().len() < end {
        return Err(ChangeError::Full);
    }
    let what = "an undo page's end";
    let used = u16::try_from(end).map_err(|_| ChangeError::Damaged { what })?;
    page.put(at, record)
        .and_then(|()| page.put_u16(USED, used))
        .ok_or(ChangeError::Damaged { what })
}

fn put_part(out: &mut Vec<u8>, part: &[u8]) {
    let length = u16::try_from(part.len()).expect("a part is shorter than a page");
    out.extend_from_slice(&length.to_le_bytes());
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

    fn sample() -> UndoRecord<'static> {
        UndoRecord {
            kind: UndoKind::Update,
            is_settled: false,
            txn: TxnId::new(0x0102).unwrap(),
            previous: UndoPointer::NULL,
            table: TableId(7),
            key: b"k",
            old_header: RowHeader::default(),
            change_offset: 2,
            inserted_length: 3,
            removed: b"old",
            purge_list: b"",
        }
    }

    #[test]
    fn layout_is_pinned() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        let front = [
            51, 0, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0,
        ];
        assert_eq!(bytes[..26], front);
        assert_eq!(bytes[26], b'k');
        assert_eq!(bytes[27..42], [0; 15]);
        assert_eq!(bytes[42..], [2, 0, 3, 0, 3, 0, b'o', b'l', b'd']);
        assert_eq!(UndoRecord::decode(&bytes), Some(sample()));
        assert_eq!(sample().length(), bytes.len());
        let end = UndoRecord::end(UndoKind::Commit, sample().txn, UndoPointer::NULL);
        bytes.clear();
        end.encode(&mut bytes);
        assert_eq!(end.length(), bytes.len());
        let mut body = b"abNEWcd".to_vec();
        sample().restore(&mut body).unwrap();
        assert_eq!(body, b"aboldcd");
    }

    #[test]
    fn the_mark_of_a_prepared_transaction_is_pinned() {
        let mark = PreparedMark {
            undo_count: 3,
            format_id: 7,
            global: b"ab",
            branch: b"",
        };
        let mut bytes = Vec::new();
        mark.encode(&mut bytes);
        let expected = [3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 0, b'a', b'b', 0, 0];
        assert_eq!(bytes, expected);
        let (txn, previous) = (sample().txn, sample().previous);
        let mut record = Vec::new();
        UndoRecord::prepared(txn, previous, &bytes).encode(&mut record);
        let decoded = UndoRecord::decode(&record).unwrap();
        assert_eq!(decoded.kind, UndoKind::Prepared);
        assert!(!decoded.kind.is_end());
        assert_eq!(PreparedMark::decode(decoded.key), Some(mark));
        for length in 0..bytes.len() {
            assert_eq!(PreparedMark::decode(&bytes[..length]), None);
        }
        bytes.push(0);
        assert_eq!(PreparedMark::decode(&bytes), None);
    }

    #[test]
    fn records_are_appended_until_the_page_is_full() {
        let mut page = vec![0; 4096];
        page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + 8].copy_from_slice(&empty_body());
        let mut record = Vec::new();
        sample().encode(&mut record);
        let mut places = Vec::new();
        let full = loop {
            let at = used(page.as_slice()).unwrap();
            match append(page.as_mut_slice(), &record) {
                Ok(()) => places.push(at),
                Err(error) => break error,
            }
        };
        assert_eq!(full, ChangeError::Full);
        assert_eq!(places.len(), (4096 - UNDO_RECORDS_START) / record.len());
        let mut copy = Vec::new();
        for place in places {
            copy_record(page.as_slice(), place, &mut copy).unwrap();
            assert_eq!(copy, record);
        }
        assert_eq!(next_page(page.as_slice()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..90)
        ) {
            if let Some(record) = UndoRecord::decode(&bytes) {
                let _ = PurgeItem::list(record.purge_list).count();
                let _ = PreparedMark::decode(record.key);
                let _ = record.restore(&mut bytes.clone());
            }
            let mut page = bytes.clone();
            let _ = append(page.as_mut_slice(), &bytes);
            let _ = copy_record(bytes.as_slice(), 40, &mut page);
        }
    }
}
