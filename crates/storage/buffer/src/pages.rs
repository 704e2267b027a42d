//! One worker's access to the pages.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use env::{Disk, DiskError};
use format::{Lsn, PageId, PageNo, SpaceId};
use store::{Outcome, StoreError, Suspend, WaitReason};
use sync::{CachePadded, LatchVersion, Notify};
use wal::{LogLevel, NoRoom, Purpose, Wal, WalWriter};

use crate::change_buffers::ChangeBuffers;
use crate::counters::PageCounters;
use crate::evict::{Search, Taken};
use crate::frames::{Frame, FrameNo, spin};
use crate::load::{Claim, Joining, Reading};
use crate::news::Shortage;
use crate::optimistic::Optimistic;
use crate::pool::{Load, Pool};
use crate::space::{self, Space};

/// Reads of a page table that may be outdated before giving way.
const LOOKUP_TRIES: usize = 4;

/// Pages that a file has beyond those that work may take, to undo work on a full disk: a share of
/// the pages, with bounds. Undoing takes a page if a leaf has filled up since, and for the end of
/// the transaction.
const RESERVE_SHARE: u32 = 32;
const RESERVE_PAGES_MIN: u32 = 4;
const RESERVE_PAGES_MAX: u32 = 64;

const _: () = assert!(RESERVE_PAGES_MIN <= RESERVE_PAGES_MAX);

/// A file grows by this share of its pages at once, but by 16 MiB of 16 KiB pages at most.
const GROWTH_SHARE: u32 = 4;
const GROWTH_PAGES_MAX: u32 = 1024;

/// How a wait for room has failed.
#[derive(Debug)]
enum WaitFailure {
    /// A tablespace cannot grow to so many pages.
    Growth(SpaceId, u32, DiskError),
    /// No log segment can be made.
    Segment(DiskError),
}

/// The pages as one worker sees them. Not shared; a worker's tasks use it by reference.
pub struct Pages {
    pub(crate) pool: Arc<Pool>,
    pub(crate) worker: usize,
    pub(crate) disk: Rc<dyn Disk>,
    /// This worker's.
    counters: Arc<CachePadded<PageCounters>>,
    pub(crate) log: RefCell<WalWriter>,
    /// Latches held by this worker (B1).
    pub(crate) held: Rc<Cell<u32>>,
    /// Whether a change is open (B5).
    pub(crate) has_change: Cell<bool>,
    /// Copies of the pool's list of tablespaces, by id, as of `removals_seen`.
    spaces: RefCell<Vec<Option<Arc<Space>>>>,
    removals_seen: Cell<u64>,
    /// The search for a frame under way.
    pub(crate) search: Cell<Search>,
    /// Whether the running code undoes or ends work, and may use the reserve of room.
    is_undoing: Cell<bool>,
    /// How the wait has failed that has just ended. The operation that waited is called again in
    /// the same poll and fetches it. What it does not fetch is dropped before others can.
    wait_failure: Rc<RefCell<Option<WaitFailure>>>,
    /// Buffers of mini-transactions, for reuse.
    pub(crate) buffers: RefCell<ChangeBuffers>,
    /// Where this worker's last search in a tree has ended. A statement reads a row, locks it and
    /// changes it, so the next search mostly ends there, too.
    finger: Cell<Option<PageId>>,
}

impl Pool {
    /// Returns the pages of one worker. They exist once, because they hold its log writer.
    ///
    /// # Panics
    /// If the worker has them already.
    pub fn pages(self: &Arc<Self>, worker: usize, disk: Rc<dyn Disk>) -> Pages {
        Pages::new(Arc::clone(self), worker, disk)
    }
}

impl Pages {
    fn new(pool: Arc<Pool>, worker: usize, disk: Rc<dyn Disk>) -> Self {
        let log = RefCell::new(pool.wal.writer(worker));
        let counters = pool.counters.get(worker);
        let counters = Arc::clone(counters.expect("each worker has its counters"));
        Self {
            pool,
            counters,
            worker,
            disk,
            log,
            held: Rc::default(),
            has_change: Cell::new(false),
            spaces: RefCell::default(),
            removals_seen: Cell::new(0),
            search: Cell::default(),
            is_undoing: Cell::new(false),
            wait_failure: Rc::default(),
            buffers: RefCell::default(),
            finger: Cell::default(),
        }
    }

    /// Keeps the page that a search has ended at, or forgets it.
    pub fn set_finger(&self, page: Option<PageId>) {
        self.finger.set(page);
    }

