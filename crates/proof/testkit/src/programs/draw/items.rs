//! What parts are made of.

use super::{Action, Draw, Item};

/// Items after which the connection may serve others.
pub(super) const FREE: &[Item] = &[
    writes,
    writes,
    generated,
    generated,
    reads,
    reads,
    last,
    last,
    warnings,
    warnings,
    mistakes,
    user_variables,
    user_variables,
    variables,
    variables,
    show_variables,
    show_variables,
    databases,
    transactions,
    transactions,
    texts,
    texts,
    prepares,
    uses,
    uses,
    uses,
    calls,
    several,
    commands,
    numbers,
];

/// Items that pin.
pub(super) const PINNED: &[Item] = &[
    temporary,
    temporary,
    locks,
    table_locks,
    handlers,
    sequences,
    assigned,
    next_transaction,
    diagnostics,
    several_that_set,
    calls_that_set,
    blocks,
    xa,
    prepared_readers,
    loads,
];

fn writes(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "INSERT INTO t (v, w) VALUES ({n}, {v})",
        "INSERT INTO t (v, w) VALUES ({n}, {v}), ({n}, {v}), ({n}, {v})",
        "INSERT INTO t (v, w) VALUES (1, '{c}1') ON DUPLICATE KEY UPDATE v = v + 10",
        "INSERT IGNORE INTO t (v, w) VALUES ({n}, '{c}{n}')",
        "INSERT IGNORE INTO t (v, w) VALUES ('{c}', {v})",
        "INSERT INTO t (v) SELECT v FROM t WHERE v < {n}",
        "INSERT INTO t (v, w) VALUES ({n}, {v}) RETURNING owner, v, w",
        "INSERT INTO log VALUES ({v})",
        "INSERT INTO {c}db.log VALUES ({v})",
        "REPLACE INTO t (v, w) VALUES ({n}, '{c}2')",
        "UPDATE t SET v = v + {n} WHERE id % 3 = {n}",
        "UPDATE t SET v = 3",
        "UPDATE t SET id = LAST_INSERT_ID(id + 100) WHERE v = {n} ORDER BY id DESC LIMIT 1",
        "DELETE FROM t WHERE v = {n} LIMIT 1",
        "INSERT INTO m (id) VALUES (10 + {n})",
        "INSERT INTO child VALUES (1, 999999)",
        "TRUNCATE TABLE log",
        "CREATE TABLE IF NOT EXISTS {c}db.made (a INT, owner VARCHAR(40) DEFAULT '{c}')",
        "DROP TABLE IF EXISTS {c}db.made",
        "INSERT INTO common.t VALUES (1)",
        "ALTER TABLE t COMMENT = {v}",
        "ANALYZE TABLE m",
        "DO SLEEP(0)",
    ])
}

/// Two tables generate the same values.
fn generated(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = draw.query(&[
        "INSERT INTO {c}db.t (v) VALUES ({n})",
        "INSERT INTO {c}db.u (v) VALUES ({n})",
        "INSERT INTO {c}db.u (v) VALUES ({n}), ({n})",
        "INSERT INTO {c}db.u (id) SELECT 1 + MAX(id) FROM {c}db.u",
    ]);
    if draw.random.coin() {
        actions.extend(draw.query(&[
            "SELECT LAST_INSERT_ID(), '{c}'",
            "SELECT LAST_INSERT_ID(), '{c}'",
            "INSERT INTO {c}db.log VALUES (LAST_INSERT_ID())",
            "SELECT owner, id FROM {c}db.u WHERE id = LAST_INSERT_ID()",
        ]));
    }
    actions
}

