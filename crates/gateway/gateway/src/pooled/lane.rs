//! [`Lane`]: a session's connection to one server, for as long as it has it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use backend::Login;
use clients::KillOrder;
use errcode::{ClientError, ER_QUERY_INTERRUPTED, WORDS_CONNECTIONS_IN_USE};
use link::Agreed;
use monitor::{ServerId as Place, ServerState};
use pool::{AcquireError, Acquired, Answer, Ask, CloseReason, Found, Holds, Slot, Wait};
use smallvec::SmallVec;

use crate::connect::{NoConnection, connect_server};
use crate::connection::{Connection, NotReady, Origin, Resting};
use crate::end::End;
use crate::guest::{GivenUp, given_up};
use crate::options::ServerId;
use crate::worker::Worker;

use super::answer::Unready;
use super::{Pooled, login_of};

/// See the module's head.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) slot: Slot<Resting>,
    pub(super) connection: Box<Connection>,
    pub(super) agreed: Agreed,
    pub(super) id: ServerId,
    /// What ran on it last is the session's last statement.
    pub(super) is_own: bool,
    /// LAST_INSERT_ID() before statements that may have changed it, unless a reply told just that.
    pub(super) before_id: Option<u64>,
    /// A statement that has failed may have changed the state that it has.
    pub(super) is_dirty: bool,
}

/// A client that waits for a connection is looked at after this time: it may have gone.
const CLIENT_WATCH_DELAY: Duration = Duration::from_secs(1);

/// Why a wait for a connection ends before it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    InTime,
    TimedOut,
    Killed,
    QueryKilled,
    ServerDown,
    ClientGone,
}

impl Lane {
    pub(super) fn new(
        slot: Slot<Resting>,
        connection: Box<Connection>,
        agreed: Agreed,
        id: ServerId,
    ) -> Lane {
        Lane {
            slot,
            connection,
            agreed,
            id,
            is_own: false,
            before_id: None,
            is_dirty: false,
        }
    }

    /// Opens a new connection in the place of this one.
    pub(super) async fn replace(
        &mut self,
        worker: &Worker,
        (login, origin): (&Login, &Arc<Origin>),
        state: &ServerState,
    ) -> Result<(), NotReady> {
        let opened = connect_server(worker, self.id, login).await;
        let server = opened.map_err(|error| match error {
            NoConnection::Refused(error) => NotReady::Refused(error),
            NoConnection::Failed(text) => NotReady::Lost(text),
        })?;
        self.slot.closed(CloseReason::Replaced);
        self.slot.opened(runtime::now());
        let opened = Connection::new(server, origin, state.epoch);
        worker.dismiss(std::mem::replace(&mut self.connection, opened));
        Ok(())
    }
}

impl Pooled {
    /// Takes a connection that the pool has given, or opens one. It may have the state of
    /// another session.
    pub(super) async fn take_lane(
        &mut self,
        place: Place,
        acquired: Acquired<Box<Connection>, Resting>,
    ) -> Result<(), Unready> {
        let worker = Rc::clone(&self.guest.worker);
        let id = worker.generation.server_at(self.guest.service, place);
        let Acquired { mut slot, found } = acquired;
        let epoch = worker.with_state(id, |it| it.epoch);
        let (held, is_turned) = match found {
            Found::Idle(held) => (Some(held), false),
            Found::Turn(held) => (Some(held), true),
            Found::Open(displaced) => {
                if let Some(pool::Held::Own(connection)) = displaced {
                    worker.dismiss(connection);
                }
                (None, false)
            }
        };
        let reused = held.and_then(|held| {
            let attached = match held {
                pool::Held::Own(connection) => Some(connection),
                pool::Held::Moved(resting) => resting.attach(&worker.resources).ok(),
            };
            let usable = attached
                .filter(|it| !it.is_older(epoch))
                .and_then(|mut it| (!it.is_stale()).then_some(it));
            if usable.is_none() {
                slot.closed(CloseReason::Stale);
            }
            usable
        });
        let connection = match reused {
            Some(mut connection) => {
                if is_turned {
                    connection.is_of_another();
                    slot.turned();
                }
                connection
            }
            None => {
                let login = login_of(&self.guest, &self.origin).map_err(Unready::Refused)?;
                let opened = connect_server(&worker, id, &login).await;
                let server = match opened {
                    Ok(server) => server,
                    Err(error) => {
                        slot.close(CloseReason::Failed);
                        return Err(match error {
                            NoConnection::Refused(error) => Unready::Refused(error),
                            NoConnection::Failed(text) => Unready::Failed(text),
                        });
                    }
                };
                slot.opened(runtime::now());
                Connection::new(server, &self.origin, epoch)
            }
        };
        let capabilities = self.guest.client.info().capabilities;
        let agreed = match connection.server.agreed_with(capabilities) {
            Ok(agreed) => agreed,
            Err(unlike) => {
                slot.close(CloseReason::Failed);
                worker.dismiss(connection);
                return Err(Unready::Failed(unlike.to_string()));
            }
        };
        let lane = Lane::new(slot, connection, agreed, id);
        self.put_lane(place, lane);
        Ok(())
    }

