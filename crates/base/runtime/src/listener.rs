//! Listening sockets, and how connections are spread over the workers.
//!
//! A TCP address has one listening socket a worker (SO_REUSEPORT). The kernel spreads clients by a
//! hash, unevenly if they are few. So the worker that accepts looks at the number of connections of
//! each worker. If another has fewer, it hands the new one over, once, before it reads anything.
//! From then on the connection stays.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with, sockopt};
use sync::Notify;

use crate::context::{sleep, spawn_background};
use crate::options::Address;
use crate::shared::task::Kind;
use crate::shared::{Message, Placed, Shared};
use crate::stream::Stream;
use crate::worker::current;

/// Clients that the kernel keeps waiting for each socket; its own limit is 4096 by default.
const BACKLOG: i32 = 4096;

/// How long accepting pauses when the process has no descriptor left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// For how long, and how often, binding is tried again while an address is in use. The sockets of a
/// killed process live until the kernel has taken its ring down, a moment after its end.
const LINGER_MAX: Duration = Duration::from_secs(1);
const LINGER_LOOK: Duration = Duration::from_millis(20);

/// A bound address, already listening. Clients that come before [`serve`](crate::Runtime::serve)
/// wait.
pub struct Listener {
    address: Address,
    first: OwnedFd,
}

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {reason}")]
pub struct ListenError {
    /// The address.
    pub address: Address,
    /// The kernel's error.
    pub reason: io::Error,
}

impl Listener {
    /// Binds an address. For port 0 the kernel chooses one; [`Listener::address`] returns it.
    /// Replaces the file of a unix socket if no process listens on it.
    pub fn bind(address: &Address) -> Result<Self, ListenError> {
        let bound = match address {
            Address::Tcp(address) => bind_tcp_patiently(*address),
            Address::Unix(path) => bind_unix(path).map(|first| (first, address.clone())),
        };
        match bound {
            Ok((first, address)) => Ok(Self { address, first }),
            Err(error) => Err(ListenError {
                address: address.clone(),
                reason: io::Error::from(error),
            }),
        }
    }

    /// Where it listens, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Lets the workers accept and serve. Returns what ends that, for each of them.
    pub(crate) fn serve<F>(
        self,
        shared: &Arc<Shared>,
        serve: impl Fn(Stream) -> F + Send + Sync + 'static,
    ) -> Result<Vec<Arc<Notify>>, ListenError>
    where
        F: Future<Output = ()> + 'static,
    {
        let failed = |error: Errno| ListenError {
            address: self.address.clone(),
            reason: io::Error::from(error),
        };
        let mut sockets = Vec::new();
        if let Address::Tcp(address) = self.address {
            for _ in 1..shared.mailboxes.len() {
                let port = ReusePort::Shared;
                sockets.push(bind_tcp(address, port).map_err(failed)?);
            }
        }
        sockets.insert(0, self.first);
        let spawner: Arc<Spawner> = Arc::new(move |descriptor| start_session(descriptor, &serve));
        let mut all_closed = Vec::new();
        for (worker_index, socket) in sockets.into_iter().enumerate() {
            let spawner = spawner.clone();
            let closed = Arc::new(Notify::default());
            all_closed.push(Arc::clone(&closed));
            let job = Box::new(move || {
                spawn_background(accept_all(socket, spawner, closed));
            });
            shared.send(worker_index, Message::Run(job));
        }
        Ok(all_closed)
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("address", &self.address)
            .finish()
    }
}

/// Starts the session of a connection on the worker where it is called.
type Spawner = dyn Fn(OwnedFd) + Send + Sync;

fn start_session<F>(descriptor: OwnedFd, serve: &impl Fn(Stream) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let worker = current();
    let placed = Placed::new(worker.shared.clone(), worker.index);
    // A unix socket has no such option.
    let _ = sockopt::set_tcp_nodelay(&descriptor, true);
    // Without room for one more socket the client sees its connection closed.
    let Ok(stream) = Stream::new(descriptor) else {
        return;
    };
    let session = Box::pin(serve(stream));
    worker.insert_task(Kind::Foreground, session, Some(placed));
}

/// A socket that is closed at the driver when the accepting task is dropped.
struct Accepting {
    driver: Rc<dyn crate::driver::Driver>,
    key: crate::driver::SocketKey,
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.driver.close(self.key);
    }
}

/// Accepts until the listener is closed, or the runtime is asked to stop.
async fn accept_all(socket: OwnedFd, spawner: Arc<Spawner>, closed: Arc<Notify>) {
    let worker = current();
    let driver = worker.driver.clone();
    worker.shared.reserve.fill();
    let socket = Rc::new(socket);
    let registered = driver.register(Rc::clone(&socket));
    let key = registered.expect("a worker's first sockets find room");
    let accepting = Accepting { driver, key };
    let mut stop = std::pin::pin!(crate::context::shutdown());
    let mut closed = std::pin::pin!(closed.notified());
    loop {
        let accepted = poll_fn(|context| {
            if stop.as_mut().poll(context).is_ready() || closed.as_mut().poll(context).is_ready() {
                return std::task::Poll::Ready(None);
            }
            if !current().spend(context.waker()) {
                return std::task::Poll::Pending;
            }
            accepting
                .driver
                .poll_accept(accepting.key, context.waker())
                .map(Some)
        })
        .await;
        match accepted {
            None => return,
            Some(Ok(descriptor)) => match worker.shared.reserve.admit(descriptor, worker.now()) {
                Some(client) => place(&worker.shared, worker.index, client, &spawner),
                None => worker.shared.count_refused(worker.index, 1),
            },
            Some(Err(error)) if is_exhausted(&error) => {
                let refused = worker.shared.reserve.refuse_waiting(&socket, worker.now());
                worker.shared.count_refused(worker.index, refused);
                sleep(EXHAUSTED_PAUSE).await;
            }
            // The client went before it was accepted; the next one may be fine.
            Some(Err(_)) => {}
        }
    }
}

