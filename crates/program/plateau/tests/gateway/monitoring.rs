//! `/metrics` and `/health`, which monitors read over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

use testkit::free_port;

use super::*;

/// What a request gets: its status line, and its body.
fn reply(port: u16, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it answers");
    let (head, body) = reply.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.lines().next().unwrap_or_default();
    (status.to_owned(), body.to_owned())
}

pub(super) fn get(port: u16, path: &str) -> (String, String) {
    reply(port, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
}

/// The value on the line that begins with `name`.
fn number(page: &str, name: &str) -> u64 {
    let found = page.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(' ')?;
        value.parse().ok()
    });
    found.unwrap_or_else(|| panic!("no {name} in\n{page}"))
}

#[test]
fn a_monitor_reads_numbers_and_health() {
    on_each_driver(|driver| {
        let mut backend = backend();
        let port = free_port().unwrap();
        let text = format!("metrics_listen = \"127.0.0.1:{port}\"\n");
        let service = "[[service]]\nname = \"shared\"\nrouter = \"read-write-split\"\n";
        let gateway = Gateway::start(&(text + &sections(&[&backend]) + service), driver);
        let mut client = gateway.connect();
        for _ in 0..5 {
            client.run("DO 1").unwrap();
        }
        for _ in 0..2 {
            client.value("SELECT GET_LOCK('a', 0)").unwrap();
            client.value("SELECT RELEASE_ALL_LOCKS()").unwrap();
        }
        client.run("DO 1").unwrap();
        let (status, page) = get(port, "/metrics");
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert_eq!(number(&page, "plateau_sessions_total"), 1);
        assert_eq!(number(&page, "plateau_sessions_now"), 1);
        assert!(5 <= number(&page, "plateau_statements_total"));
        let sent = number(&page, "plateau_server_statements_total{server=\"db0\"}");
        assert_eq!(sent, number(&page, "plateau_statements_total"));
        let pins = |reason| {
            let name = format!("plateau_session_pins_total{{reason=\"{reason}\"}}");
            number(&page, &name)
        };
        assert_eq!((pins("user lock"), pins("table lock")), (2, 0));
        assert_eq!(number(&page, "plateau_pool_open{server=\"db0\"}"), 1);
        assert_eq!(number(&page, "plateau_server_primary{server=\"db0\"}"), 1);
        assert!(page.contains("plateau_monitor_rounds_total{monitor=\"0\"}"));
        drop(client);
        let quit = "plateau_sessions_ended_total{reason=\"quit\"}";
        let gone = "plateau_sessions_ended_total{reason=\"client_gone\"}";
        wait_until("the end is counted", || {
            let (_, page) = get(port, "/metrics");
            number(&page, quit) + number(&page, gone) == 1
        });

        let ok = ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned());
        assert_eq!(get(port, "/health"), ok);
        let (status, body) = reply(port, "HEAD /health HTTP/1.1\r\n\r\n");
        assert_eq!((status, body.as_str()), (ok.0, ""));
        assert_eq!(get(port, "/").0, "HTTP/1.1 404 Not Found");
        let post = reply(port, "POST /health HTTP/1.1\r\n\r\n");
        assert_eq!(post.0, "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(reply(port, "\u{1}\r\n\r\n").0, "HTTP/1.1 400 Bad Request");

        backend.kill().unwrap();
        let ailing = "no server of the service `shared` answers\n";
        wait_until("the server is missed", || {
            let (status, body) = get(port, "/health");
            status == "HTTP/1.1 503 Service Unavailable" && body == ailing
        });
    });
}

#[test]
fn who_asks_for_pages_without_end_keeps_no_other_out() {
    let backend = backend();
    let port = free_port().unwrap();
    let text = format!("metrics_listen = \"127.0.0.1:{port}\"\n");
    let gateway = Gateway::start(&(text + &sections(&[&backend])), "auto");
    // More than there may be, and none of them says anything.
    let silent: Vec<_> = (0..page::CONNECTIONS_MAX + 10)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap())
        .collect();
    assert_eq!(
        gateway.connect().value("SELECT 1").unwrap().as_deref(),
        Some("1")
    );
    // They are cut off in time, and others are served again.
    wait_until("a page is served", || {
        let stream = TcpStream::connect(("127.0.0.1", port));
        let mut stream = stream.expect("it listens");
        let request = b"GET /health HTTP/1.1\r\n\r\n";
        let mut reply = String::new();
        let asked = stream.write_all(request);
        let read = asked.and_then(|()| stream.read_to_string(&mut reply));
        read.is_ok() && reply.starts_with("HTTP/1.1 200")
    });
    drop(silent);
}
