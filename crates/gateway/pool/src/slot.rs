//! The right to have one connection to a server, as its holder sees it.
//!
//! A slot is owned by a session, by a worker's stack, or by a connection that moves to another
//! worker. In the shared stacks the server's state counts it. Dropped, it frees its place for the
//! next waiter. So whatever happens to a session, no slot is lost.

use std::sync::Arc;

use env::Instant;

use crate::counts::CloseReason;
use crate::keys::{Fit, Key, Login, ServerId, Version};
use crate::server::Server;
use crate::state::{Closing, Facts, Found, Grant, Returned, SlotKind};
use crate::waiter::{Place, Verdict, Waiter};

/// The right to have one connection. Kept beside the connection for as long as that is open.
#[derive(Debug)]
#[must_use = "a dropped slot means a closed connection"]
pub struct Slot<C> {
    /// `None` once the slot has passed to somebody else.
    server: Option<Arc<Server<C>>>,
    kind: SlotKind,
    /// Who has it, or has had it last.
    worker: usize,
    login: Login,
    version: Version,
    /// When its connection was opened; `None` while there is none.
    opened_at: Option<Instant>,
}

impl<C> Slot<C> {
    /// The slot of a grant to a worker, for a connection that is, or will be, logged in as `login`.
    pub(crate) fn of_grant<T>(
        server: &Arc<Server<C>>,
        worker: usize,
        login: Login,
        grant: &Grant<T>,
    ) -> Self {
        Self {
            server: Some(Arc::clone(server)),
            kind: grant.kind,
            worker,
            login,
            version: grant.version,
            opened_at: grant.past.map(|past| past.opened_at),
        }
    }

    /// What its connection is logged in as, and to where.
    pub fn key(&self) -> Key {
        Key {
            server: self.server_id(),
            version: self.version,
            login: self.login,
        }
    }

    /// Where its connection goes to.
    pub fn server_id(&self) -> ServerId {
        self.server().id
    }

    /// What the server is called.
    pub fn server_name(&self) -> &str {
        &self.server().name
    }

    /// Whether it is above the limit: its session had another connection when it asked.
    pub fn is_above_limit(&self) -> bool {
        self.kind == SlotKind::Above
    }

    /// The session has opened a connection.
    pub fn opened(&mut self, now: Instant) {
        assert!(self.opened_at.is_none(), "a slot has one connection");
        self.opened_at = Some(now);
        self.server().change(|it| it.state.numbers.opened += 1);
    }

    /// The session has turned the connection to its own account.
    pub fn turned(&mut self) {
        self.server().change(|it| it.state.numbers.turned += 1);
    }

    /// The session has closed the connection and keeps the slot, to open another one. That is of
    /// the server's version of now.
    pub fn closed(&mut self, reason: CloseReason) {
        assert!(self.opened_at.is_some(), "there is a connection to close");
        self.opened_at = None;
        self.version = self.server().change(|it| {
            it.state.numbers.count_closed(reason);
            it.state.version()
        });
    }

    /// The session has closed the connection and needs no other.
    pub fn close(mut self, reason: CloseReason) {
        self.close_as(reason);
    }

    /// Whether its connection is too old to be used again.
    pub(crate) fn is_aged(&self, now: Instant) -> bool {
        let opened_at = self.opened_at.expect("a connection comes back open");
        self.server().recycling().is_aged(opened_at, now)
    }

    pub(crate) fn kind(&self) -> SlotKind {
        self.kind
    }

    pub(crate) fn login(&self) -> Login {
        self.login
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn server(&self) -> &Arc<Server<C>> {
        self.server
            .as_ref()
            .expect("a slot that was given away is gone")
    }

    /// What the state has to know of the connection.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            kind: self.kind,
            worker: self.worker,
            login: self.login,
            version: self.version,
            opened_at: self.opened_at.expect("a connection comes back open"),
        }
    }

    /// The session opens a connection, which will be of the server's version of now.
    pub(crate) fn renew(&mut self) {
        assert!(
            self.opened_at.is_none(),
            "an open connection keeps its version"
        );
        self.version = self.server().version();
    }

    /// The session now uses an idle connection of its worker: as it is, or to be turned.
    pub(crate) fn use_for(&mut self, login: Login) {
        self.login = login;
    }

    /// The connection of the slot was closed and counted; the session opens another one.
    pub(crate) fn emptied(&mut self) {
        self.opened_at = None;
    }

    /// The state has given the slot a place within the limit.
    pub(crate) fn is_within_now(&mut self) {
        self.kind = SlotKind::Within;
    }

    /// The slot goes on with somebody else, or the state has freed it.
    pub(crate) fn pass_on(mut self) {
        self.server = None;
    }

    fn close_as(&mut self, reason: CloseReason) {
        let Some(server) = self.server.take() else {
            return;
        };
        server.change(|it| {
            if self.opened_at.is_some() {
                it.state.numbers.count_closed(reason);
            }
            it.free(self.kind, self.worker);
        });
    }
}

