//! Cleaning: dirty pages go to their files; checkpoints; removal of tablespaces.
//!
//! Each worker has a cleaner. For a batch it copies pages under shared latches and waits until the
//! log up to their LSNs is durable (B2). Then it writes them to its doublewrite file and in place,
//! and syncs the files. A page may change again as soon as it is copied. It is then dirty again,
//! and is not written a second time before the first write is done.
//!
//! What is cleaned, and when ([`Need`]):
//!
//! * A reserve of frames: the cold pages that the clock's hand will meet next in the worker's share
//!   are clean before it comes. So whoever needs a frame evicts a page and waits for nobody.
//! * The oldest changes, if the checkpoint is due or much of the pool is dirty.
//! * Cold pages anywhere, once somebody has found no frame.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use env::{Disk, DiskError, DiskErrorKind, File, IoBuffer, IoFuture, WriteDurability};
use format::page::{PAGE_NO_AT, page_lsn, seal, set_page_epoch};
use format::page_bytes::PageBytes;
use format::{Lsn, PageId, PageSize, SpaceId};
use store::{StoreError, Suspend, WaitReason};
use sync::atomic::Ordering;
use wal::{LogLevel, WalError};

use crate::evict::LOOKS_PER_TURN;
use crate::frames::FrameNo;
use crate::frames::dirty::DirtyEntry;
use crate::frames::share::Share;
use crate::pages::Pages;
use crate::pool::Pool;
use crate::roles::RoleKind;
use crate::space;
use crate::space::doublewrite::{Doublewrite, batch_pages};

/// Share of the log's greatest age at which a checkpoint is due. The rest is time to clean the
/// pages that hold it back; a smaller share would write hot pages more often.
const CHECKPOINT_DUE_PERCENT: u64 = 40;

/// Share of the log's greatest age at which cleaners pause no more between batches.
const CHECKPOINT_URGENT_PERCENT: u64 = 60;

/// Eighths of the frames that may be dirty before the oldest changes are written. A page that is
/// changed again and again is written less often if it may stay dirty for longer.
const DIRTY_EIGHTHS: usize = 4;

/// Eighths of the frames that are dirty when cleaners pause no more between batches.
const DIRTY_URGENT_EIGHTHS: usize = 6;

const _: () = assert!(CHECKPOINT_DUE_PERCENT < CHECKPOINT_URGENT_PERCENT);
const _: () = assert!(DIRTY_EIGHTHS < DIRTY_URGENT_EIGHTHS);

/// Frames that are searched for pages of a dropped tablespace before other tasks run: some 100 us
/// if their headers are in no cache.
const FRAMES_PER_TURN: u32 = 2048;

/// The result of [`Pages::clean`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// Pages written.
    pub pages: u32,
}

/// A page on its way to its file.
pub(crate) struct PageCopy {
    pub(crate) id: PageId,
    pub(crate) file: File,
    pub(crate) bytes: IoBuffer,
}

/// Why pages are written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Need {
    /// Somebody has found no frame.
    frames: bool,
    /// The clock's hand has come near to the end of the pages that were looked at.
    reserve: bool,
    /// The checkpoint is due.
    checkpoint: bool,
    /// Much of the pool is dirty.
    dirty: bool,
}

impl Need {
    fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// Holds a role until dropped.
pub(crate) struct Role {
    pool: Arc<Pool>,
    kind: RoleKind,
}

/// Pages that are being written. If it is dropped before the writes are known to be done, it closes
/// the log, because the contents of the files are then unknown.
struct Batch {
    pool: Arc<Pool>,
    /// Whose cleaner writes it.
    worker: usize,
    frames: Vec<FrameNo>,
    is_done: bool,
}

impl Drop for Batch {
    fn drop(&mut self) {
        if !self.is_done {
            self.pool.wal.fail(WalError::Poisoned);
            return;
        }
        self.pool.roles.end_batch(self.worker);
        for no in &self.frames {
            self.pool.frame(*no).end_writing();
        }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let word = self.pool.roles.word(self.kind);
        let was_taken = word.swap(false, Ordering::SeqCst);
        assert!(was_taken, "a role is given back once");
        self.pool.wake_frame_waiters();
    }
}

impl Pool {
    /// Takes a role if nobody has it.
    pub(crate) fn try_role(self: &Arc<Self>, kind: RoleKind) -> Option<Role> {
        let was_taken = self.roles.word(kind).swap(true, Ordering::SeqCst);
        (!was_taken).then(|| Role {
            pool: Arc::clone(self),
            kind,
        })
    }

