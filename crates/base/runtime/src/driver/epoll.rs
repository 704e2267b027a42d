//! The body over epoll: edge-triggered readiness, and calls that are made at once.
//!
//! Sends that no task waits for are different: those of a turn are made together at its end. Each
//! may wake the peer. If the peer runs on this core or the next one, one wake-up then finds many
//! replies, and the peer sleeps less often.
//!
//! Each socket is registered once, for all events. What epoll has reported is kept as flags. A call
//! that would block, or that moved fewer bytes than it could, clears its flag. The next edge sets
//! it again. A socket starts with its flags set: the first call finds out.
//!
//! An event may name a slot whose socket has just been replaced by another. Such a wrong flag costs
//! one call that would block.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use env::linux::SystemClock;
use env::{Clock as _, Disk, Instant};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags};
use rustix::time::Timespec;
use smallvec::{SmallVec, smallvec};
use stdx::Slab;

use super::files::{HelperTransfers, WorkerDisk};
use super::{Driver, SendBuffers, SocketKey, SpentBuffers};
use crate::hot_memory::{HotMemory, HotPlace};
use crate::received::{BufferPool, ReceivedBytes};
use crate::shared::Shared;

/// Events taken in one call.
const EVENTS_MAX: usize = 256;

/// Buffers passed to one sendmsg.
const SLICES_MAX: usize = 64;

/// The event data of the eventfd by which a worker is poked.
const POKE: u64 = u64::MAX;

/// See the module's head.
pub(crate) struct EpollDriver {
    epoll: OwnedFd,
    shared: Arc<Shared>,
    worker_index: usize,
    sockets: RefCell<Slab<Socket>>,
    buffers: Rc<BufferPool>,
    events: RefCell<Vec<Event>>,
    /// Sockets with a detached send that was not tried yet. A socket may be closed and its slot
    /// reused; trying the send of another socket does no harm.
    posted: RefCell<Vec<usize>>,
    spent: SpentBuffers,
}

struct Socket {
    descriptor: Rc<OwnedFd>,
    is_readable: bool,
    is_writable: bool,
    is_hung_up: bool,
    /// Waits for `is_readable`.
    receiver: Option<Waker>,
    /// Waits for `is_writable`.
    sender: Option<Waker>,
    /// Waits for `is_hung_up`.
    watcher: Option<Waker>,
    sending: Option<Sending>,
    /// Why a detached send failed.
    detached_error: Option<io::Error>,
}

struct Sending {
    buffers: SendBuffers,
    /// Bytes of all buffers that are sent.
    sent: usize,
    /// When `sent` last grew; at first, when the send began.
    stalled_since: Instant,
    /// No task waits for it; it is removed when it ends.
    is_detached: bool,
    /// Set when the send has ended.
    result: Option<io::Result<()>>,
}

