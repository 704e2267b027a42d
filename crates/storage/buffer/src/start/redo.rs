//! Redo: the log's operations are applied to the pages that missed them.
//!
//! Pages are held in a map of their own, not in the pool. They are written through the doublewrite
//! file when the map is full and at the end. Then a checkpoint at the end of the log completes
//! redo. After a crash in between, redo begins again. An operation is applied only to a page whose
//! LSN is older, and pages go to their files only with durable operations.
//!
//! A page that cannot be read is no error if the first operation on it makes it again, nor if its
//! tablespace is dropped later. Pages of a dropped tablespace are discarded unwritten. So a
//! checkpoint between their making and the drop leaves a file without them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use env::{Disk, DiskError, DiskErrorKind, File, IoBuffer};
use format::control::CheckpointRecord;
use format::log::{LogMtr, LogOp, OpKind};
use format::page::{page_lsn, set_page_lsn, verify};
use format::version_file::VersionError;
use format::{Lsn, PageHeader, PageId, PageSize, SpaceId};
use store::StoreError;
use thiserror::Error;
use wal::{OnLogLoss, WalError};

use crate::clean::{PageCopy, write_pages};
use crate::ops::{self, OpError};
use crate::options::PoolOptions;
use crate::space;
use crate::space::doublewrite::{Doublewrite, batch_pages};
use crate::start::loss;

/// Why a data directory cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecoveryError {
    /// It is not a data directory of this format.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// It has files, but no version file.
    #[error("{0} is not empty and is not a data directory of plateau")]
    Foreign(PathBuf),
    /// It has tablespaces, but no control file.
    #[error("{0} has tablespaces, but their control file control.pdc is missing")]
    NoControl(PathBuf),
    /// Another process uses it.
    #[error("{0} is in use by another process")]
    InUse(PathBuf),
    /// A file cannot be opened, read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] WalError),
    /// A page cannot be read.
    #[error(transparent)]
    Page(#[from] StoreError),
    /// An operation of the log does not fit its page, or is not known.
    #[error("the log at {lsn} cannot be redone on page {page}: {source}")]
    Op {
        /// End of the mini-transaction.
        lsn: Lsn,
        /// The page.
        page: PageId,
        /// Why.
        source: OpError,
    },
    /// A mini-transaction is whole but contains something that is no operation.
    #[error("the mini-transaction at {0} makes no sense")]
    Mtr(Lsn),
    /// A page is newer than the log: log was lost.
    #[error("log is lost: page {page} has LSN {lsn}, but the log of its time ends at {log_end}")]
    PageAhead {
        /// The page.
        page: PageId,
        /// Its LSN.
        lsn: Lsn,
        /// The end of the log of the life that wrote the page.
        log_end: Lsn,
    },
}

/// A note of the log, passed to the engine in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note<'a> {
    /// Its kind.
    pub kind: OpKind,
    /// What it says.
    pub payload: &'a [u8],
    /// LSN after its mini-transaction: a commit's number.
    pub end: Lsn,
}

/// Operations that are named, of those that did not fit.
const MISFITS_MAX: usize = 100;

/// Redo under way.
pub(crate) struct Redo<'a> {
    disk: Rc<dyn Disk>,
    directory: &'a Path,
    options: &'a PoolOptions,
    doublewrite: &'a Doublewrite,
    /// Pages that the log has touched. They are written again even if they missed nothing, because
    /// what was read need not be durable.
    pages: HashMap<PageId, Vec<u8>>,
    /// Open tablespaces; `None` for those without a file.
    files: HashMap<SpaceId, Option<File>>,
    /// Tablespaces that had operations but no file, and no drop yet.
    missing: BTreeSet<SpaceId>,
    /// Pages that could not be read or that an operation did not fit, and why; no drop of their
    /// tablespace yet. A page of a dropped tablespace need not have been written before a
    /// checkpoint that is older than the drop, so its operations may lack earlier ones.
    unfit: BTreeMap<PageId, RecoveryError>,
    /// Operations that did not fit their pages, and were left out since a loss was accepted; at
    /// most [`MISFITS_MAX`].
    misfits: Vec<RecoveryError>,
    /// Tablespaces whose drop was met. Ids are never reused: an id is allocated durably before its
    /// file is made. So later operations of the log on them need no file; they come from a change
    /// that was under way when the drop was noted.
    dropped: BTreeSet<SpaceId>,
    /// The checkpoint that was read before. It says of which life the log is, and where the log of
    /// each earlier life ended.
    checkpoint: &'a CheckpointRecord,
    on_loss: OnLogLoss,
    /// The page of the latest life with the highest LSN, of those that were read.
    newest: (Lsn, PageId),
}

