//! Keeps what caches of results have to know of the tables' definitions: which are views, and which
//! change others when they are changed.
//!
//! It is read from the primaries whenever a statement may have changed it, and each minute. Until
//! it is known, nothing is kept ([`result_cache::Tables`]).

use std::sync::{Arc, Weak};
use std::time::Duration;

use backend::{Outcome, QueryLimits, Server};
use link::Limit;
use monitor::gtid::GtidPosition;
use result_cache::{TableSlot, Trait};

use crate::connection::{position_of, position_question};
use crate::gateway::watch::Watch;
use crate::options::ServerId;
use crate::worker::Worker;

use super::cluster::{Cluster, Identity, Primary};

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
const UNSEEN: &str = "sessions of another configuration, which has no such cache, go on";

/// Why nothing is kept until they agree.
const DISAGREEMENT: &str = "monitors of two configurations take different servers for the primary";

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
    let mut known: Vec<Known> = Vec::new();
    let (mut before, mut told) = (None, None);
    let (mut read_at, mut located_at) = (None, None);
    while let Some(worker) = runtime::local::<Worker>() {
        if !worker.generation.looks_at_tables() {
            worker.end_definitions();
            return;
        }
        let tables = &worker.gateway.tables;
        let clusters = Cluster::all(&worker.gateway);
        if note_primaries(&mut known, &clusters) {
            // A new one may not have the last writes of the old one.
            tables.forget();
        }
        let now = runtime::now();
        let age = read_at.map(|at| now.since(at));
        let is_due = age
            .is_none_or(|age| REFRESH_EVERY <= age || tables.is_in_doubt() && REFRESH_PAUSE <= age);
        if is_due {
            let outcome = learn(&worker, &clusters, &mut known).await;
            read_at = Some(now);
            // A monitor that begins does not know its primary yet.
            let has_lasted = before.as_ref() == Some(&outcome);
            if told.as_ref() != Some(&outcome) && (has_lasted || outcome.is_ok()) {
                tell(&outcome);
                told = Some(outcome.clone());
            }
            before = Some(outcome);
        }
        let age = located_at.map(|at| now.since(at));
        if age.is_none_or(|age| REFRESH_PAUSE <= age)
            && locate_writes(&worker, &clusters, &known).await
        {
            located_at = Some(now);
        }
        drop((worker, clusters));
        runtime::sleep(LOOK_EVERY).await;
    }
}

/// What is known of a cluster, by its watch.
#[derive(Debug)]
struct Known {
    watch: Weak<Watch>,
    primary: Option<Identity>,
    /// As they were read last. While there is no primary, they go on: its replicas answer.
    definitions: Option<Definitions>,
    /// The primary names its transactions, as far as is known.
    has_positions: bool,
}

/// Notes the primaries of all clusters. `known` has one entry a cluster then, in their order.
/// Returns whether a cluster has another primary than before, or is new and has one that was not
/// known.
fn note_primaries(known: &mut Vec<Known>, clusters: &[Cluster]) -> bool {
    let mut before = std::mem::take(known);
    let identities: Vec<_> = before.iter().map(|it| it.primary).collect();
    let mut is_new = false;
    for cluster in clusters {
        let primary = cluster.primary().map(|it| it.identity);
        let is_it = |it: &Known| std::ptr::eq(it.watch.as_ptr(), &raw const **cluster.watch());
        let mut same = match before.iter().position(is_it) {
            Some(at) => before.swap_remove(at),
            None => Known {
                watch: Arc::downgrade(cluster.watch()),
                // A watch that begins goes by what the one before has known.
                primary: primary.filter(|it| identities.contains(&Some(*it))),
                definitions: None,
                has_positions: true,
            },
        };
        if same.primary != primary {
            is_new = true;
            same.primary = primary;
            same.has_positions = true;
        }
        known.push(same);
    }
    is_new
}

fn tell(outcome: &Result<(), String>) {
    match outcome {
        Ok(()) => tracing::info!("results are kept: the definitions of all tables are known"),
        Err(reason) => {
            tracing::warn!(%reason, "the caches keep nothing: definitions of tables are unknown");
        }
    }
}

