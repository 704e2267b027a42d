//! Reads blocks of the log by their numbers, many at a time.

use env::{Disk, DiskError, File, IoBuffer};
use format::log::LOG_BLOCK_BYTES;

use crate::segments::SegmentPlace;

/// Blocks of one read.
const READ_BLOCKS: u64 = 64;

/// Reads blocks out of the segment files; best in ascending order.
#[derive(Debug)]
pub(crate) struct BlockReader {
    place: SegmentPlace,
    /// The open segment.
    file: Option<(u64, File)>,
    /// Blocks read from `chunk_block` on.
    chunk: Option<IoBuffer>,
    chunk_block: u64,
    chunk_blocks: u64,
}

impl BlockReader {
    pub(crate) fn new(place: SegmentPlace) -> Self {
        Self {
            place,
            file: None,
            chunk: None,
            chunk_block: 0,
            chunk_blocks: 0,
        }
    }

    pub(crate) fn place(&self) -> &SegmentPlace {
        &self.place
    }

    /// Makes sure that block `number` is in memory. Returns false if no file has it.
    pub(crate) async fn fetch(&mut self, disk: &dyn Disk, number: u64) -> Result<bool, DiskError> {
        let chunk_end = self.chunk_block.saturating_add(self.chunk_blocks);
        if (self.chunk_block..chunk_end).contains(&number) {
            return Ok(true);
        }
        let left = self.place.blocks - number % self.place.blocks;
        self.read(disk, number, left.min(READ_BLOCKS)).await
    }

    /// As `fetch`, if neighbours of the block may be unreadable: it is read by itself.
    pub(crate) async fn fetch_singly(
        &mut self,
        disk: &dyn Disk,
        number: u64,
    ) -> Result<bool, DiskError> {
        self.read(disk, number, 1).await
    }

    async fn read(&mut self, disk: &dyn Disk, number: u64, count: u64) -> Result<bool, DiskError> {
        self.chunk_blocks = 0;
        let segment = self.place.segment_of(number);
        if self.file.as_ref().is_none_or(|(open, _)| *open != segment) {
            self.file = self.place.open(disk, segment)?.map(|file| (segment, file));
            if let Some((_, file)) = &self.file {
                // The process may have died while the machine lived on. What is read here must not
                // vanish later, when pages in the files depend on it.
                disk.sync(file).await?;
            }
        }
        let Some((_, file)) = &self.file else {
            return Ok(false);
        };
        let buffer = IoBuffer::zeroed(stdx::to_usize(count) * LOG_BLOCK_BYTES);
        let offset = self.place.offset_of(number);
        let (buffer, outcome) = disk.read(file, offset, buffer).await;
        let length = outcome?;
        self.chunk_block = number;
        self.chunk_blocks = stdx::to_u64(length / LOG_BLOCK_BYTES);
        self.chunk = Some(buffer);
        Ok(0 < self.chunk_blocks)
    }

    /// The bytes of a block that was fetched.
    pub(crate) fn bytes(&self, number: u64) -> Option<&[u8]> {
        let at = number.checked_sub(self.chunk_block)?;
        if self.chunk_blocks <= at {
            return None;
        }
        let at = usize::try_from(at).ok()?.checked_mul(LOG_BLOCK_BYTES)?;
        let end = at.checked_add(LOG_BLOCK_BYTES)?;
        self.chunk.as_ref()?.get(at..end)
    }
}
