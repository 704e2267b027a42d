//! One worker's part of the pool: the stacks of its own, and its sessions' way to connections.
//!
//! A connection of type `L` belongs to this worker. It may be of no use to another thread, so a
//! connection that goes elsewhere is handed to the caller first, who makes a `C` of it
//! ([`Order::HandOver`]).
//!
//! The own stacks hold slots with their connections, so in the common case a slot moves from the
//! stack to the session and back, without a count that workers share.

mod acquire;
mod own;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use env::Instant;

use crate::counts::CloseReason;
use crate::holding::Age;
use crate::idle::Idle;
use crate::keys::{HashMap, Login, ServerId};
use crate::options::Recycling;
use crate::pool::Pool;
use crate::queue::Standing;
use crate::server::{Server, quiet};
use crate::slot::{Slot, Ticket};
use crate::state::{Closing, Found, Returned, SlotKind};
use crate::waiter::{Place, Verdict};
use own::{Kept, OwnStacks};

pub use acquire::{Answer, Wait};

/// See the module's head. Never leaves its worker.
#[derive(Debug)]
pub struct Front<L, C> {
    pool: Arc<Pool<C>>,
    /// Constant.
    worker: usize,
    /// The servers that sessions of this worker have used.
    servers: RefCell<HashMap<ServerId, OwnStacks<L, C>>>,
    /// Connections for waiters of this worker that have not taken them, by ticket.
    handed: RefCell<HashMap<u64, L>>,
    /// The next ticket.
    next_ticket: Cell<u64>,
}

/// A session asks for a connection.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a, C> {
    /// What the connection has to be logged in as.
    pub login: Login,
    /// What the session holds already.
    pub holds: Holds<'a, C>,
    /// The time.
    pub now: Instant,
}

/// What a session that asks for a connection holds already.
#[derive(Debug)]
pub enum Holds<'a, C> {
    /// No connection to any server of the pool. It waits its turn.
    Nothing,
    /// Connections. It may go above the limit, and gives way to older sessions.
    Slots {
        /// Decides between sessions.
        age: Age,
        /// All that the session holds.
        slots: &'a [&'a Slot<C>],
    },
}

impl<C> Clone for Holds<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Holds<'_, C> {}

impl<C> Holds<'_, C> {
    fn standing(&self) -> Standing {
        match self {
            Holds::Nothing => Standing::HoldsNone,
            Holds::Slots { slots: [], .. } => Standing::HoldsNone,
            Holds::Slots { .. } => Standing::HoldsOne,
        }
    }
}

/// A session has a slot, and what is in it.
#[derive(Debug)]
pub struct Acquired<L, C> {
    /// Stays with the session until it gives the connection back.
    pub slot: Slot<C>,
    /// The connection, or what is to be done to have one.
    pub found: Found<Held<L, C>>,
}

/// A connection of this worker, or one that has to be attached to it.
#[derive(Debug, PartialEq, Eq)]
pub enum Held<L, C> {
    /// It is this worker's.
    Own(L),
    /// It came from another worker or from the shared stacks.
    Moved(C),
}

/// What the caller has to do with a connection that it gave back, or that is idle.
#[derive(Debug)]
#[must_use = "somebody may wait for the connection"]
pub enum Order<L, C> {
    /// Another worker wants it: detach it, and deliver it by the ticket.
    HandOver(L, Ticket<C>),
    /// Close it.
    Close(Closing<L>),
}

impl<L, C> Front<L, C> {
    /// The part of worker `worker`. Each worker has one.
    ///
    /// # Panics
    /// If the pool was not made for that many workers.
    pub fn new(pool: Arc<Pool<C>>, worker: usize) -> Front<L, C> {
        assert!(worker < pool.mailboxes.worker_count());
        Front {
            pool,
            worker,
            servers: RefCell::new(HashMap::default()),
            handed: RefCell::new(HashMap::default()),
            next_ticket: Cell::new(0),
        }
    }

    /// The pool that all workers share.
    pub fn pool(&self) -> &Arc<Pool<C>> {
        &self.pool
    }

    /// Gives back a connection that is at rest and has no state of its session. `None`: it stays
    /// here, or another session of this worker has it. One that cannot be used again is closed by
    /// the caller ([`Slot::close`]).
    pub fn release(&self, slot: Slot<C>, connection: L, now: Instant) -> Option<Order<L, C>> {
        let kept = Kept { slot, connection };
        if kept.slot.kind() == SlotKind::Above || kept.slot.is_aged(now) {
            return self.settle(kept, now, now);
        }
        let expected = quiet(kept.slot.version());
        if kept.slot.server().stock.demand() != expected {
            return self.settle(kept, now, now);
        }
        let mut servers = self.servers.borrow_mut();
        let own = own_stacks(&mut servers, kept.slot.server());
        let login = kept.slot.login();
        own.push(now, kept);
        if own.publish_kept(self.worker) == expected {
            return None;
        }
        // A session has come, or the connection is void: what was just kept is given up (P2).
        let kept = own.take_newest(login, self.worker);
        drop(servers);
        let kept = kept.expect("it was pushed just now");
        self.settle(kept.value, now, now)
    }

    /// Whether a connection that is given back now would not stay here: a session waits for one of
    /// its server, or it is void.
    pub fn is_wanted(&self, slot: &Slot<C>) -> bool {
        slot.server().stock.demand() != quiet(slot.version())
    }

    /// Ready when other workers want connections of this one. One task of each worker waits for it
    /// in a loop, calls [`Front::answer`], and does what that says.
    pub async fn asked(&self) {
        self.pool.mailboxes.posted(self.worker).await;
    }