impl<C> Drop for Slot<C> {
    fn drop(&mut self) {
        self.close_as(CloseReason::Dropped);
    }
}

/// The way of a connection from one worker to another, while its owner takes it off its worker.
/// Dropped, it gives the slot to the session that waits for the connection.
#[derive(Debug)]
#[must_use = "a dropped ticket means that the connection is closed"]
pub struct Ticket<C> {
    /// `None` once delivered.
    slot: Option<Slot<C>>,
    /// Since when the connection is idle.
    since: Instant,
    /// The session that was promised it, unless it goes to the shared stacks.
    promised: Option<(Arc<Waiter<C>>, Fit)>,
}

impl<C> Ticket<C> {
    /// For a waiter that was taken out of the queue.
    pub(crate) fn to_waiter(
        slot: Slot<C>,
        since: Instant,
        waiter: Arc<Waiter<C>>,
        fit: Fit,
    ) -> Self {
        assert!(fit != Fit::Replace, "it would be closed at once");
        Self {
            slot: Some(slot),
            since,
            promised: Some((waiter, fit)),
        }
    }

    /// For whoever wants it.
    pub(crate) fn to_all(slot: Slot<C>, since: Instant) -> Self {
        Self {
            slot: Some(slot),
            since,
            promised: None,
        }
    }

    /// The connection has left its worker. It goes to the session that waits for it, to the next
    /// one, or to the shared stacks. If it is returned, it has to be closed.
    pub fn deliver(mut self, connection: C, now: Instant) -> Option<Closing<C>> {
        let slot = self.slot.take().expect("a ticket is delivered once");
        let mut facts = slot.facts();
        let recycling = slot.server().recycling();
        let (since, promised) = (self.since, self.promised.take());
        let closing = slot.server().change(|it| {
            let mut connection = connection;
            if let Some((waiter, fit)) = promised {
                it.state.arrives();
                if let Some(reason) = it.state.spent(&facts, now, &recycling) {
                    return Some(it.close_promised(&waiter, &facts, connection, reason));
                }
                let verdict = Verdict::of_connection(&facts, fit, Place::Moved(connection));
                match it.try_decide(&waiter, verdict) {
                    Ok(()) => return None,
                    Err(refused) => connection = moved(refused),
                }
                facts.worker = waiter.worker;
            }
            match it.state.returned(&facts, now, &recycling) {
                Returned::Keep => it.state.rest(&facts, since, connection),
                Returned::Serve { waiter, fit } => {
                    let place = Place::Moved(connection);
                    it.decide(&waiter, Verdict::of_connection(&facts, fit, place));
                }
                Returned::Close { reason, next } => {
                    it.pass(next);
                    return Some(Closing { connection, reason });
                }
            }
            None
        });
        slot.pass_on();
        closing
    }

    /// The connection could not be moved, and was closed.
    pub fn failed(mut self) {
        self.fail();
    }

    fn fail(&mut self) {
        let Some(slot) = self.slot.take() else {
            return;
        };
        let (kind, worker) = (slot.kind(), slot.worker);
        let promised = self.promised.take();
        slot.server().change(|it| {
            it.state.numbers.count_closed(CloseReason::Unmoved);
            match promised {
                Some((waiter, _)) => {
                    it.state.arrives();
                    it.open_promised(&waiter, kind);
                }
                None => it.free(kind, worker),
            }
        });
        slot.pass_on();
    }
}

impl<C> Drop for Ticket<C> {
    fn drop(&mut self) {
        self.fail();
    }
}

/// The connection of a verdict that was made of one.
fn moved<C>(verdict: Verdict<C>) -> C {
    if let Verdict::Granted(grant) = verdict
        && let Found::Idle(place) | Found::Turn(place) | Found::Open(Some(place)) = grant.found
        && let Place::Moved(connection) = place
    {
        return connection;
    }
    unreachable!("it was made of a connection")
}