    /// Waits for a role.
    pub(crate) fn role(self: &Arc<Self>, kind: RoleKind) -> impl Future<Output = Role> + use<> {
        let pool = Arc::clone(self);
        std::future::poll_fn(move |context: &mut Context<'_>| {
            if let Some(role) = pool.try_role(kind) {
                return Poll::Ready(role);
            }
            pool.frame_waiters.lock().push(context.waker().clone());
            // The role may have become free before this waiter was in the list.
            pool.try_role(kind).map_or(Poll::Pending, Poll::Ready)
        })
    }

    /// Waits for the roles of all cleaners: then no page is on its way to its file.
    pub(crate) async fn cleaner_roles(self: &Arc<Self>) -> Vec<Role> {
        let mut roles = Vec::with_capacity(self.roles.cleaner_count());
        for worker in 0..self.roles.cleaner_count() {
            roles.push(self.role(RoleKind::Cleaner(worker)).await);
        }
        roles
    }
}

impl Pool {
    /// Whether more than so many eighths of the frames are dirty. Also if the lists are so long: an
    /// old page that stays dirty keeps the entries behind it, and has to be written then.
    fn is_dirty_above(&self, eighths: usize) -> bool {
        let frames = stdx::to_usize(self.frames.count());
        frames * eighths / 8 < self.dirty.len()
    }

    /// The share of a worker.
    fn share(&self, worker: usize) -> &Share {
        let share = self.shares.get(worker);
        share.expect("a worker's number is below their count")
    }

    /// Whether so much log is younger than the checkpoint that the next one is due.
    fn is_checkpoint_due(&self) -> bool {
        CHECKPOINT_DUE_PERCENT < self.wal.age_percent()
    }

    /// Adds dirty cold pages among the next `looks` frames, until there are `count`.
    fn add_cold(&self, looks: u32, count: usize, found: &mut Vec<DirtyEntry>) {
        let total = self.frames.count();
        for _ in 0..looks {
            if count <= found.len() {
                return;
            }
            // Relaxed: two cleaners look at different frames.
            let no = FrameNo(self.cold_hand.fetch_add(1, Ordering::Relaxed) % total);
            let frame = self.frame(no);
            if let Some(rec_lsn) = frame.rec_lsn()
                && frame.is_cold()
            {
                found.push(DirtyEntry { rec_lsn, frame: no });
            }
        }
    }

    /// Copies a page that is still dirty and marks it as being written by the worker's cleaner.
    fn copy_out(&self, worker: usize, no: FrameNo) -> Option<(PageCopy, Lsn)> {
        let frame = self.frame(no);
        if frame.is_writing() || !frame.latch.try_shared() {
            return None;
        }
        // Another cleaner may have had it between the check and the mark.
        let is_mine = frame.rec_lsn().is_some() && frame.begin_writing();
        let copy = if is_mine {
            self.copy_marked(worker, no)
        } else {
            None
        };
        if is_mine && copy.is_none() {
            frame.end_writing();
        }
        frame.latch.unlock_shared();
        copy
    }

    /// Copies a page if it is dirty, and makes it clean. A page of a dropped tablespace is only
    /// made clean. A worker with an outdated list of tablespaces may have changed it after
    /// `remove_space`, and nothing else would ever let the checkpoint pass it. The caller holds the
    /// shared latch and has marked the frame.
    fn copy_marked(&self, worker: usize, no: FrameNo) -> Option<(PageCopy, Lsn)> {
        let frame = self.frame(no);
        let (id, rec_lsn) = (frame.page()?, frame.rec_lsn()?);
        let Some(space) = self.spaces.get(id.space) else {
            frame.set_rec_lsn(None);
            self.dirty.note_clean(worker);
            return None;
        };
        // SAFETY: the shared latch is held while the slice lives.
        let page = unsafe { self.frames.bytes(no) };
        let mut bytes = IoBuffer::zeroed(page.len());
        bytes.copy_from_slice(page);
        let lsn = page_lsn(page).expect("a page has a header");
        assert!(
            rec_lsn < lsn,
            "the page's LSN is behind the change that made it dirty"
        );
        assert_eq!(
            page.u32_at(PAGE_NO_AT),
            Some(id.page.0),
            "a page goes to its own place"
        );
        // In this order (C1).
        self.roles.note_oldest(worker, rec_lsn);
        frame.set_rec_lsn(None);
        self.dirty.note_clean(worker);
        let file = space.file.clone();
        Some((PageCopy { id, file, bytes }, lsn))
    }

