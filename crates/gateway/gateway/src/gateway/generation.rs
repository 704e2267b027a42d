//! [`Generation`]: one configuration of the gateway, which never changes.
//!
//! ```text
//! file -> Options -> Gateway::take -> Generation n+1 -> Worker::adopt, on each worker
//!                                        |  shares with n: servers and what was written there,
//!                                        |  accounts of services, watches that are the same
//! session -> Worker of generation n -> Generation n
//! ```
//!
//! A new configuration is a new generation. Each worker makes its part of it ([`crate::Worker`]),
//! and a session that begins takes that part along. A session keeps the one that it began with, so
//! a change of the configuration ends no session, and a statement takes no lock and counts no
//! reference for it.
//!
//! (G1) Ids of servers, services and monitors are places in one generation. What passes between
//! sessions (KILL, listings) names a server by its name in the pool, which is never given again.
//!
//! (G2) Counters, connections and their limits, orders of operators, the accounts of a service and
//! what sessions have written belong to no generation, and go on.
//!
//! (G3) A generation lives as long as a session of it, or as it is the present one. What lasts as
//! long as the gateway must not hold one. With the last generation that has it, a server leaves the
//! pool, and a watch ends.
//!
//! (G4) A watch is shared if nothing of it has changed. Otherwise old sessions go by the old one,
//! and new sessions by a new one, which begins with what the old one knew. While both run, a server
//! is asked by both. Either makes connections void that were made before a server was lost.
//!
//! Refused: to move sessions to the new configuration at their next statement. What a transaction
//! or a pin holds would be on servers that the new one may not have.

use std::sync::Arc;
use std::time::Duration;

use ::query_log::Filter;
use result_cache::Cache;
use router::{CacheUse, Rules};
use spans::Sampling;

use crate::options::{
    CacheId, ListenerOptions, MonitorId, MonitorOptions, Options, ResultCacheOptions, ServerId,
    ServerOptions, ServiceId, ServiceOptions, Sharing, Trust,
};
use crate::service::Service;
use crate::service::written::SharedWritten;

use super::server::{KnownServer, KnownServers};
use super::watch::{Ground, Surroundings, Watch};

/// See the module's head.
#[derive(Debug)]
pub struct Generation {
    /// Rises by one with each. Constant, as all else but what services publish.
    pub(crate) number: u32,
    services: Vec<Service>,
    /// By their ids.
    servers: Vec<ServerShare>,
    /// By their ids.
    monitors: Vec<Watched>,
    /// Where clients connect.
    listeners: Vec<ListenerOptions>,
    /// By their ids.
    caches: Vec<Arc<ResultCache>>,
    /// What is said about statements.
    pub(crate) rules: Arc<Rules>,
    /// Which statements are logged beyond those that rules choose, if there is a query log.
    pub(crate) logged: Option<Filter>,
    /// Which statements are traced, if any are.
    pub(crate) traced: Option<Sampling>,
    /// Most clients with a session.
    pub(crate) max_connections: usize,
    pub(crate) limits: ClientLimits,
}

/// How long clients are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientLimits {
    pub(crate) login_rules: front::LoginRules,
    pub(crate) wait_timeout: Duration,
    pub(crate) read_timeout: Duration,
}

/// A server, as a generation sees it.
#[derive(Debug)]
pub(crate) struct ServerShare {
    pub(crate) options: ServerOptions,
    /// Who watches it, and its place in that monitor's map.
    pub(crate) watch: Option<(MonitorId, monitor::ServerId)>,
    /// What all generations share of it.
    pub(crate) known: Arc<KnownServer>,
}

/// A cache of results.
#[derive(Debug)]
pub(crate) struct ResultCache {
    pub(crate) options: ResultCacheOptions,
    /// One for all workers, or one for each.
    parts: Vec<Arc<Cache>>,
}

impl ResultCache {
    fn new(options: ResultCacheOptions, worker_count: usize) -> ResultCache {
        let parts = match options.sharing {
            Sharing::All => vec![Arc::new(Cache::shared(options.cache))],
            Sharing::Worker => {
                let of_worker = options.of_worker(worker_count);
                let part = |_| Arc::new(Cache::of_worker(of_worker));
                (0..worker_count).map(part).collect()
            }
        };
        ResultCache { options, parts }
    }

    /// The part that sessions of a worker use.
    pub(crate) fn part(&self, worker: usize) -> &Arc<Cache> {
        &self.parts[worker % self.parts.len()]
    }

    /// All of its parts.
    pub(crate) fn parts(&self) -> &[Arc<Cache>] {
        &self.parts
    }
}

/// A watch, as a generation sees it.
#[derive(Debug)]
struct Watched {
    options: MonitorOptions,
    watch: Arc<Watch>,
}

