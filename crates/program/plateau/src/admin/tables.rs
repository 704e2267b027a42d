//! The tables of the database `plateau`: what [`gateway::Inside`] tells, as rows.

use std::rc::Rc;
use std::sync::Arc;

use gateway::{
    CacheView, DownReason, Inside, MonitorRole, Role, Router, RuleView, ServerView, ServiceView,
    SessionState, SessionView, Sharing, Trust, WatchedView, WorkerView,
};
use router::{CacheUse, Route, Rule};
use runtime::Handle;
use store::ColumnDefinition;
use value::Value;
use virtual_store::{Declaration, Row};

use super::cells::{count, list, maybe, millis, number, number_column, rows, text, text_column};
use super::statements;

/// All tables, for one worker.
pub(crate) fn declarations(inside: &Inside, handle: &Handle) -> Vec<Declaration> {
    vec![
        servers(inside.clone()),
        services(inside.clone()),
        sessions(inside.clone()),
        pools(inside.clone()),
        rules(inside.clone()),
        caches(inside.clone()),
        statements::declaration(inside.clone()),
        workers(inside.clone(), handle.clone()),
    ]
}

fn servers(inside: Inside) -> Declaration {
    let columns = vec![
        text_column("name"),
        text_column("address"),
        text_column("state"),
        text_column("role"),
        text_column("serves"),
        text_column("wanted"),
        number_column("rank"),
        number_column("lag_ms"),
        text_column("gtid"),
        number_column("open"),
        number_column("in_use"),
        number_column("idle"),
        number_column("waiting"),
        number_column("max_connections"),
        number_column("sessions"),
        number_column("under_way"),
        number_column("statements"),
        text_column("version"),
        text_column("error"),
    ];
    let ask = move || {
        let inside = inside.clone();
        rows(async move { inside.servers().await.iter().map(server_row).collect() })
    };
    Declaration {
        name: "servers",
        comment: "The servers behind the gateway",
        columns,
        ask: Rc::new(ask),
    }
}

fn server_row(server: &ServerView) -> Row {
    let watched = server.watched.as_ref();
    let of_monitor = |pick: fn(&WatchedView) -> Option<String>| maybe(watched.and_then(pick));
    let pool = &server.pool;
    vec![
        text(&server.name),
        text(&server.address),
        of_monitor(|it| Some(state(it.down))),
        of_monitor(|it| Some(role(it.role).to_owned())),
        of_monitor(|it| Some(it.serves.to_string())),
        match server.is_removed {
            true => text("removed"),
            false => of_monitor(|it| Some(it.wanted.to_string())),
        },
        number(server.rank),
        watched.and_then(|it| it.lag).map_or(Value::Null, millis),
        of_monitor(|it| it.position.clone()),
        number(pool.open),
        number(pool.open.saturating_sub(pool.idle)),
        number(pool.idle),
        number(pool.waiting),
        number(server.connections_max),
        count(server.sessions),
        number(server.under_way),
        number(server.statements),
        of_monitor(|it| it.version.clone()),
        of_monitor(|it| it.error.as_deref().map(str::to_owned)),
    ]
}

fn state(down: Option<DownReason>) -> String {
    match down {
        None => "up".to_owned(),
        Some(DownReason::NotChecked) => "starting".to_owned(),
        Some(_) => "down".to_owned(),
    }
}

fn role(role: MonitorRole) -> &'static str {
    match role {
        MonitorRole::Unknown => "none",
        MonitorRole::Primary | MonitorRole::GaleraWriter => "primary",
        MonitorRole::Replica => "replica",
        MonitorRole::Relay => "relay",
        MonitorRole::GaleraMember => "member",
    }
}

fn services(inside: Inside) -> Declaration {
    let columns = vec![
        text_column("name"),
        text_column("router"),
        text_column("role"),
        text_column("servers"),
        number_column("reachable"),
        text_column("primary_server"),
        number_column("monitor"),
        number_column("sessions"),
    ];
    let ask = move || {
        let inside = inside.clone();
        rows(async move { inside.services().await.iter().map(service_row).collect() })
    };
    Declaration {
        name: "services",
        comment: "What the clients of listeners get",
        columns,
        ask: Rc::new(ask),
    }
}

fn service_row(service: &ServiceView) -> Row {
    let (router, role) = match service.router {
        Router::ReadConnection(Role::Any) => ("read-connection", Some("any")),
        Router::ReadConnection(Role::Primary) => ("read-connection", Some("primary")),
        Router::ReadConnection(Role::Replica) => ("read-connection", Some("replica")),
        Router::ReadWriteSplit(_) => ("read-write-split", None),
    };
    vec![
        text(&service.name),
        text(router),
        maybe(role),
        text(&service.servers.join(",")),
        count(service.reachable),
        maybe(service.primary.as_deref()),
        count(service.monitor),
        count(service.sessions),
    ]
}