    /// Adds the dirty cold pages among the frames that the hand of a share will meet next.
    fn add_reserve(&self, worker: usize, count: usize, found: &mut Vec<DirtyEntry>) {
        let share = self.share(worker);
        while found.len() < count
            && let Some(no) = share.look_ahead()
        {
            let frame = self.frame(no);
            if let Some(rec_lsn) = frame.rec_lsn()
                && frame.is_cold()
            {
                found.push(DirtyEntry { rec_lsn, frame: no });
            }
        }
    }
}

impl Pages {
    /// Writes up to about `page_budget` dirty pages to their files: those that are needed most, or
    /// the oldest. Does nothing while this worker's cleaner is at work already. The caller awaits
    /// it with nothing held.
    pub async fn clean(&self, page_budget: u32) -> Result<Cleaned, StoreError> {
        let Some(role) = self.pool.try_role(RoleKind::Cleaner(self.worker)) else {
            return Ok(Cleaned::default());
        };
        let mut cleaned = Cleaned::default();
        loop {
            let need = self.need();
            if need.is_none() && cleaned.pages != 0 {
                break;
            }
            let written = self.clean_batch(need).await?;
            cleaned.pages += written;
            if written == 0 || page_budget <= cleaned.pages {
                break;
            }
            self.pool.wake_frame_waiters();
        }
        drop(role);
        Ok(cleaned)
    }

    /// Writes everything that is dirty now, for an orderly end.
    pub async fn clean_all(&self) -> Result<(), StoreError> {
        let roles = self.pool.cleaner_roles().await;
        while self.pool.dirty.oldest(&self.pool.frames).is_some() {
            if self.clean_batch(Need::default()).await? == 0 {
                // A latch was busy: its holder goes on when this gives way.
                self.busy().await;
            }
        }
        drop(roles);
        Ok(())
    }

    /// Whether there is reason to clean now.
    pub fn needs_cleaning(&self) -> bool {
        !self.need().is_none()
    }

    /// Whether cleaning is behind: callers wait for frames, or will soon wait for frames or room in
    /// the log.
    pub fn needs_cleaning_urgently(&self) -> bool {
        self.pool.wants_frames.load(Ordering::SeqCst)
            || self.pool.share(self.worker).is_reserve_used_up()
            || CHECKPOINT_URGENT_PERCENT < self.pool.wal.age_percent()
            || self.pool.is_dirty_above(DIRTY_URGENT_EIGHTHS)
    }

    /// Frames that the clock of this worker's share has passed so far; wraps around. While it
    /// moves, pages are evicted.
    pub fn clock_position(&self) -> u32 {
        self.pool.share(self.worker).position()
    }

    fn need(&self) -> Need {
        Need {
            frames: self.pool.wants_frames.load(Ordering::SeqCst),
            reserve: self.pool.share(self.worker).is_reserve_short(),
            checkpoint: self.needs_checkpoint(),
            dirty: self.pool.is_dirty_above(DIRTY_EIGHTHS),
        }
    }

    /// Whether so much log is younger than the checkpoint that the next one is due. That is long
    /// before changes must wait for it.
    pub fn needs_checkpoint(&self) -> bool {
        self.pool.is_checkpoint_due()
    }

    /// Returns the pages to write next: cold pages if frames are needed, else those that hold the
    /// checkpoint back. If both are needed, half and half. The oldest page may be hot; if frames
    /// were needed all the time, it would wait until the log is full. A page may be in both halves.
    async fn candidates(&self, need: Need, count: usize) -> Vec<DirtyEntry> {
        let pool = &self.pool;
        let mut found = Vec::new();
        let wants_oldest = need.checkpoint || need.dirty;
        let cold_count = if wants_oldest {
            count.div_ceil(2)
        } else {
            count
        };
        if need.reserve {
            pool.add_reserve(self.worker, cold_count, &mut found);
        }
        if need.frames && pool.wants_frames.swap(false, Ordering::SeqCst) {
            let rest = cold_count.saturating_sub(found.len()).max(1);
            found.extend(self.cold_candidates(rest).await);
        }
        let is_left_over = found.is_empty() && (need.frames || !need.reserve);
        if wants_oldest || is_left_over {
            let rest = count.saturating_sub(found.len()).max(1);
            found.extend(pool.dirty.candidates(&pool.frames, rest));
        }
        found
    }