fn reads(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "SELECT owner, id, v, w FROM t ORDER BY id",
        "SELECT owner, id, v FROM t ORDER BY id LIMIT 2",
        "SELECT SQL_CALC_FOUND_ROWS owner, id FROM t ORDER BY id LIMIT {n}",
        "SELECT owner, COUNT(*), SUM(v) FROM t GROUP BY owner",
        "SELECT '{c}', COUNT(*) FROM log",
        "SELECT owner FROM t WHERE id = -1",
        "SELECT owner, id FROM t ORDER BY id LIMIT 1 FOR UPDATE",
        "(SELECT owner, v FROM t WHERE v = 1) UNION ALL (SELECT owner, id FROM m) ORDER BY 2, 1",
        "WITH a AS (SELECT owner, id FROM m) SELECT * FROM a ORDER BY id",
        "VALUES ('{c}', {n})",
        "SHOW TABLES",
        "SHOW CREATE TABLE m",
        "SHOW COLUMNS FROM t",
        "EXPLAIN SELECT id FROM m",
        "SELECT 'x' 'y', \"z\", 'a\\'b', '\\\\'",
        "TABLE t",
        "SELECT owner, id FROM m WHERE owner = '{c}' ORDER BY id",
    ])
}

/// What a statement tells of the one before.
fn last(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    if draw.random.coin() {
        actions = draw.query(&[
            "SELECT owner, id FROM {c}db.t ORDER BY id",
            "SELECT owner, id FROM {c}db.t WHERE v = {n} ORDER BY id",
            "SELECT SQL_CALC_FOUND_ROWS owner, id FROM {c}db.t ORDER BY id LIMIT {n}",
            "SHOW TABLES",
        ]);
        actions.extend(draw.query(&[
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()",
            "SET @f = FOUND_ROWS(), @r = ROW_COUNT()",
            "UPDATE t SET v = FOUND_ROWS() WHERE v = 1",
        ]));
        return actions;
    }
    if draw.random.coin() {
        actions = match draw.random.coin() {
            true => writes(draw),
            false => reads(draw),
        };
    }
    actions.extend(draw.query(&[
        "SELECT ROW_COUNT()",
        "SELECT LAST_INSERT_ID()",
        "SELECT @@last_insert_id, @@identity",
        "SELECT ROW_COUNT(), LAST_INSERT_ID()",
        "SELECT ROW_COUNT() AS n, '{c}'",
        "SELECT LAST_INSERT_ID({n})",
        "SELECT last()",
        "INSERT INTO t (v, w) VALUES (LAST_INSERT_ID(), {v})",
        "INSERT INTO t (v) VALUES (ROW_COUNT())",
        "SET @r = ROW_COUNT(), @l = LAST_INSERT_ID()",
        "SELECT @r, @f, @l",
        "SELECT LAST_INSERT_ID() + 1, row_count ( )",
    ]));
    actions
}

fn warnings(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    if draw.random.chance(700) {
        actions = draw.query(&[
            "SELECT CAST('{c}' AS INT)",
            "SELECT 1/0, CAST({v} AS INT)",
            "DROP TABLE IF EXISTS {c}nothing",
            "SELECT nothing",
            "SELECT * FROM {c}none",
            "INSERT IGNORE INTO t (v, w) VALUES (1, '{c}1'), (2, '{c}2'), (3, {v})",
            "SELECT '{c}' + 1, '{c}' + 2",
            "INSERT INTO t (v, w) VALUES (1, '{c}1')",
            "CALL warns()",
            "CREATE TABLE {c}db.t (a INT)",
        ]);
    }
    if draw.random.chance(200) {
        actions.extend(user_variables(draw));
    }
    actions.extend(draw.query(&["SHOW WARNINGS", "show warnings;"]));
    actions
}

fn mistakes(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "SELECT",
        "",
        ";",
        "SELECT nothing FROM t",
        "SELECT * FROM {c}none",
        "INSERT INTO t (id, v, w) VALUES (NULL, 1, '{c}1')",
        "INSERT INTO t (owner) VALUES (NULL)",
        "INSERT INTO t (v) VALUES ('{c}')",
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{c}signal'",
        "SELECT (SELECT v FROM t)",
        "SET nonsense = 1",
        "SET sql_mode = '{c}'",
        "SET @a = 1, nonsense = 2",
        "USE {c}nowhere",
        "EXECUTE {c}p",
        "DEALLOCATE PREPARE {c}p",
        "PREPARE p1 FROM 'SELECT nothing FROM {c}none'",
        "COMMIT AND",
        "ROLLBACK TO SAVEPOINT {c}s",
        "CALL {c}none()",
        "CALL fails()",
        "SET TRANSACTION ISOLATION LEVEL NOTHING",
        "SELECT 'unfinished",
        "/* only a comment */",
    ])
}

