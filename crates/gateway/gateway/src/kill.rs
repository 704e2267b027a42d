//! KILL: of what a client has left running, and by the numbers that clients have.
//!
//! A server does not notice that its client is gone until it sends something. So it is asked to end
//! the connection, over another one.
//!
//! Numbers of clients are above those of servers ([`ClientNumbers::High`]). A statement with such a
//! number gets the server's number in its place, and runs on the victim's server as who asks: that
//! server decides whether the client may.

use std::rc::Rc;
use std::time::Duration;

use backend::{Login, Outcome, QueryLimits, Target};
use clients::KillOrder;
use errcode::{ClientError, ER_KILL_DENIED_ERROR, ER_NO_SUCH_THREAD, WORDS_SERVER_LOST};
use front::ClientInfo;
use link::Limit;
use syntax::{KillStatement, KillTarget, SqlMode};

use crate::connect::login_as;
use crate::gateway::Victim;
use crate::gateway::server::KnownServer;
use crate::options::ServiceId;
use crate::running::Aim;
use crate::worker::Worker;

/// Longer than a server takes to end a statement; one that is too busy for that is not waited for.
const KILL_TIME_MAX: Duration = Duration::from_secs(10);

/// The answer is an OK or an error.
const KILL_BYTES_MAX: usize = 64 << 10;

const LIMITS: fn() -> QueryLimits = || QueryLimits {
    until: Limit::after(KILL_TIME_MAX),
    bytes_max: KILL_BYTES_MAX,
};

/// Ends a connection of a client to a server, with its statement and its transaction, in a task of
/// its own.
pub(crate) fn end_later(worker: &Rc<Worker>, target: Target, login: Login, connection_id: u32) {
    worker.counters.kills.increment();
    let worker = Rc::clone(worker);
    runtime::spawn_background(async move {
        end(&worker, &target, &login, &format!("KILL {connection_id}")).await;
    });
}

/// Ends the statement that a client has running. The aim keeps the connection from others until
/// that is done.
pub(crate) async fn end_statement(worker: &Worker, aim: Aim, login: &Login) {
    if let Some((server, connection_id)) = aim.at {
        let Some(server) = worker.gateway.servers.find(server) else {
            // A server that is gone has no connections any more.
            return;
        };
        let text = format!("KILL QUERY {connection_id}");
        end(worker, &server.target, login, &text).await;
    }
}

/// The same, in a task of its own.
pub(crate) fn end_statement_later(worker: &Rc<Worker>, aim: Aim, client: &ClientInfo) {
    let (Some(_), Ok(login)) = (aim.at, login_as(client)) else {
        return;
    };
    worker.counters.kills.increment();
    let worker = Rc::clone(worker);
    runtime::spawn_background(async move { end_statement(&worker, aim, &login).await });
}

async fn end(worker: &Worker, target: &Target, login: &Login, text: &str) {
    // An error of the server says that there is nothing to be ended any more.
    if let Err(error) = run(worker, target, login, text.as_bytes()).await {
        tracing::warn!(statement = text, %error, "a statement could not be ended on its server");
    }
}

/// Runs a statement on a connection of its own.
async fn run(
    worker: &Worker,
    target: &Target,
    login: &Login,
    text: &[u8],
) -> Result<Vec<Outcome>, String> {
    let connected = worker.connect(target, login).await;
    let mut server = connected.map_err(|error| error.to_string())?;
    let asked = server.query(text, LIMITS()).await;
    let outcomes = asked.map_err(|error| error.to_string())?;
    server.close().await;
    Ok(outcomes)
}

/// The KILL that a text is.
pub(crate) fn find(text: &[u8]) -> Option<KillStatement> {
    // Most texts show it by their first byte; a comment may stand before the word.
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if !matches!(first, b'k' | b'K' | b'/' | b'-' | b'#') {
        return None;
    }
    KillStatement::find(text, SqlMode::default())
}

/// Carries it out as the client with this login: on the server whose connection the session uses,
/// and in the session, which may wait for one.
///
/// # Errors
///
/// What the client gets.
pub(crate) async fn carry_out(
    worker: &Worker,
    service: ServiceId,
    login: Result<Login, ClientError>,
    (kill, victim): (KillStatement, Option<Victim>),
    text: &[u8],
) -> Result<(), ClientError> {
    let victim = victim.ok_or_else(|| ClientError::new(ER_NO_SUCH_THREAD, &[&kill.number]))?;
    let login = login?;
    worker.counters.kills.increment();
    let mut aim = victim.running.aim();
    if aim.at.is_none() && victim.handle.line().user != login.user {
        let any = worker.generation.service(service).options.servers.first();
        let any = any.expect("a service has a server");
        let any = &worker.generation.server(*any).known;
        let outcomes = ask(worker, any, &login, MAY_KILL).await?;
        if !outcomes.iter().any(has_rows) {
            return Err(ClientError::new(ER_KILL_DENIED_ERROR, &[&kill.number]));
        }
        // Meanwhile it may have got a connection.
        aim = victim.running.aim();
    }
    if let Some((server, connection_id)) = aim.at
        && let Some(server) = worker.gateway.servers.find(server)
    {
        let text = kill.with_number(text, connection_id.into());
        ask(worker, &server, &login, &text).await?;
    }
    // It may also wait for another connection, or try again on one.
    victim.handle.give_order(match kill.target {
        KillTarget::Connection => KillOrder::Connection,
        KillTarget::Query => KillOrder::Query,
    });
    Ok(())
}

/// Has rows if the account may end the connections of others.
const MAY_KILL: &[u8] = b"SELECT 1 FROM information_schema.user_privileges \
    WHERE privilege_type IN ('SUPER', 'CONNECTION ADMIN', 'CONNECTION_ADMIN') \
    AND grantee = CONCAT(\"'\", REPLACE(CURRENT_USER(), '@', \"'@'\"), \"'\")";

fn has_rows(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Rows(rows) if !rows.rows.is_empty())
}

/// Runs a statement on a server. Its error is the client's.
async fn ask(
    worker: &Worker,
    server: &KnownServer,
    login: &Login,
    text: &[u8],
) -> Result<Vec<Outcome>, ClientError> {
    let outcomes = run(worker, &server.target, login, text).await;
    let outcomes = outcomes.map_err(|error| {
        let server = &*server.name;
        tracing::warn!(server, %error, "a KILL could not be passed on");
        ClientError::worded(WORDS_SERVER_LOST, &[&server])
    })?;
    for outcome in &outcomes {
        if let Outcome::Failed(error) = outcome {
            return Err(error.clone());
        }
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_found_with_its_number() {
        let number = |text: &str| find(text.as_bytes()).map(|it| it.number);
        assert_eq!(number(" kill 1073741831"), Some(1_073_741_831));
        assert_eq!(number("/* a */ KILL QUERY 1073741831"), Some(1_073_741_831));
        assert_eq!(number("KILL 7"), Some(7));
        for text in ["SELECT 1073741831", "", " ", "KILL USER a", "-- KILL 7"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
