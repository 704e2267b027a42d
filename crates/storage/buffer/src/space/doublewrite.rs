//! The doublewrite file: copies of the pages that are being written, for the repair of torn ones.
//!
//! Layout: `docs/formats/doublewrite.md`. A batch is durable here before its first page is written
//! in place. The next batch comes here only when this one is durable in place. So a page that is
//! torn after a crash has a whole copy here. If the batch is torn here, its pages were not yet
//! being written in place.

use std::path::{Path, PathBuf};

use env::{Disk, DiskError, DiskErrorKind, File, IoBuffer, WriteDurability};
use format::codec::{self, Reader, Truncated};
use format::page::{PageError, verify};
use format::{PageId, PageSize};

use crate::options::PoolOptions;
use crate::space;

const FILE_NAME: &str = "doublewrite.pdw";
const HEADER_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"PLATDBW1";
const IDS_AT: usize = 32;

/// Pages of a batch at most: as many ids fit into the header.
pub(crate) const BATCH_PAGES_MAX: usize = (HEADER_BYTES - IDS_AT) / PageId::BYTES;

/// The open file. Written by the cleaner, of which there is one.
#[derive(Debug)]
pub(crate) struct Doublewrite {
    file: File,
    page_size: PageSize,
}

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE_NAME)
}

fn encode_header(size: PageSize, ids: &[PageId]) -> [u8; HEADER_BYTES] {
    assert!(ids.len() <= BATCH_PAGES_MAX);
    let mut header = [0; HEADER_BYTES];
    let count = stdx::to_u32(ids.len());
    let fields: [(usize, &[u8]); 3] = [
        (8, &MAGIC),
        (16, &count.to_le_bytes()),
        (20, &[size.class()]),
    ];
    for (at, field) in fields {
        codec::put_at(&mut header, at, field).expect("the fields are inside the header");
    }
    for (index, id) in ids.iter().enumerate() {
        let at = IDS_AT + index * PageId::BYTES;
        codec::put_at(&mut header, at, &id.space.0.to_le_bytes()).expect("counted above");
        codec::put_at(&mut header, at + 4, &id.page.0.to_le_bytes()).expect("counted above");
    }
    let sum = codec::checksum(header.get(8..).expect("the header is longer"));
    codec::put_at(&mut header, 0, &sum.to_le_bytes()).expect("the header is longer");
    debug_assert_eq!(decode_header(&header), Some((size, ids.to_vec())));
    header
}

/// Page size and ids of a batch; `None` if no whole header is there.
fn decode_header(header: &[u8]) -> Option<(PageSize, Vec<PageId>)> {
    let covered = header.get(8..HEADER_BYTES)?;
    if codec::u64_at(header, 0)? != codec::checksum(covered) || covered.get(..8)? != MAGIC {
        return None;
    }
    let count = usize::try_from(codec::u32_at(header, 16)?).ok()?;
    let size = PageSize::from_class(*header.get(20)?)?;
    let mut reader = Reader::new(header.get(IDS_AT..)?);
    let ids: Result<Vec<PageId>, Truncated> = (0..count).map(|_| reader.page_id()).collect();
    Some((size, ids.ok()?))
}

impl Doublewrite {
    /// Opens the file, or makes it. Its old contents are not needed any more. Blocks.
    pub(crate) fn open(
        disk: &dyn Disk,
        directory: &Path,
        options: &PoolOptions,
    ) -> Result<Self, DiskError> {
        let path = path(directory);
        let page_size = options.page_size;
        let file = match space::open_file(disk, &path, false) {
            Err(error) if error.kind == DiskErrorKind::NotFound => {
                let file = space::open_file(disk, &path, true)?;
                disk.sync_directory(directory)?;
                file
            }
            other => other?,
        };
        let pages = batch_pages(options) * page_size.bytes();
        disk.allocate(&file, stdx::to_u64(HEADER_BYTES + pages))?;
        Ok(Self { file, page_size })
    }

