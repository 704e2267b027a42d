//! [`Gateway`]: what the workers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use backend::Login;
use clients::{ClientNumbers, Clients, SessionHandle};
use foldhash::fast::RandomState;
use pool::{AccountId, ClassId, Interner, Limits, Pool, Recycling};
use router::Rules;
use sync::Mutex;
use sync::atomic::{AtomicUsize, Ordering};

use crate::connection::Resting;
use crate::options::{MonitorId, MonitorOptions, Options, ServerId, ServerOptions, ServiceId};
use crate::running::Running;
use crate::service::Service;

/// See the module's head.
#[derive(Debug)]
pub struct Gateway {
    /// All clients.
    pub(crate) clients: Clients,
    /// Constant, but for what each publishes.
    services: Vec<Service>,
    /// By their ids.
    servers: Vec<ServerShare>,
    /// By their ids. Constant.
    monitors: Vec<MonitorOptions>,
    /// What is said about statements. A session keeps the rules that it began with.
    rules: ArcSwap<Rules>,
    /// Most clients with a session.
    pub(crate) max_connections: usize,
    /// Constant.
    pub(crate) limits: ClientLimits,
    /// Where each session's connection to a server is, by the number that its client was told.
    /// Touched as sessions begin and end, and by KILL.
    victims: Mutex<BTreeMap<u32, Victim>>,
    /// Connections to the servers that sessions share.
    pub(crate) pool: Arc<Pool<Resting>>,
    /// Hashes texts of prepared statements. Constant.
    pub(crate) text_hasher: RandomState,
    /// Users, by their names.
    accounts: Interner<String>,
    /// What clients can do, as far as it cannot change after the login.
    classes: Interner<u64>,
}

/// More users than servers have.
const ACCOUNTS_MAX: u32 = 1 << 20;

/// More kinds of clients than there are.
const CLASSES_MAX: u32 = 1 << 12;

/// A connection to a server, for KILL.
#[derive(Debug, Clone)]
pub(crate) struct Victim {
    /// The session that has it.
    pub(crate) handle: Arc<SessionHandle>,
    /// The connection that it uses.
    pub(crate) running: Arc<Running>,
}

/// How long clients are waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientLimits {
    pub(crate) login_rules: front::LoginRules,
    pub(crate) wait_timeout: std::time::Duration,
    pub(crate) read_timeout: std::time::Duration,
}

/// A server, as workers share it.
#[derive(Debug)]
pub(crate) struct ServerShare {
    /// Constant.
    pub(crate) options: ServerOptions,
    /// Who watches it, and its place in that monitor's map. Constant.
    pub(crate) watch: Option<(MonitorId, monitor::ServerId)>,
    /// Its name in the pool. Constant.
    pub(crate) pool_id: pool::ServerId,
    /// Sessions that have a connection to it. Relaxed: it only decides who gets the next client,
    /// and each session adds and takes away its own one.
    session_count: AtomicUsize,
}

/// A session's place among those of a server.
#[derive(Debug)]
pub(crate) struct ServerPlace {
    gateway: Arc<Gateway>,
    id: ServerId,
}

