//! [`Worker`]: a worker's part of the gateway.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use auth::Random;
use backend::{ConnectError, Login, Server, Target};
use env::Instant;
use front::RandomSource;
use link::{Limit, Resources};
use metrics::Counter;
use monitor::{MapReader, Monitor, Published, ServerState};
use router::{History, Judge, Load, Pin, Pins};

use crate::connection::common::{Common, SHARED_TEXT_BYTES_MAX, StatementText};
use crate::connection::{Origin, PoolFront};
use crate::end::End;
use crate::gateway::Gateway;
use crate::options::{ServerId, ServiceId};

/// What the sessions of a worker share.
#[derive(Debug)]
pub struct Worker {
    /// What all workers share.
    pub(crate) gateway: Arc<Gateway>,
    /// What the connections of each service's clients share, by the service's id.
    fronts: Vec<Rc<front::Shared>>,
    /// The watches over servers, by their ids.
    watches: Vec<Watch>,
    /// Its part of the pool.
    pub(crate) pool: PoolFront,
    /// Where sessions begin.
    origins: RefCell<Common<Origin>>,
    /// What they have set.
    histories: RefCell<Common<History>>,
    /// What they have prepared.
    texts: RefCell<Common<StatementText>>,
    /// Verdicts on texts by the rules for sessions that begin.
    judge: RefCell<Rc<RefCell<Judge>>>,
    /// What each server has to do for this worker, by the servers' ids.
    loads: Vec<Cell<Load>>,
    /// Clients of this worker with a session.
    session_count: Cell<usize>,
    /// What all links of the worker share.
    pub(crate) resources: Rc<Resources>,
    /// What happened on this worker.
    pub(crate) counters: Arc<Counters>,
}

/// A monitor, as a worker sees it.
#[derive(Debug)]
struct Watch {
    monitor: Monitor,
    reader: RefCell<MapReader>,
}

/// What happened on a worker, since its start. The worker writes, anybody reads.
#[derive(Debug)]
pub struct Counters {
    /// What happened on the connections of its clients.
    pub front: Arc<front::Counters>,
    /// Logins that were ended because too many were waiting.
    pub logins_evicted: Counter,
    /// Clients that got a session.
    pub sessions: Counter,
    /// Commands that were sent to servers.
    pub statements: Counter,
    /// The same of each server, by the servers' ids.
    sent: Box<[Counter]>,
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
}

impl Counters {
    /// Those of a worker of this gateway.
    pub fn new(gateway: &Gateway) -> Counters {
        Counters {
            front: Arc::default(),
            logins_evicted: Counter::default(),
            sessions: Counter::default(),
            statements: Counter::default(),
            sent: gateway.server_ids().map(|_| Counter::default()).collect(),
            ends: Default::default(),
            pins: Default::default(),
            failed_connects: Counter::default(),
            kills: Counter::default(),
            overdue: Counter::default(),
            refused: Counter::default(),
            victims: Counter::default(),
            waited_reads: Counter::default(),
            late_reads: Counter::default(),
        }
    }

    /// A command goes to a server.
    pub(crate) fn count_statement(&self, server: ServerId) {
        self.statements.increment();
        self.sent(server).increment();
    }

    /// Commands that were sent to a server.
    pub(crate) fn sent(&self, server: ServerId) -> &Counter {
        self.sent.get(server.0).expect("servers never go")
    }

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
    /// The part of the worker that calls it. `monitors` are those of [`crate::watch_servers`],
    /// `front` is what clients are let in by.
    pub fn new(
        gateway: Arc<Gateway>,
        monitors: &[Monitor],
        front: &front::Options,
        resources: Rc<Resources>,
        counters: Arc<Counters>,
    ) -> Rc<Worker> {
        let shared = |_| {
            let (resources, counters) = (Rc::clone(&resources), Arc::clone(&counters.front));
            front::Shared::new(front.clone(), resources, counters)
        };
        let fronts = gateway.service_ids().map(shared).collect();
        let watches = monitors.iter().map(|monitor| Watch {
            monitor: monitor.clone(),
            reader: RefCell::new(monitor.reader()),
        });
        let pool = PoolFront::new(Arc::clone(&gateway.pool), runtime::worker_index());
        let judge = Judge::new(gateway.rules());
        let judge = RefCell::new(Rc::new(RefCell::new(judge)));
        let loads = gateway.server_ids().map(|_| Cell::default()).collect();
        Rc::new(Worker {
            gateway,
            fronts,
            watches: watches.collect(),
            pool,
            origins: RefCell::default(),
            histories: RefCell::default(),
            texts: RefCell::default(),
            judge,
            loads,
            session_count: Cell::new(0),
            resources,
            counters,
        })
    }