fn place(shared: &Arc<Shared>, acceptor: usize, descriptor: OwnedFd, spawner: &Arc<Spawner>) {
    let chosen = shared.place(acceptor);
    if chosen == acceptor {
        spawner(descriptor);
        return;
    }
    let spawner = spawner.clone();
    shared.send(chosen, Message::Run(Box::new(move || spawner(descriptor))));
}

fn is_exhausted(error: &io::Error) -> bool {
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    exhausted
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReusePort {
    /// Refused if any socket listens there.
    Alone,
    /// Beside other sockets of ours.
    Shared,
}

/// Waits until an earlier process' sockets are gone.
#[allow(
    clippy::disallowed_methods,
    reason = "at start, before there is a loop to wait in"
)]
fn bind_tcp_patiently(address: SocketAddr) -> Result<(OwnedFd, Address), Errno> {
    let mut waited = Duration::ZERO;
    loop {
        match bind_tcp_first(address) {
            Err(Errno::ADDRINUSE) if waited < LINGER_MAX => {
                std::thread::sleep(LINGER_LOOK);
                waited += LINGER_LOOK;
            }
            outcome => return outcome,
        }
    }
}

/// Sockets that share a port may belong to several processes of one user. The kernel would then
/// give each of them some of the clients. So a first socket asks for the port alone; if it gets it,
/// no other process listens there. Two processes that ask at the same moment would both get it, one
/// after the other. So a process holds the turn from asking until it listens.
fn bind_tcp_first(address: SocketAddr) -> Result<(OwnedFd, Address), Errno> {
    let turn = match address.port() {
        0 => None,
        port => Some(take_turn(port)?),
    };
    if turn.is_some() {
        drop(bind_tcp(address, ReusePort::Alone)?);
    }
    let first = bind_tcp(address, ReusePort::Shared)?;
    let bound = SocketAddr::try_from(rustix::net::getsockname(&first)?)?;
    Ok((first, Address::Tcp(bound)))
}

/// Takes the turn to ask for a port, and keeps it while the returned descriptor lives. It is a name
/// that one process at a time can bind; it disappears with the descriptor.
fn take_turn(port: u16) -> Result<OwnedFd, Errno> {
    let name = format!("plateau asks for port {port}");
    let socket = new_socket(AddressFamily::UNIX)?;
    rustix::net::bind(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    Ok(socket)
}

fn bind_tcp(address: SocketAddr, reuse: ReusePort) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = new_socket(family)?;
    // Lingering connections of an earlier process do not count as a listener.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if reuse == ReusePort::Shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    if reuse == ReusePort::Shared {
        rustix::net::listen(&socket, BACKLOG)?;
    }
    Ok(socket)
}

fn bind_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = new_socket(AddressFamily::UNIX)?;
    match rustix::net::bind(&socket, &address) {
        Err(Errno::ADDRINUSE) => {
            let probe = new_socket(AddressFamily::UNIX)?;
            match rustix::net::connect(&probe, &address) {
                Err(Errno::CONNREFUSED) => {}
                _ => return Err(Errno::ADDRINUSE),
            }
            if !FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode).is_socket() {
                return Err(Errno::ADDRINUSE);
            }
            // Left by a process that died, or a link to such a file: no process listens on it.
            rustix::fs::unlink(path)?;
            rustix::net::bind(&socket, &address)?;
        }
        other => other?,
    }
    // Accounts decide who may log in, as with TCP.
    rustix::fs::chmod(path, Mode::from_raw_mode(0o777))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn new_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(family, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Each process would get some of the clients.
    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "two servers that start at once are two threads here"
    )]
    fn of_two_that_ask_for_a_port_at_once_one_gets_it() {
        let (first, address) = bind_tcp_first(([127, 0, 0, 1], 0).into()).unwrap();
        let Address::Tcp(address) = address else {
            panic!("a port was asked for")
        };
        drop(first);
        for _ in 0..200 {
            let start = Barrier::new(2);
            let ask = || {
                start.wait();
                let bound = bind_tcp_first(address);
                // Kept until both have asked.
                start.wait();
                bound.map(drop)
            };
            let [one, other] = std::thread::scope(|scope| {
                [scope.spawn(ask), scope.spawn(ask)].map(|asking| asking.join().unwrap())
            });
            assert!(one.is_err() || other.is_err());
            assert_eq!(one.or(other), Ok(()), "one of them gets it");
        }
    }
}
