//! Waits of a session: for a connection, for a server, and for what the gateway itself asks one.
//!
//! Each ends by KILL, with the client, and when it can bring nothing any more.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use clients::wait::{Either, first_of};
use clients::{KillOrder, SessionHandle};
use env::Instant;
use errcode::{ClientError, ER_QUERY_INTERRUPTED, WORDS_CONNECTIONS_IN_USE};
use monitor::{ServerId as Place, ServerState};
use pool::{AcquireError, Acquired, Wait};
use runtime::{Alarm, Stream};

use crate::connect::no_server;
use crate::connection::{Connection, NotReady, Resting};
use crate::end::End;
use crate::guest::{GivenUp, given_up};
use crate::options::ServerId;
use crate::worker::Worker;

use super::Pooled;
use super::answer::Unready;

/// A client that waits is looked at after this time: it may have gone.
const CLIENT_WATCH_DELAY: Duration = Duration::from_secs(1);

/// A server that has lost a connection, and is not down by its monitor after so long, has lost that
/// connection alone: by KILL, or by a limit of time.
const SECOND_TRY_AFTER: Duration = Duration::from_millis(300);

/// Why a wait ends before it has brought anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    InTime,
    TimedOut,
    Killed,
    QueryKilled,
    ServerDown,
    ClientGone,
}

impl Ended {
    /// What becomes of a statement that has waited, if that is decided.
    fn interrupted(self) -> Result<(), Unready> {
        match self {
            Ended::InTime | Ended::TimedOut | Ended::ServerDown => Ok(()),
            Ended::Killed => Err(Unready::Session(End::Killed)),
            Ended::QueryKilled => {
                let error = ClientError::new(ER_QUERY_INTERRUPTED, &[]);
                Err(Unready::Refused(error))
            }
            Ended::ClientGone => Err(Unready::Session(End::Client)),
        }
    }
}

impl Pooled {
    /// Waits for a connection, for as long as the service lets it.
    pub(super) async fn wait_turn(
        &mut self,
        wait: Wait<'_, Box<Connection>, Resting>,
        id: ServerId,
    ) -> Result<Acquired<Box<Connection>, Resting>, Unready> {
        let worker = &self.guest.worker;
        if let Some((_, place)) = worker.generation.server(id).watch {
            self.guest.running.standing.wait_for_connection(place);
        }
        let ended = Cell::new(Ended::InTime);
        let handle = &self.guest.handle;
        let mut given_up = pin!(given_up(worker, handle, id, ServerState::is_reachable));
        let watched = |context: &mut Context<'_>| {
            let given_up = given_up.as_mut().poll(context);
            given_up.map(|given_up| match given_up {
                GivenUp::Killed => Ended::Killed,
                GivenUp::ServerDown => Ended::ServerDown,
            })
        };
        let until = runtime::now() + self.wait();
        let of_client = (&**handle, self.guest.client.link().stream());
        let impatience = impatience(&mut self.patience, until, of_client, watched);
        let acquired = wait.or(async { ended.set(impatience.await) }).await;
        self.guest.running.standing.go_on();
        let ended = ended.get();
        ended.interrupted()?;
        acquired.map_err(|error| match ended {
            Ended::ServerDown => Unready::Failed(error.to_string()),
            _ => refused(&error),
        })
    }

    /// Asks a server something of the gateway's own, on the session's lane to it.
    pub(super) async fn ask_server<T>(
        &mut self,
        place: Place,
        question: impl AsyncFnOnce(&mut Connection) -> Result<T, NotReady>,
    ) -> Result<T, NotReady> {
        let slot = self.lanes.get_mut(usize::from(place.0));
        let Some(lane) = slot.and_then(Option::as_mut) else {
            return Err(NotReady::Lost("its connection is gone".to_owned()));
        };
        lane.is_own = false;
        let waiter = Waiter {
            worker: &self.guest.worker,
            handle: &self.guest.handle,
        };
        let asked = question(&mut lane.connection);
        while_up(waiter, lane.id, asked).await
    }

    /// Waits until the map of servers is another one than this version, or until a server that has
    /// failed may be tried again: a connection may fail and its server be well.
    ///
    /// # Errors
    /// It is later than `until`, and the client gets the reason; or it does not wait any more.
    pub(super) async fn wait_for_server(
        &mut self,
        version: u64,
        (until, reason): (Instant, &str),
        failed: Option<Place>,
    ) -> Result<(), Unready> {
        let (worker, service) = (&self.guest.worker, self.guest.service);
        let changed = worker.monitor(service).changed(version);
        self.guest.running.standing.wait_for_server();
        let second_try = runtime::now() + SECOND_TRY_AFTER;
        let may_try = failed.is_some() && second_try < until;
        let handle = &self.guest.handle;
        let mut killed = pin!(handle.ordered(KillOrder::Connection));
        let watched =
            |context: &mut Context<'_>| killed.as_mut().poll(context).map(|()| Ended::Killed);
        let ended = {
            let until = if may_try { second_try } else { until };
            let of_client = (&**handle, self.guest.client.link().stream());
            let impatience = impatience(&mut self.patience, until, of_client, watched);
            match first_of(pin!(changed), pin!(impatience)).await {
                Either::Left(()) => Ended::InTime,
                Either::Right(ended) => ended,
            }
        };
        self.guest.running.standing.go_on();
        ended.interrupted()?;
        match ended {
            Ended::TimedOut if !may_try => {
                Err(Unready::Refused(no_server(worker, service, reason)))
            }
            _ => Ok(()),
        }
    }
}