fn sessions(inside: Inside) -> Declaration {
    let columns = vec![
        number_column("id"),
        text_column("user"),
        text_column("host"),
        text_column("service"),
        text_column("db"),
        text_column("state"),
        text_column("waits_for"),
        number_column("since_ms"),
        text_column("pins"),
        text_column("pin_reasons"),
        text_column("pinned_by"),
        text_column("stays_at"),
        number_column("in_transaction"),
        text_column("connections"),
    ];
    let ask = move || {
        let inside = inside.clone();
        rows(async move { inside.sessions().await.iter().map(session_row).collect() })
    };
    Declaration {
        name: "sessions",
        comment: "The clients that are logged in",
        columns,
        ask: Rc::new(ask),
    }
}

fn session_row(session: &SessionView) -> Row {
    let (state, waits_for) = match &session.state {
        SessionState::Idle => ("idle", None),
        SessionState::Running => ("running", None),
        SessionState::WaitsForConnection(server) => ("waits for a connection", Some(server)),
        SessionState::WaitsForServer => ("waits for a server", None),
    };
    let pins: Vec<_> = session.pins.iter().map(|pin| pin.name()).collect();
    let reasons: Vec<_> = session.pins.iter().map(|pin| pin.reason()).collect();
    vec![
        number(session.number),
        text(&session.user),
        text(&session.host),
        text(&session.service),
        maybe(session.database.as_deref()),
        text(state),
        maybe(waits_for.map(Arc::as_ref)),
        millis(session.age),
        text(&pins.join(",")),
        text(&reasons.join("; ")),
        maybe(session.pinned_by_words()),
        maybe(session.stays_at.as_deref()),
        number(u8::from(session.is_in_transaction)),
        text(&session.connections.join(",")),
    ]
}

