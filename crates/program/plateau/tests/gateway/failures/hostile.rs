//! Hostile and slow peers on both sides: memory stays bounded, and others are served.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread::Scope;

use sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::prepared::{Types, crowd_out, execute, prepare};
use super::*;

/// More than a gateway with a few clients needs, and less than a reply that is held whole.
const RESIDENT_BYTES_MAX: u64 = 256 << 20;

fn with_kind(servers: &[&Server], kind: &str) -> String {
    sections(servers) + &format!("[[service]]\nname = \"all\"\n{kind}")
}

/// Statements with long replies that run on a server.
fn running(root: &mut Client) -> usize {
    let text = "SELECT COUNT(*) FROM information_schema.processlist \
                WHERE info LIKE '%shop.seq_1_to_1024%' AND id <> CONNECTION_ID()";
    let count = root.value(text).expect("a count").expect("a value");
    count.parse().expect("a number")
}

#[test]
fn a_client_that_does_not_read_costs_little() {
    let backend = backend();
    for kind in KINDS {
        let mut gateway = Gateway::start(&with_kind(&[&backend], kind), "auto");
        let mut other = gateway.connect();
        let mut lazy: Vec<_> = (0..4).map(|_| gateway.connect()).collect();
        for client in &mut lazy {
            // A gigabyte.
            let text = "SELECT REPEAT('x', 1048576) FROM shop.seq_1_to_1024";
            client.send_query(text.as_bytes()).unwrap();
        }
        let mut root = backend.connect().unwrap();
        wait_until("their statements run", || running(&mut root) == 4);
        for number in 0..500 {
            let value = other.value(&format!("SELECT {number}")).unwrap();
            assert_eq!(value, Some(number.to_string()));
        }
        let resident = gateway.server.process().resident_bytes().unwrap();
        assert!(resident < RESIDENT_BYTES_MAX, "{kind}: {resident}");
        assert_eq!(running(&mut root), 4, "nothing ends them");
        drop(lazy);
        wait_until("their statements are ended", || running(&mut root) == 0);
    }
}

#[test]
fn silent_logins_keep_nobody_out() {
    let backend = backend();
    let gateway = Gateway::start(&with_kind(&[&backend], KINDS[0]), "auto");
    let address = ("127.0.0.1", gateway.server.port());
    let silent: Vec<_> = (0..400)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    for number in 0..20 {
        let value = gateway.connect().value(&format!("SELECT {number}"));
        assert_eq!(value.unwrap(), Some(number.to_string()));
    }
    drop(silent);
}

/// Ends a server of a test, also if the test fails.
struct EndOnDrop<'s> {
    is_over: &'s AtomicBool,
    port: u16,
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

#[test]
fn a_server_that_sends_garbage_is_out() {
    let backend = backend();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let garbage_port = listener.local_addr().unwrap().port();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                // A packet that is no greeting, and bytes that are no packet. Who is told that may
                // have gone already.
                let garbage = [&b"\x06\0\0\0*hello"[..], &[0x4a; 100_000]].concat();
                let _ = stream.and_then(|mut it| it.write_all(&garbage));
            }
        });
        let end = EndOnDrop {
            is_over: &is_over,
            port: garbage_port,
        };
        for kind in KINDS {
            let garbage =
                format!("[[server]]\nname = \"mad\"\naddress = \"127.0.0.1:{garbage_port}\"\n");
            let gateway = Gateway::start(&(garbage + &with_kind(&[&backend], kind)), "auto");
            for number in 0..10 {
                let value = gateway.connect().value(&format!("SELECT {number}"));
                assert_eq!(value.unwrap(), Some(number.to_string()));
            }
            wait_until("the monitor says what is wrong", || {
                gateway.log().contains("answers what cannot be read")
            });
        }
        drop(end);
    });
}

/// Bytes that a forger sends in the name of a server.
#[derive(Clone, Copy)]
enum Forged {
    /// Behind the reply to a command.
    Behind(&'static [u8]),
    /// In the place of a reply. The server does not get the command.
    Instead(&'static [u8]),
}

/// What a forger does with bytes of a client that have a command in them.
type Forge<'f> = &'f (dyn Fn(&[u8]) -> Option<Forged> + Sync);

/// Has `run` use a server through a forger, which these sections name in the server's place.
fn with_forger(backend: &Server, forge: Forge<'_>, run: impl FnOnce(&str)) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its port").port();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (is_over, server_port) = (&is_over, backend.port());
        scope.spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let server = TcpStream::connect(("127.0.0.1", server_port));
                if let (Ok(client), Ok(server)) = (stream, server) {
                    relay(scope, (client, server), forge).expect("two threads");
                }
            }
        });
        let _end = EndOnDrop { is_over, port };
        let (own, forged) = (server_port.to_string(), port.to_string());
        run(&sections_with(&[backend], "max_connections = 1\n").replacen(&own, &forged, 1));
    });
}

