//! The section `[maxscale]`, and what a gateway says once for all services.

use crate::known::{Known, boolean, differs, known, left_out, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Output};

use super::service::{Limits, Service};
use super::{Configuration, Draft, listener};

/// Most threads that a settings file takes.
const WORKERS_MAX: u64 = 255;

/// Most clients that a settings file takes, and the fewest.
const CLIENTS_MAX: u64 = 100_000;
const CLIENTS_MIN: u64 = 10;

/// Writes the settings in front of all sections.
pub(super) fn translate(
    configuration: &Configuration<'_>,
    services: &[Service],
    output: &mut Output,
    notes: &mut Vec<Note>,
) {
    let mut level = "info";
    for section in configuration.all("maxscale") {
        let mut draft = configuration.draft(section);
        if let Some(entry) = draft.take(&["threads"])
            && !entry.value.eq_ignore_ascii_case("auto")
        {
            match entry.value.parse::<u64>() {
                Ok(threads) => {
                    let threads = i64::try_from(threads.min(WORKERS_MAX)).unwrap_or_default();
                    output.head.set("workers", threads);
                }
                Err(_) => draft.note(entry, Kind::Unknown, "its value is no number"),
            }
        }
        level = log_level(&mut draft);
        let _ = draft.take(&["proxy_protocol_networks"]);
        if section
            .value("admin_host")
            .or(section.value("admin_port"))
            .is_some()
        {
            let text = "there is no REST API and no `maxctrl`: a section `admin` opens \
                        `admin_listen`, and tables tell the same in SQL";
            draft.note_all(Kind::ToDo, text);
        }
        notes.extend(draft.finish(&[KNOWN], &mut output.head));
    }
    // At this level, the log has the role of each server.
    output.head.set("log", level);
    if let Some(networks) = listener::proxy_networks(configuration) {
        output.head.set("proxy_protocol_networks", networks);
    }
    listener::tls(configuration, services, output, notes);
}

fn log_level(draft: &mut Draft<'_>) -> &'static str {
    let mut is = |name: &'static str| draft.text(&[name]).and_then(boolean);
    let [debug, info, notice, warning] = [
        is("log_debug"),
        is("log_info"),
        is("log_notice"),
        is("log_warning"),
    ];
    match (debug, info, notice, warning) {
        (Some(true), ..) => "debug",
        (_, Some(true), ..) => "info",
        (_, _, Some(false), Some(false)) => "error",
        (_, _, Some(false), _) => "warn",
        _ => "info",
    }
}

/// Writes what services say of their clients: one value for all.
pub(super) fn limits(services: &[Limits], output: &mut Output) {
    let connections: Vec<u64> = services.iter().filter_map(|it| it.connections).collect();
    let is_limited = connections.len() == services.len();
    match is_limited {
        true => {
            let sum = connections
                .iter()
                .fold(0, |sum: u64, it| sum.saturating_add(*it));
            set(
                &mut output.head,
                "max_connections",
                sum.clamp(CLIENTS_MIN, CLIENTS_MAX),
            );
        }
        false => output.head.explain(
            "max_connections",
            i64::try_from(CLIENTS_MAX).unwrap_or_default(),
            "MaxScale has no limit of clients, or not in each service. The default is 1040.",
        ),
    }
    output.head.explain(
        "max_allowed_packet",
        "1G",
        "MaxScale has no limit of its own, only the servers have. The default is 16M.",
    );
    let idle = services.iter().map(|it| it.idle);
    limit_of_time("wait_timeout", idle, &mut output.head);
    let write = services.iter().map(|it| it.write);
    limit_of_time("net_write_timeout", write, &mut output.head);
}

/// Writes the longest limit of all services, in milliseconds, if there is one.
fn limit_of_time(
    name: &'static str,
    limits: impl Iterator<Item = Option<u64>> + Clone,
    head: &mut Block,
) {
    let Some(milliseconds) = limits.clone().flatten().max() else {
        return;
    };
    match limits.clone().all(|it| it.is_some()) {
        true => set(
            head,
            name,
            milliseconds.div_ceil(1000).clamp(1, YEAR_SECONDS),
        ),
        false => head.explain(
            name,
            i64::try_from(YEAR_SECONDS).unwrap_or_default(),
            "Not each service of MaxScale has a limit, and here all have the same.",
        ),
    }
}

const YEAR_SECONDS: u64 = 31_536_000;

fn set(block: &mut Block, name: &'static str, value: u64) {
    block.set(name, i64::try_from(value).unwrap_or(i64::MAX));
}

/// Why a path means nothing.
const PATHS: &str = "`data` is the folder of keys and sockets, and there are no others";

const KNOWN: &[Known] = &[
    same("auth_connect_timeout"),
    same("auth_read_timeout"),
    same("auth_write_timeout"),
    same("skip_name_resolve"),
    same("host_cache_size"),
    same("key_manager*"),
    same("load_persisted_configs"),
    same("persist_runtime_changes"),
    same("log_augmentation"),
    same("log_throttling"),
    same("log_warn_super_user"),
    same("ms_timestamp"),
    same("syslog"),
    same("maxlog"),
    same("passive"),
    same("query_classifier*"),
    same("query_retries"),
    same("query_retry_timeout"),
    same("rebalance_*"),
    same("substitute_variables"),
    same("writeq_*"),
    same("local_address"),
    same("max_read_amount"),
    same("threads_max"),
    same("users_refresh_*"),
    same("debug"),
    same("dump_last_statements"),
    same("trace_file_*"),
    same("max_auth_errors_until_block"),
    known(
        "log_*",
        &["false"],
        Kind::Differs,
        "the log is standard error, and `log` is its level",
    ),
    known(
        "admin_enabled",
        &["false"],
        Kind::LeftOut,
        "there is no REST API",
    ),
    same("admin_host"),
    same("admin_port"),
    left_out("admin_*", "there is no REST API"),
    left_out("maxctrl_*", "there is no REST API"),
    left_out(
        "config_sync_*",
        "gateways do not share their configuration: copy the file",
    ),
    differs("datadir", PATHS),
    differs("logdir", "the log is standard error"),
    differs("cachedir", PATHS),
    differs("piddir", PATHS),
    differs("libdir", PATHS),
    differs("sharedir", PATHS),
    differs("execdir", PATHS),
    differs("language", PATHS),
    differs("persistdir", PATHS),
    differs("module_configdir", PATHS),
    differs("connector_plugindir", PATHS),
    left_out("event.*", "events have no levels of their own"),
    known(
        "sql_mode",
        &["default"],
        Kind::LeftOut,
        "statements are read as the session's `sql_mode` says",
    ),
    same("sql_batch_size"),
    known(
        "auto_tune",
        &[""],
        Kind::LeftOut,
        "nothing is read from the servers: `wait_timeout` and `max_allowed_packet` are settings",
    ),
    known(
        "retain_last_statements",
        &["0", "-1"],
        Kind::LeftOut,
        "the log has no statements: `[query_log]` writes them",
    ),
    known(
        "session_trace*",
        &["0", ""],
        Kind::LeftOut,
        "the log has no trace of sessions",
    ),
    left_out("telemetry*", "numbers are at `/metrics`, for Prometheus"),
    left_out("secretsdir", "passwords stand in the file in clear"),
];
