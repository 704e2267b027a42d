//! Logins over sockets, at, below and above the limits: which clients are let in, which are ended,
//! and which errors the others get.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clients::{ClientNumbers, Clients, Entrance};
use front::{
    Account, AccountSource, Credential, Options, PacketMemory, Peer, Resources, Shared,
    system_random,
};
use metrics::Counter;
use runtime::{Address, Io, Listener, Runtime, Stream, TaskClass};
use testkit::{Client, Login, ServerError, wait_until};
use wire::OkPacket;

/// `max_connections` of these tests.
const LIMIT: usize = 2;

/// Longer than a loaded machine needs; a hang is found by it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// root and the administrator are let in without a password; there is no other account.
struct Accounts;

impl AccountSource for Accounts {
    fn find(&self, user: &str, _peer: Peer) -> Option<Account> {
        ["root", "admin"].contains(&user).then(|| Account {
            user: user.to_owned(),
            host: "%".to_owned(),
            credential: Credential::Trusted,
            is_locked: false,
            requires_tls: false,
        })
    }
}

/// A server whose sessions do nothing but wait for their clients to go.
struct Host {
    clients: Arc<Clients>,
    evictions: Arc<Counter>,
    runtime: Runtime,
    port: u16,
}

impl Host {
    fn start(io: Io) -> Host {
        let options = runtime::Options {
            worker_count: 1,
            io,
            pin: false,
            helper_count: 1,
            ..runtime::Options::default()
        };
        let start = || {
            let resources = Resources::new(PacketMemory::new(1 << 20), Arc::default());
            let options = Options::new("10.11.0-MariaDB-clients", system_random());
            runtime::set_local(Shared::new(options, resources, Arc::default()));
        };
        let runtime = Runtime::start(options, start).unwrap();
        let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into())).unwrap();
        let Address::Tcp(address) = listener.address().clone() else {
            panic!("it listens on TCP");
        };
        let (clients, evictions) = (Arc::<Clients>::default(), Arc::<Counter>::default());
        let shared = (Arc::clone(&clients), Arc::clone(&evictions));
        let serve = move |stream| {
            let (clients, evictions) = shared.clone();
            async move { serve(&clients, &evictions, stream).await }
        };
        runtime.serve(listener, serve).unwrap();
        Host {
            clients,
            evictions,
            runtime,
            port: address.port(),
        }
    }

    fn connect(&self, user: &str) -> anyhow::Result<Client> {
        Client::connect(&Login {
            user: user.to_owned(),
            ..Login::root(self.port)
        })
    }

    /// The number of the error that a login ends with.
    fn refusal(&self, user: &str) -> u16 {
        let error = self.connect(user).unwrap_err();
        error.downcast_ref::<ServerError>().unwrap().number
    }

    /// A connection that reads its greeting and says nothing.
    fn stay_silent(&self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut header = [0; 4];
        stream.read_exact(&mut header).unwrap();
        let mut greeting = vec![0; usize::from(header[0])];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting[0], 10, "the protocol's version");
        stream
    }

    fn end(self) {
        self.runtime.handle().shutdown(Duration::ZERO);
        self.runtime.wait().unwrap();
    }
}

async fn serve(clients: &Clients, evictions: &Counter, stream: Stream) {
    let front: Rc<Shared> = runtime::local().unwrap();
    let entrance = Entrance {
        front: &front,
        limit: LIMIT,
        evictions,
        numbers: ClientNumbers::Low,
    };
    let Some(logged_in) = clients.log_in(stream, &Accounts, entrance).await else {
        return;
    };
    let is_administrator = logged_in.client.info().user == "admin";
    let limit = LIMIT + usize::from(is_administrator);
    let Some((mut client, handle)) = clients.admit(logged_in, limit, 0).await else {
        return;
    };
    if client.welcome(&OkPacket::default()).await.is_ok() {
        let class = TaskClass::OutsideTransaction;
        // Ends with the connection.
        while client.read_command(TIMEOUT, class).await.is_ok() {}
    }
    clients.registry().leave(&handle);
}

/// Whether the peer closes the connection without another word.
fn is_closed(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => rest.is_empty(),
        // A reset also counts as an end. A time-out is not.
        Err(error) => error.kind() == ErrorKind::ConnectionReset && rest.is_empty(),
    }
}

#[test]
fn a_client_is_listed_from_its_login_to_its_end() {
    for io in [Io::Epoll, Io::Auto] {
        let host = Host::start(io);
        let client = host.connect("root").unwrap();
        assert_eq!(
            (host.clients.registry().count(), host.clients.login_count()),
            (1, 0)
        );
        let line = host.clients.registry().all().pop().unwrap().line();
        assert_eq!(line.user, "root");
        assert_eq!(line.id, u64::from(client.connection_id));
        drop(client);
        wait_until("its session ends", || host.clients.registry().count() == 0);
        host.end();
    }
}

#[test]
fn one_session_beyond_the_limit_is_for_an_administrator() {
    let host = Host::start(Io::Auto);
    let below = host.connect("root").unwrap();
    let at = host.connect("root").unwrap();
    assert_eq!(
        host.refusal("root"),
        1040,
        "above the limit, after its login"
    );
    let administrator = host.connect("admin").unwrap();
    assert_eq!(host.refusal("admin"), 1040, "in place of a greeting");
    assert_eq!(host.clients.registry().count(), LIMIT + 1);
    drop((below, at, administrator));
    wait_until("all are gone", || host.clients.registry().count() == 0);
    drop(host.connect("root").unwrap());
    host.end();
}

#[test]
fn who_stays_silent_is_evicted_by_those_who_come() {
    let host = Host::start(Io::Auto);
    let oldest = host.stay_silent();
    let second = host.stay_silent();
    wait_until("both log in", || host.clients.login_count() == LIMIT);
    assert_eq!(host.evictions.value(), 0, "at the limit");
    let client = host.connect("root").unwrap();
    assert_eq!(host.evictions.value(), 1, "above it");
    assert!(is_closed(oldest));
    drop((client, second));
    wait_until("no login is left", || host.clients.login_count() == 0);
    host.end();
}

#[test]
fn an_unknown_user_leaves_no_trace() {
    let host = Host::start(Io::Auto);
    assert_eq!(host.refusal("stranger"), 1045);
    wait_until("the login is over", || host.clients.login_count() == 0);
    assert_eq!(host.clients.registry().count(), 0);
    host.end();
}

#[test]
fn a_shutdown_ends_logins_and_refuses_others() {
    let host = Host::start(Io::Auto);
    let silent = host.stay_silent();
    wait_until("it logs in", || host.clients.login_count() == 1);
    host.clients.dismiss();
    assert!(is_closed(silent));
    assert_eq!(host.refusal("root"), 1053);
    assert_eq!(host.evictions.value(), 0, "none was evicted");
    host.end();
}
