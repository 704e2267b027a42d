//! What spans say, and what collectors answer.

use std::sync::Arc;

use digests::Who;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
use settings::SqlMode;

use crate::span::{Begun, SpanId};

use super::*;

/// What a span is named, and its attributes, as a collector reads them.
fn shown(span: Span) -> (v1::Span, String) {
    let bytes = request(&[span], "gate");
    let mut read = ExportTraceServiceRequest::decode(&*bytes).unwrap();
    let mut of_resource = read.resource_spans.remove(0);
    let names = list(&of_resource.resource.unwrap().attributes);
    assert_eq!(
        names,
        format!("service.name=gate service.version={VERSION}")
    );
    let span = of_resource.scope_spans.remove(0).spans.remove(0);
    let attributes = list(&span.attributes);
    (span, attributes)
}

fn list(attributes: &[KeyValue]) -> String {
    let show = |it: &KeyValue| {
        let value = match it.value.clone().and_then(|it| it.value) {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(number)) => number.to_string(),
            Some(Value::BoolValue(is)) => is.to_string(),
            other => panic!("{other:?}"),
        };
        format!("{}={value}", it.key)
    };
    attributes.iter().map(show).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_span_says_what_is_known() {
    let (read, attributes) = shown(Span::example());
    assert_eq!(
        attributes,
        "db.system.name=mysql plateau.service=shop plateau.user=app plateau.session=7 \
         db.response.returned_rows=3 plateau.affected_rows=0"
    );
    assert_eq!((&*read.name, read.kind), ("mysql", 3));
    assert_eq!((read.trace_id, read.span_id), (vec![1; 16], vec![2; 8]));
    assert_eq!((read.parent_span_id, read.flags), (Vec::new(), 0x101));
    let times = (read.start_time_unix_nano, read.end_time_unix_nano);
    assert_eq!(times, (3_000_000_000, 5_000_000_000));
    assert_eq!(read.status, None);
}

#[test]
fn a_failed_span_with_a_parent_says_all_of_it() {
    let all = Span {
        begun: Begun {
            parent: Some(SpanId([3; 8])),
            ..Span::example().begun
        },
        who: Arc::new(Who {
            database: Some("store".into()),
            ..(*Span::example().who).clone()
        }),
        client: Some(("::1".parse().unwrap(), "40112".parse().ok())),
        digest: Some((0x12b0, Arc::from(&b"SELECT a FROM t WHERE id=?"[..]))),
        system: System::MariaDb,
        server: Some(("db1".into(), "10.0.0.1:3307".parse().ok())),
        is_kept: true,
        failure: Some(Failure::Error(1062)),
        ..Span::example()
    };
    let (read, attributes) = shown(all.clone());
    assert_eq!(
        attributes,
        "db.system.name=mariadb plateau.service=shop plateau.user=app plateau.session=7 \
         db.response.returned_rows=3 plateau.affected_rows=0 db.namespace=store \
         db.query.summary=SELECT t db.query.text=SELECT a FROM t WHERE id=? \
         plateau.digest=00000000000012b0 plateau.server=db1 server.address=10.0.0.1 \
         server.port=3307 client.address=::1 client.port=40112 plateau.cached=true \
         db.response.status_code=1062 error.type=1062"
    );
    assert_eq!((&*read.name, read.status.unwrap().code), ("SELECT t", 2));
    assert_eq!((read.parent_span_id, read.flags), (vec![3; 8], 0x301));
    let (_, attributes) = shown(Span {
        failure: Some(Failure::Unanswered),
        ..all
    });
    assert!(attributes.ends_with("plateau.cached=true error.type=unanswered"));
}

#[test]
fn no_literal_is_sent() {
    let text_of = |canonical: &[u8], mode| {
        let (read, _) = shown(Span {
            digest: Some((1, Arc::from(canonical))),
            mode,
            ..Span::example()
        });
        let text = read.attributes.iter().find(|it| it.key == "db.query.text");
        let value = text.unwrap().value.clone().unwrap().value;
        (read.name, format!("{value:?}"))
    };
    let mode = SqlMode::default();
    let (name, text) = text_of(b"SELECT 'FROM a', 4711 FROM t", mode);
    assert_eq!(name, "SELECT t");
    assert_eq!(text, r#"Some(StringValue("SELECT ?, ? FROM t"))"#);
    let mode = mode.with(SqlMode::NO_BACKSLASH_ESCAPES);
    let (_, text) = text_of(br"SELECT 'a\', 'b'", mode);
    assert_eq!(text, r#"Some(StringValue("SELECT ?, ?"))"#);
    // A text that is cut in a literal.
    let long = format!("SELECT '{}'", "a".repeat(READ_BYTES_MAX));
    let (_, text) = text_of(long.as_bytes(), mode);
    assert_eq!(text, r#"Some(StringValue("SELECT ?"))"#);
}

#[test]
fn a_text_is_cut_between_characters() {
    for (text, bytes) in [
        ("a".repeat(TEXT_BYTES_MAX), TEXT_BYTES_MAX),
        ("a".repeat(TEXT_BYTES_MAX + 1), TEXT_BYTES_MAX),
        (format!("a{}", "\u{e9}".repeat(600)), TEXT_BYTES_MAX - 1),
    ] {
        assert_eq!(cut(text.as_bytes()).len(), bytes);
    }
    assert_eq!(cut(b"a\xff"), "a\u{fffd}");
}

#[test]
fn refused_spans_are_counted() {
    let reply = |rejected_spans, told: &str| {
        let reply = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans,
                error_message: told.to_owned(),
            }),
        };
        reply.encode_to_vec()
    };
    assert_eq!(refused(&reply(2, "full")), Some((2, "full".to_owned())));
    for nothing in [
        &*reply(0, "a warning"),
        &reply(-1, ""),
        b"",
        b"{}",
        b"\xff\xff",
    ] {
        assert_eq!(refused(nothing), None);
    }
}
