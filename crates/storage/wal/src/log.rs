//! A log on disk before it is written to: created or found, and scanned.

use std::path::Path;

use env::Disk;
use format::Lsn;
use format::control::CheckpointRecord;
use format::lives::LifeEnds;

use crate::control::{self, Control};
use crate::scan::{LogScan, OnLogLoss};
use crate::segments::SegmentPlace;
use crate::{WalError, WalOptions};

/// The log of a data directory before [`crate::Wal::start`].
#[derive(Debug)]
pub struct Log {
    pub(crate) control: Control,
    pub(crate) place: SegmentPlace,
}

impl Log {
    /// Whether the data directory has a log.
    pub fn exists(disk: &dyn Disk, data_directory: &Path) -> Result<bool, WalError> {
        control::exists(disk, data_directory)
    }

    /// Makes an empty log. The names are durable when this returns. The first segment is made
    /// before the control file. So if there is a control file, the segment of the next block exists
    /// (D3 of `damage`). Blocks.
    pub async fn create(
        disk: &dyn Disk,
        data_directory: &Path,
        options: &WalOptions,
    ) -> Result<Self, WalError> {
        let first = CheckpointRecord {
            sequence: 0,
            lsn: Lsn::FIRST,
            block_no: 0,
            block_epoch: 0,
            epoch: 0,
            segment_blocks: options.segment_blocks,
            durable_block: 0,
            is_closed: false,
            has_newer_pages: false,
            lives: LifeEnds::default(),
            payload: Vec::new(),
        };
        let place = SegmentPlace::new(data_directory, options.segment_blocks);
        disk.create_directory(&place.directory)?;
        drop(place.create(disk, 0).await?);
        disk.sync_directory(data_directory)?;
        let control = Control::create(disk, data_directory, first).await?;
        disk.sync_directory(data_directory)?;
        Ok(Self { control, place })
    }

    /// Opens the log and finds its newest checkpoint. Blocks.
    pub async fn open(disk: &dyn Disk, data_directory: &Path) -> Result<Self, WalError> {
        let control = Control::open(disk, data_directory).await?;
        let place = SegmentPlace::new(data_directory, control.latest().segment_blocks);
        Ok(Self { control, place })
    }

    /// The newest checkpoint.
    pub fn checkpoint(&self) -> &CheckpointRecord {
        self.control.latest()
    }

    /// Reads the log from the newest checkpoint.
    pub fn scan(&self, on_loss: OnLogLoss) -> LogScan {
        LogScan::new(self.place.clone(), self.control.latest(), on_loss)
    }
}
