//! Headers of the PROXY protocol before a login: whose login it is then, and which are refused.

#![forbid(unsafe_code)]

mod support;

use std::io::Write;
use std::time::Duration;

use front::{LoginRules, Options, ProxyNetworks};
use support::{LoginAs, TestClient, TestServer, options};

const V1: &[u8] = b"PROXY TCP4 10.1.2.3 127.0.0.1 1111 3306\r\n";
const V1_UNKNOWN: &[u8] = b"PROXY UNKNOWN\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\x01\x02\x03\x7f\0\0\x01\0\x01\0\x02";
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
const V2_HUGE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff\x0a\x01\x02\x03";

/// A server that takes headers from these networks.
fn server(networks: &str) -> TestServer {
    TestServer::start(with_networks(networks))
}

fn with_networks(networks: &str) -> Options {
    Options {
        proxy_networks: networks.parse().expect("networks"),
        ..options()
    }
}

/// A header of version 2 for a client of a unix socket.
fn v2_unix() -> Vec<u8> {
    [b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xd8", &[0; 216][..]].concat()
}

/// Which host a client comes from, as an error says that it is told.
fn host_of(server: &TestServer, login: LoginAs<'_>) -> String {
    let login = LoginAs {
        password: "wrong",
        ..login
    };
    let error = TestClient::log_in(server.address, &login)
        .err()
        .expect("it is refused");
    let (_, host) = error
        .message
        .split_once("@'")
        .expect("the error names the host");
    host.split_once('\'').expect("a quoted host").0.to_owned()
}

/// Whether a connection that begins so is closed without a word.
fn is_closed(server: &TestServer, begin: &[u8]) -> bool {
    let mut client = TestClient::tcp(server.address);
    client.stream.write_all(begin).expect("it is sent");
    client.read().is_none()
}

#[test]
fn a_client_is_the_one_of_the_header() {
    let server = server("192.168.0.1, 127.0.0.0/8");
    let unix = v2_unix();
    for (header, host) in [
        (b"".as_slice(), "localhost"),
        (V1, "10.1.2.3"),
        (V1_UNKNOWN, "localhost"),
        (V2, "10.1.2.3"),
        (V2_LOCAL, "localhost"),
        (&unix, "localhost"),
    ] {
        for with_tls in [false, true] {
            let login = |user| LoginAs {
                with_tls,
                header,
                ..LoginAs::user(user)
            };
            assert_eq!(host_of(&server, login("native")), host, "{header:?}");
            for user in ["native", "sha2", "trusted"] {
                let mut client = TestClient::log_in(server.address, &login(user)).unwrap();
                assert!(client.ping(), "{header:?}");
            }
        }
    }
}

#[test]
fn a_header_may_come_in_pieces() {
    let server = server("*");
    for header in [V1, V2] {
        let mut client = TestClient::tcp(server.address);
        for byte in header {
            client.stream.write_all(&[*byte]).unwrap();
            assert!(client.is_quiet());
        }
        // A login of nobody.
        client.write(b"");
        assert!(client.read().is_some());
    }
}

#[test]
fn a_header_from_elsewhere_ends_the_connection() {
    for networks in ["", "10.0.0.0/8,::1"] {
        let server = server(networks);
        for header in [V1, V1_UNKNOWN, V2, V2_LOCAL] {
            assert!(is_closed(&server, header), "{networks} {header:?}");
        }
        assert!(TestClient::log_in(server.address, &LoginAs::user("native")).is_ok());
    }
}

#[test]
fn a_header_that_cannot_be_read_ends_the_connection() {
    let server = server("localhost");
    let long = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
    let twice = [V1, V1].concat();
    for header in [
        b"PROXY nonsense\r\n".as_slice(),
        b"PROXY TCP4 10.1.2.3\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0",
        V2_HUGE,
        &long,
        &twice,
    ] {
        assert!(is_closed(&server, header), "{header:?}");
    }
    assert!(TestClient::log_in(server.address, &LoginAs::user("native")).is_ok());
}

#[test]
fn half_a_header_is_cut_off_by_the_time_limit() {
    let server = TestServer::start(Options {
        rules: LoginRules {
            connect_timeout: Duration::from_millis(200),
            ..options().rules
        },
        ..with_networks("*")
    });
    for header in [V1, V2] {
        for end in [1, 5, header.len() - 1] {
            assert!(is_closed(&server, &header[..end]), "{end}");
        }
        assert!(is_closed(&server, header), "and no login");
    }
}

#[test]
fn a_socket_of_the_proxy_is_no_secure_transport() {
    let server = TestServer::start(Options {
        rules: LoginRules {
            requires_secure_transport: true,
            ..options().rules
        },
        ..with_networks("*")
    });
    let unix = v2_unix();
    let login = LoginAs {
        header: &unix,
        ..LoginAs::user("native")
    };
    let error = TestClient::log_in(server.address, &login).err().unwrap();
    assert_eq!(error.code.number(), 3159);
}

#[test]
fn no_network_is_named_at_first() {
    assert_eq!(options().proxy_networks, ProxyNetworks::default());
    assert_eq!(Ok(ProxyNetworks::default()), "".parse());
}
