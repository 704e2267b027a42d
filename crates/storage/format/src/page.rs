//! The header of every page, and the possible page sizes.
//!
//! Layout: `docs/formats/page.md`. The checksum covers everything after itself. It is written when
//! the page is written to its file and checked when it is read; in between it is meaningless.

use stdx::planted::{Mistake, is_planted};
use thiserror::Error;

use crate::codec::{self, Reader};
use crate::ids::{Lsn, PageId};
use crate::page_bytes::PageBytesMut;

/// Bytes of the header; what follows belongs to the page's type.
pub const PAGE_HEADER_BYTES: usize = 32;

/// The version of the page header that this program writes.
pub const PAGE_FORMAT_VERSION: u16 = 2;

/// Offset of the page LSN.
pub const PAGE_LSN_AT: usize = 8;
/// Offset of the page's number within its tablespace.
pub const PAGE_NO_AT: usize = 20;

const CHECKSUM_BYTES: usize = 8;

/// Offset of the epoch.
const EPOCH_AT: usize = 28;

/// A possible page size of a tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PageSize {
    /// 4 KiB.
    KiB4,
    /// 8 KiB.
    KiB8,
    /// 16 KiB, for which MySQL's limits of keys and rows are made.
    #[default]
    KiB16,
    /// 32 KiB.
    KiB32,
}

impl PageSize {
    /// Every size, smallest first.
    pub const ALL: [Self; 4] = [Self::KiB4, Self::KiB8, Self::KiB16, Self::KiB32];

    /// The size in bytes.
    pub const fn bytes(self) -> usize {
        4096 << self.class()
    }

    /// The size class on disk: 0 is 4 KiB, each next twice the one before.
    pub const fn class(self) -> u8 {
        match self {
            Self::KiB4 => 0,
            Self::KiB8 => 1,
            Self::KiB16 => 2,
            Self::KiB32 => 3,
        }
    }

    /// The size of a class, or `None` if there is no such class.
    pub const fn from_class(class: u8) -> Option<Self> {
        match class {
            0 => Some(Self::KiB4),
            1 => Some(Self::KiB8),
            2 => Some(Self::KiB16),
            3 => Some(Self::KiB32),
            _ => None,
        }
    }
}

/// The type of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageType {
    /// Page 0 of a tablespace.
    SpaceHeader = 1,
    /// The allocation map of a stretch of a tablespace.
    AllocationMap = 2,
    /// Leaf of a B+tree.
    BtreeLeaf = 3,
    /// Inner node of a B+tree.
    BtreeInner = 4,
    /// Older versions of rows.
    Undo = 5,
    /// Directory of an undo segment.
    UndoHeader = 6,
    /// Part of a large value.
    Lob = 7,
    /// Fixed places of the engine (roots, counters).
    Meta = 8,
}

impl PageType {
    /// Every type.
    pub const ALL: [Self; 8] = [
        Self::SpaceHeader,
        Self::AllocationMap,
        Self::BtreeLeaf,
        Self::BtreeInner,
        Self::Undo,
        Self::UndoHeader,
        Self::Lob,
        Self::Meta,
    ];

    /// The byte on disk.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The type of a byte on disk.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }
}

/// The decoded header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// End of the last mini-transaction that changed the page.
    pub lsn: Lsn,
    /// The page's id.
    pub id: PageId,
    /// The page's type.
    pub page_type: PageType,
    /// The page's size.
    pub size: PageSize,
    /// The life of the server that wrote the page to its file; meaningless in memory.
    pub epoch: u32,
}

/// Why bytes are not the page that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PageError {
    /// Fewer bytes than a page.
    #[error("the file ends inside the page")]
    Truncated,
    /// The bytes are not what was written.
    #[error("checksum {stored:016x} is stored, {computed:016x} is right")]
    Checksum {
        /// The checksum in the page.
        stored: u64,
        /// The checksum of the page's bytes.
        computed: u64,
    },
    /// Another page's bytes: a misdirected write or read.
    #[error("it says that it is page {found}")]
    Misplaced {
        /// The id in the header.
        found: PageId,
    },
    /// Written by a later program, or no page at all.
    #[error("page format {0} is not known")]
    Version(u16),
    /// A page type that is not known.
    #[error("page type {0} is not known")]
    Type(u8),
    /// A size that is not known or not that of the tablespace.
    #[error("size class {0} is not that of the tablespace")]
    Size(u8),
}

impl PageHeader {
    /// Writes the header, except the checksum, to the front of a page.
    ///
    /// # Panics
    /// If `page` is not as long as the header says.
    pub fn encode<P: PageBytesMut + ?Sized>(&self, page: &mut P) {
        assert_eq!(page.bytes().len(), self.size.bytes());
        let mut header = [0; PAGE_HEADER_BYTES];
        let (_, rest) = header.split_at_mut(CHECKSUM_BYTES);
        let fields: [&[u8]; 7] = [
            &self.lsn.0.to_le_bytes(),
            &self.id.space.0.to_le_bytes(),
            &self.id.page.0.to_le_bytes(),
            &[self.page_type.code()],
            &[self.size.class()],
            &PAGE_FORMAT_VERSION.to_le_bytes(),
            &self.epoch.to_le_bytes(),
        ];
        let mut at = 0;
        for field in fields {
            codec::put_at(rest, at, field).expect("the fields are shorter than the header");
            at += field.len();
        }
        page.put(0, &header)
            .expect("a page is longer than its header");
    }

