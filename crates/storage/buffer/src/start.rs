//! Opening a data directory: version, lock, repair, redo. The result is a pool on a running log.

pub(crate) mod loss;
pub(crate) mod redo;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use env::{Disk, DiskErrorKind, File, FileAccess, IoBuffer, OpenOptions, WriteDurability};
use format::version_file::{self, VERSION_FILE_NAME, VersionError};
use format::{Lsn, PageId, SpaceId};
use wal::{Log, OnLogLoss, OnPoison, Wal, WalOptions};

use crate::options::PoolOptions;
use crate::pool::Pool;
use crate::space;
use crate::space::doublewrite::{self, Doublewrite};
use crate::start::loss::LogLoss;
use crate::start::redo::{Note, RecoveryError, Redo, Unredone};

/// How to open a data directory.
#[derive(Debug, Clone)]
pub struct StartOptions {
    /// The data directory.
    pub directory: PathBuf,
    /// The log.
    pub wal: WalOptions,
    /// The pool.
    pub pool: PoolOptions,
    /// What to do if log is lost.
    pub on_loss: OnLogLoss,
}

/// An open data directory.
#[derive(Debug)]
pub struct Started {
    /// Its pool, with no tablespace open yet.
    pub pool: Arc<Pool>,
    /// Whether the directory was made just now.
    pub is_new: bool,
    /// What the engine gave to the last checkpoint.
    pub payload: Vec<u8>,
    /// Where the log continues: every change before it is in the files.
    pub log_end: Lsn,
    /// Pages that were torn and are whole again.
    pub repaired: Vec<PageId>,
    /// The lost log, if the start has accepted a loss.
    pub loss: Option<LogLoss>,
    /// Tablespaces that the log has changes on, but that have no file. A dropped one is no loss: a
    /// change that was under way may stand after the note of the drop, with a checkpoint between
    /// both. If there are any, there is no checkpoint at `log_end` yet, unless a loss of log was
    /// accepted. Before the first change the caller finds out whether they are needed. It then
    /// either gives up (the file may be put back, and redo begins again) or writes the checkpoint.
    pub missing: Vec<SpaceId>,
    /// Why pages lack changes of the log; none unless the start was made to accept a loss.
    pub unfit: Vec<RecoveryError>,
    /// The log since the last checkpoint, which was read and applied.
    pub redone: Redone,
    /// Keeps other processes out while it is open.
    pub lock: File,
}

/// How much log a start has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redone {
    /// Bytes from the last checkpoint to the log's end.
    pub byte_count: u64,
    /// Mini-transactions among them.
    pub mtr_count: u64,
    /// Bytes behind them that are no whole mini-transaction, and were left out.
    pub torn_bytes: u64,
    /// The position before those.
    pub position: Lsn,
}

