//! Room in the log: when a mini-transaction may begin, and how others wait.
//!
//! Three things may be short. Memory: a flush helps. Prepared blocks: a new segment helps, or an
//! old one that a checkpoint frees. Distance to the checkpoint: cleaning pages and a checkpoint
//! help. If no segment can be made and none will be freed, new work fails. Undoing or
//! ending work has reserved blocks, because it makes room.
//!
//! (R1) A waiter fails only by an attempt to make a segment that began after it had asked for room.
//! An older error says nothing: there may be room on the disk by now.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use env::{DiskError, DiskErrorKind};
use sync::Mutex;
use sync::atomic::Ordering;

use crate::{Wal, WalError};

/// What the room is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// New work, which can be refused.
    Work,
    /// Undoing or ending work, which cannot be refused.
    Undo,
}

/// Why there is no room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRoom {
    /// Wait for [`Wal::wait_room`] and ask again.
    Wait,
    /// The log is closed.
    Closed(WalError),
}

impl Wal {
    /// Whether there is room, apart from the ring's own rule.
    pub(crate) fn room(&self, purpose: Purpose) -> Result<(), NoRoom> {
        if self.is_poisoned() {
            return Err(NoRoom::Closed(WalError::Poisoned));
        }
        let ahead = self.ring.reserved() + self.ring.headroom();
        let is_ring_full =
            stdx::to_u64(self.options.ring_bytes) < ahead.saturating_sub(self.ring.released());
        let is_old = self.options.log_bytes_max < self.age();
        if is_ring_full || is_old || self.is_short_of_blocks(ahead, purpose) {
            Err(NoRoom::Wait)
        } else {
            Ok(())
        }
    }

    /// Whether the prepared blocks do not suffice for the log up to `ahead` and one permit more.
    fn is_short_of_blocks(&self, ahead: u64, purpose: Purpose) -> bool {
        let unwritten = ahead.saturating_sub(self.written.load(Ordering::SeqCst));
        let kept = match purpose {
            Purpose::Work => self.blocks_for(self.ring.headroom()),
            Purpose::Undo => 0,
        };
        let blocks = self.blocks_for(unwritten) + kept;
        let next = self.next_block.load(Ordering::SeqCst);
        // One more block stays unwritten.
        self.prepared_end() < next + blocks + 1
    }

    /// Attempts to prepare segments that have begun.
    pub(crate) fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::SeqCst)
    }

    /// The error of the last attempt to prepare segments, if blocks are short, no checkpoint will
    /// free any, and the attempt began when `attempts` had begun before.
    pub(crate) fn no_segment(&self, purpose: Purpose, attempts: u64) -> Option<DiskError> {
        let ahead = self.ring.reserved() + self.ring.headroom();
        if !self.is_short_of_blocks(ahead, purpose) {
            return None;
        }
        // No checkpoint helps where an old segment cannot be opened either.
        let is_stopped = self.is_stopped_by(DiskErrorKind::NoDescriptor);
        // In this order: a checkpoint that frees segments reports them before it moves its block.
        if !is_stopped && (self.can_recycle() || !self.lacks_segments.load(Ordering::SeqCst)) {
            return None;
        }
        let failure = self.segment_failure.lock();
        let fresh = failure
            .as_ref()
            .filter(|failure| attempts < failure.attempt);
        fresh.map(|failure| failure.error.clone())
    }
}

/// Tasks that wait for room, in no particular order.
#[derive(Debug, Default)]
pub(crate) struct RoomWaiters {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The id of the next waiter, and so the number of all waiters so far.
    next_id: u64,
    /// By id.
    wakers: BTreeMap<u64, Waker>,
}

impl RoomWaiters {
    pub(crate) fn wake_all(&self) {
        let wakers = std::mem::take(&mut self.waiting.lock().wakers);
        for waker in wakers.into_values() {
            waker.wake();
        }
    }

    /// Adds a waiter to the list; one that is polled again replaces its old entry.
    fn add(&self, id: Option<u64>, waker: &Waker) -> u64 {
        let mut waiting = self.waiting.lock();
        let id = id.unwrap_or(waiting.next_id);
        waiting.next_id = waiting.next_id.max(id + 1);
        waiting.wakers.insert(id, waker.clone());
        id
    }

    /// How often somebody had to wait.
    pub(crate) fn wait_count(&self) -> u64 {
        self.waiting.lock().next_id
    }

    fn remove(&self, id: u64) {
        self.waiting.lock().wakers.remove(&id);
    }
}

/// Waits until it is worth asking for a permit again; see [`Wal::wait_room`].
#[must_use = "nothing is known before it is awaited"]
pub struct WaitRoom {
    wal: Arc<Wal>,
    purpose: Purpose,
    /// Attempts to prepare segments that had begun before the wait (R1).
    attempts: u64,
    /// Its id, if it has been in the list.
    id: Option<u64>,
}

impl WaitRoom {
    pub(crate) fn new(wal: Arc<Wal>, purpose: Purpose) -> Self {
        Self {
            attempts: wal.attempts(),
            wal,
            purpose,
            id: None,
        }
    }

    /// The end of the wait; `Pending` before.
    fn end(&self) -> Poll<Result<(), DiskError>> {
        if self.wal.room(self.purpose) != Err(NoRoom::Wait) {
            return Poll::Ready(Ok(()));
        }
        match self.wal.no_segment(self.purpose, self.attempts) {
            Some(error) => Poll::Ready(Err(error)),
            None => Poll::Pending,
        }
    }
}

impl Future for WaitRoom {
    type Output = Result<(), DiskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let end = self.end();
        if end.is_ready() {
            return end;
        }
        let id = self.wal.room_waiters().add(self.id, context.waker());
        self.id = Some(id);
        self.wal.request_all();
        // Room may have come before this waiter was in the list.
        self.end()
    }
}

impl Drop for WaitRoom {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.wal.room_waiters().remove(id);
        }
    }
}

impl fmt::Debug for WaitRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitRoom")
    }
}
