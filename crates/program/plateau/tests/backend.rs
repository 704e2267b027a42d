//! Plateau as the server of `backend`: each method, compression and TLS; and a user whose login at
//! one place is enough to log in at another.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use auth::{ClientAuthError, Method, Random, StoredSecret};
use backend::{
    ClientSecret, ConnectError, KeyPolicy, Login, Outcome, ProxyVersion, QueryLimits, Server,
    Target, TlsClient, TlsMode,
};
use front::{
    Account, AccountSource, Client, Credential, Options, Peer, SecretUse, Shared, system_random,
};
use link::{Limit, PacketMemory, Resources};
use runtime::{Address, Io, Listener, Runtime, Stream};
use testkit::Launch;
use wire::{CompressionMethod, OkPacket};

const TIMEOUT: Duration = Duration::from_secs(60);

/// An account of each method; the password of all is `secret`.
const SET_UP: &[&str] = &[
    "create user native@'%' identified by 'secret'",
    "create user sha2@'%' identified with caching_sha2_password by 'secret'",
    "create user signed@'%' identified via ed25519 using password('secret')",
    "grant select on *.* to native@'%', sha2@'%', signed@'%'",
];

fn start() -> (testkit::Server, testkit::Client) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("it serves");
    for statement in SET_UP {
        root.run(statement).expect(statement);
    }
    (server, root)
}

fn start_runtime(io: Io) -> Runtime {
    let options = runtime::Options {
        worker_count: 1,
        io,
        pin: false,
        helper_count: 1,
        ..runtime::Options::default()
    };
    let start = || {
        let memory = PacketMemory::new(256 << 20);
        runtime::set_local(Resources::new(memory, Arc::default()));
    };
    Runtime::start(options, start).unwrap()
}

fn end(runtime: Runtime) {
    runtime.handle().shutdown(Duration::ZERO);
    runtime.wait().unwrap();
}

fn tcp(port: u16) -> Address {
    Address::Tcp(([127, 0, 0, 1], port).into())
}

fn login(user: &str) -> Login {
    Login::new(user, ClientSecret::password(b"secret"))
}

async fn connect(address: &Address, tls: &TlsMode, login: &Login) -> Result<Server, ConnectError> {
    connect_to(&target(address, tls, None), login).await
}

fn target(address: &Address, tls: &TlsMode, proxy_header: Option<ProxyVersion>) -> Target {
    Target {
        address: address.clone(),
        tls: tls.clone(),
        proxy_header,
        connect_timeout: TIMEOUT,
        io_timeout: TIMEOUT,
    }
}

async fn connect_to(target: &Target, login: &Login) -> Result<Server, ConnectError> {
    let resources: Rc<Resources> = runtime::local().unwrap();
    let source = system_random();
    let mut fill = |bytes: &mut [u8]| source(bytes);
    Server::connect(target, login, &resources, &mut Random(&mut fill)).await
}

/// Who the server says that is.
async fn assert_is(server: &mut Server, user: &str) {
    let limits = QueryLimits {
        until: Limit::after(TIMEOUT),
        bytes_max: 1 << 20,
    };
    let text = b"select current_user(), repeat('x', 100000)";
    let outcomes = server.query(text, limits).await.unwrap();
    let [Outcome::Rows(rows)] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    let name = format!("{user}@%").into_bytes();
    assert_eq!(rows.rows, [[Some(name), Some(vec![b'x'; 100_000])]]);
}

#[test]
fn every_method_compression_and_transport() {
    let (server, _root) = start();
    let (port, socket) = (server.port(), server.socket());
    for io in [Io::Epoll, Io::Auto] {
        let runtime = start_runtime(io);
        let socket = socket.clone();
        runtime.block_on_worker(0, move || async move {
            let unverified = TlsMode::Required(TlsClient::unverified().unwrap());
            for (address, tls) in [
                (tcp(port), TlsMode::Off),
                (tcp(port), unverified),
                (Address::Unix(socket), TlsMode::Off),
            ] {
                for compression in [
                    None,
                    Some(CompressionMethod::Zlib),
                    Some(CompressionMethod::Zstd { level: 3 }),
                ] {
                    for user in ["native", "sha2", "signed"] {
                        let login = Login {
                            compression,
                            key_policy: KeyPolicy::Ask,
                            ..login(user)
                        };
                        let mut server = connect(&address, &tls, &login).await.unwrap();
                        assert_eq!(server.info().compression, compression);
                        assert_is(&mut server, user).await;
                        server.close().await;
                    }
                }
            }
        });
        end(runtime);
    }
}

#[test]
fn a_server_is_told_the_client_before_tls_begins() {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let settings = ["proxy_protocol_networks=localhost"];
    let server = launch.with_settings(settings).start().unwrap();
    let mut root = server.connect().unwrap();
    root.run(SET_UP[0]).unwrap();
    let (port, socket) = (server.port(), server.socket());
    let runtime = start_runtime(Io::Auto);
    runtime.block_on_worker(0, move || async move {
        let unverified = TlsMode::Required(TlsClient::unverified().unwrap());
        for (address, tls) in [
            (tcp(port), TlsMode::Off),
            (tcp(port), unverified),
            (Address::Unix(socket), TlsMode::Off),
        ] {
            for version in [ProxyVersion::V1, ProxyVersion::V2] {
                for (client, host) in [
                    (None, "localhost"),
                    (Some("10.1.2.3:4"), "10.1.2.3"),
                    (Some("[2001:db8::1]:4"), "2001:db8::1"),
                ] {
                    let login = Login {
                        client: client.map(|it| it.parse().unwrap()),
                        ..login("native")
                    };
                    let target = target(&address, &tls, Some(version));
                    let mut server = connect_to(&target, &login).await.unwrap();
                    let limits = QueryLimits {
                        until: Limit::after(TIMEOUT),
                        bytes_max: 1 << 20,
                    };
                    let outcomes = server.query(b"select user()", limits).await.unwrap();
                    let [Outcome::Rows(rows)] = &outcomes[..] else {
                        panic!("{outcomes:?}")
                    };
                    let name = format!("native@{host}").into_bytes();
                    assert_eq!(rows.rows, [[Some(name)]], "{address} {version:?}");
                    server.close().await;
                }
            }
        }
    });
    end(runtime);
}

