//! What sessions do: statements of each kind, and what befalls servers meanwhile.

use env::Random;

/// Something that a session does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    /// A text, which is compared.
    Text(String),
    /// A prepared statement, whose execution is compared.
    Execution(String),
    /// COM_RESET_CONNECTION.
    Reset,
    /// COM_INIT_DB.
    Choose(&'static str),
}

/// Something that befalls a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// An operator orders this of a server.
    Order(usize, &'static str),
    /// A replica stops.
    Stop(usize),
    /// A replica gets nothing more for a while.
    Hold(usize),
}

/// Statements that are also prepared.
const PREPARED: [&str; 18] = [
    "SELECT a FROM shop.t",
    "SELECT COUNT(*) FROM shop.t WHERE a < 7",
    "SELECT a FROM shop.v",
    "SELECT a FROM shop.late",
    "SELECT a FROM shop.kept",
    "SELECT NOW(), @a",
    "SELECT LAST_INSERT_ID()",
    "SELECT CONNECTION_ID()",
    "SELECT FOUND_ROWS()",
    "SELECT @@hostname",
    "SELECT a FROM shop.t LIMIT 1 FOR UPDATE",
    "SELECT shop.f(1)",
    "SELECT GET_LOCK('a', 0)",
    "SELECT RELEASE_LOCK('a')",
    "INSERT INTO shop.t VALUES (1)",
    "UPDATE shop.t SET a = a + 1 LIMIT 1",
    "INSERT INTO shop.ids VALUES (DEFAULT)",
    "SET @a = 2",
];

/// Other reads, and what is read of the server or of the statement before.
const READS: [&str; 22] = [
    "VALUES (1)",
    "(SELECT 1) UNION (SELECT 2)",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "SELECT 1",
    "select distinct a from shop.t order by a desc limit 3",
    "SELECT * FROM shop.t x JOIN shop.t y USING (a) LIMIT 1",
    "SELECT a FROM shop.missing",
    "SELECT SQL_CALC_FOUND_ROWS a FROM shop.t LIMIT 1",
    "SELECT ROW_COUNT()",
    "SELECT @@port",
    "SELECT @@warning_count",
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW TABLES FROM shop",
    "SHOW STATUS LIKE 'Questions'",
    "SHOW VARIABLES LIKE 'port'",
    "DESCRIBE shop.t",
    "EXPLAIN SELECT a FROM shop.t",
    "EXPLAIN ROUTE FOR 'SELECT 1'",
    "SELECT a FROM shop.secret",
    "SELECT LASTVAL(shop.s)",
    "SELECT 1 FROM DUAL WHERE 'a' < 1",
];

const WRITES: [&str; 18] = [
    "DELETE FROM shop.t WHERE a < 3",
    "REPLACE INTO shop.t VALUES (5)",
    "INSERT INTO shop.t VALUES (1, 2)",
    "INSERT INTO shop.t SELECT 1",
    "DELETE FROM shop.t LIMIT 1 RETURNING a",
    "CREATE TABLE IF NOT EXISTS shop.d (a INT)",
    "TRUNCATE TABLE shop.d",
    "SELECT a FROM shop.t LIMIT 1 LOCK IN SHARE MODE",
    "SELECT NEXTVAL(shop.s)",
    "CALL shop.p()",
    "DO 1",
    "DO SLEEP(0)",
    "ANALYZE TABLE shop.t",
    "FROB shop.t",
    "SELECT 1; SELECT 2",
    "SET @b = 1; SELECT @b",
    "SELECT a FROM shop.t INTO @c",
    "SELECT a INTO @c FROM shop.t LIMIT 1",
];

const TRANSACTIONS: [&str; 20] = [
    "BEGIN",
    "BEGIN",
    "START TRANSACTION READ ONLY",
    "START TRANSACTION READ ONLY",
    "START TRANSACTION READ WRITE",
    "COMMIT",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "SAVEPOINT a",
    "ROLLBACK TO SAVEPOINT a",
    "SET TRANSACTION READ ONLY",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION READ ONLY",
    "SET SESSION TRANSACTION READ WRITE",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SET autocommit = 1",
];

const SESSIONS: [&str; 31] = [
    "SET @a = 1",
    "SET @a = RAND()",
    "SET @a = (SELECT MAX(a) FROM shop.t)",
    "SELECT @a := 1",
    "SET NAMES utf8mb4",
    "SET sql_mode = 'ANSI_QUOTES'",
    "SET sql_mode = DEFAULT",
    "SET sql_select_limit = 100",
    "SET insert_id = 77",
    "SET STATEMENT max_statement_time = 5 FOR SELECT a FROM shop.t",
    "USE shop",
    "USE stock",
    "USE nowhere",
    "SELECT GET_LOCK('a', 0)",
    "SELECT RELEASE_LOCK('a')",
    "DO RELEASE_ALL_LOCKS()",
    "DO RELEASE_ALL_LOCKS()",
    "SELECT IS_FREE_LOCK('a')",
    "CREATE TEMPORARY TABLE IF NOT EXISTS shop.own (a INT)",
    "DROP TEMPORARY TABLE IF EXISTS shop.own",
    "LOCK TABLES shop.t READ",
    "UNLOCK TABLES",
    "UNLOCK TABLES",
    "HANDLER shop.t OPEN",
    "HANDLER shop.t CLOSE",
    "PREPARE p FROM 'SELECT a FROM shop.t'",
    "PREPARE p FROM 'SELECT GET_LOCK(1, 0)'",
    "EXECUTE p",
    "DEALLOCATE PREPARE p",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "BEGIN NOT ATOMIC SELECT 1; END",
];

