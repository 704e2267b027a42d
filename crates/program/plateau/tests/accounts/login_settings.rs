//! SET GLOBAL of a login setting applies to the next login.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use testkit::{Client, Launch, Login, Server, ServerError, wait_until};
use wire::{Capabilities, Handshake};

fn start(settings: &[&str]) -> (Server, Client) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau")).with_settings(settings);
    let server = launch.start().expect("it starts");
    let client = server.connect().expect("it serves");
    (server, client)
}

/// A connection that sends nothing.
fn silent(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
    let wait = Some(Duration::from_secs(60));
    stream.set_read_timeout(wait).expect("a time limit");
    stream
}

/// The capabilities in the server's greeting.
fn offered(server: &Server) -> Capabilities {
    let mut stream = silent(server);
    let mut header = [0; 4];
    stream.read_exact(&mut header).expect("a header");
    let [length, ..] = header;
    let mut greeting = vec![0; usize::from(length)];
    stream.read_exact(&mut greeting).expect("a greeting");
    let greeting = Handshake::decode(&greeting).expect("a greeting that can be read");
    greeting.capabilities
}

fn status(client: &mut Client, name: &str) -> u64 {
    client.status(name).expect("a status")
}

/// Counts of failed logins: all, refused, timed out.
fn failures(client: &mut Client) -> [u64; 3] {
    ["Aborted_connects", "Logins_refused", "Logins_timed_out"].map(|name| status(client, name))
}

#[test]
fn plain_connections_are_refused_once_that_is_set() {
    let (server, mut client) = start(&[]);
    for _ in 0..2 {
        client
            .run("SET GLOBAL require_secure_transport = ON")
            .expect("a global variable");
        // More than there are workers, so that each worker has one.
        for _ in 0..8 {
            let refused = Client::connect(&Login::root(server.port()));
            let error = refused.expect_err("it is not encrypted");
            let error = error.downcast_ref::<ServerError>();
            assert_eq!(error.map(|error| error.number), Some(3159));
        }
        client
            .run("SET GLOBAL require_secure_transport = OFF")
            .expect("a global variable");
        for _ in 0..8 {
            server.connect().expect("all are let in");
        }
    }
    assert_eq!(failures(&mut client), [16, 16, 0]);
}

#[test]
fn bytes_are_counted() {
    let (_server, mut client) = start(&[]);
    let received = status(&mut client, "Bytes_received");
    let sent = status(&mut client, "Bytes_sent");
    let text = client.value(&format!("SELECT REPEAT('{}', 100)", "x".repeat(1000)));
    assert_eq!(text.expect("a text").map(|text| text.len()), Some(100_000));
    assert!((1_000..3_000).contains(&(status(&mut client, "Bytes_received") - received)));
    assert!((100_000..103_000).contains(&(status(&mut client, "Bytes_sent") - sent)));
}

#[test]
fn the_time_for_a_login_can_be_changed() {
    let (server, mut client) = start(&["connect_timeout=600"]);
    client
        .run("SET GLOBAL connect_timeout = 2")
        .expect("a global variable");
    let mut all = Vec::new();
    let read = silent(&server).read_to_end(&mut all);
    assert!(
        read.is_ok() && !all.is_empty(),
        "greeted, and cut off: {read:?}"
    );
    // The client disconnects at once; the server did not cut it off.
    drop(silent(&server));
    wait_until("both are counted", || failures(&mut client) == [2, 0, 1]);
}

#[test]
fn local_files_are_offered_once_that_is_set() {
    let (server, mut client) = start(&["local_infile=OFF"]);
    assert!(!offered(&server).contains(Capabilities::LOCAL_FILES));
    client
        .run("SET GLOBAL local_infile = ON")
        .expect("a global variable");
    assert!(offered(&server).contains(Capabilities::LOCAL_FILES));
}

/// The number of the error by which a login with this number of a collation is refused.
fn refusal(server: &Server, collation: u8) -> Option<u16> {
    let mut stream = silent(server);
    let packet = |stream: &mut TcpStream| {
        let mut header = [0; 4];
        stream.read_exact(&mut header).expect("a header");
        let mut payload = vec![0; usize::from(header[0])];
        stream.read_exact(&mut payload).expect("a packet");
        payload
    };
    packet(&mut stream);
    // The protocol of 4.1, a short response and a named method.
    let capabilities: u32 = 1 << 9 | 1 << 15 | 1 << 19;
    let mut login = capabilities.to_le_bytes().to_vec();
    login.extend_from_slice(&(1_u32 << 24).to_le_bytes());
    login.push(collation);
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(b"root\0\0mysql_native_password\0");
    let length = u8::try_from(login.len()).expect("a short packet");
    stream.write_all(&[length, 0, 0, 1]).expect("it reads");
    stream.write_all(&login).expect("it reads");
    match packet(&mut stream).as_slice() {
        [0xff, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        [0, ..] => None,
        other => panic!("neither OK nor an error: {other:?}"),
    }
}

/// The server would misread texts in big5, dec8, cp850 or ujis. MariaDB also refuses ucs2, utf16
/// and utf32.
#[test]
fn a_login_with_a_character_set_that_is_not_supported_is_refused() {
    let (server, _client) = start(&[]);
    for collation in [1, 3, 4, 12] {
        assert_eq!(refusal(&server, collation), Some(1115), "{collation}");
    }
    for collation in [35, 54, 60, 62] {
        assert_eq!(refusal(&server, collation), Some(1231), "{collation}");
    }
    // Of a supported set; and unknown to MariaDB as well, which means the server's own.
    for collation in [8, 5, 33, 200, 45, 255, 100, 51, 7, 28, 9] {
        assert_eq!(refusal(&server, collation), None, "{collation}");
    }
}

#[test]
fn a_proxy_names_the_client_if_its_network_may() {
    let (server, mut root) = start(&["proxy_protocol_networks=localhost"]);
    root.run("CREATE USER app@'10.1.2.%' IDENTIFIED BY 'secret'")
        .expect("an account");
    let login = Login {
        user: "app".to_owned(),
        password: "secret".to_owned(),
        ..Login::root(server.port())
    };
    assert!(Client::connect(&login).is_err());
    let header = b"PROXY TCP4 10.1.2.3 127.0.0.1 1111 3306\r\n";
    let mut client = Client::connect_behind(header, &login).expect("the host is the client's");
    let user = client.value("SELECT CONCAT(USER(), ' ', CURRENT_USER())");
    let expected = "app@10.1.2.3 app@10.1.2.%";
    assert_eq!(user.expect("a user").as_deref(), Some(expected));
    let host = root.value("SELECT host FROM information_schema.processlist WHERE user = 'app'");
    assert_eq!(host.expect("a host").as_deref(), Some("10.1.2.3:1111"));
    let networks = root.value("SELECT @@proxy_protocol_networks");
    assert_eq!(networks.expect("networks").as_deref(), Some("localhost"));
    drop(server);

    let (server, _root) = start(&[]);
    let root = Login::root(server.port());
    assert!(Client::connect_behind(header, &root).is_err());
    assert!(Client::connect(&root).is_ok());
}