fn user_variables(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "SET @a = {v}",
        "SET @a = {v}, @b = {n}",
        "SET @b = {n}",
        "SET @b = @b + 1",
        "SET @c = CONCAT(@a, @b)",
        "SET @`a b` = {v}",
        "SET @A = {v}",
        "SET @a = NULL",
        "SET @d = x'0102', @e = 1.50, @f = 1e3",
        "SELECT @a, @b, @c, @d, @e, @f, @`a b`",
        "SELECT @a, @b",
        "SELECT @a, @b",
        "SELECT owner, id FROM t WHERE w = @a",
        "INSERT INTO t (v, w) VALUES (@b, @a)",
    ])
}

fn variables(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = draw.close_all();
    actions.extend(draw.query(&[
        "SET sql_mode = ''",
        "SET sql_mode = 'ANSI_QUOTES'",
        "SET sql_mode = 'PIPES_AS_CONCAT,STRICT_ALL_TABLES'",
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "SET sql_mode = DEFAULT",
        "SET sql_mode = CONCAT(@@sql_mode, ',ONLY_FULL_GROUP_BY')",
        "SET SESSION time_zone = '+0{n}:00'",
        "SET time_zone = DEFAULT",
        "SET NAMES latin1",
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        "SET NAMES DEFAULT",
        "SET CHARACTER SET latin1",
        "SET character_set_results = NULL",
        "SET character_set_results = ucs2",
        "SET collation_connection = latin1_bin",
        "SET character_set_client = latin1",
        "SET autocommit = 0",
        "SET autocommit = 1",
        "SET autocommit = ON, @a = {v}",
        "SET sql_select_limit = {n}",
        "SET @@session.sql_select_limit = DEFAULT",
        "SET sql_select_limit = DEFAULT",
        "SET LOCAL div_precision_increment = {n}",
        "SET timestamp = 86400{n}",
        "SET timestamp = DEFAULT",
        "SET insert_id = 5000{n}",
        "SET last_insert_id = {n}",
        "SET @@identity = {n}",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION TRANSACTION READ ONLY",
        "SET SESSION TRANSACTION READ WRITE",
        "SET tx_isolation = 'SERIALIZABLE'",
        "SET group_concat_max_len = 1{n}",
        "SET lc_time_names = 'de_DE'",
        "SET foreign_key_checks = 0, unique_checks = 0",
        "SET foreign_key_checks = 1",
        "SET sql_auto_is_null = 1",
        "SET sql_warnings = 1",
        "SET default_storage_engine = MyISAM",
        "SET auto_increment_increment = {n}",
        "SET max_error_count = {n}",
        "SET completion_type = CHAIN",
        "SET completion_type = DEFAULT",
        "SET sql_quote_show_create = 0",
        "SET rand_seed1 = {n}, rand_seed2 = 7",
        "SET ROLE NONE",
        "SET STATEMENT sql_select_limit = 1 FOR SELECT owner, id FROM t ORDER BY id",
        "SET sql_notes = 0",
        "SET lock_wait_timeout = 2{n}",
        "SET big_tables = 1",
        "SET system_versioning_asof = DEFAULT",
    ]));
    actions
}

