//! What statements do to the transaction, beside what a MariaDB server reports.

#![forbid(unsafe_code)]

use syntax::SqlMode;
use syntax::class::{Effect, Flags, Guess, State, classify};
use testkit::{Client, Launch, Outcome, ServerKind};

const RESET_CONNECTION: u8 = 31;

/// How a session came to where it is.
const STATES: [&[&str]; 15] = [
    &[],
    &["BEGIN"],
    &["BEGIN", "INSERT INTO t VALUES (1)"],
    &["START TRANSACTION READ ONLY"],
    &["SET autocommit = 0"],
    &["SET autocommit = 0", "SELECT * FROM t"],
    &["SET autocommit = 0", "BEGIN"],
    &["SET TRANSACTION READ ONLY"],
    &["SET SESSION TRANSACTION READ ONLY"],
    &["SET SESSION TRANSACTION READ ONLY", "BEGIN"],
    &["SET completion_type = 1", "BEGIN"],
    &["SET completion_type = 1", "START TRANSACTION READ ONLY"],
    &["LOCK TABLES t WRITE"],
    &["XA START 'x'"],
    &["XA START 'x'", "XA END 'x'"],
];

const STATEMENTS: [&str; 84] = [
    "SELECT 1",
    "SELECT * FROM t",
    "SELECT * FROM t FOR UPDATE",
    "VALUES (1)",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "INSERT INTO t VALUES (1)",
    "UPDATE t SET a = 2",
    "DELETE FROM t WHERE a = 77",
    "REPLACE INTO t VALUES (1)",
    "INSERT INTO nowhere VALUES (1)",
    "DO 1",
    "DO (SELECT MAX(a) FROM t)",
    "BEGIN",
    "BEGIN WORK",
    "START TRANSACTION",
    "START TRANSACTION READ ONLY",
    "START TRANSACTION READ WRITE",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "COMMIT",
    "COMMIT WORK",
    "COMMIT AND CHAIN",
    "COMMIT AND NO CHAIN",
    "ROLLBACK",
    "ROLLBACK AND CHAIN",
    "ROLLBACK TO a",
    "SAVEPOINT a",
    "RELEASE SAVEPOINT a",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SET @@session.autocommit = OFF",
    "SET autocommit = (SELECT COUNT(*) FROM t) * 0",
    "SET NAMES utf8mb4, autocommit = 'ON'",
    "SET GLOBAL autocommit = 1",
    "SET TRANSACTION READ ONLY",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE",
    "SET SESSION TRANSACTION READ ONLY",
    "SET SESSION TRANSACTION READ WRITE",
    "SET tx_read_only = 1",
    "SET @@tx_read_only = 1",
    "SET completion_type = 0",
    "SET completion_type = CHAIN",
    "SET @a = 1",
    "SET @a = (SELECT MAX(a) FROM t)",
    "SET sql_mode = ''",
    "SET STATEMENT max_statement_time = 10 FOR SELECT * FROM t",
    "SET STATEMENT max_statement_time = 10 FOR INSERT INTO t VALUES (1)",
    "USE test",
    "SHOW TABLES",
    "SHOW WARNINGS",
    "EXPLAIN SELECT * FROM t",
    "DESC t",
    "CHECKSUM TABLE t",
    "CREATE TABLE IF NOT EXISTS other (a INT)",
    "CREATE OR REPLACE TABLE other (a INT)",
    "CREATE TEMPORARY TABLE own (a INT)",
    "DROP TEMPORARY TABLE IF EXISTS own",
    "DROP TABLE IF EXISTS other",
    "ALTER TABLE t COMMENT 'a'",
    "TRUNCATE emptied",
    "CREATE OR REPLACE VIEW v AS SELECT 1",
    "DROP VIEW IF EXISTS v",
    "GRANT SELECT ON test.* TO plain",
    "ALTER USER plain ACCOUNT UNLOCK",
    "ANALYZE TABLE t",
    "OPTIMIZE TABLE emptied",
    "FLUSH STATUS",
    "FLUSH TABLES",
    "FLUSH TABLES t WITH READ LOCK",
    "LOCK TABLES t READ",
    "UNLOCK TABLES",
    "HANDLER t OPEN",
    "HANDLER t CLOSE",
    "PREPARE s FROM 'SELECT 1'",
    "EXECUTE s",
    "EXECUTE IMMEDIATE 'BEGIN'",
    "DEALLOCATE PREPARE s",
    "CALL p()",
    "BEGIN NOT ATOMIC SELECT 1; END",
    "XA START 'y'",
    "XA END 'x'",
    "XA COMMIT 'x'",
    "XA ROLLBACK 'x'",
    "nonsense",
];

fn flags(client: &mut Client) -> Flags {
    let status = client.status_flags().expect("it answers");
    Flags {
        autocommit: status & 2 != 0,
        in_transaction: status & 1 != 0,
        is_read_only: status & 1 << 13 != 0,
    }
}

/// The state after a statement, and whether it fits what the server reports.
fn step(client: &mut Client, state: State, text: &str) -> (State, bool) {
    let effect = classify(text.as_bytes(), SqlMode::default()).effect;
    let outcomes = client.query_all(text.as_bytes()).expect("it answers");
    let next = match outcomes.last() {
        // A syntax error changes nothing.
        Some(Outcome::Error(error)) if error.number == 1064 => state,
        Some(Outcome::Error(_)) => state.failed(effect),
        _ => state.done(effect),
    };
    let told = flags(client);
    (next.observe(told), next.allows(told))
}

#[test]
fn effects_are_those_that_a_server_reports() {
    let server = Launch::new(ServerKind::MariaDb).start().unwrap();
    let mut root = server.connect().unwrap();
    for statement in [
        "CREATE DATABASE IF NOT EXISTS test",
        "CREATE TABLE test.t (a INT) ENGINE = InnoDB",
        "CREATE TABLE test.emptied (a INT) ENGINE = InnoDB",
        "CREATE USER plain",
        "CREATE PROCEDURE test.p() COMMIT",
    ] {
        root.run(statement).expect(statement);
    }
    let mut client = server.connect().unwrap();
    let mut known = 0;
    let mut wrong = Vec::new();
    for setup in STATES {
        for text in STATEMENTS {
            client.send_command(RESET_CONNECTION, b"").unwrap();
            assert_eq!(client.next_packet().unwrap().first(), Some(&0));
            client.run("USE test").unwrap();
            let mut state = State::new();
            for before in setup {
                let fits;
                (state, fits) = step(&mut client, state, before);
                assert!(fits, "{before}");
            }
            let (after, fits) = step(&mut client, state, text);
            if !fits {
                wrong.push(format!("{setup:?} {text}: {after:?}"));
            }
            let effect = classify(text.as_bytes(), SqlMode::default()).effect;
            let guess = state.done(effect).in_transaction;
            known += usize::from(guess != Guess::Unknown && effect != Effect::None);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all = STATES.len() * STATEMENTS.len();
    assert!(all * 2 / 5 < known, "{known} of {all} effects are known");
}
