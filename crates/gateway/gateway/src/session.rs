//! One client, from its login to its end.
//!
//! ```text
//! serve: log in -> connect to a server -> welcome -> { peek at a command -> pass it on, and the
//!        reply back }* -> close both
//! ```
//!
//! Which server a command goes to is the router's to say. [`Direct`] has one connection for itself,
//! [`Pooled`] takes connections from the pool.
//! Commands that concern the connection itself are carried out here: COM_QUIT, COM_CHANGE_USER, and
//! KILL with a number that a client has. While a reply is awaited, KILL, the client's end and
//! the monitor are watched for: the statement is then ended on the server, too.

use std::rc::Rc;
use std::sync::Arc;

use clients::{ClientNumbers, Entrance, SessionHandle};
use errcode::{ClientError, Origin, WORDS_NO_SERVER};
use front::Client;
use runtime::Stream;

use crate::connect::{Wanted, connect, first_round};
use crate::direct::Direct;
use crate::end::End;
use crate::gateway::Victim;
use crate::guest::Guest;
use crate::hot::HotPlace;
use crate::options::Router;
use crate::pooled::Pooled;
use crate::service::AccountLookup;
use crate::worker::Worker;

/// A client that is logged in, with its servers.
#[derive(Debug)]
enum Session {
    Direct(Direct),
    Pooled(Pooled),
}

/// A client's session, and by what others know it.
struct Entered {
    session: Session,
    handle: Arc<SessionHandle>,
    /// The number that the client has.
    number: u32,
}

/// Serves a connection that was accepted at a listener to its end.
pub fn serve(worker: Rc<Worker>, listener: Arc<str>, stream: Stream) -> impl Future<Output = ()> {
    let here = Rc::clone(&worker);
    // Boxed, so that an idle client's task reserves no room for its login.
    let entering = Box::pin(enter(worker, listener, stream));
    async move {
        let Some(mut entered) = entering.await else {
            return;
        };
        let end = match &mut entered.session {
            Session::Direct(session) => {
                // Boxed, so that a task of the other kind reserves no room for it.
                let run = Box::pin(session.run());
                HotPlace::Run.note(&*run);
                run.await
            }
            Session::Pooled(session) => session.run().await,
        };
        Box::pin(leave(here, entered, end)).await;
    }
}

/// Ends a session.
async fn leave(worker: Rc<Worker>, entered: Box<Entered>, end: End) {
    let Entered {
        session,
        handle,
        number,
    } = *entered;
    worker.gateway.leave(number);
    worker.end_session();
    worker.count_end(end);
    match session {
        Session::Direct(session) => Box::pin(session.leave(end)).await,
        Session::Pooled(session) => Box::pin(session.leave(end)).await,
    }
    worker.gateway.clients().registry().leave(&handle);
}

/// Logs a client in and connects it to a server. Returns `None` if that fails; the client has got
/// the error.
async fn enter(worker: Rc<Worker>, listener: Arc<str>, stream: Stream) -> Option<Box<Entered>> {
    let gateway = Arc::clone(&worker.gateway);
    let generation = Arc::clone(&worker.generation);
    // A listener that is gone is being closed.
    let id = generation.service_at(&listener)?;
    let service = generation.service(id);
    let front = worker.front(id);
    let Some(known) = service.readings.known() else {
        let name = &service.options.name;
        let reason = "none has let the gateway read its accounts yet (see the gateway's log)";
        let error = ClientError::worded(WORDS_NO_SERVER, &[name, &reason]);
        Client::refuse(stream, front, &error).await;
        return None;
    };
    front.set_rules(generation.limits.login_rules);
    front.set_greeting(known.greeting.clone());
    let entrance = Entrance {
        front,
        limit: generation.max_connections,
        evictions: &worker.counters.logins_evicted,
        numbers: ClientNumbers::High,
    };
    let accounts = AccountLookup::new(&service.readings, known);
    let logged_in = gateway.clients().log_in(stream, &accounts, entrance).await;
    if logged_in.is_none() {
        // Newer accounts might let it in the next time.
        service.readings.wants_accounts.notify();
    }
    let since_us = runtime::now().nanos() / 1000;
    let admitted = gateway
        .clients()
        .admit(logged_in?, generation.max_connections, since_us);
    let (mut client, handle) = admitted.await?;
    let limits = &generation.limits;
    client.set_timeouts(limits.read_timeout, limits.login_rules.write_timeout);
    first_round(&worker, id).await;
    let number = client.info().connection_id;
    let guest = Guest::new(&worker, id, client, &handle);
    let victim = Victim {
        handle: Arc::clone(&handle),
        running: Arc::clone(&guest.running),
    };
    gateway.enter(number, victim);
    worker.begin_session();
    match open(guest).await {
        Ok(session) => {
            worker.counters.sessions.increment();
            Some(Box::new(Entered {
                session,
                handle,
                number,
            }))
        }
        Err(refused) => {
            gateway.leave(number);
            worker.end_session();
            let (client, error) = *refused;
            worker.count_end(match error.origin {
                Origin::Client => End::Refused,
                Origin::Server | Origin::Ourselves => End::NoServer,
            });
            client.dismiss(&error).await;
            gateway.clients().registry().leave(&handle);
            None
        }
    }
}

/// Connects a client to its first server. An error is what it gets.
async fn open(guest: Guest) -> Result<Session, Box<(Client, ClientError)>> {
    let (worker, service) = (Rc::clone(&guest.worker), guest.service);
    let options = &worker.generation.service(service).options;
    match options.router {
        Router::ReadConnection(role) if !options.multiplexes => {
            let wanted = Wanted::new(role, guest.ruled.general_ruling().route);
            let held = match connect(&worker, service, &wanted, guest.client.info()).await {
                Ok(held) => held,
                Err(error) => return Err(Box::new((guest.client, error))),
            };
            let connection_id = held.server.info().connection_id;
            let pool_id = held.place.server().known.pool_id;
            guest.running.set(pool_id, connection_id);
            guest.running.name(pool_id, connection_id);
            if let Some((_, place)) = held.place.server().watch {
                guest.running.standing.hold(place);
            }
            // What it says later is not read.
            guest.handle.update(|line| line.database = None);
            Ok(Session::Direct(Direct::new(guest, held)))
        }
        Router::ReadConnection(_) | Router::ReadWriteSplit(_) => {
            Ok(Session::Pooled(Pooled::enter(guest).await?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each idle client has a task, so its size counts ten thousand times. The allocator has pieces
    /// of this size, and then of 3,072.
    const TASK_BYTES_MAX: usize = 2560;

    #[test]
    fn the_task_of_a_client_is_small() {
        fn bytes<F: Future>(_: fn(Rc<Worker>, Arc<str>, Stream) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = bytes(serve);
        assert!(bytes <= TASK_BYTES_MAX, "{bytes}");
    }
}