/// What redo could not apply.
#[derive(Debug)]
pub(crate) struct Unredone {
    /// The tablespaces that have operations but neither a file nor a drop.
    pub(crate) missing: Vec<SpaceId>,
    /// Pages that could not be read or that an operation did not fit; none if loss is refused.
    pub(crate) unfit: Vec<RecoveryError>,
}

impl<'a> Redo<'a> {
    pub(crate) fn new(
        disk: &Rc<dyn Disk>,
        (directory, options, doublewrite): (&'a Path, &'a PoolOptions, &'a Doublewrite),
        checkpoint: &'a CheckpointRecord,
        on_loss: OnLogLoss,
    ) -> Self {
        Self {
            disk: Rc::clone(disk),
            directory,
            options,
            doublewrite,
            pages: HashMap::new(),
            files: HashMap::new(),
            missing: BTreeSet::new(),
            unfit: BTreeMap::new(),
            misfits: Vec::new(),
            dropped: BTreeSet::new(),
            checkpoint,
            on_loss,
            newest: (Lsn::ZERO, PageId::default()),
        }
    }

    fn size(&self) -> PageSize {
        self.options.page_size
    }

    /// Applies a mini-transaction to the pages that are older than it.
    pub(crate) async fn apply(
        &mut self,
        mtr: &LogMtr<'_>,
        notes: &mut dyn FnMut(Note<'_>),
    ) -> Result<(), RecoveryError> {
        for op in mtr.ops() {
            let op = op.map_err(|_| RecoveryError::Mtr(mtr.start))?;
            if let Some(space) = ops::dropped_space(&op) {
                self.drop_space(space).await?;
            } else if op.pages().is_empty() {
                notes(Note {
                    kind: op.kind,
                    payload: op.payload,
                    end: mtr.end,
                });
            }
            for which in 0..op.pages().len() {
                self.apply_to(&op, which, mtr.end).await?;
            }
        }
        self.stamp(mtr);
        if stdx::to_usize(self.options.frame_count) <= self.pages.len() {
            self.write_back().await?;
        }
        Ok(())
    }

    async fn apply_to(
        &mut self,
        op: &LogOp<'_>,
        which: usize,
        end: Lsn,
    ) -> Result<(), RecoveryError> {
        let Some(&id) = op.pages().get(which) else {
            return Err(RecoveryError::Mtr(end));
        };
        if self.dropped.contains(&id.space) {
            return Ok(());
        }
        let Some(file) = self.file(id.space).await? else {
            self.missing.insert(id.space);
            return Ok(());
        };
        let is_made = op.kind == ops::PAGE_CREATE;
        if is_made {
            self.unfit.remove(&id);
        }
        if !self.pages.contains_key(&id) && !self.unfit.contains_key(&id) {
            match self.read(id, &file).await? {
                Ok(bytes) => {
                    self.pages.insert(id, bytes);
                }
                Err(_) if is_made => {
                    self.pages.insert(id, vec![0; self.size().bytes()]);
                }
                Err(error) => {
                    self.unfit.insert(id, error.into());
                }
            }
        }
        let Some(page) = self.pages.get_mut(&id) else {
            return Ok(());
        };
        if page_lsn(page).is_some_and(|lsn| end <= lsn) {
            return Ok(());
        }
        // The operations of one mini-transaction on a page all see an older LSN than its end, so
        // the page is stamped when the last of them is applied.
        match ops::redo(op, which, page) {
            Ok(()) => {}
            // A page that is newer than the log may have changes that this operation does not fit.
            Err(source) if self.on_loss == OnLogLoss::Accept => {
                let (lsn, page) = (end, id);
                if self.misfits.len() < MISFITS_MAX {
                    self.misfits.push(RecoveryError::Op { lsn, page, source });
                }
            }
            Err(source) => {
                self.pages.remove(&id);
                let error = RecoveryError::Op {
                    lsn: end,
                    page: id,
                    source,
                };
                self.unfit.insert(id, error);
            }
        }
        Ok(())
    }

    /// Stamps the pages that a mini-transaction has changed.
    fn stamp(&mut self, mtr: &LogMtr<'_>) {
        for op in mtr.ops().flatten() {
            for id in op.pages() {
                if let Some(page) = self.pages.get_mut(id)
                    && page_lsn(page).is_some_and(|lsn| lsn < mtr.end)
                {
                    set_page_lsn(page.as_mut_slice(), mtr.end);
                }
            }
        }
    }

    /// Returns the page in the file; the inner error says why its contents are no page.
    async fn read(
        &mut self,
        id: PageId,
        file: &File,
    ) -> Result<Result<Vec<u8>, StoreError>, RecoveryError> {
        let size = self.size();
        let offset = space::page_offset(id.page, size);
        let (bytes, outcome) = self
            .disk
            .read(file, offset, IoBuffer::zeroed(size.bytes()))
            .await;
        let length = outcome?;
        Ok(match verify(bytes.get(..length).unwrap_or(&[]), id, size) {
            Ok(header) => {
                self.refuse_newer(&header)?;
                Ok(bytes.to_vec())
            }
            Err(error) => {
                let path = space::path(self.directory, id.space);
                Err(space::damaged(&path, id, &error))
            }
        })
    }

    /// Refuses a page that is newer than the log of its time. If that log is not the one being
    /// read, it refuses at once. Otherwise redo would stamp the page with an LSN of this log, and
    /// hide that it was newer.
    fn refuse_newer(&mut self, page: &PageHeader) -> Result<(), RecoveryError> {
        if page.epoch == self.checkpoint.epoch {
            self.newest = self.newest.max((page.lsn, page.id));
            return Ok(());
        }
        let log_end = loss::newest_lsn(self.checkpoint, Lsn::ZERO, page.epoch);
        if page.lsn <= log_end || self.on_loss == OnLogLoss::Accept {
            return Ok(());
        }
        Err(RecoveryError::PageAhead {
            page: page.id,
            lsn: page.lsn,
            log_end,
        })
    }

    async fn file(&mut self, id: SpaceId) -> Result<Option<File>, RecoveryError> {
        if let Some(known) = self.files.get(&id) {
            return Ok(known.clone());
        }
        let file = match space::open_file(&*self.disk, &space::path(self.directory, id), false) {
            Ok(file) => {
                // The process may have died while the machine lived on, between write and sync.
                self.disk.sync(&file).await?;
                Some(file)
            }
            Err(error) if error.kind == DiskErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        self.files.insert(id, file.clone());
        Ok(file)
    }

    async fn drop_space(&mut self, id: SpaceId) -> Result<(), RecoveryError> {
        self.missing.remove(&id);
        self.dropped.insert(id);
        self.pages.retain(|page, _| page.space != id);
        self.unfit.retain(|page, _| page.space != id);
        if self.file(id).await?.is_some() {
            self.files.insert(id, None);
            self.disk.remove(&space::path(self.directory, id))?;
            self.disk.sync_directory(self.directory)?;
        }
        Ok(())
    }

    /// Writes all pages to their files, durably, and drops them from memory.
    async fn write_back(&mut self) -> Result<(), RecoveryError> {
        let mut pages: Vec<(PageId, Vec<u8>)> = self.pages.drain().collect();
        pages.sort_unstable_by_key(|(id, _)| *id);
        let size = self.size();
        for batch in pages.chunks(batch_pages(self.options)) {
            let mut copies = Vec::new();
            for (id, page) in batch {
                let Some(file) = self.file(id.space).await? else {
                    continue;
                };
                let mut bytes = IoBuffer::zeroed(size.bytes());
                bytes.copy_from_slice(page);
                copies.push(PageCopy {
                    id: *id,
                    file,
                    bytes,
                });
            }
            let shape = (size, self.checkpoint.epoch);
            write_pages((&self.disk, 0), self.doublewrite, shape, copies).await?;
        }
        Ok(())
    }

    /// Ends redo at the end of the log.
    pub(crate) async fn finish(mut self, log_end: Lsn) -> Result<Unredone, RecoveryError> {
        self.write_back().await?;
        let (lsn, page) = self.newest;
        if log_end < lsn && self.on_loss == OnLogLoss::Refuse {
            return Err(RecoveryError::PageAhead { page, lsn, log_end });
        }
        if self.on_loss == OnLogLoss::Refuse
            && let Some((_, error)) = self.unfit.pop_first()
        {
            return Err(error);
        }
        Ok(Unredone {
            missing: self.missing.into_iter().collect(),
            unfit: self.unfit.into_values().chain(self.misfits).collect(),
        })
    }
}
