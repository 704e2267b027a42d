//! What a worker asks of the kernel, and the two bodies that ask.
//!
//! Sockets are driven by polling: each `poll_*` either gives a result or keeps the waker and wakes
//! it when asking again is worth while; the last waker of a kind counts. A socket belongs to one
//! [`Stream`](crate::Stream) or listener, which closes it when dropped.
//!
//! (D1) Buffers that the kernel may write to or read from belong to the driver until the kernel is
//!      done with them, whatever becomes of the future that waits.
//! (D2) A poll that is not repeated loses no bytes and no connection.

mod epoll;
mod files;
mod uring;

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use env::{Disk, Instant};
use smallvec::SmallVec;

pub(crate) use epoll::EpollDriver;
pub(crate) use uring::{RingBytes, UringDriver, probe as probe_uring};

use crate::received::ReceivedBytes;
use crate::shared::Shared;

/// Spent buffers that are kept: what one turn's replies take.
const SPENT_COUNT_MAX: usize = 256;

/// Names a socket of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketKey(pub(crate) usize);

/// Buffers to send one after the other.
pub(crate) type SendBuffers = SmallVec<[Vec<u8>; 1]>;

/// Emptied buffers of sends that nobody waited for; the one spent last is used next.
#[derive(Debug, Default)]
struct SpentBuffers(RefCell<Vec<Vec<u8>>>);

impl SpentBuffers {
    fn keep(&self, buffers: SendBuffers) {
        let mut spent = self.0.borrow_mut();
        for mut buffer in buffers {
            if spent.len() < SPENT_COUNT_MAX {
                buffer.clear();
                spent.push(buffer);
            }
        }
    }

    fn take(&self) -> Option<Vec<u8>> {
        self.0.borrow_mut().pop()
    }
}

/// See the module's head. All calls but `wait` return at once.
pub(crate) trait Driver {
    /// Takes a non-blocking socket in.
    fn register(&self, descriptor: Rc<OwnedFd>) -> io::Result<SocketKey>;

    /// Lets a socket go. The descriptor closes once nothing of it is under way.
    fn close(&self, key: SocketKey);

    /// Bytes from the peer; empty at their end.
    fn poll_receive(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<ReceivedBytes>>;

    /// Starts to send all of `buffers`, now. Nothing else may be being sent. Polled or detached at
    /// once.
    fn start_send(&self, key: SocketKey, buffers: SendBuffers, now: Instant);

    /// The buffers given to `start_send`, once all is sent.
    fn poll_send(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<SendBuffers>>;

    /// Lets the send that was just started end by itself: nobody polls it, and its buffers become
    /// spent. The kernel gets it with the next [`Driver::wait`].
    fn detach_send(&self, key: SocketKey);

    /// When the send under way began, or when the peer last made room for more of it, whichever
    /// was later; `None`: there is no send.
    fn stalled_since(&self, key: SocketKey) -> Option<Instant>;

    /// Whether a detached send is under way.
    fn is_detached(&self, key: SocketKey) -> bool;

    /// Ready once none is; an error if one has failed.
    fn poll_detached(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<()>>;

    /// An empty buffer out of those that were spent.
    fn take_spent(&self) -> Option<Vec<u8>>;

    /// A connection to a listening socket.
    fn poll_accept(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<OwnedFd>>;

    /// Whether a socket that connects has come to an end of that, good or bad.
    fn poll_connected(&self, key: SocketKey, waker: &Waker) -> Poll<()>;

    /// Whether the peer has ended, closed or reset.
    fn poll_hung_up(&self, key: SocketKey, waker: &Waker) -> Poll<()>;

    /// Submits what was started, waits until something completes or `timeout` passes or the
    /// worker is poked, and wakes who waited for what completed.
    fn wait(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// The worker's handle on files.
    fn disk(self: Rc<Self>, shared: &Arc<Shared>) -> Rc<dyn Disk>;
}

/// Which body a runtime uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverKind {
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
        })
    }
}
