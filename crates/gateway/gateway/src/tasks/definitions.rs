//! Keeps what caches of results have to know of the tables' definitions: which are views, and which
//! change others when they are changed.
//!
//! It is read from the primaries whenever a statement may have changed it, and each minute. Until
//! it is known, nothing is kept ([`result_cache::Tables`]).

use std::time::Duration;

use backend::{Login, Outcome, QueryLimits, Server};
use link::Limit;
use monitor::Epoch;
use result_cache::{Changes, TableSlot, Trait};

use crate::connection::{position_of, position_question};
use crate::options::{MonitorId, ServerId};
use crate::worker::Worker;

/// Definitions are never older than this.
const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// How often it is looked whether definitions are in doubt, or there is another primary.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Statements that may change definitions cause no more than one reading in this time.
const REFRESH_PAUSE: Duration = Duration::from_secs(1);

/// A server has to tell its definitions in this time.
const READ_TIME_MAX: Duration = Duration::from_secs(30);

/// Most bytes of all that is told: a million tables.
const DEFINITION_BYTES_MAX: usize = 64 << 20;

/// Why nothing is kept for a while.
const UNSEEN: &str = "sessions of an older configuration, which has no cache, go on";

/// Without these, a server hides some of the definitions.
const PRIVILEGES: &str = "SELECT COUNT(DISTINCT PRIVILEGE_TYPE) \
    FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ('SELECT', 'TRIGGER') \
    AND GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')";

/// All tables whose replies cannot be kept (1), those that may change others (2), and columns (3)
/// that a query whose reply is kept does not name. What stands in no table of the server itself is
/// changed unseen, what is in memory is gone when it restarts, and a transaction has no snapshot of
/// what is in no transactional engine. A virtual column may depend on the time. A TIME becomes one
/// of the present day where it is compared with a DATETIME, or made one.
const DEFINITIONS: &str = "SELECT TABLE_NAME, 1 FROM information_schema.TABLES \
    WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys') \
    AND (TABLE_TYPE NOT IN ('BASE TABLE', 'SYSTEM VERSIONED') OR ENGINE IS NULL \
    OR ENGINE NOT IN ('InnoDB', 'ROCKSDB')) \
    UNION SELECT TABLE_NAME, 1 FROM information_schema.COLUMNS WHERE EXTRA LIKE '%VIRTUAL%' \
    AND TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys') \
    UNION SELECT COLUMN_NAME, 3 FROM information_schema.COLUMNS WHERE DATA_TYPE = 'time' \
    AND TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys') \
    UNION SELECT EVENT_OBJECT_TABLE, 2 FROM information_schema.TRIGGERS \
    UNION SELECT REFERENCED_TABLE_NAME, 2 FROM information_schema.REFERENTIAL_CONSTRAINTS \
    WHERE UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') \
    OR DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')";

/// Reads definitions for as long as the configuration has a cache that asks for them. One worker
/// does it, and calls this each time that it has adopted a configuration.
pub fn keep_definitions(worker: &Worker) {
    if worker.generation.looks_at_tables() && worker.begin_definitions() {
        runtime::spawn_background(keep());
    }
}

async fn keep() {
    let mut primaries = Vec::new();
    let mut told: Option<Result<(), String>> = None;
    let (mut read_at, mut located_at) = (None, None);
    while let Some(worker) = runtime::local::<Worker>() {
        if !worker.generation.looks_at_tables() {
            worker.end_definitions();
            return;
        }
        let tables = &worker.gateway.tables;
        let present = primaries_of(&worker);
        let is_unseen = has_unseen_sessions(&worker);
        if is_unseen && !tables.is_in_doubt() {
            tables.note_change(Changes::AnyTable);
            tables.doubt();
        }
        if primaries != present {
            // The new one may not have the last writes of the old one.
            tables.note_change(Changes::AnyTable);
            tables.doubt();
            primaries = present;
        }
        let now = runtime::now();
        let age = read_at.map(|at| now.since(at));
        let is_due = age
            .is_none_or(|age| REFRESH_EVERY <= age || tables.is_in_doubt() && REFRESH_PAUSE <= age);
        // Of a missing primary the monitor tells.
        if is_due && primaries.iter().all(Option::is_some) {
            let outcome = match is_unseen {
                true => Err(UNSEEN.to_owned()),
                false => learn(&worker).await,
            };
            read_at = Some(now);
            if told.as_ref() != Some(&outcome) {
                tell(&outcome);
                told = Some(outcome);
            }
        }
        let age = located_at.map(|at| now.since(at));
        if age.is_none_or(|age| REFRESH_PAUSE <= age) && locate_writes(&worker).await {
            located_at = Some(now);
        }
        drop(worker);
        runtime::sleep(LOOK_EVERY).await;
    }
}

fn tell(outcome: &Result<(), String>) {
    match outcome {
        Ok(()) => tracing::info!("results are kept: the definitions of all tables are known"),
        Err(reason) => {
            tracing::warn!(%reason, "the caches keep nothing: definitions of tables are unknown");
        }
    }
}

/// The primary of each monitor.
fn primaries_of(worker: &Worker) -> Vec<Option<Primary>> {
    let monitors = (0..).map(MonitorId).zip(worker.generation.watches());
    let primary = |(monitor, _)| primary_of(worker, monitor);
    monitors.map(primary).collect()
}

/// The primary of a monitor of the worker's configuration, as it sees it now.
pub(super) fn primary_of(worker: &Worker, monitor: MonitorId) -> Option<Primary> {
    let generation = &worker.generation;
    let present = generation.watch(monitor).monitor.present();
    let found = present.map.primary()?;
    let servers = &generation.watched_by(monitor).servers;
    let server = *servers.get(usize::from(found.id.0))?;
    let name = generation.server(server).known.pool_id;
    Some(Primary {
        server,
        identity: (name, found.epoch),
    })
}

