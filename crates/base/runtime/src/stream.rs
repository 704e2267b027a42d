//! A byte stream to a peer, over TCP or a unix socket.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use env::Instant;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, socket_with, sockopt,
};
use smallvec::smallvec;

use crate::driver::{Driver, SendBuffers, SocketKey};
use crate::options::Address;
use crate::peer_watch::PeerWatch;
use crate::received::ReceivedBytes;
use crate::worker::current;

/// Largest buffer that is posted. For a larger reply, the session should know that it was sent.
const POSTED_BYTES_MAX: usize = 64 << 10;

/// How long a peer that we connected to may be silent, its kernel included.
const PEER_SILENCE_MAX: Duration = Duration::from_secs(60);

/// So many probes are sent in that time where nothing else is.
const KEEPALIVE_PROBES: u32 = 5;

/// Has the kernel look after the peer of a TCP socket: a firewall may have dropped the connection,
/// or the peer's machine may be gone.
fn watch_over(descriptor: &OwnedFd) -> io::Result<()> {
    let pace = PEER_SILENCE_MAX / (KEEPALIVE_PROBES + 1);
    sockopt::set_socket_keepalive(descriptor, true)?;
    sockopt::set_tcp_keepidle(descriptor, pace)?;
    sockopt::set_tcp_keepintvl(descriptor, pace)?;
    sockopt::set_tcp_keepcnt(descriptor, KEEPALIVE_PROBES)?;
    let silence_ms = u32::try_from(PEER_SILENCE_MAX.as_millis()).expect("a minute");
    Ok(sockopt::set_tcp_user_timeout(descriptor, silence_ms)?)
}

/// A connected socket of this worker; closed when dropped.
pub struct Stream {
    driver: Rc<dyn Driver>,
    key: SocketKey,
    descriptor: Rc<OwnedFd>,
    sending: SendState,
}

/// Whether the sender waits for the end of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// Until all has been sent.
    Wait,
    /// Not at all.
    Post,
}

/// The state of the sending side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendState {
    /// Nothing: a send may start.
    Idle,
    /// A send was started. If its future was dropped, it is unknown how far it came.
    Started,
    /// A send failed.
    Broken,
}

