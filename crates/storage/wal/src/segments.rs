//! The segment files: which blocks are where, which are prepared, which may be used again.
//!
//! Segment `s` holds the blocks `s * segment_blocks ..`. A segment is `obsolete` when all its
//! blocks are before the checkpoint, `live` while it holds log or will be written next, `prepared`
//! ahead of that. Obsolete ones become prepared ones by renaming, which costs no writing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use env::{
    Disk, DiskError, DiskErrorKind, DiskWork, File, FileAccess, IoBuffer, OpenOptions,
    WriteDurability,
};
use format::log::LOG_BLOCK_BYTES;

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

    /// Opens a segment that is there; `None` if it is not.
    pub(crate) fn open(&self, disk: &dyn Disk, segment: u64) -> Result<Option<File>, DiskError> {
        match disk.open(&self.path(segment), options(false)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Numbers of the segments that are there, ascending.
    pub(crate) fn list(&self, disk: &dyn Disk) -> Result<Vec<u64>, DiskError> {
        let names = disk.list(&self.directory)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Makes a segment whose blocks are written to once already, with zeroes: the file system has
    /// nothing left to note when log is written, and no ENOSPC is left to meet.
    pub(crate) async fn create(&self, disk: &dyn Disk, segment: u64) -> Result<File, DiskError> {
        let path = self.path(segment);
        let file = match disk.open(&path, options(true)) {
            // Half made: whoever was at it was given up.
            Err(error) if error.kind == DiskErrorKind::Exists => {
                disk.remove(&path)?;
                disk.open(&path, options(true))?
            }
            opened => opened?,
        };
        let made = self.fill(disk, &file).await;
        if let Err(error) = made {
            // A half made segment is of no use, and its room may be what others need.
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

    /// Gives an obsolete segment a new number and opens it. An attempt that failed half way may be
    /// repeated. `None` if there is no whole segment of either number: somebody has taken it away.
    pub(crate) async fn rename(
        &self,
        disk: &dyn Disk,
        from: u64,
        to: u64,
    ) -> Result<Option<File>, DiskError> {
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
    /// Obsolete ones that were closed, to be renamed. The first of them may be under way: it stays
    /// here until that is over, so that whoever comes after one who was given up repeats the same
    /// renaming. Another one could be overtaken by it, and lose its file.
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

    /// Closes what lies wholly before `segment`.
    pub(crate) fn retire_before(&mut self, segment: u64) {
        while let Some((number, _)) = self.open.front()
            && *number < segment
        {
            self.obsolete.push_back(*number);
            self.open.pop_front();
        }
    }
}
