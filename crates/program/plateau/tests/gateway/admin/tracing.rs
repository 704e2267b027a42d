//! `[tracing]`: which statements are traced and what their spans say; and that no client waits for
//! a collector that is down or slow.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::monitoring::get;
use crate::prepared::{Types, execute, prepare};
use crate::*;
use testkit::free_port;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A collector that takes OTLP over HTTP.
struct Collector {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// Connections that get no answer. Later ones do.
    unanswered: Vec<TcpStream>,
    is_silent: bool,
    /// Bodies of requests.
    bodies: Vec<Vec<u8>>,
    spans: Vec<Span>,
}

impl Collector {
    fn start() -> Collector {
        Collector::at(0)
    }

    fn at(port: u16) -> Collector {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let shared = Arc::clone(&seen);
        let serve = move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut seen = shared.lock().expect("no test has failed under it");
                if seen.is_silent {
                    seen.unanswered.push(stream);
                    continue;
                }
                drop(seen);
                let body = receive(&mut stream);
                let mut seen = shared.lock().expect("no test has failed under it");
                seen.take(body);
                let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(reply).expect("the gateway waits for it");
            }
        };
        std::thread::Builder::new().spawn(serve).expect("a thread");
        Collector { port, seen }
    }

    /// The section of a gateway that sends spans there.
    fn section(&self, fields: &str) -> String {
        section(self.port, fields)
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Seen) -> T) -> T {
        ask(&mut self.seen.lock().expect("no test has failed under it"))
    }

    /// Waits for so many spans, and returns their names.
    fn names(&self, count: usize) -> Vec<String> {
        wait_until("all spans are there", || {
            count <= self.with(|it| it.spans.len())
        });
        self.with(|it| it.spans.iter().map(|it| it.name.clone()).collect())
    }
}

impl Seen {
    fn take(&mut self, body: Vec<u8>) {
        let read = ExportTraceServiceRequest::decode(&*body).expect("a request of OTLP");
        for of_resource in read.resource_spans {
            let resource = of_resource.resource.expect("it is told");
            let name = resource
                .attributes
                .iter()
                .find(|it| it.key == "service.name");
            let name = name.and_then(|it| it.value.clone());
            assert_eq!(shown(name.and_then(|it| it.value)), "gate");
            let spans = of_resource.scope_spans.into_iter();
            self.spans.extend(spans.flat_map(|it| it.spans));
        }
        self.bodies.push(body);
    }
}

fn section(port: u16, fields: &str) -> String {
    format!(
        "[tracing]\nendpoint = \"http://localhost:{port}/v1/traces\"\nservice_name = \"gate\"\n\
         {fields}"
    )
}

/// The body of a request.
fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).expect("a request");
        assert!(0 < count, "there is more to come");
        received.extend_from_slice(&piece[..count]);
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(&received).expect("a request of HTTP");
        let httparse::Status::Complete(head) = parsed else {
            continue;
        };
        let header = |name: &str| {
            let found = request.headers.iter().find(|it| it.name == name);
            String::from_utf8_lossy(found.expect(name).value).into_owned()
        };
        let (method, path) = (request.method, request.path);
        assert_eq!((method, path), (Some("POST"), Some("/v1/traces")));
        assert_eq!(header("Content-Type"), "application/x-protobuf");
        let length: usize = header("Content-Length").parse().expect("a number");
        if received.len() == head + length {
            return received.split_off(head);
        }
    }
}

fn shown(value: Option<Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(is)) => is.to_string(),
        other => format!("{other:?}"),
    }
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let attribute = |it: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        let value = it.value.clone().and_then(|it| it.value);
        (it.key.clone(), shown(value))
    };
    span.attributes.iter().map(attribute).collect()
}

/// A statement with a comment of sqlcommenter.
fn commented(text: &str, flags: &str) -> String {
    format!("{text} /*app='shop',traceparent='00-{TRACE}-{PARENT}-{flags}'*/")
}

/// Has the gateway read another file.
fn reload(gateway: &mut Gateway, text: &str) {
    let told = "read the settings file again";
    let before = gateway.log().matches(told).count();
    fs::write(gateway.folder.path().join("plateau.toml"), text).expect("the folder is there");
    let id = gateway.server.process().id().to_string();
    let hang_up = Command::new("kill").args(["-HUP", &id]).status();
    assert!(hang_up.expect("kill is installed").success());
    wait_until("the file is read", || {
        before < gateway.log().matches(told).count()
    });
}

/// A number of the page for monitors.
fn number(port: u16, name: &str) -> u64 {
    let (_, page) = get(port, "/metrics");
    let line = page.lines().find(|it| it.starts_with(&format!("{name} ")));
    let told = line.and_then(|it| it.split(' ').nth(1));
    told.and_then(|it| it.parse().ok()).expect("it is there")
}

