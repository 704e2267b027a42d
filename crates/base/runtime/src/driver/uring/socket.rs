//! The state of one socket, and what a completion does to it. There are no calls to the kernel
//! here: functions return the operations to submit.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::rc::Rc;
use std::task::Waker;

use env::linux::SystemClock;
use env::{Clock as _, Instant};
use io_uring::{cqueue, opcode, squeue, types};
use rustix::io::Errno;
use rustix::net::SendFlags;
use smallvec::SmallVec;

use super::super::SendBuffers;
use super::token::{KINDS, Kind, token};
use crate::received::ring::BufferRing;
use crate::received::{INLINE_BYTES, ReceivedBytes};

/// Received buffers that may wait for their session. Beyond it the kernel is asked to pause, so
/// that a client which sends without end holds no more of the ring than this.
pub(super) const RECEIVED_COUNT_MAX: usize = 8;

/// Received bytes that are copied out of a buffer when buffers are short. A waiting request is
/// mostly a few dozen bytes.
const COPIED_BYTES_MAX: usize = 1 << 10;

/// Bytes of one send: the kernel's own limit is just below 2 GiB.
const SEND_BYTES_MAX: usize = 1 << 30;

/// Buffers passed to one vectored write.
const SLICES_MAX: usize = 64;

/// One socket.
pub(super) struct Socket {
    pub(super) descriptor: Rc<OwnedFd>,
    /// The ring knows it by its slot's number.
    pub(super) is_fixed: bool,
    /// Its owner is gone; it is removed once `armed` is empty.
    pub(super) is_closing: bool,
    /// Operations with a completion still to come, one bit for each [`Kind`].
    armed: u8,
    /// What was received and not yet read.
    pub(super) received: Received,
    /// The state after `received`: no more bytes, or an error.
    pub(super) end: Option<Result<(), Errno>>,
    /// The kernel found no buffer for bytes that are there: a call must fetch them.
    pub(super) must_fetch: bool,
    /// The kernel was asked to pause receiving.
    pub(super) is_pausing: bool,
    pub(super) accepted: VecDeque<io::Result<OwnedFd>>,
    pub(super) is_connected: bool,
    pub(super) is_hung_up: bool,
    pub(super) sending: Option<Sending>,
    /// Why a detached send failed.
    pub(super) detached_error: Option<Errno>,
    /// Waits for `received`, `end` or `accepted`.
    pub(super) receiver: Option<Waker>,
    /// Waits for `sending` or `is_connected`.
    pub(super) sender: Option<Waker>,
    /// Waits for `is_hung_up`.
    pub(super) watcher: Option<Waker>,
}

/// A send under way. Its buffers stay here until the kernel is done with them.
pub(super) struct Sending {
    pub(super) buffers: SendBuffers,
    /// Bytes of all buffers that are sent.
    sent: usize,
    /// When `sent` last grew; at first, when the send began.
    pub(super) stalled_since: Instant,
    /// The slices of a vectored write; they point into `buffers`.
    slices: Vec<IoSlice<'static>>,
    /// No task waits for it; it is removed by its last completion.
    pub(super) is_detached: bool,
    /// Set when the send has ended.
    pub(super) result: Option<Result<(), Errno>>,
}

/// What was received, in order. Mostly one request or none, so the first needs no allocation.
#[derive(Default)]
pub(super) struct Received {
    first: Option<ReceivedBytes>,
    /// Behind `first`; empty if that is `None`.
    rest: VecDeque<ReceivedBytes>,
}