    /// Offers idle connections of this worker to those who want them.
    pub fn answer(&self, now: Instant) -> Vec<Order<L, C>> {
        let mut orders = Vec::new();
        for id in self.pool.mailboxes.take(self.worker) {
            let Some(server) = self.known_server(id) else {
                continue;
            };
            // Before the stacks are looked at: a later question posts again.
            server.clear_asked(self.worker);
            for void in self.void(&server) {
                orders.extend(self.settle(void.value, void.since, now));
            }
            while let Some(kept) = self.wanted(&server, now) {
                orders.extend(self.settle(kept.value, kept.since, now));
            }
            self.forget(&server);
        }
        orders
    }

    /// Closes idle connections of this worker that are too old, and offers to all workers those
    /// that are idle for longer than [`crate::Recycling::own_idle_max`]. To be called now and then.
    pub fn sweep(&self, now: Instant) -> Vec<Order<L, C>> {
        let mut resting = Vec::new();
        for own in self.servers.borrow_mut().values_mut() {
            let recycling = own.server().recycling();
            let taken = own.take_resting(now, &recycling, self.worker);
            resting.extend(taken.into_iter().map(|it| (it, recycling)));
        }
        let order = |(kept, recycling): (Idle<Kept<L, C>>, Recycling)| {
            let since = kept.since;
            let Kept { slot, connection } = kept.value;
            let reason = if slot.is_aged(now) {
                CloseReason::Age
            } else if recycling.is_idled(since, now) {
                CloseReason::Idle
            } else {
                return Order::HandOver(connection, Ticket::to_all(slot, since));
            };
            slot.close(reason);
            Order::Close(Closing { connection, reason })
        };
        resting.into_iter().map(order).collect()
    }

    /// Decides about a connection under the server's mutex.
    fn settle(&self, kept: Kept<L, C>, since: Instant, now: Instant) -> Option<Order<L, C>> {
        let Kept {
            mut slot,
            connection,
        } = kept;
        let server = Arc::clone(slot.server());
        let facts = slot.facts();
        let recycling = server.recycling();
        server.change(|it| {
            match it.state.returned(&facts, now, &recycling) {
                Returned::Keep => {
                    slot.is_within_now();
                    let mut servers = self.servers.borrow_mut();
                    let own = own_stacks(&mut servers, &server);
                    own.push(since, Kept { slot, connection });
                    // Published under the mutex, so a session that waits later finds the count.
                    own.publish_kept(self.worker);
                    None
                }
                Returned::Serve { waiter, fit } if waiter.worker == self.worker => {
                    self.handed.borrow_mut().insert(waiter.ticket, connection);
                    it.decide(&waiter, Verdict::of_connection(&facts, fit, Place::Own));
                    slot.pass_on();
                    None
                }
                Returned::Serve { waiter, fit } => {
                    waiter.promise();
                    it.state.departs();
                    let ticket = Ticket::to_waiter(slot, since, waiter, fit);
                    Some(Order::HandOver(connection, ticket))
                }
                Returned::Close { reason, next } => {
                    it.pass(next);
                    slot.pass_on();
                    Some(Order::Close(Closing { connection, reason }))
                }
            }
        })
    }

    /// Takes idle connections of older versions.
    fn void(&self, server: &Arc<Server<C>>) -> Vec<Idle<Kept<L, C>>> {
        let version = server.change(|it| it.state.version());
        let mut servers = self.servers.borrow_mut();
        let own = servers.get_mut(&server.id);
        own.map_or_else(Vec::new, |own| own.take_void(version, self.worker))
    }

    /// Takes an idle connection if somebody wants one: one of the login of the waiter that gets it,
    /// if there is any.
    fn wanted(&self, server: &Arc<Server<C>>, now: Instant) -> Option<Idle<Kept<L, C>>> {
        let (is_wanted, login) = server.change(|it| {
            let is_wanted = it.state.has_demand() || it.state.is_removed();
            (is_wanted, it.state.next_login(self.worker, now))
        });
        if !is_wanted {
            return None;
        }
        let mut servers = self.servers.borrow_mut();
        let own = servers.get_mut(&server.id)?;
        let same = login.and_then(|login| own.take_newest(login, self.worker));
        same.or_else(|| own.take_oldest(self.worker))
    }

    /// The server by its id, from this worker's map or from the pool's.
    fn known_server(&self, id: ServerId) -> Option<Arc<Server<C>>> {
        let known = self
            .servers
            .borrow()
            .get(&id)
            .map(|it| Arc::clone(it.server()));
        known.or_else(|| self.pool.server(id))
    }

    /// Drops what is left of a server that was removed.
    fn forget(&self, server: &Arc<Server<C>>) {
        if server.is_removed() {
            let mut servers = self.servers.borrow_mut();
            if servers.get(&server.id).is_some_and(OwnStacks::is_empty) {
                servers.remove(&server.id);
            }
        }
    }
}

impl<L, C> Drop for Front<L, C> {
    /// The worker ends. Its connections are closed; their slots go to waiters of other workers.
    fn drop(&mut self) {
        for own in self.servers.get_mut().values_mut() {
            drop(own.take_all(self.worker));
        }
    }
}

#[cfg(test)]
impl<L, C> Front<L, C> {
    pub(crate) fn handed_is_empty(&self) -> bool {
        self.handed.borrow().is_empty()
    }
}

/// The own stacks of a server; they begin with its first use.
fn own_stacks<'a, L, C>(
    servers: &'a mut HashMap<ServerId, OwnStacks<L, C>>,
    server: &Arc<Server<C>>,
) -> &'a mut OwnStacks<L, C> {
    let stacks = servers.entry(server.id);
    stacks.or_insert_with(|| OwnStacks::new(Arc::clone(server)))
}
