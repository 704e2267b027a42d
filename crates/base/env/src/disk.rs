//! Files as the storage crates see them.
//!
//! Reads and writes own their buffer until they complete. The kernel may still write into the
//! buffer of an operation whose future was dropped, so an implementation must keep it alive itself.
//! The rare calls (open, remove, rename, list, allocate) may block: they are for start-up and for
//! threads that serve no client. A running server passes those that can take long to
//! [`Disk::later`].
//!
//! (I1) A completed `write` with `WriteDurability::Sync`, or a completed `sync` after a completed
//! write, survives a crash. Nothing else does.
//! (I2) A new, renamed or removed name survives a crash only after `sync_directory` of its parent.
//! (I3) After a failed write or sync nothing is known about the range: the caller must not retry
//! and claim success.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use crate::IoBuffer;

/// The result of a completed read or write: the buffer, and how many bytes were transferred.
pub type IoResult = (IoBuffer, Result<usize, DiskError>);

/// A read, write or sync under way. `!Send`: it belongs to the worker whose disk made it.
pub type IoFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// One worker's handle on the file system.
pub trait Disk {
    /// Opens or creates a file. Blocks.
    fn open(&self, path: &Path, options: OpenOptions) -> Result<File, DiskError>;

    /// Reads from `offset` into the whole of `buffer`. Fewer bytes than asked: end of file.
    fn read(&self, file: &File, offset: u64, buffer: IoBuffer) -> IoFuture<IoResult>;

    /// Writes the whole of `buffer` at `offset`; a short write is an error.
    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
    ) -> IoFuture<IoResult>;

    /// Writes all bytes at `offset`, as a volatile [`Disk::write`] that owns no buffer. Blocks.
    fn write_now(&self, file: &File, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Makes all completed writes to the file durable (fdatasync).
    fn sync(&self, file: &File) -> IoFuture<Result<(), DiskError>>;

    /// Reserves room for the file up to `length` bytes, all or nothing, so later writes below it
    /// cannot meet ENOSPC. The new range reads as zeroes. Blocks.
    fn allocate(&self, file: &File, length: u64) -> Result<(), DiskError>;

    /// Cuts or extends the file. Blocks.
    fn set_length(&self, file: &File, length: u64) -> Result<(), DiskError>;

    /// Length of the file in bytes. Blocks.
    fn length(&self, file: &File) -> Result<u64, DiskError>;

    /// Removes a file. Blocks.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// Renames a file over whatever has the new name. Blocks.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Creates a directory and its missing parents. Blocks.
    fn create_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Names in a directory, sorted. Blocks.
    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, DiskError>;

    /// Makes names in the directory durable. Blocks.
    fn sync_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Does work that may block for long, on a thread of its own if the implementation has one. The
    /// work is done even if the future is dropped.
    fn later(&self, work: DiskWork) -> IoFuture<Result<(), DiskError>>;

    /// Takes the advisory lock that keeps a second process out; held until the file closes. Returns
    /// `DiskErrorKind::Busy` if another process has it. Blocks.
    fn lock(&self, file: &File) -> Result<(), DiskError>;
}

/// Calls that may block for long, on the disk that is passed to them.
pub type DiskWork = Box<dyn FnOnce(&dyn Disk) -> Result<(), DiskError> + Send>;

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// May be written.
    pub write: bool,
    /// Created if it does not exist.
    pub create: bool,
    /// An error if it exists.
    pub exclusive: bool,
    /// Page cache or straight to the device.
    pub access: FileAccess,
}

/// Whether the kernel's page cache is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Through the page cache.
    Buffered,
    /// O_DIRECT if the file system has it; buffers, offsets and lengths are multiples of
    /// [`DIRECT_ALIGNMENT_BYTES`](crate::DIRECT_ALIGNMENT_BYTES).
    Direct,
}

/// What is true when a write completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteDurability {
    /// Durable after a later `sync`.
    Volatile,
    /// Durable at completion (RWF_DSYNC).
    Sync,
}

/// An open file, usable from each worker's [`Disk`]; closed when the last clone is dropped.
#[derive(Clone)]
pub struct File {
    /// The implementation's own representation (a descriptor, or a simulated inode). Constant.
    inner: Arc<dyn FileId>,
}

/// What an implementation keeps for an open file; recovered with [`File::downcast`].
pub trait FileId: Send + Sync + 'static {
    /// For downcasting to the implementation's own type.
    fn as_any(&self) -> &(dyn std::any::Any + Send + Sync);
}

impl File {
    /// Wraps an implementation's own file.
    pub fn new(inner: Arc<dyn FileId>) -> Self {
        Self { inner }
    }

    /// The implementation's own file, or `None` if another implementation made it.
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        self.inner.as_any().downcast_ref()
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("File")
    }
}

/// What went wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskError {
    /// The kind, which decides what the caller may do.
    pub kind: DiskErrorKind,
    /// The operation, for people.
    pub operation: &'static str,
    /// The file, if known.
    pub path: Option<PathBuf>,
    /// errno, or 0 if there is none.
    pub os_error: i32,
}

/// Kinds of file errors that callers distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// No such file.
    NotFound,
    /// The file exists already.
    Exists,
    /// Another process has it locked.
    Busy,
    /// ENOSPC, EDQUOT or EFBIG.
    Full,
    /// EACCES, EPERM, EROFS.
    Denied,
    /// EMFILE, ENFILE. It passes when another file is closed.
    NoDescriptor,
    /// Anything else; for a write or sync: the file's contents are unknown (I3).
    Failed,
}

impl DiskErrorKind {
    /// Whether the call may succeed later, when something was freed.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Full | Self::NoDescriptor)
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", self.operation)?;
        if let Some(path) = &self.path {
            write!(f, " {}", path.display())?;
        }
        match self.kind {
            DiskErrorKind::NotFound => f.write_str(": no such file"),
            DiskErrorKind::Exists => f.write_str(": it exists already"),
            DiskErrorKind::Busy => f.write_str(": another process has it locked"),
            DiskErrorKind::Full => f.write_str(": no space left on the device"),
            DiskErrorKind::Denied => f.write_str(": permission denied"),
            DiskErrorKind::NoDescriptor => f.write_str(": no file descriptor is left"),
            DiskErrorKind::Failed => write!(f, ": errno {}", self.os_error),
        }
    }
}

impl std::error::Error for DiskError {}
