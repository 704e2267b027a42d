//! Verdicts as tables of texts.

use super::*;

fn of(text: &str) -> Verdict {
    verdict(text.as_bytes(), SqlMode::default())
}

/// Texts of each kind.
const KINDS: &[(Kind, &[&str])] = &[
    (
        Kind::Read,
        &[
            "SELECT 1",
            "SELECT a FROM t WHERE b = 'FOR UPDATE'",
            "SELECT COUNT(*), CONCAT(a, 'b') FROM t GROUP BY c",
            "(SELECT 1) UNION (SELECT 2)",
            "WITH a (x) AS (SELECT 1), b (y) AS (SELECT 2) SELECT * FROM a, b",
            "SHOW TABLES",
            "EXPLAIN SELECT 1",
            "DO 1",
            "SELECT REPLACE(a, 'b', 'c') FROM t",
            "SELECT * FROM t WHERE a IN (1, 2)",
            "VALUES (1)",
        ],
    ),
    (
        Kind::LockingRead,
        &[
            "SELECT 1 FROM t FOR UPDATE",
            "SELECT 1 FROM t LOCK IN SHARE MODE",
            "SELECT 1 FROM t FOR SHARE SKIP LOCKED",
        ],
    ),
    (
        Kind::Session,
        &[
            "SET a = 1",
            "SET NAMES utf8mb4",
            "USE a",
            "PREPARE s FROM 'DELETE FROM t'",
            "SET @a = 1",
            "GET DIAGNOSTICS @a = NUMBER",
        ],
    ),
    (
        Kind::Transaction,
        &["BEGIN", "COMMIT", "SAVEPOINT a", "XA START 'a'"],
    ),
    (
        Kind::Write,
        &[
            "INSERT INTO t VALUES (1)",
            "SELECT a FROM t INTO OUTFILE 'f'",
            "SELECT f(1)",
            "SELECT d.f(1)",
            "SELECT GET_LOCK('a', 1)",
            "SELECT NEXT VALUE FOR s",
            "SELECT s.NEXTVAL",
            "SET GLOBAL a = 1",
            "SET a = f()",
            "CALL p()",
            "WITH c AS (SELECT 1 x) UPDATE (t JOIN c) SET t.a = 5",
            "EXECUTE s",
            "EXPLAIN UPDATE t SET a = 1",
            "CREATE TABLE t (a INT)",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "blah",
            "SELECT 1; INSERT INTO t VALUES (1)",
            "SELECT `a`(1)",
            "SELECT 1 /*!99999 FOR UPDATE */",
        ],
    ),
];

#[test]
fn what_is_not_known_to_be_a_read_is_none() {
    for (kind, texts) in KINDS {
        for text in *texts {
            assert_eq!(of(text).kind, *kind, "{text}: {:?}", of(text));
        }
    }
    assert!(!of("SELECT 1").is_several);
    assert!(of("SELECT 1; SELECT 2").is_several);
    assert_eq!(of("SELECT 1; SELECT 2").kind, Kind::Read);
}