impl Stream {
    /// Takes over a connected, non-blocking socket.
    pub(crate) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        let driver = current().driver.clone();
        let descriptor = Rc::new(descriptor);
        let key = driver.register(descriptor.clone())?;
        Ok(Self {
            driver,
            key,
            descriptor,
            sending: SendState::Idle,
        })
    }

    /// Connects to a peer. TCP streams start with `TCP_NODELAY` set. The kernel ends one whose peer
    /// answers nothing for a minute (`PEER_SILENCE_MAX`), whether something is sent or not.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        let family = match address {
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let descriptor = socket_with(family, SocketType::STREAM, flags, None)?;
        let started = match address {
            Address::Tcp(address) => {
                sockopt::set_tcp_nodelay(&descriptor, true)?;
                watch_over(&descriptor)?;
                rustix::net::connect(&descriptor, address)
            }
            Address::Unix(path) => rustix::net::connect(&descriptor, &SocketAddrUnix::new(path)?),
        };
        match started {
            Ok(()) => return Self::new(descriptor),
            Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = Self::new(descriptor)?;
        poll_fn(|context| stream.driver.poll_connected(stream.key, context.waker())).await;
        sockopt::socket_error(&stream.descriptor)??;
        Ok(stream)
    }

    /// Takes the stream out of its worker, for another to [attach](DetachedStream::attach). Waits
    /// until what was posted is sent. A future that is dropped before its end closes the stream.
    pub async fn detach(mut self) -> io::Result<DetachedStream> {
        self.check_idle()?;
        poll_fn(|context| self.poll_posted(context)).await?;
        let (driver, key) = (Rc::clone(&self.driver), self.key);
        let received = poll_fn(|context| driver.poll_release(key, context.waker())).await?;
        let descriptor = Rc::clone(&self.descriptor);
        drop(self);
        let descriptor = Rc::try_unwrap(descriptor).expect("the driver has let go of it");
        Ok(DetachedStream {
            descriptor,
            received,
        })
    }

    /// Waits for bytes; empty if the peer has ended. May be dropped at any time without loss.
    pub async fn receive(&mut self) -> io::Result<ReceivedBytes> {
        poll_fn(|context| self.poll_receive(context)).await
    }

    /// As [`Stream::receive`], for callers that write their own futures.
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ReceivedBytes>> {
        let worker = current();
        if !worker.spend(context.waker()) {
            return Poll::Pending;
        }
        worker.with_hot(|hot| self.driver.poll_receive(self.key, context.waker(), hot))
    }

    /// Sends all of `bytes` and returns the buffer, cleared. If the future is dropped before its
    /// end, later sends fail: it is unknown how much was sent.
    pub async fn send(&mut self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let buffer = self.send_by(bytes, SendMode::Wait).await?;
        Ok(buffer.expect("it was waited for"))
    }

    /// Sends all of `bytes`. Returns the buffer, cleared, if all was sent. Returns `None`, only if
    /// posted, if it goes out while the task does other things. The next send then waits behind it,
    /// and fails if it fails; [`crate::spent_buffer`] returns the buffer later. Dropping the stream
    /// drops what is still on its way.
    pub async fn send_by(&mut self, bytes: Vec<u8>, mode: SendMode) -> io::Result<Option<Vec<u8>>> {
        let mut unsent = Some(bytes);
        poll_fn(|context| self.poll_send_by(&mut unsent, mode, context)).await
    }

    /// Posts `bytes` ([`SendMode::Post`]) without a future. Returns them if they have to be sent by
    /// [`Stream::send_by`]: an earlier send is under way or has failed, or they are many.
    pub fn try_post(&mut self, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        let is_idle = self.sending == SendState::Idle;
        if is_idle && !bytes.is_empty() && bytes.capacity() <= POSTED_BYTES_MAX {
            return self.driver.try_post(self.key, bytes, current().now());
        }
        Err(bytes)
    }

    /// As [`Stream::send_by`], for callers that write their own futures. Takes the bytes out of
    /// `unsent` when it starts to send them. From then on the caller polls it to the end of that
    /// send.
    pub fn poll_send_by(
        &mut self,
        unsent: &mut Option<Vec<u8>>,
        mode: SendMode,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Vec<u8>>>> {
        if let Some(bytes) = unsent {
            if !bytes.is_empty() {
                self.check_idle()?;
            }
            if !bytes.is_empty() || mode == SendMode::Wait {
                ready!(self.poll_posted(context))?;
            }
        }
        if let Some(mut bytes) = unsent.take() {
            if bytes.is_empty() {
                return Poll::Ready(Ok(Some(bytes)));
            }
            let is_posted = mode == SendMode::Post && bytes.len() <= POSTED_BYTES_MAX;
            if is_posted && bytes.capacity() > POSTED_BYTES_MAX {
                // More may have been written, and taken back.
                bytes.shrink_to(POSTED_BYTES_MAX);
            }
            self.start_send(smallvec![bytes]);
            if is_posted {
                self.driver.detach_send(self.key);
                self.sending = SendState::Idle;
                return Poll::Ready(Ok(None));
            }
        }
        let mut buffers = ready!(self.poll_end_send(context))?;
        let mut bytes = buffers
            .pop()
            .expect("the driver gives back what it was given");
        bytes.clear();
        Poll::Ready(Ok(Some(bytes)))
    }

    /// Since when the peer has made no room for more of what is being sent or was posted; at first,
    /// since that send began. `None` if there is no send.
    pub fn stalled_since(&self) -> Option<Instant> {
        self.driver.stalled_since(self.key)
    }

    /// Whether something that was posted is still on its way.
    pub fn is_posting(&self) -> bool {
        self.driver.is_detached(self.key)
    }

    /// Sends all buffers, one after the other, in as few calls as possible.
    pub async fn send_many(&mut self, buffers: Vec<Vec<u8>>) -> io::Result<()> {
        let buffers: SendBuffers = buffers.into_iter().filter(|it| !it.is_empty()).collect();
        if !buffers.is_empty() {
            self.check_idle()?;
            poll_fn(|context| self.poll_posted(context)).await?;
            self.start_send(buffers);
            poll_fn(|context| self.poll_end_send(context)).await?;
        }
        Ok(())
    }

    /// Ready once all that was posted is sent.
    fn poll_posted(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !current().spend(context.waker()) {
            return Poll::Pending;
        }
        let result = ready!(self.driver.poll_detached(self.key, context.waker()));
        if result.is_err() {
            self.sending = SendState::Broken;
        }
        Poll::Ready(result)
    }

    /// Returns an error unless a send may start after what was posted.
    fn check_idle(&self) -> io::Result<()> {
        if self.sending == SendState::Idle {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::BrokenPipe,
            "an earlier send on this stream failed or was given up",
        ))
    }

    fn start_send(&mut self, buffers: SendBuffers) {
        self.sending = SendState::Started;
        self.driver.start_send(self.key, buffers, current().now());
    }

    fn poll_end_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<SendBuffers>> {
        if !current().spend(context.waker()) {
            return Poll::Pending;
        }
        let result = ready!(self.driver.poll_send(self.key, context.waker()));
        self.sending = if result.is_ok() {
            SendState::Idle
        } else {
            SendState::Broken
        };
        Poll::Ready(result)
    }

    /// Waits until the peer has ended its side, closed or reset. It takes no bytes: earlier ones
    /// can still be received.
    pub async fn hung_up(&self) {
        poll_fn(|context| self.driver.poll_hung_up(self.key, context.waker())).await;
    }

    /// Returns a watch on whether the peer is there while the stream is in use.
    pub fn watch(&self) -> PeerWatch {
        PeerWatch::new(Rc::downgrade(&self.descriptor), self.is_local())
    }

    /// Whether it is a unix socket.
    pub fn is_local(&self) -> bool {
        let name = rustix::net::getsockname(&self.descriptor);
        name.is_ok_and(|name| name.address_family() == AddressFamily::UNIX)
    }

    /// Ends the sending side; the peer reads the end after the last byte.
    pub fn shut_down_sending(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(&self.descriptor, Shutdown::Write)?)
    }

    /// Whether small sends leave at once (`TCP_NODELAY`). Without effect on a unix socket.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match sockopt::set_tcp_nodelay(&self.descriptor, nodelay) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOPROTOOPT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The peer's address; `None` for a unix socket, or when the peer is gone already.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        let address = rustix::net::getpeername(&self.descriptor).ok()??;
        SocketAddr::try_from(address).ok()
    }

    /// Our end's address; `None` for a unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(rustix::net::getsockname(&self.descriptor).ok()?).ok()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.driver.close(self.key);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("key", &self.key).finish()
    }
}

/// A connected socket that is no worker's; closed when dropped. [`Stream::detach`] makes it.
pub struct DetachedStream {
    descriptor: OwnedFd,
    /// What the kernel had handed out and nobody had asked for.
    received: Vec<u8>,
}

impl DetachedStream {
    /// Makes it a stream of this worker. Returns the bytes with it that came before those which the
    /// stream will receive; there are mostly none.
    pub fn attach(self) -> io::Result<(Stream, Vec<u8>)> {
        // A ring has made it blocking; each driver takes a non-blocking one.
        rustix::io::ioctl_fionbio(&self.descriptor, true)?;
        Ok((Stream::new(self.descriptor)?, self.received))
    }
}

impl fmt::Debug for DetachedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachedStream")
            .field("descriptor", &self.descriptor)
            .field("received_bytes", &self.received.len())
            .finish()
    }
}
