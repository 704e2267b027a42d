//! The segment files: where each block is, and which segments are prepared or may be reused.
//!
//! Segment `s` holds the blocks `s * segment_blocks ..`. A segment is `obsolete` when all its
//! blocks are before the checkpoint, `live` while it holds log or is written next, and `prepared`
//! if it comes later. An obsolete segment becomes a prepared one by renaming, which needs no
//! writing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use env::{
    Disk, DiskError, DiskErrorKind, DiskWork, File, FileAccess, IoBuffer, OpenOptions,
    WriteDurability,
};
use format::log::{LOG_BLOCK_BYTES, LOG_COUNT_MAX};

/// Directory of the segments in the data directory.
const LOG_DIRECTORY_NAME: &str = "log";

/// Bytes of one zeroing write.
const ZERO_WRITE_BYTES: usize = 1 << 20;

/// Where segments lie and how large they are.
#[derive(Debug, Clone)]
pub(crate) struct SegmentPlace {
    /// The log's directory.
    pub(crate) directory: PathBuf,
    /// Blocks of one segment.
    pub(crate) blocks: u64,
}

impl SegmentPlace {
    pub(crate) fn new(data_directory: &Path, blocks: u32) -> Self {
        assert!(0 < blocks);
        let directory = data_directory.join(LOG_DIRECTORY_NAME);
        Self {
            directory,
            blocks: u64::from(blocks),
        }
    }

    pub(crate) fn path(&self, segment: u64) -> PathBuf {
        self.directory.join(format!("log_{segment:016x}.pdl"))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.blocks * stdx::to_u64(LOG_BLOCK_BYTES)
    }

    pub(crate) fn segment_of(&self, block: u64) -> u64 {
        block / self.blocks
    }

    /// Offset of a block in its segment.
    pub(crate) fn offset_of(&self, block: u64) -> u64 {
        block % self.blocks * stdx::to_u64(LOG_BLOCK_BYTES)
    }

    /// Opens an existing segment; `None` if there is no such file.
    pub(crate) fn open(&self, disk: &dyn Disk, segment: u64) -> Result<Option<File>, DiskError> {
        match disk.open(&self.path(segment), options(false)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Numbers of the existing segments, ascending.
    pub(crate) fn list(&self, disk: &dyn Disk) -> Result<Vec<u64>, DiskError> {
        let names = disk.list(&self.directory)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Makes a segment whose blocks are already written once, with zeroes. So the file system has
    /// no metadata to write when log is written, and there can be no ENOSPC.
    pub(crate) async fn create(&self, disk: &dyn Disk, segment: u64) -> Result<File, DiskError> {
        let path = self.path(segment);
        let file = match disk.open(&path, options(true)) {
            // Half made by an attempt that was dropped.
            Err(error) if error.kind == DiskErrorKind::Exists => {
                disk.remove(&path)?;
                disk.open(&path, options(true))?
            }
            opened => opened?,
        };
        let made = self.fill(disk, &file).await;
        if let Err(error) = made {
            // A half made segment is useless, and others may need its room.
            drop(file);
            disk.remove(&path)?;
            return Err(error);
        }
        Ok(file)
    }

    async fn fill(&self, disk: &dyn Disk, file: &File) -> Result<(), DiskError> {
        let (growing, length) = (file.clone(), self.bytes());
        let allocate = move |disk: &dyn Disk| disk.allocate(&growing, length);
        disk.later(Box::new(allocate)).await?;
        let mut offset = 0;
        while offset < self.bytes() {
            let rest = usize::try_from(self.bytes() - offset).unwrap_or(usize::MAX);
            let zeroes = IoBuffer::zeroed(rest.min(ZERO_WRITE_BYTES));
            let (zeroes, outcome) = disk
                .write(file, offset, zeroes, WriteDurability::Volatile)
                .await;
            outcome?;
            offset += stdx::to_u64(zeroes.len());
        }
        disk.sync(file).await?;
        disk.later(self.sync_directory()).await
    }

    /// Gives an obsolete segment a new number and opens it. An attempt that failed half-way may be
    /// repeated. Returns `None` if there is no whole segment of either number: the file was
    /// removed.
    pub(crate) async fn rename(
        &self,
        disk: &dyn Disk,
        from: u64,
        to: u64,
    ) -> Result<Option<File>, DiskError> {
        assert!(from < to, "a segment is used again for later log");
        let (old, new) = (self.path(from), self.path(to));
        let rename = move |disk: &dyn Disk| disk.rename(&old, &new);
        match disk.later(Box::new(rename)).await {
            Err(error) if error.kind != DiskErrorKind::NotFound => return Err(error),
            _ => {}
        }
        disk.later(self.sync_directory()).await?;
        let Some(file) = self.open(disk, to)? else {
            return Ok(None);
        };
        if disk.length(&file)? == self.bytes() {
            return Ok(Some(file));
        }
        disk.remove(&self.path(to))?;
        Ok(None)
    }

    fn sync_directory(&self) -> DiskWork {
        let directory = self.directory.clone();
        Box::new(move |disk| disk.sync_directory(&directory))
    }

    /// Whether a segment has room for all its blocks.
    pub(crate) fn is_whole(&self, disk: &dyn Disk, segment: u64) -> Result<bool, DiskError> {
        let file = self.open(disk, segment)?;
        let length = file.map(|file| disk.length(&file)).transpose()?;
        Ok(length.is_some_and(|length| self.bytes() <= length))
    }

    /// The first block of a segment after all existing ones, and after block `next`.
    pub(crate) fn fresh_block(&self, disk: &dyn Disk, next: u64) -> Result<u64, DiskError> {
        disk.create_directory(&self.directory)?;
        let numbers = self.list(disk)?;
        // A file may have any name; none of our segments is above the largest block.
        let possible = |number: &u64| *number < LOG_COUNT_MAX / self.blocks;
        let last = numbers.into_iter().filter(possible).max().unwrap_or(0);
        Ok((last.max(self.segment_of(next)) + 1) * self.blocks)
    }
}

fn options(create: bool) -> OpenOptions {
    OpenOptions {
        write: true,
        create,
        exclusive: create,
        access: FileAccess::Direct,
    }
}

fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_prefix("log_")?.strip_suffix(".pdl")?;
    if digits.len() != 16 {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// The open segments: obsolete, live and prepared ones, without gaps.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// By number.
    pub(crate) open: VecDeque<(u64, File)>,
    /// Obsolete segments that were closed, to be renamed. The renaming of the first one may be
    /// under way. It stays here until that ends, so the attempt after a dropped one repeats the
    /// same renaming. Otherwise the old renaming could overtake another one, which would lose its
    /// file.
    pub(crate) obsolete: VecDeque<u64>,
}

impl Segments {
    pub(crate) fn file(&self, segment: u64) -> Option<File> {
        let found = self.open.iter().find(|(number, _)| *number == segment);
        found.map(|(_, file)| file.clone())
    }

    pub(crate) fn last(&self) -> Option<u64> {
        self.open.back().map(|(number, _)| *number)
    }

    pub(crate) fn push(&mut self, segment: u64, file: File) {
        assert!(self.last().is_none_or(|last| last + 1 == segment));
        self.open.push_back((segment, file));
    }

    /// Closes the segments that lie wholly before `segment`.
    pub(crate) fn retire_before(&mut self, segment: u64) {
        while let Some((number, _)) = self.open.front()
            && *number < segment
        {
            let last = self.obsolete.back();
            assert!(
                last.is_none_or(|last| last < number),
                "segments become obsolete in order"
            );
            self.obsolete.push_back(*number);
            self.open.pop_front();
        }
    }
}
