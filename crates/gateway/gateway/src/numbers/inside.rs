//! [`Inside`]: the gateway as an operator sees it, and what an operator may do to it.
//!
//! Nothing is kept for it. What is on workers alone is asked for by messages; what sessions show of
//! themselves is read where KILL finds them, some at a time, so that nobody waits long for the
//! list of sessions.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use clients::KillOrder;
use monitor::{Order, ServerId as Place, ServerState};
use result_cache::{Changes, Counts};
use router::{Load, Rule, SessionFacts};
use syntax::KillTarget;
use syntax::ast::ExplainRoute;

use crate::explain::Property;
use crate::gateway::generation::{Generation, ResultCache};
use crate::gateway::watch::Watch;
use crate::gateway::{Gateway, Victim};
use crate::guest::{Ruled, number_of};
use crate::numbers::views::{
    CacheView, RuleView, ServerView, ServiceView, SessionState, SessionView, StatementView,
    WatchedView, WorkerView,
};
use crate::options::{ServerId, ServiceId, Trust};
use crate::pooled::{Newcomer, explain_newcomer};
use crate::running::{Phase, Seen};
use crate::worker::{Counters, Worker};

use super::connection;

/// See the module's head. Its questions are asked on a worker.
#[derive(Clone)]
pub struct Inside {
    gateway: Arc<Gateway>,
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
    /// There is no such service.
    #[error("there is no service `{name}`; there are {known}")]
    NoService {
        /// As the operator wrote it.
        name: String,
        /// The names of all.
        known: String,
    },
    /// There are several services, and the operator has named none.
    #[error("which service? there are {known}")]
    WhichService {
        /// The names of all.
        known: String,
    },
}

/// What the tasks of a worker have to do and have done.
struct Work {
    sessions: usize,
    /// By the servers' names in the pool.
    loads: Vec<(pool::ServerId, Load)>,
}

/// Sessions that are read in one go.
const CHUNK: usize = 256;

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

impl Inside {
    /// The inside of a gateway. `counters` are those of all workers.
    pub fn new(gateway: Arc<Gateway>, counters: Arc<[Arc<Counters>]>) -> Inside {
        Inside { gateway, counters }
    }

    /// All servers, in the order of the settings; then those that only older sessions have.
    pub async fn servers(&self) -> Vec<ServerView> {
        let work = self.work().await;
        let sessions = self.count_sessions(|generation, victim, seen| {
            let service = victim.running.service();
            let pool_id = |place| {
                let id = generation.find_at(service, place)?;
                Some(generation.server(id).known.pool_id)
            };
            seen.places().filter_map(pool_id).collect()
        });
        let sessions = sessions.await;
        let present = self.gateway.present().number;
        let view = |(generation, id): (Arc<Generation>, ServerId)| {
            let server = generation.server(id);
            let pool_id = server.known.pool_id;
            let loads = work.iter().flat_map(|it| &it.loads);
            let loads = loads.filter(|(id, _)| *id == pool_id);
            let numbers = self.gateway.pool.numbers(pool_id);
            ServerView {
                name: Arc::clone(&server.options.name),
                address: server.options.target.address.to_string(),
                is_removed: generation.number != present,
                watched: generation.with_state(id, watched),
                rank: server.options.rank.0,
                pool: numbers.unwrap_or_default(),
                connections_max: server.known.limit(),
                sessions: sessions.get(&pool_id).copied().unwrap_or_default(),
                under_way: loads.map(|(_, it)| u64::from(it.operations)).sum(),
                statements: server.known.sent(),
            }
        };
        self.gateway.all_servers().into_iter().map(view).collect()
    }

    /// All services, in the order of the settings; then those that only older sessions have.
    pub async fn services(&self) -> Vec<ServiceView> {
        let sessions = self.count_sessions(|generation, victim, _| {
            let service = generation.service(victim.running.service());
            vec![Arc::clone(&service.options.name)]
        });
        let sessions = sessions.await;
        let mut views: Vec<ServiceView> = Vec::new();
        let present = self.gateway.present().number;
        for generation in self.gateway.generations().iter().rev() {
            for id in generation.service_ids() {
                let name = &generation.service(id).options.name;
                let count = sessions.get(name).copied().unwrap_or_default();
                let is_wanted = generation.number == present || 0 < count;
                if is_wanted && !views.iter().any(|it| it.name == *name) {
                    views.push(service(generation, id, count));
                }
            }
        }
        views
    }