fn show_variables(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "SELECT @@sql_mode, @@time_zone, @@autocommit, @@sql_select_limit",
        "SELECT @@character_set_client, @@character_set_results, @@character_set_connection, \
         @@collation_connection, @@character_set_database",
        "SELECT @@div_precision_increment, @@group_concat_max_len, @@lc_time_names, \
         @@foreign_key_checks, @@unique_checks, @@sql_auto_is_null",
        "SELECT @@tx_isolation, @@tx_read_only, @@in_transaction, @@completion_type",
        "SELECT @@insert_id, @@max_error_count, @@auto_increment_increment, @@sql_notes, \
         @@lock_wait_timeout, @@big_tables",
        "SELECT IF(@@timestamp < 2000000, NOW(), '-')",
        "SELECT 'a' || 'b', 1/3, FROM_UNIXTIME(86400)",
        "SELECT CHARSET('a'), COLLATION('a'), '\u{e4}', HEX('\u{e4}')",
        "SELECT GROUP_CONCAT(owner ORDER BY id) FROM m",
        "SELECT DATE_FORMAT('2020-03-01', '%W %M')",
        "SHOW VARIABLES WHERE variable_name IN ('sql_mode', 'autocommit', 'time_zone')",
        "SELECT CURRENT_USER(), DATABASE(), CURRENT_ROLE()",
        "SELECT owner, id FROM t WHERE id IS NULL",
    ])
}

fn databases(draw: &mut Draw<'_>) -> Vec<Action> {
    let common = || Action::InitDb("common".to_owned());
    let own = Action::InitDb(format!("{}db", draw.mark));
    match draw.random.below(8) {
        0 => vec![common()],
        1 | 2 => vec![own],
        3 => vec![Action::InitDb(format!("{}nowhere", draw.mark))],
        4 => vec![common(), Action::Query("SELECT DATABASE()".to_owned()), own],
        _ => draw.query(&[
            "USE {c}db",
            "USE `{c}db`",
            "USE common",
            "SELECT DATABASE()",
            "SELECT DATABASE()",
            "USE {c}db;",
        ]),
    }
}

fn transactions(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = draw.query(&[
        "BEGIN",
        "START TRANSACTION",
        "START TRANSACTION READ ONLY",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "BEGIN WORK",
        "SELECT @@in_transaction",
        "SAVEPOINT a",
    ]);
    for _ in 0..draw.random.index(4) {
        actions.extend(match draw.random.below(4) {
            0 => reads(draw),
            1 => draw.query(&["SAVEPOINT a", "ROLLBACK TO a", "RELEASE SAVEPOINT a"]),
            _ => writes(draw),
        });
    }
    if draw.random.chance(800) {
        actions.extend(draw.query(&[
            "COMMIT",
            "ROLLBACK",
            "COMMIT",
            "COMMIT AND NO CHAIN NO RELEASE",
            "COMMIT AND CHAIN",
            "ROLLBACK AND CHAIN",
            "CREATE OR REPLACE TABLE {c}db.made (a INT)",
        ]));
    }
    actions
}

/// PREPARE in texts.
fn texts(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "PREPARE p1 FROM 'SELECT owner, id FROM t WHERE v > ? ORDER BY id'",
        "PREPARE p1 FROM 'SELECT ''{c}'', ?'",
        "PREPARE p2 FROM 'INSERT INTO t (v, w) VALUES (?, ?)'",
        "PREPARE p2 FROM 'UPDATE t SET v = 1'",
        "PREPARE p1 FROM 'SELECT @a, @b'",
        "PREPARE P3 FROM 'SELECT 3'",
        "EXECUTE p1",
        "EXECUTE p1 USING @b",
        "EXECUTE p1 USING @a",
        "EXECUTE p1 USING {n}",
        "EXECUTE p2 USING {n}, {v}",
        "EXECUTE p2",
        "EXECUTE p3",
        "EXECUTE IMMEDIATE 'SELECT owner, id FROM m ORDER BY id'",
        "EXECUTE IMMEDIATE 'INSERT INTO t (v) VALUES (?)' USING {n}",
        "DEALLOCATE PREPARE p1",
        "DROP PREPARE p2",
    ])
}

