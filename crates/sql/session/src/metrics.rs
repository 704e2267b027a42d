//! What sessions count, and show of themselves (`SHOW STATUS`).

use std::sync::Arc;

use clients::Clients;
use errcode::Origin;
use executor::{HandlerCall, HandlerCounts};
use metrics::{Counter, Metric, Registry, Unit, sum_of};
use sync::CachePadded;

/// What a worker's sessions have done.
#[derive(Debug, Default)]
pub struct Counters {
    /// Statements from clients (`Questions`).
    pub questions: Counter,
    /// Statements by kind (`Com_select`, ...), in the order of [`CountedStatement`].
    by_kind: [Counter; CountedStatement::COUNT],
    /// Clients that have logged in.
    pub connections: Counter,
    /// Clients that were lost, silent for too long, or killed (`Aborted_clients`).
    pub aborted_clients: Counter,
    /// Connections that were ended before their login because too many were logging in.
    pub logins_evicted: Counter,
    /// The protocol's own counters.
    pub front: Arc<front::Counters>,
    /// Statements that ended with an error, by its [`Origin`] (`Statement_errors`, ...).
    errors: [Counter; Origin::COUNT],
    /// Statements whose plan was in the cache (`Plan_cache_hits`).
    pub plan_hits: Counter,
    /// Statements that have a canonical form and had to be planned.
    pub plan_misses: Counter,
    /// Plans that were evicted.
    pub plan_evictions: Counter,
    /// Calls of tables and transactions (`Handler_%`), in the order of [`HandlerCall`].
    handler: [Counter; HandlerCall::COUNT],
}

/// Kinds of statements that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum CountedStatement {
    /// SELECT.
    Select,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// BEGIN, START TRANSACTION.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// XA START.
    XaStart,
    /// XA END.
    XaEnd,
    /// XA PREPARE.
    XaPrepare,
    /// XA COMMIT.
    XaCommit,
    /// XA ROLLBACK.
    XaRollback,
    /// XA RECOVER.
    XaRecover,
    /// Everything else.
    Other,
}

impl CountedStatement {
    const COUNT: usize = 14;

    pub(crate) const ALL: [(Self, &'static str); Self::COUNT] = [
        (Self::Select, "Com_select"),
        (Self::Insert, "Com_insert"),
        (Self::Update, "Com_update"),
        (Self::Delete, "Com_delete"),
        (Self::Begin, "Com_begin"),
        (Self::Commit, "Com_commit"),
        (Self::Rollback, "Com_rollback"),
        (Self::XaStart, "Com_xa_start"),
        (Self::XaEnd, "Com_xa_end"),
        (Self::XaPrepare, "Com_xa_prepare"),
        (Self::XaCommit, "Com_xa_commit"),
        (Self::XaRollback, "Com_xa_rollback"),
        (Self::XaRecover, "Com_xa_recover"),
        (Self::Other, "Com_other"),
    ];
}

impl Counters {
    /// Statements of a kind.
    pub(crate) fn statements(&self, kind: CountedStatement) -> &Counter {
        &self.by_kind[kind as usize]
    }

    /// Calls of a kind of tables and transactions.
    pub(crate) fn handler(&self, call: HandlerCall) -> &Counter {
        &self.handler[call as usize]
    }

    /// Counts a statement of a kind.
    pub fn count_statement(&self, kind: CountedStatement) {
        self.by_kind[kind as usize].increment();
    }

    /// Counts a statement that ended with an error.
    pub fn count_error(&self, origin: Origin) {
        self.errors[origin as usize].increment();
    }