/// A session's place among those of a server.
#[derive(Debug)]
pub(crate) struct ServerPlace {
    generation: Arc<Generation>,
    id: ServerId,
}

impl Generation {
    /// The one before the first: there is nothing in it.
    pub(crate) fn empty() -> Generation {
        Generation {
            number: 0,
            services: Vec::new(),
            servers: Vec::new(),
            monitors: Vec::new(),
            listeners: Vec::new(),
            caches: Vec::new(),
            rules: Arc::default(),
            logged: None,
            traced: None,
            max_connections: 0,
            limits: ClientLimits {
                login_rules: front::LoginRules::default(),
                wait_timeout: Duration::ZERO,
                read_timeout: Duration::ZERO,
            },
        }
    }

    /// The generation of these options. Watches that are new run on this worker.
    ///
    /// # Panics
    /// If the monitor of a service does not watch one of its servers: a bug of the caller.
    pub(crate) fn after(
        before: &Generation,
        options: Options,
        known: &KnownServers,
        ground: &Ground<'_>,
    ) -> Generation {
        let watch_of = |id| {
            let mut places = (0..).map(MonitorId).zip(&options.monitors);
            places.find_map(|(monitor, it)| Some((monitor, it.place(id)?)))
        };
        let servers: Vec<ServerShare> = (0..)
            .map(ServerId)
            .zip(options.servers)
            .map(|(id, options)| ServerShare {
                known: known.take(&options),
                watch: watch_of(id),
                options,
            })
            .collect();
        for service in &options.services {
            let by = |id: &ServerId| servers.get(id.0).and_then(|it| it.watch);
            let is_watched = |id| by(id).is_some_and(|(it, _)| it == service.monitor);
            assert!(service.servers.iter().all(is_watched));
        }
        let monitors = options.monitors.into_iter();
        let monitors = monitors.map(|it| before.watched(it, &servers, ground));
        let monitors = monitors.collect();
        let services = options.services.into_iter();
        let services = services.map(|it| before.continued(it, &servers)).collect();
        let caches = options.caches.into_iter();
        let worker_count = ground.worker_count;
        let caches = caches
            .map(|it| before.kept_cache(it, worker_count))
            .collect();
        Generation {
            number: before.number + 1,
            services,
            servers,
            monitors,
            listeners: options.listeners,
            caches,
            rules: options.rules,
            logged: options.query_log.map(|it| it.filter),
            traced: options.tracing.map(|it| it.sampling),
            max_connections: options.max_connections,
            limits: ClientLimits {
                login_rules: options.login_rules,
                wait_timeout: options.wait_timeout,
                read_timeout: options.read_timeout,
            },
        }
    }

    /// A cache of the next generation: the one of this generation if it is the same.
    fn kept_cache(&self, options: ResultCacheOptions, worker_count: usize) -> Arc<ResultCache> {
        let same = self.caches.iter().find(|it| it.options == options);
        let made = || Arc::new(ResultCache::new(options.clone(), worker_count));
        same.map_or_else(made, Arc::clone)
    }

    /// All caches of results.
    pub(crate) fn caches(&self) -> &[Arc<ResultCache>] {
        &self.caches
    }

    /// Whether a cache has to know which tables statements read from and change. Then no service
    /// passes them on unread: the options see to it.
    pub(crate) fn looks_at_tables(&self) -> bool {
        let mut caches = self.caches.iter();
        caches.any(|it| it.options.trust == Trust::Verified)
    }

    /// Whether a cache has to know what the primaries' binary logs tell.
    pub(crate) fn follows_logs(&self) -> bool {
        self.caches.iter().any(|it| it.options.follows)
    }

    /// The cache for a statement of a service, about which rules say this.
    pub(crate) fn cache_for(
        &self,
        service: ServiceId,
        said: Option<&CacheUse>,
    ) -> Option<&Arc<ResultCache>> {
        match said {
            Some(CacheUse::Off) => None,
            Some(CacheUse::In(name)) => self.caches.iter().find(|it| it.options.name == *name),
            None => {
                let CacheId(id) = self.service(service).options.cache?;
                self.caches.get(id)
            }
        }
    }

    /// A watch of the next generation: the one of this generation if it is the same.
    fn watched(
        &self,
        options: MonitorOptions,
        servers: &[ServerShare],
        ground: &Ground<'_>,
    ) -> Watched {
        let watched = options.servers.iter().filter_map(|id| servers.get(id.0));
        let surroundings = Surroundings {
            servers: watched
                .map(|it| (Arc::clone(&it.known), it.options.rank))
                .collect(),
            options: &options,
        };
        let mut all = self.monitors.iter().map(|it| &it.watch);
        let watch = match all.find(|it| it.is_over(&surroundings)) {
            Some(same) => Arc::clone(same),
            None => {
                let before: Vec<_> = self.watches().map(|it| it.monitor.present()).collect();
                Arc::new(Watch::start(surroundings, &before, ground))
            }
        };
        Watched { options, watch }
    }

