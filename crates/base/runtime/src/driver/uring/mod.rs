//! The body over io_uring: one call a turn submits everything and waits.
//!
//! Each worker has one ring. It alone submits to it (SINGLE_ISSUER), and completions are produced
//! in its waiting call (DEFER_TASKRUN). Each connection has one multishot receive, which takes
//! buffers from the worker's buffer ring. Each listener has one multishot accept.
//!
//! (U1) Memory that an operation refers to is owned by its slot until its last completion. Send
//!      buffers are in the socket, file buffers in the file operation. If the waiting future is
//!      dropped, the slot is abandoned, and that completion frees it.
//! (U2) A descriptor is closed after the last completion of its operations, so that no queued
//!      operation meets another file under the same number.
//! (U3) A multishot operation that ends by itself is armed again at the next poll. One that found
//!      no buffer leaves its bytes in the socket, and a call fetches them.
//! (U4) Completions that do not fit into their queue are kept by the kernel (NODROP) and delivered
//!      by later calls. A refused submission (EBUSY meanwhile, EAGAIN or ENOMEM if memory is short)
//!      is repeated next turn, or at once if the queue is full.

mod files;
mod probe;
mod socket;
mod token;

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use env::{Disk, Instant};
use io_uring::{EnterFlags, IoUring, Submitter, cqueue, opcode, squeue, types};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags};
use rustix::process::{Resource, getrlimit};
use smallvec::{SmallVec, smallvec};
use stdx::Slab;

pub(crate) use probe::probe;

use self::files::{FileOperation, RingTransfers};
use self::socket::Socket;
use self::token::{Kind, token, untoken};
use super::files::WorkerDisk;
use super::{Driver, SendBuffers, SocketKey, SpentBuffers};
use crate::hot_memory::{self, HotMemory, HotPlace};
use crate::received::ring::{BUFFER_GROUP, BufferRing};
use crate::received::{BufferPool, ReceivedBytes};
use crate::shared::Shared;

/// How many completions ahead a socket is prefetched, and then the header of its task. Handling a
/// completion takes a tenth of a microsecond.
const SOCKET_AHEAD_COUNT: usize = 5;
const HEADER_AHEAD_COUNT: usize = 2;

/// Further calls in which a turn learns of sockets: some 240 sockets in all.
const HEARING_CALLS_MAX: usize = 11;

/// Most sockets of a worker that are registered with its ring ([`UringDriver::fix`]). The ring has
/// 8 bytes for each, used or not.
const FIXED_COUNT_MAX: u32 = if cfg!(test) { 4 } else { 16 << 10 };

/// In the place of a descriptor: the ring forgets the file.
const NO_DESCRIPTOR: i32 = -1;

/// See the module's head.
pub(crate) struct UringDriver {
    ring: RefCell<IoUring>,
    /// How many sockets the ring can register. Constant.
    fixed_count: u32,
    shared: Arc<Shared>,
    worker_index: usize,
    sockets: RefCell<Slab<Socket>>,
    files: RefCell<Slab<FileOperation>>,
    /// Receive buffers for the kernel to choose from.
    buffers: Rc<BufferRing>,
    /// Receive buffers for the time when that ring is empty.
    pool: Rc<BufferPool>,
    spent: SpentBuffers,
    /// Completions taken from the ring and not yet looked at.
    completions: RefCell<Vec<Completion>>,
    /// The poll of the eventfd is under way.
    is_poke_armed: Cell<bool>,
}

/// A completion, copied out of the ring.
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

impl UringDriver {
    pub(crate) fn new(shared: Arc<Shared>, worker_index: usize) -> io::Result<Self> {
        let ring = probe::builder().build(probe::SUBMISSION_COUNT)?;
        let buffers = BufferRing::new(&ring.submitter())?;
        let fixed_count = register_table(&ring.submitter());
        Ok(Self {
            ring: RefCell::new(ring),
            fixed_count,
            shared,
            worker_index,
            sockets: RefCell::default(),
            files: RefCell::default(),
            buffers,
            pool: Rc::default(),
            spent: SpentBuffers::default(),
            completions: RefCell::default(),
            is_poke_armed: Cell::new(false),
        })
    }

    /// Queues an operation for the end of the turn; a full queue is submitted at once.
    fn push(&self, entry: &squeue::Entry) {
        let mut ring = self.ring.borrow_mut();
        loop {
            // SAFETY: what the entry refers to is owned by its slot until it completes (U1).
            let pushed = unsafe { ring.submission().push(entry) };
            if pushed.is_ok() {
                return;
            }
            match ring.submit() {
                Ok(_) => {}
                Err(error) if is_passing(&error) => self.relieve(&mut ring),
                Err(error) => panic!("the kernel takes a full submission queue: {error}"),
            }
        }
    }

