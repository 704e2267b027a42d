//! All settings, by MySQL's names. Defaults are MariaDB 10.11's unless the text says why not.

use crate::kind::Kind;
use crate::setting::{
    Setting, fixed, fixed_flag, fixed_number, global, number, session, size, start,
};

/// A year in seconds, the longest idle time of a connection in MySQL.
const YEAR_S: u64 = 31_536_000;

/// The most that a packet's length in three bytes, continued, may add up to in MySQL.
const PACKET_BYTES_MAX: u64 = 1 << 30;

const NO_LIMIT: u64 = u64::MAX;

/// Character sets of clients.
const CLIENT_CHARSETS: Kind = Kind::Choice(&[
    "ascii", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp866", "cp932", "euckr", "gb2312",
    "gbk", "greek", "hebrew", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macroman",
    "sjis", "tis620", "utf8mb3", "utf8mb4",
]);

/// Character sets of columns.
const CHARSETS: Kind = Kind::Choice(&["ascii", "binary", "latin1", "utf8mb3", "utf8mb4"]);

const ISOLATION: Kind = Kind::Choice(&[
    "READ-UNCOMMITTED",
    "READ-COMMITTED",
    "REPEATABLE-READ",
    "SERIALIZABLE",
]);

/// The words of `sql_mode`, some of which stand for several.
const SQL_MODES: Kind = Kind::Flags {
    words: &crate::sql_mode::WORDS,
    refused: &crate::sql_mode::WORDS_NOT_BUILT,
};

