//! [`Inside`]: the gateway as an operator sees it, and what an operator may do to it.
//!
//! Nothing is kept for it. What is on workers alone is asked for by messages; what sessions show of
//! themselves is read where KILL finds them, some at a time, so that nobody waits long for the
//! list of sessions.

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use clients::KillOrder;
use monitor::{Change, Monitor, Order, ServerId as Place, ServerState};
use router::Load;
use syntax::KillTarget;

use crate::gateway::{Gateway, Victim};
use crate::numbers::views::{
    ServerView, ServiceView, SessionState, SessionView, WatchedView, WorkerView,
};
use crate::options::{ServerId, ServiceId};
use crate::running::{Phase, Seen};
use crate::worker::{Counters, Worker};

/// See the module's head. Its questions are asked on a worker.
#[derive(Clone)]
pub struct Inside {
    gateway: Arc<Gateway>,
    /// By their ids. Constant.
    monitors: Vec<Monitor>,
    /// Of each worker. Constant.
    counters: Arc<[Arc<Counters>]>,
}

/// Why an operator's order is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// There is no such server, or no monitor watches it.
    #[error("there is no server `{name}`; there are {known}")]
    NoServer {
        /// As the operator wrote it.
        name: String,
        /// The names of all that are watched.
        known: String,
    },
    /// There is no such client.
    #[error("there is no client {0}")]
    NoClient(u64),
}

/// What the tasks of a worker have to do and have done.
struct Work {
    sessions: usize,
    loads: Vec<Load>,
}

/// Sessions that are read in one go.
const CHUNK: usize = 256;

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

impl Inside {
    /// The inside of a gateway. `monitors` are those of [`crate::watch_servers`], `counters` those
    /// of all workers.
    pub fn new(
        gateway: Arc<Gateway>,
        monitors: Vec<Monitor>,
        counters: Arc<[Arc<Counters>]>,
    ) -> Inside {
        Inside {
            gateway,
            monitors,
            counters,
        }
    }

    /// All servers, in the order of the settings.
    pub async fn servers(&self) -> Vec<ServerView> {
        let work = self.work().await;
        let sessions = self.count_sessions(|service, seen| {
            let held = seen.held();
            held.filter_map(|place| self.server_at(service, place))
                .collect()
        });
        let sessions = sessions.await;
        let view = |id: ServerId| {
            let server = self.gateway.server(id);
            let loads = work.iter().filter_map(|it| it.loads.get(id.0));
            ServerView {
                name: Arc::clone(&server.options.name),
                address: server.options.target.address.to_string(),
                watched: self.with_state(id, watched),
                rank: server.options.rank.0,
                pool: self
                    .gateway
                    .pool
                    .numbers(server.pool_id)
                    .unwrap_or_default(),
                connections_max: server.options.connections_max,
                sessions: sessions.get(&id).copied().unwrap_or_default(),
                under_way: loads.map(|it| u64::from(it.operations)).sum(),
                statements: self.counters.iter().map(|it| it.sent(id).value()).sum(),
            }
        };
        self.gateway.server_ids().map(view).collect()
    }

    /// All services, in the order of the settings.
    pub async fn services(&self) -> Vec<ServiceView> {
        let sessions = self.count_sessions(|service, _| vec![service]).await;
        let view = |id: ServiceId| {
            let options = &self.gateway.service(id).options;
            let servers = options.servers.iter();
            let is_reachable = |id: &&ServerId| self.with_state(**id, ServerState::is_reachable);
            let map = self.monitors.get(options.monitor.0).map(Monitor::present);
            let primary = map.and_then(|it| it.map.primary().map(|it| Arc::clone(&it.entry.name)));
            ServiceView {
                name: Arc::clone(&options.name),
                router: options.router,
                servers: servers.clone().map(|id| self.name(*id)).collect(),
                monitor: options.monitor.0,
                primary,
                reachable: servers.filter(|id| is_reachable(id) == Some(true)).count(),
                sessions: sessions.get(&id).copied().unwrap_or_default(),
            }
        };
        self.gateway.service_ids().map(view).collect()
    }

    /// All clients that are logged in, by their numbers.
    pub async fn sessions(&self) -> Vec<SessionView> {
        let mut views = Vec::new();
        self.each_session(|number, victim, seen| views.push(self.session(number, victim, seen)))
            .await;
        views
    }

    /// All workers.
    pub async fn workers(&self) -> Vec<WorkerView> {
        let work = self.work().await;
        let view = |((index, work), counters): ((usize, &Work), &Arc<Counters>)| WorkerView {
            index,
            sessions: work.sessions,
            sessions_begun: counters.sessions.value(),
            statements: counters.statements.value(),
            under_way: work.loads.iter().map(|it| u64::from(it.operations)).sum(),
            failed_connects: counters.failed_connects.value(),
            kills: counters.kills.value(),
        };
        let workers = work.iter().enumerate().zip(&*self.counters);
        workers.map(view).collect()
    }