    /// Makes it likelier that the kernel takes what it has just refused. The kernel does what it
    /// has put off, which a submitting call does only after all was taken, and makes room among the
    /// completions. Both finish operations that take the kernel's memory.
    fn relieve(&self, ring: &mut IoUring) {
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: nothing is submitted, and no argument is passed that the kernel would read.
        let heard = unsafe { ring.submitter().enter::<()>(0, 0, flags, None) };
        if heard.is_err() {
            // This call fails for lack of memory, too; other processes may free some.
            rustix::thread::sched_yield();
        }
        self.reap(ring);
    }

    /// Moves completions out of the ring.
    fn reap(&self, ring: &mut IoUring) {
        let mut completions = self.completions.borrow_mut();
        completions.extend(ring.completion().map(|entry: cqueue::Entry| Completion {
            user_data: entry.user_data(),
            result: entry.result(),
            flags: entry.flags(),
        }));
    }

    fn with_socket<T>(&self, key: SocketKey, act: impl FnOnce(&mut Socket) -> T) -> T {
        let mut sockets = self.sockets.borrow_mut();
        act(sockets
            .get_mut(key.0)
            .expect("a socket is used until it is closed"))
    }

    /// Registers a socket with the ring under its slot's number. The kernel then finds its file
    /// without the table of descriptors, and without a count that all threads share. Returns false
    /// if the ring has no room; the socket is then used by its descriptor.
    fn fix(&self, index: usize, descriptor: i32) -> bool {
        let offset = u32::try_from(index).unwrap_or(u32::MAX);
        offset < self.fixed_count && self.update_fixed(offset, descriptor).is_ok()
    }

    fn update_fixed(&self, offset: u32, descriptor: i32) -> io::Result<usize> {
        let ring = self.ring.borrow();
        ring.submitter()
            .register_files_update(offset, &[descriptor])
    }

    /// Removes a socket that the kernel is done with.
    fn remove(&self, mut sockets: RefMut<'_, Slab<Socket>>, index: usize) {
        let socket = sockets.remove(index).expect("a socket is removed once");
        drop(sockets);
        if socket.is_fixed {
            // Else the ring would keep the connection open.
            let removed = self.update_fixed(stdx::to_u32(index), NO_DESCRIPTOR);
            assert!(removed.is_ok(), "a registered file can be taken out");
        }
    }

    fn arm_poke(&self) {
        if self.is_poke_armed.replace(true) {
            return;
        }
        // Multishot: each poke makes a completion, and the counter need not be read.
        let fd = types::Fd(self.shared.mailboxes[self.worker_index].poke.as_raw_fd());
        let poll = opcode::PollAdd::new(fd, u32::from(PollFlags::IN.bits())).multi(true);
        self.push(&poll.build().user_data(token(Kind::Poke, 0)));
    }

    fn poll_once(
        socket: &mut Socket,
        key: SocketKey,
        kind: Kind,
        events: PollFlags,
    ) -> squeue::Entry {
        socket.arm(kind);
        let poll = opcode::PollAdd::new(socket.fd(), u32::from(events.bits()));
        poll.build().user_data(token(kind, key.0))
    }

    fn complete(&self, completion: &Completion) {
        let (kind, index) = untoken(completion.user_data);
        match kind {
            Kind::Poke => {
                if !cqueue::more(completion.flags) {
                    self.is_poke_armed.set(false);
                }
            }
            Kind::Cancel => {}
            Kind::File => self.complete_file(index, completion.result),
            Kind::Receive | Kind::Send | Kind::Accept | Kind::Connect | Kind::HangUp => {
                self.complete_socket(kind, index, completion);
            }
        }
    }

    fn complete_socket(&self, kind: Kind, index: usize, completion: &Completion) {
        let mut sockets = self.sockets.borrow_mut();
        let socket = sockets
            .get_mut(index)
            .expect("a slot lives until its last completion");
        let (result, flags) = (completion.result, completion.flags);
        let next = socket.complete(index, kind, result, flags, &self.buffers);
        if let Some(next) = next {
            self.push(&next);
        }
        if let Some(buffers) = socket.take_spent() {
            self.spent.keep(buffers);
        }
        if socket.is_closing && socket.is_idle() {
            self.remove(sockets, index);
        }
    }