fn prepares(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.prepare(&[
        "SELECT owner, id, v FROM t ORDER BY id",
        "SELECT owner, id FROM t WHERE w = ? OR v = ? ORDER BY id",
        "SELECT ?, '{c}'",
        "INSERT INTO t (v, w) VALUES (2, ?)",
        "INSERT INTO log VALUES (?)",
        "UPDATE t SET v = v + 1 WHERE v = ?",
        "SELECT @a, @b, DATABASE()",
        "SELECT @@sql_mode, @@autocommit, 'a' || ?",
        "SELECT nothing",
        "SELECT LAST_INSERT_ID()",
        "BEGIN",
        "COMMIT",
        "CALL two()",
        "SELECT CONNECTION_ID() = {id} AS mine",
        "DELETE FROM t WHERE w = ?",
        "SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 1",
        "SHOW TABLES",
        "SELECT CAST(? AS INT)",
    ])
}

fn uses(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    if draw.slots.iter().all(Option::is_none) {
        actions = prepares(draw);
    }
    actions.extend(draw.use_statement());
    actions
}

fn calls(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "CALL two()",
        "CALL fails()",
        "CALL warns()",
        "CALL {c}db.two()",
        "CALL begins()",
        "SELECT last(), '{c}'",
        "SELECT adds({n})",
        "CALL mine()",
    ])
}

/// Several statements in a text.
fn several(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "SELECT '{c}'; SELECT owner, id FROM m ORDER BY id; SELECT 3",
        "INSERT INTO t (v, w) VALUES (1, {v}); SELECT LAST_INSERT_ID(), ROW_COUNT()",
        "SELECT '{c}'; SELECT nothing; SELECT 3",
        "BEGIN; UPDATE t SET v = 4; COMMIT",
        "BEGIN; INSERT INTO t (v) VALUES (1)",
        "SELECT 1;",
        "UPDATE t SET v = 2; DELETE FROM t LIMIT 1; SELECT ROW_COUNT()",
        "CALL two(); SELECT '{c}'",
        "SELECT CAST('{c}' AS INT); SHOW WARNINGS",
        "COMMIT; SELECT @a",
    ])
}

fn commands(draw: &mut Draw<'_>) -> Vec<Action> {
    let one = match draw.random.below(8) {
        0 | 1 => Action::Ping,
        2 => Action::FieldList("t".to_owned()),
        3 => Action::SetOption(1),
        4 => Action::SetOption(0),
        5 => Action::SetOption(9),
        6 => Action::FieldList(format!("{}none", draw.mark)),
        _ => draw.begin_anew(),
    };
    vec![one]
}

/// The client's number. The error that KILL leaves is the gateway's own.
fn numbers(draw: &mut Draw<'_>) -> Vec<Action> {
    if draw.random.chance(200) {
        let mut actions = draw.query(&["KILL QUERY {id}", "KILL QUERY CONNECTION_ID()"]);
        actions.extend(draw.query(&["SELECT owner, id FROM {c}db.t ORDER BY id"]));
        return actions;
    }
    draw.query(&[
        "SELECT CONNECTION_ID() = {id} AS mine",
        "SELECT CONNECTION_ID()",
        "SET @n = CONNECTION_ID()",
        "SELECT @n",
        "SELECT '{c}', CONNECTION_ID() FROM m",
    ])
}

fn temporary(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "CREATE TEMPORARY TABLE own (id INT PRIMARY KEY AUTO_INCREMENT, owner VARCHAR(40))",
        "CREATE TEMPORARY TABLE m SELECT 7 AS id, '{c}' AS owner",
        "CREATE TEMPORARY TABLE IF NOT EXISTS own SELECT owner FROM t",
        "INSERT INTO own (owner) VALUES ({v})",
        "SELECT * FROM own ORDER BY 1",
        "SELECT * FROM m ORDER BY id",
        "DROP TEMPORARY TABLE m",
        "DROP TABLE own",
        "DROP TEMPORARY TABLE IF EXISTS own",
        "CALL shadows()",
        "ALTER TABLE own ADD COLUMN x INT",
    ])
}

fn locks(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "SELECT GET_LOCK('{c}l', 5), IS_USED_LOCK('{c}l') IS NULL",
        "SELECT GET_LOCK('{c}k', 5)",
        "DO GET_LOCK('{c}l', 5)",
        "SELECT COALESCE(RELEASE_LOCK('{c}l'), 0)",
        "SELECT RELEASE_ALL_LOCKS()",
    ])
}

