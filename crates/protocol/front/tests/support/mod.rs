//! A server with a toy session on a real runtime, and a blocking client made of `wire`'s other
//! half, with or without TLS and compression.
#![allow(dead_code, reason = "each test program uses its part")]

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use auth::{
    ClientExchange, ClientSecret, ClientStep, KeyPolicy, Method, Random, RsaKey, StoredSecret,
    Transport,
};
use env::Clock as _;
use env::linux::SystemClock;
use errcode::{ClientError, ER_BAD_DB_ERROR, ER_MALFORMED_PACKET, ER_UNKNOWN_COM_ERROR};
use front::{
    Account, AccountSource, CertificatePair, Client, Credential, Disconnect, LoginRules, Options,
    PacketMemory, Peer, Resources, Shared, system_random,
};
use runtime::{Address, Io, Listener, Runtime, Stream, TaskClass};
use sync::{OneshotSender, oneshot};
use wire::{
    AuthMoreData, AuthSwitch, Capabilities, ChangeUser, ColumnDefinition, ColumnType, Command,
    CompressionMethod, Compressor, DecompressStep, Decompressor, ErrorPacket, Handshake, Login,
    OkKind, OkPacket, PacketWriter, ResultHead, StatusFlags, TextRow, end_columns, end_rows,
};

/// One account for each method, password `secret`; `trusted` needs none, `locked` is locked,
/// `tls` needs TLS, `empty` has no password.
pub(crate) struct TestAccounts;

impl AccountSource for TestAccounts {
    fn find(&self, user: &str, _peer: Peer) -> Option<Account> {
        let source = system_random();
        let mut fill = |bytes: &mut [u8]| source(bytes);
        let mut random = Random(&mut fill);
        let mut secret = |method, password: &[u8]| {
            let secret = StoredSecret::from_password(method, password, &mut random);
            Credential::Secret(secret.expect("a short password"))
        };
        let credential = match user {
            "native" | "locked" | "tls" => secret(Method::NativePassword, b"secret"),
            "sha2" => {
                // What a server keeps is the same at each login.
                const STORED: &[u8] = b"$A$005$\x03\x1Ai%\x1C4)\\K5\x16|\x7F\x1EZ{c\x09\x13\
                    IP9tbM4PKZBFy5HV3hhhoRHZsnJs3hxnBuuQlsDdiIe7";
                let stored = StoredSecret::parse(Method::CachingSha2, STORED);
                Credential::Secret(stored.expect("a stored secret"))
            }
            "ed25519" => secret(Method::Ed25519, b"secret"),
            "empty" => secret(Method::NativePassword, b""),
            "trusted" => Credential::Trusted,
            _ => return None,
        };
        Some(Account {
            user: user.to_owned(),
            host: "%".to_owned(),
            credential,
            is_locked: user == "locked",
            requires_tls: user == "tls",
        })
    }
}

/// The password of an account of [`TestAccounts`].
pub(crate) fn password(user: &str) -> &'static str {
    match user {
        "sha2" => "foobar",
        "empty" | "trusted" => "",
        _ => "secret",
    }
}

/// A running server; ended when dropped.
pub(crate) struct TestServer {
    runtime: Option<Runtime>,
    pub(crate) address: SocketAddr,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.handle().shutdown(Duration::ZERO);
            let _ = runtime.wait();
        }
    }
}

/// The options of a server that offers everything, with a time limit that a machine under load
/// keeps too. Key and certificate are made once: that takes long without optimization.
pub(crate) fn options() -> Options {
    static KEYS: OnceLock<(Arc<rustls::ServerConfig>, Arc<RsaKey>)> = OnceLock::new();
    let (tls, rsa_key) = KEYS.get_or_init(|| {
        let pair = CertificatePair::generate(&["localhost"]).expect("a certificate");
        let random = system_random();
        let mut fill = |bytes: &mut [u8]| random(bytes);
        let key = RsaKey::generate(&mut Random(&mut fill)).expect("a key");
        (pair.to_tls_config().expect("a usable pair"), Arc::new(key))
    });
    Options {
        tls: Some(Arc::clone(tls)),
        rsa_key: Some(Arc::clone(rsa_key)),
        rules: LoginRules {
            connect_timeout: Duration::from_secs(100),
            ..LoginRules::default()
        },
        ..Options::new("10.11.0-MariaDB-test", system_random())
    }
}

