//! Hostile and slow peers on both sides: memory stays bounded, and others are served.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use sync::atomic::{AtomicBool, Ordering};

use super::*;

/// More than a gateway with a few clients needs, and less than a reply that is held whole.
const RESIDENT_BYTES_MAX: u64 = 256 << 20;

/// Both routers.
const ROUTERS: [&str; 2] = ["read-connection", "read-write-split"];

fn with_router(servers: &[&Server], router: &str) -> String {
    sections(servers) + &format!("[[service]]\nname = \"all\"\nrouter = \"{router}\"\n")
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
    for router in ROUTERS {
        let mut gateway = Gateway::start(&with_router(&[&backend], router), "auto");
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
        assert!(resident < RESIDENT_BYTES_MAX, "{router}: {resident}");
        assert_eq!(running(&mut root), 4, "nothing ends them");
        drop(lazy);
        wait_until("their statements are ended", || running(&mut root) == 0);
    }
}

#[test]
fn silent_logins_keep_nobody_out() {
    let backend = backend();
    let gateway = Gateway::start(&with_router(&[&backend], "read-write-split"), "auto");
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

/// Ends the server of garbage, also if the test fails.
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
        for router in ROUTERS {
            let garbage =
                format!("[[server]]\nname = \"mad\"\naddress = \"127.0.0.1:{garbage_port}\"\n");
            let gateway = Gateway::start(&(garbage + &with_router(&[&backend], router)), "auto");
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
