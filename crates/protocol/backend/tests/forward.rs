//! A client, a proxy of two links, and Debian's MariaDB: what the client reads is what it reads
//! without a proxy, whatever the two sides agreed on; and what goes wrong is bounded and told.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

mod support;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use backend::{Login, Outcome, QueryLimits, Server, TlsClient, TlsMode};
use front::{Account, AccountSource, Client, Credential, Options, Peer, Shared, system_random};
use link::{Disconnect, Exchange, ForwardError, Limit, PacketMemory, Resources, Traffic, Turn};
use runtime::{Address, Io, Listener, Runtime, Stream, TaskClass};
use support::replies::{assert_reads, assert_reads_all, limits, login, start};
use support::{connect, limit, on_worker, tcp};
use wire::{Capabilities, CommandByte, CompressionMethod, OkPacket};

const TIMEOUT: Duration = Duration::from_secs(60);

/// How a proxy logs in to its server, and how long its clients may take nothing.
#[derive(Clone)]
struct Proxy {
    server_port: u16,
    /// Capabilities that it wants for itself, beside its client's.
    own: Capabilities,
    /// Capabilities of its client that it does not want.
    not: Capabilities,
    compression: Option<CompressionMethod>,
    write_timeout: Duration,
    tls: Arc<rustls::ServerConfig>,
    traffic: Arc<Traffic>,
    outcome: Sender<ForwardError>,
}

struct AnyUser;

impl AccountSource for AnyUser {
    fn find(&self, user: &str, _peer: Peer) -> Option<Account> {
        Some(Account {
            user: user.to_owned(),
            host: "%".to_owned(),
            credential: Credential::Trusted,
            is_locked: false,
            requires_tls: false,
        })
    }
}

impl Proxy {
    fn new(server_port: u16) -> (Proxy, Receiver<ForwardError>) {
        let pair = front::CertificatePair::generate(&["localhost"]).unwrap();
        let (outcome, outcomes) = channel();
        let proxy = Proxy {
            server_port,
            own: Capabilities::DEPRECATE_EOF | Capabilities::SESSION_TRACK,
            not: Capabilities::default(),
            compression: None,
            write_timeout: TIMEOUT,
            tls: pair.to_tls_config().unwrap(),
            traffic: Arc::default(),
            outcome,
        };
        (proxy, outcomes)
    }

    /// A runtime that serves it, and its address.
    fn start(self, io: Io) -> (Runtime, Address) {
        let options = runtime::Options {
            worker_count: 1,
            io,
            pin: false,
            helper_count: 1,
        };
        let traffic = Arc::clone(&self.traffic);
        let start = move || {
            let memory = PacketMemory::new(256 << 20);
            runtime::set_local(Resources::new(memory, Arc::clone(&traffic)));
        };
        let runtime = Runtime::start(options, start).unwrap();
        let listener = Listener::bind(&tcp(0)).unwrap();
        let address = listener.address().clone();
        let serve = move |stream| {
            let proxy = self.clone();
            async move {
                if let Err(error) = proxy.forward(stream).await {
                    // A test that does not ask for it has its outcome from the client.
                    let _ = proxy.outcome.send(error);
                }
            }
        };
        runtime.serve(listener, serve).unwrap();
        (runtime, address)
    }

    async fn forward(&self, stream: Stream) -> Result<(), ForwardError> {
        let resources: Rc<Resources> = runtime::local().unwrap();
        let options = Options {
            tls: Some(Arc::clone(&self.tls)),
            ..Options::new("10.11.0-MariaDB-proxy", system_random())
        };
        let shared = Shared::new(options, resources, Arc::default());
        let mut client = Client::accept(stream, &shared, &AnyUser, 1).await.unwrap();
        let capabilities = client.info().capabilities;
        let login = Login {
            database: client.info().database.clone(),
            capabilities: (capabilities | self.own) & !self.not,
            compression: self.compression,
            ..login(&client.info().user)
        };
        let address = tcp(self.server_port);
        let mut server = connect(&address, TlsMode::Off, &login).await.unwrap();
        client.welcome(&OkPacket::default()).await.unwrap();
        client.set_timeouts(TIMEOUT, self.write_timeout);
        let agreed = server.agreed_with(capabilities);
        loop {
            let (client, server) = (client.link(), server.link());
            let peeked = client
                .peek_command(TIMEOUT, TaskClass::OutsideTransaction)
                .await;
            peeked.map_err(ForwardError::Client)?;
            let mut exchange = Exchange::command(client, server, agreed).await?;
            if exchange.command_byte() == CommandByte::QUIT {
                return Ok(());
            }
            while exchange.reply(client, server, limit()).await? == Turn::File {
                exchange.file(client, server).await?;
            }
        }
    }
}

fn end(runtime: Runtime) {
    runtime.handle().shutdown(Duration::ZERO);
    runtime.wait().unwrap();
}

