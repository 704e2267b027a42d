//! Looking at every page of a tablespace's file, for `plateau check`.

use std::path::Path;

use env::{Disk, DiskError, IoBuffer};
use format::page::{PageError, verify};
use format::{PageId, PageNo, PageSize, SpaceId};

use crate::space;

/// Bytes of one read.
const READ_BYTES: usize = 1 << 20;

/// A page that is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedPage {
    /// Which.
    pub id: PageId,
    /// What is wrong.
    pub error: PageError,
}

/// What [`verify_space`] has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpaceReport {
    /// Pages that are whole.
    pub whole: u64,
    /// Pages that the file has room for but that were never written.
    pub unwritten: u64,
    /// All others.
    pub damaged: Vec<DamagedPage>,
}

/// Checks every page in the file of a tablespace: checksum, place, size, header. To be called
/// where nobody writes the file. Blocks.
pub async fn verify_space(
    disk: &dyn Disk,
    directory: &Path,
    id: SpaceId,
    size: PageSize,
) -> Result<SpaceReport, DiskError> {
    let file = space::open_file(disk, &space::path(directory, id), false)?;
    let length = disk.length(&file)?;
    let mut report = SpaceReport::default();
    let (mut offset, mut number) = (0, 0);
    while offset < length {
        let (bytes, outcome) = disk.read(&file, offset, IoBuffer::zeroed(READ_BYTES)).await;
        let read = outcome?;
        for page in bytes.get(..read).unwrap_or(&[]).chunks(size.bytes()) {
            let page_id = PageId::new(id, PageNo(number));
            if page.iter().all(|&byte| byte == 0) {
                report.unwritten += 1;
            } else {
                match verify(page, page_id, size) {
                    Ok(_) => report.whole += 1,
                    Err(error) => report.damaged.push(DamagedPage { id: page_id, error }),
                }
            }
            number = number.saturating_add(1);
        }
        if read == 0 {
            break;
        }
        offset += stdx::to_u64(read);
    }
    Ok(report)
}
