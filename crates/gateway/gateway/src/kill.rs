//! Ends what a client has left running on a server. A server does not notice that its client is
//! gone until it sends something, so it is asked over a connection of its own.

use std::rc::Rc;
use std::time::Duration;

use backend::{Login, QueryLimits, Target};
use link::Limit;

use crate::worker::Worker;

/// Longer than a server takes to end a statement; one that is too busy for that is not waited for.
const KILL_TIME_MAX: Duration = Duration::from_secs(10);

/// The answer is an OK or an error.
const KILL_BYTES_MAX: usize = 64 << 10;

/// A connection of a client, to a server.
#[derive(Debug)]
pub(crate) struct Victim {
    /// The server.
    pub(crate) target: Target,
    /// Who may end it: the client itself.
    pub(crate) login: Login,
    /// The server's number of the connection.
    pub(crate) connection_id: u32,
}

/// Asks the server to end it, with its statement and its transaction, in a task of its own.
pub(crate) fn kill_later(worker: &Rc<Worker>, victim: Victim) {
    worker.counters.kills.increment();
    let worker = Rc::clone(worker);
    runtime::spawn_background(async move {
        let connection_id = victim.connection_id;
        if let Err(error) = ask(&worker, &victim).await {
            tracing::warn!(connection_id, %error, "a statement could not be ended on its server");
        }
    });
}

async fn ask(worker: &Worker, victim: &Victim) -> Result<(), String> {
    let connected = worker.connect(&victim.target, &victim.login).await;
    let mut server = connected.map_err(|error| error.to_string())?;
    let text = format!("KILL {}", victim.connection_id);
    let limits = QueryLimits {
        until: Limit::after(KILL_TIME_MAX),
        bytes_max: KILL_BYTES_MAX,
    };
    // An error says that there is nothing to be ended any more.
    let asked = server.query(text.as_bytes(), limits).await;
    asked.map_err(|error| error.to_string())?;
    server.close().await;
    Ok(())
}