/// What a statement changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Nothing,
    Table(&'static str),
    AnyTable,
    Anything,
}

/// What those of the statements above change that change anything.
const CHANGES: [(&str, Changed); 20] = [
    ("SELECT shop.f(1)", Changed::AnyTable),
    ("INSERT INTO shop.t VALUES (1)", Changed::Table("t")),
    ("UPDATE shop.t SET a = a + 1 LIMIT 1", Changed::Table("t")),
    (
        "INSERT INTO shop.ids VALUES (DEFAULT)",
        Changed::Table("ids"),
    ),
    ("DELETE FROM shop.t WHERE a < 3", Changed::Table("t")),
    ("REPLACE INTO shop.t VALUES (5)", Changed::Table("t")),
    ("INSERT INTO shop.t VALUES (1, 2)", Changed::Table("t")),
    ("INSERT INTO shop.t SELECT 1", Changed::Table("t")),
    (
        "DELETE FROM shop.t LIMIT 1 RETURNING a",
        Changed::Table("t"),
    ),
    (
        "CREATE TABLE IF NOT EXISTS shop.d (a INT)",
        Changed::Anything,
    ),
    ("TRUNCATE TABLE shop.d", Changed::Table("d")),
    ("CALL shop.p()", Changed::Anything),
    ("ANALYZE TABLE shop.t", Changed::AnyTable),
    ("FROB shop.t", Changed::Anything),
    ("SET @b = 1; SELECT @b", Changed::Anything),
    ("EXECUTE p", Changed::Anything),
    ("EXECUTE IMMEDIATE 'SELECT 1'", Changed::Anything),
    ("BEGIN NOT ATOMIC SELECT 1; END", Changed::Anything),
    ("SELECT GET_LOCK('a', 0)", Changed::Nothing),
    ("SELECT NEXTVAL(shop.s)", Changed::Nothing),
];

/// Whether the reply to a statement that was drawn has warnings.
pub(super) fn warns(text: &str) -> bool {
    text.contains("'a' < 1")
}

/// A statement without the hint before it and the mark behind it.
pub(super) fn bare(text: &str) -> &str {
    let text = match text.strip_prefix("/*") {
        Some(hinted) => hinted.split_once("*/").map_or("", |(_, text)| text),
        None => text,
    };
    text.split("/* pair").next().unwrap_or_default().trim()
}

/// What a statement changes that was drawn.
pub(super) fn changed_by(text: &str) -> Changed {
    let text = bare(text);
    let known = CHANGES.iter().find(|(known, _)| *known == text);
    known.map_or(Changed::Nothing, |(_, changed)| *changed)
}

const HINTS: [&str; 9] = [
    "server=db0",
    "server=db1",
    "server=db2",
    "server=nowhere",
    "route=primary",
    "route=replica",
    "route=replica, max_lag=100000",
    "max_lag=0",
    "pin",
];

/// Something that a session does. Most deeds are reads, which have a choice.
pub(super) fn deed(random: &mut Random) -> Deed {
    match random.below(100) {
        0..24 => Deed::Text(text(random, &READS)),
        24..44 => Deed::Text(text(random, &PREPARED)),
        44..60 => Deed::Execution(text(random, &PREPARED)),
        60..70 => Deed::Text(text(random, &WRITES)),
        70..81 => Deed::Text(text(random, &TRANSACTIONS)),
        81..97 => Deed::Text(text(random, &SESSIONS)),
        97 => Deed::Choose("stock"),
        98 => Deed::Choose("shop"),
        _ => Deed::Reset,
    }
}

fn text(random: &mut Random, texts: &[&str]) -> String {
    let text = texts[random.index(texts.len())];
    match random.chance(70) {
        true => {
            let hint = HINTS[random.index(HINTS.len())];
            format!("/* plateau: {hint} */ {text}")
        }
        false => text.to_owned(),
    }
}

/// Something that befalls a server before a session begins.
pub(super) fn trouble(random: &mut Random) -> Trouble {
    let replica = 1 + random.index(2);
    match random.below(10) {
        0..2 => Trouble::Stop(replica),
        2..4 => Trouble::Hold(replica),
        _ => order(random),
    }
}

/// What may also befall it while a session holds locks there, for which replication would wait.
/// The primary is seldom concerned: without it most statements wait in vain.
pub(super) fn order(random: &mut Random) -> Trouble {
    let order = match random.coin() {
        true => "drain",
        false => "maintenance",
    };
    match random.below(8) {
        0 => Trouble::Order(0, order),
        _ => Trouble::Order(1 + random.index(2), order),
    }
}