    /// Searches for dirty cold pages, once around all frames at most. That takes long in a large
    /// pool, so other tasks run in between. A page found may be clean again, or its frame may hold
    /// another page, when it is copied; [`Pool::copy_out`] checks.
    async fn cold_candidates(&self, count: usize) -> Vec<DirtyEntry> {
        let (mut rest, mut found) = (self.pool.frames.count(), Vec::new());
        loop {
            let looks = rest.min(LOOKS_PER_TURN);
            self.pool.add_cold(looks, count, &mut found);
            rest -= looks;
            if rest == 0 || count <= found.len() {
                return found;
            }
            self.suspend(WaitReason::Turn, Suspend::turn()).await;
        }
    }

    async fn clean_batch(&self, need: Need) -> Result<u32, StoreError> {
        let pool = &self.pool;
        if pool.wal.is_poisoned() {
            return Err(StoreError::LogFailed);
        }
        let candidates = self.candidates(need, batch_pages(&pool.options)).await;
        let mut batch = Batch {
            pool: Arc::clone(pool),
            worker: self.worker,
            frames: Vec::new(),
            is_done: false,
        };
        let (mut copies, mut log_needed) = (Vec::new(), Lsn::ZERO);
        for candidate in candidates {
            if let Some((copy, lsn)) = pool.copy_out(self.worker, candidate.frame) {
                log_needed = log_needed.max(lsn);
                batch.frames.push(candidate.frame);
                copies.push(copy);
            }
        }
        if copies.is_empty() {
            batch.is_done = true;
            return Ok(0);
        }
        self.wait_log(log_needed, LogLevel::Durable).await?;
        assert!(
            log_needed <= pool.wal.durable(),
            "the log of a page is durable before the page is written (B2)"
        );
        let written = stdx::to_u32(copies.len());
        let shape = (pool.options.page_size, pool.wal.epoch());
        let outcome =
            write_pages((&self.disk, self.worker), &pool.doublewrite, shape, copies).await;
        if let Err(error) = outcome {
            // The contents of the files are unknown now, and the pages must not be written a second
            // time.
            pool.wal.fail(error.clone().into());
            return Err(space::disk_error(&error));
        }
        pool.pages_written
            .fetch_add(u64::from(written), Ordering::Relaxed);
        batch.is_done = true;
        Ok(written)
    }

    /// Writes a checkpoint; the log before the oldest dirty page may be recycled then. The engine
    /// gets `payload` back at the next start. Returns the checkpoint's LSN.
    pub async fn checkpoint(&self, payload: Vec<u8>) -> Result<Lsn, StoreError> {
        let role = self.pool.role(RoleKind::Checkpoint).await;
        // In this order: a change that is closed now already has its pages on the lists, and a page
        // that has left them is in a batch (C1).
        let closed = self.pool.wal.closed();
        let dirty = self.pool.dirty.oldest(&self.pool.frames);
        let oldest = self.pool.roles.oldest_on_its_way();
        let oldest = oldest.min(dirty.unwrap_or(Lsn::MAX));
        let lsn = closed.min(oldest).max(self.pool.wal.checkpoint());
        self.wait_log(lsn, LogLevel::Durable).await?;
        let written = self
            .pool
            .wal
            .write_checkpoint(&*self.disk, lsn, payload)
            .await;
        written.map_err(|_| StoreError::LogFailed)?;
        drop(role);
        Ok(lsn)
    }

    /// The last checkpoint of an orderly end: every page is in its file, and no worker changes any.
    /// From then on the log is closed, and the next start needs none of it.
    pub async fn close(&self, payload: Vec<u8>) -> Result<(), StoreError> {
        self.clean_all().await?;
        self.checkpoint(payload.clone()).await?;
        let closed = self.pool.wal.close(&*self.disk, payload).await;
        closed.map_err(|_| StoreError::LogFailed)
    }