impl TestServer {
    pub(crate) fn start(options: Options) -> TestServer {
        TestServer::start_at(options, &[Address::Tcp(([127, 0, 0, 1], 0).into())])
    }

    pub(crate) fn start_at(options: Options, addresses: &[Address]) -> TestServer {
        TestServer::start_on(Io::Epoll, options, addresses, Duration::ZERO)
    }

    /// Its worker is held up for so long before it greets somebody, and again behind that.
    pub(crate) fn start_late(io: Io, options: Options, late: Duration) -> TestServer {
        let address = Address::Tcp(([127, 0, 0, 1], 0).into());
        TestServer::start_on(io, options, &[address], late)
    }

    fn start_on(io: Io, options: Options, addresses: &[Address], late: Duration) -> TestServer {
        let runtime_options = runtime::Options {
            worker_count: 1,
            io,
            pin: false,
            helper_count: 1,
            ..runtime::Options::default()
        };
        let start_worker = move || {
            let resources = Resources::new(PacketMemory::new(256 << 20), Arc::default());
            runtime::set_local(Shared::new(options.clone(), resources, Arc::default()));
            runtime::set_local(Rc::new(Late(late)));
            runtime::set_local(Rc::new(Held::default()));
        };
        let runtime = Runtime::start(runtime_options, start_worker).expect("a runtime");
        let mut bound = SocketAddr::from(([127, 0, 0, 1], 0));
        for address in addresses {
            let listener = Listener::bind(address).expect("a free port");
            if let Address::Tcp(address) = listener.address() {
                bound = *address;
            }
            runtime.serve(listener, serve).expect("a listener");
        }
        TestServer {
            runtime: Some(runtime),
            address: bound,
        }
    }
}

/// How long the worker is held up.
struct Late(Duration);

impl Late {
    fn hold_up(&self) {
        let began = SystemClock.now();
        while SystemClock.now().since(began) < self.0 {}
    }
}

/// What a statement `HOLD` waits for.
#[derive(Default)]
struct Held(Cell<Option<OneshotSender<()>>>);

async fn serve(stream: Stream) {
    let late: Rc<Late> = runtime::local().expect("each worker has one");
    late.hold_up();
    runtime::spawn(async move { late.hold_up() });
    let shared: Rc<Shared> = runtime::local().expect("each worker has one");
    let Ok(client) = Client::accept(stream, &shared, &TestAccounts, 7).await else {
        return;
    };
    // A toy has nothing to tell of how its sessions end.
    let _ = session(client).await;
}

async fn session(mut client: Client) -> Result<(), Disconnect> {
    if client.info().database.as_deref() == Some("missing") {
        let error = ClientError::new(ER_BAD_DB_ERROR, &[&"missing"]);
        client.dismiss(&error).await;
        return Ok(());
    }
    let ok = OkPacket {
        status: StatusFlags::AUTOCOMMIT,
        ..OkPacket::default()
    };
    client.welcome(&ok).await?;
    loop {
        let bytes = client
            .read_command(Duration::from_secs(20), TaskClass::OutsideTransaction)
            .await?;
        let capabilities = client.capabilities();
        match Command::decode(&bytes, capabilities) {
            Ok(Command::Quit) => {
                client.close().await;
                return Ok(());
            }
            Ok(Command::Query(text)) => query(&mut client, text).await?,
            Ok(Command::ChangeUser(command)) => {
                if client.change_user(&command, &TestAccounts).await.is_err() {
                    client.close().await;
                    return Ok(());
                }
                ok.encode(client.out(), capabilities, OkKind::Ok);
            }
            Ok(command) if command.is_silent() => {}
            Ok(Command::Ping | Command::InitDb(_) | Command::ResetConnection) => {
                ok.encode(client.out(), capabilities, OkKind::Ok);
            }
            Ok(_) => {
                ErrorPacket::encode(client.out(), &ClientError::new(ER_UNKNOWN_COM_ERROR, &[]));
            }
            Err(_) => {
                ErrorPacket::encode(client.out(), &ClientError::new(ER_MALFORMED_PACKET, &[]));
            }
        }
    }
}

