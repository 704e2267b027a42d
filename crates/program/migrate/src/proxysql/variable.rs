//! `mysql_variables` and `admin_variables`.

use crate::known::{Known, boolean, known, same};
use crate::note::{Kind, Note};
use crate::output::{Block, Output, seconds};
use crate::port::{no_port, port};

use super::File;
use super::cache::CacheVariables;
use super::query_log::EventLog;
use super::row::Row;

/// What a gateway can have of `mysql_variables`.
#[derive(Debug)]
pub(super) struct Variables<'a> {
    file: File<'a>,
    /// What is left of them.
    pub(super) mysql: Row<'a>,
    monitor: Monitor,
    pub(super) cache: CacheVariables,
    pub(super) events: EventLog<'a>,
    /// Values of each service.
    service: Vec<(&'static str, toml::Value)>,
}

#[derive(Debug)]
struct Monitor {
    user: String,
    password: String,
    /// Milliseconds.
    interval: Option<u64>,
    /// Milliseconds.
    timeout: Option<u64>,
    failures: Option<u64>,
}

/// Name and password of ProxySQL's monitor, if its file does not say them.
const MONITOR: &str = "monitor";

/// Ten hours and a day: what ProxySQL's own file and its defaults have, and no statement takes.
const QUERY_TIMEOUTS_MS: [u64; 2] = [36_000_000, 86_400_000];

/// How long a statement waits for a server, as here.
const WAIT_MS: u64 = 10_000;

/// How long a client may be silent in a transaction.
const IDLE_TRANSACTION_MS: u64 = 14_400_000;

/// Takes what monitors and services have.
pub(super) fn read<'a>(file: &File<'a>) -> Variables<'a> {
    let mut row = file.group("mysql_variables");
    let timeouts = [
        row.count(&["monitor_connect_timeout"]),
        row.count(&["monitor_ping_timeout"]),
        row.count(&["monitor_read_only_timeout"]),
    ];
    let failures = [
        row.count(&["monitor_ping_max_failures"]),
        row.count(&["monitor_read_only_max_timeout_count"]),
    ];
    let monitor = Monitor {
        user: row
            .text(&["monitor_username"])
            .unwrap_or(MONITOR)
            .to_owned(),
        password: row
            .text(&["monitor_password"])
            .unwrap_or(MONITOR)
            .to_owned(),
        interval: row.count(&["monitor_read_only_interval"]),
        timeout: timeouts.into_iter().flatten().max(),
        failures: failures.into_iter().flatten().max(),
    };
    let text = format!(
        "the account of the monitor also reads the accounts: GRANT SELECT ON mysql.* TO {0}@..; \
         GRANT SLAVE MONITOR ON *.* TO {0}@..",
        monitor.user
    );
    row.note("monitor_username", Kind::ToDo, text);
    let service = service(&mut row);
    let cache = CacheVariables::read(&mut row);
    let events = EventLog::read(&mut row);
    Variables {
        file: *file,
        mysql: row,
        monitor,
        cache,
        events,
        service,
    }
}

fn service(row: &mut Row<'_>) -> Vec<(&'static str, toml::Value)> {
    let mut values: Vec<(&'static str, toml::Value)> = Vec::new();
    if row.boolean("multiplexing") == Some(false) {
        values.push(("multiplex", false.into()));
    }
    let mut limit = |name, from, usual: &[u64]| {
        if let Some(value) = row.count(&[from]).filter(|it| !usual.contains(it)) {
            values.push((name, seconds(value)));
        }
    };
    limit("wait", "connect_timeout_server_max", &[WAIT_MS]);
    limit(
        "max_statement_time",
        "default_query_timeout",
        &QUERY_TIMEOUTS_MS,
    );
    limit(
        "idle_transaction_timeout",
        "max_transaction_idle_time",
        &[IDLE_TRANSACTION_MS],
    );
    values
}

impl Variables<'_> {
    pub(super) fn write_monitor(&self, block: &mut Block) {
        let monitor = &self.monitor;
        block.set("user", monitor.user.clone());
        block.set("password", monitor.password.clone());
        if let Some(interval) = monitor.interval {
            block.set("interval", seconds(interval.min(MONITOR_MS_MAX)));
        }
        if let Some(timeout) = monitor.timeout {
            block.set("timeout", seconds(timeout.min(MONITOR_MS_MAX)));
        }
        if let Some(failures @ 2..) = monitor.failures {
            block.set(
                "failures",
                i64::try_from(failures.min(FAILURES_MAX)).unwrap_or(1),
            );
        }
    }

    pub(super) fn write_service(&self, block: &mut Block) {
        for (name, value) in &self.service {
            block.set(name, value.clone());
        }
    }

    /// The variables once more, for a note.
    pub(super) fn mysql_row(&self) -> Row<'_> {
        self.file.group("mysql_variables")
    }

    /// Judges what was not taken.
    pub(super) fn finish(self, block: &mut Block) -> Vec<Note> {
        self.mysql.finish(OF_MYSQL, block)
    }
}