fn table_locks(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "LOCK TABLES t WRITE",
        "LOCK TABLES t READ, m READ",
        "LOCK TABLES m WRITE, t READ",
        "UNLOCK TABLES",
        "SELECT owner, id FROM t ORDER BY id",
        "INSERT INTO m (id) VALUES (20 + {n})",
        "INSERT INTO t (v) VALUES ({n})",
        "BEGIN",
    ])
}

fn handlers(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "HANDLER m OPEN",
        "HANDLER t OPEN AS h",
        "HANDLER m READ FIRST",
        "HANDLER m READ NEXT",
        "HANDLER h READ `PRIMARY` NEXT",
        "HANDLER h READ `PRIMARY` = (1)",
        "HANDLER m CLOSE",
        "HANDLER h CLOSE",
    ])
}

fn sequences(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "SELECT NEXTVAL(s)",
        "SELECT NEXT VALUE FOR s",
        "SELECT LASTVAL(s)",
        "SELECT PREVIOUS VALUE FOR s",
        "INSERT INTO t (v) VALUES (NEXTVAL(s))",
        "SELECT SETVAL(s, 5000{n})",
    ])
}

/// Values that only one connection can know.
fn assigned(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "SELECT @a := {v}",
        "SELECT @a := w FROM t ORDER BY id LIMIT 1",
        "SELECT owner, id INTO @o, @i FROM t ORDER BY id LIMIT 1",
        "SET @a = (SELECT MAX(w) FROM t)",
        "SELECT @a, @b, @o, @i",
        "UPDATE t SET v = (@u := v + 1)",
        "SELECT @u, @a",
        "SET @t = RAND(7)",
        "SET sql_select_limit = (SELECT COUNT(*) FROM t)",
        "SELECT @t, @@sql_select_limit",
        "SELECT sets({n})",
    ])
}

fn next_transaction(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = draw.query(&[
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET TRANSACTION READ ONLY",
        "SET TRANSACTION READ WRITE, ISOLATION LEVEL READ UNCOMMITTED",
        "SET @@tx_isolation = 'READ-COMMITTED'",
    ]);
    actions.extend(draw.query(&[
        "SELECT @@tx_isolation, @@tx_read_only",
        "INSERT INTO t (v) VALUES (1)",
        "BEGIN",
        "SELECT 1",
    ]));
    if draw.random.coin() {
        actions.extend(transactions(draw));
    }
    actions
}

/// A pin keeps the connection for these.
fn diagnostics(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = draw.query(&["SELECT GET_LOCK('{c}z', 5)"]);
    // They use tables: warnings of before the pin, whose connection was given away, are gone.
    actions.extend(draw.query(&[
        "INSERT IGNORE INTO t (v, w) VALUES (1, '{c}1'), (2, '{c}2'), (3, {v})",
        "INSERT INTO t (v, w) VALUES (1, '{c}1')",
        "DROP TABLE IF EXISTS {c}nothing",
        "SELECT * FROM {c}none",
        "SELECT owner, CAST(owner AS INT) FROM m",
    ]));
    actions.extend(draw.query(&[
        "GET DIAGNOSTICS @n = NUMBER, @rows = ROW_COUNT",
        "GET DIAGNOSTICS CONDITION 1 @text = MESSAGE_TEXT, @code = MYSQL_ERRNO",
        "SHOW COUNT(*) WARNINGS",
        "SELECT @@error_count, @@warning_count",
        "SHOW ERRORS",
        "SHOW WARNINGS LIMIT 1",
        "SHOW COUNT(*) ERRORS",
    ]));
    actions.extend(draw.query(&["SELECT @n, @rows, @text, @code"]));
    actions
}