    /// The copy of an origin that all sessions share.
    pub(crate) fn share_origin(&self, origin: Origin) -> Arc<Origin> {
        self.origins.borrow_mut().share(origin)
    }

    /// The copy of a history that all sessions share.
    pub(crate) fn share_history(&self, history: History) -> Arc<History> {
        self.histories.borrow_mut().share(history)
    }

    /// The copy of a statement's text that all sessions share, if it is not long.
    pub(crate) fn share_text(&self, bytes: &[u8]) -> Arc<StatementText> {
        let text = StatementText::new(bytes, &self.gateway.text_hasher);
        if SHARED_TEXT_BYTES_MAX < bytes.len() {
            return Arc::new(text);
        }
        self.texts.borrow_mut().share(text)
    }

    /// What the connections of a service's clients share.
    pub(crate) fn front(&self, service: ServiceId) -> &Rc<front::Shared> {
        self.fronts.get(service.0).expect("one a service")
    }

    /// Asks for the servers of a service, as its monitor sees them now.
    pub(crate) fn with_map<T>(&self, service: ServiceId, ask: impl FnOnce(&Published) -> T) -> T {
        let monitor = self.gateway.service(service).options.monitor;
        let watch = self.watches.get(monitor.0).expect("one a monitor");
        ask(watch.reader.borrow_mut().map())
    }

    /// The monitor of a service.
    pub(crate) fn monitor(&self, service: ServiceId) -> &Monitor {
        let monitor = self.gateway.service(service).options.monitor;
        &self.watches.get(monitor.0).expect("one a monitor").monitor
    }

    /// Asks for a server, as its monitor sees it now.
    pub(crate) fn with_state<T>(&self, id: ServerId, ask: impl FnOnce(&ServerState) -> T) -> T {
        let server = self.gateway.server(id);
        let (monitor, place) = server.watch.expect("each server of a service is watched");
        let watch = self.watches.get(monitor.0).expect("one a monitor");
        let mut reader = watch.reader.borrow_mut();
        ask(reader
            .map()
            .map
            .server(place)
            .expect("maps keep their places"))
    }

    /// The verdicts on texts, for a session that begins.
    pub(crate) fn judge(&self) -> Rc<RefCell<Judge>> {
        let rules = self.gateway.rules();
        let mut judge = self.judge.borrow_mut();
        let goes_by_these = Arc::ptr_eq(judge.borrow().rules(), &rules);
        if !goes_by_these {
            *judge = Rc::new(RefCell::new(Judge::new(rules)));
        }
        Rc::clone(&judge)
    }

    /// What a server of a service has to do for this worker; `None` if it is none of the service's.
    pub(crate) fn load_of(&self, service: ServiceId, place: monitor::ServerId) -> Option<Load> {
        let id = self.gateway.server_at(service, place);
        let servers = &self.gateway.service(service).options.servers;
        let is_ours = servers.contains(&id);
        self.loads.get(id.0).filter(|_| is_ours).map(Cell::get)
    }

    /// A client of this worker has a session.
    pub(crate) fn begin_session(&self) {
        self.session_count.set(self.session_count.get() + 1);
    }

    /// Its session has ended.
    pub(crate) fn end_session(&self) {
        self.session_count.set(self.session_count.get() - 1);
    }

    /// How many clients of this worker have a session.
    pub(crate) fn session_count(&self) -> usize {
        self.session_count.get()
    }

    /// What each server has to do for this worker, by the servers' ids.
    pub(crate) fn loads(&self) -> Vec<Load> {
        self.loads.iter().map(Cell::get).collect()
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
        let load = self.loads.get(id.0).expect("servers never go");
        let mut changed = load.get();
        change(&mut changed);
        load.set(changed);
    }

    /// A session has found a server dead.
    pub(crate) fn report_failure(&self, id: ServerId) {
        if let Some((monitor, place)) = self.gateway.server(id).watch
            && let Some(watch) = self.watches.get(monitor.0)
        {
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
            .change_user(login, limit, &mut Random(&mut fill))
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
        let any = self.fronts.first().expect("a gateway has a service");
        &any.options().random
    }
}
