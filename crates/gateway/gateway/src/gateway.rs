//! [`Gateway`]: what all workers share for as long as the program runs. What its configuration says
//! is in [`generation`].

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use ::query_log::{Log, Opened};
use arc_swap::ArcSwap;
use backend::Login;
use clients::{ClientNumbers, Clients, SessionHandle};
use foldhash::fast::RandomState;
use front::RandomSource;
use link::{Agreed, Resources};
use pool::{AccountId, ClassId, Interner, Pool};
use result_cache::Tables;
use spans::{Spans, Target};
use sync::Mutex;
use wire::Capabilities;

use crate::connection::Resting;
use crate::options::Options;
use crate::query_log::write_soon;
use crate::running::Running;

pub(crate) mod following;
pub(crate) mod generation;
pub(crate) mod server;
mod steering;
pub(crate) mod watch;

use generation::Generation;
use server::KnownServers;
use watch::Ground;

/// See the module's head.
#[derive(Debug)]
pub struct Gateway {
    /// All clients.
    clients: Arc<Clients>,
    /// The configuration of sessions that begin.
    present: ArcSwap<Generation>,
    /// All that sessions may have, the present one last.
    generations: Mutex<Vec<Weak<Generation>>>,
    /// The servers of these.
    pub(crate) servers: KnownServers,
    /// Where each session's connection to a server is, by the number that its client has.
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
    /// When each table was changed last, for caches of results.
    pub(crate) tables: Arc<Tables>,
    worker_count: usize,
    /// Chosen statements, on their way to a file.
    query_log: Arc<Log>,
    /// Spans of statements, on their way to a collector.
    spans: Arc<Spans>,
}

/// More users than servers have.
const ACCOUNTS_MAX: u32 = 1 << 20;

/// More kinds of clients than there are: a bit for each of [`OF_CONNECTION`] that a client may
/// choose.
const CLASSES_MAX: u32 = 1 << 12;

/// What a client can do that a server's connection shows, and that is decided at its login. The
/// rest is between a client and the gateway, or changes nothing.
const OF_CONNECTION: Capabilities = Capabilities(
    Agreed::LAYOUT.0
        | Capabilities::FOUND_ROWS.0
        | Capabilities::NO_SCHEMA.0
        | Capabilities::LOCAL_FILES.0
        | Capabilities::IGNORE_SPACE.0
        | Capabilities::INTERACTIVE.0
        | Capabilities::MULTI_STATEMENTS.0
        | Capabilities::MULTI_RESULTS.0
        | Capabilities::PS_MULTI_RESULTS.0
        | Capabilities::EXPIRED_PASSWORDS.0
        | Capabilities::SESSION_TRACK.0
        | Capabilities::DEPRECATE_EOF.0
        | Capabilities::MARIADB_BULK_OPERATIONS.0,
);

/// A connection to a server, for KILL.
#[derive(Debug, Clone)]
pub(crate) struct Victim {
    /// The session that has it.
    pub(crate) handle: Arc<SessionHandle>,
    /// The connection that it uses.
    pub(crate) running: Arc<Running>,
}

impl Gateway {
    /// A gateway with `worker_count` workers, no configuration and no clients.
    pub fn new(worker_count: usize) -> Arc<Gateway> {
        let pool = Pool::new(worker_count);
        Arc::new(Gateway {
            clients: Arc::default(),
            present: ArcSwap::from_pointee(Generation::empty()),
            generations: Mutex::default(),
            servers: KnownServers::new(Arc::clone(&pool), worker_count),
            victims: Mutex::default(),
            pool,
            text_hasher: RandomState::default(),
            accounts: Interner::new(ACCOUNTS_MAX),
            classes: Interner::new(CLASSES_MAX),
            tables: Arc::default(),
            worker_count,
            query_log: Arc::default(),
            spans: Arc::default(),
        })
    }

    /// Has the query log written into this file from now on, or nowhere. To be called on a worker.
    pub fn log_into(&self, file: Option<Opened>) {
        write_soon(&self.query_log, self.query_log.use_file(file));
    }

    /// The query log. Who ends the program writes what it still has.
    pub fn query_log(&self) -> &Arc<Log> {
        &self.query_log
    }

    /// Has spans sent there from now on, or nowhere.
    pub fn trace_to(&self, target: Option<Target>) {
        self.spans.use_target(target);
    }

    /// Spans of statements. Who ends the program has the last ones sent.
    pub fn spans(&self) -> &Arc<Spans> {
        &self.spans
    }

    /// Makes these options the present configuration. To be called on one worker, which runs the
    /// monitors. Sessions begin by it on each worker that has adopted it
    /// ([`crate::Worker::adopt`]). One caller at a time.
    ///
    /// # Panics
    /// If the monitor of a service does not watch one of its servers: a bug of the caller.
    pub fn take(
        &self,
        options: Options,
        resources: &Rc<Resources>,
        random: &RandomSource,
    ) -> Arc<Generation> {
        let ground = Ground {
            clients: &self.clients,
            pool: &self.pool,
            resources,
            random,
            worker_count: self.worker_count,
        };
        let before = self.present();
        let next = Arc::new(Generation::after(&before, options, &self.servers, &ground));
        {
            let mut generations = self.generations.lock();
            generations.retain(|it| 0 < it.strong_count());
            generations.push(Arc::downgrade(&next));
        }
        if self.has_unseen_sessions() {
            // Before any of them begins. The task that learns definitions asks for doubts first,
            // and for sessions then.
            self.tables.forget();
        }
        self.present.store(Arc::clone(&next));
        next
    }

    /// Whether there may be sessions whose statements are not looked at for what they change.
    pub(crate) fn has_unseen_sessions(&self) -> bool {
        let generations = self.generations();
        generations.iter().any(|it| !it.looks_at_tables())
    }

    /// The configuration of sessions that begin.
    pub(crate) fn present(&self) -> Arc<Generation> {
        self.present.load_full()
    }

    /// All configurations that sessions have, the present one last.
    pub(crate) fn generations(&self) -> Vec<Arc<Generation>> {
        let all = self.generations.lock().clone();
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the pool's key of this login at a server that gets the client's address. `None` if
    /// too many kinds of logins are known.
    pub(crate) fn pool_login(&self, login: &Login) -> Option<pool::Login> {
        Some(pool::Login {
            account: AccountId(self.accounts.intern(login.user.clone())?),
            class: ClassId(
                self.classes
                    .intern((login.capabilities & OF_CONNECTION).0)?,
            ),
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

    /// Whom KILL with this number ends: the client that has it, or whose CONNECTION_ID() it is
    /// on `server`.
    pub(crate) fn victim(&self, number: u64, server: Option<pool::ServerId>) -> Option<Victim> {
        let number = u32::try_from(number).ok()?;
        let victims = self.victims.lock();
        if ClientNumbers::High.includes(number.into()) {
            return victims.get(&number).cloned();
        }
        let server = server?;
        let mut all = victims.values();
        all.find(|it| it.running.is_named(server, number)).cloned()
    }

    /// All clients: for the shutdown.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }
}

#[cfg(test)]
mod tests {
    use clients::ProcessLine;

    use super::*;
    use crate::options::ServiceId;

    #[test]
    fn sessions_are_listed_some_at_a_time() {
        let gateway = Gateway::new(1);
        let high = u32::MAX - 1;
        for number in [2, 3, 5, 7, high] {
            let line = ProcessLine::idle(number.into(), String::new(), String::new(), 0);
            let handle = gateway.clients().registry().enter(line, 10).unwrap();
            let running = Arc::new(Running::nowhere(1, ServiceId(0)));
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