/// Statements of the toy: `ROWS count bytes` answers that many rows; `HOLD count bytes` too, but
/// behind its first row it sends the replies before its own and waits for a `RELEASE` of another
/// client; `INFILE` asks for a file and answers its length, `LENGTH ...` answers its own length;
/// all else answers one row of `1`.
async fn query(client: &mut Client, text: &[u8]) -> Result<(), Disconnect> {
    let capabilities = client.capabilities();
    let words: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
    let number = |index: usize| -> usize {
        let word = words.get(index).copied().unwrap_or_default();
        std::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0)
    };
    let held: Rc<Held> = runtime::local().expect("each worker has one");
    let (rows, value) = match words.first() {
        Some(&b"ROWS" | &b"HOLD") => (number(1), vec![b'x'; number(2)]),
        Some(&b"LENGTH") => (1, text.len().to_string().into_bytes()),
        Some(&b"INFILE") => {
            client.request_local_infile(b"some.csv").await?;
            let mut total = 0;
            while let Some(piece) = client.read_local_infile().await? {
                total += piece.len();
            }
            let ok = OkPacket {
                affected_rows: total.try_into().unwrap_or(0),
                ..OkPacket::default()
            };
            ok.encode(client.out(), capabilities, OkKind::Ok);
            return Ok(());
        }
        Some(&b"RELEASE") => {
            held.0.take().expect("a statement is held").deliver(());
            (1, b"1".to_vec())
        }
        Some(_) | None => (1, b"1".to_vec()),
    };
    ResultHead::encode(client.out(), capabilities, 1);
    ColumnDefinition::new(b"c", ColumnType::VarString).encode(client.out(), capabilities);
    end_columns(client.out(), capabilities, StatusFlags::AUTOCOMMIT, 0);
    for index in 0..rows {
        let mut row = TextRow::begin(client.out());
        row.bytes(&value);
        row.finish();
        if words.first() == Some(&b"HOLD".as_slice()) && index == 0 {
            let (release, released) = oneshot();
            held.0.set(Some(release));
            client.post_replies().await?;
            released.receive().await;
        }
        if client.should_flush() {
            client.flush().await?;
        }
    }
    let ok = OkPacket {
        status: StatusFlags::AUTOCOMMIT,
        ..OkPacket::default()
    };
    end_rows(client.out(), capabilities, &ok);
    client.end_reply();
    Ok(())
}

/// Whatever bytes go over.
pub(crate) trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

/// A blocking client.
pub(crate) struct TestClient {
    pub(crate) stream: Box<dyn Wire>,
    /// What is under the stream, if it is TCP.
    socket: Option<TcpStream>,
    pub(crate) capabilities: Capabilities,
    challenge: Vec<u8>,
    compression: Option<CompressionMethod>,
    compressor: Compressor,
    decompressor: Decompressor,
    /// Received and decompressed, not taken.
    plain: Vec<u8>,
    compressed: Vec<u8>,
    sequence: u8,
    /// Of the next compressed packet, either way.
    compressed_id: u8,
}

/// How a test client logs in.
pub(crate) struct LoginAs<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) database: Option<&'a str>,
    /// What it can do, besides what every client can.
    pub(crate) capabilities: Capabilities,
    pub(crate) with_tls: bool,
    /// What it sends before anything else.
    pub(crate) header: &'a [u8],
}

impl<'a> LoginAs<'a> {
    /// A plain login with the right password.
    pub(crate) fn user(user: &'a str) -> LoginAs<'a> {
        LoginAs {
            user,
            password: password(user),
            database: None,
            capabilities: Capabilities::default(),
            with_tls: false,
            header: b"",
        }
    }
}

impl TestClient {
    /// Connects and takes the greeting.
    pub(crate) fn connect(stream: Box<dyn Wire>) -> TestClient {
        let mut client = TestClient {
            stream,
            socket: None,
            capabilities: Capabilities::SERVER,
            challenge: Vec::new(),
            compression: None,
            compressor: Compressor::new(),
            decompressor: Decompressor::new(),
            plain: Vec::new(),
            compressed: Vec::new(),
            sequence: 0,
            compressed_id: 0,
        };
        let greeting = client.read().expect("a greeting");
        let greeting = Handshake::decode(&greeting).expect("a well-formed greeting");
        client.challenge = greeting.scramble.to_vec();
        client
    }