/// Texts with each fact.
const FACTS: &[(Facts, &[&str])] = &[
    (
        Facts::NOT_DETERMINISTIC,
        &[
            "SELECT NOW()",
            "SELECT CURRENT_TIMESTAMP",
            "SELECT RAND()",
            "SELECT USER()",
            "SELECT * FROM information_schema.tables",
            "SELECT DEFAULT(a) FROM t",
            "SELECT default (a) FROM t",
            "SELECT a FROM t WHERE b <= sysdate",
            "SELECT DES_DECRYPT(a) FROM t",
            // A TIME becomes one of the present day where a date is wanted.
            "SELECT CAST(MAKETIME(1, 2, 3) AS DATETIME)",
            "SELECT a FROM t WHERE b < TIME('10:00')",
            "SELECT a FROM t WHERE b < TIME'10:00'",
            "SELECT a FROM t WHERE b < {t '10:00'}",
            "SELECT a FROM t WHERE b < CAST(c AS TIME)",
            "SELECT a FROM t WHERE b < CONVERT(c, time)",
            "SELECT a FROM t WHERE b < CONVERT(c, TIME(3))",
            "SELECT * FROM JSON_TABLE(a, '$' COLUMNS (b TIME PATH '$')) c",
        ],
    ),
    (
        Facts::READS_SYSTEM_VARIABLES,
        &["SELECT @@a", "SELECT @@global.a"],
    ),
    (
        Facts::READS_USER_VARIABLES,
        &["SELECT @a", "SELECT * FROM t WHERE a = @b", "SET @a = @b"],
    ),
    (
        Facts::SETS_USER_VARIABLES,
        &[
            "SET @a = 1",
            "SELECT @a := 1",
            "SELECT 1 INTO @a",
            "SELECT a, b FROM t INTO @a, @b",
            "CALL p(@a)",
            "LOAD DATA INFILE 'f' INTO TABLE t (@a)",
        ],
    ),
    (
        Facts::READS_LAST_INSERT_ID,
        &[
            "SELECT LAST_INSERT_ID()",
            "SELECT @@identity",
            "INSERT INTO t VALUES (LAST_INSERT_ID())",
        ],
    ),
    (
        Facts::SETS_LAST_INSERT_ID,
        &[
            "SELECT LAST_INSERT_ID(5)",
            "SET last_insert_id = 1",
            "UPDATE t SET a = LAST_INSERT_ID(a + 1)",
        ],
    ),
    (Facts::READS_FOUND_ROWS, &["SELECT FOUND_ROWS()"]),
    (Facts::READS_ROW_COUNT, &["SELECT ROW_COUNT()"]),
    (
        Facts::READS_WARNINGS,
        &[
            "SHOW WARNINGS",
            "SHOW COUNT(*) ERRORS",
            "SELECT @@warning_count",
            "GET DIAGNOSTICS @a = NUMBER",
        ],
    ),
    (Facts::READS_CONNECTION_ID, &["SELECT CONNECTION_ID()"]),
    (
        Facts::READS_LAST_VALUE,
        &[
            "SELECT PREVIOUS VALUE FOR s",
            "SELECT s.CURRVAL",
            "SELECT LASTVAL(s)",
        ],
    ),
    (
        Facts::READS_SESSION_STATUS,
        &[
            "SHOW STATUS",
            "SHOW SESSION STATUS LIKE 'a'",
            "SHOW PROFILE",
        ],
    ),
    (
        Facts::SETS_SESSION_VARIABLES,
        &[
            "SET a = 1",
            "SET SESSION a = 1",
            "SET @@a = 1",
            "SET NAMES utf8",
        ],
    ),
    (
        Facts::SETS_TO_EXPRESSION,
        &["SET a = @@b", "SET a = DEFAULT"],
    ),
    (
        Facts::SETS_NEXT_TRANSACTION,
        &[
            "SET TRANSACTION READ ONLY",
            "SET @@tx_isolation = 'SERIALIZABLE'",
        ],
    ),
    (Facts::SETS_TIMESTAMP, &["SET timestamp = 1"]),
    (
        Facts::SETS_INSERT_ID,
        &[
            "SET insert_id = 1",
            "SET @@session.gtid_seq_no = 7",
            "SET gtid_next = 'AUTOMATIC'",
        ],
    ),
    (
        Facts::SETS_RAND_SEED,
        &["SET rand_seed1 = 1, rand_seed2 = 2"],
    ),
    (Facts::SETS_ROLE, &["SET ROLE r"]),
    (Facts::SETS_PASSWORD, &["SET PASSWORD = 'a'"]),
    (
        Facts::CALCULATES_FOUND_ROWS,
        &["SELECT SQL_CALC_FOUND_ROWS a FROM t"],
    ),
    (Facts::CHANGES_DATABASE, &["USE a"]),
    (
        Facts::RETURNS_ROWS,
        &[
            "INSERT INTO t VALUES (1) RETURNING a",
            "DELETE FROM t RETURNING a",
        ],
    ),
    (
        Facts::TAKES_USER_LOCK,
        &["SELECT GET_LOCK('a', 1)", "DO GET_LOCK('a', 1)"],
    ),
    (Facts::FREES_USER_LOCK, &["SELECT RELEASE_LOCK('a')"]),
    (Facts::FREES_USER_LOCKS, &["SELECT RELEASE_ALL_LOCKS()"]),
    (Facts::READS_USER_LOCK, &["SELECT IS_FREE_LOCK('a')"]),
    (
        Facts::CREATES_TEMPORARY,
        &[
            "CREATE TEMPORARY TABLE t (a INT)",
            "CREATE OR REPLACE TEMPORARY TABLE t SELECT 1",
        ],
    ),
    (Facts::DROPS_TEMPORARY, &["DROP TEMPORARY TABLE t"]),
    (Facts::LOCKS_TABLES, &["LOCK TABLES t READ"]),
    (Facts::UNLOCKS_TABLES, &["UNLOCK TABLES"]),
    (Facts::TAKES_GLOBAL_LOCK, &["FLUSH TABLES WITH READ LOCK"]),
    (Facts::OPENS_HANDLER, &["HANDLER t OPEN"]),
    (Facts::CLOSES_HANDLER, &["HANDLER t CLOSE"]),
    (Facts::PREPARES, &["PREPARE s FROM @a"]),
    (Facts::EXECUTES, &["EXECUTE s"]),
    (Facts::DEALLOCATES, &["DEALLOCATE PREPARE s"]),
    (
        Facts::HAS_SET_STATEMENT,
        &["SET STATEMENT a = 1 FOR SELECT 1"],
    ),
    (
        Facts::CALLS_UNKNOWN,
        &["SELECT f()", "CALL p()", "INSERT INTO t SELECT f(a) FROM b"],
    ),
    (Facts::WRITES_FILE, &["SELECT 1 INTO DUMPFILE 'f'"]),
    (
        Facts::ADVANCES_SEQUENCE,
        &["SELECT NEXTVAL(s)", "SELECT SETVAL(s, 1)"],
    ),
    (
        Facts::DEPENDS_ON_VERSION,
        &["SELECT 1 /*!80000 + 1 */", "SELECT 1 /*M!100100 + 1 */"],
    ),
];

#[test]
fn facts_are_found_wherever_they_stand() {
    for (fact, texts) in FACTS {
        for text in *texts {
            let found = of(text).facts;
            assert!(found.has(*fact), "{text}: {found:?} without {fact:?}");
        }
    }
    for text in [
        "SELECT 1",
        "SELECT a FROM t WHERE b = 'NOW()'",
        "SELECT COUNT(*) FROM t",
        "INSERT INTO t (a) VALUES (1)",
        "INSERT INTO t (a, time) VALUES (DEFAULT, 1)",
        "SELECT time, t.sysdate, `sysdate` FROM t WHERE time < 5 ORDER BY time",
        "SELECT {d '2020-01-01'}, TIME_FORMAT(a, 'b') FROM t",
        "SET @a = MAKETIME(1, 2, 3)",
    ] {
        let found = of(text).facts.without(Facts::SETS_USER_VARIABLES);
        assert_eq!(found, Facts::NONE, "{text}");
    }
    assert!(of("SELECT SQL_NO_CACHE 1").is_free_read());
    assert!(!of("SELECT NOW()").is_free_read());
}
