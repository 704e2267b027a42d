//! A disk whose every operation blocks the calling thread: for tools, tests and start-up.
//!
//! Its futures are ready at the first poll, so any trivial executor runs them.

use std::future::ready;
use std::path::{Path, PathBuf};

use super::file::{self, LinuxFile};
use crate::IoBuffer;
use crate::disk::{
    Disk, DiskError, DiskWork, File, IoFuture, IoResult, OpenOptions, WriteDurability,
};

/// See the module's head. Has no state.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockingDisk;

impl Disk for BlockingDisk {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<File, DiskError> {
        LinuxFile::open(path, options)
    }

    fn read(&self, file: &File, offset: u64, mut buffer: IoBuffer) -> IoFuture<IoResult> {
        let result = LinuxFile::of(file).read(offset, &mut buffer);
        Box::pin(ready((buffer, result)))
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
    ) -> IoFuture<IoResult> {
        let result = LinuxFile::of(file).write(offset, &buffer, durability);
        Box::pin(ready((buffer, result)))
    }

    fn write_now(&self, file: &File, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let written = LinuxFile::of(file).write(offset, bytes, WriteDurability::Volatile);
        written.map(drop)
    }

    fn sync(&self, file: &File) -> IoFuture<Result<(), DiskError>> {
        Box::pin(ready(LinuxFile::of(file).sync()))
    }

    fn allocate(&self, file: &File, length: u64) -> Result<(), DiskError> {
        LinuxFile::of(file).allocate(length)
    }

    fn set_length(&self, file: &File, length: u64) -> Result<(), DiskError> {
        LinuxFile::of(file).set_length(length)
    }

    fn length(&self, file: &File) -> Result<u64, DiskError> {
        LinuxFile::of(file).length()
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        file::remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        file::rename(from, to)
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        file::create_directory(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, DiskError> {
        file::list(path)
    }

    fn sync_directory(&self, path: &Path) -> Result<(), DiskError> {
        file::sync_directory(path)
    }

    fn later(&self, work: DiskWork) -> IoFuture<Result<(), DiskError>> {
        Box::pin(ready(work(self)))
    }

    fn lock(&self, file: &File) -> Result<(), DiskError> {
        LinuxFile::of(file).lock()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::disk::{DiskErrorKind, FileAccess};

    fn at_once<T>(future: IoFuture<T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("a blocking disk's futures are ready"),
        }
    }

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("plateau-{}-{name}", std::process::id()));
            BlockingDisk.create_directory(&path.join("a/b")).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            // If this fails, the system cleans its temporary directory.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const NEW: OpenOptions = OpenOptions {
        write: true,
        create: true,
        exclusive: true,
        access: FileAccess::Buffered,
    };

    #[test]
    fn writes_read_back_with_both_kinds_of_access() {
        let directory = Directory::new("access");
        for (name, access) in [("one", FileAccess::Buffered), ("two", FileAccess::Direct)] {
            let path = directory.0.join(name);
            let file = BlockingDisk
                .open(&path, OpenOptions { access, ..NEW })
                .unwrap();
            BlockingDisk.allocate(&file, 8192).unwrap();
            assert_eq!(BlockingDisk.length(&file), Ok(8192));
            let mut buffer = IoBuffer::zeroed(4096);
            buffer.fill(9);
            for durability in [WriteDurability::Sync, WriteDurability::Volatile] {
                let (back, result) = at_once(BlockingDisk.write(&file, 4096, buffer, durability));
                assert_eq!(result, Ok(4096));
                buffer = back;
            }
            assert_eq!(at_once(BlockingDisk.sync(&file)), Ok(()));
            let (back, result) = at_once(BlockingDisk.read(&file, 0, IoBuffer::zeroed(12288)));
            assert_eq!(result, Ok(8192));
            assert!(back[..4096].iter().all(|&byte| byte == 0));
            assert!(back[4096..8192].iter().all(|&byte| byte == 9));
            BlockingDisk.set_length(&file, 4096).unwrap();
            assert_eq!(BlockingDisk.length(&file), Ok(4096));
        }
    }

    #[test]
    fn names_and_locks_behave() {
        let directory = Directory::new("names");
        let (one, two) = (directory.0.join("one"), directory.0.join("two"));
        let file = BlockingDisk.open(&one, NEW).unwrap();
        assert_eq!(
            BlockingDisk.open(&one, NEW).unwrap_err().kind,
            DiskErrorKind::Exists
        );
        let again = BlockingDisk
            .open(
                &one,
                OpenOptions {
                    exclusive: false,
                    ..NEW
                },
            )
            .unwrap();
        BlockingDisk.lock(&file).unwrap();
        assert_eq!(
            BlockingDisk.lock(&again).unwrap_err().kind,
            DiskErrorKind::Busy
        );
        drop(file);
        BlockingDisk.lock(&again).unwrap();
        BlockingDisk.rename(&one, &two).unwrap();
        BlockingDisk.sync_directory(&directory.0).unwrap();
        assert_eq!(
            BlockingDisk.list(&directory.0),
            Ok(vec![PathBuf::from("a"), PathBuf::from("two")])
        );
        BlockingDisk.remove(&two).unwrap();
        let error = BlockingDisk.remove(&two).unwrap_err();
        assert_eq!(error.kind, DiskErrorKind::NotFound);
        assert!(error.to_string().contains("cannot remove"));
        assert!(error.to_string().contains("no such file"));
    }
}
