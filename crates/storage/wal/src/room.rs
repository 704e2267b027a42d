//! Room in the log: who may begin a mini-transaction, and how others wait.
//!
//! Three things may be short: memory (a flush helps), prepared blocks (a new segment helps, unless
//! the disk is full), and the distance to the checkpoint (cleaning pages and a checkpoint help).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sync::Mutex;

use crate::{Wal, WalError};

/// Why there is no room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRoom {
    /// Wait for [`Wal::wait_room`] and ask again.
    Wait,
    /// No segment can be made: the statement fails, later ones may find room.
    DiskFull,
    /// The log takes nothing any more.
    Closed(WalError),
}

/// Wakers of those who wait for room, in no order.
#[derive(Debug, Default)]
pub(crate) struct RoomWaiters {
    wakers: Mutex<Vec<Waker>>,
}

impl RoomWaiters {
    pub(crate) fn wake_all(&self) {
        let wakers = std::mem::take(&mut *self.wakers.lock());
        for waker in wakers {
            waker.wake();
        }
    }

    fn add(&self, waker: &Waker) {
        let mut wakers = self.wakers.lock();
        // A waiter that is polled again must not fill the list.
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}

/// Waits until it is worth asking for a permit again; see [`Wal::wait_room`].
#[must_use = "nothing is known before it is awaited"]
pub struct WaitRoom {
    wal: Arc<Wal>,
}

impl WaitRoom {
    pub(crate) fn new(wal: Arc<Wal>) -> Self {
        Self { wal }
    }
}

impl Future for WaitRoom {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.wal.room() != Err(NoRoom::Wait) {
            return Poll::Ready(());
        }
        self.wal.room_waiters().add(context.waker());
        self.wal.request_all();
        // Room may have come before this waiter was in the list.
        if self.wal.room() == Err(NoRoom::Wait) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

impl fmt::Debug for WaitRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitRoom")
    }
}
