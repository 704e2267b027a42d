//! [`Worker`]: a worker's part of one configuration of the gateway.
//!
//! A session has the one that its worker had when it began. What does not depend on the
//! configuration is the same in all of them ([`Lasting`]).

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use auth::Random;
use backend::{Around, ConnectError, Login, Server, Target};
use connection_state::Origin;
use digests::{Digests, Who};
use env::Instant;
use front::{ClientInfo, RandomSource};
use link::{Limit, Resources};
use metrics::Counter;
use monitor::{MapReader, Monitor, Published, ServerState};
use result_cache::Tables;
use router::{History, Judge, Load, Pin, Pins, Rules};
use spans::Tracer;

use crate::connection::PoolFront;
use crate::connection::common::{Common, SHARED_TEXT_BYTES_MAX, StatementText};
use crate::end::End;
use crate::gateway::Gateway;
use crate::gateway::generation::Generation;
use crate::options::{MonitorId, ServerId, ServiceId};
use crate::query_log::QueryLog;

/// What the sessions of a worker share that have the same configuration.
#[derive(Debug)]
pub struct Worker {
    /// What all workers share.
    pub(crate) gateway: Arc<Gateway>,
    /// The configuration.
    pub(crate) generation: Arc<Generation>,
    lasting: Rc<Lasting>,
    /// What the connections of each service's clients share, by the service's id.
    fronts: Vec<Rc<front::Shared>>,
    /// The maps of the servers, by the monitors' ids.
    maps: Vec<RefCell<MapReader>>,
    /// Its part of the pool.
    pub(crate) pool: Rc<PoolFront>,
    /// Verdicts on texts by the rules.
    judge: Rc<RefCell<Judge>>,
    /// Room for the key of a query in a cache.
    pub(crate) key_room: RefCell<Vec<u8>>,
    /// What each server has to do for this worker, by the servers' ids.
    loads: Vec<Rc<Cell<Load>>>,
    /// Which worker it is.
    pub(crate) index: usize,
    /// What all links of the worker share.
    pub(crate) resources: Rc<Resources>,
    /// What happened on this worker.
    pub(crate) counters: Arc<Counters>,
}

/// What a worker keeps from one configuration to the next.
#[derive(Debug)]
struct Lasting {
    /// What clients are let in by. Constant.
    front: front::Options,
    /// Where sessions begin.
    origins: RefCell<Common<Origin>>,
    /// What they have set.
    histories: RefCell<Common<History>>,
    /// What they have prepared.
    texts: RefCell<Common<StatementText>>,
    /// For whom statements are counted.
    whos: RefCell<Common<Who>>,
    /// What they have cost.
    digests: Rc<RefCell<Digests>>,
    /// Those that are logged.
    query_log: Rc<QueryLog>,
    /// Those that are traced.
    tracer: Rc<Tracer>,
    /// What each server has to do for this worker.
    loads: RefCell<Vec<(pool::ServerId, Weak<Cell<Load>>)>>,
    /// Clients of this worker with a session.
    session_count: Cell<usize>,
    /// The worker reads definitions of tables, again and again.
    reads_definitions: Cell<bool>,
}

impl Lasting {
    /// What a server has to do for this worker.
    fn load(&self, server: pool::ServerId) -> Rc<Cell<Load>> {
        let mut loads = self.loads.borrow_mut();
        loads.retain(|(_, load)| 0 < load.strong_count());
        let known = loads.iter().find(|(id, _)| *id == server);
        if let Some(load) = known.and_then(|(_, load)| load.upgrade()) {
            return load;
        }
        let load = Rc::default();
        loads.push((server, Rc::downgrade(&load)));
        load
    }
}