#[test]
fn each_statement_is_a_span() {
    let backend = backend();
    for kind in &KINDS[..2] {
        let collector = Collector::start();
        let service = format!("[[service]]\nname = \"shop\"\n{kind}");
        let text = sections(&[&backend]) + &service + &collector.section("sample = 1\n");
        let mut gateway = Gateway::start(&text, "auto");
        let mut client = gateway.connect();
        for statement in [
            "CREATE TABLE IF NOT EXISTS shop.traced (id INT PRIMARY KEY, name TEXT)",
            "USE shop",
            "REPLACE INTO traced VALUES (1,'hidden'),(2,'hidden')",
        ] {
            client.run(statement).unwrap();
        }
        let twice = "INSERT INTO traced VALUES (2,'hidden')";
        assert_eq!(client.error_number(twice).unwrap(), 1062);
        let read = prepare(&mut client, "SELECT id FROM traced WHERE id<=?");
        execute(&mut client, &read, 2, Types::Told);
        // The digest's text has this literal.
        client.value("SELECT 'hidden' AS a").unwrap();
        // What waits is sent at the end.
        gateway.server.stop().unwrap();
        let expected = [
            "CREATE TABLE shop.traced",
            "USE",
            "REPLACE traced",
            "INSERT traced",
            "SELECT traced",
            "SELECT",
        ];
        assert_eq!(collector.names(expected.len()), expected, "{kind}");
        let spans = collector.with(|it| it.spans.clone());
        for span in &spans {
            let all = attributes(span);
            assert_eq!(span.kind, 3, "a client's");
            assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
            assert!(span.parent_span_id.is_empty());
            assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
            let port = backend.port().to_string();
            for (name, expected) in [
                ("db.system.name", "mariadb"),
                ("plateau.service", "shop"),
                ("plateau.user", "app"),
                ("plateau.server", "db0"),
                ("server.address", "127.0.0.1"),
                ("server.port", &port),
                ("client.address", "127.0.0.1"),
                ("db.query.summary", &span.name),
                ("plateau.session", &client.connection_id.to_string()),
            ] {
                assert_eq!(all.get(name).map(String::as_str), Some(expected), "{name}");
            }
        }
        let failed = attributes(&spans[3]);
        assert_eq!(failed["db.namespace"], "shop");
        assert_eq!(failed["db.query.text"], "INSERT INTO traced VALUES (?,?)");
        assert_eq!(failed["db.response.status_code"], "1062");
        assert_eq!(failed["error.type"], "1062");
        assert_eq!(spans[3].status.as_ref().map(|it| it.code), Some(2));
        assert_eq!(spans[2].status, None);
        assert!(!attributes(&spans[0]).contains_key("db.namespace"));
        assert_eq!(attributes(&spans[4])["db.response.returned_rows"], "2");
        let hidden = |body: &Vec<u8>| body.windows(6).any(|it| it == b"hidden");
        assert!(!collector.with(|it| it.bodies.iter().any(hidden)));
    }
}

#[test]
fn a_traceparent_is_continued() {
    let backend = backend();
    let collector = Collector::start();
    let text = sections(&[&backend]) + &collector.section("");
    let mut gateway = Gateway::start(&text, "auto");
    let mut client = gateway.connect();
    client.value("SELECT 1 AS untraced").unwrap();
    client
        .value(&commented("SELECT 2 AS unsampled", "00"))
        .unwrap();
    client.value(&commented("SELECT 3 AS a", "01")).unwrap();
    let first = format!("/*traceparent='00-{TRACE}-{PARENT}-01'*/ DO 4");
    client.run(&first).unwrap();
    let long = format!("DO '{}'", "a".repeat(2 << 20));
    client.run(&commented(&long, "01")).unwrap();
    let read = prepare(&mut client, &commented("SELECT 5 FROM DUAL", "01"));
    execute(&mut client, &read, 1, Types::Told);
    let before_long = format!("/*traceparent='00-{TRACE}-{PARENT}-01'*/ {long}");
    client.run(&before_long).unwrap();
    // Of a text that is too long to be read, there is no summary.
    let expected = ["SELECT", "DO", "SELECT DUAL", "mariadb"];
    assert_eq!(collector.names(expected.len()), expected);
    collector.with(|it| {
        for span in &it.spans {
            let hex = |bytes: &[u8]| {
                bytes
                    .iter()
                    .map(|it| format!("{it:02x}"))
                    .collect::<String>()
            };
            assert_eq!(hex(&span.trace_id), TRACE);
            assert_eq!(hex(&span.parent_span_id), PARENT);
            assert_eq!(span.flags, 0x301);
        }
        assert_eq!(attributes(&it.spans[0])["db.query.text"], "SELECT ? AS a");
    });
    // With a ratio, too, the parent decides.
    reload(
        &mut gateway,
        &(sections(&[&backend]) + &collector.section("sample = 1\n")),
    );
    client
        .value(&commented("SELECT 6 AS unsampled", "00"))
        .unwrap();
    client.run("COMMIT").unwrap();
    assert_eq!(collector.names(5)[4], "COMMIT");
}

