//! The pool: what all workers share.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Waker;

use env::Disk;
use format::{PageId, SpaceId};
use store::StoreError;
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use sync::{CachePadded, Mutex, Notify};
use wal::Wal;

use crate::counters::PageCounters;
use crate::frames::dirty::DirtyLists;
use crate::frames::page_table::{FRAMES_MAX, PageTable};
use crate::frames::share::Share;
use crate::frames::{Frame, FrameNo, Frames, Periods};
use crate::news::{News, Shortage};
use crate::options::PoolOptions;
use crate::roles::Roles;
use crate::space::doublewrite::Doublewrite;
use crate::space::growth::Growth;
use crate::space::{self, Space, Spaces};

/// Maps of pages being loaded; several, so that loads seldom meet.
const LOAD_SHARDS: usize = 16;

/// A page that is not in memory but asked for.
#[derive(Debug)]
pub(crate) enum Load {
    /// On its way; the tasks that wait for it.
    Reading(Vec<Waker>),
    /// It did not arrive, and no caller has got the error yet.
    Failed(StoreError),
}

/// The pool. Shared by all workers.
pub struct Pool {
    /// Constant.
    pub(crate) options: PoolOptions,
    /// The data directory. Constant.
    pub(crate) directory: PathBuf,
    pub(crate) wal: Arc<Wal>,
    pub(crate) frames: Frames,
    /// Decides which uses of a page belong together.
    pub(crate) periods: Periods,
    pub(crate) spaces: Spaces,
    pub(crate) dirty: DirtyLists,
    /// Free frames and the clock's hand of each worker.
    pub(crate) shares: Box<[CachePadded<Share>]>,
    /// Pages on their way in, and errors of pages that did not arrive.
    pub(crate) loads: Box<[Mutex<HashMap<PageId, Load>>]>,
    /// Tasks that wait for a frame.
    pub(crate) frame_waiters: Mutex<Vec<Waker>>,
    /// Whether a task that needs a frame has found no clean one since the cleaner ran.
    pub(crate) wants_frames: AtomicBool,
    /// Where each worker's house-keeping sleeps while nothing is to be done.
    pub(crate) house_calls: Box<[CachePadded<Notify>]>,
    /// Who cleans and who writes a checkpoint.
    pub(crate) roles: Roles,
    /// Where the cleaners look for cold dirty pages next.
    pub(crate) cold_hand: AtomicU32,
    pub(crate) doublewrite: Doublewrite,
    /// Reports for the server's log.
    pub(crate) news: News,
    /// What each worker does with pages.
    pub(crate) counters: Box<[Arc<CachePadded<PageCounters>>]>,
    /// Pages read from files so far.
    pub(crate) pages_read: AtomicU64,
    /// Reads of files so far, of one page or of several.
    pub(crate) reads: AtomicU64,
    /// Frames that reads ahead have now.
    pub(crate) frames_ahead: AtomicU32,
    /// Reads ahead so far that were cut short: the pool had no frames for more.
    pub(crate) reads_ahead_cut: AtomicU64,
    /// Pages written to files so far.
    pub(crate) pages_written: AtomicU64,
}

impl Pool {
    /// Creates a pool without tablespaces on a running log.
    pub(crate) fn new(
        options: PoolOptions,
        directory: &Path,
        wal: Arc<Wal>,
        doublewrite: Doublewrite,
    ) -> Arc<Self> {
        let worker_count = wal.options().worker_count;
        let frames = Frames::new(options.frame_count, options.page_size);
        let count = frames.count();
        assert!(count <= FRAMES_MAX, "page tables can name each frame");
        Arc::new(Self {
            options,
            directory: directory.to_path_buf(),
            wal,
            frames,
            periods: Periods::new(count),
            spaces: Spaces::default(),
            dirty: DirtyLists::new(worker_count),
            shares: Share::split(count, worker_count),
            loads: (0..LOAD_SHARDS).map(|_| Mutex::default()).collect(),
            frame_waiters: Mutex::default(),
            wants_frames: AtomicBool::new(false),
            house_calls: (0..worker_count).map(|_| CachePadded::default()).collect(),
            roles: Roles::new(doublewrite.file_count()),
            cold_hand: AtomicU32::new(0),
            doublewrite,
            news: News::default(),
            counters: (0..worker_count).map(|_| Arc::default()).collect(),
            pages_read: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            frames_ahead: AtomicU32::new(0),
            reads_ahead_cut: AtomicU64::new(0),
            pages_written: AtomicU64::new(0),
        })
    }

    /// Wakes the house-keeping of this worker, which cleans, and of the first, which also writes
    /// checkpoints and makes log segments: a task waits for it.
    pub(crate) fn call_house(&self, worker: usize) {
        for index in [0, worker] {
            let call = self.house_calls.get(index);
            call.expect("each worker has its house-keeping").notify();
        }
    }