/// Opens a data directory, or makes it if it is empty. `notes` gets each note of the log since the
/// last checkpoint, in order. Blocks.
pub async fn start(
    disk: Rc<dyn Disk>,
    options: StartOptions,
    on_poison: OnPoison,
    notes: &mut dyn FnMut(Note<'_>),
) -> Result<Started, RecoveryError> {
    let directory = options.directory.as_path();
    disk.create_directory(directory)?;
    let lock = open_version_file(&*disk, directory).await?;
    let is_new = !Log::exists(&*disk, directory)?;
    let log = if is_new {
        refuse_tablespaces(&*disk, directory)?;
        // The process may have died while the machine lived on, with the version file not durable.
        disk.sync(&lock).await?;
        disk.sync_directory(directory)?;
        Log::create(&*disk, directory, &options.wal).await?
    } else {
        // A process that was killed may have made files whose names are not durable yet. They are
        // used from here on.
        disk.sync_directory(directory)?;
        Log::open(&*disk, directory).await?
    };
    let repaired = doublewrite::repair(&*disk, directory).await?;
    let shape = (&options.pool, options.wal.worker_count);
    let doublewrite = Doublewrite::open(&*disk, directory, shape, repaired.next_batch)?;
    let payload = log.checkpoint().payload.clone();
    let mut scan = log.scan(options.on_loss);
    let place = (directory, &options.pool, &doublewrite);
    let mut redo = Redo::new(&disk, place, log.checkpoint(), options.on_loss);
    let begin = log.checkpoint().lsn;
    let mut mtr_count = 0;
    while let Some(mtr) = scan.next(&*disk).await? {
        redo.apply(&mtr, notes).await?;
        mtr_count += 1;
    }
    let redone = Redone {
        byte_count: scan.position().0.saturating_sub(begin.0),
        mtr_count,
        torn_bytes: scan.torn_bytes(),
        position: scan.position(),
    };
    let Unredone { missing, unfit } = redo.finish(scan.position()).await?;
    let loss = if options.on_loss == OnLogLoss::Accept {
        let place = (directory, options.pool.page_size);
        loss::accept(&*disk, place, log.checkpoint(), &mut scan).await?
    } else {
        None
    };
    let wal_options = WalOptions {
        segment_blocks: log.checkpoint().segment_blocks,
        ..options.wal
    };
    let wal = Wal::start(&*disk, log, &scan, wal_options, on_poison).await?;
    let log_end = wal.durable();
    assert!(
        scan.position() <= log_end,
        "what was redone is in the log that goes on"
    );
    if missing.is_empty() {
        wal.write_checkpoint(&*disk, log_end, payload.clone())
            .await?;
    }
    // On a full disk, the only room is what the checkpoint has freed.
    wal.prepare_segments(&*disk).await?;
    let pool = Pool::new(options.pool, directory, wal, doublewrite);
    Ok(Started {
        pool,
        is_new,
        payload,
        log_end,
        repaired: repaired.pages,
        loss,
        missing,
        unfit,
        redone,
        lock,
    })
}

/// Refuses a directory that has tablespaces but no control file. The control file is made before
/// them, so it was removed. If the directory were taken for a new one, the system's tablespace
/// would be overwritten. Those of the tables would be removed, because no row of the dictionary
/// names them.
fn refuse_tablespaces(disk: &dyn Disk, directory: &Path) -> Result<(), RecoveryError> {
    let names = disk.list(directory)?;
    if names.iter().any(|name| space::id_of(name).is_some()) {
        return Err(RecoveryError::NoControl(directory.to_path_buf()));
    }
    Ok(())
}

/// Locks the directory and checks its format, or writes the version file of a new one.
async fn open_version_file(disk: &dyn Disk, directory: &Path) -> Result<File, RecoveryError> {
    let path = directory.join(VERSION_FILE_NAME);
    let access = FileAccess::Buffered;
    let open = |create: bool| {
        disk.open(
            &path,
            OpenOptions {
                write: true,
                create,
                exclusive: create,
                access,
            },
        )
    };
    let (file, is_made) = match open(false) {
        Ok(file) => (file, false),
        Err(error) if error.kind == DiskErrorKind::NotFound => {
            if !disk.list(directory)?.is_empty() {
                return Err(RecoveryError::Foreign(directory.to_path_buf()));
            }
            (open(true)?, true)
        }
        Err(error) => return Err(error.into()),
    };
    disk.lock(&file).map_err(|error| match error.kind {
        DiskErrorKind::Busy => RecoveryError::InUse(directory.to_path_buf()),
        _ => error.into(),
    })?;
    let (contents, outcome) = disk.read(&file, 0, IoBuffer::zeroed(4096)).await;
    let length = outcome?;
    let contents = contents.get(..length).unwrap_or(&[]);
    match version_file::check(contents) {
        _ if is_made => write_version_file(disk, directory, &file).await?,
        // A crash while the directory was made may have left anything in this file, and no other
        // file.
        Err(VersionError::Foreign) if disk.list(directory)? == [Path::new(VERSION_FILE_NAME)] => {
            write_version_file(disk, directory, &file).await?;
        }
        checked => checked?,
    }
    Ok(file)
}

async fn write_version_file(
    disk: &dyn Disk,
    directory: &Path,
    file: &File,
) -> Result<(), RecoveryError> {
    let text = version_file::encode();
    let mut buffer = IoBuffer::zeroed(text.len());
    buffer.copy_from_slice(text.as_bytes());
    let (_, outcome) = disk.write(file, 0, buffer, WriteDurability::Sync).await;
    outcome?;
    disk.sync_directory(directory)?;
    Ok(())
}