#[test]
fn a_client_reads_what_it_reads_directly() {
    let server = start(&["--max-allowed-packet=64M".to_owned()]);
    let old = Capabilities::DEPRECATE_EOF | Capabilities::SESSION_TRACK;
    let methods = [None, Some(CompressionMethod::Zlib)];
    for (own, not) in [
        (old, Capabilities::default()),
        (Capabilities::default(), old),
    ] {
        for server_compression in methods {
            let (mut proxy, _outcomes) = Proxy::new(server.port());
            (proxy.own, proxy.not, proxy.compression) = (own, not, server_compression);
            let (runtime, address) = proxy.start(Io::Auto);
            on_worker(move || async move {
                let zstd = Some(CompressionMethod::Zstd { level: 1 });
                for without in [Capabilities::default(), Capabilities::DEPRECATE_EOF, old] {
                    for compression in [None, Some(CompressionMethod::Zlib), zstd] {
                        let mut login = Login {
                            compression,
                            ..login("native")
                        };
                        login.capabilities =
                            (login.capabilities | Capabilities::LOCAL_FILES) & !without;
                        let tls = match compression {
                            Some(CompressionMethod::Zlib) => {
                                TlsMode::Required(TlsClient::unverified().unwrap())
                            }
                            _ => TlsMode::Off,
                        };
                        let mut server = connect(&address, tls, &login).await.unwrap();
                        assert_reads_all(&mut server, "forwarded").await;
                        // In a debug build these take seconds.
                        if without == Capabilities::default() {
                            assert_long_packets_pass(&mut server).await;
                        }
                        server.close().await;
                    }
                }
            });
            end(runtime);
        }
    }
}

/// Packets of more than one frame, both ways.
async fn assert_long_packets_pass(server: &mut Server) {
    let mut text = b"select length('".to_vec();
    text.resize(text.len() + (17 << 20), b'x');
    text.extend_from_slice(b"'), repeat('y', 18000000)");
    let limits = QueryLimits {
        bytes_max: 64 << 20,
        ..limits()
    };
    let outcomes = server.query(&text, limits).await.unwrap();
    let [Outcome::Rows(rows)] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert_eq!(rows.rows[0][0].as_deref(), Some(&b"17825792"[..]));
    assert!(rows.rows[0][1].as_ref().unwrap() == &vec![b'y'; 18_000_000]);
}

/// A client that does not read a result of a gigabyte: what the proxy has taken of it is bounded by
/// sockets and marks, and the client is disconnected in time.
#[test]
fn a_client_that_stops_reading_holds_little() {
    /// Buffers of two sockets as far as Linux lets them grow by itself.
    const TAKEN_BYTES_MAX: u64 = 32 << 20;
    let server = start(&[]);
    for io in [Io::Epoll, Io::Auto] {
        let (mut proxy, outcomes) = Proxy::new(server.port());
        proxy.write_timeout = Duration::from_millis(500);
        let traffic = Arc::clone(&proxy.traffic);
        let (runtime, address) = proxy.start(io);
        on_worker(move || async move {
            let mut lazy = connect(&address, TlsMode::Off, &login("native"))
                .await
                .unwrap();
            let text = b"select repeat('x', 1000) from seq_1_to_1000000";
            lazy.send(CommandByte::QUERY, text).await.unwrap();
            // Another goes on meanwhile, and its time is what is waited by.
            let mut other = connect(&address, TlsMode::Off, &login("native"))
                .await
                .unwrap();
            let nap = b"select sleep(1)";
            other.query(nap, limits()).await.unwrap();
            assert_reads(&mut other, "beside a lazy one").await;
            drop(lazy);
        });
        let outcome = outcomes.recv_timeout(TIMEOUT).unwrap();
        let is_timeout = matches!(outcome, ForwardError::Client(Disconnect::WriteTimeout));
        assert!(is_timeout, "{outcome:?}");
        let taken = traffic.servers.received_bytes.value();
        // `on_worker` asks over both drivers, one after the other.
        assert!(taken < 2 * TAKEN_BYTES_MAX, "{taken} bytes of a gigabyte");
        end(runtime);
    }
}

#[test]
fn a_dropped_exchange_makes_both_links_unusable() {
    let server = start(&[]);
    let port = server.port();
    let (proxy, _outcomes) = Proxy::new(port);
    let (runtime, address) = proxy.start(Io::Auto);
    on_worker(move || async move {
        // Two servers: one is the client's end of nothing, and only lends its link.
        let mut client = connect(&address, TlsMode::Off, &login("native"))
            .await
            .unwrap();
        let mut server = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        let agreed = server.agreed_with(client.info().capabilities);
        server
            .send(CommandByte::QUERY, b"select sleep(5)")
            .await
            .unwrap();
        let (client, server) = (client.link(), server.link());
        let query = CommandByte::QUERY;
        let mut exchange = Exchange::of_sent(query, client, server, agreed).unwrap();
        let soon = Limit::after(Duration::from_millis(50));
        let late = exchange.reply(client, server, soon).await;
        assert!(matches!(late, Err(ForwardError::Server(Disconnect::Idle))));
        let next = Exchange::of_sent(query, client, server, agreed);
        assert!(matches!(next, Err(ForwardError::Unusable)));
        assert!(!client.is_at_rest() && !server.is_at_rest());
    });
    end(runtime);
}