/// A server that takes writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Primary {
    pub(super) server: ServerId,
    /// Names in the pool are never given again, and its epoch rises whenever it was down.
    pub(super) identity: (pool::ServerId, Epoch),
}

/// Whether sessions go on whose configuration asks nobody what they change.
fn has_unseen_sessions(worker: &Worker) -> bool {
    let generations = worker.gateway.generations();
    generations.iter().any(|it| !it.looks_at_tables())
}

/// Reads the definitions of all clusters.
async fn learn(worker: &Worker) -> Result<(), String> {
    let tables = &worker.gateway.tables;
    let doubts = tables.doubts();
    let mut said = Vec::new();
    let primaries = primaries_of(worker);
    for (monitor, primary) in (0..).map(MonitorId).zip(primaries) {
        let Some(Primary { server: id, .. }) = primary else {
            return Err("there is no primary".to_owned());
        };
        let name = &worker.generation.server(id).options.name;
        let told = read(worker, monitor, id).await;
        said.extend(told.map_err(|reason| format!("{name}: {reason}"))?);
    }
    tell_positions(worker);
    tables.learn(doubts, &said);
    Ok(())
}

/// Tells services where their primary has been, so that replicas that are there are believed.
fn tell_positions(worker: &Worker) {
    for id in worker.generation.service_ids() {
        let service = worker.generation.service(id);
        let present = worker
            .generation
            .watch(service.options.monitor)
            .monitor
            .present();
        let position = present.map.primary().and_then(|it| it.position.as_ref());
        if let Some(position) = position.filter(|it| !it.is_empty()) {
            service.written.begin(position);
        }
    }
}

/// Asks primaries up to where they have written, if a session has written and was not told where:
/// no replica is believed to have that. Sessions that read from replicas ask themselves, but others
/// never do. Returns whether anybody was asked.
async fn locate_writes(worker: &Worker) -> bool {
    let generation = &worker.generation;
    let mut has_asked = false;
    for id in generation.service_ids() {
        let service = generation.service(id);
        let Some(seen) = service.written.unlocated() else {
            continue;
        };
        let monitor = service.options.monitor;
        let Some(Primary { server, .. }) = primary_of(worker, monitor) else {
            continue;
        };
        has_asked = true;
        let Ok(mut connected) = connect(worker, monitor, server).await else {
            continue;
        };
        let product = connected.info().version.product;
        let question = position_question(product);
        let rows = rows_of(&mut connected, question).await.unwrap_or_default();
        connected.close().await;
        let told = rows
            .into_iter()
            .next()
            .and_then(|it| it.into_iter().next()?);
        let text = told.and_then(|it| String::from_utf8(it).ok());
        if let Some(position) = text.and_then(|it| position_of(product, &it)) {
            service.written.locate(seen, &position);
        }
    }
    has_asked
}

/// Connects to a server with its monitor's account.
///
/// # Errors
/// It cannot be connected to; for people.
pub(super) async fn connect(
    worker: &Worker,
    monitor: MonitorId,
    id: ServerId,
) -> Result<Server, String> {
    let options = worker.generation.watched_by(monitor);
    let login = Login::new(options.user.clone(), options.secret.clone());
    let target = &worker.generation.server(id).options.target;
    let connected = worker.connect(target, &login).await;
    connected.map_err(|error| error.with_causes())
}

async fn read(
    worker: &Worker,
    monitor: MonitorId,
    id: ServerId,
) -> Result<Vec<(TableSlot, Trait)>, String> {
    let mut server = connect(worker, monitor, id).await?;
    let told = ask(&mut server).await;
    server.close().await;
    told
}

async fn ask(server: &mut Server) -> Result<Vec<(TableSlot, Trait)>, String> {
    let privileges = rows_of(server, PRIVILEGES).await?;
    let has_all = privileges.first().and_then(|row| row.first());
    if has_all.and_then(Option::as_deref) != Some(&b"2"[..]) {
        let user = "the gateway's account needs GRANT SELECT, TRIGGER ON *.* there";
        return Err(user.to_owned());
    }
    let mut said = Vec::new();
    for row in rows_of(server, DEFINITIONS).await? {
        let [Some(name), Some(kind)] = &row[..] else {
            continue;
        };
        // A name that has no slot is in no query whose reply is kept, and changes of it are changes
        // of any table.
        let Some(slot) = TableSlot::of(name) else {
            continue;
        };
        match &kind[..] {
            // Through a view, another table is changed.
            b"1" => said.extend([(slot, Trait::Unkept), (slot, Trait::Wide)]),
            b"2" => said.push((slot, Trait::Wide)),
            _ => said.push((slot, Trait::Unkept)),
        }
    }
    Ok(said)
}

type Row = Vec<Option<Vec<u8>>>;

async fn rows_of(server: &mut Server, text: &str) -> Result<Vec<Row>, String> {
    let limits = QueryLimits {
        until: Limit::after(READ_TIME_MAX),
        bytes_max: DEFINITION_BYTES_MAX,
    };
    let outcomes = server.query(text.as_bytes(), limits).await;
    let outcomes = outcomes.map_err(|error| error.to_string())?;
    match outcomes.into_iter().next() {
        Some(Outcome::Rows(rows)) => Ok(rows.rows),
        Some(Outcome::Failed(error)) => Err(error.to_string()),
        Some(Outcome::Done { .. }) | None => Err("it sent no rows".to_owned()),
    }
}
