//! [`KnownServer`]: a server, from the first configuration that has it to the last session that may
//! use it.
//!
//! Two configurations have the same server if its name and its place (address, TLS, PROXY protocol)
//! are the same. Then they share its connections, their limits and its counters. A server of
//! another address is another server, whatever its name. What was written there is shared by all
//! servers of one address.

use std::sync::{Arc, Weak};

use backend::Target;
use env::Instant;
use metrics::Counter;
use pool::{Pool, Recycling};
use sync::atomic::{AtomicUsize, Ordering};
use sync::{CachePadded, Mutex};

use crate::connection::Resting;
use crate::gateway::steering::Steering;
use crate::options::ServerOptions;
use crate::service::written::SharedWritten;

/// See the module's head. The last owner retires it: its idle connections are closed.
#[derive(Debug)]
pub(crate) struct KnownServer {
    /// By which messages name it. Constant.
    pub(crate) name: Arc<str>,
    /// Where it is. Its times are those of the first configuration. Constant.
    pub(crate) target: Target,
    /// Its name in the pool, which no other server ever gets. Constant.
    pub(crate) pool_id: pool::ServerId,
    /// What sessions have written there, if caches of results have to know it. Servers of one
    /// address share it: sessions of an older configuration may know this one by another name.
    pub(crate) written: Arc<SharedWritten>,
    pool: Arc<Pool<Resting>>,
    /// How many connections sessions may share. Touched by changes of the configuration, and each
    /// period by one worker; taken before the pool's mutex for the server.
    steering: Mutex<Steering>,
    /// Sessions that have a connection to it. Relaxed: it only decides who gets the next client,
    /// and each session adds and takes away its own one.
    session_count: AtomicUsize,
    /// Commands that it was sent, by worker. Each worker writes its own.
    sent: Box<[CachePadded<Counter>]>,
}

impl KnownServer {
    /// Follows new settings.
    fn configure(&self, options: &ServerOptions) {
        let closing = {
            let mut steering = self.steering.lock();
            let limits = steering.configure(options);
            self.pool.set_limits(self.pool_id, limits)
        };
        // Each is closed by its worker, or here by being dropped.
        drop(closing);
    }

    /// How many connections sessions may share now.
    pub(crate) fn limit(&self) -> u32 {
        self.steering.lock().limit()
    }

    /// A period has ended: takes a step if the limit is searched. Returns whether it is.
    fn steer(&self, now: Instant) -> bool {
        let (is_adaptive, closing) = {
            let mut steering = self.steering.lock();
            let numbers = self.pool.numbers(self.pool_id).unwrap_or_default();
            let limits = steering.step(now, &numbers);
            let closing = limits.map(|it| self.pool.set_limits(self.pool_id, it));
            (steering.is_adaptive(), closing)
        };
        // As above.
        drop(closing);
        is_adaptive
    }

    /// How many sessions have a connection to it.
    pub(crate) fn session_count(&self) -> usize {
        self.session_count.load(Ordering::Relaxed)
    }

    /// One session more has one.
    pub(crate) fn enter(&self) {
        self.session_count.fetch_add(1, Ordering::Relaxed);
    }

    /// One session less has one.
    pub(crate) fn leave(&self) {
        self.session_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// A worker sends it a command.
    pub(crate) fn count_sent(&self, worker: usize) {
        if let Some(sent) = self.sent.get(worker) {
            sent.increment();
        }
    }

    /// Commands that it was sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.iter().map(|it| it.value()).sum()
    }
}

impl Drop for KnownServer {
    /// No session can use it any more.
    fn drop(&mut self) {
        // Those of a worker are closed by it, the others here by being dropped.
        drop(self.pool.remove_server(self.pool_id));
    }
}

/// All servers that are known.
#[derive(Debug)]
pub(crate) struct KnownServers {
    pool: Arc<Pool<Resting>>,
    worker_count: usize,
    /// Touched by changes of the configuration and by KILL.
    all: Mutex<Vec<Weak<KnownServer>>>,
}

impl KnownServers {
    pub(crate) fn new(pool: Arc<Pool<Resting>>, worker_count: usize) -> KnownServers {
        KnownServers {
            pool,
            worker_count,
            all: Mutex::default(),
        }
    }

    /// The server that these options are about, with their limits from now on.
    pub(crate) fn take(&self, options: &ServerOptions) -> Arc<KnownServer> {
        let is_it = |it: &&Arc<KnownServer>| {
            it.name == options.name && it.target.is_same_place(&options.target)
        };
        // Outside of the mutex, since the last owner of a server may be among these.
        let known = self.all();
        if let Some(known) = known.iter().find(is_it) {
            known.configure(options);
            return Arc::clone(known);
        }
        let mut same = known
            .iter()
            .filter(|it| it.target.address == options.target.address);
        let written = same.next().map(|it| Arc::clone(&it.written));
        let name = Arc::clone(&options.name);
        let counters = (0..self.worker_count).map(|_| CachePadded::default());
        let mut steering = Steering::new(options);
        let limits = steering.configure(options);
        let added = Arc::new(KnownServer {
            pool_id: self
                .pool
                .add_server(Arc::clone(&name), limits, Recycling::default()),
            name,
            target: options.target.clone(),
            written: written.unwrap_or_default(),
            pool: Arc::clone(&self.pool),
            steering: Mutex::new(steering),
            session_count: AtomicUsize::new(0),
            sent: counters.collect(),
        });
        let mut all = self.all.lock();
        all.retain(|it| 0 < it.strong_count());
        all.push(Arc::downgrade(&added));
        added
    }

    /// A period has ended: limits that are searched take a step. Returns whether there are any.
    pub(crate) fn steer(&self, now: Instant) -> bool {
        let steered = self.all().into_iter().filter(|it| it.steer(now));
        steered.count() != 0
    }

    /// All of them, in the order in which they came.
    fn all(&self) -> Vec<Arc<KnownServer>> {
        let all = self.all.lock().clone();
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// A server by its name in the pool.
    pub(crate) fn find(&self, id: pool::ServerId) -> Option<Arc<KnownServer>> {
        self.all().into_iter().find(|it| it.pool_id == id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use monitor::Rank;

    use super::*;
    use crate::gateway::steering::tests::options;

    #[test]
    fn a_server_is_known_by_name_and_place_until_its_last_owner_goes() {
        let pool = Pool::new(1);
        let known = KnownServers::new(Arc::clone(&pool), 1);
        let first = known.take(&options("a", 1));
        let mut later = options("a", 1);
        later.rank = Rank(7);
        later.target.connect_timeout = Duration::from_secs(2);
        assert!(Arc::ptr_eq(&first, &known.take(&later)));
        let moved = known.take(&options("a", 2));
        let other = known.take(&options("b", 1));
        assert_eq!(pool.servers().len(), 3);
        let (first_id, moved_id) = (first.pool_id, moved.pool_id);
        assert_ne!(first_id, moved_id);
        assert!(
            known
                .find(moved_id)
                .is_some_and(|it| Arc::ptr_eq(&it, &moved))
        );
        drop(first);
        assert!(known.find(first_id).is_none() && pool.numbers(first_id).is_err());
        // It comes back as another one.
        let again = known.take(&options("a", 1));
        assert_ne!(again.pool_id, first_id);
        drop((moved, other, again));
        assert!(pool.servers().is_empty());
    }
}