/// Reads the definitions of all clusters, and where their primaries are: replicas that are there
/// have what was written until now, also by sessions that were not seen.
async fn learn(worker: &Worker, clusters: &[Cluster], known: &mut [Known]) -> Result<(), String> {
    let tables = &worker.gateway.tables;
    let doubts = tables.doubts();
    // Asked for behind the doubts: sessions that come from now on have raised them.
    if worker.gateway.has_unseen_sessions() {
        return Err(UNSEEN.to_owned());
    }
    if Cluster::disagree(clusters) {
        return Err(DISAGREEMENT.to_owned());
    }
    for (cluster, known) in clusters.iter().zip(&mut *known) {
        let Some(Primary { server: id, .. }) = cluster.primary() else {
            if known.definitions.is_none() {
                let names: Vec<_> = cluster.servers().map(|it| &*it.known.name).collect();
                return Err(format!("none of {} is the primary", names.join(", ")));
            }
            continue;
        };
        let server = &cluster.server(id).known;
        let told = read(worker, cluster, id).await;
        let name = &server.name;
        let (told, position) = told.map_err(|reason| format!("{name}: {reason}"))?;
        known.definitions = Some(told);
        known.has_positions = position.is_some();
        if let Some(position) = position {
            server.written.reach(position);
        }
        let all = cluster.servers().map(|it| &it.known.written);
        all.filter(|it| !Arc::ptr_eq(it, &server.written))
            .for_each(|it| it.forget());
    }
    let said = known.iter().flat_map(|it| it.definitions.iter().flatten());
    let said: Definitions = said.copied().collect();
    tables.learn(doubts, &said);
    Ok(())
}

/// Asks primaries up to where they have written, if a session has written and was not told where:
/// no replica is believed to have that. Sessions that read from replicas ask themselves, but others
/// never do. Returns whether any server was asked.
async fn locate_writes(worker: &Worker, clusters: &[Cluster], known: &[Known]) -> bool {
    let mut has_asked = false;
    for (cluster, known) in clusters.iter().zip(known) {
        let all = cluster.servers().map(|it| &it.known.written);
        let unlocated = all.filter_map(|it| Some((it, it.unlocated()?)));
        let unlocated: Vec<_> = unlocated.collect();
        let is_asked = known.has_positions && !unlocated.is_empty();
        let Some(primary) = cluster.primary().filter(|_| is_asked) else {
            continue;
        };
        has_asked = true;
        let Ok(mut server) = cluster.connect(worker, primary.server).await else {
            continue;
        };
        let position = ask_position(&mut server).await;
        server.close().await;
        for (written, seen) in unlocated {
            if let Ok(Some(position)) = &position {
                written.locate(seen, position);
            }
        }
    }
    has_asked
}

/// Asks a primary where it is. `None` if it names no transactions.
async fn ask_position(server: &mut Server) -> Result<Option<GtidPosition>, String> {
    let product = server.info().version.product;
    let rows = rows_of(server, position_question(product)).await?;
    let mut values = rows.into_iter().flatten();
    let text = values.next().flatten().map(String::from_utf8);
    let position = text.and_then(|it| position_of(product, &it.ok()?));
    Ok(position.filter(|it| !it.is_empty()))
}

type Definitions = Vec<(TableSlot, Trait)>;

/// What a primary says of its tables, and where it is.
async fn read(
    worker: &Worker,
    cluster: &Cluster,
    id: ServerId,
) -> Result<(Definitions, Option<GtidPosition>), String> {
    let mut server = cluster.connect(worker, id).await?;
    let told = match ask(&mut server).await {
        Ok(told) => ask_position(&mut server).await.map(|at| (told, at)),
        Err(reason) => Err(reason),
    };
    server.close().await;
    told
}

async fn ask(server: &mut Server) -> Result<Definitions, String> {
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
    // Many tables have one slot.
    said.sort_unstable();
    said.dedup();
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