fn several_that_set(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut actions = draw.close_all();
    actions.extend(draw.query(&[
        "SET @a = {v}; SELECT @a",
        "SET sql_mode = 'ANSI_QUOTES'; SELECT @@sql_mode",
        "USE common; SELECT DATABASE()",
        "CREATE TEMPORARY TABLE two SELECT '{c}' a; SELECT * FROM two",
        "SELECT GET_LOCK('{c}m', 5); SELECT 2",
        "SET @a = {v}; SELECT nothing; SET @a = {v}",
        "PREPARE p1 FROM 'SELECT ''{c}'''; EXECUTE p1",
        "SELECT @a, DATABASE()",
        "EXECUTE p1",
    ]));
    actions
}

fn calls_that_set(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "CALL give(@a, @b)",
        "CALL keeps()",
        "CALL shadows()",
        "SELECT sets({n})",
        "SELECT @a, @b, @@sql_select_limit",
        "SELECT * FROM m ORDER BY id",
    ])
}

fn blocks(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "BEGIN NOT ATOMIC SELECT '{c}'; SET @a = {v}; END",
        "BEGIN NOT ATOMIC DECLARE x INT DEFAULT 5; SELECT x, '{c}'; END",
        "BEGIN NOT ATOMIC START TRANSACTION; INSERT INTO t (v) VALUES (5); END",
        "BEGIN NOT ATOMIC PREPARE p1 FROM 'SELECT ''{c}'''; END",
        "BEGIN NOT ATOMIC SET sql_mode = 'ANSI_QUOTES'; END",
        "IF 1 THEN SELECT '{c}'; END IF",
        "SELECT @a, @@sql_mode",
        "EXECUTE p1",
        "COMMIT",
    ])
}

fn xa(draw: &mut Draw<'_>) -> Vec<Action> {
    let mut texts = vec!["XA START '{c}x'"];
    for _ in 0..draw.random.index(3) {
        texts.push(draw.one_of(&[
            "UPDATE t SET v = 6",
            "SELECT @@in_transaction",
            "SET @a = {v}",
        ]));
    }
    texts.push("XA END '{c}x'");
    match draw.random.below(4) {
        0 => texts.push("XA COMMIT '{c}x' ONE PHASE"),
        1 => texts.push("XA ROLLBACK '{c}x'"),
        2 => texts.extend(["XA PREPARE '{c}x'", "XA COMMIT '{c}x'"]),
        _ => texts.extend(["XA PREPARE '{c}x'", "SELECT 1", "XA ROLLBACK '{c}x'"]),
    }
    texts
        .into_iter()
        .map(|text| Action::Query(draw.fill(text)))
        .collect()
}

/// Statements that read of the one before, prepared.
fn prepared_readers(draw: &mut Draw<'_>) -> Vec<Action> {
    if draw.random.coin() {
        return draw.query(&[
            "PREPARE p1 FROM 'SELECT ROW_COUNT()'",
            "PREPARE p1 FROM 'SELECT ROW_COUNT(), LAST_INSERT_ID()'",
            "EXECUTE p1",
            "SELECT id FROM t ORDER BY id LIMIT 2",
            "UPDATE t SET v = v + 1",
        ]);
    }
    let mut actions = draw.prepare(&[
        "SELECT ROW_COUNT(), '{c}'",
        "SHOW WARNINGS",
        "SELECT @@warning_count",
        "SELECT @a := ?",
        "SET @a = ?",
        "SET sql_mode = ''",
        "CREATE TEMPORARY TABLE own SELECT '{c}' owner",
        "DO GET_LOCK('{c}l', 5)",
        "SELECT NEXTVAL(s)",
    ]);
    for _ in 0..3 {
        actions.extend(draw.use_statement());
    }
    actions
}

fn loads(draw: &mut Draw<'_>) -> Vec<Action> {
    draw.query(&[
        "LOAD DATA LOCAL INFILE '{c}file' INTO TABLE t (v, w)",
        "LOAD DATA LOCAL INFILE '{c}file' IGNORE INTO TABLE t (v, w) SET owner = '{c}'",
        "LOAD DATA LOCAL INFILE '{c}file' INTO TABLE {c}none (v, w)",
        "LOAD DATA LOCAL INFILE '{c}file' INTO TABLE t (v, w) SET v = (@l := v)",
    ])
}