    /// Asks the pool for a connection.
    pub(super) fn ask<'w>(
        &self,
        worker: &'w Worker,
        id: ServerId,
    ) -> Result<Answer<'w, Box<Connection>, Resting>, Unready> {
        let held: SmallVec<[&Slot<Resting>; 4]> =
            self.lanes.iter().flatten().map(|it| &it.slot).collect();
        let holds = match &*held {
            [] => Holds::Nothing,
            slots => Holds::Slots {
                age: self.age,
                slots,
            },
        };
        let server = worker.generation.server(id);
        let mut login = self.pool_login;
        if server.options.target.proxy_header.is_none() {
            // A connection that tells nothing of its client is anybody's.
            login.client = None;
        }
        let ask = Ask {
            login,
            holds,
            now: runtime::now(),
        };
        worker
            .pool
            .ask(server.known.pool_id, ask)
            .map_err(|error| refused(&error))
    }

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
        let stream = self.guest.client.link().stream();
        let now = runtime::now();
        let (until, watched_from) = (now + self.wait, now + CLIENT_WATCH_DELAY);
        let mut gone = pin!(stream.hung_up());
        let mut given_up = pin!(given_up(worker, handle, id, ServerState::is_reachable));
        let alarm = &mut self.patience;
        let time_out = poll_fn(|context| {
            if let Poll::Ready(given_up) = given_up.as_mut().poll(context) {
                ended.set(match given_up {
                    GivenUp::Killed => Ended::Killed,
                    GivenUp::ServerDown => Ended::ServerDown,
                });
                return Poll::Ready(());
            }
            if handle.order() == KillOrder::Query {
                ended.set(Ended::QueryKilled);
                return Poll::Ready(());
            }
            if alarm
                .poll_until(until.min(watched_from), context)
                .is_pending()
            {
                return Poll::Pending;
            }
            if gone.as_mut().poll(context).is_ready() {
                ended.set(Ended::ClientGone);
                return Poll::Ready(());
            }
            let late = alarm.poll_until(until, context);
            late.map(|()| ended.set(Ended::TimedOut))
        });
        let acquired = wait.or(time_out).await;
        self.guest.running.standing.go_on();
        match (ended.get(), acquired) {
            (Ended::InTime | Ended::TimedOut | Ended::ServerDown, Ok(acquired)) => Ok(acquired),
            (Ended::Killed, _) => Err(Unready::Session(End::Killed)),
            (Ended::QueryKilled, _) => Err(Unready::Refused(ClientError::new(
                ER_QUERY_INTERRUPTED,
                &[],
            ))),
            (Ended::ClientGone, _) => Err(Unready::Session(End::Client)),
            (Ended::ServerDown, Err(error)) => Err(Unready::Failed(error.to_string())),
            (Ended::InTime | Ended::TimedOut, Err(error)) => Err(refused(&error)),
        }
    }
}

/// What a client is told that gets no connection.
fn refused(error: &AcquireError) -> Unready {
    if let AcquireError::Victim { .. } = error {
        return Unready::Victim;
    }
    Unready::Refused(ClientError::worded(WORDS_CONNECTIONS_IN_USE, &[error]))
}