    /// A service of the next generation, with what is known of the one of that name in this
    /// generation.
    fn continued(&self, options: ServiceOptions, servers: &[ServerShare]) -> Service {
        let mut services = self.services.iter();
        let Some(before) = services.find(|it| it.options.name == options.name) else {
            return Service::new(options);
        };
        let mut known = options.servers.iter().filter_map(|id| servers.get(id.0));
        let has_common = known.any(|it| {
            let mut old = before.options.servers.iter();
            old.any(|id| Arc::ptr_eq(&self.server(*id).known, &it.known))
        });
        let written = match has_common {
            true => Arc::clone(&before.written),
            // None of the new servers knows what was written.
            false => Arc::default(),
        };
        before.continued(options, written)
    }

    /// The services.
    pub(crate) fn service_ids(&self) -> impl Iterator<Item = ServiceId> + use<> {
        (0..self.services.len()).map(ServiceId)
    }

    /// The servers.
    pub(crate) fn server_ids(&self) -> impl Iterator<Item = ServerId> + use<> {
        (0..self.servers.len()).map(ServerId)
    }

    pub(crate) fn services(&self) -> &[Service] {
        &self.services
    }

    pub(crate) fn service(&self, id: ServiceId) -> &Service {
        self.services.get(id.0).expect("a place in this generation")
    }

    pub(crate) fn servers(&self) -> &[ServerShare] {
        &self.servers
    }

    pub(crate) fn server(&self, id: ServerId) -> &ServerShare {
        self.servers.get(id.0).expect("a place in this generation")
    }

    /// All watches.
    pub(crate) fn watches(&self) -> impl Iterator<Item = &Arc<Watch>> {
        self.monitors.iter().map(|it| &it.watch)
    }

    pub(crate) fn watch(&self, id: MonitorId) -> &Arc<Watch> {
        let watched = self.monitors.get(id.0);
        &watched.expect("a place in this generation").watch
    }

    /// What a monitor is set to.
    pub(crate) fn watched_by(&self, id: MonitorId) -> &MonitorOptions {
        let watched = self.monitors.get(id.0);
        &watched.expect("a place in this generation").options
    }

    /// The watch over the servers of a service.
    pub(crate) fn monitor_options(&self, id: ServiceId) -> &MonitorOptions {
        self.watched_by(self.service(id).options.monitor)
    }

    /// The server at a place in the map of a service's monitor.
    pub(crate) fn server_at(&self, service: ServiceId, place: monitor::ServerId) -> ServerId {
        self.find_at(service, place)
            .expect("maps keep their places")
    }

    /// The same; `None` if the map has no such place.
    pub(crate) fn find_at(&self, service: ServiceId, place: monitor::ServerId) -> Option<ServerId> {
        let servers = &self.monitor_options(service).servers;
        servers.get(usize::from(place.0)).copied()
    }

    /// What was written at the server at a place in the map of a service's monitor.
    pub(crate) fn written_at(
        &self,
        service: ServiceId,
        place: monitor::ServerId,
    ) -> &SharedWritten {
        &self.server(self.server_at(service, place)).known.written
    }

    /// The service of this name.
    pub(crate) fn service_named(&self, name: &str) -> Option<ServiceId> {
        let is_it = |id: &ServiceId| *self.service(*id).options.name == *name;
        self.service_ids().find(is_it)
    }

    /// The service of the clients of this listener.
    pub(crate) fn service_at(&self, listener: &str) -> Option<ServiceId> {
        let mut listeners = self.listeners.iter();
        let found = listeners.find(|it| *it.name == *listener)?;
        Some(found.service)
    }

    /// Asks for a server, as its monitor sees it now. `None` if no monitor watches it.
    pub(crate) fn with_state<T>(
        &self,
        id: ServerId,
        ask: impl FnOnce(&monitor::ServerState) -> T,
    ) -> Option<T> {
        let (monitor, place) = self.server(id).watch?;
        let present = self.watch(monitor).monitor.present();
        present.map.server(place).map(ask)
    }

    /// Counts a session of a server until the place is dropped.
    pub(crate) fn take_place(self: &Arc<Self>, id: ServerId) -> ServerPlace {
        self.server(id).known.enter();
        ServerPlace {
            generation: Arc::clone(self),
            id,
        }
    }
}

impl ServerPlace {
    /// The server's id.
    pub(crate) fn id(&self) -> ServerId {
        self.id
    }

    /// The server.
    pub(crate) fn server(&self) -> &ServerShare {
        self.generation.server(self.id)
    }
}

impl Drop for ServerPlace {
    fn drop(&mut self) {
        self.server().known.leave();
    }
}
