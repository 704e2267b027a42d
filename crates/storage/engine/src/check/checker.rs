//! A worker's means for a check: its pages, and a read ahead of the next ones.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use btree::{Pages, ReadAhead};
use format::{PageNo, SpaceId};
use store::{Outcome, StoreError};

use super::plan::CheckProgress;

/// Pages of one read ahead at most: 2 MiB of 16 KiB.
const AHEAD_PAGES_MAX: usize = 128;
/// Pages that are read ahead take at most this part of a worker's frames, and twice as much while
/// the next ones are on their way.
const AHEAD_SHARE: usize = 16;

/// One worker's means. Its futures run inside of [`Checker::run`].
pub(crate) struct Checker<'a> {
    pub(super) pages: &'a Pages,
    pub(super) progress: &'a CheckProgress,
    /// Pages of one read ahead.
    pub(super) ahead_pages: usize,
    /// The read ahead under way.
    ahead: RefCell<Option<ReadAhead>>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(pages: &'a Pages, progress: &'a CheckProgress) -> Self {
        let frames = stdx::to_usize(pages.pool().options().frame_count);
        let share = frames / pages.wal().options().worker_count / AHEAD_SHARE;
        Self {
            pages,
            progress,
            ahead_pages: share.min(AHEAD_PAGES_MAX),
            ahead: RefCell::new(None),
        }
    }

    /// Runs a part of the check. Reads ahead continue whatever the part waits for: it may wait for
    /// one of their pages, and so may another worker.
    pub(super) async fn run<T>(&self, part: impl Future<Output = T>) -> T {
        let mut part = pin!(part);
        let done = poll_fn(|context| {
            let _ = self.poll_ahead(context);
            part.as_mut().poll(context)
        });
        let done = done.await;
        // Pages that were read ahead and not used are given up.
        self.ahead.borrow_mut().take();
        done
    }

    fn poll_ahead(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut ahead = self.ahead.borrow_mut();
        let Some(reads) = ahead.as_mut() else {
            return Poll::Ready(());
        };
        let polled = Pin::new(reads).poll(context);
        if polled.is_ready() {
            *ahead = None;
        }
        polled
    }

    /// Waits for the read ahead under way and for the pages of `now`, and begins to read those of
    /// `next`.
    pub(super) async fn read_ahead(&self, space: SpaceId, now: &[PageNo], next: &[PageNo]) {
        poll_fn(|context| self.poll_ahead(context)).await;
        for pages in [now, next] {
            *self.ahead.borrow_mut() = Some(self.pages.read_ahead(space, pages));
            let is_now = std::ptr::eq(pages, now);
            poll_fn(|context| {
                let polled = self.poll_ahead(context);
                if is_now { polled } else { Poll::Ready(()) }
            })
            .await;
        }
    }

    /// See [`store::until_done`].
    pub(super) async fn until_done<T>(
        &self,
        operation: impl FnMut() -> Outcome<T>,
    ) -> Result<T, StoreError> {
        store::until_done(operation).await
    }
}