    /// The log.
    pub fn wal(&self) -> &Arc<Wal> {
        &self.wal
    }

    /// Reports for the server's log.
    pub fn news(&self) -> &News {
        &self.news
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Pages that the file of an open tablespace has room for.
    pub fn room_pages(&self, id: SpaceId) -> Option<u32> {
        let space = self.spaces.get(id)?;
        Some(space.growth.room_pages())
    }

    /// The size of the pool.
    pub fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// Pages read from files so far.
    pub fn pages_read(&self) -> u64 {
        self.pages_read.load(Ordering::Relaxed)
    }

    /// Reads of files so far; one may bring in several pages.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Reads ahead so far that were cut short, because the pool had no frames for more.
    pub fn reads_ahead_cut(&self) -> u64 {
        self.reads_ahead_cut.load(Ordering::Relaxed)
    }

    /// Pages written to files so far.
    pub fn pages_written(&self) -> u64 {
        self.pages_written.load(Ordering::Relaxed)
    }

    /// Dirty pages.
    pub fn dirty_pages(&self) -> usize {
        self.dirty.page_count()
    }

    /// Makes the file of a new tablespace, durably, and opens it.
    pub async fn create_space(&self, disk: &dyn Disk, id: SpaceId) -> Result<(), StoreError> {
        let path = space::path(&self.directory, id);
        let made = space::open_file(disk, &path, true);
        self.news.note(Shortage::Descriptors, &made);
        let file = made.map_err(|error| space::disk_error(&error))?;
        // First, so that it can be removed if the following steps fail or are given up.
        self.add_space(id, path, file, 0);
        let directory = self.directory.clone();
        let sync = move |disk: &dyn Disk| disk.sync_directory(&directory);
        let synced = disk.later(Box::new(sync)).await;
        self.news.note(Shortage::Descriptors, &synced);
        synced.map_err(|error| space::disk_error(&error))
    }

    /// Tries to open a file if the last attempt found no descriptor. Without that, the shortage
    /// would end only when the next table is made. Blocks.
    pub fn try_descriptor(&self, disk: &dyn Disk) {
        if self.news.is_short_of(Shortage::Descriptors) {
            let any = space::path(&self.directory, SpaceId(0));
            let opened = space::open_file(disk, &any, false);
            self.news.note(Shortage::Descriptors, &opened);
        }
    }

    /// Opens a tablespace. Blocks.
    pub fn open_space(&self, disk: &dyn Disk, id: SpaceId) -> Result<(), StoreError> {
        let path = space::path(&self.directory, id);
        let opened = space::open_file(disk, &path, false)
            .and_then(|file| disk.length(&file).map(|length| (file, length)));
        let (file, length) = opened.map_err(|error| space::disk_error(&error))?;
        let pages = length / stdx::to_u64(self.options.page_size.bytes());
        self.add_space(id, path, file, u32::try_from(pages).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Whether the tablespace is open.
    pub fn has_space(&self, id: SpaceId) -> bool {
        self.spaces.get(id).is_some()
    }

    /// The tablespaces that have a file, open or not, ascending. Blocks.
    pub fn list_spaces(&self, disk: &dyn Disk) -> Result<Vec<SpaceId>, StoreError> {
        space::list_spaces(disk, &self.directory).map_err(|error| space::disk_error(&error))
    }

    /// Renames the file of a tablespace that is not used any more, so that no later start takes it
    /// for one. Returns its new name. Blocks.
    pub fn set_aside(&self, disk: &dyn Disk, id: SpaceId) -> Result<String, StoreError> {
        let path = space::path(&self.directory, id);
        let aside = path.with_extension("lost");
        disk.rename(&path, &aside)
            .and_then(|()| disk.sync_directory(&self.directory))
            .map_err(|error| space::disk_error(&error))?;
        Ok(aside.display().to_string())
    }

    fn add_space(&self, id: SpaceId, path: PathBuf, file: env::File, pages: u32) {
        self.spaces.add(Arc::new(Space {
            id,
            file,
            path,
            table: PageTable::new(),
            is_dropped: AtomicBool::new(false),
            growth: Growth::new(pages),
        }));
    }

    pub(crate) fn load_shard(&self, id: PageId) -> &Mutex<HashMap<PageId, Load>> {
        let at = stdx::to_usize(id.page.0 ^ id.space.0) % LOAD_SHARDS;
        self.loads.get(at).expect("a remainder is below the count")
    }

    pub(crate) fn frame(&self, no: FrameNo) -> &Frame {
        self.frames.frame(no)
    }

    /// Wakes the tasks that wait for a frame.
    pub(crate) fn wake_frame_waiters(&self) {
        let wakers = std::mem::take(&mut *self.frame_waiters.lock());
        for waker in wakers {
            waker.wake();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