    /// All clients that are logged in, by their numbers.
    pub async fn sessions(&self) -> Vec<SessionView> {
        let mut views = Vec::new();
        self.each_session(|generation, number, victim, seen| {
            views.push(session(generation, number, victim, seen));
        })
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
            under_way: work
                .loads
                .iter()
                .map(|(_, it)| u64::from(it.operations))
                .sum(),
            failed_connects: counters.failed_connects.value(),
            kills: counters.kills.value(),
        };
        let workers = work.iter().enumerate().zip(&*self.counters);
        workers.map(view).collect()
    }

    /// The rules of the present configuration, in their order. Hits are of sessions that go by it.
    pub async fn rules(&self) -> Vec<RuleView> {
        let rules = Arc::clone(&self.gateway.present().rules);
        let mut hits = vec![0; rules.all().len()];
        for index in 0..self.counters.len() {
            let asked = Arc::clone(&rules);
            let told = runtime::call_on(index, move || {
                let worker: Option<Rc<Worker>> = runtime::local();
                worker.and_then(|it| it.hits(&asked))
            });
            let told = told.await.unwrap_or_default();
            hits.iter_mut()
                .zip(told)
                .for_each(|(sum, hits)| *sum += hits);
        }
        let views = rules.all().iter().zip(hits);
        let view = |(rule, hits): (&Rule, u64)| RuleView {
            rule: rule.clone(),
            hits,
        };
        views.map(view).collect()
    }

    /// All caches of results, in their order.
    pub fn caches(&self) -> Vec<CacheView> {
        let present = self.gateway.present();
        let points = present.watches().filter_map(|it| it.following.point());
        let points: Vec<_> = points.map(|it| it.to_string()).collect();
        let view = |cache: &Arc<ResultCache>| {
            let mut counts = Counts::default();
            let parts = cache.parts();
            parts.iter().for_each(|it| counts.add(&it.counts()));
            let is_verified = cache.options.trust == Trust::Verified;
            let follows = (cache.options.follows && !points.is_empty()).then(|| points.join(", "));
            let is_in_doubt = is_verified && self.gateway.tables.is_in_doubt();
            CacheView {
                options: cache.options.clone(),
                keeps: !is_in_doubt && cache.options.follows == follows.is_some(),
                follows,
                used_bytes: parts.iter().map(|it| it.budget().used()).sum(),
                results: parts.iter().map(|it| it.len()).sum(),
                counts,
            }
        };
        present.caches().iter().map(view).collect()
    }

    /// Makes results void: those that were read from tables of these names, or all if there are
    /// none. Of a cache whose operator vouches for all queries, it is all in both cases.
    pub fn flush_results(&self, tables: &[String]) {
        let changes = match tables {
            [] => Changes::AnyTable,
            names => Changes::of_tables(names.iter().map(String::as_bytes)),
        };
        self.gateway.tables.note_change(changes);
        for generation in self.gateway.generations() {
            let caches = generation.caches().iter();
            let flushed =
                caches.filter(|it| tables.is_empty() || it.options.trust == Trust::Vouched);
            flushed.for_each(|cache| cache.parts().iter().for_each(|part| part.clear()));
        }
    }

    /// What statements have cost, by their texts and users, of all workers together. Sessions with
    /// a connection of their own count none.
    pub async fn statements(&self) -> Vec<StatementView> {
        let mut rows: Vec<digests::Row> = Vec::new();
        for index in 0..self.counters.len() {
            let told = runtime::call_on(index, || {
                let worker: Option<Rc<Worker>> = runtime::local();
                worker.map(|it| it.digests().borrow().rows())
            });
            rows.extend(told.await.unwrap_or_default());
        }
        let servers = self.gateway.all_servers();
        let names: Vec<(u32, Arc<str>)> = servers
            .iter()
            .map(|(generation, id)| {
                let server = generation.server(*id);
                (
                    server.known.pool_id.number(),
                    Arc::clone(&server.options.name),
                )
            })
            .collect();
        let view = |row: digests::Row| {
            let seen = names.iter().filter(|(id, _)| row.tally.servers.has(*id));
            StatementView {
                servers: seen.map(|(_, name)| Arc::clone(name)).collect(),
                row,
            }
        };
        digests::sum(rows).into_iter().map(view).collect()
    }

    /// Counts statements from nothing again.
    pub async fn forget_statements(&self) {
        tracing::info!("an operator has ordered that statements are counted from nothing again");
        for index in 0..self.counters.len() {
            let cleared = runtime::call_on(index, || {
                let worker: Option<Rc<Worker>> = runtime::local();
                worker
                    .iter()
                    .for_each(|it| it.digests().borrow_mut().clear());
            });
            cleared.await;
        }
    }

    /// Orders what a server is to be used for, by sessions of all configurations. Returns once the
    /// maps say so.
    ///
    /// # Errors
    /// There is no such server.
    pub async fn order(&self, name: &str, order: Order) -> Result<(), OrderError> {
        let mut known: Vec<Arc<str>> = Vec::new();
        let mut meant: Vec<(Arc<Watch>, Place)> = Vec::new();
        for generation in self.gateway.generations().iter().rev() {
            for server in generation.servers() {
                let Some((monitor, place)) = server.watch else {
                    continue;
                };
                let watch = generation.watch(monitor);
                let name_of_it = &server.options.name;
                if !known.contains(name_of_it) {
                    known.push(Arc::clone(name_of_it));
                }
                let is_counted = |(other, _): &(Arc<Watch>, _)| Arc::ptr_eq(other, watch);
                if name_of_it.eq_ignore_ascii_case(name) && !meant.iter().any(is_counted) {
                    meant.push((Arc::clone(watch), place));
                }
            }
        }
        if meant.is_empty() {
            return Err(OrderError::NoServer {
                name: name.to_owned(),
                known: known.join(", "),
            });
        }
        tracing::info!(server = name, %order, "an operator has ordered this");
        for (watch, place) in meant {
            watch.monitor.order(place, order).await;
        }
        Ok(())
    }

    /// Ends a client, or the statement that it has running.
    ///
    /// # Errors
    /// There is no such client.
    pub fn kill(&self, number: u64, target: KillTarget) -> Result<(), OrderError> {
        let victim = self.gateway.victim(number, None);
        let victim = victim.ok_or(OrderError::NoClient(number))?;
        tracing::info!(
            connection_id = number,
            ?target,
            "an operator has ordered KILL"
        );
        victim.handle.give_order(match target {
            KillTarget::Connection => KillOrder::Connection,
            KillTarget::Query => {
                victim.running.ask_kill();
                KillOrder::Query
            }
        });
        Ok(())
    }

    /// Where the first statement of a session would go that begins on this worker by the present
    /// configuration, and why.
    ///
    /// # Errors
    /// There is no such service, or it is not clear which is meant.
    pub fn explain_route(&self, asked: &ExplainRoute) -> Result<Vec<Property>, OrderError> {
        let worker: Rc<Worker> = runtime::local().expect("each worker was given its part");
        let services = worker.generation.services().iter();
        let known: Vec<_> = services.map(|it| &*it.options.name).collect();
        let known = || known.join(", ");
        let mut ids = worker.generation.service_ids();
        let service = match (&asked.service, ids.next(), ids.next()) {
            (Some(name), ..) => {
                let found = worker.generation.service_named(name);
                found.ok_or_else(|| OrderError::NoService {
                    name: name.clone(),
                    known: known(),
                })?
            }
            (None, Some(only), None) => only,
            (None, ..) => return Err(OrderError::WhichService { known: known() }),
        };
        let user = asked.user.as_deref().unwrap_or_default();
        let database = asked.database.as_deref();
        let facts = SessionFacts {
            service: &worker.generation.service(service).options.name,
            user,
            schema: database.map(str::as_bytes),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let newcomer = Newcomer {
            service,
            user,
            database,
            ruled: &Ruled::of(worker.judge(), &facts),
        };
        Ok(explain_newcomer(&worker, &newcomer, &asked.text))
    }

    /// Where the statement of a client has gone, and what keeps its session there.
    ///
    /// # Errors
    /// There is no such client.
    pub fn explain_connection(&self, number: u64) -> Result<Vec<Property>, OrderError> {
        let unknown = OrderError::NoClient(number);
        let victim = self.gateway.victim(number, None).ok_or(unknown.clone())?;
        let generations = self.gateway.generations();
        let own = victim.running.generation();
        let generation = generations.iter().find(|it| it.number == own);
        let generation = generation.ok_or(unknown.clone())?;
        let number = u32::try_from(number).map_err(|_| unknown)?;
        let seen = victim.running.standing.look(runtime::now());
        let view = session(generation, number, &victim, &seen);
        let service = generation.service(victim.running.service());
        let name = |pool_id: pool::ServerId| {
            let all = self.gateway.all_servers();
            let is_it =
                |(of, id): &&(Arc<Generation>, ServerId)| of.server(*id).known.pool_id == pool_id;
            let (of, id) = all.iter().find(is_it)?;
            Some(Arc::clone(&of.server(*id).options.name))
        };
        let server = victim.running.server().and_then(name);
        Ok(connection::properties(
            &view,
            service.options.router,
            server,
        ))
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

    /// Shows each session to `see`, with its configuration. Others run now and then.
    async fn each_session(&self, mut see: impl FnMut(&Generation, u32, &Victim, &Seen)) {
        let mut from = 0;
        loop {
            let some = self.gateway.some_victims(from, CHUNK);
            let generations = self.gateway.generations();
            let now = runtime::now();
            for (number, victim) in &some {
                let own = victim.running.generation();
                // One that has ended meanwhile may have been the last of its configuration.
                if let Some(generation) = generations.iter().find(|it| it.number == own) {
                    let seen = victim.running.standing.look(now);
                    see(generation, *number, victim, &seen);
                }
            }
            match some.last().and_then(|(last, _)| last.checked_add(1)) {
                Some(next) => from = next,
                None => return,
            }
            drop(generations);
            runtime::yield_now().await;
        }
    }

    /// How many sessions belong to each thing.
    async fn count_sessions<T: std::hash::Hash + Eq>(
        &self,
        of: impl Fn(&Generation, &Victim, &Seen) -> Vec<T>,
    ) -> HashMap<T, usize> {
        let mut counts = HashMap::new();
        self.each_session(|generation, _, victim, seen| {
            for thing in of(generation, victim, seen) {
                *counts.entry(thing).or_default() += 1;
            }
        })
        .await;
        counts
    }
}

fn service(generation: &Generation, id: ServiceId, sessions: usize) -> ServiceView {
    let options = &generation.service(id).options;
    let servers = options.servers.iter();
    let is_reachable =
        |id: &&ServerId| generation.with_state(**id, ServerState::is_reachable) == Some(true);
    let present = generation.watch(options.monitor).monitor.present();
    let primary = present.map.primary();
    let name = |id: &ServerId| Arc::clone(&generation.server(*id).options.name);
    ServiceView {
        name: Arc::clone(&options.name),
        router: options.router,
        servers: servers.clone().map(name).collect(),
        monitor: options.monitor.0,
        primary: primary.map(|it| Arc::clone(&it.entry.name)),
        reachable: servers.filter(is_reachable).count(),
        sessions,
    }
}

fn session(generation: &Generation, number: u32, victim: &Victim, seen: &Seen) -> SessionView {
    let line = victim.handle.line();
    let service = victim.running.service();
    let name = |place: Place| {
        let id = generation.find_at(service, place)?;
        Some(Arc::clone(&generation.server(id).options.name))
    };
    SessionView {
        number,
        user: line.user,
        host: line.host,
        service: Arc::clone(&generation.service(service).options.name),
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
        pinned_by: {
            let pins = seen.stay.pins.iter();
            let known = pins.filter_map(|pin| {
                let number = number_of(pin);
                let mut all = line.kept_by.iter();
                let (_, text) = all.find(|(of, _)| *of == number)?;
                Some((pin, text.to_string()))
            });
            known.collect()
        },
        pins: seen.stay.pins,
        stays_at: seen.stay.at.and_then(name),
        is_in_transaction: seen.stay.is_in_transaction,
        connections: seen.held().filter_map(name).collect(),
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