    /// Counts what a part of a statement asked of tables.
    pub fn count_handler(&self, counts: &HandlerCounts) {
        for (call, count) in counts.called() {
            self.handler[call].add(count);
        }
    }
}

/// The counters of all workers.
pub(crate) type AllCounters = Arc<[CachePadded<Counters>]>;

const fn count(name: &'static str, help: &'static str) -> Metric {
    Metric::counter(name, Unit::Count, help)
}

const QUESTIONS: Metric = count("Questions", "Statements from clients.");
const QUERIES: Metric = count("Queries", "Statements from clients, as `Questions`.");
const CONNECTIONS: Metric = count("Connections", "Connections that were let in.");
const ABORTED_CLIENTS: Metric = count(
    "Aborted_clients",
    "Clients that were lost, silent for too long, or killed.",
);
const LOGINS_EVICTED: Metric = count(
    "Logins_evicted",
    "Logins that were ended because too many were under way.",
);
const PLAN_HITS: Metric = count("Plan_cache_hits", "Statements whose plan was found.");
const PLAN_MISSES: Metric = count(
    "Plan_cache_misses",
    "Statements that had to be planned though plans of their form can be kept.",
);
const PLAN_EVICTIONS: Metric = count(
    "Plan_cache_evictions",
    "Plans that had to go to make room for others.",
);
const ERRORS: Metric = count("Statement_errors", "Statements that ended with an error.");
/// No statement asks another server yet, so none fails with its error.
const ERRORS_BY_ORIGIN: [(Origin, Metric); 2] = [
    (
        Origin::Client,
        count(
            "Statement_errors_client",
            "Statements that failed because of clients: text, privileges, limits, locks, KILL.",
        ),
    ),
    (
        Origin::Ourselves,
        count(
            "Statement_errors_internal",
            "Statements that failed because of memory, disk, damage or the server's end.",
        ),
    ),
];
const THREADS_CONNECTED: Metric = Metric::gauge(
    "Threads_connected",
    Unit::Count,
    "Sessions that are logged in.",
);
const THREADS_RUNNING: Metric = Metric::gauge(
    "Threads_running",
    Unit::Count,
    "Sessions that run a statement or wait in one.",
);

/// Prepared statements of all sessions.
pub(crate) const PREPARED_STATEMENTS: Metric = Metric::gauge(
    "Prepared_stmt_count",
    Unit::Count,
    "Prepared statements that sessions keep (`max_prepared_stmt_count`).",
);

/// Of each entry of [`CountedStatement::ALL`].
const STATEMENT_HELP: &str = "Statements of this kind.";
/// Of each entry of [`HandlerCall::ALL`].
const HANDLER_HELP: &str = "Calls of this kind of tables and transactions.";

/// A counter, and where each worker has its part.
type Sum = (Metric, fn(&Counters) -> &Counter);

/// Adds the numbers of all sessions.
pub(crate) fn register(registry: &mut Registry, counters: &AllCounters, clients: &Arc<Clients>) {
    let sums: [Sum; 8] = [
        (QUESTIONS, |it| &it.questions),
        (QUERIES, |it| &it.questions),
        (CONNECTIONS, |it| &it.connections),
        (ABORTED_CLIENTS, |it| &it.aborted_clients),
        (LOGINS_EVICTED, |it| &it.logins_evicted),
        (PLAN_HITS, |it| &it.plan_hits),
        (PLAN_MISSES, |it| &it.plan_misses),
        (PLAN_EVICTIONS, |it| &it.plan_evictions),
    ];
    for (metric, pick) in sums {
        registry.add(metric, sum_of(counters, pick));
    }
    let all = Arc::clone(counters);
    registry.add(ERRORS, move || {
        let errors = all.iter().flat_map(|it| &it.errors);
        errors.map(Counter::value).sum()
    });
    for (metric, pick) in front::Counters::LOGIN_NUMBERS {
        registry.add(metric, sum_of(counters, move |it| pick(&it.front)));
    }
    for (metric, pick) in front::Traffic::CLIENT_NUMBERS {
        registry.add(metric, sum_of(counters, move |it| pick(&it.front.traffic)));
    }
    for (origin, metric) in ERRORS_BY_ORIGIN {
        registry.add(
            metric,
            sum_of(counters, move |it| &it.errors[origin as usize]),
        );
    }
    for (call, name) in HandlerCall::ALL {
        let sum = sum_of(counters, move |it| it.handler(call));
        registry.add(count(name, HANDLER_HELP), sum);
    }
    for (kind, name) in CountedStatement::ALL {
        let sum = sum_of(counters, move |it| it.statements(kind));
        registry.add(count(name, STATEMENT_HELP), sum);
    }
    registry.add_each(clients, &Clients::NUMBERS);
    let all = Arc::clone(clients);
    registry.add(THREADS_CONNECTED, move || {
        stdx::to_u64(all.registry().count())
    });
    let all = Arc::clone(clients);
    registry.add(THREADS_RUNNING, move || {
        stdx::to_u64(all.registry().running_count())
    });
}