impl EpollDriver {
    pub(crate) fn new(shared: Arc<Shared>, worker_index: usize) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let poke = &shared.mailboxes[worker_index].poke;
        epoll::add(&epoll, poke, EventData::new_u64(POKE), EventFlags::IN)?;
        Ok(Self {
            epoll,
            shared,
            worker_index,
            sockets: RefCell::default(),
            buffers: Rc::default(),
            events: RefCell::new(Vec::with_capacity(EVENTS_MAX)),
            posted: RefCell::default(),
            spent: SpentBuffers::default(),
        })
    }

    fn with_socket<T>(&self, key: SocketKey, act: impl FnOnce(&mut Socket) -> T) -> T {
        let mut sockets = self.sockets.borrow_mut();
        act(sockets
            .get_mut(key.0)
            .expect("a socket is used until it is closed"))
    }

    /// Sends what was posted, as much as the kernel takes.
    fn send_posted(&self) {
        let mut sockets = self.sockets.borrow_mut();
        for index in self.posted.borrow_mut().drain(..) {
            if let Some(socket) = sockets.get_mut(index) {
                self.advance_detached(socket);
            }
        }
    }

    /// Goes on with a detached send, if there is one.
    fn advance_detached(&self, socket: &mut Socket) {
        if !socket.is_detached() {
            return;
        }
        socket.advance_send();
        let ended = socket.sending.take_if(|sending| sending.result.is_some());
        if let Some(ended) = ended {
            socket.detached_error = ended.result.and_then(Result::err);
            self.spent.keep(ended.buffers);
        }
    }

    fn apply(&self, event: &Event) {
        let data = event.data.u64();
        if data == POKE {
            let mut count = [0; 8];
            // WouldBlock: an earlier read took this poke's count as well.
            let _ = rustix::io::read(&self.shared.mailboxes[self.worker_index].poke, &mut count);
            return;
        }
        let mut sockets = self.sockets.borrow_mut();
        let Some(socket) = sockets.get_mut(stdx::to_usize(data)) else {
            return;
        };
        let flags = event.flags;
        let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let ended = failed || flags.contains(EventFlags::RDHUP);
        if ended || flags.contains(EventFlags::IN) {
            socket.is_readable = true;
            socket.receiver.take().into_iter().for_each(Waker::wake);
        }
        if failed || flags.contains(EventFlags::OUT) {
            socket.is_writable = true;
            self.advance_detached(socket);
            socket.sender.take().into_iter().for_each(Waker::wake);
        }
        if ended {
            socket.is_hung_up = true;
            socket.watcher.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl Socket {
    /// Keeps the waker of the task that waits for bytes.
    fn await_bytes<T>(&mut self, waker: &Waker, hot: Option<&HotMemory>) -> Poll<T> {
        self.receiver = Some(waker.clone());
        if let Some(hot) = hot {
            hot.note(HotPlace::Socket, self);
        }
        Poll::Pending
    }
}

impl Driver for EpollDriver {
    fn register(&self, descriptor: Rc<OwnedFd>) -> io::Result<SocketKey> {
        let mut sockets = self.sockets.borrow_mut();
        let index = sockets.insert(Socket::new(descriptor.clone()));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64(stdx::to_u64(index));
        if let Err(error) = epoll::add(&self.epoll, &*descriptor, data, flags) {
            sockets.remove(index);
            return Err(error.into());
        }
        Ok(SocketKey(index))
    }

    fn close(&self, key: SocketKey) {
        let socket = self.sockets.borrow_mut().remove(key.0);
        let socket = socket.expect("a socket is closed once");
        // The descriptor may outlive the socket in another process; its events may not.
        let deleted = epoll::delete(&self.epoll, &*socket.descriptor);
        assert!(
            deleted.is_ok(),
            "a registered socket can be taken out: {deleted:?}"
        );
    }

    fn poll_release(&self, _key: SocketKey, _waker: &Waker) -> Poll<io::Result<Vec<u8>>> {
        // It makes its calls at once: nothing is under way, and nothing was fetched ahead.
        Poll::Ready(Ok(Vec::new()))
    }

    fn poll_receive(
        &self,
        key: SocketKey,
        waker: &Waker,
        hot: Option<&HotMemory>,
    ) -> Poll<io::Result<ReceivedBytes>> {
        self.with_socket(key, |socket| {
            if !socket.is_readable {
                return socket.await_bytes(waker, hot);
            }
            let mut buffer = self.buffers.take();
            match retry(|| rustix::net::recv(&socket.descriptor, &mut *buffer, RecvFlags::empty()))
            {
                Ok((_, 0)) => {
                    self.buffers.give_back(buffer);
                    Poll::Ready(Ok(ReceivedBytes::empty()))
                }
                Ok((_, count)) => {
                    // Fewer than asked: the queue was empty, and the next bytes make an edge. The
                    // end may be there already without another edge.
                    socket.is_readable = count == buffer.len() || socket.is_hung_up;
                    Poll::Ready(Ok(ReceivedBytes::pooled(
                        self.buffers.clone(),
                        buffer,
                        count,
                    )))
                }
                Err(Errno::AGAIN) => {
                    self.buffers.give_back(buffer);
                    socket.is_readable = false;
                    socket.await_bytes(waker, hot)
                }
                Err(error) => {
                    self.buffers.give_back(buffer);
                    Poll::Ready(Err(error.into()))
                }
            }
        })
    }

    fn start_send(&self, key: SocketKey, buffers: SendBuffers, now: Instant) {
        self.with_socket(key, |socket| {
            assert!(socket.sending.is_none(), "one send at a time");
            socket.sending = Some(Sending::new(buffers, now));
        });
    }

    fn try_post(&self, key: SocketKey, bytes: Vec<u8>, now: Instant) -> Result<(), Vec<u8>> {
        self.with_socket(key, |socket| {
            if socket.sending.is_some() || socket.detached_error.is_some() {
                return Err(bytes);
            }
            let sending = Sending::new(smallvec![bytes], now);
            let is_detached = true;
            socket.sending = Some(Sending {
                is_detached,
                ..sending
            });
            Ok(())
        })?;
        self.posted.borrow_mut().push(key.0);
        Ok(())
    }

    fn poll_send(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<SendBuffers>> {
        self.with_socket(key, |socket| {
            socket.advance_send();
            let sending = socket.sending.take().expect("a send was started");
            match sending.result {
                Some(result) => Poll::Ready(result.map(|()| sending.buffers)),
                None => {
                    socket.sending = Some(sending);
                    socket.sender = Some(waker.clone());
                    Poll::Pending
                }
            }
        })
    }

    fn detach_send(&self, key: SocketKey) {
        self.with_socket(key, |socket| {
            let sending = socket.sending.as_mut().expect("a send was started");
            assert!(sending.sent == 0, "it is detached as it starts");
            sending.is_detached = true;
        });
        self.posted.borrow_mut().push(key.0);
    }

    fn stalled_since(&self, key: SocketKey) -> Option<Instant> {
        self.with_socket(key, |socket| {
            let sending = socket.sending.as_ref()?;
            Some(sending.stalled_since)
        })
    }

    fn is_detached(&self, key: SocketKey) -> bool {
        self.with_socket(key, |socket| socket.is_detached())
    }

    fn poll_detached(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<()>> {
        self.with_socket(key, |socket| {
            self.advance_detached(socket);
            if !socket.is_detached() {
                return Poll::Ready(socket.detached_error.take().map_or(Ok(()), Err));
            }
            socket.sender = Some(waker.clone());
            Poll::Pending
        })
    }

    fn take_spent(&self) -> Option<Vec<u8>> {
        self.spent.take()
    }

    fn poll_accept(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<OwnedFd>> {
        self.with_socket(key, |socket| {
            if !socket.is_readable {
                socket.receiver = Some(waker.clone());
                return Poll::Pending;
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match retry(|| rustix::net::accept_with(&socket.descriptor, flags)) {
                Err(Errno::AGAIN) => {
                    socket.is_readable = false;
                    socket.receiver = Some(waker.clone());
                    Poll::Pending
                }
                other => Poll::Ready(other.map_err(io::Error::from)),
            }
        })
    }

    fn poll_connected(&self, key: SocketKey, waker: &Waker) -> Poll<()> {
        self.with_socket(key, |socket| {
            // The flag is set before anything is known; the peer's name shows whether it was right.
            let is_connected = rustix::net::getpeername(&socket.descriptor).is_ok();
            if is_connected || socket.is_hung_up {
                return Poll::Ready(());
            }
            socket.sender = Some(waker.clone());
            Poll::Pending
        })
    }

    fn poll_hung_up(&self, key: SocketKey, waker: &Waker) -> Poll<()> {
        self.with_socket(key, |socket| {
            if socket.is_hung_up {
                return Poll::Ready(());
            }
            socket.watcher = Some(waker.clone());
            Poll::Pending
        })
    }

    fn wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.send_posted();
        let mut events = self.events.borrow_mut();
        events.clear();
        let timeout = timeout.map(timespec);
        let spare = rustix::buffer::spare_capacity(&mut *events);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.iter() {
            self.apply(event);
        }
        Ok(())
    }

    fn disk(self: Rc<Self>, shared: &Arc<Shared>) -> Rc<dyn Disk> {
        Rc::new(WorkerDisk::new(
            HelperTransfers::new(shared.clone()),
            shared,
        ))
    }
}

impl Socket {
    fn new(descriptor: Rc<OwnedFd>) -> Self {
        Self {
            descriptor,
            is_readable: true,
            is_writable: true,
            is_hung_up: false,
            receiver: None,
            sender: None,
            watcher: None,
            sending: None,
            detached_error: None,
        }
    }

    fn is_detached(&self) -> bool {
        let sending = self.sending.as_ref();
        sending.is_some_and(|sending| sending.is_detached)
    }

    /// Sends as much as the kernel takes.
    fn advance_send(&mut self) {
        let Some(sending) = &mut self.sending else {
            return;
        };
        while sending.result.is_none() && self.is_writable {
            let slices = sending.rest();
            if slices.is_empty() {
                drop(slices);
                sending.result = Some(Ok(()));
                return;
            }
            let asked: usize = slices.iter().map(|slice| slice.len()).sum();
            let flags = SendFlags::NOSIGNAL;
            let sent = retry(|| match &slices[..] {
                [only] => rustix::net::send(&self.descriptor, only, flags),
                many => {
                    let mut control = SendAncillaryBuffer::default();
                    rustix::net::sendmsg(&self.descriptor, many, &mut control, flags)
                }
            });
            drop(slices);
            match sent {
                Ok(count) => {
                    sending.sent += count;
                    self.is_writable = count == asked;
                    if !self.is_writable {
                        sending.stalled_since = SystemClock.now();
                    }
                }
                Err(Errno::AGAIN) => self.is_writable = false,
                Err(error) => sending.result = Some(Err(error.into())),
            }
        }
    }
}

impl Sending {
    fn new(buffers: SendBuffers, now: Instant) -> Self {
        Self {
            buffers,
            sent: 0,
            stalled_since: now,
            is_detached: false,
            result: None,
        }
    }

    /// The rest to send.
    fn rest(&self) -> SmallVec<[IoSlice<'_>; 4]> {
        let mut skip = self.sent;
        let mut slices = SmallVec::new();
        for buffer in &self.buffers {
            let skipped = skip.min(buffer.len());
            skip -= skipped;
            if skipped < buffer.len() && slices.len() < SLICES_MAX {
                slices.push(IoSlice::new(&buffer[skipped..]));
            }
        }
        slices
    }
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// A timeout for the kernel. A duration that does not fit becomes the far future.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