#[test]
fn a_reload_takes_the_section() {
    let backend = backend();
    let services = sections(&[&backend]) + "[[service]]\nname = \"shop\"\n";
    let mut gateway = Gateway::start(&services, "auto");
    let mut client = gateway.connect();
    client.run("DO 1").unwrap();
    let (first, second) = (Collector::start(), Collector::start());
    reload(
        &mut gateway,
        &(services.clone() + &first.section("sample = 1\n")),
    );
    client.run("DO 2").unwrap();
    assert_eq!(first.names(1), ["DO"], "of a session that had begun");
    let chosen = second.section("sample = 1\nservices = [\"SHOP\"]\n");
    reload(&mut gateway, &(services.clone() + &chosen));
    client.run("SET @a = 1").unwrap();
    assert_eq!(second.names(1), ["SET"]);
    let mistake = section(1, "sample = 2\n");
    let file = gateway.folder.path().join("plateau.toml");
    fs::write(&file, services.clone() + &mistake).unwrap();
    let id = gateway.server.process().id().to_string();
    let hang_up = Command::new("kill").args(["-HUP", &id]).status();
    assert!(hang_up.unwrap().success());
    wait_until("the mistake is told", || {
        gateway.log().contains("must be between 0 and 1")
    });
    reload(&mut gateway, &services);
    client.run("DO 3").unwrap();
    reload(&mut gateway, &(services + &chosen));
    client.run("COMMIT").unwrap();
    assert_eq!(second.names(2), ["SET", "COMMIT"]);
    assert_eq!(first.names(1).len(), 1);
    assert!(!gateway.log().contains("need a restart"));
}

#[test]
fn a_collector_that_is_down_costs_spans() {
    let backend = backend();
    let (metrics, port) = (free_port().unwrap(), free_port().unwrap());
    let text = format!("metrics_listen = \"127.0.0.1:{metrics}\"\n")
        + &sections(&[&backend])
        + &section(port, "sample = 1\n");
    let mut gateway = Gateway::start(&text, "auto");
    let mut client = gateway.connect();
    let told = "the collector takes no spans";
    wait_until("the log says so", || {
        client.run("DO 1").unwrap();
        gateway.log().contains(told)
    });
    let dropped = "plateau_spans_dropped_total";
    let before = number(metrics, dropped);
    wait_until("more are dropped", || {
        client.run("DO 1").unwrap();
        before < number(metrics, dropped)
    });
    assert_eq!(number(metrics, "plateau_spans_sent_total"), 0);
    let collector = Collector::at(port);
    wait_until("it goes on by itself", || {
        client.run("DO 1").unwrap();
        gateway.log().contains("the collector takes spans again")
    });
    assert!(0 < number(metrics, "plateau_spans_sent_total"));
    gateway.server.stop().unwrap();
    assert!(0 < collector.with(|it| it.spans.len()));
    assert_eq!(gateway.log().matches(told).count(), 1);
}

#[test]
fn a_collector_that_never_answers_costs_no_time_of_clients() {
    let backend = backend();
    let metrics = free_port().unwrap();
    let collector = Collector::start();
    collector.with(|it| it.is_silent = true);
    let text = format!("metrics_listen = \"127.0.0.1:{metrics}\"\n")
        + &sections(&[&backend])
        + &collector.section("sample = 1\n");
    let mut gateway = Gateway::start(&text, "auto");
    let mut client = gateway.connect();
    client.run("DO 1").unwrap();
    wait_until("the collector is asked", || {
        collector.with(|it| !it.unanswered.is_empty())
    });
    // All these end while it is waited for: the log has said nothing of it before.
    let told = "the collector has not answered in time";
    for number in 0..100 {
        client.value(&format!("SELECT {number}")).unwrap();
    }
    assert!(!gateway.log().contains(told));
    wait_until("it is not waited for any longer", || {
        client.run("DO 1").unwrap();
        gateway.log().contains(told)
    });
    // More than may wait.
    let dropped = || number(metrics, "plateau_spans_dropped_total");
    wait_until("there is no room", || {
        for _ in 0..1000 {
            client.run("DO 1").unwrap();
        }
        8192 < dropped()
    });
    collector.with(|it| {
        it.is_silent = false;
        it.unanswered.clear();
    });
    wait_until("it answers again", || {
        client.run("DO 1").unwrap();
        gateway.log().contains("the collector takes spans again")
    });
    collector.with(|it| it.is_silent = true);
    client.run("DO 1").unwrap();
    gateway.server.stop().unwrap();
    assert_eq!(gateway.log().matches(told).count(), 1);
}