    /// Orders what a server is to be used for. Returns once its monitor's map says so.
    ///
    /// # Errors
    /// There is no such server.
    pub async fn order(&self, name: &str, order: Order) -> Result<(), OrderError> {
        let watched = self.gateway.server_ids().filter_map(|id| {
            let server = self.gateway.server(id);
            let (monitor, place) = server.watch?;
            let monitor = self.monitors.get(monitor.0)?;
            Some((&server.options.name, monitor, place))
        });
        let watched: Vec<_> = watched.collect();
        let is_it = |(known, ..): &&(&Arc<str>, _, _)| known.eq_ignore_ascii_case(name);
        let Some((server, monitor, place)) = watched.iter().find(is_it) else {
            let known: Vec<&str> = watched.iter().map(|(known, ..)| &***known).collect();
            return Err(OrderError::NoServer {
                name: name.to_owned(),
                known: known.join(", "),
            });
        };
        let server = &***server;
        tracing::info!(server, %order, "an operator has ordered this");
        monitor.change(*place, Change::Order(order)).await;
        Ok(())
    }

    /// Ends a client, or the statement that it has running.
    ///
    /// # Errors
    /// There is no such client.
    pub fn kill(&self, number: u64, target: KillTarget) -> Result<(), OrderError> {
        let victim = self.gateway.victim(number, None);
        let victim = victim.ok_or(OrderError::NoClient(number))?;
        victim.handle.give_order(match target {
            KillTarget::Connection => KillOrder::Connection,
            KillTarget::Query => {
                victim.running.ask_kill();
                KillOrder::Query
            }
        });
        Ok(())
    }

    /// Asks each worker.
    async fn work(&self) -> Vec<Work> {
        let mut all = Vec::new();
        for index in 0..self.counters.len() {
            let told = runtime::call_on(index, || {
                let worker: Option<Rc<Worker>> = runtime::local();
                worker.map_or_else(
                    || Work {
                        sessions: 0,
                        loads: Vec::new(),
                    },
                    |worker| Work {
                        sessions: worker.session_count(),
                        loads: worker.loads(),
                    },
                )
            });
            all.push(told.await);
        }
        all
    }

    fn session(&self, number: u32, victim: &Victim, seen: &Seen) -> SessionView {
        let line = victim.handle.line();
        let service = victim.running.service();
        let name = |place: Place| Some(self.name(self.server_at(service, place)?));
        SessionView {
            number,
            user: line.user,
            host: line.host,
            service: Arc::clone(&self.gateway.service(service).options.name),
            database: line.database,
            state: match seen.phase {
                Phase::Idle => SessionState::Idle,
                Phase::Running => SessionState::Running,
                Phase::Connection(place) => name(place).map_or(
                    SessionState::WaitsForServer,
                    SessionState::WaitsForConnection,
                ),
                Phase::Server => SessionState::WaitsForServer,
            },
            age: seen.age,
            pins: seen.stay.pins,
            stays_at: seen.stay.at.and_then(name),
            is_in_transaction: seen.stay.is_in_transaction,
            connections: seen.held().filter_map(name).collect(),
        }
    }

    /// Shows each session to `see`. Others run now and then.
    async fn each_session(&self, mut see: impl FnMut(u32, &Victim, &Seen)) {
        let mut from = 0;
        loop {
            let some = self.gateway.some_victims(from, CHUNK);
            let now = runtime::now();
            for (number, victim) in &some {
                see(*number, victim, &victim.running.standing.look(now));
            }
            match some.last().and_then(|(last, _)| last.checked_add(1)) {
                Some(next) => from = next,
                None => return,
            }
            runtime::yield_now().await;
        }
    }

    /// How many sessions belong to each thing.
    async fn count_sessions<T: std::hash::Hash + Eq>(
        &self,
        of: impl Fn(ServiceId, &Seen) -> Vec<T>,
    ) -> HashMap<T, usize> {
        let mut counts = HashMap::new();
        self.each_session(|_, victim, seen| {
            for thing in of(victim.running.service(), seen) {
                *counts.entry(thing).or_default() += 1;
            }
        })
        .await;
        counts
    }

    /// The server at a place of a service's map.
    fn server_at(&self, service: ServiceId, place: Place) -> Option<ServerId> {
        let servers = &self.gateway.monitor_options(service).servers;
        servers.get(usize::from(place.0)).copied()
    }

    fn name(&self, id: ServerId) -> Arc<str> {
        Arc::clone(&self.gateway.server(id).options.name)
    }

    /// Asks for a server, as its monitor sees it now.
    fn with_state<T>(&self, id: ServerId, ask: impl FnOnce(&ServerState) -> T) -> Option<T> {
        let (monitor, place) = self.gateway.server(id).watch?;
        let present = self.monitors.get(monitor.0)?.present();
        present.map.server(place).map(ask)
    }
}

fn watched(state: &ServerState) -> WatchedView {
    WatchedView {
        down: state.down,
        wanted: state.order,
        role: state.role,
        serves: state.serves,
        lag: state.lag,
        position: state.position.as_ref().map(ToString::to_string),
        version: state.version.as_ref().map(|it| it.text.clone()),
        error: state.complaint.clone(),
    }
}