/// What happened on a worker, since its start. The worker writes, anybody reads.
#[derive(Debug, Default)]
pub struct Counters {
    /// What happened on the connections of its clients.
    pub front: Arc<front::Counters>,
    /// Logins that were ended because too many were waiting.
    pub logins_evicted: Counter,
    /// Clients that got a session.
    pub sessions: Counter,
    /// Commands that were sent to servers.
    pub statements: Counter,
    /// Sessions that ended, by why.
    pub ends: [Counter; End::COUNT],
    /// Times that a session was pinned to its server, by why.
    pub pins: [Counter; Pin::ALL.len()],
    /// Connections to servers that could not be made.
    pub failed_connects: Counter,
    /// Statements that were ended on their server because their client had gone, or by KILL.
    pub kills: Counter,
    /// Statements that were ended on their server because they ran for too long.
    pub overdue: Counter,
    /// Statements that a rule has refused.
    pub refused: Counter,
    /// Transactions that were rolled back because an older session waited for their connections.
    pub victims: Counter,
    /// Reads that a replica has answered after it had waited for a write.
    pub waited_reads: Counter,
    /// Reads that were sent to the primary because a replica did not have a write in time.
    pub late_reads: Counter,
    /// Replies whose flags did not fit the text.
    pub surprises: Counter,
}

impl Counters {
    /// Sessions that ended for this reason.
    pub(crate) fn ended(&self, end: End) -> &Counter {
        self.ends.get(end.index()).expect("one a reason")
    }

    /// Times that a session was pinned for this reason.
    pub(crate) fn pinned(&self, pin: Pin) -> &Counter {
        self.pins.get(pin.index()).expect("one a reason")
    }

    /// A session was pinned for these reasons.
    pub(crate) fn count_pins(&self, pins: Pins) {
        pins.iter().for_each(|pin| self.pinned(pin).increment());
    }
}

impl Worker {
    /// The part of the worker that calls it before the first configuration. `front` is what clients
    /// are let in by.
    pub fn new(
        gateway: Arc<Gateway>,
        front: front::Options,
        resources: Rc<Resources>,
        counters: Arc<Counters>,
    ) -> Rc<Worker> {
        let pool = PoolFront::new(Arc::clone(&gateway.pool), runtime::worker_index());
        let query_log = QueryLog::new(Arc::clone(gateway.query_log()));
        let mut seed = [0; 8];
        (front.random)(&mut seed);
        let tracer = Tracer::new(Arc::clone(gateway.spans()), u64::from_ne_bytes(seed));
        Rc::new(Worker {
            gateway,
            generation: Arc::new(Generation::empty()),
            lasting: Rc::new(Lasting {
                front,
                origins: RefCell::default(),
                histories: RefCell::default(),
                texts: RefCell::default(),
                whos: RefCell::default(),
                digests: Rc::default(),
                query_log,
                tracer: Rc::new(tracer),
                loads: RefCell::default(),
                session_count: Cell::new(0),
                reads_definitions: Cell::new(false),
            }),
            fronts: Vec::new(),
            maps: Vec::new(),
            pool: Rc::new(pool),
            judge: Rc::new(RefCell::new(Judge::new(Arc::default()))),
            key_room: RefCell::default(),
            loads: Vec::new(),
            index: runtime::worker_index(),
            resources,
            counters,
        })
    }

    /// The part of the same worker in the next configuration.
    fn next(&self, generation: Arc<Generation>) -> Worker {
        let front = |id| {
            let name = &generation.service(id).options.name;
            match self.generation.service_named(name) {
                Some(same) => Rc::clone(self.front(same)),
                None => front::Shared::new(
                    self.lasting.front.clone(),
                    Rc::clone(&self.resources),
                    Arc::clone(&self.counters.front),
                ),
            }
        };
        let servers = generation.servers().iter();
        let digests = Rc::clone(&self.lasting.digests);
        let judge = Judge::new(Arc::clone(&generation.rules)).counting(digests);
        let judge = match generation.looks_at_tables() {
            true => judge.looking_at_tables(),
            false => judge,
        };
        let watches = generation.watches();
        Worker {
            gateway: Arc::clone(&self.gateway),
            lasting: Rc::clone(&self.lasting),
            fronts: generation.service_ids().map(front).collect(),
            maps: watches
                .map(|it| RefCell::new(it.monitor.reader()))
                .collect(),
            pool: Rc::clone(&self.pool),
            judge: Rc::new(RefCell::new(judge)),
            key_room: RefCell::default(),
            loads: servers
                .map(|it| self.lasting.load(it.known.pool_id))
                .collect(),
            generation,
            index: self.index,
            resources: Rc::clone(&self.resources),
            counters: Arc::clone(&self.counters),
        }
    }

