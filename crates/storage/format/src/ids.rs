//! The ids that are written to disk, as distinct types.

use std::fmt;

/// A position in the log: bytes of log payload since the data directory was made.
///
/// Block headers and padding do not count, so an LSN says nothing about a place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before all log: the LSN of a page that was never changed under the log.
    pub const ZERO: Self = Self(0);
    /// Where a new log starts. Code that keeps LSNs in words may use lower values as marks.
    pub const FIRST: Self = Self(4096);
    /// After all log: "nothing under way".
    pub const MAX: Self = Self(u64::MAX);

    /// This position and `bytes` more.
    ///
    /// # Panics
    /// On overflow, which 2^64 bytes of log do not reach.
    #[must_use]
    pub fn advance(self, bytes: u64) -> Self {
        Self(
            self.0
                .checked_add(bytes)
                .expect("2^64 bytes of log are never written"),
        )
    }

    /// Bytes of log from `start` to here.
    ///
    /// # Panics
    /// If `start` is later.
    pub fn since(self, start: Self) -> u64 {
        self.0
            .checked_sub(start.0)
            .expect("the start of a range of log is not after its end")
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A page's number inside its tablespace; the file offset is the number times the page size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageNo(pub u32);

impl PageNo {
    /// "No page": no tablespace has this many.
    pub const NONE: Self = Self(u32::MAX);
}

impl fmt::Display for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A tablespace. An id is never reused after the tablespace was dropped: it is allocated durably
/// before the tablespace's file is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SpaceId(pub u32);

impl fmt::Display for SpaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A page anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageId {
    /// The tablespace.
    pub space: SpaceId,
    /// The page in it.
    pub page: PageNo,
}

impl PageId {
    /// Bytes of an encoded id.
    pub const BYTES: usize = 8;

    /// A page of a tablespace.
    pub fn new(space: SpaceId, page: PageNo) -> Self {
        Self { space, page }
    }

    /// The id in one word: tablespace high, page low.
    pub fn to_word(self) -> u64 {
        (u64::from(self.space.0) << 32) | u64::from(self.page.0)
    }

    /// The id that [`PageId::to_word`] encoded in the word.
    pub fn from_word(word: u64) -> Self {
        let space = u32::try_from(word >> 32).expect("32 bits are left");
        let page = u32::try_from(word & 0xFFFF_FFFF).expect("32 bits are left");
        Self {
            space: SpaceId(space),
            page: PageNo(page),
        }
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.space, self.page)
    }
}

/// A transaction, 48 bits. 0 is "none": rows older than every transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TxnId(u64);

impl TxnId {
    /// No transaction.
    pub const NONE: Self = Self(0);
    /// Bytes of an encoded id.
    pub const BYTES: usize = 6;
    /// The largest id.
    pub const MAX: Self = Self((1 << 48) - 1);

    /// The id, or `None` if the number needs more than 48 bits.
    pub fn new(id: u64) -> Option<Self> {
        (id <= Self::MAX.0).then_some(Self(id))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// Six bytes, little-endian.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d, e, f, _, _] = self.0.to_le_bytes();
        [a, b, c, d, e, f]
    }

    /// The id in six bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f] = bytes;
        Self(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Where the version before this one is: undo segment, page and offset in 56 bits.
///
/// Zero is "no older version": an undo record never stands at offset 0, the page header does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UndoPointer(u64);

impl UndoPointer {
    /// No older version.
    pub const NULL: Self = Self(0);
    /// Bytes of an encoded pointer.
    pub const BYTES: usize = 7;

    /// The undo record at `offset` of a page of an undo segment.
    pub fn new(segment: u8, page: PageNo, offset: u16) -> Self {
        Self((u64::from(segment) << 48) | (u64::from(page.0) << 16) | u64::from(offset))
    }

    /// Whether there is no older version.
    pub fn is_null(self) -> bool {
        self == Self::NULL
    }

    /// The undo segment.
    pub fn segment(self) -> u8 {
        u8::try_from(self.0 >> 48).expect("56 bits hold 8 above bit 48")
    }

    /// The page in the segment's tablespace.
    pub fn page(self) -> PageNo {
        PageNo(u32::try_from((self.0 >> 16) & 0xFFFF_FFFF).expect("masked to 32 bits"))
    }

    /// The offset in the page.
    pub fn offset(self) -> u16 {
        u16::try_from(self.0 & 0xFFFF).expect("masked to 16 bits")
    }

    /// Seven bytes, little-endian.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d, e, f, g, _] = self.0.to_le_bytes();
        [a, b, c, d, e, f, g]
    }

    /// The pointer in seven bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [a, b, c, d, e, f, g] = bytes;
        Self(u64::from_le_bytes([a, b, c, d, e, f, g, 0]))
    }
}

/// A table. An id is never reused after the table was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TableId(pub u64);

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An index. Ids are unique over all tables and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct IndexId(pub u64);

impl fmt::Display for IndexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn txn_ids_have_48_bits() {
        assert_eq!(TxnId::new(1 << 48), None);
        assert_eq!(TxnId::new((1 << 48) - 1), Some(TxnId::MAX));
        assert_eq!(TxnId::MAX.to_bytes(), [0xFF; 6]);
    }

    #[test]
    fn undo_pointer_layout() {
        let pointer = UndoPointer::new(0x07, PageNo(0x0605_0403), 0x0201);
        assert_eq!(pointer.to_bytes(), [1, 2, 3, 4, 5, 6, 7]);
        assert!(UndoPointer::from_bytes([0; 7]).is_null());
    }

    proptest! {
        #[test]
        fn round_trips(space: u32, page: u32, txn in 0u64..1 << 48, segment: u8, offset: u16) {
            let id = PageId::new(SpaceId(space), PageNo(page));
            prop_assert_eq!(PageId::from_word(id.to_word()), id);
            let txn = TxnId::new(txn).unwrap();
            prop_assert_eq!(TxnId::from_bytes(txn.to_bytes()), txn);
            let undo = UndoPointer::new(segment, PageNo(page), offset);
            prop_assert_eq!(UndoPointer::from_bytes(undo.to_bytes()), undo);
            prop_assert_eq!((undo.segment(), undo.page().0), (segment, page));
            prop_assert_eq!(undo.offset(), offset);
        }
    }
}
