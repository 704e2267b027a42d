//! A server that lets its client in and then ends in each way, over real sockets and both drivers:
//! only a request that nothing of a reply came to may be sent again.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use backend::{ClientSecret, Login, RequestError, TlsMode};
use errcode::Retry;
use link::{Disconnect, Limit};
use support::{connect, limit, on_worker, tcp};
use wire::{
    Capabilities, CommandByte, Handshake, OkKind, OkPacket, PacketWriter, SCRAMBLE_BYTES,
    StatusFlags,
};

/// How long a reply may take where none comes.
const SHORT: Duration = Duration::from_millis(50);

/// How a server ends, and what that is worth.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    end: fn(&mut TcpStream),
    retry: Retry,
}

const CASES: [Case; 6] = [
    Case {
        name: "closed before a reply",
        end: |peer| drop(take_packet(peer)),
        retry: Retry::IfRead,
    },
    Case {
        name: "reset before a reply",
        end: |peer| assert_eq!(peer.peek(&mut [0]).unwrap(), 1),
        retry: Retry::IfRead,
    },
    Case {
        name: "closed in a header",
        end: |peer| {
            take_packet(peer);
            peer.write_all(&[7, 0]).unwrap();
        },
        retry: Retry::Never,
    },
    Case {
        name: "closed behind a header",
        end: |peer| {
            take_packet(peer);
            peer.write_all(&[7, 0, 0, 1]).unwrap();
        },
        retry: Retry::Never,
    },
    Case {
        name: "closed behind the head of a result",
        end: |peer| {
            take_packet(peer);
            peer.write_all(&[1, 0, 0, 1, 1]).unwrap();
        },
        retry: Retry::Never,
    },
    Case {
        name: "nothing in time",
        end: |peer| {
            // A reset also counts as an end.
            let _ = peer.read_to_end(&mut Vec::new());
        },
        retry: Retry::Never,
    },
];

/// Takes a whole packet.
fn take_packet(peer: &mut TcpStream) -> Vec<u8> {
    let mut header = [0; 4];
    peer.read_exact(&mut header).unwrap();
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    peer.read_exact(&mut payload).unwrap();
    payload
}

/// Lets a client in, whoever it is.
fn let_in(peer: &mut TcpStream) {
    let mut out = PacketWriter::new();
    let greeting = Handshake {
        server_version: b"10.11.6-MariaDB",
        connection_id: 1,
        scramble: [7; SCRAMBLE_BYTES],
        capabilities: Capabilities::SERVER,
        collation: 45,
        status: StatusFlags::AUTOCOMMIT,
        auth_plugin: b"mysql_native_password",
    };
    greeting.encode(&mut out);
    peer.write_all(out.as_bytes()).unwrap();
    take_packet(peer);
    out.clear();
    out.set_sequence(2);
    OkPacket::default().encode(&mut out, Capabilities::SERVER, OkKind::Ok);
    peer.write_all(out.as_bytes()).unwrap();
}

#[test]
fn only_a_request_without_any_reply_may_be_sent_again() {
    for case in CASES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::scope(|scope| {
            scope.spawn(move || {
                // Once over each driver.
                for _ in 0..2 {
                    let (mut peer, _) = listener.accept().unwrap();
                    let_in(&mut peer);
                    (case.end)(&mut peer);
                }
            });
            on_worker(move || async move {
                let login = Login::new("u", ClientSecret::password(b""));
                let connected = connect(&tcp(port), TlsMode::Off, &login).await;
                let mut server = connected.unwrap();
                let patience = match case.name {
                    "nothing in time" => Limit::after(SHORT),
                    _ => limit(),
                };
                server.send(CommandByte::QUERY, b"select 1").await.unwrap();
                let error = loop {
                    match server.receive(patience).await {
                        Ok(received) => assert!(received.is_some(), "the reply has no end"),
                        Err(error) => break error,
                    }
                };
                assert_eq!(error.retry(), case.retry, "{}: {error:?}", case.name);
                let is_fit = match &error {
                    RequestError::Unanswered(_) => case.retry == Retry::IfRead,
                    RequestError::Link(Disconnect::Idle) => case.name == "nothing in time",
                    RequestError::Link(_) => case.retry == Retry::Never,
                    _ => false,
                };
                assert!(is_fit, "{}: {error:?}", case.name);
            });
        });
    }
}
