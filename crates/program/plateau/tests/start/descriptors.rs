//! A server that has no file descriptor left answers each client, and says so in its log.

use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use testkit::client::Outcome;
use testkit::{Client, Folder, Launch, Login, Server, wait_until};

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

/// A server that has few descriptors beside those that it needs.
fn start(io: &str) -> Server {
    let launch = Launch::plateau(env!("CARGO_BIN_EXE_plateau"));
    // Silent clients stay for as long as the test lasts.
    let launch = launch.with_settings([format!("io={io}"), String::from("connect_timeout=600")]);
    let mut roomy = launch.clone().start().expect("the server starts");
    let count = roomy.process().descriptor_count().expect("a count");
    roomy.stop().expect("it ends");
    let launch = launch.with_descriptor_limit(count + ROOM);
    launch.start().expect("the server starts")
}

fn check(io: &str) {
    let server = start(io);
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
    let line = "out of file descriptors";
    wait_until(line, || server.log().contains(line));
    let log = server.log();
    assert_eq!(log.matches(line).count(), 1, "{log}");
    drop(streams);
    let login = Login::root(server.port());
    wait_until("there is room again", || Client::connect(&login).is_ok());
    let counted = root.status("Connection_errors_accept").expect("a count");
    assert!(refused_count <= usize::try_from(counted).expect("a small number"));
}

/// The error number of a statement; 0 if it succeeds.
fn number(client: &mut Client, statement: &str) -> u16 {
    match client.query(statement).expect("the connection stays") {
        Outcome::Error(error) => error.number,
        _ => 0,
    }
}

/// A statement that has to make a file fails, and nothing else does. The log has the beginning, and
/// the end even if no other file is made. Then the statement succeeds.
#[test]
fn a_table_waits_for_its_file() {
    let server = start("auto");
    let mut root = server.connect().expect("it serves");
    let (make, again) = (
        "create table d.t (id int primary key)",
        "create table d.u (id int primary key)",
    );
    for statement in ["create database d", make, "insert into d.t values (1)"] {
        assert_eq!(number(&mut root, statement), 0, "{statement}");
    }
    let mut streams: Vec<TcpStream> = (0..CLIENT_COUNT).map(|_| connect(&server)).collect();
    for stream in &mut streams {
        first_bytes(stream);
    }
    assert_eq!(number(&mut root, again), 1016);
    assert_eq!(number(&mut root, "insert into d.t values (2)"), 0);
    let begun = "no file descriptor is left: ";
    wait_until(begun, || server.log().contains(begun));
    drop(streams);
    let ended = "there are file descriptors again";
    wait_until(ended, || server.log().contains(ended));
    assert_eq!(number(&mut root, again), 0);
}

#[test]
fn each_client_is_answered_over_the_ring() {
    check("auto");
}

#[test]
fn each_client_is_answered_over_epoll() {
    check("epoll");
}

/// The soft limit of open files is raised to the hard one, so many tables and clients fit without
/// any work of the operator.
#[test]
fn the_soft_limit_is_raised() {
    let folder = Folder::new("soft-limit").expect("a folder");
    let script = folder.path().join("plateau");
    let program = env!("CARGO_BIN_EXE_plateau");
    let text = format!("#!/bin/sh\nulimit -Sn 128 && exec {program} \"$@\"\n");
    fs::write(&script, text).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("a script");
    let launch = Launch::plateau(script.display().to_string());
    let mut server = launch.start().expect("the server starts");
    let limits = format!("/proc/{}/limits", server.process().id());
    let limits = fs::read_to_string(limits).expect("its limits");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let columns: Vec<&str> = line.expect("a limit").split_whitespace().collect();
    assert_eq!(columns[3], columns[4], "soft and hard");
    assert_ne!(columns[3], "128");
}
