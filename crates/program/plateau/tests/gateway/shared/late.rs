//! What a server tells of a statement late, or not at all.

use super::sharing;
use crate::*;

#[test]
fn variables_of_one_statement_pin_no_session() {
    // With the position of a write, MariaDB tells what else has changed.
    let backend = Launch::new(ServerKind::MariaDb).with("--log-bin=binlog");
    let backend = backend.start().unwrap();
    let mut root = backend.connect().unwrap();
    create_accounts(&mut root);
    root.run("CREATE TABLE shop.t (a INT PRIMARY KEY)").unwrap();
    let gateway = sharing(&backend, 1);
    let [mut client, mut other] = [gateway.connect(), gateway.connect()];
    let set = "SET STATEMENT lock_wait_timeout = 5 FOR";
    client.run(&format!("{set} SELECT 1")).unwrap();
    other.run("INSERT INTO shop.t VALUES (1)").unwrap();
    client.run("INSERT INTO shop.t VALUES (2)").unwrap();
    // In a transaction, and after an error.
    client.run("BEGIN").unwrap();
    client
        .run(&format!("{set} UPDATE shop.t SET a = a + 10"))
        .unwrap();
    assert_eq!(value(&mut client, "SELECT ROW_COUNT()"), "2");
    client.run("INSERT INTO shop.t VALUES (3)").unwrap();
    client.run("COMMIT").unwrap();
    let failing = format!("{set} INSERT INTO shop.t VALUES (3)");
    assert_eq!(other.error_number(&failing).unwrap(), 1062);
    let warnings = other.rows("SHOW WARNINGS").unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    other.run("INSERT INTO shop.t VALUES (4)").unwrap();
    client.run("INSERT INTO shop.t VALUES (5)").unwrap();
    other
        .run(&format!(
            "{set} SELECT SQL_CALC_FOUND_ROWS a FROM shop.t LIMIT 2"
        ))
        .unwrap();
    assert_eq!(value(&mut other, "SELECT FOUND_ROWS()"), "5");
}

#[test]
fn a_savepoint_without_autocommit_keeps_its_connection() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut client, mut other] = [gateway.connect(), gateway.connect()];
    client.run("SET autocommit = 0").unwrap();
    other.run("DO 1").unwrap();
    client.run("SAVEPOINT a").unwrap();
    assert_eq!(other.error_number("DO 1").unwrap(), 1040);
    client.run("ROLLBACK TO a").unwrap();
    client.run("RELEASE SAVEPOINT a").unwrap();
    client.run("COMMIT").unwrap();
    other.run("DO 1").unwrap();
}

/// The status of its reply has the mode of the statement, and the next text is read without that.
#[test]
fn a_mode_of_one_statement_hides_nothing_of_the_next() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut client, mut other] = [gateway.connect(), gateway.connect()];
    client
        .run("SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR SELECT 1")
        .unwrap();
    client
        .run(r"SELECT 'it\'s', GET_LOCK('hidden', 0) -- '")
        .unwrap();
    // The connection with the lock is nobody else's.
    assert_eq!(other.error_number("DO 1").unwrap(), 1040);
}
