//! All servers of a process, and what is done to them from any thread.

use std::sync::Arc;

use arc_swap::ArcSwap;
use env::Instant;
use sync::Mutex;
use sync::atomic::{AtomicU32, Ordering};

use crate::counts::Numbers;
use crate::holding::Holders;
use crate::keys::{HashMap, ServerId};
use crate::mailbox::Mailboxes;
use crate::options::{Limits, Recycling};
use crate::queue::Sequence;
use crate::server::{Aftermath, Server};
use crate::state::Closing;
use crate::waiter::{Verdict, Waiter};

/// Connections to servers, shared by all workers. `C` is a connection at rest, which may go from
/// one worker to another.
#[derive(Debug)]
pub struct Pool<C> {
    /// Read at the first use of a server by a worker; changed when a server comes or goes.
    servers: ArcSwap<HashMap<ServerId, Arc<Server<C>>>>,
    /// The next id. Atomic, so that no id is given twice.
    next_id: AtomicU32,
    pub(crate) mailboxes: Arc<Mailboxes>,
    /// Sessions that hold a connection and wait. Taken before a server's mutex, never under one.
    pub(crate) holders: Mutex<Holders<HoldingWait<C>>>,
}

/// The wait of a session that holds a connection.
#[derive(Debug)]
pub(crate) struct HoldingWait<C> {
    pub(crate) server: Arc<Server<C>>,
    pub(crate) sequence: Sequence,
    pub(crate) waiter: Arc<Waiter<C>>,
}

impl<C> Clone for HoldingWait<C> {
    fn clone(&self) -> Self {
        Self {
            server: Arc::clone(&self.server),
            sequence: self.sequence,
            waiter: Arc::clone(&self.waiter),
        }
    }
}

/// There is no server of that id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server is not known")]
pub struct UnknownServer;

impl<C> Pool<C> {
    /// A pool without servers, for as many workers.
    pub fn new(worker_count: usize) -> Arc<Pool<C>> {
        Arc::new(Pool {
            servers: ArcSwap::default(),
            next_id: AtomicU32::new(0),
            mailboxes: Arc::new(Mailboxes::new(worker_count)),
            holders: Mutex::new(Holders::default()),
        })
    }

    /// Adds a server. Errors call it `name`.
    pub fn add_server(
        &self,
        name: impl Into<Arc<str>>,
        limits: Limits,
        recycling: Recycling,
    ) -> ServerId {
        // Relaxed: only the number matters.
        let id = ServerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let mailboxes = Arc::clone(&self.mailboxes);
        let server = Arc::new(Server::new(id, name.into(), limits, recycling, mailboxes));
        self.servers.rcu(|servers| {
            let mut servers = HashMap::clone(servers);
            servers.insert(id, Arc::clone(&server));
            servers
        });
        id
    }

    /// Removes a server. Its waiters fail, and connections in use are closed when they come back.
    pub fn remove_server(&self, id: ServerId) -> Result<Vec<Closing<C>>, UnknownServer> {
        let server = self.server(id).ok_or(UnknownServer)?;
        self.servers.rcu(|servers| {
            let mut servers = HashMap::clone(servers);
            servers.remove(&id);
            servers
        });
        Ok(server.change(|it| {
            let (waiters, closing) = it.state.remove();
            for waiter in waiters {
                it.decide(&waiter, Verdict::Removed);
            }
            closing
        }))
    }

    /// Changes the limits. Waiters are served if there is room, idle connections closed if there is
    /// none. Connections in use beyond the limits are closed when they come back.
    pub fn set_limits(
        &self,
        id: ServerId,
        limits: Limits,
    ) -> Result<Vec<Closing<C>>, UnknownServer> {
        let server = self.server(id).ok_or(UnknownServer)?;
        Ok(server.change(|it| {
            let effects = it.state.set_limits(limits);
            it.pass(effects.passed);
            effects.closing
        }))
    }

    /// Changes when connections are recycled.
    pub fn set_recycling(&self, id: ServerId, recycling: Recycling) -> Result<(), UnknownServer> {
        let server = self.server(id).ok_or(UnknownServer)?;
        server.set_recycling(recycling);
        Ok(())
    }

    /// Declares all connections of now void: the server's address changed, it was restarted, or an
    /// operator says so. None of them is given out again.
    ///
    /// To change an address, publish it first. Who is granted a slot of the new version then reads
    /// the new address.
    pub fn raise_version(&self, id: ServerId) -> Result<Vec<Closing<C>>, UnknownServer> {
        let server = self.server(id).ok_or(UnknownServer)?;
        Ok(server.change(|it| it.state.raise_version()))
    }

    /// Closes connections in the shared stacks that are too old or idle for too long. To be called
    /// now and then by one thread; each worker does the same for its own
    /// ([`crate::Front::sweep`]).
    pub fn sweep(&self, now: Instant) -> Vec<Closing<C>> {
        let servers = self.servers.load();
        let sweep = |server: &Arc<Server<C>>| {
            let recycling = server.recycling();
            server.change(|it| it.state.sweep(now, &recycling))
        };
        servers.values().flat_map(sweep).collect()
    }

    /// The numbers of a server.
    pub fn numbers(&self, id: ServerId) -> Result<Numbers, UnknownServer> {
        let server = self.server(id).ok_or(UnknownServer)?;
        Ok(server.numbers())
    }

    /// All servers, with their names.
    pub fn servers(&self) -> Vec<(ServerId, Arc<str>)> {
        let servers = self.servers.load();
        let names = servers.values().map(|it| (it.id, Arc::clone(&it.name)));
        let mut names: Vec<_> = names.collect();
        names.sort_unstable_by_key(|it| it.0);
        names
    }

    pub(crate) fn server(&self, id: ServerId) -> Option<Arc<Server<C>>> {
        self.servers.load().get(&id).cloned()
    }

    /// The wait of a session that holds a connection is over.
    pub(crate) fn deregister(&self, waiter: &Arc<Waiter<C>>) {
        let mut holders = self.holders.lock();
        holders.deregister(|it| Arc::ptr_eq(&it.waiter, waiter));
    }
}

impl<C> HoldingWait<C> {
    /// Makes the session a victim, if it still waits.
    pub(crate) fn sacrifice(&self) -> Aftermath {
        let ((), aftermath) = self.server.change_quietly(|it| {
            if let Some(waiter) = it.state.leave(self.sequence) {
                it.state.numbers.victims += 1;
                it.decide(&waiter, Verdict::Victim);
            }
        });
        aftermath
    }
}
