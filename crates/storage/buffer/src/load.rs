//! Bringing a page in from its file.
//!
//! The first caller that misses a page reads it; others that miss it meanwhile wait for that read.
//! The reader's future may be dropped at any time; then the next caller reads again. A page that
//! does not arrive leaves its error for the next caller.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use env::{Disk, IoBuffer, IoFuture, IoResult};
use format::PageId;
use format::page::{self, PageError};
use store::StoreError;
use sync::atomic::Ordering;

use crate::frames::{FrameNo, spin};
use crate::pool::{Load, Pool};
use crate::space::{self, Space};

/// The right to bring a page in: its [`Load`] was entered, and a frame is kept for it. Dropped
/// before [`Claim::finish`], it lets the next caller read the page.
pub(crate) struct Claim {
    pool: Arc<Pool>,
    worker: usize,
    space: Arc<Space>,
    id: PageId,
    /// Where the page will be; `None` when this has ended.
    frame: Option<FrameNo>,
}

impl Claim {
    /// Claims a page whose `Load` was entered by the caller.
    pub(crate) fn new(
        (pool, worker): (&Arc<Pool>, usize),
        space: &Arc<Space>,
        id: PageId,
        frame: FrameNo,
    ) -> Self {
        let (pool, space) = (Arc::clone(pool), Arc::clone(space));
        Self {
            pool,
            worker,
            space,
            id,
            frame: Some(frame),
        }
    }

    pub(crate) fn id(&self) -> PageId {
        self.id
    }

    /// Checks what was read, puts it into the frame and the frame into the table. Returns false,
    /// and does nothing, if the frame is busy.
    pub(crate) fn install(&self, read: &[u8]) -> Result<bool, StoreError> {
        let frame = self.frame.expect("a page is installed before the end");
        let describe = |error: PageError| space::damaged(&self.space.path, self.id, &error);
        let header = page::verify(read, self.id, self.pool.options.page_size).map_err(describe)?;
        // As redo does with the pages that it meets: a change of this page would break the order of
        // the log.
        let log_end = self.pool.wal.newest_lsn(header.epoch);
        if log_end < header.lsn {
            let lost = space::lost_log(&header, log_end);
            return Err(space::damaged(&self.space.path, self.id, &lost));
        }
        if self.space.is_dropped() {
            let dropped = &"the tablespace is dropped";
            return Err(space::damaged(&self.space.path, self.id, dropped));
        }
        let is_done = self.pool.fill_frame(frame, self.id, &self.space, read);
        if is_done {
            self.pool.pages_read.fetch_add(1, Ordering::Relaxed);
        }
        Ok(is_done)
    }

    /// Ends the load and wakes the tasks that wait for it.
    pub(crate) fn finish(&mut self, result: Result<(), StoreError>) {
        let Some(frame) = self.frame.take() else {
            return;
        };
        let is_here = result.is_ok();
        let ended = {
            let mut loads = self.pool.load_shard(self.id).lock();
            match result {
                Ok(()) => loads.remove(&self.id),
                Err(error) => loads.insert(self.id, Load::Failed(error)),
            }
        };
        assert!(
            matches!(ended, Some(Load::Reading(_))),
            "a load is ended by the caller that entered it"
        );
        if !is_here {
            self.pool.free_frame(self.worker, frame);
        }
        wake(ended);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let Some(frame) = self.frame.take() else {
            return;
        };
        let ended = self.pool.load_shard(self.id).lock().remove(&self.id);
        assert!(
            matches!(ended, Some(Load::Reading(_))),
            "a load is ended by the caller that entered it"
        );
        self.pool.free_frame(self.worker, frame);
        wake(ended);
    }
}

fn wake(ended: Option<Load>) {
    if let Some(Load::Reading(wakers)) = ended {
        for waker in wakers {
            waker.wake();
        }
    }
}

/// The read of a page under way.
pub(crate) struct Reading {
    claim: Claim,
    read: IoFuture<IoResult>,
    /// What has arrived while the frame was busy.
    arrived: Option<IoResult>,
}

impl Reading {
    /// Begins to read a page.
    pub(crate) fn new(claim: Claim, disk: &Rc<dyn Disk>) -> Self {
        let size = claim.pool.options.page_size;
        let buffer = IoBuffer::zeroed(size.bytes());
        let offset = space::page_offset(claim.id.page, size);
        let read = disk.read(&claim.space.file, offset, buffer);
        claim.pool.reads.fetch_add(1, Ordering::Relaxed);
        Self {
            claim,
            read,
            arrived: None,
        }
    }

    fn install(&self, (bytes, outcome): &IoResult) -> Result<bool, StoreError> {
        let Claim { space, id, .. } = &self.claim;
        let length = outcome
            .as_ref()
            .map_err(|error| space::read_error(error, &space.path, *id))?;
        self.claim.install(bytes.get(..*length).unwrap_or(&[]))
    }
}

impl Pool {
    /// Writes a page into a frame that is the caller's alone, and puts the frame into the table.
    /// Readers with an outdated page table may hold the frame's shared latch for a moment, or
    /// longer if their thread was preempted. Then this returns false and does nothing.
    ///
    /// Page, heat and table change under one exclusive latch. As soon as the frame has a clean
    /// page, another worker may evict it. If the table were set after that, the page would for ever
    /// be found in a frame that holds another one.
    fn fill_frame(&self, no: FrameNo, id: PageId, space: &Space, content: &[u8]) -> bool {
        let frame = self.frame(no);
        if spin(|| frame.latch.try_exclusive().then_some(())).is_none() {
            return false;
        }
        assert!(frame.page().is_none());
        assert!(
            frame.is_clean(),
            "a page comes into a frame without another (F3)"
        );
        assert!(
            space.table.frame_of(id.page).is_none(),
            "a page is in one frame"
        );
        // SAFETY: the exclusive latch is held; nothing else writes the frame or has a slice of it.
        let mut page = unsafe { self.frames.bytes_mut(no) };
        assert_eq!(content.len(), page.bytes().len(), "a page fills its frame");
        page.put(0, content).expect("they are equally long");
        frame.set_page(Some(id));
        frame.set_loaded(&self.periods, space.table.left_at(id.page));
        space.table.set(id.page, no);
        frame.latch.unlock_exclusive();
        true
    }
}

impl Future for Reading {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.claim.frame.is_none() {
            return Poll::Ready(());
        }
        let arrived = match self.arrived.take() {
            Some(arrived) => arrived,
            None => match self.read.as_mut().poll(context) {
                Poll::Ready(arrived) => arrived,
                Poll::Pending => return Poll::Pending,
            },
        };
        let result = match self.install(&arrived) {
            Ok(true) => Ok(()),
            Ok(false) => {
                // The next turn tries again.
                self.arrived = Some(arrived);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Err(error) => {
                let Claim {
                    pool, space, id, ..
                } = &self.claim;
                if !space.is_dropped() {
                    pool.news.page_failed(*id, &error);
                }
                Err(error)
            }
        };
        self.claim.finish(result);
        Poll::Ready(())
    }
}

/// Waits for a page that another reads.
pub(crate) struct Joining {
    pub(crate) pool: Arc<Pool>,
    pub(crate) id: PageId,
}

impl Future for Joining {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut loads = self.pool.load_shard(self.id).lock();
        match loads.get_mut(&self.id) {
            Some(Load::Reading(wakers)) => {
                if !wakers.iter().any(|known| known.will_wake(context.waker())) {
                    wakers.push(context.waker().clone());
                }
                Poll::Pending
            }
            Some(Load::Failed(_)) | None => Poll::Ready(()),
        }
    }
}
