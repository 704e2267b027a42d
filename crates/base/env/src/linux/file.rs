//! An open file of the real file system, and the calls on it that may block.
//!
//! The implementations of [`Disk`](crate::Disk) that use the real file system share these: the
//! blocking one beside this file, and the workers' own in `runtime`. A call that a signal
//! interrupts (EINTR; network file systems and FUSE do that even to a sync) does not fail: it is
//! repeated.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, RawDir};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use crate::disk::{
    DiskError, DiskErrorKind, File, FileAccess, FileId, OpenOptions, WriteDurability,
};

/// The contents of [`File`] for a real file.
#[derive(Debug)]
pub struct LinuxFile {
    /// Closed when the last clone of the `File` is dropped.
    descriptor: OwnedFd,
    /// As given to `open`; for error messages.
    path: PathBuf,
    /// Held while room is made.
    growing: Mutex<()>,
}

impl FileId for LinuxFile {
    fn as_any(&self) -> &(dyn std::any::Any + Send + Sync) {
        self
    }
}

impl AsFd for LinuxFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Maps an errno to the kinds that callers distinguish.
pub fn disk_error(operation: &'static str, path: Option<&Path>, error: Errno) -> DiskError {
    let kind = match error {
        Errno::NOENT => DiskErrorKind::NotFound,
        Errno::EXIST => DiskErrorKind::Exists,
        Errno::WOULDBLOCK => DiskErrorKind::Busy,
        // EFBIG: the limit of the process or of the file system.
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => DiskErrorKind::Full,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => DiskErrorKind::Denied,
        Errno::MFILE | Errno::NFILE => DiskErrorKind::NoDescriptor,
        _ => DiskErrorKind::Failed,
    };
    let path = path.map(Path::to_path_buf);
    DiskError {
        kind,
        operation,
        path,
        os_error: error.raw_os_error(),
    }
}

impl LinuxFile {
    /// Opens or creates a file; readable and writable by its owner and readable by its group.
    pub fn open(path: &Path, options: OpenOptions) -> Result<File, DiskError> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if options.write {
            OFlags::RDWR
        } else {
            OFlags::RDONLY
        };
        if options.create {
            flags |= OFlags::CREATE;
        }
        if options.exclusive {
            flags |= OFlags::EXCL;
        }
        let direct = match options.access {
            FileAccess::Direct => OFlags::DIRECT,
            FileAccess::Buffered => OFlags::empty(),
        };
        let mode = Mode::from_raw_mode(0o640);
        let mut opened = rustix::fs::open(path, flags | direct, mode);
        if opened.as_ref().err() == Some(&Errno::INVAL) && options.access == FileAccess::Direct {
            // tmpfs and a few others have no direct access. EINVAL comes before the creation on
            // some of them and after it on others, so the second try must not use O_EXCL.
            opened = rustix::fs::open(path, flags.difference(OFlags::EXCL), mode);
        }
        let descriptor = opened.map_err(|error| disk_error("open", Some(path), error))?;
        Ok(File::new(Arc::new(Self {
            descriptor,
            path: path.to_path_buf(),
            growing: Mutex::default(),
        })))
    }

    /// The real file of `file`.
    ///
    /// # Panics
    /// If another kind of disk opened it, which is a bug.
    pub fn of(file: &File) -> &Self {
        file.downcast()
            .expect("a file is used with the disk that opened it")
    }

    /// The error of a call on this file.
    pub fn error(&self, operation: &'static str, error: Errno) -> DiskError {
        disk_error(operation, Some(&self.path), error)
    }

    /// Fills `buffer` from `offset` on; fewer bytes mean the end of the file.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + stdx::to_u64(filled);
            match rustix::io::pread(&self.descriptor, &mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.error("read", error)),
            }
        }
        Ok(filled)
    }

    /// Writes the whole of `bytes` at `offset`.
    pub fn write(
        &self,
        offset: u64,
        bytes: &[u8],
        durability: WriteDurability,
    ) -> Result<usize, DiskError> {
        let flags = match durability {
            WriteDurability::Volatile => ReadWriteFlags::empty(),
            WriteDurability::Sync => ReadWriteFlags::DSYNC,
        };
        let mut written = 0;
        while written < bytes.len() {
            let slice = [std::io::IoSlice::new(&bytes[written..])];
            let at = offset + stdx::to_u64(written);
            match rustix::io::pwritev2(&self.descriptor, &slice, at, flags) {
                Ok(0) => return Err(self.error("write", Errno::IO)),
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.error("write", error)),
            }
        }
        Ok(written)
    }

    /// fdatasync.
    pub fn sync(&self) -> Result<(), DiskError> {
        retry_on_intr(|| rustix::fs::fdatasync(&self.descriptor))
            .map_err(|error| self.error("sync", error))
    }

    /// Reserves room up to `length` bytes, all or nothing; by writing zeroes if the file system
    /// cannot allocate. One caller at a time, so that room in use by another is not overwritten.
    pub fn allocate(&self, length: u64) -> Result<(), DiskError> {
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.length()?;
        let empty = FallocateFlags::empty();
        let made = match retry_on_intr(|| rustix::fs::fallocate(&self.descriptor, empty, 0, length))
        {
            Err(Errno::OPNOTSUPP) => self.allocate_by_zeroes(length),
            other => other.map_err(|error| self.error("allocate", error)),
        };
        if made.is_err() && before < length {
            // A full file system keeps what it had allocated until then, and no one could use it.
            // If this fails too, it is lost until the file grows.
            let _ = self.set_length(before);
        }
        made
    }

    fn allocate_by_zeroes(&self, length: u64) -> Result<(), DiskError> {
        const CHUNK_BYTES: usize = 1 << 20;
        let zeroes = crate::IoBuffer::zeroed(CHUNK_BYTES);
        let mut at = self.length()?;
        while at < length {
            let count = stdx::to_usize((length - at).min(stdx::to_u64(CHUNK_BYTES)));
            self.write(at, &zeroes[..count], WriteDurability::Volatile)?;
            at += stdx::to_u64(count);
        }
        Ok(())
    }

    /// Cuts or extends.
    pub fn set_length(&self, length: u64) -> Result<(), DiskError> {
        retry_on_intr(|| rustix::fs::ftruncate(&self.descriptor, length))
            .map_err(|error| self.error("set the length of", error))
    }

    /// Bytes in the file.
    pub fn length(&self) -> Result<u64, DiskError> {
        let stat = rustix::fs::fstat(&self.descriptor)
            .map_err(|error| self.error("read the length of", error))?;
        u64::try_from(stat.st_size).map_err(|_| self.error("read the length of", Errno::OVERFLOW))
    }

    /// flock, exclusive, without waiting.
    pub fn lock(&self) -> Result<(), DiskError> {
        rustix::fs::flock(&self.descriptor, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| self.error("lock", error))
    }
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> Result<(), DiskError> {
    rustix::fs::unlinkat(CWD, path, AtFlags::empty())
        .map_err(|error| disk_error("remove", Some(path), error))
}