impl Received {
    fn push_back(&mut self, bytes: ReceivedBytes) {
        match self.first {
            None => self.first = Some(bytes),
            Some(_) => self.rest.push_back(bytes),
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<ReceivedBytes> {
        let first = self.first.take()?;
        self.first = self.rest.pop_front();
        Some(first)
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }
}

impl Socket {
    pub(super) fn new(descriptor: Rc<OwnedFd>) -> Self {
        Self {
            descriptor,
            is_fixed: false,
            is_closing: false,
            armed: 0,
            received: Received::default(),
            end: None,
            must_fetch: false,
            is_pausing: false,
            accepted: VecDeque::new(),
            is_connected: false,
            is_hung_up: false,
            sending: None,
            detached_error: None,
            receiver: None,
            sender: None,
            watcher: None,
        }
    }

    pub(super) fn fd(&self) -> types::Fd {
        types::Fd(self.descriptor.as_raw_fd())
    }

    pub(super) fn is_armed(&self, kind: Kind) -> bool {
        self.armed & kind.bit() != 0
    }

    /// Notes an operation that is about to be submitted.
    pub(super) fn arm(&mut self, kind: Kind) {
        assert!(!self.is_armed(kind), "one operation of a kind at a time");
        self.armed |= kind.bit();
    }

    /// The operations that are under way.
    pub(super) fn armed_kinds(&self) -> SmallVec<[Kind; 4]> {
        let armed = KINDS.into_iter().filter(|kind| self.is_armed(*kind));
        armed.collect()
    }

    /// Whether no operation of it is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.armed == 0
    }

    /// Handles a completion. Returns an operation to submit next, if there is one.
    pub(super) fn complete(
        &mut self,
        index: usize,
        kind: Kind,
        result: i32,
        flags: u32,
        ring: &Rc<BufferRing>,
    ) -> Option<squeue::Entry> {
        if !cqueue::more(flags) {
            self.armed &= !kind.bit();
        }
        let outcome = usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
        match kind {
            Kind::Receive => self.complete_receive(index, outcome, flags, ring),
            Kind::Send => self.complete_send(index, outcome),
            Kind::Accept => {
                self.complete_accept(result, outcome);
                None
            }
            Kind::Connect => {
                self.is_connected = true;
                self.sender.take().into_iter().for_each(Waker::wake);
                None
            }
            Kind::HangUp => {
                self.hang_up();
                None
            }
            Kind::Poke | Kind::File | Kind::Cancel => unreachable!("not a socket's"),
        }
    }

    fn complete_receive(
        &mut self,
        index: usize,
        outcome: Result<usize, Errno>,
        flags: u32,
        ring: &Rc<BufferRing>,
    ) -> Option<squeue::Entry> {
        // Only a completion that took a buffer names it. From here on it is ours.
        let buffer = cqueue::buffer_select(flags);
        match (outcome, buffer) {
            (Ok(0), buffer) => {
                drop(buffer.map(|id| ring.bytes(id, 0)));
                self.end = Some(Ok(()));
                self.hang_up();
            }
            (Ok(count), Some(id)) => {
                let bytes = ring.bytes(id, count);
                let is_small = count <= INLINE_BYTES;
                let is_copied = is_small || ring.is_short() && count <= COPIED_BYTES_MAX;
                let bytes = if is_copied {
                    ReceivedBytes::copied(&bytes)
                } else {
                    ReceivedBytes::ring(bytes)
                };
                if !self.is_closing {
                    self.received.push_back(bytes);
                }
            }
            (Ok(_), None) => unreachable!("bytes come in a buffer of the ring"),
            (Err(Errno::NOBUFS), _) => self.must_fetch = true,
            (Err(Errno::CANCELED | Errno::INTR), _) => {}
            (Err(error), _) => {
                self.end = Some(Err(error));
                self.hang_up();
            }
        }
        if !self.is_armed(Kind::Receive) {
            self.is_pausing = false;
        }
        self.receiver.take().into_iter().for_each(Waker::wake);
        let is_full = RECEIVED_COUNT_MAX <= self.received.len();
        let must_pause = is_full && self.is_armed(Kind::Receive) && !self.is_pausing;
        must_pause.then(|| {
            self.is_pausing = true;
            let target = types::CancelBuilder::user_data(token(Kind::Receive, index));
            opcode::AsyncCancel2::new(target)
                .build()
                .user_data(token(Kind::Cancel, index))
        })
    }

    fn complete_send(
        &mut self,
        index: usize,
        outcome: Result<usize, Errno>,
    ) -> Option<squeue::Entry> {
        let sending = self
            .sending
            .as_mut()
            .expect("a send under way keeps its buffers");
        match outcome {
            Ok(count) => {
                sending.sent += count;
                if sending.is_complete() {
                    sending.result = Some(Ok(()));
                } else {
                    // Not the turn's time: that is from before the wait for this completion.
                    sending.stalled_since = SystemClock.now();
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => sending.result = Some(Err(error)),
        }
        if sending.result.is_none() && !self.is_closing {
            return Some(self.next_send(index));
        }
        self.sender.take().into_iter().for_each(Waker::wake);
        None
    }

    /// Whether a send is under way that no task waits for.
    pub(super) fn is_detached(&self) -> bool {
        let sending = self.sending.as_ref();
        sending.is_some_and(|sending| sending.is_detached)
    }

    /// Returns the buffers of a send that has ended and that no task waits for.
    pub(super) fn take_spent(&mut self) -> Option<SendBuffers> {
        let is_spent = |sending: &mut Sending| sending.is_detached && sending.result.is_some();
        let spent = self.sending.take_if(is_spent)?;
        self.detached_error = spent.result.and_then(Result::err);
        Some(spent.buffers)
    }

    /// The bytes that came and were not asked for, or the error behind them.
    pub(super) fn take_received(&mut self) -> Result<Vec<u8>, Errno> {
        let mut all = Vec::new();
        while let Some(bytes) = self.received.pop_front() {
            all.extend_from_slice(&bytes);
        }
        match self.end {
            Some(Err(error)) => Err(error),
            Some(Ok(())) | None => Ok(all),
        }
    }

    fn complete_accept(&mut self, result: i32, outcome: Result<usize, Errno>) {
        match outcome {
            Ok(_) => {
                // SAFETY: a successful accept returns a new descriptor that no other code knows.
                let accepted = unsafe { OwnedFd::from_raw_fd(result) };
                self.accepted.push_back(Ok(accepted));
            }
            // Cancelled by us, or by a kernel that is short of memory: the acceptor asks again
            // (U3).
            Err(Errno::CANCELED) => {}
            Err(error) => self.accepted.push_back(Err(error.into())),
        }
        self.receiver.take().into_iter().for_each(Waker::wake);
    }

    fn hang_up(&mut self) {
        self.is_hung_up = true;
        self.watcher.take().into_iter().for_each(Waker::wake);
    }

    /// Notes what is to be sent and returns the operation that sends it.
    pub(super) fn start_send(
        &mut self,
        index: usize,
        buffers: SendBuffers,
        now: Instant,
    ) -> squeue::Entry {
        assert!(self.sending.is_none(), "one send at a time");
        self.sending = Some(Sending {
            buffers,
            sent: 0,
            stalled_since: now,
            slices: Vec::new(),
            is_detached: false,
            result: None,
        });
        self.next_send(index)
    }

    /// From now on no task waits for the send that was just started.
    pub(super) fn detach_send(&mut self) {
        let sending = self.sending.as_mut().expect("a send was started");
        assert!(sending.result.is_none(), "it is detached as it starts");
        sending.is_detached = true;
    }

    /// The operation that sends what is left, or as much of it as the socket takes at a time. The
    /// waiter must see whether the peer takes any, so there is no MSG_WAITALL.
    fn next_send(&mut self, index: usize) -> squeue::Entry {
        self.arm(Kind::Send);
        let (file, how) = self.sending_file(index);
        let sending = self.sending.as_mut().expect("the caller has a send");
        let user_data = token(Kind::Send, index);
        if let [only] = &sending.buffers[..] {
            let rest = &only[sending.sent..];
            let length = rest.len().min(SEND_BYTES_MAX);
            let flags = SendFlags::NOSIGNAL.bits().cast_signed();
            return opcode::Send::new(file, rest.as_ptr(), stdx::to_u32(length))
                .flags(flags)
                .build()
                .flags(how)
                .user_data(user_data);
        }
        sending.slice();
        let slices = &sending.slices;
        // The process ignores SIGPIPE, as every Rust program does; a vectored write cannot mask it.
        // An IoSlice has the layout of an iovec, by std's promise.
        opcode::Writev::new(file, slices.as_ptr().cast(), stdx::to_u32(slices.len()))
            .build()
            .flags(how)
            .user_data(user_data)
    }

    /// How a send names the file: by its slot's number if the ring knows it, else by descriptor.
    /// (A receive is armed once for many requests, and keeps the file that it found.)
    fn sending_file(&self, index: usize) -> (types::Fd, squeue::Flags) {
        if !self.is_fixed {
            return (self.fd(), squeue::Flags::empty());
        }
        let number = i32::try_from(index).expect("few sockets are registered");
        (types::Fd(number), squeue::Flags::FIXED_FILE)
    }
}

impl Sending {
    fn is_complete(&self) -> bool {
        self.sent == self.buffers.iter().map(Vec::len).sum::<usize>()
    }

    /// Points `slices` at the rest.
    fn slice(&mut self) {
        self.slices.clear();
        let mut skip = self.sent;
        for buffer in &self.buffers {
            let skipped = skip.min(buffer.len());
            skip -= skipped;
            if skipped < buffer.len() && self.slices.len() < SLICES_MAX {
                let rest = &buffer[skipped..];
                // SAFETY: the bytes stay where they are, unchanged, as long as `buffers` does,
                // and the slices are used no longer: both live until the kernel is done.
                let rest: &'static [u8] =
                    unsafe { std::slice::from_raw_parts(rest.as_ptr(), rest.len()) };
                self.slices.push(IoSlice::new(rest));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use rustix::event::{EventfdFlags, eventfd};
    use sync::Mutex;

    use super::super::probe::builder;
    use super::*;

    #[test]
    fn what_came_is_taken_in_order() {
        let mut received = Received::default();
        assert!(received.pop_front().is_none());
        let mut taken = Vec::new();
        for (pushes, pops) in [(1, 1), (3, 1), (2, 3), (0, 1), (1, 2)] {
            for _ in 0..pushes {
                let number = u8::try_from(taken.len() + received.len()).unwrap();
                received.push_back(ReceivedBytes::copied(&[number]));
            }
            let popped = (0..pops).filter_map(|_| received.pop_front());
            taken.extend(popped.map(|bytes| usize::from(bytes[0])));
        }
        assert_eq!(received.len(), 0);
        assert_eq!(taken, (0..7).collect::<Vec<_>>());
    }

    #[derive(Default)]
    struct Noting(Mutex<bool>);

    impl Wake for Noting {
        fn wake(self: Arc<Self>) {
            *self.0.lock() = true;
        }
    }

    /// (U3) Otherwise the acceptor would never ask again, and the worker would accept no more
    ///      clients.
    #[test]
    fn who_accepts_asks_anew_when_the_kernel_gives_up() {
        let Ok(ring) = builder().build(8) else {
            // A container may refuse it.
            return;
        };
        let buffers = BufferRing::new(&ring.submitter()).unwrap();
        for errno in [Errno::CANCELED, Errno::MFILE] {
            let descriptor = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            let mut socket = Socket::new(Rc::new(descriptor));
            let noting = Arc::new(Noting::default());
            socket.arm(Kind::Accept);
            socket.receiver = Some(Arc::clone(&noting).into());
            let result = -errno.raw_os_error();
            assert!(
                socket
                    .complete(0, Kind::Accept, result, 0, &buffers)
                    .is_none()
            );
            assert!(*noting.0.lock() && !socket.is_armed(Kind::Accept));
        }
    }
}
