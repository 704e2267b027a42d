//! `type=service`: routers and their options.

use std::collections::HashSet;

use crate::known::{Known, boolean, differs, known, left_out, plain, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Names, Output, seconds, texts};

use super::ini::Section;
use super::monitor::Watch;
use super::{Configuration, Draft, Renamed, listener, monitor, unit};

/// A service that a gateway can have.
#[derive(Debug)]
pub(super) struct Service {
    /// The name of its section in MaxScale's file.
    pub(super) section: String,
    /// Its name in the settings file.
    pub(super) name: String,
    pub(super) router: Router,
    /// Its filters, in their order.
    pub(super) filters: Vec<String>,
    pub(super) limits: Limits,
    /// The cache of its results.
    cache: Option<String>,
    block: Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Router {
    ReadConnection,
    ReadWriteSplit,
}

/// What a service says of its clients, and a gateway of all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) connections: Option<u64>,
    /// Milliseconds.
    pub(super) idle: Option<u64>,
    /// Milliseconds.
    pub(super) write: Option<u64>,
}

impl Service {
    /// Has it keep results in this cache; the one that it has already is the error.
    pub(super) fn keep_in(&mut self, cache: &str) -> Result<(), String> {
        if let Some(other) = &self.cache {
            return Err(other.clone());
        }
        self.block.set("cache", cache);
        self.cache = Some(cache.to_owned());
        Ok(())
    }
}

/// The services that listeners lead to. The one of the first listener is first.
pub(super) fn read(
    configuration: &Configuration<'_>,
    servers: &Renamed,
    watches: &[Watch],
    notes: &mut Vec<Note>,
) -> Vec<Service> {
    let mut names = Names::default();
    let mut services = Vec::new();
    for section in configuration.all("service") {
        let mut draft = configuration.draft(section);
        let router = match draft.text(&["router"]) {
            Some("readwritesplit") => Router::ReadWriteSplit,
            Some("readconnroute") => Router::ReadConnection,
            other => {
                let router = other.unwrap_or_default();
                let text = format!("there is no router like `{router}`: its clients get nothing");
                notes.extend(draft.leave_out(Kind::LeftOut, text));
                continue;
            }
        };
        if !listener::has_any(configuration, &section.name) {
            let text = "no listener of clients leads to it";
            notes.extend(draft.leave_out(Kind::LeftOut, text));
            continue;
        }
        let name = names.make(&section.name);
        let found = servers_of(&mut draft, servers, watches);
        if found.is_empty() {
            let text = "it has no server that a monitor watches";
            notes.extend(draft.leave_out(Kind::ToDo, text));
            continue;
        }
        let mut block = Block::default();
        block.set("name", name.clone());
        if name != section.name {
            let text = format!("names have fewer signs here: it is `{name}`");
            draft.note_all(Kind::Differs, text);
        }
        if found.len() < servers.0.len() {
            block.set("servers", texts(found.clone()));
        }
        let mut filters = draft.text(&["filters"]).map(unit::list).unwrap_or_default();
        filters.dedup();
        account(&mut draft, watches, &found);
        match router {
            Router::ReadWriteSplit => split(configuration, &mut draft, &mut block, &filters),
            Router::ReadConnection => connection(&mut draft, &mut block),
        }
        let limits = limits(&mut draft);
        let known = match router {
            Router::ReadWriteSplit => OF_SPLIT,
            Router::ReadConnection => OF_CONNECTION,
        };
        notes.extend(draft.finish(&[known, KNOWN], &mut block));
        services.push(Service {
            section: section.name.clone(),
            name,
            router,
            filters: filters.into_iter().map(str::to_owned).collect(),
            limits,
            cache: None,
            block,
        });
    }
    let first = listener::first_of(configuration, &services);
    services.sort_by_key(|it| Some(&it.section) != first.as_ref());
    services
}

/// Writes the services.
pub(super) fn write(services: Vec<Service>, output: &mut Output) -> Vec<Service> {
    let write = |mut service: Service| {
        output.add("service", std::mem::take(&mut service.block));
        service
    };
    services.into_iter().map(write).collect()
}

/// The names of a service's servers, all of which one monitor watches.
fn servers_of(draft: &mut Draft<'_>, servers: &Renamed, watches: &[Watch]) -> Vec<String> {
    let mut found = monitor::named(draft, servers);
    if let Some(entry) = draft.take(&["cluster"]) {
        match watches.iter().find(|it| it.section == entry.value) {
            Some(watch) => found.extend(watch.servers.iter().cloned()),
            None => draft.note(entry, Kind::Unknown, "there is no such monitor"),
        }
    }
    if let Some(entry) = draft.take(&["targets"]) {
        for name in unit::list(&entry.value) {
            match servers.get(name) {
                Some(new) => found.push(new.to_owned()),
                None => {
                    let text = format!("`{name}` is no server, and services have servers alone");
                    draft.note(entry, Kind::LeftOut, text);
                }
            }
        }
    }
    let mut seen = HashSet::new();
    found.retain(|it| seen.insert(it.clone()));
    let count = |watch: &&Watch| found.iter().filter(|it| watch.servers.contains(it)).count();
    let Some(watch) = watches.iter().max_by_key(count) else {
        return Vec::new();
    };
    let all = found.len();
    found.retain(|it| watch.servers.contains(it));
    if found.len() < all && !found.is_empty() {
        let text = "one monitor watches all servers of a service: the others are left out";
        draft.note_all(Kind::ToDo, text);
    }
    found
}