/// Every setting, by subject.
pub const TABLE: &[Setting] = &[
    // Where the server listens and keeps its data.
    start(
        "listen",
        Kind::AddressOrNone,
        "127.0.0.1:4006",
        "Address and port for clients; empty: no TCP.",
    )
    .hidden(),
    start(
        "socket",
        Kind::Text,
        "plateau.sock",
        "Path of the unix socket, relative to the data directory; empty: no socket.",
    ),
    start(
        "metrics_listen",
        Kind::AddressOrNone,
        "",
        "Address and port of /metrics and /health over HTTP; empty: none.",
    ),
    start(
        "admin_listen",
        Kind::AddressOrNone,
        "",
        "Address and port at which a gateway shows its own tables; empty: none. It is open if \
         there is a section `admin`.",
    ),
    start(
        "admin_socket",
        Kind::Text,
        "admin.sock",
        "Path of the unix socket at which a gateway shows its own tables, relative to the data \
         directory; empty: no socket. It is open if there is a section `admin`.",
    ),
    start(
        "data",
        Kind::Text,
        "./plateau-data",
        "The data directory; created if it is missing.",
    )
    .alias(&["datadir"]),
    start(
        "io",
        Kind::Choice(&["auto", "uring", "epoll"]),
        "auto",
        "How workers wait for sockets and files; auto: io_uring if the kernel allows it.",
    )
    .hidden(),
    start(
        "log",
        Kind::Text,
        "warn",
        "What is logged to standard error: off, error, warn, info, debug, trace; for one part: \
         `front=debug`.",
    )
    .hidden(),
    start(
        "workers",
        number(0, 255),
        "0",
        "Worker threads, at most 255; 0: one for each processor.",
    )
    .hidden(),
    // Connections.
    global(
        "max_connections",
        number(10, 100_000),
        "1040",
        "Clients at one time; one more connection is kept free for an administrator. As many \
         others may be logging in; beyond, the oldest login is ended.",
    ),
    global(
        "connect_timeout",
        number(2, YEAR_S),
        "10",
        "Seconds for a client to log in.",
    ),
    global(
        "max_concurrent_transactions",
        Kind::CountOrAuto { max: 100_000 },
        "auto",
        "Transactions that may be inside the engine at a time; others wait at BEGIN or their first \
         statement. auto: the server finds the number. A limit lets in at least one for each \
         worker. Reads that are their own transaction and lock no rows do not count, nor does a \
         transaction whose client is silent.",
    ),
    session(
        "wait_timeout",
        number(1, YEAR_S),
        "28800",
        "Seconds after which an idle client is closed.",
    ),
    session(
        "interactive_timeout",
        number(1, YEAR_S),
        "28800",
        "`wait_timeout` of clients that say they are interactive.",
    ),
    session(
        "idle_transaction_timeout",
        number(0, YEAR_S),
        "0",
        "Seconds after which a client that is idle in a transaction is closed; its transaction is \
         rolled back. 0: `wait_timeout` alone.",
    ),
    session(
        "idle_readonly_transaction_timeout",
        number(0, YEAR_S),
        "0",
        "`idle_transaction_timeout` of transactions that have changed nothing. 0: \
         `idle_transaction_timeout`.",
    ),
    session(
        "idle_write_transaction_timeout",
        number(0, YEAR_S),
        "0",
        "`idle_transaction_timeout` of transactions that have changed something. 0: \
         `idle_transaction_timeout`.",
    ),
    session(
        "net_read_timeout",
        number(1, YEAR_S),
        "30",
        "Seconds for the rest of a packet to come.",
    ),
    session(
        "net_write_timeout",
        number(1, YEAR_S),
        "60",
        "Seconds for a client to take more of its reply, however much there is.",
    ),
    session(
        "net_buffer_length",
        size(1024, 1 << 20),
        "16384",
        "Reported to clients; buffers grow and shrink as needed.",
    ),
    session(
        "max_allowed_packet",
        size(1024, PACKET_BYTES_MAX),
        "16M",
        "The largest packet and the longest value; taken from the global value at login.",
    ),
    global(
        "local_infile",
        Kind::Bool,
        "ON",
        "Whether LOAD DATA LOCAL may ask clients for files.",
    ),
    global(
        "max_prepared_stmt_count",
        number(0, 1_048_576),
        "16382",
        "Prepared statements of all sessions together.",
    ),
    start("tls", Kind::Bool, "ON", "Whether clients may ask for TLS.").hidden(),
    start(
        "tls_certificate",
        Kind::Text,
        "",
        "Path of a PEM certificate chain; empty: one is created in the data directory.",
    )
    .alias(&["ssl_cert"]),
    start(
        "tls_key",
        Kind::Text,
        "",
        "Path of the certificate's PEM key.",
    )
    .alias(&["ssl_key"]),
    global(
        "require_secure_transport",
        Kind::Bool,
        "OFF",
        "Whether clients must use TLS or the unix socket.",
    ),
    start(
        "proxy_protocol_networks",
        Kind::Text,
        "",
        "Whose connections may begin with a header of the PROXY protocol, which names the client: \
         addresses and networks (`10.0.0.0/8`), separated by commas; `localhost`: unix sockets and \
         loopback; `*`: all; empty: none.",
    ),
    // Storage.
    start(
        "buffer_pool_size",
        size(5 << 20, 1 << 44),
        "128M",
        "Memory for pages.",
    )
    .alias(&["innodb_buffer_pool_size"]),
    start(
        "statement_memory_size",
        size(1 << 20, 1 << 44),
        "2G",
        "Memory for what all sessions and their statements keep together (max_session_mem_used). \
         What sessions keep between statements (user variables, prepared statements, cursors) may \
         be half of it. Error 1041 beyond.",
    ),
    start(
        "packet_memory_size",
        size(1 << 20, 1 << 44),
        "256M",
        "Memory for statements and other packets of more than 64 KiB that clients are sending or \
         have sent. An account may use half of it. A packet without room waits for \
         net_read_timeout, then error 1041 ends the connection.",
    ),
    start(
        "server_memory_limit",
        size(0, 1 << 44),
        "0",
        "Resident memory of the process beyond which statements get no more memory (error 1041). \
         Pages, locks, packets and sessions count. 0: no limit.",
    ),
    start(
        "lock_table_size",
        size(1 << 20, 1 << 44),
        "4G",
        "Memory for row locks: 220 bytes each, 6 in transactions with thousands. Error 1206 \
         beyond, and the transaction is rolled back; one may use seven eighths of it.",
    ),
    start(
        "log_size",
        size(32 << 20, 1 << 40),
        "96M",
        "Size of the redo log on disk.",
    )
    .alias(&["innodb_log_file_size"]),
    global(
        "flush_log_at_trx_commit",
        number(0, 3),
        "1",
        "1 and 3: a commit is on disk when it is acknowledged; 2: written, and flushed each \
         second; 0: written and flushed each second.",
    )
    .alias(&["innodb_flush_log_at_trx_commit"]),
    session(
        "row_lock_wait_timeout",
        number(0, 100_000_000),
        "50",
        "Seconds to wait for a row's lock.",
    )
    .alias(&["innodb_lock_wait_timeout"]),
    global(
        "strict_reads",
        Kind::Bool,
        "OFF",
        "A reply waits until all commits that it could have seen are on disk.",
    ),
    global(
        "innodb_print_all_deadlocks",
        Kind::Bool,
        "OFF",
        "Writes a report of each deadlock to the log, at most ten a second.",
    ),
    session(
        "lock_wait_timeout",
        number(0, YEAR_S),
        "86400",
        "Seconds to wait for a table's definition.",
    ),
    fixed_number("innodb_page_size", "16384", "Bytes in a page."),
    global(
        "innodb_file_per_table",
        Kind::Only(true),
        "ON",
        "Each table has a file of its own.",
    ),
    session(
        "innodb_strict_mode",
        Kind::Bool,
        "ON",
        "Accepted for dumps; table options are always checked alike.",
    ),
    fixed_number(
        "innodb_autoinc_lock_mode",
        "2",
        "No statement keeps others from taking numbers for AUTO_INCREMENT.",
    ),
    global(
        "innodb_default_row_format",
        Kind::Choice(&["dynamic"]),
        "dynamic",
        "Rows have one format, which stores long values in pages of their own.",
    ),
    fixed(
        "innodb_flush_method",
        "O_DIRECT",
        "Pages of tables do not go through the kernel's cache.",
    ),
    fixed_flag("innodb_read_only", "OFF", "The engine takes writes."),
    global(
        "innodb_stats_persistent",
        Kind::Only(true),
        "ON",
        "Accepted; the engine counts rows and keys when it needs them.",
    ),
    fixed_flag(
        "innodb_rollback_on_timeout",
        "OFF",
        "A wait for a lock that is over rolls back its statement alone.",
    ),
    session(
        "max_sp_recursion_depth",
        number(0, 255),
        "0",
        "How deep a stored procedure may call itself.",
    ),
    session(
        "sql_mode",
        SQL_MODES,
        "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,\
         NO_ENGINE_SUBSTITUTION",
        "How strict and in which dialect.",
    ),
    session(
        "autocommit",
        Kind::Bool,
        "ON",
        "Whether each statement is a transaction.",
    ),
    session(
        "tx_isolation",
        ISOLATION,
        "REPEATABLE-READ",
        "Isolation of later transactions.",
    )
    .alias(&["transaction_isolation"]),
    session(
        "tx_read_only",
        Kind::Bool,
        "OFF",
        "Whether later transactions may only read.",
    )
    .alias(&["transaction_read_only"]),
    session(
        "completion_type",
        Kind::Choice(&["NO_CHAIN", "CHAIN", "RELEASE"]),
        "NO_CHAIN",
        "What follows a COMMIT or ROLLBACK.",
    ),
    session(
        "auto_increment_increment",
        number(1, 65535),
        "1",
        "Step of AUTO_INCREMENT.",
    ),
    session(
        "auto_increment_offset",
        number(1, 65535),
        "1",
        "First value of AUTO_INCREMENT.",
    ),
    session(
        "time_zone",
        Kind::Text,
        "SYSTEM",
        "`SYSTEM` (the machine's), `+hh:mm` or a name, as in Europe/Paris.",
    ),
    session(
        "character_set_server",
        CHARSETS,
        "utf8mb4",
        "Of databases without their own; MariaDB: latin1.",
    ),
    session(
        "collation_server",
        Kind::Text,
        "utf8mb4_general_ci",
        "Of databases without their own; MariaDB: latin1_swedish_ci.",
    ),
    session(
        "character_set_client",
        CLIENT_CHARSETS,
        "utf8mb4",
        "Of statements; set at login.",
    ),
    session(
        "character_set_connection",
        CLIENT_CHARSETS,
        "utf8mb4",
        "Of literals; set at login.",
    ),
    session(
        "character_set_results",
        Kind::Text,
        "utf8mb4",
        "Of results; set at login; NULL: as stored.",
    ),
    session(
        "character_set_database",
        CHARSETS,
        "utf8mb4",
        "Of the current database.",
    ),
    session(
        "collation_connection",
        Kind::Text,
        "utf8mb4_general_ci",
        "Of literals.",
    ),
    session(
        "collation_database",
        Kind::Text,
        "utf8mb4_general_ci",
        "Of the current database.",
    ),
    fixed("character_set_filesystem", "binary", "Of file names."),
    fixed("character_set_system", "utf8mb3", "Of names."),
    session(
        "foreign_key_checks",
        Kind::Bool,
        "ON",
        "Accepted for dumps; foreign keys are not supported yet.",
    ),
    session(
        "alter_algorithm",
        Kind::Choice(&["DEFAULT", "COPY", "INPLACE", "NOCOPY", "INSTANT"]),
        "DEFAULT",
        "The ALGORITHM of an ALTER TABLE that names none.",
    ),
    session(
        "unique_checks",
        Kind::Bool,
        "ON",
        "Accepted for dumps; uniqueness always holds.",
    ),
    session(
        "sql_safe_updates",
        Kind::Bool,
        "OFF",
        "Whether UPDATE and DELETE need a key or a LIMIT.",
    ),
    session(
        "sql_select_limit",
        number(0, NO_LIMIT),
        "18446744073709551615",
        "Rows of a SELECT that has no LIMIT.",
    ),
    session(
        "sql_auto_is_null",
        Kind::Only(false),
        "OFF",
        "`id IS NULL` finds rows without an id alone.",
    ),
    session(
        "sql_big_selects",
        Kind::Bool,
        "ON",
        "Whether a SELECT may read more rows than `max_join_size`.",
    ),
    session(
        "max_join_size",
        number(1, NO_LIMIT),
        "18446744073709551615",
        "Rows that a SELECT may be expected to read; setting it turns `sql_big_selects` off.",
    ),
    session(
        "sql_quote_show_create",
        Kind::Only(true),
        "ON",
        "SHOW CREATE quotes names.",
    ),
    session(
        "sql_notes",
        Kind::Bool,
        "ON",
        "Whether notes count as warnings.",
    ),
    session(
        "sql_warnings",
        Kind::Bool,
        "OFF",
        "Whether INSERT reports its warnings.",
    ),
    session(
        "sql_log_bin",
        Kind::Bool,
        "ON",
        "Accepted for dumps; there is no binary log.",
    ),
    global(
        "log_bin_trust_function_creators",
        Kind::Bool,
        "OFF",
        "Accepted for dumps; there is no binary log.",
    ),
    session(
        "explicit_defaults_for_timestamp",
        Kind::Only(true),
        "ON",
        "A TIMESTAMP has no default and takes NULL unless its definition says otherwise.",
    ),
    session(
        "old_passwords",
        Kind::Only(false),
        "OFF",
        "PASSWORD() does not create hashes of versions before MySQL 4.1.",
    ),
    session(
        "sql_log_off",
        Kind::Bool,
        "OFF",
        "Accepted; there is no general log.",
    ),
    session(
        "max_error_count",
        number(0, 65535),
        "64",
        "Warnings kept for SHOW WARNINGS.",
    ),
    session(
        "max_session_mem_used",
        size(8 << 10, 1 << 44),
        "1G",
        "What a statement may keep in memory: rows that it sorts, groups or joins, texts of a row \
         that it computes; and, apart from it, what the session keeps: the statement's text, tree \
         and plan, user variables, savepoints, prepared statements with their cursors and long \
         data, and rows of more than 64 KiB that wait to be sent. Error 1290 beyond.",
    ),
    session(
        "max_sort_length",
        size(8, 8 << 20),
        "1024",
        "Accepted; sorting looks at whole values.",
    ),
    session(
        "max_statement_time",
        Kind::Seconds { max: YEAR_S },
        "0",
        "Seconds after which a statement is ended; 0: no limit.",
    ),
    session(
        "group_concat_max_len",
        size(4, NO_LIMIT),
        "1M",
        "The longest GROUP_CONCAT.",
    ),
    session(
        "div_precision_increment",
        number(0, 30),
        "4",
        "Digits that a division adds.",
    ),
    session(
        "default_week_format",
        number(0, 7),
        "0",
        "The mode of WEEK().",
    ),
    session(
        "lc_time_names",
        Kind::Choice(&["en_US"]),
        "en_US",
        "Language of month names.",
    ),
    session(
        "lc_messages",
        Kind::Choice(&["en_US"]),
        "en_US",
        "Language of messages.",
    ),
    session(
        "default_storage_engine",
        Kind::Choice(&["InnoDB"]),
        "InnoDB",
        "There is one engine, and clients expect this name.",
    )
    .alias(&["storage_engine"]),
    session(
        "tmp_table_size",
        size(1024, NO_LIMIT),
        "16M",
        "Accepted; temporary results stay in memory up to a limit of their own.",
    ),
    session(
        "max_heap_table_size",
        size(16384, NO_LIMIT),
        "16M",
        "Accepted; as `tmp_table_size`.",
    ),
    session(
        "sort_buffer_size",
        size(1024, NO_LIMIT),
        "2M",
        "Accepted; sorts are bounded as temporary results are.",
    ),
    session(
        "join_buffer_size",
        size(128, NO_LIMIT),
        "256K",
        "Accepted; joins are bounded as temporary results are.",
    ),
    session(
        "long_query_time",
        Kind::Seconds { max: YEAR_S },
        "10",
        "Accepted; slow statements are not logged.",
    ),
    session(
        "profiling",
        Kind::Only(false),
        "OFF",
        "Profiles are not collected.",
    ),
    session(
        "query_cache_type",
        Kind::Choice(&["OFF"]),
        "OFF",
        "There is no query cache.",
    ),
    fixed_number("query_cache_size", "0", "There is no query cache."),
    fixed("have_query_cache", "NO", "There is no query cache."),
    // What clients ask for when they connect.
    fixed("version", "10.11.0-MariaDB-Plateau", "As MariaDB 10.11."),
    fixed("version_comment", "Plateau", "The program."),
    fixed("version_compile_machine", "x86_64", "The processor."),
    fixed("version_compile_os", "Linux", "The system."),
    fixed_number("protocol_version", "10", "Of the handshake."),
    fixed("license", "MIT OR Apache-2.0", "Of the program."),
    fixed_number(
        "lower_case_table_names",
        "0",
        "Names of tables and databases keep their case, and differ by it.",
    ),
    fixed(
        "system_time_zone",
        "UTC",
        "Name of the time in the machine's zone (TZ or /etc/localtime); read at start.",
    ),
    fixed(
        "init_connect",
        "",
        "Statements that each session runs first.",
    ),
    session(
        "session_track_schema",
        Kind::Bool,
        "ON",
        "Whether a change of the current database is reported to clients that ask for it.",
    ),
    session(
        "session_track_system_variables",
        Kind::Text,
        "autocommit,character_set_client,character_set_connection,character_set_results,time_zone",
        "Variables whose changes are reported to clients, separated by commas; `*`: all.",
    ),
    session(
        "session_track_state_change",
        Kind::Bool,
        "OFF",
        "Whether any change of the session is reported to clients.",
    ),
    session(
        "session_track_transaction_info",
        Kind::Choice(&["OFF", "STATE"]),
        "OFF",
        "Whether the state of the transaction is reported to clients.",
    ),
    fixed_flag(
        "performance_schema",
        "OFF",
        "There is no performance schema.",
    ),
    fixed_flag("log_bin", "OFF", "There is no binary log."),
    fixed("binlog_format", "MIXED", "There is no binary log."),
    fixed_flag("general_log", "OFF", "There is no general log."),
    fixed_flag("slow_query_log", "OFF", "There is no slow log."),
    fixed("event_scheduler", "OFF", "There are no events."),
    fixed(
        "hostname",
        "localhost",
        "The machine's name; taken at start.",
    ),
    fixed_number("port", "4006", "Of `listen`; taken at start."),
    fixed_flag(
        "skip_name_resolve",
        "ON",
        "Names of hosts are never looked up.",
    ),
    fixed_number("max_user_connections", "0", "Accounts have no limits."),
    fixed(
        "innodb_version",
        "10.11.0",
        "Behaviour follows MariaDB 10.11.",
    ),
    fixed("have_ssl", "YES", "Whether TLS is there."),
    fixed("have_openssl", "YES", "Whether TLS is there."),
    fixed(
        "have_compress",
        "YES",
        "Whether the compressed protocol is there.",
    ),
    fixed("have_profiling", "NO", "Profiles are not collected."),
    fixed(
        "secure_file_priv",
        "",
        "No statement reads or writes files of the server.",
    ),
    fixed_number("server_id", "1", "There is no replication yet."),
    fixed_flag("wsrep_on", "OFF", "There is no cluster yet."),
    fixed_flag("read_only", "OFF", "The server takes writes."),
    fixed_flag("skip_networking", "OFF", "The server listens."),
    fixed(
        "thread_handling",
        "pool-of-threads",
        "A session is a task of a worker.",
    ),
];

#[cfg(test)]
mod tests;
