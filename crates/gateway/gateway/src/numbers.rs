//! What the gateway shows of itself: its numbers, and whether it can serve clients.

mod connection;
mod inside;
mod views;

use std::sync::Arc;

use metrics::{Counter, Label, Metric, Registry, Unit, sum_of};
use monitor::ServerState;
use pool::{CloseReason, Numbers};
use router::Pin;

pub use inside::{Inside, OrderError};
pub use views::{
    CacheView, RuleView, ServerView, ServiceView, SessionState, SessionView, StatementView,
    WatchedView, WorkerView,
};

use crate::end::End;
use crate::gateway::Gateway;
use crate::gateway::following::Following;
use crate::gateway::generation::{Generation, ServerShare};
use crate::options::{ServerId, ServiceId};
use crate::worker::Counters;

const fn count(name: &'static str, help: &'static str) -> Metric {
    Metric::counter(name, Unit::Count, help)
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric::gauge(name, Unit::Count, help)
}

/// A number of a part of the gateway, and how it is read off that.
type Read<T, N> = (Metric, fn(&T) -> N);

/// A counter, and where each worker has its part.
type Sum = (Metric, fn(&Counters) -> &Counter);

/// Sums over the workers.
const SUMS: [Sum; 11] = [
    (count("Sessions", "Clients that got a session."), |it| {
        &it.sessions
    }),
    (
        count("Statements", "Commands that were sent to servers."),
        |it| &it.statements,
    ),
    (
        count(
            "Failed_connects",
            "Connections to servers that could not be made.",
        ),
        |it| &it.failed_connects,
    ),
    (
        count(
            "Kills",
            "Statements that were ended on their server because their client had gone, or by KILL.",
        ),
        |it| &it.kills,
    ),
    (
        count(
            "Overdue",
            "Statements that were ended on their server because they ran for too long.",
        ),
        |it| &it.overdue,
    ),
    (
        count("Refused_by_rule", "Statements that a rule has refused."),
        |it| &it.refused,
    ),
    (
        count(
            "Victims",
            "Transactions that were rolled back because an older one waited for their connections.",
        ),
        |it| &it.victims,
    ),
    (
        count(
            "Waited_reads",
            "Reads that a replica has answered after it had waited for a write.",
        ),
        |it| &it.waited_reads,
    ),
    (
        count(
            "Late_reads",
            "Reads that went to the primary because a replica did not have a write in time.",
        ),
        |it| &it.late_reads,
    ),
    (
        count(
            "Surprises",
            "Replies whose transaction state was not what the text let expect. They are believed.",
        ),
        |it| &it.surprises,
    ),
    (
        count(
            "Logins_evicted",
            "Logins that were ended because too many were under way.",
        ),
        |it| &it.logins_evicted,
    ),
];

const SESSIONS_NOW: Metric = gauge("Sessions_now", "Sessions of clients.");
const SESSIONS_ENDED: Metric = count("Sessions_ended", "Sessions that ended, by reason.");
const SESSION_PINS: Metric = count(
    "Session_pins",
    "Times that a session was pinned to its server, by reason.",
);

const SERVER_STATEMENTS: Metric = count(
    "Server_statements",
    "Commands that were sent to the server.",
);

/// Of the query log.
const OF_QUERY_LOG: [Read<query_log::Numbers, u64>; 2] = [
    (
        count(
            "Query_log_lines",
            "Lines that were written to the query log.",
        ),
        |it| it.written,
    ),
    (
        count(
            "Query_log_dropped",
            "Lines of the query log that were dropped: its disk was full or too slow.",
        ),
        |it| it.dropped,
    ),
];

/// Of spans.
const OF_SPANS: [Read<spans::Numbers, u64>; 2] = [
    (
        count(
            "Spans_sent",
            "Spans of statements that the collector has taken.",
        ),
        |it| it.sent,
    ),
    (
        count(
            "Spans_dropped",
            "Spans of statements that were dropped: the collector is down, slow, or refuses them.",
        ),
        |it| it.dropped,
    ),
];

/// Of the binary log of each monitor's primary.
const OF_LOG: [Read<Following, u64>; 2] = [
    (
        gauge(
            "Binary_log_followed",
            "1 if the primary's binary log is followed for caches of results.",
        ),
        |it| it.is_current().into(),
    ),
    (
        count(
            "Binary_log_events",
            "Events of the primary's binary log that were read for caches of results.",
        ),
        |it| it.events.value(),
    ),
];

/// Of each server.
const OF_SERVER: [Read<ServerState, u64>; 4] = [
    (
        gauge(
            "Server_reachable",
            "1 if the server answers its monitor, and no operator has taken it out.",
        ),
        |it| it.is_reachable().into(),
    ),
    (
        gauge("Server_primary", "1 if the server takes writes."),
        |it| it.serves_writes().into(),
    ),
    (
        gauge("Server_reads", "1 if the server takes reads."),
        |it| it.serves_reads().into(),
    ),
    (
        Metric::gauge(
            "Server_lag",
            Unit::Milliseconds,
            "How far the server is behind; 0 if that is not known.",
        ),
        |it| {
            let lag = it.lag.unwrap_or_default();
            u64::try_from(lag.as_millis()).unwrap_or(u64::MAX)
        },
    ),
];