/// Ready once a session does not wait any longer: `watched` has ended it, KILL QUERY, its client,
/// or the time. Its alarm is free for that while it waits.
async fn impatience(
    alarm: &mut Alarm,
    until: Instant,
    (handle, client): (&SessionHandle, &Stream),
    mut watched: impl FnMut(&mut Context<'_>) -> Poll<Ended>,
) -> Ended {
    let watched_from = runtime::now() + CLIENT_WATCH_DELAY;
    let mut gone = pin!(client.hung_up());
    poll_fn(|context| {
        if let Poll::Ready(ended) = watched(context) {
            return Poll::Ready(ended);
        }
        if handle.order() == KillOrder::Query {
            return Poll::Ready(Ended::QueryKilled);
        }
        let soon = until.min(watched_from);
        if alarm.poll_until(soon, context).is_pending() {
            return Poll::Pending;
        }
        if gone.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ended::ClientGone);
        }
        let late = alarm.poll_until(until, context);
        late.map(|()| Ended::TimedOut)
    })
    .await
}

/// The session that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter<'a> {
    pub(super) worker: &'a Worker,
    pub(super) handle: &'a SessionHandle,
}

/// Waits for what the gateway itself has asked a server, as long as that is up and nobody kills
/// the session. A question that is given up leaves its connection in the middle of a reply, so it
/// can only be closed.
pub(super) async fn while_up<T>(
    Waiter { worker, handle }: Waiter<'_>,
    id: ServerId,
    question: impl Future<Output = Result<T, NotReady>>,
) -> Result<T, NotReady> {
    let given_up = pin!(given_up(worker, handle, id, ServerState::answers));
    match first_of(pin!(question), given_up).await {
        Either::Left(answer) => answer,
        Either::Right(GivenUp::ServerDown) => {
            Err(NotReady::Lost("it does not answer its monitor".to_owned()))
        }
        Either::Right(GivenUp::Killed) => Err(NotReady::Lost("the session was killed".to_owned())),
    }
}

/// The error of a client that gets no connection.
pub(super) fn refused(error: &AcquireError) -> Unready {
    if let AcquireError::Victim { .. } = error {
        return Unready::Victim;
    }
    Unready::Refused(ClientError::worded(WORDS_CONNECTIONS_IN_USE, &[error]))
}
