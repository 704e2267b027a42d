//! A worker's files. Reads, writes and syncs take long, so the driver does them. Other calls may
//! block the calling thread, as their contract says, or go to a helper thread by [`Disk::later`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::linux::{BlockingDisk, LinuxFile};
use env::{
    Disk, DiskError, DiskWork, File, IoBuffer, IoFuture, IoResult, OpenOptions, WriteDurability,
};

use crate::shared::Shared;

/// How a driver does what takes long. Each call behaves as in [`Disk`].
pub(crate) trait Transfers {
    /// As [`Disk::read`].
    fn read(&self, file: &File, offset: u64, buffer: IoBuffer) -> IoFuture<IoResult>;

    /// As [`Disk::write`].
    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
    ) -> IoFuture<IoResult>;

    /// As [`Disk::sync`].
    fn sync(&self, file: &File) -> IoFuture<Result<(), DiskError>>;
}

/// See the module's head.
pub(crate) struct WorkerDisk<T> {
    transfers: T,
    /// Has the threads for calls that may take long.
    shared: Arc<Shared>,
}

impl<T> WorkerDisk<T> {
    pub(crate) fn new(transfers: T, shared: &Arc<Shared>) -> Self {
        let shared = Arc::clone(shared);
        Self { transfers, shared }
    }
}

/// Transfers for loops that cannot drive them: each is a job of a helper thread.
pub(crate) struct HelperTransfers {
    shared: Arc<Shared>,
}

impl HelperTransfers {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    fn submit<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> IoFuture<T> {
        Box::pin(self.shared.helpers.transfers.run(job))
    }
}

impl Transfers for HelperTransfers {
    fn read(&self, file: &File, offset: u64, mut buffer: IoBuffer) -> IoFuture<IoResult> {
        let file = file.clone();
        self.submit(move || {
            let result = LinuxFile::of(&file).read(offset, &mut buffer);
            (buffer, result)
        })
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
    ) -> IoFuture<IoResult> {
        let file = file.clone();
        self.submit(move || {
            let result = LinuxFile::of(&file).write(offset, &buffer, durability);
            (buffer, result)
        })
    }

    fn sync(&self, file: &File) -> IoFuture<Result<(), DiskError>> {
        let file = file.clone();
        self.submit(move || LinuxFile::of(&file).sync())
    }
}

impl<T: Transfers> Disk for WorkerDisk<T> {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<File, DiskError> {
        BlockingDisk.open(path, options)
    }

    fn read(&self, file: &File, offset: u64, buffer: IoBuffer) -> IoFuture<IoResult> {
        self.transfers.read(file, offset, buffer)
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: IoBuffer,
        durability: WriteDurability,
    ) -> IoFuture<IoResult> {
        self.transfers.write(file, offset, buffer, durability)
    }

    fn write_now(&self, file: &File, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        BlockingDisk.write_now(file, offset, bytes)
    }

    fn sync(&self, file: &File) -> IoFuture<Result<(), DiskError>> {
        self.transfers.sync(file)
    }

    fn allocate(&self, file: &File, length: u64) -> Result<(), DiskError> {
        BlockingDisk.allocate(file, length)
    }

    fn set_length(&self, file: &File, length: u64) -> Result<(), DiskError> {
        BlockingDisk.set_length(file, length)
    }

    fn length(&self, file: &File) -> Result<u64, DiskError> {
        BlockingDisk.length(file)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        BlockingDisk.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        BlockingDisk.rename(from, to)
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        BlockingDisk.create_directory(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>, DiskError> {
        BlockingDisk.list(path)
    }

    fn sync_directory(&self, path: &Path) -> Result<(), DiskError> {
        BlockingDisk.sync_directory(path)
    }

    fn later(&self, work: DiskWork) -> IoFuture<Result<(), DiskError>> {
        let helpers = &self.shared.helpers.file_calls;
        Box::pin(helpers.run(move || work(&BlockingDisk)))
    }

    fn lock(&self, file: &File) -> Result<(), DiskError> {
        BlockingDisk.lock(file)
    }
}
