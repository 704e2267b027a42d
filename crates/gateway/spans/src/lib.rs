//! Spans of statements, for a collector of OpenTelemetry. No client ever waits for it.
//!
//! ```text
//! text -- Parent --> Tracer (a worker) -- Begun --> statement -- Span --> Spans (a queue)
//!                                                                           |
//!               collector <-- HTTP <-- protobuf <-- a thread of its own
//! ```
//!
//! * [`Tracer`] says which statements are traced: those that a sampled [`Parent`] has, and a part
//!   of those that have none ([`Sampling`]).
//! * [`Span`] is a statement that has ended. It shares its texts with the session.
//! * [`Spans`] is one a program. Its thread sends what waits. If that falls behind, or if the
//!   collector does not take spans, they are dropped and counted.
//! * `message` and `summary` say a span by the semantic conventions for databases, and in protobuf.
//! * `exchange` sends one request, in a limited time. [`Endpoint`] says where to.

#![forbid(unsafe_code)]

mod parent;
mod sampling;
mod span;
mod tracer;

mod endpoint;
mod exchange;
mod message;
mod summary;

mod spans;

pub use endpoint::{Endpoint, EndpointError};
pub use exchange::{Connection, ExchangeError, REPLY_BYTES_MAX, read_reply};
pub use message::TEXT_BYTES_MAX;
pub use parent::{COMMENT_BYTES_MAX, Extent, Parent};
pub use sampling::{MILLION, Sampling};
pub use span::{Begun, Failure, Span, SpanId, System, TraceId};
pub use spans::{Numbers, SPANS_MAX, Spans, Target};
pub use summary::SUMMARY_BYTES_MAX;
pub use tracer::Tracer;