impl Gateway {
    /// A gateway with `worker_count` workers and no clients.
    ///
    /// # Panics
    /// If the monitor of a service does not watch one of its servers: a bug of the caller.
    pub fn new(options: Options, worker_count: usize) -> Arc<Gateway> {
        let pool = Pool::new(worker_count);
        let monitors = options.monitors;
        let watch_of = |id| {
            let mut places = (0..).map(MonitorId).zip(&monitors);
            places.find_map(|(monitor, it)| Some((monitor, it.place(id)?)))
        };
        let servers: Vec<_> = (0..)
            .map(ServerId)
            .zip(options.servers)
            .map(|(id, options)| ServerShare::new(options, watch_of(id), &pool))
            .collect();
        let services: Vec<_> = options.services.into_iter().map(Service::new).collect();
        for service in &services {
            let watched = |id: &ServerId| servers.get(id.0).and_then(|it| it.watch);
            let by = |id| watched(id).is_some_and(|(it, _)| it == service.options.monitor);
            assert!(service.options.servers.iter().all(by));
        }
        Arc::new(Gateway {
            clients: Clients::default(),
            services,
            servers,
            monitors,
            rules: ArcSwap::new(options.rules),
            max_connections: options.max_connections,
            limits: ClientLimits {
                login_rules: options.login_rules,
                wait_timeout: options.wait_timeout,
                read_timeout: options.read_timeout,
            },
            victims: Mutex::default(),
            pool,
            text_hasher: RandomState::default(),
            accounts: Interner::new(ACCOUNTS_MAX),
            classes: Interner::new(CLASSES_MAX),
        })
    }

    /// Returns the pool's key of this login at a server that gets the client's address. `None` if
    /// too many kinds of logins are known.
    pub(crate) fn pool_login(&self, login: &Login) -> Option<pool::Login> {
        Some(pool::Login {
            account: AccountId(self.accounts.intern(login.user.clone())?),
            class: ClassId(self.classes.intern(login.capabilities.0)?),
            client: login.client.map(|address| address.ip()),
        })
    }

    /// Notes whom KILL with this number ends.
    pub(crate) fn enter(&self, number: u32, victim: Victim) {
        self.victims.lock().insert(number, victim);
    }

    /// How many sessions there are.
    pub(crate) fn victims_count(&self) -> usize {
        self.victims.lock().len()
    }

    /// At most so many of those that KILL finds, by their numbers, from one on.
    pub(crate) fn some_victims(&self, from: u32, count: usize) -> Vec<(u32, Victim)> {
        let victims = self.victims.lock();
        let some = victims.range(from..).take(count);
        some.map(|(number, it)| (*number, it.clone())).collect()
    }

    /// The session of this number has ended.
    pub(crate) fn leave(&self, number: u32) {
        self.victims.lock().remove(&number);
    }

    /// Whom KILL with this number ends: the client that was told it, or whose CONNECTION_ID() it is
    /// on `server`.
    pub(crate) fn victim(&self, number: u64, server: Option<ServerId>) -> Option<Victim> {
        let number = u32::try_from(number).ok()?;
        let victims = self.victims.lock();
        if ClientNumbers::High.includes(number.into()) {
            return victims.get(&number).cloned();
        }
        let server = server?;
        let mut all = victims.values();
        all.find(|it| it.running.is_named(server, number)).cloned()
    }

    /// The rules for sessions that begin.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Takes what may change at run time out of new options: the rules, and the limits of the
    /// servers of the same names.
    pub fn take_changes(&self, options: &Options) {
        self.rules.store(Arc::clone(&options.rules));
        for server in &self.servers {
            let named = options
                .servers
                .iter()
                .find(|it| it.name == server.options.name);
            if let Some(changed) = named {
                let limits = limits(changed);
                let closing = self.pool.set_limits(server.pool_id, limits);
                // Each is closed by its worker, or here by being dropped.
                drop(closing);
            }
        }
    }

    /// All clients: for the shutdown.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// The services.
    pub fn service_ids(&self) -> impl Iterator<Item = ServiceId> + use<> {
        (0..self.services.len()).map(ServiceId)
    }

    /// The servers.
    pub(crate) fn server_ids(&self) -> impl Iterator<Item = ServerId> + use<> {
        (0..self.servers.len()).map(ServerId)
    }

    pub(crate) fn service(&self, id: ServiceId) -> &Service {
        self.services.get(id.0).expect("services never go")
    }

    pub(crate) fn server(&self, id: ServerId) -> &ServerShare {
        self.servers.get(id.0).expect("servers never go")
    }

    /// All monitors.
    pub(crate) fn monitors(&self) -> &[MonitorOptions] {
        &self.monitors
    }