    /// Begins to read the page that [`set_finger`](Self::set_finger) was called with, if it is in
    /// memory and not busy. It may have become another tree's page, or none.
    pub fn finger(&self) -> Option<Optimistic<'_>> {
        self.peek(self.finger.get()?)
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.pool.options.page_size.bytes()
    }

    /// The pool.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The log.
    pub fn wal(&self) -> &Arc<Wal> {
        &self.pool.wal
    }

    /// This worker's number.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// This worker's disk.
    pub fn disk(&self) -> &Rc<dyn Disk> {
        &self.disk
    }

    /// The next LSN to be allocated: the number of a snapshot taken now.
    pub fn reserved(&self) -> Lsn {
        self.pool.wal.reserved()
    }

    /// Notes that this worker begins or ends changes, so there may soon be pages to clean and log
    /// to make durable. Code that waits for a frame or for room calls house-keeping itself.
    pub fn call_house(&self) {
        self.house_call(self.worker).notify_own();
    }

    /// Ready if this worker's house-keeping was called since this was last ready. Each call also
    /// wakes the first worker's, which alone writes checkpoints.
    pub async fn house_called(&self) {
        self.house_call(self.worker).notified().await;
        if self.worker != 0 {
            self.house_call(0).notify();
        }
    }

    fn house_call(&self, worker: usize) -> &Notify {
        let call = self.pool.house_calls.get(worker);
        call.expect("each worker has its house-keeping")
    }

    /// Notes that a second has passed. A page that came in before and is used from now on counts as
    /// used again. Called by house-keeping while it is awake.
    pub fn end_period(&self) {
        self.pool.periods.end();
    }

    /// Waits until the log below `lsn` has reached a level. The error is [`StoreError::LogFailed`].
    pub fn wait_log(
        &self,
        lsn: Lsn,
        level: LogLevel,
    ) -> impl Future<Output = Result<(), StoreError>> + use<> {
        let wait = self.pool.wal.wait(self.worker, lsn, level);
        async move { wait.await.map_err(|_| StoreError::LogFailed) }
    }

    /// Begins to read a page without latching it.
    pub fn optimistic(&self, id: PageId) -> Outcome<Optimistic<'_>> {
        for _ in 0..LOOKUP_TRIES {
            let no = self.find(id)?;
            let frame = self.pool.frame(no);
            let Some(version) = spin(|| frame.latch.optimistic()) else {
                return Err(self.busy().into());
            };
            if frame.holds(id) {
                return Ok(self.begin_read((no, frame, version), id));
            }
        }
        Err(self.busy().into())
    }

    /// As [`optimistic`](Self::optimistic), for a page that is in memory and not busy.
    pub fn peek(&self, id: PageId) -> Option<Optimistic<'_>> {
        let found = self.with_space(id.space, |space| space.table.frame_of(id.page));
        let no = found.ok()??;
        let frame = self.pool.frame(no);
        let version = frame.latch.optimistic()?;
        let is_it = frame.holds(id);
        is_it.then(|| self.begin_read((no, frame, version), id))
    }

    #[inline]
    fn begin_read<'a>(
        &'a self,
        (no, frame, version): (FrameNo, &'a Frame, LatchVersion),
        id: PageId,
    ) -> Optimistic<'a> {
        frame.touch(&self.pool.periods);
        let (start, length) = (self.pool.frames.address(no), self.page_bytes());
        Optimistic {
            frame,
            version,
            start,
            length,
            id,
        }
    }

    /// Latches a page for reading; other readers may have it, too.
    pub fn shared(&self, id: PageId) -> Outcome<Shared<'_>> {
        let take = |frame: &Frame| frame.latch.try_shared().then_some(());
        let no = self.latch(id, take, |frame| frame.latch.unlock_shared())?;
        self.pool.frame(no).touch(&self.pool.periods);
        self.hold();
        // SAFETY: the shared latch is held until the guard is dropped.
        let bytes = unsafe { self.pool.frames.bytes(no) };
        Ok(Shared {
            pages: self,
            no,
            id,
            bytes,
        })
    }

    /// Finds the page and latches its frame by `take`. `release` undoes that if the frame has got
    /// another page meanwhile.
    pub(crate) fn latch(
        &self,
        id: PageId,
        take: impl Fn(&Frame) -> Option<()>,
        release: impl Fn(&Frame),
    ) -> Outcome<FrameNo> {
        for _ in 0..LOOKUP_TRIES {
            let no = self.find(id)?;
            let frame = self.pool.frame(no);
            if spin(|| take(frame)).is_none() {
                break;
            }
            if frame.holds(id) {
                return Ok(no);
            }
            release(frame);
        }
        Err(self.busy().into())
    }

    /// The frame that held the page a moment ago. Starts to bring the page in if none did.
    fn find(&self, id: PageId) -> Outcome<FrameNo> {
        self.counters.requests.increment();
        if let Some(found) = self.with_space(id.space, |space| space.table.frame_of(id.page))? {
            return Ok(found);
        }
        self.miss(id)
    }

    /// Calls `act` with an open tablespace.
    fn with_space<T>(&self, id: SpaceId, act: impl FnOnce(&Arc<Space>) -> T) -> Outcome<T> {
        let mut spaces = self.spaces.borrow_mut();
        let removals = self.pool.spaces.removals();
        if removals != self.removals_seen.get() {
            spaces.clear();
            self.removals_seen.set(removals);
        }
        let at = stdx::to_usize(id.0);
        if let Some(Some(space)) = spaces.get(at) {
            debug_assert_eq!(space.id, id);
            return Ok(act(space));
        }
        let space = self.pool.spaces.get(id).ok_or_else(|| missing_file(id))?;
        // Ids are allocated in a row, so the list has one entry for each tablespace that ever was.
        if spaces.len() <= at {
            spaces.resize(at + 1, None);
        }
        let result = act(&space);
        if let Some(slot) = spaces.get_mut(at) {
            *slot = Some(space);
        }
        Ok(result)
    }

    pub(crate) fn space(&self, id: SpaceId) -> Outcome<Arc<Space>> {
        self.with_space(id, Arc::clone)
    }

    #[cold]
    fn miss(&self, id: PageId) -> Outcome<FrameNo> {
        let space = self.space(id.space)?;
        let mut loads = self.pool.load_shard(id).lock();
        match loads.get(&id) {
            Some(Load::Reading(_)) => {
                let join = Joining {
                    pool: Arc::clone(&self.pool),
                    id,
                };
                return Err(self.suspend(WaitReason::PageMiss, join).into());
            }
            Some(Load::Failed(_)) => {
                let Some(Load::Failed(error)) = loads.remove(&id) else {
                    unreachable!("it was there a moment ago, under the same lock")
                };
                return Err(error.into());
            }
            None => {}
        }
        // It may have come in before this thread held the lock.
        if let Some(found) = space.table.frame_of(id.page) {
            return Ok(found);
        }
        let frame = self.take_frame()?;
        loads.insert(id, Load::Reading(Vec::new()));
        drop(loads);
        let claim = Claim::new((&self.pool, self.worker), &space, id, frame);
        let reading = Reading::new(claim, &self.disk);
        Err(self.suspend(WaitReason::PageMiss, reading).into())
    }

    /// While the guard lives, calls may take the room that is kept for undoing work. The guard must
    /// not be kept across a suspension.
    pub fn undoing(&self) -> Undoing<'_> {
        let was_undoing = self.is_undoing.replace(true);
        Undoing {
            pages: self,
            was_undoing,
        }
    }

    /// Makes sure that the file of a tablespace has room for `pages` pages, and for a reserve after
    /// them unless work is being undone.
    pub fn grow(&self, id: SpaceId, pages: u32) -> Outcome<()> {
        let space = self.space(id)?;
        let reserve = (pages / RESERVE_SHARE).clamp(RESERVE_PAGES_MIN, RESERVE_PAGES_MAX);
        let least = if self.is_undoing.get() {
            pages
        } else {
            pages.saturating_add(reserve)
        };
        if least <= space.growth.room_pages() {
            return Ok(());
        }
        let failure = self.wait_failure.take();
        if let Some(WaitFailure::Growth(space, pages, error)) = failure
            && (space, pages) == (id, least)
        {
            return Err(space::disk_error(&error).into());
        }
        let most = least.saturating_add((pages / GROWTH_SHARE).min(GROWTH_PAGES_MAX));
        let (disk, size) = (Rc::clone(&self.disk), self.pool.options.page_size);
        let failure = Rc::clone(&self.wait_failure);
        let pool = Arc::clone(&self.pool);
        let grow = async move {
            let grown = space.grow(&*disk, size, (least, most)).await;
            pool.news.note(Shortage::Room, &grown);
            let failed = |error| WaitFailure::Growth(id, least, error);
            *failure.borrow_mut() = grown.err().map(failed);
        };
        Err(self.suspend(WaitReason::Growth, grow).into())
    }

    /// Asks for room in the log for one mini-transaction.
    pub(crate) fn permit(&self) -> Outcome<()> {
        let purpose = if self.is_undoing.get() {
            Purpose::Undo
        } else {
            Purpose::Work
        };
        match self.log.borrow_mut().permit(purpose) {
            Ok(()) => Ok(()),
            Err(NoRoom::Wait) => {
                if let Some(WaitFailure::Segment(error)) = self.wait_failure.take() {
                    return Err(space::disk_error(&error).into());
                }
                let wait = self.pool.wal.wait_room(purpose);
                self.pool.call_house(self.worker);
                let failure = Rc::clone(&self.wait_failure);
                let wait = async move {
                    *failure.borrow_mut() = wait.await.err().map(WaitFailure::Segment);
                };
                Err(self.suspend(WaitReason::LogSpace, wait).into())
            }
            Err(NoRoom::Closed(_)) => Err(StoreError::LogFailed.into()),
        }
    }

    /// Lets other tasks run, because a latch is busy.
    pub(crate) fn busy(&self) -> Suspend {
        self.suspend(WaitReason::LatchBusy, Suspend::turn())
    }

    /// Returns a frame without a page, for the caller alone.
    pub(crate) fn take_frame(&self) -> Outcome<FrameNo> {
        match self.pool.take_frame(self.worker, &self.search) {
            Taken::Frame(frame) => Ok(frame),
            Taken::Later => Err(self.suspend(WaitReason::Turn, Suspend::turn()).into()),
            Taken::Nothing => {
                self.pool.note_shortage(self.worker);
                Err(self.no_frame().into())
            }
        }
    }

    /// Waits for the cleaner.
    fn no_frame(&self) -> Suspend {
        self.counters.frame_waits.increment();
        let (pool, worker) = (Arc::clone(&self.pool), self.worker);
        let mut is_queued = false;
        let wait = std::future::poll_fn(move |context: &mut Context<'_>| {
            // Each wake-up is worth another try; a caller that finds nothing waits again.
            if std::mem::replace(&mut is_queued, true) {
                return Poll::Ready(());
            }
            pool.frame_waiters.lock().push(context.waker().clone());
            // The cleaner may have come, gone and fallen asleep before this waiter was in the list.
            pool.note_shortage(worker);
            Poll::Pending
        });
        self.suspend(WaitReason::NoFrame, wait)
    }

    /// Drops the failure of a wait whose operation has not fetched it: it was killed, or found room
    /// elsewhere. Called when a statement or a task of the background begins.
    pub fn forget_wait_failure(&self) {
        self.wait_failure.take();
    }

    /// A suspension that asserts L0 (B1).
    pub(crate) fn suspend(
        &self,
        reason: WaitReason,
        future: impl Future<Output = ()> + 'static,
    ) -> Suspend {
        self.forget_wait_failure();
        let held = Rc::clone(&self.held);
        Suspend::new(
            reason,
            Unlatched {
                held,
                future: Box::pin(future),
            },
        )
    }

    pub(crate) fn hold(&self) {
        self.held.set(self.held.get() + 1);
    }

    pub(crate) fn unhold(&self) {
        let held = self.held.get().checked_sub(1);
        self.held.set(held.expect("each release follows its hold"));
    }

    /// Asserts that this worker holds no latch. The engine calls it when it suspends by itself.
    pub fn assert_nothing_held(&self) {
        assert_eq!(self.held.get(), 0, "a worker that waits holds no latch");
    }
}

