//! Room in the log: when a mini-transaction may begin, and how others wait.
//!
//! Three things may be short. Memory: a flush helps. Prepared blocks: a new segment helps, or an
//! old one that a checkpoint frees. Distance to the checkpoint: cleaning pages and a checkpoint
//! help. If no segment can be made and none will be freed, new work fails. Undoing or
//! ending work has reserved blocks, because it makes room.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use env::DiskError;
use sync::Mutex;

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
    /// No segment can be made: the statement fails, but later ones may find room.
    NoSegment(DiskError),
    /// The log is closed.
    Closed(WalError),
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
    /// Its id, if it has been in the list.
    id: Option<u64>,
}

impl WaitRoom {
    pub(crate) fn new(wal: Arc<Wal>, purpose: Purpose) -> Self {
        Self {
            wal,
            purpose,
            id: None,
        }
    }

    fn is_over(&self) -> bool {
        self.wal.room(self.purpose) != Err(NoRoom::Wait)
    }
}

impl Future for WaitRoom {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.is_over() {
            return Poll::Ready(());
        }
        let id = self.wal.room_waiters().add(self.id, context.waker());
        self.id = Some(id);
        self.wal.request_all();
        // Room may have come before this waiter was in the list.
        if self.is_over() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
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