/// Clients are let in by what the monitor's account reads.
fn account(draft: &mut Draft<'_>, watches: &[Watch], servers: &[String]) {
    let user = draft.take(&["user"]);
    let _ = draft.take(&["password", "passwd"]);
    let is_theirs = |it: &&Watch| servers.iter().all(|name| it.servers.contains(name));
    let Some((entry, watch)) = user.zip(watches.iter().find(is_theirs)) else {
        return;
    };
    if entry.value != watch.user {
        let watching = &watch.user;
        let text = format!(
            "the account of the monitor reads the accounts: GRANT SELECT ON mysql.* TO \
             {watching}@.. as this user has it"
        );
        draft.note(entry, Kind::ToDo, text);
    }
}

fn limits(draft: &mut Draft<'_>) -> Limits {
    let connections = draft.take(&["max_connections"]);
    let connections = connections.and_then(|it| it.value.parse().ok());
    Limits {
        connections: connections.filter(|it| *it != 0),
        idle: draft
            .milliseconds(&["wait_timeout", "connection_timeout"])
            .filter(|it| *it != 0),
        write: draft
            .milliseconds(&["net_write_timeout"])
            .filter(|it| *it != 0),
    }
}

fn connection(draft: &mut Draft<'_>, block: &mut Block) {
    let Some(entry) = draft.take(&["router_options"]) else {
        return;
    };
    let mut options = unit::list(&entry.value);
    options.sort_unstable();
    options.dedup();
    match options.as_slice() {
        ["master"] => block.set("role", "primary"),
        ["slave"] => block.set("role", "replica"),
        [] | ["running"] | ["synced"] | ["master", "slave"] => {}
        _ => {
            let text = "each server that is up is taken: roles are `any`, `primary` and `replica`";
            draft.note(entry, Kind::Differs, text);
        }
    }
}

fn split(
    configuration: &Configuration<'_>,
    draft: &mut Draft<'_>,
    block: &mut Block,
    filters: &[&str],
) {
    block.set("router", "read-write-split");
    if let Some(lag @ 1..) =
        draft.milliseconds(&["max_replication_lag", "max_slave_replication_lag"])
    {
        block.set("lag_max", seconds(lag));
    }
    causal_reads(configuration, draft, block, filters);
    balance(draft, block);
    let is_retried = draft.take(&["delayed_retry"]);
    let wait = draft.milliseconds(&["delayed_retry_timeout"]);
    match is_retried.map(|it| (it, boolean(&it.value))) {
        Some((_, Some(true))) => {
            if let Some(wait) = wait {
                block.set("wait", seconds(wait));
            }
        }
        Some((entry, _)) => {
            let text = "a statement waits up to 10 s for a server that may take it: `wait`";
            draft.note(entry, Kind::Differs, text);
        }
        None => {}
    }
    if let Some(entry) = draft.take(&["router_options"]) {
        let text = "options of the router stand in the service itself: move them there, and \
                    translate again";
        draft.note(entry, Kind::ToDo, text);
    }
}

fn causal_reads(
    configuration: &Configuration<'_>,
    draft: &mut Draft<'_>,
    block: &mut Block,
    filters: &[&str],
) {
    let is_of = |it: &&Section, module: &str| {
        filters.contains(&it.name.as_str()) && it.value("module") == Some(module)
    };
    let after_writes = configuration
        .all("filter")
        .find(|it| is_of(it, "ccrfilter"));
    let entry = draft.take(&["causal_reads"]);
    let timeout = draft.milliseconds(&["causal_reads_timeout"]);
    let waits =
        |block: &mut Block| block.set("causal_reads_timeout", seconds(timeout.unwrap_or(10_000)));
    let value = entry.map(|it| plain(&it.value));
    match value.as_deref() {
        None | Some("false" | "none") => match after_writes {
            None => block.explain(
                "causal_reads",
                "off",
                "As in MaxScale. Without this line, sessions read what they wrote.",
            ),
            Some(filter) if !super::is_off(filter, "global") => {
                block.set("causal_reads", "service")
            }
            Some(_) => {}
        },
        Some("true" | "local") => waits(block),
        Some("fast") => {}
        Some("global") => {
            block.set("causal_reads", "service");
            waits(block);
        }
        Some("fast_global") => block.set("causal_reads", "service"),
        Some(_) => {
            block.set("causal_reads", "service");
            waits(block);
            if let Some(entry) = entry {
                let text = "the primary is not asked before each read: a read sees the writes of \
                            all sessions of this gateway, and not those of others";
                draft.note(entry, Kind::Differs, text);
            }
        }
    }
}