/// A column of numbers, and what it shows.
type Number<T> = (&'static str, fn(&T) -> u64);

/// The columns of `pools` behind the server's name.
const OF_POOL: [Number<gateway::PoolNumbers>; 16] = [
    ("open", |it| it.open),
    ("open_above", |it| it.open_above),
    ("idle", |it| it.idle),
    ("waiting", |it| it.waiting),
    ("taken_own", |it| it.taken_own),
    ("taken_shared", |it| it.taken_shared),
    ("taken_waiting", |it| it.taken_waiting),
    ("opened", |it| it.opened),
    ("turned", |it| it.turned),
    ("closed", gateway::PoolNumbers::closed_count),
    ("waits", |it| it.waited),
    ("timeouts", |it| it.timed_out),
    ("given_up", |it| it.given_up),
    ("refused", |it| it.refused),
    ("overflowed", |it| it.overflowed),
    ("victims", |it| it.victims),
];

fn pools(inside: Inside) -> Declaration {
    let numbers = OF_POOL.iter().map(|(name, _)| number_column(name));
    let columns = std::iter::once(text_column("server")).chain(numbers);
    let ask = move || {
        let inside = inside.clone();
        rows(async move { inside.servers().await.iter().map(pool_row).collect() })
    };
    Declaration {
        name: "pools",
        comment: "The connections that sessions share, by server",
        columns: columns.collect(),
        ask: Rc::new(ask),
    }
}

fn pool_row(server: &ServerView) -> Row {
    let numbers = OF_POOL.iter().map(|(_, read)| number(read(&server.pool)));
    std::iter::once(text(&server.name)).chain(numbers).collect()
}

/// A column of `rules`: its name, its type, and its value for a rule.
type RuleColumn = (
    &'static str,
    fn(&str) -> ColumnDefinition,
    fn(&Rule) -> Value,
);

/// Those that stand in the settings file, by their names there; but SQL reserves `schemas`.
const OF_RULE: [RuleColumn; 16] = [
    ("name", text_column, |it| text(&it.name)),
    ("services", text_column, |it| list(&it.who.services)),
    ("users", text_column, |it| list(&it.who.users)),
    ("db", text_column, |it| list(&it.who.schemas)),
    ("addresses", text_column, |it| list(&it.who.networks)),
    ("digests", text_column, |it| {
        let digests = it.what.digests.iter();
        list(&digests.map(|it| format!("{it:016x}")).collect::<Vec<_>>())
    }),
    ("tables", text_column, |it| list(&it.what.tables)),
    ("pattern", text_column, |it| maybe(it.what.pattern.as_ref())),
    ("route", text_column, |it| match it.ruling.route {
        Some(Route::Primary) => text("primary"),
        Some(Route::Replica) => text("replica"),
        Some(Route::Server(_)) | None => Value::Null,
    }),
    ("server", text_column, |it| match &it.ruling.route {
        Some(Route::Server(name)) => text(name),
        Some(Route::Primary | Route::Replica) | None => Value::Null,
    }),
    ("lag_max_ms", number_column, |it| {
        it.ruling.lag_max.map_or(Value::Null, millis)
    }),
    ("max_statement_time_ms", number_column, |it| {
        it.ruling.time_max.map_or(Value::Null, millis)
    }),
    ("multiplex", number_column, |it| {
        it.ruling.multiplexes.map_or(Value::Null, number)
    }),
    ("query_log", number_column, |it| {
        it.ruling.logs.map_or(Value::Null, number)
    }),
    ("refuse", text_column, |it| {
        maybe(it.ruling.refusal.as_ref())
    }),
    ("cache", text_column, |it| match &it.ruling.cache {
        Some(CacheUse::Off) => text("off"),
        Some(CacheUse::In(name)) => text(name),
        None => Value::Null,
    }),
];

fn rules(inside: Inside) -> Declaration {
    let mut columns = vec![number_column("id")];
    columns.extend(OF_RULE.iter().map(|(name, column, _)| column(name)));
    columns.push(number_column("hits"));
    let ask = move || {
        let inside = inside.clone();
        rows(async move {
            let rules = inside.rules().await;
            rules.iter().enumerate().map(rule_row).collect()
        })
    };
    Declaration {
        name: "rules",
        comment: "The rules, and how many statements have met each",
        columns,
        ask: Rc::new(ask),
    }
}

fn rule_row((index, view): (usize, &RuleView)) -> Row {
    let mut row = vec![count(index + 1)];
    row.extend(OF_RULE.iter().map(|(_, _, read)| read(&view.rule)));
    row.push(number(view.hits));
    row
}

fn caches(inside: Inside) -> Declaration {
    let columns = vec![
        text_column("name"),
        text_column("sharing"),
        text_column("mode"),
        number_column("keeps"),
        text_column("follows"),
        number_column("size"),
        number_column("used"),
        number_column("results"),
        number_column("hits"),
        number_column("misses"),
        number_column("voids"),
        number_column("renewals"),
        number_column("kept"),
        number_column("evictions"),
    ];
    let ask = move || {
        let inside = inside.clone();
        rows(async move { inside.caches().iter().map(cache_row).collect() })
    };
    Declaration {
        name: "cache",
        comment: "The caches of results, and what has happened to each",
        columns,
        ask: Rc::new(ask),
    }
}

fn cache_row(cache: &CacheView) -> Row {
    let CacheView {
        options, counts, ..
    } = cache;
    vec![
        text(&options.name),
        text(match options.sharing {
            Sharing::All => "all",
            Sharing::Worker => "worker",
        }),
        text(match options.trust {
            Trust::Verified => "verified",
            Trust::Vouched => "vouched",
        }),
        number(cache.keeps),
        maybe(cache.follows.clone()),
        count(options.cache.bytes_max),
        count(cache.used_bytes),
        count(cache.results),
        number(counts.hits),
        number(counts.misses),
        number(counts.voids),
        number(counts.renewals),
        number(counts.kept),
        number(counts.evictions),
    ]
}

fn workers(inside: Inside, handle: Handle) -> Declaration {
    let columns = vec![
        number_column("id"),
        number_column("connections"),
        number_column("sessions"),
        number_column("sessions_begun"),
        number_column("statements"),
        number_column("under_way"),
        number_column("failed_connects"),
        number_column("kills"),
        number_column("turns"),
        number_column("polls"),
    ];
    let ask = move || {
        let (inside, handle) = (inside.clone(), handle.clone());
        rows(async move {
            let workers = inside.workers().await;
            workers.iter().map(|it| worker_row(it, &handle)).collect()
        })
    };
    Declaration {
        name: "workers",
        comment: "The threads that serve clients",
        columns,
        ask: Rc::new(ask),
    }
}

fn worker_row(worker: &WorkerView, handle: &Handle) -> Row {
    let done = handle.loop_numbers(worker.index);
    vec![
        count(worker.index),
        number(handle.connection_count(worker.index)),
        count(worker.sessions),
        number(worker.sessions_begun),
        number(worker.statements),
        number(worker.under_way),
        number(worker.failed_connects),
        number(worker.kills),
        number(done.turns),
        number(done.polls),
    ]
}