/// Of each server's connections that sessions share.
const OF_POOL: [Read<Numbers, u64>; 11] = [
    (
        gauge("Pool_open", "Connections that are open or being opened."),
        |it| it.open,
    ),
    (
        gauge("Pool_idle", "Connections that no session uses."),
        |it| it.idle,
    ),
    (
        gauge("Pool_waiting", "Sessions that wait for a connection."),
        |it| it.waiting,
    ),
    (
        count("Pool_opened", "Connections that were opened."),
        |it| it.opened,
    ),
    (
        count(
            "Pool_turned",
            "Connections that were turned to another account.",
        ),
        |it| it.turned,
    ),
    (
        count(
            "Pool_taken_own",
            "Idle connections that a session took from its own worker.",
        ),
        |it| it.taken_own,
    ),
    (
        count(
            "Pool_taken_shared",
            "Idle connections that a session took from another worker.",
        ),
        |it| it.taken_shared,
    ),
    (
        count(
            "Pool_taken_waiting",
            "Connections that a session got after waiting.",
        ),
        |it| it.taken_waiting,
    ),
    (count("Pool_waits", "Sessions that had to wait."), |it| {
        it.waited
    }),
    (
        count("Pool_wait_timeouts", "Waits that lasted too long."),
        |it| it.timed_out,
    ),
    (
        count(
            "Pool_failures",
            "Connections that failed, or could not be opened.",
        ),
        |it| it.closed(CloseReason::Failed),
    ),
];

impl Gateway {
    /// Shows the numbers of the gateway with its present configuration, and of servers that only
    /// older sessions have. `counters` are those of all workers.
    pub fn register_metrics(
        self: &Arc<Self>,
        registry: &mut Registry,
        counters: &Arc<[Arc<Counters>]>,
    ) {
        for (metric, pick) in SUMS {
            registry.add(metric, sum_of(counters, pick));
        }
        for (metric, pick) in front::Counters::LOGIN_NUMBERS {
            registry.add(metric, sum_of(counters, move |it| pick(&it.front)));
        }
        for (metric, pick) in front::Traffic::CLIENT_NUMBERS {
            let sum = sum_of(counters, move |it| pick(&it.front.traffic));
            registry.add(metric, sum);
        }
        for end in End::ALL {
            let sum = sum_of(counters, move |it| it.ended(end));
            registry.add_labelled(SESSIONS_ENDED, Label::new("reason", end.name()), sum);
        }
        for pin in Pin::ALL {
            let sum = sum_of(counters, move |it| it.pinned(pin));
            registry.add_labelled(SESSION_PINS, Label::new("reason", pin.name()), sum);
        }
        for (metric, read) in OF_QUERY_LOG {
            let log = Arc::clone(self.query_log());
            registry.add(metric, move || read(&log.numbers()));
        }
        for (metric, read) in OF_SPANS {
            let spans = Arc::clone(self.spans());
            registry.add(metric, move || read(&spans.numbers()));
        }
        let gateway = Arc::clone(self);
        registry.add(SESSIONS_NOW, move || stdx::to_u64(gateway.victims_count()));
        let present = self.present();
        for (number, watch) in present.watches().enumerate() {
            let label = Label::new("monitor", &number.to_string());
            watch.monitor.register_metrics(registry, &label);
            for (metric, read) in OF_LOG {
                let following = Arc::clone(&watch.following);
                registry.add_labelled(metric, label.clone(), move || read(&following));
            }
        }
        for (generation, server) in self.all_servers() {
            self.register_server(registry, &generation, server);
        }
    }

    fn register_server(
        self: &Arc<Self>,
        registry: &mut Registry,
        generation: &Generation,
        id: ServerId,
    ) {
        let server = generation.server(id);
        let name = self.unlike_name(server);
        let label = || Label::new("server", &name);
        let known = Arc::clone(&server.known);
        registry.add_labelled(SERVER_STATEMENTS, label(), move || known.sent());
        let pool_id = server.known.pool_id;
        for (metric, read) in OF_POOL {
            let pool = Arc::clone(&self.pool);
            let read = move || pool.numbers(pool_id).as_ref().map_or(0, read);
            registry.add_labelled(metric, label(), read);
        }
        let Some((monitor, place)) = server.watch else {
            return;
        };
        for (metric, read) in OF_SERVER {
            let monitor = generation.watch(monitor).monitor.clone();
            let read = move || {
                let present = monitor.present();
                present.map.server(place).map_or(0, read)
            };
            registry.add_labelled(metric, label(), read);
        }
    }

    /// The name of a server, with its address if the present configuration has another one of that
    /// name.
    fn unlike_name(&self, server: &ServerShare) -> String {
        let present = self.present();
        let name = &server.options.name;
        let is_other =
            |it: &ServerShare| it.options.name == *name && it.known.pool_id != server.known.pool_id;
        match present.servers().iter().any(is_other) {
            true => format!("{name}@{}", server.options.target.address),
            false => name.to_string(),
        }
    }

    /// All servers: those of the present configuration in its order, then those that only older
    /// sessions have, each in the newest configuration that has it.
    fn all_servers(&self) -> Vec<(Arc<Generation>, ServerId)> {
        let mut all: Vec<(Arc<Generation>, ServerId)> = Vec::new();
        for generation in self.generations().iter().rev() {
            for id in generation.server_ids() {
                let known = &generation.server(id).known;
                let is_it = |(other, id): &(Arc<Generation>, ServerId)| {
                    Arc::ptr_eq(&other.server(*id).known, known)
                };
                if !all.iter().any(is_it) {
                    all.push((Arc::clone(generation), id));
                }
            }
        }
        all
    }

    /// A service none of whose servers can be reached, if there is one.
    pub fn ailing_service(&self) -> Option<Arc<str>> {
        let present = self.present();
        let is_served = |id: &ServiceId| {
            let mut servers = present.service(*id).options.servers.iter();
            servers.any(|id| present.with_state(*id, ServerState::is_reachable) == Some(true))
        };
        let ailing = present.service_ids().find(|id| !is_served(id))?;
        Some(Arc::clone(&present.service(ailing).options.name))
    }
}