    /// Makes the call that submits and waits.
    fn enter(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut ring = self.ring.borrow_mut();
        let has_some = !self.completions.borrow().is_empty();
        let wants_wait = timeout != Some(Duration::ZERO) && !has_some;
        let is_idle = {
            let queue = ring.submission();
            queue.is_empty() && !queue.taskrun() && !queue.cq_overflow()
        };
        if wants_wait || !is_idle {
            let timeout = timeout.map(types::Timespec::from);
            let mut arguments = types::SubmitArgs::new();
            if let Some(timeout) = &timeout {
                arguments = arguments.timespec(timeout);
            }
            let entered = ring
                .submitter()
                .submit_with_args(usize::from(wants_wait), &arguments);
            match entered {
                Ok(_) => {}
                Err(error) if is_refusal(&error) => self.relieve(&mut ring),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.reap(&mut ring);
        // The kernel looks at no more than some twenty sockets a call.
        for _ in 0..HEARING_CALLS_MAX {
            if !ring.submission().taskrun() {
                break;
            }
            match ring
                .submitter()
                .submit_with_args(0, &types::SubmitArgs::new())
            {
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            self.reap(&mut ring);
        }
        Ok(())
    }
}

/// Makes the ring's table of registered files, and returns its size; 0 if the kernel makes none.
fn register_table(submitter: &Submitter<'_>) -> u32 {
    // The kernel takes no more files than the process may open.
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or(u32::MAX, |it| u32::try_from(it).unwrap_or(u32::MAX));
    let count = FIXED_COUNT_MAX.min(limit);
    submitter.register_files_sparse(count).map_or(0, |()| count)
}

/// Whether a failed call only means "look at the completions and go on" (U4).
fn is_passing(error: &io::Error) -> bool {
    is_any(error, &[Errno::TIME, Errno::INTR]) || is_refusal(error)
}

/// Whether the kernel did not take what was submitted because it lacks a resource now. The queue is
/// unchanged.
fn is_refusal(error: &io::Error) -> bool {
    is_any(error, &[Errno::BUSY, Errno::AGAIN, Errno::NOMEM])
}

fn is_any(error: &io::Error, errnos: &[Errno]) -> bool {
    let number = error.raw_os_error();
    errnos
        .iter()
        .any(|errno| number == Some(errno.raw_os_error()))
}

impl Driver for UringDriver {
    fn register(&self, descriptor: Rc<OwnedFd>) -> io::Result<SocketKey> {
        // For a non-blocking socket the ring would return EAGAIN instead of waiting.
        rustix::io::ioctl_fionbio(&*descriptor, false)?;
        let raw = descriptor.as_raw_fd();
        let index = self.sockets.borrow_mut().insert(Socket::new(descriptor));
        let key = SocketKey(index);
        let is_fixed = self.fix(index, raw);
        self.with_socket(key, |socket| socket.is_fixed = is_fixed);
        Ok(key)
    }

    fn close(&self, key: SocketKey) {
        let mut sockets = self.sockets.borrow_mut();
        let socket = sockets.get_mut(key.0).expect("a socket is closed once");
        if socket.is_idle() {
            return self.remove(sockets, key.0);
        }
        socket.is_closing = true;
        // These return to their ring now, not with the last completion.
        let received = std::mem::take(&mut socket.received);
        let accepted = std::mem::take(&mut socket.accepted);
        let armed = socket.armed_kinds();
        drop(sockets);
        drop((received, accepted));
        self.cancel(key, armed);
    }

    fn poll_release(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<Vec<u8>>> {
        let armed = self.with_socket(key, |socket| {
            if socket.is_idle() {
                return Err(socket.take_received());
            }
            // Whatever ends last wakes the caller.
            socket.receiver = Some(waker.clone());
            socket.sender = Some(waker.clone());
            socket.watcher = Some(waker.clone());
            Ok(socket.armed_kinds())
        });
        match armed {
            Ok(armed) => {
                self.cancel(key, armed);
                Poll::Pending
            }
            Err(received) => Poll::Ready(received.map_err(io::Error::from)),
        }
    }

    fn poll_receive(
        &self,
        key: SocketKey,
        waker: &Waker,
        hot: Option<&HotMemory>,
    ) -> Poll<io::Result<ReceivedBytes>> {
        let mut entry = None;
        let polled = self.with_socket(key, |socket| {
            if let Some(bytes) = socket.received.pop_front() {
                return Poll::Ready(Ok(bytes));
            }
            if let Some(end) = socket.end {
                let end = end.map(|()| ReceivedBytes::empty());
                return Poll::Ready(end.map_err(io::Error::from));
            }
            if !socket.is_armed(Kind::Receive) {
                if std::mem::take(&mut socket.must_fetch)
                    && let Some(fetched) = self.fetch(socket)
                {
                    return Poll::Ready(fetched);
                }
                socket.arm(Kind::Receive);
                let receive = opcode::RecvMulti::new(socket.fd(), BUFFER_GROUP).build();
                entry = Some(receive.user_data(token(Kind::Receive, key.0)));
            }
            socket.receiver = Some(waker.clone());
            if let Some(hot) = hot {
                hot.note(HotPlace::Socket, socket);
            }
            Poll::Pending
        });
        if let Some(entry) = entry {
            self.push(&entry);
        }
        polled
    }

    fn start_send(&self, key: SocketKey, buffers: SendBuffers, now: Instant) {
        let entry = self.with_socket(key, |socket| socket.start_send(key.0, buffers, now));
        self.push(&entry);
    }

    fn poll_send(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<SendBuffers>> {
        self.with_socket(key, |socket| {
            let sending = socket.sending.as_ref().expect("a send was started");
            let Some(result) = sending.result else {
                socket.sender = Some(waker.clone());
                return Poll::Pending;
            };
            let sending = socket.sending.take().expect("just seen");
            Poll::Ready(result.map(|()| sending.buffers).map_err(io::Error::from))
        })
    }

    fn detach_send(&self, key: SocketKey) {
        self.with_socket(key, Socket::detach_send);
    }

    fn try_post(&self, key: SocketKey, bytes: Vec<u8>, now: Instant) -> Result<(), Vec<u8>> {
        let entry = self.with_socket(key, |socket| {
            if socket.sending.is_some() || socket.detached_error.is_some() {
                return Err(bytes);
            }
            let entry = socket.start_send(key.0, smallvec![bytes], now);
            socket.detach_send();
            Ok(entry)
        })?;
        self.push(&entry);
        Ok(())
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
            if !socket.is_detached() {
                let error = socket.detached_error.take();
                return Poll::Ready(error.map_or(Ok(()), |error| Err(error.into())));
            }
            socket.sender = Some(waker.clone());
            Poll::Pending
        })
    }

    fn take_spent(&self) -> Option<Vec<u8>> {
        self.spent.take()
    }

    fn poll_accept(&self, key: SocketKey, waker: &Waker) -> Poll<io::Result<OwnedFd>> {
        let entry = self.with_socket(key, |socket| {
            if let Some(accepted) = socket.accepted.pop_front() {
                return Err(accepted);
            }
            socket.receiver = Some(waker.clone());
            if socket.is_armed(Kind::Accept) {
                return Ok(None);
            }
            socket.arm(Kind::Accept);
            let flags = SocketFlags::CLOEXEC.bits().cast_signed();
            let accept = opcode::AcceptMulti::new(socket.fd()).flags(flags).build();
            Ok(Some(accept.user_data(token(Kind::Accept, key.0))))
        });
        match entry {
            Err(accepted) => return Poll::Ready(accepted),
            Ok(Some(entry)) => self.push(&entry),
            Ok(None) => {}
        }
        Poll::Pending
    }

    fn poll_connected(&self, key: SocketKey, waker: &Waker) -> Poll<()> {
        let entry = self.with_socket(key, |socket| {
            socket.sender = Some(waker.clone());
            if socket.is_connected || socket.is_armed(Kind::Connect) {
                return (socket.is_connected, None);
            }
            (
                false,
                Some(Self::poll_once(socket, key, Kind::Connect, PollFlags::OUT)),
            )
        });
        self.wait_for(entry)
    }

    fn poll_hung_up(&self, key: SocketKey, waker: &Waker) -> Poll<()> {
        let entry = self.with_socket(key, |socket| {
            socket.watcher = Some(waker.clone());
            if socket.is_hung_up || socket.is_armed(Kind::HangUp) {
                return (socket.is_hung_up, None);
            }
            (
                false,
                Some(Self::poll_once(socket, key, Kind::HangUp, PollFlags::RDHUP)),
            )
        });
        self.wait_for(entry)
    }

    fn wait(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.arm_poke();
        self.enter(timeout)?;
        let mut completions = std::mem::take(&mut *self.completions.borrow_mut());
        for (index, completion) in completions.iter().enumerate() {
            self.prefetch_ahead(&completions[index + 1..]);
            self.complete(completion);
        }
        completions.clear();
        let mut later = self.completions.borrow_mut();
        // What `push` reaped meanwhile is handled next turn. There is mostly nothing, and the
        // larger allocation is kept.
        completions.append(&mut later);
        *later = completions;
        Ok(())
    }

    fn disk(self: Rc<Self>, shared: &Arc<Shared>) -> Rc<dyn Disk> {
        Rc::new(WorkerDisk::new(RingTransfers::new(self), shared))
    }
}

impl UringDriver {
    /// Cancels operations of a socket one by one. The kernel finds an operation by its user data in
    /// a table. By the descriptor it would look at the operations of all sockets.
    fn cancel(&self, key: SocketKey, kinds: SmallVec<[Kind; 4]>) {
        for kind in kinds {
            let target = types::CancelBuilder::user_data(token(kind, key.0));
            let cancel = opcode::AsyncCancel2::new(target).build();
            self.push(&cancel.user_data(token(Kind::Cancel, key.0)));
        }
    }

    /// Prefetches what later completions will read: a socket, and then the header of the task that
    /// waits for it. With thousands of clients both are cold.
    fn prefetch_ahead(&self, later: &[Completion]) {
        let sockets = self.sockets.borrow();
        let index_of = |ahead: usize| {
            let (kind, index) = untoken(later.get(ahead)?.user_data);
            (kind == Kind::Receive).then_some(index)
        };
        if let Some(slot) = index_of(SOCKET_AHEAD_COUNT).and_then(|index| sockets.place(index)) {
            hot_memory::prefetch(slot);
        }
        let socket = index_of(HEADER_AHEAD_COUNT).and_then(|index| sockets.get(index));
        if let Some(receiver) = socket.and_then(|socket| socket.receiver.as_ref()) {
            hot_memory::prefetch_task_of(receiver);
        }
    }

    fn wait_for(&self, (is_there, entry): (bool, Option<squeue::Entry>)) -> Poll<()> {
        if let Some(entry) = entry {
            self.push(&entry);
        }
        if is_there {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Receives by a call, into a buffer of our own. `None` if there are no bytes after all.
    fn fetch(&self, socket: &Socket) -> Option<io::Result<ReceivedBytes>> {
        let mut buffer = self.pool.take();
        let received = rustix::net::recv(&*socket.descriptor, &mut *buffer, RecvFlags::DONTWAIT);
        match received {
            Ok((_, count)) => Some(Ok(ReceivedBytes::pooled(self.pool.clone(), buffer, count))),
            Err(error) => {
                self.pool.give_back(buffer);
                let is_nothing = matches!(error, Errno::AGAIN | Errno::INTR);
                (!is_nothing).then(|| Err(error.into()))
            }
        }
    }
}

impl Drop for UringDriver {
    /// Waits for operations under way, so that the kernel writes into no freed memory. Reads and
    /// writes of files end soon by themselves; the rest is cancelled.
    fn drop(&mut self) {
        /// Patience with a disk that does not answer: 10 s.
        const ROUNDS_MAX: usize = 100;
        let target = types::CancelBuilder::any();
        let cancel = opcode::AsyncCancel2::new(target.all()).build();
        self.push(&cancel.user_data(token(Kind::Cancel, 0)));
        for _ in 0..ROUNDS_MAX {
            let waited = self.enter(Some(Duration::from_millis(100)));
            let completions = std::mem::take(&mut *self.completions.borrow_mut());
            completions
                .iter()
                .for_each(|completion| self.complete(completion));
            let is_idle = !self.is_poke_armed.get()
                && self
                    .files
                    .borrow()
                    .iter()
                    .all(|(_, operation)| operation.is_done())
                && self
                    .sockets
                    .borrow()
                    .iter()
                    .all(|(_, socket)| socket.is_idle());
            if is_idle {
                return;
            }
            if waited.is_err() {
                break;
            }
        }
        // The kernel still uses these. They stay allocated for good, rather than being written to
        // after they were freed.
        Box::leak(Box::new((
            self.sockets.take(),
            self.files.take(),
            self.buffers.clone(),
        )));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_by_itself_ends_no_worker() {
        let error = |errno: Errno| io::Error::from(errno);
        for errno in [Errno::BUSY, Errno::AGAIN, Errno::NOMEM] {
            assert!(is_refusal(&error(errno)) && is_passing(&error(errno)));
        }
        for errno in [Errno::TIME, Errno::INTR] {
            assert!(!is_refusal(&error(errno)) && is_passing(&error(errno)));
        }
        for errno in [Errno::BADF, Errno::INVAL, Errno::FAULT] {
            assert!(!is_passing(&error(errno)));
        }
    }
}