    /// Reads the header of a page in memory; does not check the checksum.
    pub fn decode(page: &[u8]) -> Result<Self, PageError> {
        let mut reader = Reader::new(page);
        let fields = (|| {
            reader.u64()?;
            let lsn = reader.lsn()?;
            let id = reader.page_id()?;
            let kind = (reader.u8()?, reader.u8()?, reader.u16()?);
            Ok::<_, codec::Truncated>((lsn, id, kind, reader.u32()?))
        })();
        let (lsn, id, kind, epoch) = fields.map_err(|_| PageError::Truncated)?;
        let (code, class, version) = kind;
        if version != PAGE_FORMAT_VERSION {
            return Err(PageError::Version(version));
        }
        let page_type = PageType::from_code(code).ok_or(PageError::Type(code))?;
        let size = PageSize::from_class(class).ok_or(PageError::Size(class))?;
        Ok(Self {
            lsn,
            id,
            page_type,
            size,
            epoch,
        })
    }
}

/// The LSN of a page in memory, or `None` if `page` is shorter than a header.
pub fn page_lsn(page: &[u8]) -> Option<Lsn> {
    codec::u64_at(page, PAGE_LSN_AT).map(Lsn)
}

/// Stamps the LSN of a page in memory.
///
/// # Panics
/// If `page` is shorter than a header.
pub fn set_page_lsn<P: PageBytesMut + ?Sized>(page: &mut P, lsn: Lsn) {
    page.put(PAGE_LSN_AT, &lsn.0.to_le_bytes())
        .expect("a page has a header");
}

/// Sets the life of the server that writes the page to its file; called before [`seal`].
///
/// # Panics
/// If `page` is shorter than a header.
pub fn set_page_epoch(page: &mut [u8], epoch: u32) {
    codec::put_at(page, EPOCH_AT, &epoch.to_le_bytes()).expect("a page has a header");
}

/// Sets the checksum of a page that is about to be written to its file.
///
/// # Panics
/// If `page` is shorter than a header.
pub fn seal(page: &mut [u8]) {
    let computed = codec::checksum(page.get(CHECKSUM_BYTES..).expect("a page has a header"));
    codec::put_at(page, 0, &computed.to_le_bytes()).expect("a page has a header");
}

/// Checks a page that was read from its file: whole, unharmed, and the wanted one.
pub fn verify(page: &[u8], id: PageId, size: PageSize) -> Result<PageHeader, PageError> {
    if page.len() < size.bytes() {
        return Err(PageError::Truncated);
    }
    let stored = codec::u64_at(page, 0).ok_or(PageError::Truncated)?;
    let computed = codec::checksum(page.get(CHECKSUM_BYTES..).ok_or(PageError::Truncated)?);
    if stored != computed && !is_planted(Mistake::AcceptsTornPages) {
        return Err(PageError::Checksum { stored, computed });
    }
    let header = PageHeader::decode(page)?;
    if header.id != id {
        return Err(PageError::Misplaced { found: header.id });
    }
    if header.size != size {
        return Err(PageError::Size(header.size.class()));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{PageNo, SpaceId};
    use proptest::prelude::*;

    fn sample() -> PageHeader {
        PageHeader {
            lsn: Lsn(0x0807_0605_0403_0201),
            id: PageId::new(SpaceId(0x0C0B_0A09), PageNo(0x100F_0E0D)),
            page_type: PageType::BtreeLeaf,
            size: PageSize::KiB16,
            epoch: 0x1817_1615,
        }
    }

    #[test]
    fn layout_is_pinned() {
        let mut page = vec![0; 16384];
        sample().encode(page.as_mut_slice());
        let expected: Vec<u8> = (1..=16).chain([3, 2, 2, 0]).chain(21..=24).collect();
        assert_eq!(&page[8..32], expected);
        assert_eq!(page_lsn(&page), Some(sample().lsn));
        set_page_epoch(&mut page, 0x0403_0201);
        assert_eq!(page[28..32], [1, 2, 3, 4]);
        assert_eq!(codec::u32_at(&page, PAGE_NO_AT), Some(sample().id.page.0));
        seal(&mut page);
        assert_eq!(codec::u64_at(&page, 0), Some(codec::checksum(&page[8..])));
    }

    #[test]
    fn damage_is_named() {
        let header = sample();
        let mut page = vec![0; 16384];
        header.encode(page.as_mut_slice());
        seal(&mut page);
        assert_eq!(verify(&page, header.id, PageSize::KiB16), Ok(header));
        let other = PageId::new(SpaceId(1), PageNo(2));
        assert_eq!(
            verify(&page, other, PageSize::KiB16),
            Err(PageError::Misplaced { found: header.id })
        );
        assert_eq!(
            verify(&page, header.id, PageSize::KiB4),
            Err(PageError::Size(2))
        );
        assert_eq!(
            verify(&page[..9000], header.id, PageSize::KiB16),
            Err(PageError::Truncated)
        );
        page[16000] ^= 1;
        assert!(matches!(
            verify(&page, header.id, PageSize::KiB16),
            Err(PageError::Checksum { .. })
        ));
        let zeroes = vec![0; 16384];
        assert!(verify(&zeroes, header.id, PageSize::KiB16).is_err());
    }

    #[test]
    fn sizes_are_classes() {
        let sizes: Vec<usize> = PageSize::ALL.iter().map(|size| size.bytes()).collect();
        assert_eq!(sizes, [4096, 8192, 16384, 32768]);
        for class in 0..=u8::MAX {
            assert_eq!(
                PageSize::from_class(class).map(PageSize::class),
                (class < 4).then_some(class)
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = PageHeader::decode(&bytes);
            let _ = verify(&bytes, PageId::default(), PageSize::KiB4);
        }
    }
}