    /// The watch over the servers of a service.
    pub(crate) fn monitor_options(&self, id: ServiceId) -> &MonitorOptions {
        let monitor = self.service(id).options.monitor;
        self.monitors.get(monitor.0).expect("monitors never go")
    }

    /// The server at a place in the map of a service's monitor.
    pub(crate) fn server_at(&self, service: ServiceId, place: monitor::ServerId) -> ServerId {
        let servers = &self.monitor_options(service).servers;
        let found = servers.get(usize::from(place.0));
        *found.expect("maps keep their places")
    }

    /// Counts a session of a server until the place is dropped.
    pub(crate) fn take_place(self: &Arc<Self>, id: ServerId) -> ServerPlace {
        let count = &self.server(id).session_count;
        count.fetch_add(1, Ordering::Relaxed);
        ServerPlace {
            gateway: Arc::clone(self),
            id,
        }
    }
}

fn limits(options: &ServerOptions) -> Limits {
    let usual = Limits::new(options.connections_max);
    Limits {
        overflow: options.overflow.unwrap_or(usual.overflow),
        ..usual
    }
}

impl ServerShare {
    fn new(
        options: ServerOptions,
        watch: Option<(MonitorId, monitor::ServerId)>,
        pool: &Pool<Resting>,
    ) -> ServerShare {
        let name = Arc::clone(&options.name);
        let pool_id = pool.add_server(name, limits(&options), Recycling::default());
        ServerShare {
            options,
            watch,
            pool_id,
            session_count: AtomicUsize::new(0),
        }
    }

    /// How many sessions have a connection to it.
    pub(crate) fn session_count(&self) -> usize {
        self.session_count.load(Ordering::Relaxed)
    }
}

impl ServerPlace {
    /// The server's id.
    pub(crate) fn id(&self) -> ServerId {
        self.id
    }

    /// The server.
    pub(crate) fn server(&self) -> &ServerShare {
        self.gateway.server(self.id)
    }
}

impl Drop for ServerPlace {
    fn drop(&mut self) {
        let count = &self.server().session_count;
        count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clients::ProcessLine;

    use super::*;
    use crate::options::ServiceId;

    fn empty() -> Arc<Gateway> {
        let options = Options {
            servers: Vec::new(),
            monitors: Vec::new(),
            services: Vec::new(),
            rules: Arc::default(),
            max_connections: 10,
            login_rules: front::LoginRules::default(),
            wait_timeout: Duration::ZERO,
            read_timeout: Duration::ZERO,
        };
        Gateway::new(options, 1)
    }

    #[test]
    fn sessions_are_listed_some_at_a_time() {
        let gateway = empty();
        let high = u32::MAX - 1;
        for number in [2, 3, 5, 7, high] {
            let line = ProcessLine::idle(number.into(), String::new(), String::new(), 0);
            let handle = gateway.clients().registry().enter(line, 10).unwrap();
            let running = Arc::new(Running::nowhere(ServiceId(0)));
            gateway.enter(number, Victim { handle, running });
        }
        let some = |from, count| -> Vec<u32> {
            let some = gateway.some_victims(from, count);
            some.iter().map(|(number, _)| *number).collect()
        };
        assert_eq!(some(0, 2), [2, 3]);
        assert_eq!(some(4, 2), [5, 7]);
        assert_eq!(some(8, 2), [high]);
        assert_eq!(some(0, 4), [2, 3, 5, 7]);
        assert_eq!(some(0, 5), [2, 3, 5, 7, high]);
        assert_eq!(some(0, 6), [2, 3, 5, 7, high]);
        assert_eq!(some(u32::MAX, 1), [0; 0]);
        gateway.leave(3);
        assert_eq!(some(0, 2), [2, 5]);
        assert!(
            gateway.victim(7, None).is_none(),
            "it is no client's number"
        );
    }
}
