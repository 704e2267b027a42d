//! [`Span`]: a statement that has ended and is traced.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use digests::Who;
use settings::SqlMode;

/// Names a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Names a span of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// A statement that is traced and has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// The trace.
    pub trace: TraceId,
    /// The statement's own span.
    pub span: SpanId,
    /// The span of the application, if it has told one.
    pub parent: Option<SpanId>,
}

/// See the module's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Its names.
    pub begun: Begun,
    /// When it has ended, in nanoseconds since 1970.
    pub ended_at: u64,
    /// How long it has taken.
    pub time: Duration,
    /// Whose it is.
    pub who: Arc<Who>,
    /// The number of the session, for KILL.
    pub session: u32,
    /// Where its client is; `None` over a unix socket.
    pub client: Option<(IpAddr, Option<NonZeroU16>)>,
    /// The digest of its text, and the canonical text. `None` if it was not read.
    pub digest: Option<(u64, Arc<[u8]>)>,
    /// As which servers read the text.
    pub mode: SqlMode,
    /// What its servers are.
    pub system: System,
    /// The name of the server that has answered, and where that is, over TCP.
    pub server: Option<(Arc<str>, Option<SocketAddr>)>,
    /// Rows that the client was sent.
    pub rows_sent: u64,
    /// Rows that were changed.
    pub rows_affected: u64,
    /// A cache of results has answered.
    pub is_kept: bool,
    /// Why it has failed, if it has.
    pub failure: Option<Failure>,
}

/// What servers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// MariaDB.
    MariaDb,
    /// MySQL, and all that says no more.
    MySql,
}

/// Why a statement has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Its client got the error of this number.
    Error(u16),
    /// Its client was gone before the end of the reply.
    Unanswered,
}

#[cfg(test)]
impl Span {
    /// One of two seconds, about which little is known.
    pub(crate) fn example() -> Span {
        Span {
            begun: Begun {
                trace: TraceId([1; 16]),
                span: SpanId([2; 8]),
                parent: None,
            },
            ended_at: 5_000_000_000,
            time: Duration::from_secs(2),
            who: Arc::new(Who {
                service: "shop".into(),
                user: "app".into(),
                database: None,
            }),
            session: 7,
            client: None,
            digest: None,
            mode: SqlMode::default(),
            system: System::MySql,
            server: None,
            rows_sent: 3,
            rows_affected: 0,
            is_kept: false,
            failure: None,
        }
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