/// An hour: what a settings file takes.
const MONITOR_MS_MAX: u64 = 3_600_000;

const FAILURES_MAX: u64 = 1000;

/// Writes the settings in front of all sections, and returns the sections of operators.
pub(super) fn write(
    file: &File<'_>,
    variables: &mut Variables<'_>,
    output: &mut Output,
    notes: &mut Vec<Note>,
) -> Vec<Block> {
    let row = &mut variables.mysql;
    let head = &mut output.head;
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    if let Some(threads) = row.count(&["threads"]) {
        head.set("workers", whole(threads.min(255)));
    }
    // At this level, the log has the role of each server.
    head.set("log", "info");
    let connections = row.count(&["max_connections"]).unwrap_or(CLIENTS);
    head.set("max_connections", whole(connections.clamp(10, 100_000)));
    let packet = row.count(&["max_allowed_packet"]);
    head.set(
        "max_allowed_packet",
        whole(packet.unwrap_or(PACKET_BYTES).clamp(1 << 10, 1 << 30)),
    );
    if let Some(idle) = row
        .count(&["wait_timeout"])
        .filter(|it| *it != WAIT_TIMEOUT_MS)
    {
        head.set(
            "wait_timeout",
            whole(idle.div_ceil(1000).clamp(1, YEAR_SECONDS)),
        );
    }
    if row
        .text(&["enable_load_data_local_infile"])
        .and_then(boolean)
        == Some(false)
    {
        head.set("local_infile", "OFF");
    }
    if let Some(networks) = row.text(&["proxy_protocol_networks"]) {
        head.set("proxy_protocol_networks", networks);
    }
    admin(file, output, notes)
}

/// ProxySQL's defaults, where they are not a gateway's.
const CLIENTS: u64 = 10_000;
const PACKET_BYTES: u64 = 64 << 20;

/// That of both.
const WAIT_TIMEOUT_MS: u64 = 28_800_000;

const YEAR_SECONDS: u64 = 31_536_000;

fn admin(file: &File<'_>, output: &mut Output, notes: &mut Vec<Note>) -> Vec<Block> {
    let mut row = file.group("admin_variables");
    let mut admins = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for (setting, may) in [
        ("admin_credentials", "change"),
        ("stats_credentials", "read"),
    ] {
        let text = row.text(&[setting]).unwrap_or_default();
        for pair in text.split(';').map(str::trim).filter(|it| !it.is_empty()) {
            let (user, password) = pair.split_once(':').unwrap_or((pair, ""));
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            let is_short = (1..=64).contains(&user.len());
            if !is_short || !user.chars().all(is_name) || names.iter().any(|it| it == user) {
                let text = format!("`{user}` cannot be the name of an operator");
                row.note(setting, Kind::ToDo, text);
                continue;
            }
            names.push(user.to_owned());
            let mut block = Block::default();
            block.set("user", user);
            block.set("password", password);
            block.set("may", may);
            admins.push(block);
        }
    }
    let interfaces = row.text(&["mysql_ifaces"]).unwrap_or_default();
    let parts = interfaces
        .split([';', ','])
        .map(str::trim)
        .filter(|it| !it.is_empty());
    let (mut address, mut socket) = (None, None);
    for place in parts {
        let slot = match place.starts_with('/') {
            true => &mut socket,
            false => &mut address,
        };
        let is_valid = place.starts_with('/') || place.parse::<std::net::SocketAddr>().is_ok();
        if is_valid && slot.is_none() {
            *slot = Some(place);
        } else {
            let text = format!("operators have one address and one socket: `{place}` is left out");
            row.note("mysql_ifaces", Kind::ToDo, text);
        }
    }
    if !admins.is_empty() {
        for (name, place) in [("admin_listen", address), ("admin_socket", socket)] {
            if let Some(place) = place {
                output.head.set(name, place);
            }
        }
    }
    numbers(&mut row, output);
    let mut block = Block::default();
    notes.extend(row.finish(OF_ADMIN, &mut block));
    output.head.append(block);
    admins
}