    /// Drops the pages of a dropped tablespace from memory and removes its file. The note of the
    /// drop ([`crate::Change::note_space_drop`]) is durable before the call, and the tablespace is
    /// not used any more. After a failure or a dropped future, another call continues.
    pub async fn remove_space(&self, id: SpaceId) -> Result<(), StoreError> {
        let Some(space) = self.pool.spaces.begin_removal(id) else {
            return Ok(());
        };
        space.is_dropped.store(true, Ordering::SeqCst);
        let roles = self.pool.cleaner_roles().await;
        // A batch that failed leaves its pages marked as being written.
        if self.pool.wal.is_poisoned() {
            return Err(StoreError::LogFailed);
        }
        for no in (0..self.pool.frames.count()).map(FrameNo) {
            let frame = self.pool.frame(no);
            if no.0 % FRAMES_PER_TURN == FRAMES_PER_TURN - 1 {
                self.busy().await;
            }
            if frame.page().is_none_or(|page| page.space != id) {
                continue;
            }
            while !frame.latch.try_exclusive() {
                self.busy().await;
            }
            let is_its = frame.page().is_some_and(|page| page.space == id);
            if is_its {
                assert!(
                    !frame.is_writing(),
                    "nothing is written while this has the roles"
                );
                if frame.rec_lsn().is_some() {
                    frame.set_rec_lsn(None);
                    self.pool.dirty.note_clean(self.worker);
                }
                frame.set_page(None);
            }
            frame.latch.unlock_exclusive();
            if is_its {
                self.pool.free_frame(self.worker, no);
            }
        }
        self.pool.dirty.forget_clean(&self.pool.frames);
        drop(roles);
        let path = space.path.clone();
        let directory = self.pool.directory.clone();
        let remove = move |disk: &dyn Disk| {
            match disk.remove(&path) {
                // An earlier call got this far.
                Err(gone) if gone.kind == DiskErrorKind::NotFound => {}
                removed => removed?,
            }
            disk.sync_directory(&directory)
        };
        let removed = self.disk.later(Box::new(remove)).await;
        removed.map_err(|error| space::disk_error(&error))?;
        self.pool.spaces.end_removal(id);
        Ok(())
    }
}

/// Writes copies of pages so that a crash at any time leaves each page old or new; at the end they
/// are durable. The log of their changes is durable before. `epoch` is the life that the pages are
/// stamped with, `worker` whose doublewrite file is used.
pub(crate) async fn write_pages(
    (disk, worker): (&Rc<dyn Disk>, usize),
    doublewrite: &Doublewrite,
    (size, epoch): (PageSize, u32),
    mut copies: Vec<PageCopy>,
) -> Result<(), DiskError> {
    for copy in &mut copies {
        set_page_epoch(&mut copy.bytes, epoch);
        seal(&mut copy.bytes);
    }
    let pages = copies.iter().map(|copy| (copy.id, &*copy.bytes));
    let batch = doublewrite.write((&**disk, worker), pages).await?;
    let mut files = BTreeMap::new();
    let mut writes = Vec::new();
    for copy in copies {
        let offset = space::page_offset(copy.id.page, size);
        let durability = WriteDurability::Volatile;
        writes.push(disk.write(&copy.file, offset, copy.bytes, durability));
        files.insert(copy.id.space, copy.file);
    }
    for (_, outcome) in all(writes).await {
        outcome?;
    }
    let syncs = files.values().map(|file| disk.sync(file)).collect();
    all(syncs).await.into_iter().collect::<Result<(), _>>()?;
    doublewrite.end(batch);
    Ok(())
}

/// Starts all operations at once and waits for all of them.
async fn all<T>(futures: Vec<IoFuture<T>>) -> Vec<T> {
    let mut running: Vec<Option<IoFuture<T>>> = futures.into_iter().map(Some).collect();
    let mut results: Vec<Option<T>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|context: &mut Context<'_>| {
        let mut is_done = true;
        for (slot, result) in running.iter_mut().zip(&mut results) {
            let polled = slot
                .as_mut()
                .map(|future| Pin::as_mut(future).poll(context));
            match polled {
                Some(Poll::Ready(value)) => {
                    *result = Some(value);
                    *slot = None;
                }
                Some(Poll::Pending) => is_done = false,
                None => {}
            }
        }
        if is_done {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}