fn balance(draft: &mut Draft<'_>, block: &mut Block) {
    let Some(entry) = draft.take(&["slave_selection_criteria"]) else {
        return;
    };
    match entry.value.to_ascii_lowercase().as_str() {
        "least_current_operations" => {}
        "adaptive_routing" => block.set("balance", "response-time"),
        _ => {
            let text = "reads go to the replica with the fewest statements under way";
            draft.note(entry, Kind::Differs, text);
        }
    }
}

/// Of `readwritesplit`.
const OF_SPLIT: &[Known] = &[
    differs(
        "max_slave_connections",
        "a session takes a connection of any replica when it needs one",
    ),
    same("slave_connections"),
    known(
        "master_accept_reads",
        &["false"],
        Kind::LeftOut,
        "the primary answers reads if no replica does",
    ),
    same("retry_failed_reads"),
    known(
        "master_failure_mode",
        &["fail_on_write"],
        Kind::Differs,
        "without a primary reads go on, and a write waits for up to `wait` seconds, then error \
         1429",
    ),
    same("master_reconnection"),
    known(
        "transaction_replay",
        &["false"],
        Kind::LeftOut,
        "a transaction is not replayed: if its server is lost, its session ends with error 1158",
    ),
    left_out("transaction_replay_*", "transactions are not replayed"),
    known(
        "optimistic_trx",
        &["false"],
        Kind::LeftOut,
        "a transaction that may write is on the primary; one of START TRANSACTION READ ONLY is on \
         a replica",
    ),
    known(
        "use_sql_variables_in",
        &["all"],
        Kind::Differs,
        "what another server would compute alike is set on each connection; other assignments pin \
         their session",
    ),
    known(
        "strict_multi_stmt",
        &["false"],
        Kind::Differs,
        "several statements in a text go to the primary, and the session goes on as before",
    ),
    known(
        "strict_sp_calls",
        &["false"],
        Kind::Differs,
        "a call goes to the primary, and the session goes on as before",
    ),
    same("strict_tmp_tables"),
    same("reuse_prepared_statements"),
    left_out("sync_transaction", "no reply is kept back for replicas"),
];

/// Of `readconnroute`.
const OF_CONNECTION: &[Known] = &[
    known(
        "master_accept_reads",
        &["true"],
        Kind::Differs,
        "`role = \"replica\"` takes the primary only if there is no replica",
    ),
    known(
        "max_replication_lag",
        &["0", "0s", "0ms"],
        Kind::ToDo,
        "`lag_max` of the section `monitor` keeps replicas out that are behind, for all services",
    ),
];

/// Of any service.
const KNOWN: &[Known] = &[
    known(
        "enable_root_user",
        &["true"],
        Kind::Differs,
        "root may log in if the servers let it in from the gateway's host",
    ),
    same("auth_all_servers"),
    same("localhost_match_wildcard_host"),
    same("strip_db_esc"),
    same("log_auth_warnings"),
    same("rank"),
    known(
        "auto_tune",
        &[""],
        Kind::LeftOut,
        "nothing is read from the servers: `wait_timeout` and `max_allowed_packet` are settings",
    ),
    known(
        "connection_keepalive",
        &["0", "0s"],
        Kind::Differs,
        "idle sessions hold no connection, so none has to be kept alive",
    ),
    same("force_connection_keepalive"),
    same("session_trace"),
    same("session_track_trx_state"),
    same("lazy_connect"),
    left_out("weightby", "servers have no weight"),
    same("idle_session_pool_time"),
    same("multiplex_timeout"),
    left_out("version_string", "clients are told the version of a server"),
    left_out(
        "connection_init_sql_file",
        "no statements are run when a session begins",
    ),
    left_out(
        "user_accounts_file*",
        "accounts are those of the servers alone",
    ),
    left_out(
        "user_mapping_file",
        "accounts are those of the servers alone",
    ),
    known(
        "disable_sescmd_history",
        &["false"],
        Kind::Differs,
        "what sessions set is always kept, so that another connection can be given it",
    ),
    differs(
        "max_sescmd_history",
        "sessions keep up to 64 commands that differ; one with more stays at its connection",
    ),
    same("prune_sescmd_history"),
    known(
        "retain_last_statements",
        &["-1", "0"],
        Kind::LeftOut,
        "the log has no statements: `[query_log]` writes them",
    ),
    left_out("log_*", "`log` says for all services what is logged"),
];
