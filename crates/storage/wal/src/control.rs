//! The open control file: reads the newest checkpoint, writes the next one.

use std::path::Path;

use env::{Disk, DiskErrorKind, File, FileAccess, IoBuffer, OpenOptions, WriteDurability};
use format::control::{CONTROL_BLOCK_BYTES, CONTROL_FILE_BYTES, CheckpointRecord};

use crate::WalError;

/// The file's name in the data directory.
const CONTROL_FILE_NAME: &str = "control.pdc";
/// Its name until it holds the first record: a crash leaves no control file or a whole one.
const UNFINISHED_NAME: &str = "control.new";

/// The open control file.
#[derive(Debug)]
pub(crate) struct Control {
    /// Constant.
    file: File,
    /// The record that a start after a crash would find now.
    latest: CheckpointRecord,
}

impl Control {
    /// Makes the file with a first record. All but the directory entry is durable.
    pub(crate) async fn create(
        disk: &dyn Disk,
        directory: &Path,
        first: CheckpointRecord,
    ) -> Result<Self, WalError> {
        let path = directory.join(CONTROL_FILE_NAME);
        let unfinished = directory.join(UNFINISHED_NAME);
        match disk.remove(&unfinished) {
            // Left by an unfinished attempt.
            Ok(()) => {}
            Err(error) if error.kind == DiskErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let file = open(disk, &unfinished, true)?;
        disk.allocate(&file, stdx::to_u64(CONTROL_FILE_BYTES))?;
        write(disk, &file, &first).await?;
        disk.sync(&file).await?;
        drop(file);
        disk.rename(&unfinished, &path)?;
        let file = open(disk, &path, false)?;
        Ok(Self {
            file,
            latest: first,
        })
    }

    /// Opens the file and reads the newest record.
    pub(crate) async fn open(disk: &dyn Disk, directory: &Path) -> Result<Self, WalError> {
        let file = open(disk, &directory.join(CONTROL_FILE_NAME), false)?;
        let (bytes, outcome) = disk
            .read(&file, 0, IoBuffer::zeroed(CONTROL_FILE_BYTES))
            .await;
        let length = outcome?;
        let latest = CheckpointRecord::newest(bytes.get(..length).unwrap_or(&[]))?;
        Ok(Self { file, latest })
    }

    /// The newest record.
    pub(crate) fn latest(&self) -> &CheckpointRecord {
        &self.latest
    }

    /// The file, to write to without holding this value.
    pub(crate) fn file(&self) -> File {
        self.file.clone()
    }

    /// Notes that `record` is durable.
    pub(crate) fn advance(&mut self, record: CheckpointRecord) {
        assert!(self.latest.sequence < record.sequence);
        self.latest = record;
    }
}

fn open(disk: &dyn Disk, path: &Path, create: bool) -> Result<File, WalError> {
    let options = OpenOptions {
        write: true,
        create,
        exclusive: create,
        access: FileAccess::Direct,
    };
    Ok(disk.open(path, options)?)
}

/// Whether the directory has a control file.
pub(crate) fn exists(disk: &dyn Disk, directory: &Path) -> Result<bool, WalError> {
    match open(disk, &directory.join(CONTROL_FILE_NAME), false) {
        Ok(_) => Ok(true),
        Err(WalError::Disk(error)) if error.kind == DiskErrorKind::NotFound => Ok(false),
        Err(other) => Err(other),
    }
}

/// Writes a record durably into the block that does not hold the one before.
pub(crate) async fn write(
    disk: &dyn Disk,
    file: &File,
    record: &CheckpointRecord,
) -> Result<(), WalError> {
    assert!(
        record.block_no <= record.durable_block,
        "recovery begins with durable log"
    );
    let mut block = IoBuffer::zeroed(CONTROL_BLOCK_BYTES);
    block.copy_from_slice(&record.encode());
    let (_, outcome) = disk
        .write(file, record.file_offset(), block, WriteDurability::Sync)
        .await;
    outcome?;
    Ok(())
}