    /// Sessions that begin on this worker go by another configuration from now on. Returns the
    /// worker's part of it, to be kept for those.
    #[must_use = "sessions take what the worker keeps"]
    pub fn adopt(&self, generation: Arc<Generation>) -> Rc<Worker> {
        self.lasting.query_log.choose(generation.logged);
        self.lasting.tracer.choose(generation.traced.clone());
        let adopted = Rc::new(self.next(generation));
        // What is known of accounts may be of servers that the services do not have any more.
        let old = self.generation.services().iter();
        let all = old.chain(adopted.generation.services());
        all.for_each(|it| it.readings.wants_accounts.notify());
        adopted
    }

    /// The copy of an origin that all sessions share.
    pub(crate) fn share_origin(&self, origin: Origin) -> Arc<Origin> {
        self.lasting.origins.borrow_mut().share(origin)
    }

    /// The copy of a history that all sessions share.
    pub(crate) fn share_history(&self, history: History) -> Arc<History> {
        self.lasting.histories.borrow_mut().share(history)
    }

    /// The copy of a statement's text that all sessions share, if it is not long.
    pub(crate) fn share_text(&self, bytes: &[u8]) -> Arc<StatementText> {
        let text = StatementText::new(bytes, &self.gateway.text_hasher);
        if SHARED_TEXT_BYTES_MAX < bytes.len() {
            return Arc::new(text);
        }
        self.lasting.texts.borrow_mut().share(text)
    }

    /// The client of a service, for what is counted. All sessions share a copy.
    pub(crate) fn share_who(&self, service: ServiceId, client: &ClientInfo) -> Arc<Who> {
        self.lasting.whos.borrow_mut().share(Who {
            service: Arc::clone(&self.generation.service(service).options.name),
            user: client.user.as_str().into(),
            database: client.database.as_deref().map(Into::into),
        })
    }

    /// The same client in another database.
    pub(crate) fn share_who_in(&self, who: &Who, database: Option<Box<str>>) -> Arc<Who> {
        self.lasting.whos.borrow_mut().share(Who {
            database,
            ..who.clone()
        })
    }

    /// What statements have cost on this worker.
    pub(crate) fn digests(&self) -> &RefCell<Digests> {
        &self.lasting.digests
    }

    /// Where statements are logged.
    pub(crate) fn query_log(&self) -> &Rc<QueryLog> {
        &self.lasting.query_log
    }

    /// Which statements are traced.
    pub(crate) fn tracer(&self) -> &Rc<Tracer> {
        &self.lasting.tracer
    }

    /// What the connections of a service's clients share.
    pub(crate) fn front(&self, service: ServiceId) -> &Rc<front::Shared> {
        self.fronts.get(service.0).expect("one a service")
    }

    /// Asks for the servers of a service, as its monitor sees them now.
    pub(crate) fn with_map<T>(&self, service: ServiceId, ask: impl FnOnce(&Published) -> T) -> T {
        let monitor = self.generation.service(service).options.monitor;
        ask(self.map_reader(monitor).borrow_mut().map())
    }

    fn map_reader(&self, monitor: MonitorId) -> &RefCell<MapReader> {
        self.maps.get(monitor.0).expect("one a monitor")
    }

    /// The monitor of a service.
    pub(crate) fn monitor(&self, service: ServiceId) -> &Monitor {
        let monitor = self.generation.service(service).options.monitor;
        &self.generation.watch(monitor).monitor
    }

    /// Asks for a server, as its monitor sees it now.
    pub(crate) fn with_state<T>(&self, id: ServerId, ask: impl FnOnce(&ServerState) -> T) -> T {
        let server = self.generation.server(id);
        let (monitor, place) = server.watch.expect("each server of a service is watched");
        let mut reader = self.map_reader(monitor).borrow_mut();
        ask(reader
            .map()
            .map
            .server(place)
            .expect("maps keep their places"))
    }

    /// What is known of tables; `None` if no cache has to know.
    pub(crate) fn known_tables(&self) -> Option<&Tables> {
        let looks = self.generation.looks_at_tables();
        looks.then_some(&*self.gateway.tables)
    }

    /// The verdicts on texts, for a session that begins.
    pub(crate) fn judge(&self) -> Rc<RefCell<Judge>> {
        Rc::clone(&self.judge)
    }