/// Renames a file over whatever has the new name.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), DiskError> {
    rustix::fs::rename(from, to).map_err(|error| disk_error("rename", Some(from), error))
}

/// Creates a directory and its missing parents; an existing one is fine.
pub(crate) fn create_directory(path: &Path) -> Result<(), DiskError> {
    let mode = Mode::from_raw_mode(0o750);
    match rustix::fs::mkdir(path, mode) {
        Err(Errno::NOENT) => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            let Some(parent) = parent else {
                return Err(disk_error("create directory", Some(path), Errno::NOENT));
            };
            create_directory(parent)?;
            // Only once more: in /proc the parent exists and still nothing can be created.
            made(path, rustix::fs::mkdir(path, mode))
        }
        made_or_not => made(path, made_or_not),
    }
}

fn made(path: &Path, outcome: Result<(), Errno>) -> Result<(), DiskError> {
    match outcome {
        Err(Errno::EXIST) if is_directory(path) => Ok(()),
        other => other.map_err(|error| disk_error("create directory", Some(path), error)),
    }
}

fn is_directory(path: &Path) -> bool {
    rustix::fs::stat(path)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
}

/// Names in a directory, sorted, without `.` and `..`.
pub(crate) fn list(path: &Path) -> Result<Vec<PathBuf>, DiskError> {
    use std::os::unix::ffi::OsStrExt as _;
    let failed = |error| disk_error("list", Some(path), error);
    let directory = open_directory(path).map_err(failed)?;
    let mut buffer = Vec::with_capacity(16 << 10);
    let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(PathBuf::from(std::ffi::OsStr::from_bytes(name)));
        }
    }
    names.sort();
    Ok(names)
}

/// fsync of a directory.
pub(crate) fn sync_directory(path: &Path) -> Result<(), DiskError> {
    open_directory(path)
        .and_then(|directory| retry_on_intr(|| rustix::fs::fsync(&directory)))
        .map_err(|error| disk_error("sync directory", Some(path), error))
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Out of descriptors: the process (EMFILE) or the machine (ENFILE). Both pass.
    #[test]
    fn both_lacks_of_descriptors_are_one_kind() {
        for errno in [Errno::MFILE, Errno::NFILE] {
            let error = disk_error("open", Some(Path::new("a")), errno);
            assert_eq!(error.kind, DiskErrorKind::NoDescriptor);
            assert_eq!(error.os_error, errno.raw_os_error());
            assert!(error.kind.may_pass());
        }
        assert!(!disk_error("open", None, Errno::IO).kind.may_pass());
    }
}
