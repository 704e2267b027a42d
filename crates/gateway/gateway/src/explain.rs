//! EXPLAIN ROUTE: where a statement would go, and why.
//!
//! ```text
//! client of a service -- its own session (`pooled/explain.rs`, `direct.rs`) --+
//! operator -- [`crate::Inside`], a session that begins (`pooled/explain.rs`) --+-- properties
//! ```
//!
//! Sessions find out by the functions that their statements go by, and change nothing. `words.rs`
//! and `cached.rs` put what they find into English. No server is asked: what only a server knows is
//! shown as what the answer depends on.

use std::sync::Arc;
use std::time::Duration;

use errcode::{ClientError, WORDS_EXPLAIN_OTHER};
use front::Client;
use monitor::{Published, ServerId as Place};
use result_cache::Tables;
use router::{Choice, Decision, Explanation, Judged, Pins, Route, digested};
use syntax::SqlMode;
use syntax::ast::{Explain, ExplainRoute, StatementKind};
use wire::{
    ColumnDefinition, ColumnType, OkPacket, ResultHead, StatusFlags, TextRow, end_columns, end_rows,
};

use crate::gateway::generation::Generation;
use crate::options::{Router, ServiceId};

mod cached;
mod words;

pub(crate) use cached::{Cached, Has, Then, Unasked};
pub(crate) use words::pins as pins_in_words;

/// A row of the answer: a property, and what it is.
pub type Property = (&'static str, Option<String>);

/// Whose statement it is, and what it is.
pub(crate) struct Asked<'a> {
    pub(crate) generation: &'a Generation,
    pub(crate) service: ServiceId,
    pub(crate) user: &'a str,
    pub(crate) database: Option<&'a str>,
    pub(crate) text: &'a [u8],
    /// As its servers read it.
    pub(crate) mode: SqlMode,
    pub(crate) judged: &'a Judged,
    /// The rules that it meets.
    pub(crate) decisions: &'a [Decision],
    /// Why its session stays where it is.
    pub(crate) pins: Pins,
    /// What it has to do with caches.
    pub(crate) cached: Cached,
    /// What is known of tables; `None` if no cache has to know.
    pub(crate) known: Option<&'a Tables>,
}

/// What becomes of a statement.
pub(crate) enum Course {
    /// The gateway answers it itself, for this reason.
    Here(&'static str),
    /// A rule refuses it.
    Refused(Arc<str>),
    /// It goes where its client's own connection leads.
    Own(Arc<str>),
    /// That server is in maintenance, and the session ends.
    Lost(Arc<str>),
    /// It goes where the router says.
    Routed(Box<Routed>),
}

/// The way of a statement that is routed.
pub(crate) struct Routed {
    pub(crate) explanation: Explanation,
    pub(crate) choice: Choice,
    pub(crate) kind: Kind,
    /// What reads have to see, if that is known.
    pub(crate) written: Option<String>,
    /// What the answer depends on.
    pub(crate) condition: Option<Condition>,
    /// What it leaves beyond its plan.
    pub(crate) leaves: Leaves,
}

/// How the router finds a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By the statement.
    Split,
    /// All go to one server, and this is the present one.
    Stays,
    /// All go to one server, and another one is the next.
    Moves,
}

/// What only a server will tell when the statement comes, and where it goes otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) what: What,
    /// One of these.
    pub(crate) otherwise: Vec<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Where the primary has written to by then.
    Position,
    /// Whether the replica gets what was written in this time.
    Wait(Duration),
    /// How long each replica has taken to answer by then.
    ResponseTime,
}

/// What a statement leaves beyond its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaves {
    /// What pins the session once it has succeeded.
    pub(crate) pins: Pins,
    /// Its connection is reset if it fails.
    pub(crate) resets: bool,
    /// Reads have to see what it writes.
    pub(crate) shows_writes: bool,
}

/// Whether a text is EXPLAIN ROUTE. Most show it by their first byte.
pub(crate) fn is_asked(text: &[u8], mode: SqlMode) -> bool {
    let may_be = match text.first() {
        Some(b'e' | b'E' | b'/' | b'-' | b'#') => true,
        Some(first) => first.is_ascii_whitespace(),
        None => false,
    };
    may_be && syntax::is_explain_route(text, mode)
}

/// What an EXPLAIN ROUTE of a client asks.
///
/// # Errors
/// It is malformed, or about a connection, which only operators ask about.
pub(crate) fn parse(text: &[u8], mode: SqlMode) -> Result<ExplainRoute, ClientError> {
    let parsed = syntax::parse(text, mode);
    let parsed = parsed.map_err(|error| {
        let line = usize::try_from(error.line).unwrap_or(usize::MAX);
        ClientError::syntax(&error.near, line)
    })?;
    match parsed.kind {
        StatementKind::Explain(explain) => match *explain {
            Explain::Route(asked) => Ok(asked),
            Explain::RouteOf(number) => Err(ClientError::worded(
                WORDS_EXPLAIN_OTHER,
                &[&"of the connection", &number],
            )),
            _ => unreachable!("it was looked at"),
        },
        _ => unreachable!("it was looked at"),
    }
}

