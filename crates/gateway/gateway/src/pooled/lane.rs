//! [`Lane`]: a session's connection to one server, for as long as it has it.

use std::rc::Rc;
use std::sync::Arc;

use backend::{Login, Server};
use connection_state::{Needs, Origin};
use link::Agreed;
use monitor::{Epoch, ServerId as Place, ServerState};
use pool::{Acquired, Answer, Ask, CloseReason, Found, Holds, Slot};
use smallvec::SmallVec;

use crate::connect::{NoConnection, connect_server};
use crate::connection::{Connection, NotReady, Resting};
use crate::options::ServerId;
use crate::worker::Worker;

use super::answer::Unready;
use super::wait::{Waiter, refused, while_up};
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
    /// The warnings that it has are the session's: its statements have cleared those before.
    pub(super) has_own_warnings: bool,
    /// LAST_INSERT_ID() before statements that may have changed it, unless a reply told just that.
    pub(super) before_id: Option<u64>,
    /// A statement that has failed may have changed the state that it has.
    pub(super) is_dirty: bool,
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
            has_own_warnings: false,
            before_id: None,
            is_dirty: false,
        }
    }

    /// Gives the connection the state of a session, or opens another one in its place where that
    /// has to be.
    pub(super) async fn put_right(
        &mut self,
        waiter: Waiter<'_>,
        login: &Login,
        needs: Needs<'_>,
        state: &ServerState,
    ) -> Result<(), NotReady> {
        self.is_own = false;
        self.has_own_warnings = false;
        let (id, worker) = (self.id, waiter.worker);
        let (secret, new) = ((login, worker.random()), (login, needs.origin));
        // A member of a Galera cluster does not wait for others on a connection that was reset
        // (MariaDB 10.11: `wsrep_sync_wait` has no effect after COM_RESET_CONNECTION).
        if state.galera.is_some() && self.connection.state().must_begin_anew(&needs) {
            self.replace(worker, new, state).await?;
        }
        let is_turned = self.connection.state().must_log_in(&needs);
        let put = self.connection.put_right(secret, needs, state);
        match while_up(waiter, id, put).await {
            // A new connection is let in by a login that has more to say. No statement was sent.
            Err(_) if is_turned => {}
            put => return put,
        }
        self.replace(worker, new, state).await?;
        let put = self.connection.put_right(secret, needs, state);
        while_up(waiter, id, put).await
    }

    /// Opens a new connection in the place of this one.
    async fn replace(
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
        let opened = new_connection(worker, self.id, (server, origin), state.epoch);
        worker.dismiss(std::mem::replace(&mut self.connection, opened));
        Ok(())
    }
}

/// A connection that was just opened, of a session with this origin.
fn new_connection(
    worker: &Worker,
    id: ServerId,
    (server, origin): (Server, &Arc<Origin>),
    epoch: Epoch,
) -> Box<Connection> {
    let connections_max = worker.generation.server(id).options.connections_max;
    Connection::new(server, origin, (epoch, connections_max))
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
                    connection.state_mut().is_of_another();
                    slot.turned();
                } else if !self.multiplexes {
                    // What is left of the last session is not put right later.
                    connection.state_mut().forget();
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
                            NoConnection::Refused(error) => Unready::of_refusal(error),
                            NoConnection::Failed(text) => Unready::Failed(text),
                        });
                    }
                };
                slot.opened(runtime::now());
                new_connection(&worker, id, (server, &self.origin), epoch)
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
}
