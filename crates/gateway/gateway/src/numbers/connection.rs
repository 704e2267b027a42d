//! EXPLAIN ROUTE FOR CONNECTION: where the statement of a session has gone, and what keeps it
//! there, as far as the session shows it to others. What its statement is, only its own worker
//! knows; so that is asked by EXPLAIN ROUTE FOR a text.

use std::sync::Arc;

use router::Pin;

use crate::explain::{Property, pins_in_words};
use crate::options::Router;

use super::views::{SessionState, SessionView};

/// The answer. `server` is the one whose connection the session uses.
pub(super) fn properties(
    session: &SessionView,
    router: Router,
    server: Option<Arc<str>>,
) -> Vec<Property> {
    let own = |text: &str| Some(text.to_owned());
    let (state, waits_for) = match &session.state {
        SessionState::Idle => ("idle", None),
        SessionState::Running => ("running", None),
        SessionState::WaitsForConnection(server) => ("waits for a connection", Some(server)),
        SessionState::WaitsForServer => ("waits for a server", None),
    };
    let is_idle = session.state == SessionState::Idle;
    let server = match is_idle {
        true => session.stays_at.clone(),
        false => waits_for.cloned().or(server),
    };
    let router_name = match router {
        Router::ReadConnection(_) => "read-connection",
        Router::ReadWriteSplit(_) => "read-write-split",
    };
    let connections = session.connections.join(", ");
    vec![
        ("connection", Some(session.number.to_string())),
        ("user", own(&session.user)),
        ("database", session.database.clone()),
        ("service", own(&session.service)),
        ("router", own(router_name)),
        ("state", own(state)),
        ("since_ms", Some(session.age.as_millis().to_string())),
        ("server", server.as_deref().map(str::to_owned)),
        ("why", Some(why(session, router, server.as_deref()))),
        ("pins", pins_in_words(session.pins)),
        ("pinned_by", session.pinned_by_words()),
        (
            "connections",
            (!connections.is_empty()).then_some(connections),
        ),
    ]
}

fn why(session: &SessionView, router: Router, server: Option<&str>) -> String {
    let held_at = session.stays_at.as_deref();
    match (held_at, server, router) {
        (Some(at), ..) if session.is_in_transaction => {
            format!("the session's transaction is open on {at}")
        }
        (Some(at), ..) if !session.pins.is_empty() => {
            let reasons: Vec<_> = session.pins.iter().map(Pin::reason).collect();
            format!("the session is pinned to {at}: {}", reasons.join(", "))
        }
        (_, _, Router::ReadConnection(_)) => {
            "read-connection sends all statements of a client to one server".to_owned()
        }
        (_, Some(server), _) => {
            format!("nothing holds the session: by its text the statement goes to {server}")
        }
        (_, None, _) => "nothing holds the session: each statement goes by its text".to_owned(),
    }
}