/// Checks that a client asks about itself alone.
///
/// # Errors
/// It asks about somebody else.
pub(crate) fn check_own(
    asked: &ExplainRoute,
    user: &str,
    database: Option<&str>,
    service: &str,
) -> Result<(), ClientError> {
    let pairs = [
        ("of the user", &asked.user, Some(user)),
        ("in the database", &asked.database, database),
        ("of the service", &asked.service, Some(service)),
    ];
    for (what, asked, own) in pairs {
        if let Some(asked) = asked
            && Some(asked.as_str()) != own
        {
            return Err(ClientError::worded(WORDS_EXPLAIN_OTHER, &[&what, asked]));
        }
    }
    Ok(())
}

/// The answer. `published` is what it goes by.
pub(crate) fn properties(
    asked: &Asked<'_>,
    course: &Course,
    published: &Published,
) -> Vec<Property> {
    let (statement, digest) = digested(asked.text);
    let options = &asked.generation.service(asked.service).options;
    let router = match options.router {
        Router::ReadConnection(_) => "read-connection",
        Router::ReadWriteSplit(_) => "read-write-split",
    };
    let name = |place: Place| match published.map.server(place) {
        Some(server) => server.entry.name.to_string(),
        None => place.0.to_string(),
    };
    let own = |text: &str| Some(text.to_owned());
    let mut rows = vec![
        ("statement", Some(lossy(&statement))),
        ("digest", Some(format!("{digest:016x}"))),
        ("class", own(words::class(asked.judged))),
        ("kind", own(words::kind(asked.judged))),
        ("tables", cached::tables(asked, course)),
        ("user", own(asked.user)),
        ("database", asked.database.map(str::to_owned)),
        ("service", own(&options.name)),
        ("router", own(router)),
        ("rules", words::rules(asked.decisions)),
    ];
    let sentence = words::Sentence {
        asked,
        wait: options.wait,
        name: &name,
    };
    let told = sentence.told(course);
    rows.extend([
        ("goal", told.goal),
        ("server", told.server),
        ("why", Some(told.why)),
        ("other_servers", told.others),
        ("depends_on", told.condition),
        ("otherwise", told.otherwise),
        ("pins", words::pins(asked.pins)),
        ("leaves", told.leaves),
        ("cache", cached::words(asked, course)),
        ("map_version", Some(published.version.to_string())),
    ]);
    rows
}

/// Answers with these rows.
pub(crate) fn write(client: &mut Client, status: StatusFlags, rows: &[Property]) {
    let capabilities = client.capabilities();
    let collation = client.info().collation;
    let out = client.out();
    let columns: [&[u8]; 2] = [b"property", b"value"];
    ResultHead::encode(out, capabilities, columns.len());
    for name in columns {
        let column = ColumnDefinition {
            collation,
            display_bytes: DISPLAY_BYTES,
            ..ColumnDefinition::new(name, ColumnType::VarString)
        };
        column.encode(out, capabilities);
    }
    end_columns(out, capabilities, status, 0);
    for (property, value) in rows {
        let mut writer = TextRow::begin(out);
        writer.bytes(property.as_bytes());
        match value {
            Some(value) => writer.bytes(value.as_bytes()),
            None => writer.null(),
        }
        writer.finish();
    }
    let ok = OkPacket {
        status,
        ..OkPacket::default()
    };
    end_rows(out, capabilities, &ok);
    client.end_reply();
}

/// How wide clients may expect the values to be.
const DISPLAY_BYTES: u32 = 1024;

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name of the server that a rule sends statements to.
pub(crate) fn route_words(route: &Route) -> String {
    match route {
        Route::Primary => "route=primary".to_owned(),
        Route::Replica => "route=replica".to_owned(),
        Route::Server(name) => format!("server={name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_asks_about_itself_alone() {
        let asked = |text: &str| {
            let text = format!("EXPLAIN ROUTE FOR 'SELECT 1' {text}");
            assert!(is_asked(text.as_bytes(), SqlMode::default()));
            let asked = parse(text.as_bytes(), SqlMode::default()).unwrap();
            check_own(&asked, "app", Some("shop"), "all").map_err(|it| it.message)
        };
        for text in ["", "AS app", "IN shop", "AS app IN shop SERVICE all"] {
            assert_eq!(asked(text), Ok(()), "{text}");
        }
        for (text, names) in [
            ("AS root", "of the user 'root'"),
            ("IN other", "in the database 'other'"),
            ("AS app SERVICE reports", "of the service 'reports'"),
        ] {
            let refused = asked(text).unwrap_err();
            assert!(refused.contains(names), "{refused}");
        }
    }

    #[test]
    fn most_texts_are_told_by_their_first_byte() {
        for (text, expected) in [
            ("EXPLAIN ROUTE FOR 'SELECT 1'", true),
            ("  explain route for 'SELECT 1'", true),
            ("# a\nEXPLAIN ROUTE FOR 'SELECT 1'", true),
            ("SELECT 1", false),
            ("", false),
            ("EXPLAIN SELECT 1", false),
        ] {
            let is_it = is_asked(text.as_bytes(), SqlMode::default());
            assert_eq!(is_it, expected, "{text}");
        }
        let error = parse(b"EXPLAIN ROUTE FOR\nSELECT 1", SqlMode::default()).unwrap_err();
        assert_eq!(error.code.number(), 1064);
        assert!(
            error.message.ends_with("near 'SELECT 1' at line 2"),
            "{error}"
        );
    }
}
