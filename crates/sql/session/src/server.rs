//! What the sessions of all workers share.
//!
//! Settings and accounts are immutable snapshots that are replaced as a whole; a session reads the
//! one that it loaded. Each worker has its own counters, which are summed on demand.

pub mod control;
pub(crate) mod deadlock_reports;
pub(crate) mod draft;
pub(crate) mod engine_status;
mod witness;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use admission::{Admission, Limit};
use arc_swap::ArcSwap;
use catalog::{Accounts, Routines};
use clients::Clients;
use expression::{MemoryPool, ProcessLimit};
use settings::Settings;
use store::{Durability, Witness};
use sync::CachePadded;
use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::lock::metadata::MetadataLocks;
use crate::lock::named_locks::NamedLocks;
use crate::metrics::{AllCounters, Counters};
use crate::server::control::Control;
use crate::server::deadlock_reports::DeadlockReports;
use crate::server::draft::Heap;
use crate::server::witness::Statements;
use crate::xa::XaNames;

/// One for the whole program.
#[derive(Debug)]
pub struct Server {
    /// The clients: connected, and logging in.
    pub clients: Arc<Clients>,
    /// The metadata locks: which tables are in use, and which are being changed.
    pub metadata: MetadataLocks,
    /// How many transactions may be inside the store.
    pub admission: Arc<Admission>,
    /// Of GET_LOCK.
    pub named_locks: NamedLocks,
    /// Which XA transactions there are.
    pub(crate) xa_names: Arc<XaNames>,
    /// The last report of a deadlock.
    pub(crate) deadlock_reports: DeadlockReports,
    /// The global variables; replaced under `settings_change`.
    settings: ArcSwap<Settings>,
    /// `flush_log_at_trx_commit` of `settings`, which each commit asks for.
    commit_level: AtomicU64,
    /// `strict_reads` of `settings`, which each reply asks for.
    has_strict_reads: AtomicBool,
    /// The global variables of the server's start; constant.
    start_settings: Settings,
    /// Prepared statements of all sessions.
    prepared_count: Arc<AtomicU64>,
    /// Held while the settings are replaced.
    settings_change: Mutex<()>,
    /// All accounts; replaced within the change turn (`published.rs`).
    accounts: ArcSwap<Accounts>,
    /// All stored programs, likewise.
    routines: ArcSwap<Routines>,
    /// One for each worker.
    counters: AllCounters,
    /// The numbers of the program, those of the sessions among them. Constant.
    metrics: metrics::Registry,
    /// Memory for what statements keep.
    pub(crate) memory_pool: Arc<MemoryPool>,
    /// Access to the allocator's counters.
    pub(crate) heap: Heap,
    /// When the server started, on the steady clock, in microseconds.
    started_us: u64,
    /// Shuts the program down; the program sets it once.
    shutdown: OnceLock<Shutdown>,
    /// Takes the orders that concern more than this server; the program sets it once.
    control: OnceLock<Controlled>,
}

/// A prepared statement's share of `max_prepared_stmt_count`, returned on drop.
#[derive(Debug)]
pub(crate) struct PreparedPlace(Arc<Server>);

impl Drop for PreparedPlace {
    fn drop(&mut self) {
        // Relaxed: as in `prepared_place`.
        self.0.prepared_count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What SHUTDOWN calls.
struct Shutdown(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shutdown")
    }
}

/// What SET SERVER and KILL call.
struct Controlled(Box<dyn Control>);

impl std::fmt::Debug for Controlled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Controlled")
    }
}

fn commit_level(settings: &Settings) -> u64 {
    settings.unsigned("flush_log_at_trx_commit")
}

/// `max_concurrent_transactions`.
fn limit(settings: &Settings) -> Limit {
    let text = settings.text("max_concurrent_transactions");
    text.parse().expect("the setting's kind has read it")
}

impl Server {
    /// A server that has just started.
    pub fn new(settings: Settings, worker_count: usize, started_us: u64) -> Arc<Self> {
        let metrics = metrics::Registry::new();
        Self::over(Heap::default(), metrics, settings, worker_count, started_us)
    }

