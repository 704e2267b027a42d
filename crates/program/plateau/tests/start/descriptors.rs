//! A server that has no file descriptor left answers each client, and says so in its log.

use std::io::Read as _;
use std::net::TcpStream;
use std::time::Duration;

use testkit::{Client, Launch, Login, Server, wait_until};

/// Descriptors that the server may have beside those that it has after its start.
const ROOM: u64 = 8;

/// Clients that come at once: many more than there is room for.
const CLIENT_COUNT: usize = 64;

/// What a client reads first: the header of a packet, the protocol's version or 0xff, and, behind
/// the latter, the number of an error.
fn first_bytes(stream: &mut TcpStream) -> [u8; 7] {
    let mut bytes = [0; 7];
    stream.read_exact(&mut bytes).expect("an answer");
    bytes
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).expect("a time limit");
    stream
}

fn check(io: &str) {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    let launch = launch.with_settings([format!("io={io}")]);
    let mut roomy = launch.clone().start().expect("the server starts");
    let count = roomy.process().descriptor_count().expect("a count");
    roomy.stop().expect("it ends");
    let launch = launch.with_descriptor_limit(count + ROOM);
    let server = launch.start().expect("the server starts");
    let mut root = server.connect().expect("it serves");
    let mut streams: Vec<TcpStream> = (0..CLIENT_COUNT).map(|_| connect(&server)).collect();
    let mut refused_count = 0;
    for stream in &mut streams {
        match first_bytes(stream) {
            [_, _, _, 0, 10, ..] => {}
            [_, _, _, 0, 0xff, low, high] => {
                assert_eq!(u16::from_le_bytes([low, high]), 1040);
                refused_count += 1;
            }
            other => panic!("neither a greeting nor an error: {other:?}"),
        }
    }
    // A few descriptors come and go.
    assert!(CLIENT_COUNT / 2 < refused_count, "{refused_count}");
    assert!(refused_count < CLIENT_COUNT, "some find room");
    let log = server.log();
    assert_eq!(log.matches("out of file descriptors").count(), 1, "{log}");
    drop(streams);
    let login = Login::root(server.port());
    wait_until("there is room again", || Client::connect(&login).is_ok());
    let counted = root.status("Connection_errors_accept").expect("a count");
    assert!(refused_count <= usize::try_from(counted).expect("a small number"));
}

#[test]
fn each_client_is_answered_over_the_ring() {
    check("auto");
}

#[test]
fn each_client_is_answered_over_epoll() {
    check("epoll");
}
