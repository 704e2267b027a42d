//! What a worker asks of the kernel, and the two bodies that ask.
//!
//! Sockets are driven by polling. Each `poll_*` either returns a result or keeps the waker, and
//! wakes it when another call is worth while. The last waker of a kind counts. A socket belongs to
//! one [`Stream`](crate::Stream) or listener, which closes it when dropped.
//!
//! (D1) Buffers that the kernel may write to or read from belong to the driver until the kernel is
//!      done with them. That holds even if the waiting future is dropped.
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
pub(crate) use uring::{UringDriver, probe as probe_uring};

use crate::hot_memory::HotMemory;
use crate::received::ReceivedBytes;
use crate::shared::Shared;

/// Spent buffers that are kept: as many as one turn's replies take.
const SPENT_COUNT_MAX: usize = 256;

/// Names a socket of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketKey(pub(crate) usize);

/// Buffers to send one after the other.
pub(crate) type SendBuffers = SmallVec<[Vec<u8>; 1]>;

/// Emptied buffers of sends that no task waited for; the one spent last is used next.
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
    /// Registers a non-blocking socket.
    fn register(&self, descriptor: Rc<OwnedFd>) -> io::Result<SocketKey>;

    /// Removes a socket. The descriptor closes once no operation of it is under way.
    fn close(&self, key: SocketKey);

    /// Ready once the kernel does nothing for a socket: with the bytes that came and were not asked
    /// for, or the error that ended it. Nothing is being sent. All that may follow is `close`.
    fn poll_release(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<Vec<u8>>>;

    /// Bytes from the peer; empty if the peer has ended. While there are none, the task needs the
    /// socket at its next poll, so its memory is noted in `hot`.
    fn poll_receive(
        &self,
        key: SocketKey,
        waker: &Waker,
        hot: Option<&HotMemory>,
    ) -> Poll<io::Result<ReceivedBytes>>;

    /// Starts to send all of `buffers`, now. No other send of the socket may be under way. The
    /// caller polls or detaches it at once.
    fn start_send(&self, key: SocketKey, buffers: SendBuffers, now: Instant);

    /// The buffers given to `start_send`, once all is sent.
    fn poll_send(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<SendBuffers>>;

    /// Lets the send that was just started end by itself: no task polls it, and its buffers become
    /// spent. The kernel gets it with the next [`Driver::wait`].
    fn detach_send(&self, key: SocketKey);

    /// Starts and detaches a send of `bytes`. Returns them if an earlier send is under way or has
    /// failed.
    fn try_post(&self, key: SocketKey, bytes: Vec<u8>, now: Instant) -> Result<(), Vec<u8>>;

    /// When the send under way began, or when the peer last made room for more of it, whichever was
    /// later. `None` if there is no send.
    fn stalled_since(&self, key: SocketKey) -> Option<Instant>;

    /// Whether a detached send is under way.
    fn is_detached(&self, key: SocketKey) -> bool;

    /// Ready once no detached send is under way; an error if one has failed.
    fn poll_detached(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<()>>;

    /// Returns an empty buffer out of those that were spent.
    fn take_spent(&self) -> Option<Vec<u8>>;

    /// A connection to a listening socket.
    fn poll_accept(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<OwnedFd>>;

    /// Ready once a socket has connected or has failed to.
    fn poll_connected(&self, key: SocketKey, waker: &Waker) -> Poll<()>;

    /// Whether the peer has ended, closed or reset.
    fn poll_hung_up(&self, key: SocketKey, waker: &Waker) -> Poll<()>;

    /// Submits what was started and waits until something completes, `timeout` passes or the worker
    /// is poked. Then wakes the tasks whose operations completed.
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
