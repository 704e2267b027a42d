//! Bringing in pages that will be asked for soon, neighbours by one read.
//!
//! It is a hint. A page may not come in because the disk fails, the page is damaged, or no frame is
//! free. It is then read by itself when it is asked for, and only that read returns the error.
//!
//! All reads ahead together have a part of the pool ([`POOL_SHARE`]). Many scans at once would
//! otherwise push out each other's pages before their use, and leave no frame to a page that is
//! asked for. While anybody waits for a frame, nothing is read ahead.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use env::{IoBuffer, IoFuture, IoResult};
use format::{PageId, PageNo, PageSize, SpaceId};
use sync::atomic::Ordering;

use crate::evict::Taken;
use crate::load::Claim;
use crate::pages::Pages;
use crate::pool::{Load, Pool};
use crate::space::{self, Space};

/// Pages of one read at most: 1 MiB of 16 KiB.
const RUN_PAGES_MAX: u32 = 64;

/// Unwanted pages between two wanted ones that one read takes along, rather than two reads.
const GAP_PAGES_MAX: u32 = 4;

const _: () = assert!(GAP_PAGES_MAX < RUN_PAGES_MAX);

/// The part of the pool's frames that all reads ahead have at a time, at most. In a pool of 128
/// frames 35 scans at once read 1.1 to 1.3 times their pages with this, 1.7 times with a quarter of
/// the frames, and 2.4 times without a limit (`engine/tests/scans.rs`).
const POOL_SHARE: u32 = 8;

/// The reads of some pages. If it is dropped early, it gives up pages that have not come in.
///
/// A caller that asks for one of the pages meanwhile waits for this future to be polled. So a task
/// that keeps it polls it whenever it waits for anything.
#[must_use = "nothing is read unless it is polled"]
pub struct ReadAhead {
    runs: Vec<Run>,
    size: PageSize,
    frames: FramesAhead,
}

/// Frames of the pool that a read ahead has, until this is dropped.
struct FramesAhead {
    pool: Arc<Pool>,
    count: u32,
}

impl FramesAhead {
    fn of(pool: &Arc<Pool>) -> Self {
        let pool = Arc::clone(pool);
        Self { pool, count: 0 }
    }

    /// Whether there may be one more. Several workers that ask at once may have one too many each.
    fn may_grow(&self) -> bool {
        let pool = &self.pool;
        let most = pool.frames.count() / POOL_SHARE;
        // Relaxed: it only decides how much is read in vain.
        let is_short = pool.wants_frames.load(Ordering::Relaxed);
        !is_short && pool.frames_ahead.load(Ordering::Relaxed) < most
    }

    fn grow(&mut self) {
        self.count += 1;
        self.pool.frames_ahead.fetch_add(1, Ordering::Relaxed);
    }

    fn give_back(&mut self) {
        let count = std::mem::take(&mut self.count);
        let before = self.pool.frames_ahead.fetch_sub(count, Ordering::Relaxed);
        assert!(count <= before, "what is given back was taken");
    }
}

impl Drop for FramesAhead {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// One read, and the pages in it that are wanted.
struct Run {
    first: PageNo,
    /// Ascending, not below `first`.
    claims: Vec<Claim>,
    read: IoFuture<IoResult>,
}

impl Pages {
    /// Begins to bring in the pages of the list that are not in memory.
    pub fn read_ahead(&self, space: SpaceId, pages: &[PageNo]) -> ReadAhead {
        let mut ahead = ReadAhead {
            runs: Vec::new(),
            size: self.pool.options.page_size,
            frames: FramesAhead::of(&self.pool),
        };
        let Ok(space) = self.space(space) else {
            return ahead;
        };
        let mut wanted = pages.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut claims: Vec<Claim> = Vec::new();
        for page in wanted {
            if !is_of_run(&claims, page) {
                self.begin_run(&space, &mut claims, &mut ahead);
            }
            match self.claim(&space, PageId::new(space.id, page), &ahead.frames) {
                Claimed::Page(claim) => {
                    ahead.frames.grow();
                    claims.push(claim);
                }
                Claimed::NotNeeded => {}
                Claimed::NoFrame => {
                    self.pool.reads_ahead_cut.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
        self.begin_run(&space, &mut claims, &mut ahead);
        ahead
    }

    /// Claims a page unless it is in memory or on its way, or the pool has no frame for it.
    fn claim(&self, space: &Arc<Space>, id: PageId, frames: &FramesAhead) -> Claimed {
        let mut loads = self.pool.load_shard(id).lock();
        if loads.contains_key(&id) || space.table.frame_of(id.page).is_some() {
            return Claimed::NotNeeded;
        }
        if !frames.may_grow() {
            return Claimed::NoFrame;
        }
        let Taken::Frame(frame) = self.pool.take_frame(self.worker, &self.search) else {
            return Claimed::NoFrame;
        };
        loads.insert(id, Load::Reading(Vec::new()));
        drop(loads);
        let place = (&self.pool, self.worker);
        Claimed::Page(Claim::new(place, space, id, frame))
    }

    /// Begins to read the pages that are claimed.
    fn begin_run(&self, space: &Space, claims: &mut Vec<Claim>, ahead: &mut ReadAhead) {
        let (Some(first), Some(last)) = (claims.first(), claims.last()) else {
            return;
        };
        let (first, last) = (first.id().page, last.id().page);
        assert!(first <= last, "the pages of a read ascend");
        let size = self.pool.options.page_size;
        let count = last.0 - first.0 + 1;
        assert!(count <= RUN_PAGES_MAX);
        let buffer = IoBuffer::zeroed(stdx::to_usize(count) * size.bytes());
        let offset = space::page_offset(first, size);
        self.pool.reads.fetch_add(1, Ordering::Relaxed);
        ahead.runs.push(Run {
            first,
            claims: std::mem::take(claims),
            read: self.disk.read(&space.file, offset, buffer),
        });
    }
}

enum Claimed {
    Page(Claim),
    NotNeeded,
    NoFrame,
}

/// Whether a page is near enough to the claimed ones to be read with them.
fn is_of_run(claims: &[Claim], page: PageNo) -> bool {
    let (Some(first), Some(last)) = (claims.first(), claims.last()) else {
        return true;
    };
    let (first, last) = (first.id().page, last.id().page);
    page.0 - last.0 <= GAP_PAGES_MAX + 1 && page.0 - first.0 < RUN_PAGES_MAX
}

impl Run {
    fn poll(&mut self, size: PageSize, context: &mut Context<'_>) -> Poll<()> {
        let Poll::Ready((bytes, outcome)) = self.read.as_mut().poll(context) else {
            return Poll::Pending;
        };
        // A page that is not installed is given up by its drop.
        let read = outcome.ok().and_then(|length| bytes.get(..length));
        let read = read.unwrap_or(&[]);
        for mut claim in self.claims.drain(..) {
            let at = stdx::to_usize(claim.id().page.0 - self.first.0) * size.bytes();
            let page = read.get(at..at + size.bytes());
            if page.is_some_and(|page| claim.install(page) == Ok(true)) {
                claim.finish(Ok(()));
            }
        }
        Poll::Ready(())
    }
}

impl Future for ReadAhead {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let size = self.size;
        self.runs
            .retain_mut(|run| run.poll(size, context).is_pending());
        if self.runs.is_empty() {
            self.frames.give_back();
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead")
            .field("runs", &self.runs.len())
            .finish_non_exhaustive()
    }
}