#[test]
fn a_hash_is_enough_while_the_servers_cache_knows_the_password() {
    let (server, mut root) = start();
    let port = server.port();
    // SHA256('secret').
    let digest = {
        let text = root.value("select sha2('secret', 256)").unwrap().unwrap();
        let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        let mut digest = [0; 32];
        digest
            .iter_mut()
            .enumerate()
            .for_each(|(at, place)| *place = byte(at * 2));
        digest
    };
    let runtime = start_runtime(Io::Auto);
    let by_hash = Login::new("sha2", ClientSecret::Sha256(digest));
    let attempt = move |login: Login| {
        move || async move {
            let connected = connect(&tcp(port), &TlsMode::Off, &login).await;
            connected.map(drop).map_err(|error| match error {
                ConnectError::Authentication(error) => error,
                other => panic!("{other}"),
            })
        }
    };
    let run = |login: &Login| runtime.block_on_worker(0, attempt(login.clone()));
    assert_eq!(run(&by_hash), Err(ClientAuthError::PasswordNeeded));
    // Without TLS the key has to be asked for.
    assert_eq!(run(&login("sha2")), Err(ClientAuthError::KeyNotAllowed));
    let asking = Login {
        key_policy: KeyPolicy::Ask,
        ..login("sha2")
    };
    assert_eq!(run(&asking), Ok(()));
    assert_eq!(run(&by_hash), Ok(()));
    root.run("flush privileges").unwrap();
    assert_eq!(run(&by_hash), Err(ClientAuthError::PasswordNeeded));
    end(runtime);
}

/// Accounts of the same names and passwords.
struct SameAccounts;

impl AccountSource for SameAccounts {
    fn find(&self, user: &str, _peer: Peer) -> Option<Account> {
        let method = match user {
            "native" => Method::NativePassword,
            "sha2" => Method::CachingSha2,
            "signed" => Method::Ed25519,
            _ => return None,
        };
        let source = system_random();
        let mut fill = |bytes: &mut [u8]| source(bytes);
        let random = &mut Random(&mut fill);
        let secret = StoredSecret::from_password(method, b"secret", random).unwrap();
        Some(Account {
            user: user.to_owned(),
            host: "%".to_owned(),
            credential: Credential::Secret(secret),
            is_locked: false,
            requires_tls: false,
        })
    }
}

/// Lets a client in, and logs in to the server by what the client has shown, if it has.
async fn pass_on(stream: Stream, shared: Rc<Shared>, port: u16) -> bool {
    let accepted = Client::accept(stream, &shared, &SameAccounts, 7).await;
    let mut client = accepted.unwrap();
    client.welcome(&OkPacket::default()).await.unwrap();
    let user = client.info().user.clone();
    let Some(secret) = client.info().secret.clone() else {
        return false;
    };
    assert!(!matches!(&*secret, ClientSecret::Password(_)));
    let login = Login::new(user.clone(), *secret);
    let mut server = connect(&tcp(port), &TlsMode::Off, &login).await.unwrap();
    assert_is(&mut server, &user).await;
    true
}

#[test]
fn a_login_yields_what_logs_in_elsewhere() {
    let (server, _root) = start();
    let port = server.port();
    for (secret_use, user, is_passed_on) in [
        (SecretUse::Keep, "native", true),
        (SecretUse::Keep, "sha2", true),
        // A signature tells nothing.
        (SecretUse::Keep, "signed", false),
        (SecretUse::Forget, "native", false),
    ] {
        let runtime = start_runtime(Io::Auto);
        let listener = Listener::bind(&tcp(0)).unwrap();
        let address = listener.address().clone();
        let options = Options {
            secret_use,
            tls: Some(own_certificate()),
            ..Options::new("10.11.0-MariaDB-gateway", system_random())
        };
        let (sender, passed_on) = std::sync::mpsc::channel();
        let serve = move |stream| {
            let resources: Rc<Resources> = runtime::local().unwrap();
            let shared = Shared::new(options.clone(), resources, Arc::default());
            let sender = sender.clone();
            async move { sender.send(pass_on(stream, shared, port).await).unwrap() }
        };
        runtime.serve(listener, serve).unwrap();
        runtime.block_on_worker(0, move || async move {
            // The server's cache has to know the password before its hash is enough.
            let asking = Login {
                key_policy: KeyPolicy::Ask,
                ..login(user)
            };
            let first = connect(&tcp(port), &TlsMode::Off, &asking).await.unwrap();
            first.close().await;
            let tls = TlsMode::Required(TlsClient::unverified().unwrap());
            connect(&address, &tls, &login(user)).await.unwrap();
        });
        let passed_on = passed_on.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(passed_on, is_passed_on, "{user} {secret_use:?}");
        end(runtime);
    }
}

fn own_certificate() -> Arc<rustls::ServerConfig> {
    let pair = front::CertificatePair::generate(&["localhost"]).unwrap();
    pair.to_tls_config().unwrap()
}
