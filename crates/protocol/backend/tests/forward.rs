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

use backend::{
    ClientSecret, ConnectError, Login, Outcome, QueryLimits, RequestError, Server, TlsClient,
    TlsMode,
};
use errcode::Retry;
use front::{Account, AccountSource, Client, Credential, Options, Peer, Shared, system_random};
use link::{
    Disconnect, Ending, Exchange, ForwardError, Limit, Link, PacketMemory, Part, PeerRole,
    Resources, Traffic, Turn,
};
use runtime::{Address, Io, Listener, Runtime, Stream, TaskClass};
use support::replies::{SET_UP, assert_reads, assert_reads_all, limits, login, start, texts};
use support::{change_user, connect, limit, on_worker, resources, tcp};
use wire::{
    Capabilities, Command, CommandByte, CompressionMethod, OkPacket, SessionChange, SessionChanges,
};

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
            ..runtime::Options::default()
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
        let agreed = server.agreed_with(capabilities).unwrap();
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
            if exchange.is_stream() {
                exchange.stream(client, server, TIMEOUT).await?;
                continue;
            }
            loop {
                match exchange.reply(client, server, limit()).await? {
                    Turn::Over(_) => break,
                    Turn::File => exchange.file(client, server).await?,
                    Turn::Authentication => exchange.authentication(client, server).await?,
                }
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

/// Logs in again as an account of another method, which the server has to ask for more.
#[test]
fn another_user_logs_in_through_a_proxy() {
    let server = start(&[]);
    let (proxy, _outcomes) = Proxy::new(server.port());
    let (runtime, address) = proxy.start(Io::Auto);
    on_worker(move || async move {
        for compression in [None, Some(CompressionMethod::Zlib)] {
            let native = Login {
                compression,
                ..login("native")
            };
            let mut server = connect(&address, TlsMode::Off, &native).await.unwrap();
            change_user(&mut server, &login("signed")).await.unwrap();
            assert_reads(&mut server, "as another").await;
            let asked = server.query(b"select current_user()", limits()).await;
            let [Outcome::Rows(rows)] = &asked.unwrap()[..] else {
                panic!("a user");
            };
            assert_eq!(rows.rows, texts(&[&[Some("signed@%")]]));
            let wrong = Login::new("signed", ClientSecret::password(b"wrong"));
            let refused = change_user(&mut server, &wrong).await.unwrap_err();
            assert!(
                matches!(&refused, ConnectError::Refused(error) if error.code.number() == 1045),
                "{refused:?}"
            );
        }
    });
    end(runtime);
}

/// COM_BINLOG_DUMP from the first file's start.
fn dump(flags: u16) -> Vec<u8> {
    let mut body = 4_u32.to_le_bytes().to_vec();
    body.extend_from_slice(&flags.to_le_bytes());
    body.extend_from_slice(&77_u32.to_le_bytes());
    body.extend_from_slice(b"log.000001");
    body
}

const BINLOG_DUMP: u8 = 18;

fn with_binlog() -> testkit::Server {
    let arguments = ["--log-bin=log", "--server-id=1", "--binlog-format=ROW"];
    start(&arguments.map(str::to_owned))
}

/// Logs in as a replica does.
async fn replica(address: &Address, more: &[&str]) -> Server {
    let mut server = connect(address, TlsMode::Off, &login("native"))
        .await
        .unwrap();
    let own = ["set @master_binlog_checksum='NONE', @mariadb_slave_capability=4"];
    for statement in own.iter().chain(more) {
        let outcomes = server.query(statement.as_bytes(), limits()).await.unwrap();
        let is_done = matches!(outcomes[..], [Outcome::Done { .. }]);
        assert!(is_done, "{outcomes:?}");
    }
    server
}

#[test]
fn a_dump_that_ends_is_passed_on_to_its_end() {
    /// The server sends EOF where its log ends now.
    const NON_BLOCKING: u16 = 1;
    let server = with_binlog();
    let port = server.port();
    let (proxy, _outcomes) = Proxy::new(port);
    let (runtime, address) = proxy.start(Io::Auto);
    on_worker(move || async move {
        let mut dumps = Vec::new();
        for address in [&tcp(port), &address] {
            let mut server = replica(address, &[]).await;
            server.send(BINLOG_DUMP, &dump(NON_BLOCKING)).await.unwrap();
            let mut events = Vec::new();
            while let Some(received) = server.receive(limit()).await.unwrap() {
                if received.part() == Part::Row {
                    events.push(received.bytes().to_vec());
                }
            }
            assert!(server.is_at_rest());
            // MariaDB closes the connection after a dump.
            let next = server.ping(limit()).await.unwrap_err();
            assert!(matches!(next, RequestError::Unanswered(_)), "{next:?}");
            assert_eq!(next.retry(), Retry::IfRead);
            dumps.push(events);
        }
        assert!(SET_UP.len() < dumps[0].len());
        assert!(dumps[0] == dumps[1]);
    });
    end(runtime);
}

/// A replica that waits for events, acknowledges each, and goes while nothing happens.
#[test]
fn a_dump_goes_on_until_the_client_goes() {
    let server = with_binlog();
    let port = server.port();
    let (proxy, outcomes) = Proxy::new(port);
    let (runtime, address) = proxy.start(Io::Auto);
    on_worker(move || async move {
        let mut writer = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        for statement in [
            "set global rpl_semi_sync_master_enabled=on",
            "set global rpl_semi_sync_master_timeout=60000",
        ] {
            writer.query(statement.as_bytes(), limits()).await.unwrap();
        }
        let before = acknowledged_count(&mut writer).await;
        let mut server = replica(&address, &["set @rpl_semi_sync_slave=1"]).await;
        server.send(BINLOG_DUMP, &dump(0)).await.unwrap();
        // The server knows its replica once it sends.
        server.receive(limit()).await.unwrap().unwrap();
        let writing = runtime::spawn(async move {
            // Ends when the replica has acknowledged it.
            let insert = b"insert into t select max(a) + 1, 'x' from t";
            writer.query(insert, limits()).await.unwrap();
            acknowledged_count(&mut writer).await
        });
        loop {
            let received = server.receive(limit()).await.unwrap().unwrap();
            if let [0, SEMI_SYNC, 1, event @ ..] = received.bytes() {
                let event = event.to_vec();
                drop(received);
                acknowledge(&mut server, &event).await;
                break;
            }
        }
        assert_eq!(writing.await, before + 1);
        drop(server);
    });
    for _ in 0..2 {
        let outcome = outcomes.recv_timeout(TIMEOUT).unwrap();
        let is_gone = matches!(outcome, ForwardError::Client(_));
        assert!(is_gone, "{outcome:?}");
    }
    end(runtime);
}

/// Before an event, where the server is semi-synchronous: this byte, and whether it waits.
const SEMI_SYNC: u8 = 0xEF;

/// Says that the replica has an event: where it ends in the log.
async fn acknowledge(server: &mut Server, event: &[u8]) {
    let end = event.get(13..17).unwrap();
    let answer = [&[SEMI_SYNC][..], end, &[0; 4], b"log.000001"].concat();
    let link = server.link();
    link.begin_command().unwrap();
    link.out().packet(&answer);
    link.flush().await.unwrap();
}

/// Commits that a replica has acknowledged.
async fn acknowledged_count(server: &mut Server) -> u64 {
    let status = b"show status like 'Rpl_semi_sync_master_yes_tx'";
    let outcomes = server.query(status, limits()).await.unwrap();
    let [Outcome::Rows(rows)] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    let count = rows.rows[0][1].as_deref().unwrap();
    String::from_utf8_lossy(count).parse().unwrap()
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

/// What a gateway sends on so that a replica's reader sees its own writes.
#[test]
fn an_exchange_tells_the_last_gtid_and_the_schema() {
    let server = with_binlog();
    let port = server.port();
    on_worker(move || async move {
        let native = login("native");
        let mut server = connect(&tcp(port), TlsMode::Off, &native).await.unwrap();
        // Nothing reads what the client gets.
        let sink = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let sink_address = Address::Tcp(sink.local_addr().unwrap());
        let stream = Stream::connect(&sink_address).await.unwrap();
        let mut client = Link::new(stream, PeerRole::Client, &resources(), 1 << 20, TIMEOUT);
        let track = b"set session_track_system_variables='last_gtid', \
                      session_track_schema=1";
        server.query(track, limits()).await.unwrap();
        let agreed = server.agreed_with(server.info().capabilities).unwrap();
        let mut tell = async |statement: &[u8]| {
            let (query, server) = (CommandByte::QUERY, server.link());
            server.begin_command().unwrap();
            Command::encode(server.out(), query, statement);
            server.follow_sequence();
            server.flush().await.unwrap();
            let mut exchange = Exchange::of_sent(query, &mut client, server, agreed).unwrap();
            let over = exchange.reply(&mut client, server, limit()).await.unwrap();
            assert!(matches!(over, Turn::Over(Ending::Status(_))));
            exchange.session_changes().unwrap().to_vec()
        };
        let changes = tell(b"insert into t select max(a) + 1, 'x' from t").await;
        let changes: Vec<_> = SessionChanges::decode(&changes).collect();
        let [SessionChange::Variable { name, value }] = changes[..] else {
            panic!("{changes:?}")
        };
        assert_eq!(name, b"last_gtid");
        assert!(value.starts_with(b"0-1-"), "{value:?}");
        let changes = tell(b"use mysql").await;
        let changes: Vec<_> = SessionChanges::decode(&changes).collect();
        assert_eq!(changes, [SessionChange::Schema(b"mysql")]);
        assert_eq!(tell(b"select 1").await, b"");
    });
}

#[test]
fn who_may_be_used_after_an_exchange_that_failed_or_was_dropped() {
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
        let agreed = server.agreed_with(client.info().capabilities).unwrap();
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
        assert!(client.is_usable() && !server.is_usable());
        let refused = Exchange::of_sent(query, client, server, agreed);
        assert!(matches!(refused, Err(ForwardError::Unusable)));
        // Nothing of a reply had come, so another server may answer the client.
        let mut other = connect(&tcp(port), TlsMode::Off, &login("native"))
            .await
            .unwrap();
        let sent = other.send(CommandByte::QUERY, b"select sleep(5)").await;
        sent.unwrap();
        let other = other.link();
        let mut exchange = Exchange::of_sent(query, client, other, agreed).unwrap();
        let reply = exchange.reply(client, other, limit());
        let given_up = runtime::timeout(Duration::from_millis(50), reply).await;
        assert!(given_up.is_err());
        assert!(!client.is_usable() && !other.is_usable());
        assert!(!client.is_at_rest() && !other.is_at_rest());
    });
    end(runtime);
}