    /// The same with a heap that reports what is allocated, and with the numbers of the program's
    /// other parts.
    pub fn over(
        heap: Heap,
        mut metrics: metrics::Registry,
        settings: Settings,
        worker_count: usize,
        started_us: u64,
    ) -> Arc<Self> {
        let counters: AllCounters = (0..worker_count).map(|_| CachePadded::default()).collect();
        let clients = Arc::new(Clients::default());
        crate::metrics::register(&mut metrics, &counters, &clients);
        let prepared_count = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&prepared_count);
        let metric = crate::metrics::PREPARED_STATEMENTS;
        // Relaxed: as in `prepared_place`.
        metrics.add(metric, move || shown.load(Ordering::Relaxed));
        let admission = Admission::new(worker_count);
        admission.register_metrics(&mut metrics);
        admission.set_limit(limit(&settings));
        let memory_bytes = settings.unsigned("statement_memory_size");
        let memory_pool = match settings.unsigned("server_memory_limit") {
            0 => MemoryPool::new(memory_bytes),
            limit => {
                let resident_bytes = heap.resident_bytes;
                let process = ProcessLimit {
                    limit,
                    resident_bytes,
                };
                MemoryPool::within(memory_bytes, process)
            }
        };
        Arc::new(Self {
            commit_level: AtomicU64::new(commit_level(&settings)),
            has_strict_reads: AtomicBool::new(settings.is_on("strict_reads")),
            memory_pool: Arc::new(memory_pool),
            heap,
            clients,
            admission,
            metadata: MetadataLocks::new(worker_count),
            start_settings: settings.clone(),
            settings: ArcSwap::from_pointee(settings),
            named_locks: NamedLocks::default(),
            xa_names: Arc::default(),
            deadlock_reports: DeadlockReports::default(),
            prepared_count,
            settings_change: Mutex::new(()),
            accounts: ArcSwap::from_pointee(Accounts::default()),
            routines: ArcSwap::from_pointee(Routines::default()),
            counters,
            metrics,
            started_us,
            shutdown: OnceLock::new(),
            control: OnceLock::new(),
        })
    }

    /// The global variables.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// What a commit waits for (`flush_log_at_trx_commit`).
    pub(crate) fn durability(&self) -> Durability {
        match self.commit_level.load(Ordering::Relaxed) {
            0 => Durability::Lazy,
            2 => Durability::Written,
            _ => Durability::Durable,
        }
    }

    /// Whether a reply waits until what it has seen is durable (`strict_reads`).
    pub(crate) fn has_strict_reads(&self) -> bool {
        self.has_strict_reads.load(Ordering::Relaxed)
    }

    /// The global variables of the server's start.
    pub fn start_settings(&self) -> &Settings {
        &self.start_settings
    }

    /// Reserves a place for one more prepared statement. If there is none, fails with
    /// `max_prepared_stmt_count`.
    pub(crate) fn prepared_place(self: &Arc<Self>) -> Result<PreparedPlace, u64> {
        let limit = self.settings().unsigned("max_prepared_stmt_count");
        // Relaxed: only the number matters; no other memory depends on it.
        let before = self.prepared_count.fetch_add(1, Ordering::Relaxed);
        let place = PreparedPlace(Arc::clone(self));
        if before < limit {
            Ok(place)
        } else {
            Err(limit)
        }
    }

    /// Changes global variables, and returns what `change` returns. An error leaves them as they
    /// were.
    pub fn change_settings<T, E>(
        &self,
        change: impl FnOnce(&mut Settings) -> Result<T, E>,
    ) -> Result<T, E> {
        let _one_at_a_time = self.settings_change.lock();
        let mut settings = Settings::clone(&self.settings.load());
        let answer = change(&mut settings)?;
        // Relaxed: a commit beside the change may have either level.
        self.commit_level
            .store(commit_level(&settings), Ordering::Relaxed);
        self.has_strict_reads
            .store(settings.is_on("strict_reads"), Ordering::Relaxed);
        self.admission.set_limit(limit(&settings));
        self.settings.store(Arc::new(settings));
        Ok(answer)
    }

    /// All accounts.
    pub fn accounts(&self) -> Arc<Accounts> {
        self.accounts.load_full()
    }

    /// True if these are still the current accounts; cheaper than loading them.
    pub fn are_current(&self, accounts: &Arc<Accounts>) -> bool {
        Arc::ptr_eq(&self.accounts.load(), accounts)
    }

    /// Publishes the accounts, as their table now has them.
    pub fn set_accounts(&self, accounts: Accounts) {
        self.accounts.store(Arc::new(accounts));
    }

    /// All stored programs.
    pub fn routines(&self) -> Arc<Routines> {
        self.routines.load_full()
    }

    /// Publishes the stored programs, as their table now has them.
    pub fn set_routines(&self, mut routines: Routines) {
        routines.set_version(self.routines_version() + 1);
        self.routines.store(Arc::new(routines));
    }

    /// Differs whenever stored programs were published.
    pub fn routines_version(&self) -> u64 {
        self.routines.load().version()
    }

    /// Tells the store what clients execute.
    pub fn witness(&self) -> Arc<dyn Witness> {
        Arc::new(Statements(Arc::clone(&self.clients)))
    }

    /// Sets how the program is shut down; only the first call counts.
    pub fn on_shutdown(&self, shutdown: impl Fn() + Send + Sync + 'static) {
        let _first_wins = self.shutdown.set(Shutdown(Box::new(shutdown)));
    }

    /// Sets who takes orders that concern more than this server; only the first call counts.
    pub fn set_control(&self, control: impl Control + 'static) {
        let _first_wins = self.control.set(Controlled(Box::new(control)));
    }

    /// Who takes orders that concern more than this server.
    pub(crate) fn control(&self) -> Option<&dyn Control> {
        self.control.get().map(|it| &*it.0)
    }

    /// Shuts the program down (`SHUTDOWN`).
    pub fn shut_down(&self) {
        if let Some(shutdown) = self.shutdown.get() {
            (shutdown.0)();
        }
    }

    /// The program is shutting down: sessions finish their current command and accept no other, and
    /// logins are cut off.
    pub fn dismiss_sessions(&self) {
        self.clients.dismiss();
    }

    /// What the sessions do that are not idle.
    pub fn busy(&self) -> clients::Busy {
        self.clients.registry().busy()
    }

    /// The shutdown's grace period is over: sessions are killed in the middle of their commands,
    /// and their transactions are rolled back. Returns how many were in one. Any thread.
    pub fn kill_sessions(&self) -> usize {
        self.clients.kill_all()
    }

    /// A worker's counters.
    pub fn counters(&self, worker_index: usize) -> &Counters {
        &self.counters[worker_index]
    }

    /// When the server started, on the steady clock, in microseconds.
    pub fn started_us(&self) -> u64 {
        self.started_us
    }

    /// All numbers as a text for monitors.
    pub fn exposition(&self) -> String {
        self.metrics.exposition()
    }

    /// All numbers for `SHOW STATUS`, by name.
    pub fn status(&self, now_us: u64) -> BTreeMap<Cow<'static, str>, u64> {
        let mut status: BTreeMap<_, _> = self.metrics.numbers().into_iter().collect();
        let uptime_s = now_us.saturating_sub(self.started_us) / 1_000_000;
        status.insert("Uptime".into(), uptime_s);
        // FLUSH STATUS leaves the server's numbers as they are.
        status.insert("Uptime_since_flush_status".into(), uptime_s);
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::CountedStatement;
    use crate::variables::system::{self, NewValue};

    #[test]
    fn counters_of_all_workers_are_summed() {
        let server = Server::new(Settings::default(), 2, 5_000_000);
        server.counters(0).questions.increment();
        server.counters(1).questions.increment();
        server.counters(1).count_statement(CountedStatement::Delete);
        let status = server.status(12_500_000);
        assert_eq!((status["Questions"], status["Com_delete"]), (2, 1));
        assert_eq!(
            (status["Uptime"], status["Uptime_since_flush_status"]),
            (7, 7)
        );
    }

    #[test]
    fn a_commit_is_as_durable_as_was_asked() {
        let server = Server::new(Settings::default(), 1, 0);
        for (asked, is_bent, shown, durability) in [
            (0, false, 0, Durability::Lazy),
            (2, false, 2, Durability::Written),
            (1, false, 1, Durability::Durable),
            (3, false, 3, Durability::Durable),
            (4, true, 3, Durability::Durable),
        ] {
            let name = "innodb_flush_log_at_trx_commit";
            let set = server.change_settings(|settings| {
                system::set_global(settings, name, &NewValue::Number(asked))
            });
            assert_eq!(set.expect("it is a variable"), is_bent, "{asked}");
            let settings = server.settings();
            assert_eq!(settings.unsigned("flush_log_at_trx_commit"), shown);
            assert_eq!(server.durability(), durability, "{asked}");
        }
    }

    #[test]
    fn a_refused_change_of_settings_changes_nothing() {
        let server = Server::new(Settings::default(), 1, 0);
        let refused: Result<(), &str> = server.change_settings(|settings| {
            settings.set("max_connections", "77").map_err(|_| "range")?;
            Err("no")
        });
        assert_eq!(refused, Err("no"));
        assert_eq!(server.settings().unsigned("max_connections"), 1040);
        let set = server.change_settings(|settings| settings.set("max_connections", "77"));
        assert_eq!(set, Ok(()));
        assert_eq!(server.settings().unsigned("max_connections"), 77);
    }
}
