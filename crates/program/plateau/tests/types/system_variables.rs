//! The column types of system variables in results: MariaDB's column definitions.
//! `REFERENCE=mariadb` asks MariaDB instead, for the variables that it has.

use testkit::{Client, Launch, Outcome, Server, is_reference_asked};

const FLAG: &str = "type 8 length 1 decimals 0 flags 128";
const COUNT: &str = "type 8 length 21 decimals 0 flags 160";
const SIGNED: &str = "type 8 length 21 decimals 0 flags 128";
const SECONDS: &str = "type 5 length 21 decimals 6 flags 128";

const FLAGS: &[&str] = &[
    "autocommit",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "general_log",
    "innodb_file_per_table",
    "innodb_print_all_deadlocks",
    "innodb_read_only",
    "innodb_rollback_on_timeout",
    "innodb_stats_persistent",
    "innodb_strict_mode",
    "strict_reads",
    "local_infile",
    "log_bin",
    "log_bin_trust_function_creators",
    "old_passwords",
    "performance_schema",
    "profiling",
    "read_only",
    "require_secure_transport",
    "session_track_schema",
    "session_track_state_change",
    "skip_name_resolve",
    "skip_networking",
    "slow_query_log",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_log_bin",
    "sql_log_off",
    "sql_notes",
    "sql_quote_show_create",
    "sql_safe_updates",
    "sql_warnings",
    "transaction_read_only",
    "tx_read_only",
    "unique_checks",
    "wsrep_on",
];

const COUNTS: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "buffer_pool_size",
    "connect_timeout",
    "default_week_format",
    "div_precision_increment",
    "error_count",
    "flush_log_at_trx_commit",
    "group_concat_max_len",
    "identity",
    "idle_readonly_transaction_timeout",
    "idle_transaction_timeout",
    "idle_write_transaction_timeout",
    "in_transaction",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_lock_wait_timeout",
    "innodb_log_file_size",
    "innodb_page_size",
    "insert_id",
    "interactive_timeout",
    "join_buffer_size",
    "last_insert_id",
    "lock_table_size",
    "lock_wait_timeout",
    "log_size",
    "lower_case_table_names",
    "max_allowed_packet",
    "max_connections",
    "max_error_count",
    "max_heap_table_size",
    "max_join_size",
    "max_prepared_stmt_count",
    "max_session_mem_used",
    "max_sort_length",
    "max_sp_recursion_depth",
    "net_buffer_length",
    "net_read_timeout",
    "net_write_timeout",
    "packet_memory_size",
    "port",
    "protocol_version",
    "pseudo_thread_id",
    "query_cache_size",
    "rand_seed1",
    "rand_seed2",
    "row_lock_wait_timeout",
    "server_id",
    "server_memory_limit",
    "sort_buffer_size",
    "sql_select_limit",
    "statement_memory_size",
    "tmp_table_size",
    "wait_timeout",
    "warning_count",
];

const TIMES: &[&str] = &["long_query_time", "max_statement_time", "timestamp"];

/// Variables that SHOW VARIABLES omits here.
const NOT_SHOWN: &[&str] = &[
    "error_count",
    "identity",
    "in_transaction",
    "insert_id",
    "last_insert_id",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "timestamp",
    "warning_count",
];

fn start() -> Server {
    Launch::asked_for(env!("CARGO_BIN_EXE_plateau"))
        .start()
        .expect("a server")
}

/// The definition of a statement's first column, and the value; `None` for an unknown variable.
fn definition(client: &mut Client, statement: &str) -> Option<(String, String)> {
    let Ok(Outcome::Rows(result)) = client.query(statement) else {
        return None;
    };
    let column = &result.columns[0];
    let value = result.rows[0][0].clone().unwrap_or_default();
    let told = match column.kind {
        253 => "text".to_owned(),
        kind => format!(
            "type {kind} length {} decimals {} flags {}",
            column.length, column.decimals, column.flags
        ),
    };
    Some((told, String::from_utf8_lossy(&value).into_owned()))
}

#[test]
fn clients_are_told_the_types_of_system_variables() {
    let server = start();
    let mut client = server.connect().expect("a connection");
    let shown = client.rows("SHOW VARIABLES").expect("there are variables");
    let name_of = |row: &Vec<Option<Vec<u8>>>| {
        let name = row[0].clone().expect("a name");
        String::from_utf8(name).expect("a plain name")
    };
    let shown: Vec<String> = shown.iter().map(name_of).collect();
    let lists = [
        (FLAGS, FLAG),
        (COUNTS, COUNT),
        (TIMES, SECONDS),
        (
            &["innodb_autoinc_lock_mode", "max_user_connections"],
            SIGNED,
        ),
    ];
    let mut wrong = Vec::new();
    for (name, expected) in lists
        .iter()
        .flat_map(|(names, expected)| names.iter().map(move |name| (*name, *expected)))
    {
        if is_reference_asked() {
            continue;
        }
        let is_there = shown.iter().any(|it| it == name) || NOT_SHOWN.contains(&name);
        assert!(is_there, "{name} ({expected}) is not shown");
    }
    let names = shown
        .iter()
        .map(String::as_str)
        .chain(NOT_SHOWN.iter().copied());
    for name in names {
        let of_name = lists.iter().find(|(names, _)| names.contains(&name));
        if is_reference_asked() && of_name.is_none() {
            // MariaDB has many more.
            continue;
        }
        let expected = of_name.map_or("text", |(_, expected)| expected);
        let (told, value) = definition(&mut client, &format!("SELECT @@{name}")).expect(name);
        let is_flag = value == "0" || value == "1";
        if told != expected || (expected == FLAG && !is_flag) {
            wrong.push(format!("{name}: {told}, {value}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn texts_of_system_variables_are_utf8_whatever_the_connection() {
    let server = start();
    let mut client = server.connect().expect("a connection");
    client.run("SET NAMES latin1").expect("it is known");
    let mut value = |text: &str| client.value(text).expect(text).expect("it is not NULL");
    assert_eq!(value("SELECT COLLATION(@@version)"), "utf8mb3_general_ci");
    assert_eq!(value("SELECT COERCIBILITY(@@version)"), "3");
    assert_eq!(value("SELECT @@long_query_time + 1"), "11.000000");
    assert_eq!(value("SELECT @@server_id + @@autocommit"), "2");
    client
        .run("CREATE DATABASE d CHARACTER SET utf8mb4")
        .expect("there is none yet");
    client
        .run(
            "CREATE TABLE d.t AS SELECT @@autocommit a, @@max_connections b, @@long_query_time c, \
             @@completion_type d, @@max_user_connections e",
        )
        .expect("columns have types");
    let create = client.rows("SHOW CREATE TABLE d.t").expect("it is there");
    let create = create[0][1].clone().expect("a text");
    let create = String::from_utf8(create).expect("a text");
    for column in [
        "`a` bigint(1) DEFAULT NULL",
        "`b` bigint(21) unsigned DEFAULT NULL",
        "`c` double(21,6) DEFAULT NULL",
        "`d` varchar(8) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL",
        "`e` bigint(21) DEFAULT NULL",
    ] {
        assert!(create.contains(column), "{column}: {create}");
    }
}