    pub(crate) fn tcp(server: SocketAddr) -> TestClient {
        let socket = tcp(server);
        let stream = socket.try_clone().expect("a socket");
        TestClient {
            socket: Some(socket),
            ..TestClient::connect(Box::new(stream))
        }
    }

    /// Logs in; answers the server's verdict.
    pub(crate) fn log_in(
        server: SocketAddr,
        login: &LoginAs<'_>,
    ) -> Result<TestClient, ClientError> {
        let mut client = TestClient::tcp(server);
        if login.with_tls {
            client = client.start_tls(server, login);
        }
        client.finish_login(login)?;
        Ok(client)
    }

    /// Logs in without TLS over a connected stream.
    pub(crate) fn log_in_over(
        stream: Box<dyn Wire>,
        login: &LoginAs<'_>,
    ) -> Result<TestClient, ClientError> {
        let mut client = TestClient::connect(stream);
        client.finish_login(login)?;
        Ok(client)
    }

    fn start_tls(mut self, server: SocketAddr, login: &LoginAs<'_>) -> TestClient {
        drop(self.stream);
        let mut socket = tcp(server);
        let mut plain = TestClient::connect(Box::new(socket.try_clone().expect("a socket")));
        let mut out = PacketWriter::new();
        out.set_sequence(1);
        let capabilities = Capabilities::SERVER | login.capabilities | Capabilities::SSL;
        Login::with(capabilities).encode_tls_request(&mut out);
        socket.write_all(login.header).expect("a server that reads");
        socket
            .write_all(out.as_bytes())
            .expect("a server that reads");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("known versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        let name = "localhost".try_into().expect("a name");
        let connection = rustls::ClientConnection::new(Arc::new(config), name).expect("a config");
        plain.socket = Some(socket.try_clone().expect("a socket"));
        plain.stream = Box::new(rustls::StreamOwned::new(connection, socket));
        plain.sequence = 2;
        self = plain;
        self
    }

    fn finish_login(&mut self, login: &LoginAs<'_>) -> Result<(), ClientError> {
        self.capabilities = Capabilities::SERVER | login.capabilities;
        if login.with_tls {
            self.capabilities = self.capabilities | Capabilities::SSL;
        } else {
            self.stream.write_all(login.header).expect("a server");
        }
        let transport = if login.with_tls {
            Transport::Secure
        } else {
            Transport::Plain
        };
        let mut exchange = self.exchange(Method::NativePassword, login.password, transport);
        let response = exchange.first_response().expect("a password");
        let mut out = PacketWriter::new();
        out.set_sequence(self.sequence);
        Login {
            user: login.user.as_bytes(),
            auth_data: &response,
            auth_plugin: b"mysql_native_password",
            database: login.database.map(str::as_bytes),
            zstd_level: 3,
            ..Login::with(self.capabilities)
        }
        .encode(&mut out);
        self.sequence = out.sequence();
        self.stream
            .write_all(out.as_bytes())
            .expect("a server that reads");
        self.finish_exchange(&mut exchange, login.password, transport)?;
        if self.capabilities.contains(Capabilities::COMPRESS) {
            self.compression = Some(CompressionMethod::Zlib);
        } else if self.capabilities.contains(Capabilities::ZSTD_COMPRESSION) {
            self.compression = Some(CompressionMethod::Zstd { level: 3 });
        }
        Ok(())
    }

    fn exchange(&self, method: Method, password: &str, transport: Transport) -> ClientExchange {
        let challenge = &self.challenge;
        let secret = ClientSecret::password(password.as_bytes());
        ClientExchange::new(method, &secret, challenge, transport, KeyPolicy::Ask)
    }

    fn finish_exchange(
        &mut self,
        exchange: &mut ClientExchange,
        password: &str,
        transport: Transport,
    ) -> Result<(), ClientError> {
        let source = system_random();
        let mut fill = |bytes: &mut [u8]| source(bytes);
        let mut random = Random(&mut fill);
        loop {
            let packet = self.read().expect("a verdict");
            match packet.first() {
                Some(0) => return Ok(()),
                Some(0xFF) => return Err(error_of(&packet)),
                Some(0xFE) => {
                    let switch = AuthSwitch::decode(&packet).expect("an auth switch");
                    let method = Method::from_client_plugin(switch.plugin).expect("a plugin");
                    self.challenge = switch.data.to_vec();
                    *exchange = self.exchange(method, password, transport);
                    self.write(&exchange.first_response().expect("a password"));
                }
                _ => {
                    let data = AuthMoreData::decode(&packet).expect("more data").data;
                    match exchange.more_data(data, &mut random).expect("a known step") {
                        ClientStep::Send(answer) => self.write(&answer),
                        ClientStep::Wait => {}
                    }
                }
            }
        }
    }

    /// Logs in anew on the same connection.
    pub(crate) fn change_user(&mut self, user: &str, password: &str) -> Result<(), ClientError> {
        let mut exchange = self.exchange(Method::NativePassword, password, Transport::Plain);
        let response = exchange.first_response().expect("a password");
        self.send_change_user(user, "mysql_native_password", &response);
        self.finish_exchange(&mut exchange, password, Transport::Plain)
    }

    /// The same as a client whose method is `caching_sha2_password` does it: it sends nothing and
    /// waits for a challenge.
    pub(crate) fn change_user_by_challenge(
        &mut self,
        user: &str,
        password: &str,
    ) -> Result<(), ClientError> {
        let mut exchange = self.exchange(Method::CachingSha2, password, Transport::Plain);
        self.send_change_user(user, "caching_sha2_password", b"");
        self.finish_exchange(&mut exchange, password, Transport::Plain)
    }

    fn send_change_user(&mut self, user: &str, auth_plugin: &str, auth_data: &[u8]) {
        let mut out = PacketWriter::new();
        ChangeUser {
            user: user.as_bytes(),
            auth_data,
            database: None,
            collation: Some(45),
            auth_plugin: auth_plugin.as_bytes(),
            attributes: wire::ConnectAttributes::default(),
        }
        .encode(&mut out, self.capabilities);
        self.send_command(out.as_bytes());
    }

    /// Sends a command.
    pub(crate) fn command(&mut self, byte: u8, body: &[u8]) {
        let mut out = PacketWriter::new();
        Command::encode(&mut out, byte, body);
        self.sequence = out.sequence();
        self.compressed_id = 0;
        self.send(out.as_bytes());
    }

    /// Sends a command that was encoded elsewhere, of one frame.
    pub(crate) fn send_command(&mut self, frames: &[u8]) {
        self.sequence = 1;
        self.compressed_id = 0;
        self.send(frames);
    }

    /// The next packet answers a command of one frame.
    pub(crate) fn expect_reply(&mut self) {
        self.sequence = 1;
        self.compressed_id = 1;
    }

    /// Sends a packet that goes on with the ids.
    pub(crate) fn write(&mut self, payload: &[u8]) {
        let mut out = PacketWriter::new();
        out.set_sequence(self.sequence);
        out.packet(payload);
        self.sequence = out.sequence();
        self.send(out.as_bytes());
    }

    /// Sends frames as they are, compressed if that was agreed.
    pub(crate) fn send(&mut self, frames: &[u8]) {
        let mut bytes = frames.to_vec();
        if let Some(method) = self.compression {
            bytes.clear();
            let id = &mut self.compressed_id;
            self.compressor
                .compress(method, frames, id, &mut bytes)
                .expect("memory");
        }
        self.stream.write_all(&bytes).expect("a server that reads");
        self.stream.flush().expect("a server that reads");
    }

    /// The next packet, joined; `None` when the server has closed.
    pub(crate) fn read(&mut self) -> Option<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let header = self.take(4)?;
            let bytes = u32::from_le_bytes([header[0], header[1], header[2], 0]);
            // Under compression the ids of the packets around count, and a real MariaDB gives
            // these others.
            if self.compression.is_none() {
                assert_eq!(header[3], self.sequence, "sequence id");
            }
            self.sequence = self.sequence.wrapping_add(1);
            let bytes = usize::try_from(bytes).expect("three bytes");
            payload.extend_from_slice(&self.take(bytes)?);
            if bytes < wire::FRAME_BYTES_MAX {
                return Some(payload);
            }
        }
    }

    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.plain.len() < count {
            if self.decompress_piece() {
                continue;
            }
            let mut buffer = vec![0; 64 << 10];
            let received = match self.stream.read(&mut buffer) {
                Ok(received @ 1..) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => return None,
            };
            let input = match self.compression {
                Some(_) => &mut self.compressed,
                None => &mut self.plain,
            };
            input.extend_from_slice(&buffer[..received]);
        }
        Some(self.plain.drain(..count).collect())
    }

    /// Whether nothing has come that was not read, and nothing comes for a moment.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let socket = self.socket.as_ref().expect("it is TCP");
        let wait = socket.read_timeout().expect("a socket");
        let moment = Some(Duration::from_millis(30));
        socket.set_read_timeout(moment).expect("a socket");
        let failed = loop {
            let received = self.stream.read(&mut [0; 1]);
            match received.map_err(|error| error.kind()) {
                Err(ErrorKind::Interrupted) => {}
                received => break received.err(),
            }
        };
        let socket = self.socket.as_ref().expect("it is TCP");
        socket.set_read_timeout(wait).expect("a socket");
        failed == Some(ErrorKind::WouldBlock) && self.plain.is_empty() && self.compressed.is_empty()
    }

    /// Takes one compressed packet, if there is a whole one.
    fn decompress_piece(&mut self) -> bool {
        let Some(method) = self.compression else {
            return false;
        };
        let (input, plain) = (&self.compressed, &mut self.plain);
        let id = &mut self.compressed_id;
        let step = self.decompressor.next(method, input, id, plain);
        match step.expect("well-formed compression") {
            DecompressStep::Incomplete { .. } => false,
            DecompressStep::Piece { used } => {
                self.compressed.drain(..used);
                true
            }
        }
    }

    /// Runs a statement of the toy; answers its rows' values.
    pub(crate) fn query(&mut self, text: &str) -> Result<Vec<Vec<u8>>, ClientError> {
        self.command(wire::CommandByte::QUERY, text.as_bytes());
        self.read_rows()
    }

    pub(crate) fn read_rows(&mut self) -> Result<Vec<Vec<u8>>, ClientError> {
        let head = self.read().expect("an answer");
        if head.first() == Some(&0xFF) {
            return Err(error_of(&head));
        }
        self.read().expect("a column");
        if !self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
            self.read().expect("an end of columns");
        }
        let mut rows = Vec::new();
        loop {
            let row = self.read().expect("a row");
            match row.first() {
                Some(0xFE) if row.len() < wire::FRAME_BYTES_MAX && row.len() < 100 => {
                    return Ok(rows);
                }
                Some(0xFF) => return Err(error_of(&row)),
                _ => {
                    let mut reader = wire::TextRowReader::new(&row);
                    rows.push(
                        reader
                            .next_value()
                            .expect("a value")
                            .expect("no NULL")
                            .to_vec(),
                    );
                }
            }
        }
    }

    /// Whether the server answers a ping.
    pub(crate) fn ping(&mut self) -> bool {
        self.command(wire::CommandByte::PING, b"");
        self.read().is_some_and(|packet| packet.first() == Some(&0))
    }
}

pub(crate) fn tcp(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).expect("a listening server");
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    stream
}

pub(crate) fn error_of(packet: &[u8]) -> ClientError {
    ErrorPacket::decode(packet)
        .expect("an error")
        .to_client_error()
}

/// Trusts every certificate: the test's server made its own a moment ago.
#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &rustls::pki_types::CertificateDer<'_>,
        _intermediates: &[rustls::pki_types::CertificateDer<'_>],
        _server_name: &rustls::pki_types::ServerName<'_>,
        _ocsp_response: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
