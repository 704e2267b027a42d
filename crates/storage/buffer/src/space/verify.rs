//! Verifies every page of a tablespace's file, for `plateau check`.

use std::ops::Range;
use std::path::Path;

use env::{Disk, DiskError, File, IoBuffer};
use format::page::{PageError, PageHeader, verify};
use format::{PageId, PageNo, PageSize, SpaceId};

use crate::space;

/// Bytes of one read.
const READ_BYTES: usize = 1 << 20;

const _: () = assert!(
    READ_BYTES.is_multiple_of(PageSize::KiB32.bytes()),
    "a read ends where a page does"
);

/// What is at a page's place in the file.
#[derive(Debug)]
pub enum Seen<'a> {
    /// The page, whole.
    Whole(PageHeader, &'a [u8]),
    /// The file has room for it, but it was never written.
    Unwritten,
    /// Something that is not the page.
    Damaged(PageError),
    /// The disk cannot read it.
    Unreadable(DiskError),
}

/// The number of pages in the file of a tablespace; a partial page counts.
pub fn space_pages(
    disk: &dyn Disk,
    directory: &Path,
    id: SpaceId,
    size: PageSize,
) -> Result<u32, DiskError> {
    let file = space::open_file(disk, &space::path(directory, id), false)?;
    let pages = disk.length(&file)?.div_ceil(stdx::to_u64(size.bytes()));
    Ok(u32::try_from(pages).unwrap_or(u32::MAX))
}

/// Passes every page in the file of a tablespace to `see`, after checking checksum, place, size and
/// header. The file must not be written meanwhile. The file itself must open; parts of it that
/// cannot be read are passed over.
pub async fn verify_space(
    disk: &dyn Disk,
    directory: &Path,
    id: SpaceId,
    size: PageSize,
    see: &mut dyn FnMut(PageId, Seen<'_>),
) -> Result<(), DiskError> {
    verify_pages(disk, directory, (id, 0..u32::MAX), size, see).await
}

/// As [`verify_space`], for a range of its pages.
pub async fn verify_pages(
    disk: &dyn Disk,
    directory: &Path,
    (id, pages): (SpaceId, Range<u32>),
    size: PageSize,
    see: &mut dyn FnMut(PageId, Seen<'_>),
) -> Result<(), DiskError> {
    let file = space::open_file(disk, &space::path(directory, id), false)?;
    let length = disk.length(&file)?;
    let page_bytes = stdx::to_u64(size.bytes());
    let end = page_bytes.saturating_mul(u64::from(pages.end)).min(length);
    let run_pages = stdx::to_u32(READ_BYTES / size.bytes());
    let mut first = pages.start;
    let mut buffer = IoBuffer::zeroed(READ_BYTES);
    while space::page_offset(PageNo(first), size) < end {
        let offset = space::page_offset(PageNo(first), size);
        let (bytes, outcome) = disk.read(&file, offset, buffer).await;
        let wanted = usize::try_from(end - offset).unwrap_or(READ_BYTES);
        let read = match outcome {
            Ok(0) => break,
            Ok(read) => bytes.get(..read.min(wanted)).unwrap_or(&[]),
            // One bad page is enough to fail the whole read.
            Err(_) => {
                let numbers = first..first.saturating_add(run_pages);
                let pages = numbers.map(|number| PageId::new(id, PageNo(number)));
                let pages = pages.take_while(|page| space::page_offset(page.page, size) < end);
                see_singly(disk, &file, pages, size, see).await;
                &[]
            }
        };
        for (page, number) in read.chunks(size.bytes()).zip(first..) {
            see_page(PageId::new(id, PageNo(number)), page, size, see);
        }
        let Some(next) = first.checked_add(run_pages) else {
            break;
        };
        first = next;
        buffer = bytes;
    }
    Ok(())
}

/// Reads the pages of a stretch one by one.
async fn see_singly(
    disk: &dyn Disk,
    file: &File,
    pages: impl Iterator<Item = PageId>,
    size: PageSize,
    see: &mut dyn FnMut(PageId, Seen<'_>),
) {
    for page_id in pages {
        let offset = space::page_offset(page_id.page, size);
        let (bytes, outcome) = disk
            .read(file, offset, IoBuffer::zeroed(size.bytes()))
            .await;
        match outcome {
            Ok(read) => see_page(page_id, bytes.get(..read).unwrap_or(&[]), size, see),
            Err(error) => see(page_id, Seen::Unreadable(error)),
        }
    }
}

fn see_page(id: PageId, page: &[u8], size: PageSize, see: &mut dyn FnMut(PageId, Seen<'_>)) {
    if page.iter().all(|&byte| byte == 0) {
        return see(id, Seen::Unwritten);
    }
    match verify(page, id, size) {
        Ok(header) => see(id, Seen::Whole(header, page)),
        Err(error) => see(id, Seen::Damaged(error)),
    }
}