/// Passes on what both sides of a connection say.
fn relay<'s, 'e>(
    scope: &'s Scope<'s, 'e>,
    (mut client, mut server): (TcpStream, TcpStream),
    forge: Forge<'e>,
) -> std::io::Result<()> {
    let (mut from_client, mut from_server) = (client.try_clone()?, server.try_clone()?);
    let (forged, to_add) = channel();
    scope.spawn(move || {
        let mut room = vec![0; RELAYED_BYTES_MAX];
        while let Ok(count @ 1..) = from_client.read(&mut room) {
            let bytes = &room[..count];
            let passed = match forge(bytes) {
                Some(Forged::Instead(reply)) => from_client.write_all(reply),
                Some(Forged::Behind(more)) => {
                    forged.send(more).expect("the other thread is there");
                    server.write_all(bytes)
                }
                None => server.write_all(bytes),
            };
            if passed.is_err() {
                break;
            }
        }
        // It may be closed already.
        let _ = server.shutdown(Shutdown::Both);
    });
    scope.spawn(move || {
        let mut room = vec![0; RELAYED_BYTES_MAX];
        while let Ok(count @ 1..) = from_server.read(&mut room) {
            let mut bytes = room[..count].to_vec();
            to_add
                .try_iter()
                .for_each(|more: &[u8]| bytes.extend_from_slice(more));
            if client.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Replies and commands of these tests are shorter.
const RELAYED_BYTES_MAX: usize = 64 << 10;

#[test]
fn bytes_behind_a_prepared_statement_cost_a_connection() {
    let backend = backend();
    let text = "SELECT CONCAT(?, ' times')";
    let command = [&[22], text.as_bytes()].concat();
    let count = AtomicU32::new(0);
    let forge = |bytes: &[u8]| {
        let mut parts = bytes.windows(command.len());
        // The first is the client's own. By the second the gateway prepares it again.
        let is_it = parts.any(|it| it == command) && count.fetch_add(1, Ordering::Relaxed) == 1;
        is_it.then_some(Forged::Behind(b"\x01\0\0\0?"))
    };
    with_forger(&backend, &forge, |sections| {
        let gateway = Gateway::start(sections, "auto");
        let mut client = gateway.connect();
        let statement = prepare(&mut client, text);
        execute(&mut client, &statement, 1, Types::Told);
        crowd_out(&mut client);
        for value in 2..4 {
            let rows = execute(&mut client, &statement, value, Types::Untold);
            let expected = format!("{value} times");
            assert!(rows[0].ends_with(expected.as_bytes()), "{rows:?}");
        }
        let log = gateway.log();
        assert!(log.contains("that it was not asked for"), "{log}");
    });
    assert_eq!(count.into_inner(), 3);
}

#[test]
fn a_dump_of_the_binary_log_that_asks_for_a_file_ends_its_session() {
    const BINLOG_DUMP: u8 = 18;
    let backend = backend();
    let forge = |bytes: &[u8]| {
        // The end of a result, behind which another one comes, and a question for a file.
        let reply = b"\x05\0\0\x01\xfe\0\0\x08\0\x02\0\0\x02\xfbx";
        (bytes.get(4) == Some(&BINLOG_DUMP)).then_some(Forged::Instead(reply))
    };
    with_forger(&backend, &forge, |sections| {
        for service in ["", PRIVATE] {
            let gateway = Gateway::start(&(sections.to_owned() + service), "auto");
            let mut client = gateway.connect();
            client.send_command(BINLOG_DUMP, &[0; 10]).unwrap();
            while client.next_packet().is_ok() {}
            assert_eq!(
                gateway.connect().value("SELECT 7").unwrap().as_deref(),
                Some("7")
            );
            let log = gateway.log();
            assert!(log.contains("reply cannot be read"), "{log}");
        }
    });
}