/// The port of ProxySQL's REST interface.
const PORT_OF_NUMBERS: &str = "6070";

/// Numbers for Prometheus are at the port of ProxySQL's REST interface.
fn numbers(row: &mut Row<'_>, output: &mut Output) {
    let is_on = row.boolean("restapi_enabled") == Some(true);
    let text = row.text(&["restapi_port"]).unwrap_or(PORT_OF_NUMBERS);
    if !is_on {
        return;
    }
    let found = port(text);
    if found.is_none() {
        row.note("restapi_port", Kind::ToDo, no_port(text, PORT_OF_NUMBERS));
    }
    let port = found.map_or(PORT_OF_NUMBERS.to_owned(), |it| it.to_string());
    output.head.set("metrics_listen", format!("0.0.0.0:{port}"));
}

const NO_CLUSTER: &str = "gateways do not share their configuration: copy the file";

const OF_ADMIN: &[Known] = &[
    same("refresh_interval"),
    same("debug"),
    same("hash_passwords"),
    same("telnet_*"),
    same("read_only"),
    same("version"),
    same("checksum_*"),
    same("coredump_*"),
    same("vacuum_stats"),
    same("prometheus_memory_metrics_interval"),
    known(
        "stats_mysql_query_digest_to_disk",
        &["0"],
        Kind::LeftOut,
        "`plateau.statements` is in memory alone",
    ),
    same("stats_mysql_*"),
    same("stats_system_*"),
    same("stats_pgsql_*"),
    same("ssl_keylog_file"),
    known(
        "web_enabled",
        &["false"],
        Kind::LeftOut,
        "there is no page: numbers are at `/metrics`",
    ),
    same("web_port"),
    same("web_verbosity"),
    known("cluster_username", &[""], Kind::LeftOut, NO_CLUSTER),
    known("cluster_password", &[""], Kind::LeftOut, NO_CLUSTER),
    same("cluster_*"),
    same("pgsql_ifaces"),
];