    /// Writes a batch durably.
    pub(crate) async fn write<'a>(
        &self,
        disk: &dyn Disk,
        pages: impl ExactSizeIterator<Item = (PageId, &'a [u8])>,
    ) -> Result<(), DiskError> {
        let (size, count) = (self.page_size.bytes(), pages.len());
        let mut buffer = IoBuffer::zeroed(HEADER_BYTES + count * size);
        let mut ids = Vec::with_capacity(count);
        let (header, images) = buffer.split_at_mut(HEADER_BYTES);
        for (image, (id, page)) in images.chunks_exact_mut(size).zip(pages) {
            image.copy_from_slice(page);
            ids.push(id);
        }
        assert_eq!(ids.len(), count, "each page of the batch has its copy");
        header.copy_from_slice(&encode_header(self.page_size, &ids));
        let (_, outcome) = disk
            .write(&self.file, 0, buffer, WriteDurability::Sync)
            .await;
        outcome.map(|_| ())
    }
}

/// Pages of one batch under these options.
pub(crate) fn batch_pages(options: &PoolOptions) -> usize {
    stdx::to_usize(options.clean_batch_pages).clamp(1, BATCH_PAGES_MAX)
}

/// Replaces torn pages by whole copies; returns their ids. Blocks.
pub(crate) async fn repair(disk: &dyn Disk, directory: &Path) -> Result<Vec<PageId>, DiskError> {
    let file = match space::open_file(disk, &path(directory), false) {
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let (header, outcome) = disk.read(&file, 0, IoBuffer::zeroed(HEADER_BYTES)).await;
    let length = outcome?;
    let mut repaired = Vec::new();
    let Some((size, ids)) = header.get(..length).and_then(decode_header) else {
        return Ok(repaired);
    };
    let mut offset = stdx::to_u64(HEADER_BYTES);
    for id in ids {
        let (image, outcome) = disk
            .read(&file, offset, IoBuffer::zeroed(size.bytes()))
            .await;
        let length = outcome?;
        offset += stdx::to_u64(size.bytes());
        let is_whole = verify(image.get(..length).unwrap_or(&[]), id, size).is_ok();
        if is_whole && repair_page(disk, directory, (id, size), image).await? {
            repaired.push(id);
        }
    }
    Ok(repaired)
}

async fn repair_page(
    disk: &dyn Disk,
    directory: &Path,
    (id, size): (PageId, PageSize),
    image: IoBuffer,
) -> Result<bool, DiskError> {
    let file = match space::open_file(disk, &space::path(directory, id.space), false) {
        // The tablespace was dropped meanwhile.
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    // A whole page may still not be durable, and this copy is about to be overwritten.
    disk.sync(&file).await?;
    let offset = space::page_offset(id.page, size);
    let (found, outcome) = disk
        .read(&file, offset, IoBuffer::zeroed(size.bytes()))
        .await;
    let length = outcome?;
    match verify(found.get(..length).unwrap_or(&[]), id, size) {
        // Whole, old or new; or another page's, which a torn write cannot produce.
        Ok(_) | Err(PageError::Misplaced { .. }) => return Ok(false),
        Err(_) => {}
    }
    let (_, outcome) = disk
        .write(&file, offset, image, WriteDurability::Sync)
        .await;
    outcome.map(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::{PageNo, SpaceId};
    use proptest::prelude::*;

    #[test]
    fn layout_is_pinned() {
        let ids = [
            PageId::new(SpaceId(1), PageNo(2)),
            PageId::new(SpaceId(3), PageNo(4)),
        ];
        let header = encode_header(PageSize::KiB16, &ids);
        assert_eq!(&header[8..24], b"PLATDBW1\x02\0\0\0\x02\0\0\0");
        assert_eq!(
            &header[32..48],
            [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]
        );
        assert_eq!(
            decode_header(&header),
            Some((PageSize::KiB16, ids.to_vec()))
        );
        let mut torn = header;
        torn[40] ^= 1;
        assert_eq!(decode_header(&torn), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_header(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode_header(&bytes), None);
        }
    }
}
