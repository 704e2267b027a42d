//! Spans as a request of the collector's protocol, by OpenTelemetry's conventions for databases
//! (<https://opentelemetry.io/docs/specs/semconv/db/database-spans/>).
//!
//! A literal is in no span. A canonical text may have some, so they are taken out of it. Attributes
//! that the conventions do not know have names that begin with `plateau.`.

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self, ResourceSpans, ScopeSpans, Status};
use prost::Message as _;
use router::without_literals;

use crate::span::{Failure, Span, System};
use crate::summary::summary;

/// Most bytes of a text in a span: as many as a line of the query log shows by default.
pub const TEXT_BYTES_MAX: usize = 1 << 10;

/// No more is looked at of a text. Blanks and comments between its words are not shown.
const READ_BYTES_MAX: usize = 4 * TEXT_BYTES_MAX;

/// Whose names the attributes have.
const CONVENTIONS: &str = "https://opentelemetry.io/schemas/1.37.0";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// OTLP's bits of `Span.flags`: the span is recorded; it is known whether its parent is of another
/// program; it is.
const SAMPLED: u32 = 0x001;
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The request that has these spans, of a service with this name.
pub(crate) fn request(spans: &[Span], service_name: &str) -> Vec<u8> {
    let resource = Resource {
        attributes: vec![
            text("service.name", service_name),
            text("service.version", VERSION),
        ],
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "plateau.gateway".to_owned(),
        version: VERSION.to_owned(),
        ..InstrumentationScope::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope),
                spans: spans.iter().map(message).collect(),
                schema_url: CONVENTIONS.to_owned(),
            }],
            schema_url: CONVENTIONS.to_owned(),
        }],
    };
    request.encode_to_vec()
}

/// How many spans a collector has refused, and why, by its reply. A reply that says nothing that
/// can be understood refuses none.
pub(crate) fn refused(reply: &[u8]) -> Option<(u64, String)> {
    let partial = ExportTraceServiceResponse::decode(reply)
        .ok()?
        .partial_success?;
    let count = u64::try_from(partial.rejected_spans).ok()?;
    (0 < count).then_some((count, partial.error_message))
}

fn message(span: &Span) -> v1::Span {
    let taken = u64::try_from(span.time.as_nanos()).unwrap_or(u64::MAX);
    let parent = span.begun.parent;
    let shown = span.digest.as_ref().map(|(_, canonical)| {
        let head = canonical.get(..READ_BYTES_MAX).unwrap_or(canonical);
        without_literals(head, span.mode)
    });
    let name = shown.as_deref().map(summary).unwrap_or_default();
    let remote = match parent {
        Some(_) => KNOWS_REMOTE | IS_REMOTE,
        None => KNOWS_REMOTE,
    };
    v1::Span {
        trace_id: span.begun.trace.0.to_vec(),
        span_id: span.begun.span.0.to_vec(),
        parent_span_id: parent.map(|it| it.0.to_vec()).unwrap_or_default(),
        flags: SAMPLED | remote,
        attributes: attributes(span, shown.as_deref(), &name),
        name: match name.is_empty() {
            true => system(span).to_owned(),
            false => name,
        },
        kind: SpanKind::Client.into(),
        start_time_unix_nano: span.ended_at.saturating_sub(taken),
        end_time_unix_nano: span.ended_at,
        status: span.failure.map(|_| Status {
            code: StatusCode::Error.into(),
            ..Status::default()
        }),
        ..v1::Span::default()
    }
}

fn system(span: &Span) -> &'static str {
    match span.system {
        System::MariaDb => "mariadb",
        System::MySql => "mysql",
    }
}

fn attributes(span: &Span, shown: Option<&[u8]>, summary: &str) -> Vec<KeyValue> {
    let mut all = vec![
        text("db.system.name", system(span)),
        text("plateau.service", &span.who.service),
        text("plateau.user", &span.who.user),
        number("plateau.session", span.session.into()),
        number("db.response.returned_rows", signed(span.rows_sent)),
        number("plateau.affected_rows", signed(span.rows_affected)),
    ];
    if let Some(name) = &span.who.database {
        all.push(text("db.namespace", name));
    }
    if !summary.is_empty() {
        all.push(text("db.query.summary", summary));
    }
    all.extend(shown.map(|it| text("db.query.text", &cut(it))));
    if let Some((number, _)) = &span.digest {
        all.push(text("plateau.digest", &format!("{number:016x}")));
    }
    if let Some((name, place)) = &span.server {
        all.push(text("plateau.server", name));
        if let Some(place) = place {
            all.push(text("server.address", &place.ip().to_string()));
            all.push(number("server.port", place.port().into()));
        }
    }
    if let Some((address, port)) = &span.client {
        all.push(text("client.address", &address.to_string()));
        all.extend(port.map(|it| number("client.port", it.get().into())));
    }
    if span.is_kept {
        all.push(attribute("plateau.cached", Value::BoolValue(true)));
    }
    match span.failure {
        Some(Failure::Error(number)) => {
            all.push(text("db.response.status_code", &number.to_string()));
            all.push(text("error.type", &number.to_string()));
        }
        Some(Failure::Unanswered) => all.push(text("error.type", "unanswered")),
        None => {}
    }
    all
}

/// A text as characters, cut between two of them.
fn cut(shown: &[u8]) -> String {
    let mut shown = String::from_utf8_lossy(shown).into_owned();
    let mut end = TEXT_BYTES_MAX.min(shown.len());
    while !shown.is_char_boundary(end) {
        end -= 1;
    }
    shown.truncate(end);
    shown
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn number(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

#[cfg(test)]
mod tests;