    /// How many statements of its sessions have met each of these rules; `None` if they go by
    /// others.
    pub(crate) fn hits(&self, rules: &Arc<Rules>) -> Option<Vec<u64>> {
        let judge = self.judge.borrow();
        Arc::ptr_eq(judge.rules(), rules).then(|| judge.hits())
    }

    /// What a server of a service has to do for this worker; `None` if it is none of the service's.
    pub(crate) fn load_of(&self, service: ServiceId, place: monitor::ServerId) -> Option<Load> {
        let id = self.generation.server_at(service, place);
        let servers = &self.generation.service(service).options.servers;
        let is_ours = servers.contains(&id);
        let load = self.loads.get(id.0).filter(|_| is_ours);
        load.map(|it| it.get())
    }

    /// A client of this worker has a session.
    pub(crate) fn begin_session(&self) {
        self.lasting
            .session_count
            .set(self.lasting.session_count.get() + 1);
    }

    /// The worker begins to read definitions of tables. Returns `false` if it does so already.
    pub(crate) fn begin_definitions(&self) -> bool {
        !self.lasting.reads_definitions.replace(true)
    }

    /// It does no longer.
    pub(crate) fn end_definitions(&self) {
        self.lasting.reads_definitions.set(false);
    }

    /// Its session has ended.
    pub(crate) fn end_session(&self) {
        self.lasting
            .session_count
            .set(self.lasting.session_count.get() - 1);
    }

    /// How many clients of this worker have a session.
    pub(crate) fn session_count(&self) -> usize {
        self.lasting.session_count.get()
    }

    /// What each server of any configuration has to do for this worker.
    pub(crate) fn loads(&self) -> Vec<(pool::ServerId, Load)> {
        let loads = self.lasting.loads.borrow();
        let load = |(id, load): &(_, Weak<Cell<Load>>)| Some((*id, load.upgrade()?.get()));
        loads.iter().filter_map(load).collect()
    }

    /// A command goes to a server.
    pub(crate) fn count_statement(&self, id: ServerId) {
        self.counters.statements.increment();
        self.generation.server(id).known.count_sent(self.index);
    }

    /// A server was sent a statement.
    pub(crate) fn begin_operation(&self, id: ServerId) {
        self.change_load(id, |load| load.operations += 1);
    }

    /// It has answered, or is not waited for any longer. `begun` is when it was sent the statement,
    /// if that matters.
    pub(crate) fn end_operation(&self, id: ServerId, begun: Option<Instant>) {
        self.change_load(id, |load| {
            load.operations -= 1;
            load.answered += 1;
            if let Some(begun) = begun {
                let now = runtime::now();
                load.response_time.note(now.since(begun), now);
            }
        });
    }

    fn change_load(&self, id: ServerId, change: impl FnOnce(&mut Load)) {
        let load = self.loads.get(id.0).expect("one a server");
        let mut changed = load.get();
        change(&mut changed);
        load.set(changed);
    }

    /// A session has found a server dead.
    pub(crate) fn report_failure(&self, id: ServerId) {
        if let Some((monitor, place)) = self.generation.server(id).watch {
            let watch = self.generation.watch(monitor);
            watch.monitor.report_failure(place);
        }
    }

    /// Connects to a server and logs in.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        login: &Login,
    ) -> Result<Server, ConnectError> {
        let mut fill = |bytes: &mut [u8]| (self.random())(bytes);
        let mut random = Random(&mut fill);
        let connected = Server::connect(target, login, &self.resources, &mut random).await;
        if connected.is_err() {
            self.counters.failed_connects.increment();
        }
        connected
    }

    /// Logs in as another user on the same connection.
    pub(crate) async fn change_user(
        &self,
        server: &mut Server,
        login: &Login,
        limit: Limit,
    ) -> Result<(), ConnectError> {
        let mut fill = |bytes: &mut [u8]| (self.random())(bytes);
        server
            .change_user(login, Around::default(), limit, &mut Random(&mut fill))
            .await
    }

    /// Counts a session that has ended, or a client that got none.
    pub(crate) fn count_end(&self, end: End) {
        if let Some(count) = self.counters.ends.get(end.index()) {
            count.increment();
        }
    }

    /// Random bytes for logins.
    pub(crate) fn random(&self) -> &RandomSource {
        &self.lasting.front.random
    }
}