/// The right to use the reserve of room; see [`Pages::undoing`].
pub struct Undoing<'a> {
    pages: &'a Pages,
    was_undoing: bool,
}

impl Drop for Undoing<'_> {
    fn drop(&mut self) {
        assert!(
            self.pages.is_undoing.get(),
            "the reserve is given back in the order in which it was taken"
        );
        self.pages.is_undoing.set(self.was_undoing);
    }
}

impl fmt::Debug for Undoing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undoing").finish_non_exhaustive()
    }
}

/// The error for a tablespace without a file.
pub fn missing_file(id: SpaceId) -> StoreError {
    let header = PageId::new(id, PageNo(0));
    StoreError::damaged_page(header, format!("the file of tablespace {id} is missing"))
}

/// Polls only while the worker holds no latch.
struct Unlatched {
    held: Rc<Cell<u32>>,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

impl Future for Unlatched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        assert_eq!(self.held.get(), 0, "a worker that waits holds no latch");
        self.future.as_mut().poll(context)
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}

/// A page latched for reading. Must not be kept across a suspension.
pub struct Shared<'a> {
    pages: &'a Pages,
    no: FrameNo,
    id: PageId,
    bytes: &'a [u8],
}

impl Shared<'_> {
    /// The page's id.
    pub fn id(&self) -> PageId {
        self.id
    }

    /// The whole page, header included.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.pages.pool.frame(self.no).latch.unlock_shared();
        self.pages.unhold();
    }
}

impl fmt::Debug for Shared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
