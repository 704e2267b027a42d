//! A server that stood still (SIGSTOP, a debugger) handles what arrived meanwhile before it decides
//! that a time limit is over.

#![forbid(unsafe_code)]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use testkit::{Launch, Server, on_each_driver};
use wire::{Capabilities, Login, PacketWriter};

fn start(io: &str) -> Server {
    Launch::plateau(env!("CARGO_BIN_EXE_plateau"))
        .with_settings([&format!("io={io}"), "connect_timeout=2"])
        .start()
        .expect("it starts")
}

fn read_packet(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let [length, ..] = header;
    let mut payload = vec![0; usize::from(length)];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}

fn set_patience(stream: &TcpStream, patience: Duration) {
    stream.set_read_timeout(Some(patience)).expect("a limit");
}

fn login() -> Vec<u8> {
    let mut out = PacketWriter::new();
    out.set_sequence(1);
    let login = Login {
        user: b"root",
        auth_plugin: b"mysql_native_password",
        ..Login::with(Capabilities::SERVER)
    };
    login.encode(&mut out);
    out.as_bytes().to_vec()
}

#[test]
fn logins_that_came_in_time_are_heard() {
    on_each_driver(|io| {
        let mut server = start(io);
        let connect = |_| TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        let mut streams: Vec<_> = (0..16).map(connect).collect();
        for stream in &mut streams {
            assert!(read_packet(stream).is_some(), "it greets");
        }
        server.process().pause().expect("it runs");
        for stream in &mut streams {
            stream.write_all(&login()).expect("its socket takes bytes");
        }
        let first = streams.first_mut().expect("sixteen");
        set_patience(first, Duration::from_millis(2500));
        let silence = first.read(&mut [0]).expect_err("it stands still");
        assert_eq!(silence.kind(), ErrorKind::WouldBlock);
        server.process().resume().expect("it goes on");
        let answered = streams.iter_mut().filter_map(|stream| {
            set_patience(stream, Duration::from_secs(60));
            read_packet(stream)
        });
        let is_ok = |packet: &Vec<u8>| packet.first() == Some(&0);
        assert_eq!(answered.filter(is_ok).count(), 16, "{io}");
    });
}