const OF_MYSQL: &[Known] = &[
    same("eventslog_*"),
    known(
        "auditlog_filename",
        &[""],
        Kind::LeftOut,
        "logins are not logged; the log has orders of operators and changes of servers",
    ),
    same("auditlog_*"),
    known(
        "query_cache_handle_warnings",
        &["0", ""],
        Kind::Differs,
        "results with warnings are not kept",
    ),
    known(
        "query_cache_stores_empty_result",
        &["true"],
        Kind::Differs,
        "results without rows are kept, too",
    ),
    same("query_cache_*"),
    same("query_digests*"),
    same("commands_stats"),
    known(
        "default_schema",
        &["information_schema", ""],
        Kind::LeftOut,
        "a client that names no database has none",
    ),
    known(
        "server_version",
        &["5.1.30", "5.5.30", "8.0.11"],
        Kind::Differs,
        "clients are told the version of a server",
    ),
    same("server_capabilities"),
    known(
        "init_connect",
        &[""],
        Kind::Differs,
        "no statements are run when a session begins; `init_connect` of the servers is",
    ),
    known(
        "default_query_delay",
        &["0"],
        Kind::LeftOut,
        "statements are not delayed",
    ),
    known(
        "throttle_connections_per_sec_to_hostgroup",
        &["1000000"],
        Kind::LeftOut,
        "connections are made as they are needed, up to `max_connections`",
    ),
    known(
        "throttle_*",
        &["0"],
        Kind::LeftOut,
        "clients are not slowed down; `max_connections` of a server limits them",
    ),
    known(
        "max_transaction_time",
        &["14400000"],
        Kind::LeftOut,
        "transactions have no limit of time but `idle_transaction_timeout`",
    ),
    known(
        "automatic_detect_sqli",
        &["false"],
        Kind::LeftOut,
        "statements are not searched for attacks",
    ),
    known(
        "firewall_whitelist_enabled",
        &["false"],
        Kind::LeftOut,
        "there is no list of allowed statements: `refuse` of a rule names what is not",
    ),
    same("firewall_whitelist_errormsg"),
    same("have_ssl"),
    same("have_compress"),
    known(
        "ssl_p2s_*",
        &[""],
        Kind::ToDo,
        "`tls = \"verified\"` and `tls_authorities` of a `server` check its certificate; the \
         gateway shows none of its own",
    ),
    same("set_query_lock_on_hostgroup"),
    same("keep_multiplexing_variables"),
    known(
        "default_session_track_gtids",
        &["off", ""],
        Kind::Differs,
        "GTIDs are tracked anyway",
    ),
    known(
        "monitor_enabled",
        &["true"],
        Kind::Differs,
        "there is always a monitor",
    ),
    known(
        "monitor_writer_is_also_reader",
        &["true"],
        Kind::Differs,
        "the primary answers reads if no replica does",
    ),
    known(
        "monitor_replication_lag_use_percona_heartbeat",
        &[""],
        Kind::Differs,
        "lag is what the \
        replica says",
    ),
    known(
        "monitor_slave_lag_when_null",
        &["60"],
        Kind::Differs,
        "a replica that is not replicating serves nothing",
    ),
    same("monitor_*"),
    same("default_variables*"),
    same("default_*"),
    known(
        "kill_backend_connection_when_disconnect",
        &["true"],
        Kind::Differs,
        "a statement whose \
        client is gone is ended",
    ),
    same("client_found_rows"),
    known(
        "client_multi_statements",
        &["true"],
        Kind::LeftOut,
        "clients may always send several statements in a text",
    ),
    same("max_stmts_*"),
    known(
        "query_processor_iterations",
        &["0", "false"],
        Kind::Differs,
        "rules are looked at once",
    ),
    known(
        "query_processor_regex",
        &["1", "2", "true"],
        Kind::Differs,
        "patterns are regular expressions without references back",
    ),
    same("connpoll_reset_queue_length"),
    same("connect_*"),
    same("connection_*"),
    same("auto_increment_delay_multiplex*"),
    known(
        "add_ldap_user_comment",
        &[""],
        Kind::LeftOut,
        "no comments are added to statements",
    ),
    known(
        "ldap_user_variable",
        &[""],
        Kind::LeftOut,
        "accounts are those of the servers",
    ),
    same("aurora_max_lag_ms_only_read_from_replicas"),
    same("autocommit_false_*"),
    same("enforce_autocommit_on_reads"),
    same("forward_autocommit"),
    same("free_connections_pct"),
    same("session_idle_*"),
    same("session*"),
    same("ping_*"),
    same("poll_timeout*"),
    same("stacksize"),
    same("stats_time_*"),
    same("threshold_*"),
    same("shun_*"),
    same("reset_connection_algorithm"),
    same("servers_stats"),
    same("sessions_sort"),
    same("show_processlist_extended"),
    same("tcp_*"),
    same("use_tcp_keepalive"),
    same("verbose_query_error"),
    same("long_query_time"),
    same("log_*"),
    same("hostgroup_manager_verbose"),
    same("handle_unknown_charset"),
    same("enable_client_deprecate_eof"),
    same("enable_server_deprecate_eof"),
    same("query_retries_on_failure"),
    same("query_rules_fast_routing_algorithm"),
    same("client_host_*"),
    same("client_session_track_gtid"),
    same("max_transaction_*"),
    same("min_num_servers_lantency_awareness"),
    same("mirror*"),
    same("parse_failure_logs_digest"),
    same("processlist_max_query_length"),
    same("binlog_reader_connect_retry_msec"),
    same("data_packets_history_size"),
    same("evaluate_replication_lag_on_servers_load"),
    same("ignore_min_gtid_annotations"),
    same("unshun_algorithm"),
    same("wait_timeout"),
    same("connection_warming"),
    same("digest_*"),
    same("group_digests_*"),
];
