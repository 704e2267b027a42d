//! The queue and its thread, before collectors that do well and that do not.

use std::io::{Read, Write};
use std::net::TcpListener;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use super::*;

fn target(port: u16) -> Option<Target> {
    Some(Target {
        endpoint: format!("http://127.0.0.1:{port}").parse().unwrap(),
        service_name: "gate".to_owned(),
    })
}

/// A collector that answers each request so. Returns its port, and where it tells how many spans
/// each request had.
fn collector(answer: &'static [u8]) -> (u16, std::sync::mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, counts) = std::sync::mpsc::channel();
    let serve = move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let body = receive(&mut stream);
            let read = ExportTraceServiceRequest::decode(&*body).unwrap();
            let count = read.resource_spans[0].scope_spans[0].spans.len();
            // Nobody looks any more once the test is over.
            let _ = (told.send(count), stream.write_all(answer));
        }
    };
    std::thread::Builder::new().spawn(serve).unwrap();
    (port, counts)
}

/// The body of a request.
fn receive(stream: &mut impl Read) -> Vec<u8> {
    let mut received = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert!(0 < count, "there is more to come");
        received.extend_from_slice(&piece[..count]);
        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(head) = request.parse(&received).unwrap() else {
            continue;
        };
        assert_eq!(request.path, Some("/v1/traces"));
        let length = request
            .headers
            .iter()
            .find(|it| it.name == "Content-Length");
        let length = str::from_utf8(length.unwrap().value).unwrap();
        if head + length.parse::<usize>().unwrap() == received.len() {
            return received.split_off(head);
        }
    }
}

#[test]
fn no_more_wait_than_there_is_room_for() {
    let spans = Spans::default();
    spans.push(Span::example());
    let nobody = Numbers {
        dropped: 1,
        ..Numbers::default()
    };
    assert_eq!(spans.numbers(), nobody, "there is no collector");
    spans.use_target(target(1));
    for _ in 0..SPANS_MAX + 2 {
        spans.push(Span::example());
    }
    let full = Numbers {
        sent: 0,
        dropped: 3,
        waiting: SPANS_MAX,
    };
    assert_eq!(spans.numbers(), full);
}

#[test]
fn spans_are_sent_in_requests_of_some_hundred() {
    let (port, counts) = collector(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let spans: Arc<Spans> = Arc::default();
    spans.use_target(target(port));
    for _ in 0..2 * BATCH_SPANS {
        spans.push(Span::example());
    }
    spans.start().unwrap();
    spans.start().unwrap();
    assert_eq!(counts.recv().unwrap(), BATCH_SPANS);
    assert_eq!(counts.recv().unwrap(), BATCH_SPANS);
    // The thread waits for the next one, and for a moment for more.
    spans.push(Span::example());
    spans.push(Span::example());
    spans.finish();
    assert_eq!(counts.recv().unwrap(), 2);
    let all = Numbers {
        sent: stdx::to_u64(2 * BATCH_SPANS + 2),
        ..Numbers::default()
    };
    assert_eq!(spans.numbers(), all);
    spans.finish();
}

#[test]
fn what_a_collector_does_not_take_is_dropped() {
    // A message of protobuf: `partial_success` with one span that was refused.
    let partial = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x0a\x02\x08\x01";
    for (answer, sent) in [
        (&b"HTTP/1.1 503 Busy\r\n\r\n"[..], 0),
        (b"no HTTP\n\n", 0),
        (b"", 0),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 2),
        (partial, 1),
    ] {
        let (port, _counts) = collector(answer);
        let spans: Arc<Spans> = Arc::default();
        spans.use_target(target(port));
        spans.push(Span::example());
        spans.push(Span::example());
        spans.start().unwrap();
        spans.finish();
        let expected = Numbers {
            sent,
            dropped: 2 - sent,
            waiting: 0,
        };
        assert_eq!(spans.numbers(), expected, "{}", answer.escape_ascii());
    }
}

#[test]
fn at_the_end_a_collector_is_asked_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let spans: Arc<Spans> = Arc::default();
    spans.use_target(target(port));
    for _ in 0..3 * BATCH_SPANS {
        spans.push(Span::example());
    }
    spans.start().unwrap();
    spans.finish();
    let numbers = Numbers {
        dropped: stdx::to_u64(3 * BATCH_SPANS),
        ..Numbers::default()
    };
    assert_eq!(spans.numbers(), numbers);
}

#[test]
fn without_a_section_waiting_spans_are_dropped() {
    let spans: Arc<Spans> = Arc::default();
    spans.use_target(target(1));
    spans.push(Span::example());
    spans.use_target(None);
    spans.start().unwrap();
    spans.finish();
    assert_eq!(spans.numbers().dropped, 1);
}
