//! What a server tells of a statement late, or not at all.

use super::sharing;
use crate::prepared::{Types, execute, prepare};
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

/// The value of the first column, a BIGINT, in a row of the binary protocol with one or two.
fn first_number(rows: &[Vec<u8>]) -> i64 {
    let row = rows.first().expect("a row");
    let value = row.get(2..).and_then(|it| it.first_chunk());
    i64::from_le_bytes(*value.unwrap_or_else(|| panic!("{row:?}")))
}

/// A session is pinned to the connection that prepares it, which others have used meanwhile.
#[test]
fn what_is_prepared_late_reads_of_the_statement_before() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut client, mut other] = [gateway.connect(), gateway.connect()];
    client.run("CREATE TABLE shop.t (a INT)").unwrap();
    client
        .run("INSERT INTO shop.t VALUES (1), (2), (3)")
        .unwrap();
    other.run("UPDATE shop.t SET a = a + 1 LIMIT 1").unwrap();
    let counts = prepare(&mut client, "SELECT ROW_COUNT(), ? FROM DUAL");
    // Preparing leaves the numbers of the statement before as they are, as on a server.
    let rows = execute(&mut client, &counts, 7, Types::Told);
    assert_eq!(first_number(&rows), 3);
    assert_eq!(rows[0].last_chunk(), Some(&7_i32.to_le_bytes()));
    let rows = execute(&mut client, &counts, 8, Types::Untold);
    assert_eq!(first_number(&rows), -1, "of the execution before");
    client.run("DELETE FROM shop.t LIMIT 2").unwrap();
    assert_eq!(
        first_number(&execute(&mut client, &counts, 9, Types::Untold)),
        2
    );

    client.send_command(31, b"").unwrap();
    assert_eq!(client.next_packet().unwrap()[0], 0);
    client
        .rows("SELECT 1 UNION SELECT 2 UNION SELECT 3")
        .unwrap();
    other.rows("SELECT 1").unwrap();
    let found = prepare(&mut client, "SELECT FOUND_ROWS()");
    assert_eq!(
        first_number(&execute(&mut client, &found, 0, Types::Untold)),
        3
    );
}

#[test]
fn preparing_leaves_the_numbers_of_the_statement_before() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut client, mut other] = [gateway.connect(), gateway.connect()];
    client.run("CREATE TABLE shop.t (a INT)").unwrap();
    client.run("INSERT INTO shop.t VALUES (1), (2)").unwrap();
    other.run("INSERT INTO shop.t VALUES (3)").unwrap();
    prepare(&mut client, "SELECT 1");
    assert_eq!(value(&mut client, "SELECT ROW_COUNT()"), "2");
}

/// Warnings have no other words: the gateway has read them when their connection went.
#[test]
fn what_is_prepared_late_gets_no_warnings_of_others() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let [mut client, mut other] = [gateway.connect(), gateway.connect()];
    client.run("SELECT CAST('a' AS INT)").unwrap();
    other.run("SELECT CAST('b' AS INT)").unwrap();
    let show = prepare(&mut client, "SHOW WARNINGS");
    let refused = execute(&mut client, &show, 0, Types::Untold);
    let number = 1235_u16.to_le_bytes();
    assert_eq!(refused[0].get(..3), Some(&[0xff, number[0], number[1]][..]));
    let told = client.rows("SHOW WARNINGS").unwrap();
    assert!(told[0][2].as_ref().unwrap().ends_with(b"'a'"), "{told:?}");
}

/// An error tells no status, so nobody but the server knows it.
#[test]
fn a_reset_statement_tells_of_a_transaction_that_an_error_has_left_open() {
    let backend = backend();
    let gateway = sharing(&backend, 1);
    let mut client = gateway.connect();
    let outcomes = client.query_all(b"BEGIN; SELECT nothing").unwrap();
    assert!(matches!(outcomes.last(), Some(Outcome::Error(_))));
    client.send_command(22, b"SELECT ?").unwrap();
    let prepared = client.next_packet().unwrap();
    while client.next_packet().unwrap()[0] != 0xfe {}
    while client.next_packet().unwrap()[0] != 0xfe {}
    client.send_command(26, &prepared[1..5]).unwrap();
    let reset = client.next_packet().unwrap();
    assert_eq!(reset.get(..5), Some(&[0, 0, 0, 3, 0][..]), "{reset:?}");
}
